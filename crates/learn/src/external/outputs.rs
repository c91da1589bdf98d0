//! Outputs of a program's models row by row, measured by Rota.

use std::sync::Arc;

use methods::learner::{Outputs, RowResults, Split};
use methods::{LearnError, Metrics, Params};

use super::learner::ExternalLearner;
use super::locked;
use super::wire::OutputsOf;
use crate::data::Rows;
use crate::metrics::{constant, mean_target, measure, row_results};
use crate::models::{Loss, RegressionLoss};

/// The targets of a part, as rows of 32-bit floats.
pub(super) struct PartTargets {
    rows: Rows,
    /// What was subtracted from every column, so that 32-bit floats can tell its targets apart: their mean, where one
    /// of them is no 32-bit float, such as 1,000,000,001. Errors of outputs are the same.
    offset: Vec<f64>,
}

impl PartTargets {
    /// PartTargets of `count` rows, `width` for each.
    fn new(count: usize, width: usize, targets: Vec<f64>) -> Self {
        let exact = |&target: &f64| f64::from(target as f32) == target;
        let mut offset = vec![0.0; width];
        if !targets.iter().all(exact) {
            for row in targets.chunks_exact(width) {
                let sums = offset.iter_mut().zip(row);
                sums.for_each(|(sum, target)| *sum += target / count as f64);
            }
        }
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
    fn near(&self, outputs: &[f64]) -> Vec<f64> {
        // Outputs of classes have another width, and nothing is subtracted.
        let columns = self.offset.iter().cycle();
        outputs
            .iter()
            .zip(columns)
            .map(|(output, mean)| output - mean)
            .collect()
    }
}

impl OutputsOf {
    fn loss(self) -> Loss {
        match self {
            Self::Softmax => Loss::Softmax,
            Self::Logistic => Loss::Logistic,
            Self::Squared => Loss::Regression(RegressionLoss::Squared),
            Self::Absolute => Loss::Regression(RegressionLoss::Absolute),
        }
    }
}

impl ExternalLearner {
    fn loss(&self) -> Result<Loss, LearnError> {
        let outputs = self.session.outputs_of().map(OutputsOf::loss);
        outputs.ok_or_else(|| LearnError::Metric("outputs".into()))
    }

    /// Outputs, and the rows with their targets.
    fn ask(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<(Vec<f64>, Arc<PartTargets>), LearnError> {
        let count = self.part(split)?;
        let (outputs, targets) = self.session.outputs(model, personal, split, count)?;
        let wrong = |what: String| {
            LearnError::Failed(format!(
                "the outputs of the learner of {}: {what}",
                self.session.name()
            ))
        };
        let (width, given) = (outputs.len() / count, targets.len() / count);
        let loss = self.loss()?;
        let classes = match loss {
            Loss::Logistic => 2,
            _ => width,
        };
        let class =
            |&target: &f64| target.fract() == 0.0 && (0.0..classes as f64).contains(&target);
        match loss {
            Loss::Logistic if width != 1 => {
                return Err(wrong(format!("expected one per row, found {width}")));
            }
            Loss::Softmax if width < 2 => {
                return Err(wrong(format!(
                    "expected one per class and row, two at least, found {width}; one output per row is \
                     `logistic`"
                )));
            }
            Loss::Softmax | Loss::Logistic if given != 1 || !targets.iter().all(class) => {
                return Err(wrong(format!(
                    "expected one target per row, the index of a class below {classes}"
                )));
            }
            Loss::Regression(_) if width != given => {
                return Err(wrong(format!(
                    "expected as many as targets, {given} per row, found {width}"
                )));
            }
            _ => {}
        }
        let rows = Arc::new(PartTargets::new(count, given, targets));
        let mut known = locked(&self.targets);
        known.insert(key(split), rows.clone());
        Ok((outputs, rows))
    }

    /// The rows of a part with their targets.
    fn targets(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Arc<PartTargets>, LearnError> {
        let known = locked(&self.targets);
        let found = known.get(key(split)).cloned();
        drop(known);
        match found {
            Some(rows) => Ok(rows),
            None => Ok(self.ask(model, personal, split)?.1),
        }
    }
}

fn key(split: Split) -> &'static str {
    match split {
        Split::Train => "train",
        Split::Validation => "validation",
        Split::Test => "test",
    }
}

impl Outputs for ExternalLearner {
    fn outputs(
        &self,
        model: &Params,
        personal: &Params,
        split: Split,
    ) -> Result<Vec<f64>, LearnError> {
        Ok(self.ask(model, personal, split)?.0)
    }

    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let targets = self.targets(model, personal, split)?;
        Ok(measure(
            self.loss()?,
            &targets.near(outputs),
            &targets.rows,
            1.0,
        ))
    }

    fn row_results(
        &self,
        model: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<RowResults, LearnError> {
        let targets = self.targets(model, personal, split)?;
        let mut results = row_results(self.loss()?, &targets.near(outputs), &targets.rows, 1.0);
        let columns = targets.offset.iter().cycle();
        for (target, mean) in results.targets.iter_mut().zip(columns) {
            *target = (f64::from(*target) + mean) as f32;
        }
        Ok(results)
    }

    fn mean_target(&self, model: &Params, personal: &Params, width: usize) -> Option<Vec<f64>> {
        let targets = self.targets(model, personal, Split::Train).ok()?;
        let mean = mean_target(self.loss().ok()?, &targets.rows, width);
        let columns = targets.offset.iter().cycle();
        Some(
            mean.iter()
                .zip(columns)
                .map(|(near, mean)| near + mean)
                .collect(),
        )
    }

    fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
        self.loss()
            .map_or_else(|_| Vec::new(), |loss| constant(loss, mean_target))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
