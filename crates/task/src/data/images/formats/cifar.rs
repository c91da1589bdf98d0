//! The binary files of CIFAR-10 and CIFAR-100: for every picture its label or labels, then 32×32
//! pixels in red, in green and in blue.

use std::path::Path;

use super::refused;
use crate::data::{DataError, bytes};

const PIXELS: usize = 3 * 32 * 32;
/// The classes of CIFAR-10, in the order of their numbers.
pub(crate) const CLASSES: [&str; 10] = [
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
];

/// Pictures, channels first, and their labels: of CIFAR-100 the fine ones.
#[derive(Debug, PartialEq)]
pub(crate) struct Cifar {
    pub pixels: Vec<u8>,
    pub labels: Vec<u32>,
    pub classes: Vec<String>,
}

/// Reads a file: CIFAR-10 if its size is a multiple of 3,073 bytes, CIFAR-100 if of 3,074.
///
/// # Errors
/// [`DataError::File`]: another size, or a label that is no class.
pub(crate) fn read(path: &Path) -> Result<Cifar, DataError> {
    parse(&bytes(path)?).map_err(|reason| refused(path, reason))
}

fn parse(bytes: &[u8]) -> Result<Cifar, String> {
    let fits = |labels: usize| !bytes.is_empty() && bytes.len().is_multiple_of(labels + PIXELS);
    let (leading, classes): (usize, Vec<String>) = if fits(1) {
        (1, CLASSES.map(str::to_owned).to_vec())
    } else if fits(2) {
        (2, (0..100).map(|class| class.to_string()).collect())
    } else {
        return Err(format!(
            "expected a binary file of CIFAR-10 (a multiple of {} bytes) or CIFAR-100 ({}), found {} bytes",
            1 + PIXELS,
            2 + PIXELS,
            bytes.len()
        ));
    };
    let count = bytes.len() / (leading + PIXELS);
    let (mut pixels, mut labels) = (
        Vec::with_capacity(count * PIXELS),
        Vec::with_capacity(count),
    );
    for (at, picture) in bytes.chunks_exact(leading + PIXELS).enumerate() {
        let label = u32::from(picture[leading - 1]);
        if label as usize >= classes.len() {
            return Err(format!(
                "picture {}: expected a label from 0 to {}, found {label}",
                at + 1,
                classes.len() - 1
            ));
        }
        labels.push(label);
        pixels.extend_from_slice(&picture[leading..]);
    }
    Ok(Cifar {
        pixels,
        labels,
        classes,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn file(labels: &[&[u8]]) -> Vec<u8> {
        let picture =
            |(at, labels): (usize, &&[u8])| [labels, [at as u8; PIXELS].as_slice()].concat();
        labels.iter().enumerate().flat_map(picture).collect()
    }

    #[test]
    fn both_kinds_are_read() {
        let ten = parse(&file(&[&[3], &[9]])).unwrap();
        assert_eq!((ten.labels, ten.classes[3].as_str()), (vec![3, 9], "cat"));
        assert_eq!(ten.pixels.len(), 2 * PIXELS);
        assert_eq!(ten.pixels[PIXELS - 1..=PIXELS], [0, 1]);
        let hundred = parse(&file(&[&[1, 99], &[0, 4], &[0, 5]])).unwrap();
        assert_eq!(
            (hundred.labels, hundred.classes.len()),
            (vec![99, 4, 5], 100)
        );
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(
            parse(&[0; 3072]).unwrap_err(),
            "expected a binary file of CIFAR-10 (a multiple of 3073 bytes) or CIFAR-100 (3074), found 3072 bytes"
        );
        assert!(parse(&[]).unwrap_err().ends_with("found 0 bytes"));
        assert_eq!(
            parse(&file(&[&[3], &[10]])).unwrap_err(),
            "picture 2: expected a label from 0 to 9, found 10"
        );
    }
}
