//! Targets of a program's rows, near 0 where they are large.

use crate::data::Rows;

/// The targets of a part, as rows of 32-bit floats.
pub(super) struct PartTargets {
    pub(super) rows: Rows,
    /// Numbers that were subtracted from every column, so that 32-bit floats can tell its targets apart: their mean,
    /// where one of them is no 32-bit float, such as 1,000,000,001. Errors of outputs are the same.
    pub(super) offset: Vec<f64>,
}

impl PartTargets {
    /// Targets of `count` rows, `width` for each.
    pub(super) fn new(count: usize, width: usize, targets: Vec<f64>) -> Self {
        let exact = |&target: &f64| f64::from(target as f32) == target;
        let mut offset = vec![0.0; width];
        if !targets.iter().all(exact) {
            for row in targets.chunks_exact(width) {
                let sums = offset.iter_mut().zip(row);
                sums.for_each(|(sum, target)| *sum += target / count as f64);
            }
        }
        Self::near_to(offset, count, targets)
    }

    /// Targets of `count` rows, `width` for each, as they are.
    pub(super) fn plain(count: usize, width: usize, targets: Vec<f64>) -> Self {
        Self::near_to(vec![0.0; width], count, targets)
    }

    fn near_to(offset: Vec<f64>, count: usize, targets: Vec<f64>) -> Self {
        let width = offset.len();
        let columns = offset.iter().cycle();
        let near = targets
            .iter()
            .zip(columns)
            .map(|(target, mean)| (target - mean) as f32);
        Self {
            rows: Rows::wide(1, width, vec![0.0; count], near.collect()),
            offset,
        }
    }

    /// Outputs from which the same was subtracted.
    pub(super) fn near(&self, outputs: &[f64]) -> Vec<f64> {
        // Outputs of classes have another width, and nothing is subtracted.
        let columns = self.offset.iter().cycle();
        outputs
            .iter()
            .zip(columns)
            .map(|(output, mean)| output - mean)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::measure;
    use crate::models::{Loss, RegressionLoss};

    #[test]
    fn errors_at_large_targets_are_those_at_small_ones() {
        let loss = Loss::Regression(RegressionLoss::Squared);
        let mse = |by: f64| {
            let targets = PartTargets::new(3, 1, [0.5, -1.0, 2.0].map(|one| one + by).to_vec());
            let outputs = [0.0, 0.0, 1.0].map(|one| one + by);
            measure(loss, &targets.near(&outputs), &targets.rows, 1.0).values["mse"]
        };
        for by in [0.0, 1e7, 1e9, -1e12] {
            assert!((mse(by) - 0.75).abs() < 1e-4, "{by}: {}", mse(by));
        }
        // What 32-bit floats have exactly stays as it is.
        let exact = PartTargets::new(2, 1, vec![3.5, 1e7]);
        assert_eq!(
            (exact.rows.targets(), &exact.offset[..]),
            (&[3.5, 1e7][..], &[0.0][..])
        );
    }

    #[test]
    fn every_column_of_targets_has_its_own_offset() {
        let targets = PartTargets::new(2, 2, vec![1e9 + 1.0, 0.1, 1e9 + 3.0, 0.3]);
        assert_eq!(targets.offset[0], 1e9 + 2.0);
        assert_eq!(&targets.rows.targets()[..1], &[-1.0]);
        assert_eq!(targets.near(&[1e9 + 2.0, 0.2])[0], 0.0);
    }
}
