//! Views of the vectors that are compared.

use std::borrow::Cow;
use std::ops::Range;

/// The vectors that are compared: `n ≥ 1` rows with the same number of columns, borrowed from the
/// caller.
///
/// A row is a selection of a model's values, the same for all rows, or the difference between
/// those and the values of the model it started from.
#[derive(Clone)]
pub struct Vectors<'a, T: Copy = f32> {
    values: Vec<Cow<'a, [T]>>,
    /// Subtracted from the values: empty, or one per row.
    starts: Vec<&'a [T]>,
    /// The ranges of the values that are the columns, in order.
    ranges: Vec<Range<usize>>,
    /// The first column of every range, then the number of columns.
    offsets: Vec<usize>,
}

/// Errors of creating vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VectorsError {
    /// No rows.
    #[error("there are no rows to compare: at least one is needed")]
    Empty,
    /// Rows of different lengths.
    #[error("row {row} has {got} values, the first has {expected}: all must have the same length")]
    Length {
        /// Number of the row, from 0.
        row: usize,
        /// Length of the row.
        got: usize,
        /// The length of the first row.
        expected: usize,
    },
}

/// Errors of comparing vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A value that is NaN or infinite.
    #[error("the value in row {row}, column {column} is not finite: leave that model out")]
    NotFinite {
        /// Number of the row, from 0.
        row: usize,
        /// Number of the column among those compared, from 0.
        column: usize,
    },
    /// All values are finite, but a result is not.
    #[error("the values are so large that sums over them are not finite: scale them down")]
    TooLarge,
}

impl<T: Copy> std::fmt::Debug for Vectors<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vectors({} × {})", self.len(), self.columns())
    }
}

impl<'a, T: Copy> Vectors<'a, T> {
    /// Vectors from whole slices.
    ///
    /// # Errors
    /// [`VectorsError`] on no rows or rows of different lengths.
    pub fn new<R: AsRef<[T]>>(rows: &'a [R]) -> Result<Self, VectorsError> {
        let values: Vec<_> = rows.iter().map(|row| Cow::Borrowed(row.as_ref())).collect();
        let expected = values.first().ok_or(VectorsError::Empty)?.len();
        for (row, values) in values.iter().enumerate() {
            let got = values.len();
            if got != expected {
                return Err(VectorsError::Length { row, got, expected });
            }
        }
        let whole = std::iter::once(0..expected).collect();
        Ok(Self::select(values, Vec::new(), whole))
    }

    /// The values in `ranges` of each of `values`, minus those of `starts` (empty, or one per row). All
    /// slices have the same length.
    pub(super) fn select(
        values: Vec<Cow<'a, [T]>>,
        starts: Vec<&'a [T]>,
        ranges: Vec<Range<usize>>,
    ) -> Self {
        debug_assert!(starts.is_empty() || starts.len() == values.len());
        let mut offsets = vec![0];
        let mut columns = 0;
        for range in &ranges {
            columns += range.len();
            offsets.push(columns);
        }
        Self {
            values,
            starts,
            ranges,
            offsets,
        }
    }

    /// Number of rows, at least 1.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Number of columns; may be 0.
    pub fn columns(&self) -> usize {
        self.offsets[self.ranges.len()]
    }

    /// The slices that make up `columns` of a row, each with the slice of the start if there is one.
    fn pieces(
        &self,
        row: usize,
        columns: Range<usize>,
    ) -> impl Iterator<Item = (&[T], Option<&[T]>)> {
        let first = self
            .offsets
            .partition_point(|&offset| offset <= columns.start)
            - 1;
        self.ranges[first..]
            .iter()
            .zip(&self.offsets[first..])
            .take_while(move |(_, offset)| **offset < columns.end)
            .map(move |(range, &offset)| {
                let from = columns.start.max(offset) - offset;
                let to = columns.end.min(offset + range.len()) - offset;
                let place = range.start + from..range.start + to;
                let start = self.starts.get(row).map(|start| &start[place.clone()]);
                (&self.values[row][place], start)
            })
    }
}

impl Vectors<'_, f32> {
    /// Appends `columns` of one row.
    pub(super) fn read(&self, row: usize, columns: Range<usize>, into: &mut Vec<f32>) {
        for piece in self.pieces(row, columns) {
            match piece {
                (values, None) => into.extend_from_slice(values),
                (values, Some(start)) => {
                    into.extend(values.iter().zip(start).map(|(value, start)| value - start));
                }
            }
        }
    }
}

impl<T: Copy + Into<f64>> Vectors<'_, T> {
    /// Appends `columns` of one row, in `f64`.
    pub(super) fn read_f64(&self, row: usize, columns: Range<usize>, into: &mut Vec<f64>) {
        for piece in self.pieces(row, columns) {
            match piece {
                (values, None) => into.extend(values.iter().map(|&value| value.into())),
                (values, Some(start)) => into.extend(
                    values
                        .iter()
                        .zip(start)
                        .map(|(&value, &start)| value.into() - start.into()),
                ),
            }
        }
    }

    /// Returns whether all values of a row are zero.
    pub(super) fn is_zero(&self, row: usize) -> bool {
        self.position(row, |value| value != 0.0).is_none()
    }

    /// Returns `values`, computed from these rows, if all are finite, otherwise the reason.
    ///
    /// # Errors
    /// [`CompareError`].
    pub(super) fn finite(&self, values: Vec<f64>) -> Result<Vec<f64>, CompareError> {
        if values.iter().all(|value| value.is_finite()) {
            return Ok(values);
        }
        let found = (0..self.len()).find_map(|row| {
            let column = self.position(row, |value| !value.is_finite())?;
            Some(CompareError::NotFinite { row, column })
        });
        Err(found.unwrap_or(CompareError::TooLarge))
    }

    /// The first column of a row whose value is `wanted`.
    fn position(&self, row: usize, wanted: impl Fn(f64) -> bool) -> Option<usize> {
        const BLOCK: usize = 1 << 12;
        let mut values = Vec::with_capacity(BLOCK);
        (0..self.columns()).step_by(BLOCK).find_map(|start| {
            values.clear();
            self.read_f64(row, start..self.columns().min(start + BLOCK), &mut values);
            Some(start + values.iter().position(|&value| wanted(value))?)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn pieces_join_to_the_selected_columns() {
        let values: Vec<f32> = (0..10).map(|value| value as f32).collect();
        let start = [1.0f32; 10];
        let ranges = vec![1..3, 4..4, 5..9];
        let rows = Vectors::select(vec![Cow::Borrowed(&values)], Vec::new(), ranges.clone());
        let updates = Vectors::select(vec![Cow::Borrowed(&values)], vec![&start], ranges);
        let expected = [1.0, 2.0, 5.0, 6.0, 7.0, 8.0];
        assert_eq!(rows.columns(), expected.len());
        for from in 0..=expected.len() {
            for to in from..=expected.len() {
                let (mut single, mut double, mut less) = (Vec::new(), Vec::new(), Vec::new());
                rows.read(0, from..to, &mut single);
                rows.read_f64(0, from..to, &mut double);
                updates.read(0, from..to, &mut less);
                let expected = &expected[from..to];
                assert!(single.iter().zip(expected).all(|(a, b)| a == b));
                assert!(
                    double
                        .iter()
                        .zip(expected)
                        .all(|(&a, &b)| a == f64::from(b))
                );
                assert!(less.iter().zip(expected).all(|(a, b)| *a == b - 1.0));
                let lens = [single.len(), double.len(), less.len()];
                assert_eq!(lens, [to - from; 3]);
            }
        }
    }

    #[test]
    fn empty_and_ragged_rows_are_refused() {
        assert_eq!(
            Vectors::<f32>::new::<Vec<f32>>(&[]).unwrap_err(),
            VectorsError::Empty
        );
        let ragged = [vec![1.0f64, 2.0], vec![3.0]];
        let error = VectorsError::Length {
            row: 1,
            got: 1,
            expected: 2,
        };
        assert_eq!(Vectors::new(&ragged).unwrap_err(), error);
        let none = Vectors::<f32>::new(&[[], []]).unwrap();
        assert_eq!((none.len(), none.columns()), (2, 0));
    }

    #[test]
    fn the_first_value_that_is_not_finite_is_named() {
        let mut models = vec![vec![0.5f32; 5000]; 3];
        models[1][4500] = f32::NAN;
        models[2][0] = f32::INFINITY;
        let rows = Vectors::new(&models).unwrap();
        assert_eq!(rows.finite(vec![1.0]), Ok(vec![1.0]));
        let error = CompareError::NotFinite {
            row: 1,
            column: 4500,
        };
        assert_eq!(rows.finite(vec![f64::NAN]), Err(error));
        let fine = Vectors::new(&models[..1]).unwrap();
        assert_eq!(
            fine.finite(vec![f64::INFINITY]),
            Err(CompareError::TooLarge)
        );
        assert!(!fine.is_zero(0));
        assert!(Vectors::new(&[[0.0f32, -0.0]]).unwrap().is_zero(0));
    }
}
