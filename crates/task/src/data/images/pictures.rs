//! The pictures of one file or folder, kept as small as they are there until a row is asked for.

use std::path::PathBuf;

use super::formats::npy::NpyValues;
use super::formats::{picture, refused};
use super::transform::Picture;
use crate::data::DataError;
use crate::file;

/// Largest size of a file with one picture, in bytes.
const PICTURE: u64 = 64 << 20;

/// Pictures, or rows of features.
pub(crate) struct Pictures {
    /// The file or folder.
    pub path: PathBuf,
    /// Storage of the pictures.
    pub kept: PictureStorage,
}

/// Storage of pictures.
pub(crate) enum PictureStorage {
    /// One byte per value.
    Bytes(Grid, Vec<u8>),
    /// One number per value.
    Floats(Grid, Vec<f32>),
    /// JPEG files that share their first bytes.
    Jpegs {
        /// The bytes that all begin with.
        header: Vec<u8>,
        /// Rest of each file, picture after picture.
        blob: Vec<u8>,
        /// End of each picture in `blob`.
        ends: Vec<usize>,
    },
    /// A file each.
    Files(Vec<PathBuf>),
}

/// Arrangement of the values of equally large pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// Channels, height and width; of features 1, 1 and their number.
    pub shape: [usize; 3],
    /// True if the channels of a pixel are one after the other.
    pub channels_last: bool,
    /// True if these are pictures and no features.
    pub pictures: bool,
}

impl Grid {
    /// Of an array: pictures × height × width, × channels at the end or before the height; or rows ×
    /// features.
    ///
    /// # Errors
    /// Expected shape, as text.
    pub(crate) fn of(shape: &[usize]) -> Result<Self, String> {
        let grid = |shape, channels_last, pictures| Self {
            shape,
            channels_last,
            pictures,
        };
        let found = match *shape {
            [_, features] => Some(grid([1, 1, features], false, false)),
            [_, height, width] => Some(grid([1, height, width], false, true)),
            [_, height, width, channels @ (1 | 3)] => {
                Some(grid([channels, height, width], true, true))
            }
            [_, channels @ (1 | 3), height, width] => {
                Some(grid([channels, height, width], false, true))
            }
            _ => None,
        };
        let found = found.filter(|grid| shape[0] > 0 && grid.len() > 0);
        found.ok_or_else(|| {
            format!(
                "expected pictures × height × width, with 1 or 3 channels at the end or before the \
                 height, or rows × features, found an array of shape {shape:?}"
            )
        })
    }

    /// A square picture of one channel, where the number of values allows it; features otherwise.
    pub(crate) fn square(width: usize) -> Self {
        let side = width.isqrt();
        let square = side * side == width && side > 1;
        Self {
            shape: if square {
                [1, side, side]
            } else {
                [1, 1, width]
            },
            channels_last: false,
            pictures: square,
        }
    }

    /// Values of a row.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// A row's values, channel by channel.
    fn arrange<T: Copy>(&self, values: &[T], number: impl Fn(T) -> f32) -> Vec<f32> {
        let [channels, height, width] = self.shape;
        let area = height * width;
        if self.channels_last {
            (0..channels * area)
                .map(|at| number(values[(at % area) * channels + at / area]))
                .collect()
        } else {
            values.iter().map(|&value| number(value)).collect()
        }
    }
}

impl Pictures {
    /// An array of them.
    ///
    /// # Errors
    /// [`DataError::File`]: an array of another shape; whole numbers that are no bytes; text.
    pub(crate) fn of_array(
        path: PathBuf,
        shape: &[usize],
        values: NpyValues,
    ) -> Result<Self, DataError> {
        let grid = Grid::of(shape).map_err(|reason| refused(&path, reason))?;
        let kept = match values {
            NpyValues::Bytes(values) => PictureStorage::Bytes(grid, values),
            NpyValues::Floats(values) => {
                if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                    return Err(refused(
                        &path,
                        format!("expected finite numbers, found {value}"),
                    ));
                }
                PictureStorage::Floats(grid, values)
            }
            NpyValues::Integers(values) if grid.pictures => {
                let byte = |&value: &i64| {
                    u8::try_from(value).map_err(|_| {
                        refused(
                            &path,
                            format!("expected pixels from 0 to 255, found {value}"),
                        )
                    })
                };
                PictureStorage::Bytes(grid, values.iter().map(byte).collect::<Result<_, _>>()?)
            }
            NpyValues::Integers(values) => {
                PictureStorage::Floats(grid, values.iter().map(|&value| value as f32).collect())
            }
            NpyValues::Texts(_) => return Err(refused(&path, "expected numbers, found text")),
        };
        Ok(Self { path, kept })
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        match &self.kept {
            PictureStorage::Bytes(grid, values) => values.len() / grid.len(),
            PictureStorage::Floats(grid, values) => values.len() / grid.len(),
            PictureStorage::Jpegs { ends, .. } => ends.len(),
            PictureStorage::Files(files) => files.len(),
        }
    }

    /// Returns whether these are pictures, and not rows of features.
    pub(crate) fn are_pictures(&self) -> bool {
        match &self.kept {
            PictureStorage::Bytes(grid, _) | PictureStorage::Floats(grid, _) => grid.pictures,
            PictureStorage::Jpegs { .. } | PictureStorage::Files(_) => true,
        }
    }

    /// Returns whether its values are pixels from 0 to 255.
    pub(crate) fn are_bytes(&self) -> bool {
        self.are_pictures() && !matches!(self.kept, PictureStorage::Floats(..))
    }

    /// Returns whether all have the same number of channels.
    pub(crate) fn is_uniform(&self) -> bool {
        !matches!(self.kept, PictureStorage::Files(_))
    }

    /// Channels of the picture at position `row`.
    ///
    /// # Errors
    /// As for [`picture`](Self::picture).
    pub(crate) fn channels(&self, row: usize) -> Result<usize, DataError> {
        match &self.kept {
            PictureStorage::Bytes(grid, _) | PictureStorage::Floats(grid, _) => Ok(grid.shape[0]),
            PictureStorage::Jpegs { .. } | PictureStorage::Files(_) => {
                Ok(self.picture(row)?.shape[0])
            }
        }
    }

    /// The picture at position `row`.
    ///
    /// # Errors
    /// [`DataError::File`]: one that cannot be read or decoded.
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn picture(&self, row: usize) -> Result<Picture, DataError> {
        match &self.kept {
            PictureStorage::Bytes(grid, values) => Ok(Picture {
                shape: grid.shape,
                values: grid.arrange(&values[row * grid.len()..][..grid.len()], f32::from),
            }),
            PictureStorage::Floats(grid, values) => Ok(Picture {
                shape: grid.shape,
                values: grid.arrange(&values[row * grid.len()..][..grid.len()], |value| value),
            }),
            PictureStorage::Jpegs { header, blob, ends } => {
                let begin = row.checked_sub(1).map_or(0, |before| ends[before]);
                let bytes = [header, &blob[begin..ends[row]]].concat();
                decoded(&bytes)
                    .map_err(|reason| refused(&self.path, format!("picture {}: {reason}", row + 1)))
            }
            PictureStorage::Files(files) => {
                let path = &files[row];
                let bytes =
                    file::read(path, PICTURE).map_err(|error| refused(path, error.to_string()))?;
                decoded(&bytes).map_err(|reason| refused(path, reason))
            }
        }
    }
}

fn decoded(bytes: &[u8]) -> Result<Picture, String> {
    let found = picture::decode(bytes)?;
    let shape = [found.channels, found.height, found.width];
    Ok(Picture::from_pixels(shape, &found.values))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn shape(array: &[usize]) -> ([usize; 3], bool, bool) {
        let grid = Grid::of(array).unwrap();
        (grid.shape, grid.channels_last, grid.pictures)
    }

    #[test]
    fn the_shape_of_an_array_shows_what_it_holds() {
        assert_eq!(shape(&[5, 28, 28]), ([1, 28, 28], false, true));
        assert_eq!(shape(&[5, 28, 30, 3]), ([3, 28, 30], true, true));
        assert_eq!(shape(&[5, 28, 30, 1]), ([1, 28, 30], true, true));
        assert_eq!(shape(&[5, 3, 28, 30]), ([3, 28, 30], false, true));
        assert_eq!(shape(&[5, 800]), ([1, 1, 800], false, false));
        for wrong in [
            &[5][..],
            &[5, 28, 28, 4],
            &[0, 28, 28],
            &[5, 0, 28],
            &[1, 1, 1, 1, 1],
        ] {
            let error = Grid::of(wrong).unwrap_err();
            assert!(
                error.ends_with(&format!("found an array of shape {wrong:?}")),
                "{error}"
            );
        }
        assert_eq!(Grid::square(784).shape, [1, 28, 28]);
        assert_eq!(Grid::square(783).shape, [1, 1, 783]);
    }

    #[test]
    fn rows_of_an_array_are_given_channel_by_channel() {
        let values = NpyValues::Bytes((0..12).collect());
        let pictures = Pictures::of_array("a".into(), &[2, 1, 2, 3], values).unwrap();
        assert_eq!(pictures.len(), 2);
        assert_eq!(
            pictures.picture(1).unwrap().values,
            [6.0, 9.0, 7.0, 10.0, 8.0, 11.0]
        );
        let values = NpyValues::Integers((0..12).collect());
        let pictures = Pictures::of_array("a".into(), &[2, 3, 1, 2], values).unwrap();
        assert_eq!(
            pictures.picture(1).unwrap().values,
            [6.0, 7.0, 8.0, 9.0, 10.0, 11.0]
        );
        assert!(pictures.are_bytes());
        let values = NpyValues::Floats(vec![0.5, -1.0]);
        let features = Pictures::of_array("a".into(), &[1, 2], values).unwrap();
        assert!(!features.are_pictures() && !features.are_bytes());
        assert_eq!(features.picture(0).unwrap().values, [0.5, -1.0]);
    }

    #[test]
    fn values_that_are_no_pixels_are_refused() {
        let error = |values| match Pictures::of_array("a".into(), &[1, 1, 2], values) {
            Ok(_) => panic!("they are no pixels"),
            Err(error) => error.to_string(),
        };
        assert!(error(NpyValues::Integers(vec![0, 256])).ends_with("from 0 to 255, found 256"));
        assert!(error(NpyValues::Floats(vec![0.0, f32::NAN])).ends_with("found NaN"));
        assert!(error(NpyValues::Texts(vec![String::new(); 2])).ends_with("found text"));
    }
}
