//! The IDX format of MNIST: a header with the length of every axis, then one byte per value.

use std::path::Path;

use super::refused;
use crate::data::{DataError, bytes};

/// The lengths of the axes, and the values, of which the last index changes fastest.
///
/// # Errors
/// [`DataError::File`]: another format, other values than bytes, or a file of another size than its
/// header says.
pub(crate) fn read(path: &Path) -> Result<(Vec<usize>, Vec<u8>), DataError> {
    parse(bytes(path)?).map_err(|reason| refused(path, reason))
}

fn parse(mut bytes: Vec<u8>) -> Result<(Vec<usize>, Vec<u8>), String> {
    let axes = match bytes.as_slice() {
        [0, 0, 8, axes @ 1..=4, ..] => usize::from(*axes),
        [0, 0, kind @ 9..=14, _, ..] => {
            return Err(format!(
                "expected an IDX file of bytes (type 0x08), found values of the type {kind:#04x}"
            ));
        }
        other => {
            return Err(format!(
                "expected an IDX file, which begins with 00 00 08 and its number of axes, found {:02x?}",
                &other[..other.len().min(4)]
            ));
        }
    };
    let begin = 4 + 4 * axes;
    let lengths = bytes
        .get(4..begin)
        .ok_or("expected the lengths of its axes, and the file ends")?;
    let shape: Vec<usize> = lengths
        .chunks_exact(4)
        .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]) as usize)
        .collect();
    let count = shape
        .iter()
        .try_fold(1usize, |product, &length| product.checked_mul(length));
    let found = bytes.len() - begin;
    if count != Some(found) {
        return Err(format!(
            "expected one byte for each value of an array of shape {shape:?}, found {found} bytes"
        ));
    }
    bytes.drain(..begin);
    Ok((shape, bytes))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// A file of this shape.
    pub(crate) fn idx(shape: &[u32], values: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0, 0, 8, shape.len() as u8];
        bytes.extend(shape.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(values);
        bytes
    }

    #[test]
    fn shape_and_values_are_read() {
        let (shape, values) = parse(idx(&[2, 1, 3], &[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!((shape, values), (vec![2, 1, 3], vec![1, 2, 3, 4, 5, 6]));
        assert_eq!(parse(idx(&[2], &[9, 7])).unwrap().0, [2]);
    }

    #[test]
    fn other_files_are_refused() {
        let error = |bytes: &[u8]| parse(bytes.to_vec()).unwrap_err();
        assert_eq!(
            error(&idx(&[2, 2], &[0; 3])),
            "expected one byte for each value of an array of shape [2, 2], found 3 bytes"
        );
        assert_eq!(
            error(&idx(&[u32::MAX, u32::MAX, u32::MAX], &[])),
            "expected one byte for each value of an array of shape [4294967295, 4294967295, \
             4294967295], found 0 bytes"
        );
        assert!(error(&[0, 0, 13, 1, 0, 0, 0, 0]).contains("the type 0x0d"));
        assert!(error(b"a,b\n").contains("found [61, 2c, 62, 0a]"));
        assert!(error(&[0, 0, 8, 3, 0]).contains("the file ends"));
        assert!(error(&[]).contains("found []"));
    }
}
