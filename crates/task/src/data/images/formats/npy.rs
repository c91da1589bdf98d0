//! One array in the `.npy` format of NumPy.

use crate::file;

/// An array, its values in the order of C: the last index changes fastest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// Length of every axis.
    pub shape: Vec<usize>,
    /// The values.
    pub values: NpyValues,
}

/// Values of an array, by what they are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NpyValues {
    /// Whole numbers from 0 to 255.
    Bytes(Vec<u8>),
    /// Other whole numbers, which are below 2^53 in size.
    Integers(Vec<i64>),
    /// Numbers with single precision, as models use them. Those of double precision are rounded.
    Floats(Vec<f32>),
    /// Text.
    Texts(Vec<String>),
}

impl Array {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// Expected and found content, as text.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let header = NpyHeader::parse(bytes)?;
        let count = header
            .shape
            .iter()
            .try_fold(1usize, |product, &length| product.checked_mul(length));
        let size = count.and_then(|count| count.checked_mul(header.kind.size()));
        let size = size.filter(|&size| size as u64 <= file::DATA);
        let (Some(count), Some(size)) = (count, size) else {
            return Err(format!(
                "an array of shape {:?} is larger than {} MiB, the most that it may have",
                header.shape,
                file::DATA >> 20
            ));
        };
        let data = &bytes[header.end..];
        if data.len() != size {
            return Err(format!(
                "expected {size} bytes for an array of shape {:?}, found {}",
                header.shape,
                data.len()
            ));
        }
        let values = header.kind.values(data)?;
        debug_assert_eq!(values.len(), count);
        let values = if header.fortran && header.shape.len() > 1 {
            values.reordered(&header.shape)
        } else {
            values
        };
        let shape = header.shape;
        Ok(Self { shape, values })
    }

    /// Values of the array as whole numbers from 0, such as labels or positions.
    ///
    /// # Errors
    /// The first value that is none.
    pub(crate) fn counts(&self) -> Result<Vec<u32>, String> {
        let wrong =
            |value: &dyn std::fmt::Display| format!("expected whole numbers from 0, found {value}");
        match &self.values {
            NpyValues::Bytes(values) => Ok(values.iter().map(|&value| u32::from(value)).collect()),
            NpyValues::Integers(values) => {
                let count = |&value: &i64| u32::try_from(value).map_err(|_| wrong(&value));
                values.iter().map(count).collect()
            }
            NpyValues::Floats(values) => {
                let count = |&value: &f32| {
                    let whole = value.fract() == 0.0 && (0.0..16_777_216.0).contains(&value);
                    whole.then_some(value as u32).ok_or_else(|| wrong(&value))
                };
                values.iter().map(count).collect()
            }
            NpyValues::Texts(values) => Err(match values.first() {
                Some(first) => wrong(&format!("{first:?}")),
                None => wrong(&"text"),
            }),
        }
    }
}

impl NpyValues {
    /// Number of values.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Bytes(values) => values.len(),
            Self::Integers(values) => values.len(),
            Self::Floats(values) => values.len(),
            Self::Texts(values) => values.len(),
        }
    }

    /// From the order of Fortran, in which the first index changes fastest, to that of C.
    fn reordered(self, shape: &[usize]) -> Self {
        match self {
            Self::Bytes(values) => Self::Bytes(to_c_order(&values, shape)),
            Self::Integers(values) => Self::Integers(to_c_order(&values, shape)),
            Self::Floats(values) => Self::Floats(to_c_order(&values, shape)),
            Self::Texts(values) => Self::Texts(to_c_order(&values, shape)),
        }
    }
}

fn to_c_order<T: Clone>(values: &[T], shape: &[usize]) -> Vec<T> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1;
    for length in shape {
        strides.push(stride);
        stride *= length;
    }
    let mut index = vec![0; shape.len()];
    let mut from = 0;
    let mut ordered = Vec::with_capacity(values.len());
    for _ in 0..values.len() {
        ordered.push(values[from].clone());
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            from += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            from -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    ordered
}

/// Type of the values.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NpyKind {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
    /// Characters of four bytes each.
    Text(usize),
}

impl NpyKind {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "expected an array of uint8, other whole numbers, float32, float64 or text in the \
                 byte order of x86 and ARM, found the type {text:?}: convert it with `astype`"
            )
        };
        let mut letters = text.chars();
        let (order, letter) = (letters.next(), letters.next());
        let size: usize = letters.as_str().parse().map_err(|_| wrong())?;
        let kind = match (letter, size) {
            (Some('u' | 'b'), 1) | (Some('u'), 2 | 4 | 8) => Self::Unsigned(size),
            (Some('i'), 1 | 2 | 4 | 8) => Self::Signed(size),
            (Some('f'), 4 | 8) => Self::Float(size),
            (Some('U'), 1..=4096) => Self::Text(size),
            _ => return Err(wrong()),
        };
        let single = kind.size() == 1;
        match order {
            Some('<' | '=') => Ok(kind),
            Some('|' | '>') if single => Ok(kind),
            _ => Err(wrong()),
        }
    }

    /// Bytes of a value.
    fn size(self) -> usize {
        match self {
            Self::Unsigned(size) | Self::Signed(size) | Self::Float(size) => size,
            Self::Text(characters) => 4 * characters,
        }
    }

    fn values(self, data: &[u8]) -> Result<NpyValues, String> {
        let each = data.chunks_exact(self.size());
        let padded = |bytes: &[u8], fill: u8| {
            let mut eight = [fill; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            eight
        };
        let too_large = |value: u64| format!("expected whole numbers below 2^53, found {value}");
        Ok(match self {
            Self::Unsigned(1) => NpyValues::Bytes(data.to_vec()),
            Self::Unsigned(_) => {
                let value = |bytes| {
                    let value = u64::from_le_bytes(padded(bytes, 0));
                    let small = value < 1 << 53;
                    small
                        .then_some(value as i64)
                        .ok_or_else(|| too_large(value))
                };
                NpyValues::Integers(each.map(value).collect::<Result<_, _>>()?)
            }
            Self::Signed(_) => {
                let value = |bytes: &[u8]| {
                    let negative = bytes.last().is_some_and(|&last| last >= 128);
                    let value = i64::from_le_bytes(padded(bytes, if negative { 255 } else { 0 }));
                    let small = value.unsigned_abs() < 1 << 53;
                    small
                        .then_some(value)
                        .ok_or_else(|| too_large(value.unsigned_abs()))
                };
                NpyValues::Integers(each.map(value).collect::<Result<_, _>>()?)
            }
            Self::Float(4) => {
                let value = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
                NpyValues::Floats(each.map(value).collect())
            }
            Self::Float(_) => {
                let value = |bytes| f64::from_le_bytes(padded(bytes, 0)) as f32;
                NpyValues::Floats(each.map(value).collect())
            }
            Self::Text(_) => NpyValues::Texts(each.map(text).collect::<Result<_, _>>()?),
        })
    }
}

/// Text of a fixed length, filled up with zeros.
fn text(bytes: &[u8]) -> Result<String, String> {
    let characters = bytes
        .chunks_exact(4)
        .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
        .take_while(|&character| character != 0);
    characters
        .map(|character| {
            char::from_u32(character)
                .ok_or_else(|| format!("expected characters of Unicode, found {character:#x}"))
        })
        .collect()
}

/// Header before the values.
struct NpyHeader {
    kind: NpyKind,
    fortran: bool,
    shape: Vec<usize>,
    /// Offset of the first value.
    end: usize,
}

impl NpyHeader {
    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let wrong = || "expected an array of NumPy (.npy), found something else".to_owned();
        let rest = bytes.strip_prefix(b"\x93NUMPY").ok_or_else(wrong)?;
        let (begin, length) = match rest {
            [1, _, a, b, ..] => (10, usize::from(u16::from_le_bytes([*a, *b]))),
            [2 | 3, _, a, b, c, d, ..] => (12, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
            _ => return Err(wrong()),
        };
        let end = begin + length;
        let text = bytes
            .get(begin..end)
            .and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or_else(wrong)?;
        let after = |key: &str| {
            let at = text.find(&format!("'{key}'"))? + key.len() + 2;
            Some(text[at..].trim_start().strip_prefix(':')?.trim_start())
        };
        let missing =
            || format!("expected a header with descr, fortran_order and shape, found {text:?}");
        let kind = after("descr").ok_or_else(missing)?;
        let kind = match kind
            .strip_prefix('\'')
            .and_then(|kind| kind.split('\'').next())
        {
            Some(kind) => NpyKind::parse(kind)?,
            None => return Err("expected an array of one type, found one with fields".into()),
        };
        let fortran = after("fortran_order")
            .ok_or_else(missing)?
            .starts_with("True");
        let shape = after("shape").ok_or_else(missing)?;
        let shape = shape
            .strip_prefix('(')
            .and_then(|shape| shape.split(')').next());
        let lengths = shape.ok_or_else(missing)?.split(',').map(str::trim);
        let lengths = lengths.filter(|length| !length.is_empty());
        let shape: Result<Vec<usize>, String> = lengths
            .map(|length| length.parse().map_err(|_| missing()))
            .collect();
        let shape = shape?;
        Ok(Self {
            kind,
            fortran,
            shape,
            end,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// An array as NumPy writes it.
    pub(crate) fn npy(descr: &str, fortran: bool, shape: &[usize], data: &[u8]) -> Vec<u8> {
        let fortran = if fortran { "True" } else { "False" };
        let lengths: String = shape.iter().map(|length| format!("{length}, ")).collect();
        let mut header =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({lengths}), }}");
        while (10 + header.len() + 1) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn le<const N: usize, T: Copy>(values: &[T], bytes: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&value| bytes(value)).collect()
    }

    #[test]
    fn every_type_is_read() {
        let parse = |descr: &str, data: Vec<u8>| {
            Array::parse(&npy(descr, false, &[2], &data))
                .unwrap()
                .values
        };
        assert_eq!(parse("|u1", vec![0, 255]), NpyValues::Bytes(vec![0, 255]));
        assert_eq!(parse("|b1", vec![0, 1]), NpyValues::Bytes(vec![0, 1]));
        assert_eq!(parse("|i1", vec![1, 255]), NpyValues::Integers(vec![1, -1]));
        assert_eq!(
            parse("<u2", le(&[1u16, 60_000], u16::to_le_bytes)),
            NpyValues::Integers(vec![1, 60_000])
        );
        assert_eq!(
            parse("<i4", le(&[-7i32, 9], i32::to_le_bytes)),
            NpyValues::Integers(vec![-7, 9])
        );
        assert_eq!(
            parse("<i8", le(&[-7i64, 1 << 40], i64::to_le_bytes)),
            NpyValues::Integers(vec![-7, 1 << 40])
        );
        assert_eq!(
            parse("<f4", le(&[0.5f32, -2.0], f32::to_le_bytes)),
            NpyValues::Floats(vec![0.5, -2.0])
        );
        assert_eq!(
            parse("<f8", le(&[0.25f64, 1e3], f64::to_le_bytes)),
            NpyValues::Floats(vec![0.25, 1e3])
        );
        let words: Vec<u32> = ['a', '\0', 'é', 'z'].map(u32::from).to_vec();
        assert_eq!(
            parse("<U2", le(&words, u32::to_le_bytes)),
            NpyValues::Texts(vec!["a".into(), "éz".into()])
        );
    }

    #[test]
    fn an_array_in_the_order_of_fortran_is_turned() {
        // Columns first: [[1, 2, 3], [4, 5, 6]].
        let array = Array::parse(&npy("|u1", true, &[2, 3], &[1, 4, 2, 5, 3, 6])).unwrap();
        assert_eq!(array.shape, [2, 3]);
        assert_eq!(array.values, NpyValues::Bytes(vec![1, 2, 3, 4, 5, 6]));
        let shape = [2, 3, 4];
        let value = |a: usize, b: usize, c: usize| (12 * a + 4 * b + c) as u8;
        let fortran: Vec<u8> = (0..4)
            .flat_map(|c| (0..3).flat_map(move |b| (0..2).map(move |a| value(a, b, c))))
            .collect();
        let array = Array::parse(&npy("|u1", true, &shape, &fortran)).unwrap();
        assert_eq!(array.values, NpyValues::Bytes((0..24).collect()));
    }

    #[test]
    fn what_is_no_such_array_is_refused_with_what_was_expected() {
        let error = |bytes: &[u8]| Array::parse(bytes).unwrap_err();
        assert!(error(b"PK").starts_with("expected an array of NumPy"));
        assert!(error(&npy(">f4", false, &[1], &[0; 4])).contains("found the type \">f4\""));
        assert!(error(&npy("<c8", false, &[1], &[0; 8])).contains("found the type \"<c8\""));
        assert_eq!(
            error(&npy("|u1", false, &[2, 2], &[0; 3])),
            "expected 4 bytes for an array of shape [2, 2], found 3"
        );
        assert!(error(&npy("<f8", false, &[1 << 30], &[])).contains("larger than 1024 MiB"));
        assert!(error(&npy("<f8", false, &[usize::MAX, 2], &[])).contains("larger than"));
        assert!(error(&npy("<i8", false, &[1], &i64::MAX.to_le_bytes())).contains("below 2^53"));
        assert!(error(&npy("|u1", false, &[2], &[0; 2])[..9]).contains("something else"));
        let fields = b"\x93NUMPY\x01\x00\x1e\x00{'descr': [('a', '<f4')], '''}";
        assert!(error(fields).contains("with fields"));
    }

    #[test]
    fn labels_are_whole_numbers() {
        let counts = |descr, data: &[u8]| {
            Array::parse(&npy(descr, false, &[1], data))
                .unwrap()
                .counts()
        };
        assert_eq!(counts("<f8", &3.0f64.to_le_bytes()), Ok(vec![3]));
        assert_eq!(
            counts("|i1", &[255]),
            Err("expected whole numbers from 0, found -1".into())
        );
        assert_eq!(
            counts("<f4", &0.5f32.to_le_bytes()),
            Err("expected whole numbers from 0, found 0.5".into())
        );
    }
}
