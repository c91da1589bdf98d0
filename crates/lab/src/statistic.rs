//! A metric over rows as a function of how often each row counts, and intervals from draws of rows.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use methods::learner::RowResults;
use serde::Serialize;
use task::survival::{CalibrationAtTime, Concordance, NUMBERS, ObservedTime, observed};
use task::{metrics::BalancedAccuracy, metrics::CalibrationError, metrics::RocArea};

/// The part of the draws that lies below a 95 % interval, and as large a part above it. Where two models
/// are equally good, so large a share of silos seems worse with one of them, and so large a share better.
pub const BY_CHANCE: f64 = 0.025;

/// Fewest rows, or groups of rows, for an interval of one silo.
pub const TELLING: usize = 10;

/// Fewest seeds whose spread is in an interval. Below, intervals are those of test rows alone.
pub const TELLING_SEEDS: usize = 3;

/// Fewest seeds for a decision.
pub const DECIDING_SEEDS: usize = 5;

/// The normal deviate of 95 % intervals.
pub(crate) const NORMAL: f64 = 1.959_964;

/// Difference of two models on held-out rows, in units of the metric: positive means that the first is better,
/// for metrics that are to be high and for those that are to be low.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// As measured.
    pub by: f64,
    /// Lower end of the 95 % interval, by resampling the held-out rows in pairs, and from three seeds on by
    /// their spread.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
}

impl Interval {
    /// Returns whether the interval leaves out zero, so that the difference is more than noise.
    pub fn is_clear(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }

    /// The same difference the other way round: how much worse in place of better.
    pub fn turned(self) -> Self {
        let (by, low, high) = (-self.by, -self.high, -self.low);
        Self { by, low, high }
    }

    /// The two-sided p-value of no difference that belongs to this interval: .05 where an end of it is 0.
    pub fn p(&self) -> f64 {
        let towards_zero = if self.by > 0.0 {
            self.by - self.low
        } else {
            self.high - self.by
        };
        if towards_zero > 0.0 {
            libm::erfc(NORMAL * self.by.abs() / towards_zero / std::f64::consts::SQRT_2)
        } else {
            f64::from(u8::from(self.by == 0.0))
        }
    }

    /// This interval of rows, wider by the spread of what was measured in every seed: Student's interval of the
    /// mean, added as an independent part. As it is with fewer than [`TELLING_SEEDS`].
    pub(crate) fn over_seeds(self, each: &[f64]) -> Self {
        if each.len() < TELLING_SEEDS {
            return self;
        }
        let (_, seeds) = students_interval(each);
        Self {
            by: self.by,
            low: self.by - f64::hypot(self.by - self.low, seeds),
            high: self.by + f64::hypot(self.high - self.by, seeds),
        }
    }

    /// The interval between the 2.5th and the 97.5th percentile of the finite draws; `None` where fewer
    /// than half of them are finite, or the measured difference is not.
    pub(crate) fn of(by: f64, draws: impl Iterator<Item = f64>) -> Option<Self> {
        let all: Vec<f64> = draws.collect();
        let finite = all.iter().copied().filter(|draw| draw.is_finite());
        let mut finite: Vec<f64> = finite.collect();
        if !by.is_finite() || finite.is_empty() || 2 * finite.len() < all.len() {
            return None;
        }
        finite.sort_unstable_by(f64::total_cmp);
        let at = |part: f64| finite[((finite.len() - 1) as f64 * part).round() as usize];
        Some(Self {
            by,
            low: at(BY_CHANCE),
            high: at(1.0 - BY_CHANCE),
        })
    }
}

/// The differences, of these p-values, that are significant at 5 % together (Holm 1979): where there is no
/// difference at all, the chance that any of them seems to be one is 5 % at most.
pub fn holm(p: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut significant = vec![false; p.len()];
    for (before, at) in order.into_iter().enumerate() {
        if p[at] * (p.len() - before) as f64 > 2.0 * BY_CHANCE {
            break;
        }
        significant[at] = true;
    }
    significant
}

/// The mean of at least two values, and by how much Student's 95 % interval goes beyond it on either side.
pub(crate) fn students_interval(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    (mean, student(count - 1.0) * error)
}

/// The 97.5th percentile of Student's distribution: exact for one and two degrees of freedom, above by the
/// expansion of Cornish & Fisher (1938), to 1 %.
pub(crate) fn student(freedom: f64) -> f64 {
    if freedom == 1.0 {
        return 12.706_205;
    }
    if freedom == 2.0 {
        return 4.302_653;
    }
    let z = NORMAL;
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * freedom)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * freedom.powi(2))
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * freedom.powi(3))
}

/// Outputs of a model for every row, as far as metrics need them.
pub(crate) trait RowOutputs {
    /// Values of every row, for metrics that are their mean.
    fn scores(&self, metric: &str) -> Option<Vec<f64>>;

    /// The class of every row.
    fn classes(&self) -> Option<Vec<u16>>;

    /// Returns where there are two classes: the probability of the second one, for every row.
    fn second_class(&self) -> Option<Vec<f64>>;

    /// The probability of the class that every row is given.
    fn confidences(&self) -> Option<Vec<f64>>;

    /// Returns where there are times to an event: every row, and its risk score.
    fn risks(&self) -> Option<(Vec<ObservedTime>, Vec<f64>)>;

    /// Returns where these have probabilities of no event: until when, and that of every row.
    fn surviving(&self) -> Option<(f32, Vec<f64>)>;
}

impl RowOutputs for RowResults {
    fn scores(&self, metric: &str) -> Option<Vec<f64>> {
        self.scores.get(metric).cloned()
    }

    fn classes(&self) -> Option<Vec<u16>> {
        let classes = self.targets.iter().map(|&class| class as u16);
        (RowResults::classes(self) > 0).then(|| classes.collect())
    }

    fn second_class(&self) -> Option<Vec<f64>> {
        let both = self.probabilities.chunks_exact(2);
        (RowResults::classes(self) == 2).then(|| both.map(|both| both[1]).collect())
    }

    fn confidences(&self) -> Option<Vec<f64>> {
        let classes = RowResults::classes(self);
        let largest = |row: &[f64]| row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        (classes > 0).then(|| {
            let rows = self.probabilities.chunks_exact(classes);
            rows.map(largest).collect()
        })
    }

    fn risks(&self) -> Option<(Vec<ObservedTime>, Vec<f64>)> {
        let all = self.targets.len() == NUMBERS * self.risks.len() && !self.risks.is_empty();
        all.then(|| (observed(&self.targets), self.risks.clone()))
    }

    fn surviving(&self) -> Option<(f32, Vec<f64>)> {
        let own = self.surviving.as_ref()?;
        Some((own.until, own.probabilities.clone()))
    }
}

/// A metric over rows of one or several silos.
pub(crate) enum Statistic {
    /// The mean of these values.
    Mean(Vec<f64>),
    /// The area under the ROC curve, and the number of positive rows.
    Area(RocArea),
    /// The mean over classes of the mean over the rows of a class.
    Balanced(BalancedAccuracy),
    /// The expected calibration error.
    Calibration(CalibrationError),
    /// The concordance index, of pairs within silos.
    Concordance(Concordance),
    /// Calibration at a time.
    AtTime(CalibrationAtTime),
}

impl Statistic {
    /// A metric over the rows of all parts, in their order; `None` where a part does not give it, where
    /// a value is not finite, and without rows.
    pub(crate) fn of<R: RowOutputs>(metric: &str, parts: &[&R]) -> Option<Self> {
        let all = |of: &dyn Fn(&R) -> Option<Vec<f64>>| -> Option<Vec<f64>> {
            let each: Vec<Vec<f64>> = parts.iter().map(|part| of(part)).collect::<Option<_>>()?;
            let all = each.concat();
            let finite = !all.is_empty() && all.iter().all(|value| value.is_finite());
            finite.then_some(all)
        };
        let classes = || -> Option<Vec<u16>> {
            let each: Option<Vec<_>> = parts.iter().map(|part| part.classes()).collect();
            Some(each?.concat())
        };
        Some(match metric {
            "roc-auc" => {
                let (probabilities, classes) = (all(&R::second_class)?, classes()?);
                let positive: Vec<bool> = classes.iter().map(|&class| class == 1).collect();
                Self::Area(RocArea::new(&probabilities, &positive))
            }
            "balanced-accuracy" => {
                let right = all(&|part: &R| part.scores("accuracy"))?;
                let classes = classes()?.into_iter().map(usize::from);
                let rows = classes.zip(right).collect();
                Self::Balanced(BalancedAccuracy { rows })
            }
            "calibration-error" => {
                let right = all(&|part: &R| part.scores("accuracy"))?;
                let confidences = all(&R::confidences)?.into_iter();
                let rows = confidences.zip(right).collect();
                Self::Calibration(CalibrationError { rows })
            }
            "concordance" => {
                let mut index = Concordance::default();
                for part in parts {
                    let (rows, scores) = part.risks()?;
                    scores.iter().all(|score| score.is_finite()).then_some(())?;
                    index.push(&scores, rows);
                }
                Self::Concordance((index.rows() > 0).then_some(index)?)
            }
            "calibration-at-time" => {
                let mut calibration = CalibrationAtTime::default();
                for part in parts {
                    let ((rows, _), (until, surviving)) = (part.risks()?, part.surviving()?);
                    calibration.push(surviving, rows, until);
                }
                Self::AtTime((calibration.rows() > 0).then_some(calibration)?)
            }
            metric => Self::Mean(all(&|part: &R| part.scores(metric))?),
        })
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        match self {
            Self::Mean(values) => values.len(),
            Self::Area(area) => area.rows(),
            Self::Balanced(accuracy) => accuracy.rows.len(),
            Self::Calibration(error) => error.rows.len(),
            Self::Concordance(index) => index.rows(),
            Self::AtTime(calibration) => calibration.rows(),
        }
    }

    /// Returns whether an interval of a metric that is compared class by class says anything: of the rarer of two
    /// classes, of every class that occurs, and of events in time there are [`TELLING`] of these units, rows or groups of
    /// rows.
    /// With fewer, an area under the curve of coin tosses seems to differ from that of others far more often
    /// than at 5 %.
    pub(crate) fn has_enough_events(&self, units: &[Vec<usize>]) -> bool {
        let classes = self.units_of_classes(units);
        classes.is_none_or(|classes| classes.values().all(|&count| count >= TELLING))
    }

    /// Units, rows or groups of rows, that hold a row of each class, or an event in time, which is class 1; `None` for
    /// metrics that are not compared class by class.
    pub(crate) fn units_of_classes(&self, units: &[Vec<usize>]) -> Option<BTreeMap<usize, usize>> {
        let (classes, mut count): (Vec<usize>, _) = match self {
            Self::Mean(_) | Self::Calibration(_) => return None,
            Self::Area(area) => (
                area.positive().into_iter().map(usize::from).collect(),
                BTreeMap::from([(0, 0), (1, 0)]),
            ),
            Self::Balanced(accuracy) => (
                accuracy.rows.iter().map(|(class, _)| *class).collect(),
                BTreeMap::new(),
            ),
            Self::Concordance(index) => (events(index.events()), BTreeMap::from([(1, 0)])),
            Self::AtTime(calibration) => (events(calibration.events()), BTreeMap::from([(1, 0)])),
        };
        // Rows that are censored are of no class.
        let in_time = matches!(self, Self::Concordance(_) | Self::AtTime(_));
        for unit in units {
            let own = unit.iter().map(|&row| classes[row]);
            let own: BTreeSet<usize> = own.filter(|class| !in_time || *class == 1).collect();
            own.into_iter()
                .for_each(|class| *count.entry(class).or_default() += 1);
        }
        Some(count)
    }

    /// The value where row i counts `times[i]` times. Not a number where it is not defined, as for an
    /// area without positive rows.
    pub(crate) fn value(&self, times: &[u32]) -> f64 {
        match self {
            Self::Mean(values) => {
                let (mut sum, mut count) = (0.0, 0.0);
                for (value, &times) in values.iter().zip(times) {
                    sum += value * f64::from(times);
                    count += f64::from(times);
                }
                sum / count
            }
            Self::Area(area) => area.value(times),
            Self::Balanced(accuracy) => accuracy.value(times),
            Self::Calibration(error) => error.value(times),
            Self::Concordance(index) => index.value(times),
            Self::AtTime(calibration) => calibration.value(times),
        }
    }

    /// The value on the rows as they are.
    pub(crate) fn measured(&self) -> f64 {
        self.value(&vec![1; self.rows()])
    }
}

/// Events as classes.
fn events(of: Vec<bool>) -> Vec<usize> {
    of.into_iter().map(usize::from).collect()
}

/// Several statistics of the same rows, drawn together.
pub(crate) struct Statistics {
    count: usize,
    /// Statistics that are no means, each with its position among all.
    others: Vec<(usize, Statistic)>,
    /// Of each mean its position among all statistics, and its column. Silos that hold the same model and
    /// the same rows share a column.
    means: Vec<(usize, usize)>,
    /// Columns of different values.
    columns: usize,
    /// Their values, row by row: so their sums are added side by side, each in the order that it has alone.
    values: Vec<f64>,
}

impl Statistics {
    /// All have the same number of rows.
    pub(crate) fn new(all: Vec<Statistic>) -> Self {
        let rows = all.first().map_or(0, Statistic::rows);
        debug_assert!(all.iter().all(|one| one.rows() == rows));
        let count = all.len();
        let (mut means, mut columns, mut others) = (Vec::new(), Vec::new(), Vec::new());
        let mut known = HashMap::<Vec<u64>, usize>::new();
        for (nth, one) in all.into_iter().enumerate() {
            match one {
                Statistic::Mean(values) => {
                    let bits = values.iter().map(|value| value.to_bits()).collect();
                    let column = *known.entry(bits).or_insert(columns.len());
                    means.push((nth, column));
                    if column == columns.len() {
                        columns.push(values);
                    }
                }
                other => others.push((nth, other)),
            }
        }
        let row = |row: usize| columns.iter().map(move |values| values[row]);
        Self {
            count,
            others,
            means,
            columns: columns.len(),
            values: (0..rows).flat_map(row).collect(),
        }
    }

    /// Returns whether all are the same mean.
    pub(crate) fn are_one(&self) -> bool {
        self.others.is_empty() && self.columns <= 1
    }

    /// The [value](Statistic::value) of each.
    pub(crate) fn values(&self, times: &[u32]) -> Vec<f64> {
        let mut all = vec![0.0; self.count];
        for (nth, one) in &self.others {
            all[*nth] = one.value(times);
        }
        let (mut sums, mut count) = (vec![0.0; self.columns], 0.0);
        for (row, &times) in self.values.chunks_exact(self.columns.max(1)).zip(times) {
            let times = f64::from(times);
            let each = sums.iter_mut().zip(row);
            each.for_each(|(sum, value)| *sum += value * times);
            count += times;
        }
        for &(nth, column) in &self.means {
            all[nth] = sums[column] / count;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use task::metrics::MetricName::{
        Accuracy, BalancedAccuracy, Brier, CalibrationError, LogLoss, Mae, RocAuc,
    };

    /// Rows with these probabilities of every class, and these classes.
    fn rows(probabilities: &[&[f64]], classes: &[u16]) -> RowResults {
        let most = |row: &[f64]| {
            (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
        };
        let each = || probabilities.iter().zip(classes);
        let score = |of: &dyn Fn(&[f64], usize) -> f64| {
            each()
                .map(|(row, &class)| of(row, usize::from(class)))
                .collect()
        };
        let scores: [(&str, Vec<f64>); 3] = [
            (
                "accuracy",
                score(&|row, class| f64::from(u8::from(most(row) == class))),
            ),
            ("log-loss", score(&|row, class| -row[class].ln())),
            ("brier", score(&|row, class| (1.0 - row[class]).powi(2))),
        ];
        RowResults {
            scores: scores
                .map(|(name, values)| (name.to_owned(), values))
                .into(),
            targets: classes.iter().map(|&class| f32::from(class)).collect(),
            probabilities: probabilities.concat(),
            ..RowResults::default()
        }
    }

    fn two(second: &[f64], classes: &[u16]) -> RowResults {
        let both: Vec<[f64; 2]> = second.iter().map(|&p| [1.0 - p, p]).collect();
        rows(
            &both.iter().map(|row| &row[..]).collect::<Vec<_>>(),
            classes,
        )
    }

    #[test]
    fn metrics_are_those_of_the_task() {
        let well = two(&[0.1, 0.44, 0.97], &[0, 0, 0]);
        let ill = two(&[0.35, 0.83, 0.61, 0.61], &[1, 1, 0, 1]);
        let three = rows(
            &[
                &[0.2, 0.5, 0.3],
                &[0.9, 0.05, 0.05],
                &[0.15, 0.1, 0.75],
                &[0.25, 0.36, 0.39],
            ],
            &[1, 1, 2, 0],
        );
        let metrics = [
            Accuracy,
            BalancedAccuracy,
            Brier,
            CalibrationError,
            LogLoss,
            RocAuc,
        ];
        for parts in [&[&well, &ill][..], &[&ill], &[&three]] {
            for metric in metrics {
                let here = Statistic::of(metric.key(), parts).map(|one| one.measured());
                match (here, metric.over(parts)) {
                    (Some(here), Some(wanted)) => {
                        assert!(
                            (here - wanted).abs() < 1e-12,
                            "{metric:?}: {here}, {wanted}"
                        );
                    }
                    (here, wanted) => assert_eq!((here, metric), (wanted, RocAuc)),
                }
            }
        }
        assert!(Statistic::of(Mae.key(), &[&well]).is_none());
        // Of one class alone there is no area.
        assert!(
            Statistic::of("roc-auc", &[&well])
                .unwrap()
                .measured()
                .is_nan()
        );
    }

    #[test]
    fn calibration_is_that_of_the_class_given() {
        // .2 for class 1 is .8 for class 0, which is right: all four rows are in one bin.
        let rows = two(&[0.2, 0.8, 0.2, 0.8], &[0, 1, 0, 0]);
        let error = Statistic::of("calibration-error", &[&rows])
            .unwrap()
            .measured();
        assert!((error - (0.8 - 0.75)).abs() < 1e-12, "{error}");
    }

    #[test]
    fn rows_that_are_drawn_twice_count_twice() {
        let rows = two(&[0.9, 0.9, 0.2], &[1, 0, 0]);
        let value =
            |metric: &str, times: &[u32]| Statistic::of(metric, &[&rows]).unwrap().value(times);
        assert_eq!(value("accuracy", &[2, 1, 0]), 2.0 / 3.0);
        assert_eq!(value("balanced-accuracy", &[2, 3, 1]), (1.0 + 0.25) / 2.0);
        assert_eq!(value("roc-auc", &[1, 1, 0]), 0.5);
        assert_eq!(value("roc-auc", &[1, 0, 3]), 1.0);
    }

    #[test]
    fn statistics_side_by_side_have_the_bits_that_each_has_alone() {
        let rows = two(&[0.9, 0.7, 0.2, 0.45], &[1, 0, 0, 1]);
        let metrics = [
            "log-loss",
            "roc-auc",
            "brier",
            "accuracy",
            "log-loss",
            "calibration-error",
        ];
        let all = || metrics.map(|metric| Statistic::of(metric, &[&rows]).unwrap());
        let together = Statistics::new(all().into());
        assert_eq!(together.columns, 3, "two are the same");
        assert!(!together.are_one());
        for times in [[1, 1, 1, 1], [3, 0, 1, 0], [0, 2, 0, 2]] {
            let alone = all().map(|one| one.value(&times).to_bits());
            let values = together.values(&times);
            assert_eq!(
                values.iter().map(|one| one.to_bits()).collect::<Vec<_>>(),
                alone
            );
        }
        assert!(Statistics::new(Vec::new()).values(&[1, 2]).is_empty());
    }

    #[test]
    fn holm_is_stricter_with_every_comparison() {
        assert_eq!(holm(&[0.04]), [true]);
        assert_eq!(holm(&[0.04, 0.03]), [false, false]);
        assert_eq!(holm(&[0.06, 0.001, 0.02]), [false, true, true]);
        assert_eq!(holm(&[]), [false; 0]);
        // An interval that ends at 0 has the p-value that it stands for.
        let interval = |low: f64, by: f64, high: f64| Interval { by, low, high };
        assert!((interval(0.0, 1.0, 5.0).p() - 0.05).abs() < 1e-6);
        assert!((interval(-5.0, -1.0, 0.0).p() - 0.05).abs() < 1e-6);
        assert!(interval(-1.0, 1.0, 3.0).p() > 0.3);
        assert!(interval(2.0, 3.0, 4.0).p() < 1e-6);
        assert_eq!(interval(0.0, 0.0, 0.0).p(), 1.0);
    }

    #[test]
    fn a_rare_class_proves_nothing_about_an_area() {
        let rows = |positives: usize, rows: usize| {
            let classes: Vec<u16> = (0..rows).map(|at| u16::from(at < positives)).collect();
            two(&vec![0.5; rows], &classes)
        };
        let enough = |metric: &str, of: &RowResults| {
            let statistic = Statistic::of(metric, &[of]).unwrap();
            statistic.has_enough_events(&of.together())
        };
        for metric in ["roc-auc", "balanced-accuracy"] {
            assert!(!enough(metric, &rows(9, 300)) && !enough(metric, &rows(291, 300)));
            assert!(enough(metric, &rows(10, 300)) && enough(metric, &rows(290, 300)));
            // Thirty rows of three persons are three persons.
            let visits = |persons: usize| {
                let mut rows = rows(30, 300);
                rows.groups = (0..300).map(|at| at * persons as u32 / 30).collect();
                rows
            };
            assert!(!enough(metric, &visits(3)) && enough(metric, &visits(10)));
        }
        assert!(enough("brier", &rows(1, 300)));
    }

    #[test]
    fn what_is_not_finite_gives_no_metric_and_no_interval() {
        let mut rows = two(&[0.9, 0.2], &[1, 0]);
        rows.scores.insert("mae".into(), vec![f64::NAN, 1.0]);
        assert!(Statistic::of("mae", &[&rows]).is_none());
        let interval = |draws: &[f64]| Interval::of(1.0, draws.iter().copied());
        assert_eq!(interval(&[f64::NAN, f64::NAN, 1.0]), None);
        let found = interval(&[3.0, f64::NAN, 1.0]).unwrap();
        assert_eq!((found.low, found.high), (1.0, 3.0));
        assert!(found.is_clear());
    }
}
