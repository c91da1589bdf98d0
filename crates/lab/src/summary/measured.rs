//! A model measured on a silo's held-out rows, and whether it is of any use there.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::learner::{LearnError, Outputs, RowResults, Split};
use methods::{Learner, Params};
use task::metrics::MetricName;

use super::metrics::OwnModel;

/// Ratio of an error and that of a constant prediction from which on a model is of no use. Weak models are far
/// below: one that learns nothing is at about 1, one that fits the noise of a few rows at 2 or 3.
const FAR_WORSE: f64 = 10.0;

/// A model's results on held-out rows.
#[derive(Clone, Default)]
pub(crate) struct HeldOutResults {
    /// All metrics by name.
    pub(crate) metrics: BTreeMap<String, f64>,
    /// Outputs of the model per row; 0 where they are not known.
    width: usize,
    /// Row by row, where the learner gives them.
    pub(crate) rows: Option<Arc<RowResults>>,
}

impl HeldOutResults {
    /// Metrics without rows.
    pub(super) fn of_metrics(metrics: BTreeMap<String, f64>) -> Self {
        Self {
            metrics,
            width: 0,
            rows: None,
        }
    }
}

/// Measures a model on the held-out rows.
pub(crate) fn measured(
    learner: &Arc<dyn Learner>,
    (model, personal): &OwnModel,
) -> Result<HeldOutResults, String> {
    let test = Split::Test;
    let Ok(outputs) = learner.outputs() else {
        let metrics = learner.evaluate(model, personal, test);
        return metrics
            .map_err(|error| error.to_string())
            .map(|metrics| HeldOutResults {
                metrics: metrics.values,
                width: 0,
                rows: None,
            });
    };
    let all = || -> Result<HeldOutResults, LearnError> {
        let values = outputs.outputs(model, personal, test)?;
        let mut found = of_outputs(outputs, (model, personal), &values)?;
        if outputs.measures_beyond(&found.metrics) {
            let more = learner.evaluate(model, personal, test)?.values.into_iter();
            // One without a value is missing, and nothing is said against the model.
            for (name, value) in more.filter(|(_, value)| value.is_finite()) {
                found.metrics.entry(name).or_insert(value);
            }
        }
        Ok(found)
    };
    all().map_err(|error| error.to_string())
}

/// Returns what these outputs for all held-out rows are worth.
fn of_outputs(
    outputs: &dyn Outputs,
    (model, personal): (&Params, &Params),
    values: &[f64],
) -> Result<HeldOutResults, LearnError> {
    let rows = outputs.row_results(model, personal, values, Split::Test)?;
    let metrics = outputs.measure(model, personal, values, Split::Test)?;
    Ok(HeldOutResults {
        metrics: metrics.values,
        width: values.len() / rows.len().max(1),
        rows: Some(Arc::new(rows)),
    })
}

/// The training targets of a silo.
pub(crate) struct TrainingTargets {
    learner: Arc<dyn Learner>,
    model: OwnModel,
    rows: usize,
    /// Mean of the targets.
    mean: Vec<f64>,
    /// Number of the targets.
    weight: f64,
}

impl TrainingTargets {
    /// Training targets of a silo with this model, which holds their scale and was measured; `None` where
    /// they have no mean.
    pub(crate) fn of(
        learner: &Arc<dyn Learner>,
        (model, personal): &OwnModel,
        measured: &HeldOutResults,
    ) -> Option<Self> {
        let outputs = learner.outputs().ok()?;
        let width = match measured.width {
            // Without held-out rows the model's outputs are counted on training rows.
            0 => {
                let values = outputs.outputs(model, personal, Split::Train).ok()?;
                values.len() / learner.samples().max(1) as usize
            }
            width => width,
        };
        Some(Self {
            mean: outputs.mean_target(model, personal, width)?,
            weight: learner.samples() as f64,
            rows: measured.rows.as_ref().map_or(0, |rows| rows.len()),
            model: (model.clone(), personal.clone()),
            learner: learner.clone(),
        })
    }

    /// Returns what a prediction of this mean for every row gives on the held-out rows.
    pub(crate) fn measured(&self, mean: &[f64]) -> Option<HeldOutResults> {
        constant_measured(&self.learner, &self.model, self.rows, mean)
    }
}

/// Returns what a prediction of this mean for all of a silo's held-out rows, of which there are `rows`, gives;
/// the model holds their scale.
pub(crate) fn constant_measured(
    learner: &Arc<dyn Learner>,
    (model, personal): &OwnModel,
    rows: usize,
    mean: &[f64],
) -> Option<HeldOutResults> {
    let outputs = learner.outputs().ok()?;
    let values = outputs.constant(mean).repeat(rows);
    of_outputs(outputs, (model, personal), &values).ok()
}

/// The mean target over the training rows of several silos; `None` where it is not known or they do not
/// have the same number of outputs.
pub(crate) fn mean_target<'a>(
    silos: impl Iterator<Item = &'a TrainingTargets>,
) -> Option<Vec<f64>> {
    let mut total: Option<(Vec<f64>, f64)> = None;
    for targets in silos {
        let (sum, weight) = total.get_or_insert_with(|| (vec![0.0; targets.mean.len()], 0.0));
        if sum.len() != targets.mean.len() {
            return None;
        }
        let each = sum.iter_mut().zip(&targets.mean);
        each.for_each(|(sum, mean)| *sum += targets.weight * mean);
        *weight += targets.weight;
    }
    total.map(|(sum, weight)| sum.into_iter().map(|sum| sum / weight).collect())
}

/// Returns what a constant prediction, the mean target of all members' training rows, gives at every silo. The
/// first `members` silos are members.
pub(crate) fn constants(
    silos: &[Option<&TrainingTargets>],
    members: usize,
) -> Vec<Option<Constant>> {
    let mean = mean_target(silos[..members].iter().flatten().copied());
    let constant = |targets: &Option<&TrainingTargets>| {
        let targets = (*targets)?;
        Some(Constant {
            metrics: targets.measured(mean.as_ref()?)?.metrics,
            rows: targets.rows as f64,
        })
    };
    silos.iter().map(constant).collect()
}

/// The metrics of a constant prediction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Constant {
    pub(crate) metrics: BTreeMap<String, f64>,
    pub(crate) rows: f64,
}

impl Constant {
    /// Returns what is compared with at one silo: the larger of its own error and that over all silos, so
    /// that few rows which the constant happens to hit condemn no model.
    pub(crate) fn lenient(&self, over_all: &BTreeMap<String, f64>, key: &str) -> Option<f64> {
        let own = *self.metrics.get(key)?;
        Some(own.max(*over_all.get(key)?))
    }

    /// The metrics over the rows of all silos, those that every constant has.
    pub(crate) fn over_all(all: &[Option<Self>]) -> BTreeMap<String, f64> {
        let all = || all.iter().flatten();
        let over = |key: &String| {
            let mut total = (0.0, 0.0);
            for constant in all() {
                let value = constant.metrics.get(key).copied()?;
                total = (total.0 + constant.rows * value, total.1 + constant.rows);
            }
            Some((key.clone(), total.0 / total.1))
        };
        let keys = all().next().into_iter().flat_map(|one| one.metrics.keys());
        keys.filter_map(over).collect()
    }
}

/// Returns the reason for which a model with these metrics is of no use, as a clause: a metric is not finite,
/// or its errors are those of a training that diverged. `constant` has the metrics of a constant prediction, by
/// name.
///
/// For numbers the mean absolute error is compared. For classes a large loss alone is no reason: a
/// model may be right and much too sure. It must also do no better than the constant.
pub(crate) fn why_unusable(
    metrics: &BTreeMap<String, f64>,
    metric: MetricName,
    constant: impl Fn(&str) -> Option<f64>,
) -> Option<String> {
    let own = |key: &str| metrics.get(key).copied();
    if let Some((name, _)) = metrics.iter().find(|(_, value)| !value.is_finite()) {
        return Some(format!("its {name} is not a finite number"));
    }
    let far = |key: &str| {
        let (own, constant) = (own(key)?, constant(key)?);
        let far = own > FAR_WORSE * constant && constant > 0.0;
        far.then(|| {
            format!(
                "its {key} is {}, that of a constant prediction {}",
                short(own),
                short(constant)
            )
        })
    };
    if own("mae").is_some() {
        return far("mae");
    }
    let (value, without) = (own(metric.key())?, constant(metric.key())?);
    let better = if metric.higher_is_better() {
        value > without
    } else {
        value < without
    };
    far("loss").filter(|_| !better)
}

/// A number with about three digits.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{value:.1e}"),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use methods::learner::{Capabilities, QuadraticLearner, Watch};
    use methods::{Layout, Metrics, Training, Update};

    use super::*;

    fn metrics(values: &[(&str, f64)]) -> BTreeMap<String, f64> {
        let each = values.iter().map(|&(name, value)| (name.to_owned(), value));
        each.collect()
    }

    #[test]
    fn a_weak_model_of_numbers_is_usable_and_a_diverged_one_is_not() {
        let constant = |_: &str| Some(65.0);
        let of = |mae: f64| {
            why_unusable(
                &metrics(&[("loss", 1.0), ("mae", mae)]),
                MetricName::Mae,
                constant,
            )
        };
        assert_eq!([of(40.0), of(70.0), of(400.0)], [None, None, None]);
        let why = "its mae is 1.2e28, that of a constant prediction 65.0";
        assert_eq!(of(1.2e28).as_deref(), Some(why));
        assert!(of(f64::NAN).is_some_and(|why| why.contains("not a finite number")));
        assert!(of(f64::INFINITY).is_some());
    }

    #[test]
    fn a_classifier_must_be_sure_and_wrong() {
        let constant = |key: &str| match key {
            "accuracy" => Some(0.6),
            _ => Some(0.67),
        };
        let of = |accuracy: f64, loss: f64| {
            let own = metrics(&[("accuracy", accuracy), ("loss", loss)]);
            why_unusable(&own, MetricName::Accuracy, constant)
        };
        assert_eq!(of(0.4, 0.9), None);
        assert_eq!(of(0.8, 50.0), None);
        assert!(of(0.5, 50.0).is_some());
    }

    #[test]
    fn a_constant_that_hits_few_rows_by_luck_condemns_no_model() {
        let constant = |mae: f64, rows: f64| Constant {
            metrics: metrics(&[("mae", mae)]),
            rows,
        };
        let (lucky, usual) = (constant(0.01, 2.0), constant(50.0, 98.0));
        let all = [Some(lucky.clone()), Some(usual.clone()), None];
        let all = Constant::over_all(&all);
        let lenient = lucky.lenient(&all, "mae").unwrap_or_default();
        assert!((lenient - 49.0).abs() < 0.01, "{lenient}");
        assert_eq!(usual.lenient(&all, "mae"), Some(50.0));
    }

    #[test]
    fn without_a_constant_only_finite_numbers_are_asked_for() {
        let own = metrics(&[("loss", 1e9)]);
        assert_eq!(why_unusable(&own, MetricName::Loss, |_| None), None);
    }

    /// A silo with outputs whose program measures more than follows from them, and how often it was asked.
    struct WithOwnMetrics {
        inner: QuadraticLearner,
        own: bool,
        asked: AtomicUsize,
    }

    impl Learner for WithOwnMetrics {
        fn inner(&self) -> Option<&dyn Learner> {
            Some(&self.inner)
        }

        fn layout(&self) -> Arc<Layout> {
            self.inner.layout()
        }

        fn initial(&self, seed: u64) -> Params {
            self.inner.initial(seed)
        }

        fn train(
            &self,
            start: &Params,
            personal: &Params,
            training: &Training,
            seed: u64,
            watch: &mut Watch<'_>,
        ) -> Result<Update, LearnError> {
            self.inner.train(start, personal, training, seed, watch)
        }

        fn evaluate(
            &self,
            model: &Params,
            own: &Params,
            split: Split,
        ) -> Result<Metrics, LearnError> {
            self.asked.fetch_add(1, Relaxed);
            let mut metrics = self.inner.evaluate(model, own, split)?;
            // Its loss is another one than that of the outputs.
            for (name, value) in [("loss", 9.0), ("f1", 0.75), ("sensitivity", f64::NAN)] {
                metrics.values.insert(name.into(), value);
            }
            Ok(metrics)
        }

        fn samples(&self) -> u64 {
            self.inner.samples()
        }

        fn capabilities(&self) -> Capabilities<'_> {
            Capabilities {
                outputs: Some(self),
                ..Capabilities::NONE
            }
        }
    }

    impl Outputs for WithOwnMetrics {
        fn outputs(
            &self,
            model: &Params,
            personal: &Params,
            split: Split,
        ) -> Result<Vec<f64>, LearnError> {
            self.inner.outputs(model, personal, split)
        }

        fn measure(
            &self,
            model: &Params,
            personal: &Params,
            outputs: &[f64],
            split: Split,
        ) -> Result<Metrics, LearnError> {
            self.inner.measure(model, personal, outputs, split)
        }

        fn row_results(
            &self,
            model: &Params,
            personal: &Params,
            outputs: &[f64],
            split: Split,
        ) -> Result<RowResults, LearnError> {
            self.inner.row_results(model, personal, outputs, split)
        }

        fn measures_beyond(&self, measured: &BTreeMap<String, f64>) -> bool {
            self.own && !measured.contains_key("f1")
        }

        fn mean_target(&self, model: &Params, own: &Params, width: usize) -> Option<Vec<f64>> {
            self.inner.mean_target(model, own, width)
        }

        fn constant(&self, mean_target: &[f64]) -> Vec<f64> {
            self.inner.constant(mean_target)
        }
    }

    #[test]
    fn metrics_of_a_program_join_those_of_its_outputs() {
        let of = |own: bool| {
            let silo = Arc::new(WithOwnMetrics {
                inner: QuadraticLearner::new(&[1.0, 3.0]),
                own,
                asked: AtomicUsize::new(0),
            });
            let learner: Arc<dyn Learner> = silo.clone();
            let model = (learner.initial(1), Params::empty());
            let found = measured(&learner, &model).unwrap();
            assert!(found.rows.is_some());
            let (model, own) = &model;
            let plain = silo.inner.evaluate(model, own, Split::Test).unwrap();
            (found.metrics, plain.values, silo.asked.load(Relaxed))
        };
        let (found, mut expected, asked) = of(true);
        expected.insert("f1".into(), 0.75);
        assert_eq!((found, asked), (expected, 1));
        // Where there are none nothing is measured twice.
        let (found, expected, asked) = of(false);
        assert_eq!((found, asked), (expected, 0));
    }
}
