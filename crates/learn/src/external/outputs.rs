//! Outputs of a program's models row by row, measured by Rota.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::learner::{Outputs, RowResults, Split};
use methods::{LearnError, Metrics, Params};

use super::learner::ExternalLearner;
use super::locked;
use super::targets::PartTargets;
use super::wire::OutputsOf;
use crate::metrics::{constant, mean_target, measure, row_results};
use crate::models::{Loss, RegressionLoss};
use task::survival::NUMBERS;

impl OutputsOf {
    fn loss(self) -> Loss {
        match self {
            Self::Softmax => Loss::Softmax,
            Self::Logistic => Loss::Logistic,
            Self::Squared => Loss::Regression(RegressionLoss::Squared),
            Self::Absolute => Loss::Regression(RegressionLoss::Absolute),
            Self::Cox => Loss::Cox,
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
        let (outputs, mut targets) = self.session.outputs(model, personal, split, count)?;
        let wrong = |what: String| {
            LearnError::Failed(format!(
                "the outputs of the learner of {}: {what}",
                self.session.name()
            ))
        };
        let width = outputs.len() / count;
        let loss = self.loss()?;
        if loss == Loss::Cox {
            targets = times(targets, count).map_err(&wrong)?;
        }
        let given = targets.len() / count;
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
            Loss::Cox if width != 1 => {
                return Err(wrong(format!(
                    "expected one risk score per row, found {width}"
                )));
            }
            Loss::Regression(_) if width != given => {
                return Err(wrong(format!(
                    "expected as many as targets, {given} per row, found {width}"
                )));
            }
            _ => {}
        }
        let rows = Arc::new(match loss {
            // A time is no number near which others could be told apart.
            Loss::Cox => PartTargets::plain(count, given, targets),
            _ => PartTargets::new(count, given, targets),
        });
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

/// The targets of times to an event, with an entry of 0 where the program gives none.
///
/// # Errors
/// What is expected instead.
fn times(targets: Vec<f64>, count: usize) -> Result<Vec<f64>, String> {
    let given = targets.len() / count;
    if !(2..=NUMBERS).contains(&given) {
        return Err(format!(
            "expected two targets per row, the event and its time, or three with the entry, found {given}"
        ));
    }
    let mut all = Vec::with_capacity(NUMBERS * count);
    for row in targets.chunks_exact(given) {
        let (event, time) = (row[0], row[1]);
        let entry = row.get(2).copied().unwrap_or(0.0);
        if event != 0.0 && event != 1.0 {
            return Err(format!(
                "an event is 1, or 0 where the row is censored, found {event}: the targets are event, time and entry"
            ));
        }
        let (time, entry) = (time as f32, entry as f32);
        if time.is_nan() || time <= 0.0 || entry.is_nan() || entry >= time {
            return Err(format!(
                "a time to an event is above 0 and behind its entry, found the time {time} and the entry {entry}: the \
                 targets are event, time and entry"
            ));
        }
        all.extend([event, time.into(), entry.into()]);
    }
    Ok(all)
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

    /// Those that the program gave before, and the agreed one, which it may lack where it has no value.
    fn measures_beyond(&self, measured: &BTreeMap<String, f64>) -> bool {
        let has = |name: &str| measured.contains_key(name);
        let given = locked(&self.given);
        let others = given
            .as_ref()
            .is_none_or(|names| !names.iter().all(|name| has(name)));
        others || !has(self.agreed_metric())
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
    use super::times;

    #[test]
    fn targets_of_times_get_an_entry_and_odd_ones_are_said() {
        let found = times(vec![1.0, 5.0, 0.0, 2.5], 2);
        assert_eq!(found, Ok(vec![1.0, 5.0, 0.0, 0.0, 2.5, 0.0]));
        let entry = vec![1.0, 5.0, 1.0];
        assert_eq!(times(entry.clone(), 1), Ok(entry));
        for (targets, count, said) in [
            (vec![1.0, 2.0], 2, "two targets per row"),
            (vec![1.0; 4], 1, "two targets per row"),
            (vec![5.0, 1.0], 1, "found 5"),
            (vec![1.0, 0.0], 1, "above 0"),
            (vec![1.0, f64::NAN], 1, "above 0"),
            (vec![0.0, 3.0, 3.0], 1, "behind its entry"),
        ] {
            let why = times(targets.clone(), count).err().unwrap_or_default();
            assert!(why.contains(said), "{targets:?}: {why}");
        }
    }
}
