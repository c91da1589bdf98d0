//! Differences in draws of test rows, widened so that intervals hold what they promise.
//!
//! Percentiles of a bootstrap are too near where rows tell little, for four reasons. All of them are corrected.
//!
//! * A sample of n varies less than new ones do, by √((n − 1)/n) (Hesterberg 2015).
//! * Its own spread is not known exactly, so Student's distribution takes the place of the normal one. Its degrees
//!   of freedom are those of what the spread rests on (Satterthwaite 1946): for a mean 2n/(κ − 1), with the
//!   kurtosis κ of what every row, or person, adds, and n − 1 at most. Where a class is rare or an error large, few
//!   rows decide, κ is large, and the interval is wide. For metrics that are compared class by class it is the
//!   number of rows of the rarest class less one, for times to an event that of the events less one, for the
//!   calibration error its bins less one.
//! * Where all rows are right, draws of them do not vary at all, although the next row may be wrong. So one row
//!   more that the one model wins, and one that the other wins, are drawn as well (Agresti & Min 2005): for the
//!   share of right rows, and in every class for metrics that are compared class by class.
//! * A calibration error, of classes or at a time, is larger in a draw than in the sample, and there larger than in truth, because its bins
//!   are distances. Draws are moved back to what was measured, and reach as much farther on both sides.

use simulations::random::Random;

use crate::statistic::{BY_CHANCE, NORMAL, Statistic, student};

/// Distance by which one row more moves an area under the ROC curve or a concordance index, as a part of the
/// largest possible one: a positive row is seldom ranked first by one model and last by the other.
const RANKED: f64 = 0.125;
/// Degrees of freedom of a calibration error: its ten bins, less one.
const BINS: f64 = 9.0;

/// By how much draws of the difference of two models are widened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Widening {
    factor: f64,
    /// Distance by which one row more moves the difference, for each kind of row that may come.
    one_more: Vec<f64>,
    /// True if draws are farther from the truth than what was measured.
    biased: bool,
}

impl Widening {
    /// For two models, measured by the same metric on the same rows, of which these units are drawn.
    pub(crate) fn of(ours: &Statistic, theirs: &Statistic, units: &[Vec<usize>]) -> Self {
        let count = units.len().max(2) as f64;
        let (freedom, one_more, biased) = match (ours, theirs) {
            (Statistic::Mean(ours), Statistic::Mean(theirs)) => {
                let mut all = ours.iter().chain(theirs);
                let right = all.all(|value| *value == 0.0 || *value == 1.0);
                let one_more = right.then_some(1.0 / (count + 2.0));
                let differences: Vec<f64> = ours.iter().zip(theirs).map(|(a, b)| a - b).collect();
                (
                    freedom(&differences, units),
                    one_more.into_iter().collect(),
                    false,
                )
            }
            (Statistic::Calibration(_), _) => (BINS.min(count - 1.0), Vec::new(), true),
            (ours, _) => {
                let classes = ours.units_of_classes(units).unwrap_or_default();
                let rarest = classes.values().min().copied().unwrap_or(0).max(2) as f64;
                if matches!(ours, Statistic::AtTime(_)) {
                    return Self::new(rarest, rarest - 1.0, Vec::new(), true);
                }
                let moves = match ours {
                    Statistic::Area(_) | Statistic::Concordance(_) => RANKED,
                    _ => 1.0 / classes.len() as f64,
                };
                let one_more = classes.values().map(|&own| moves / (own as f64 + 2.0));
                return Self::new(rarest, rarest - 1.0, one_more.collect(), false);
            }
        };
        Self::new(count, freedom, one_more, biased)
    }

    fn new(units: f64, freedom: f64, one_more: Vec<f64>, biased: bool) -> Self {
        Self {
            factor: (units / (units - 1.0)).sqrt() * student(freedom) / NORMAL,
            one_more,
            biased,
        }
    }

    /// These draws of a difference that was `measured`, widened. The same rows have the same luck: `rows` names
    /// them.
    pub(crate) fn widen(&self, measured: f64, draws: &[f64], rows: &str) -> Vec<f64> {
        let (centre, factor) = match self.biased {
            true => self.unbiased(measured, draws),
            false => (measured, self.factor),
        };
        let mut luck = vec![0.0; draws.len()];
        for (kind, moves) in self.one_more.iter().enumerate() {
            let mut random = Random::new(0, &format!("one row more of kind {kind} of {rows}"));
            luck.iter_mut()
                .for_each(|luck| *luck += moves * (times(&mut random) - times(&mut random)));
        }
        let each = draws.iter().zip(luck);
        each.map(|(draw, luck)| measured + factor * (draw - centre + luck))
            .collect()
    }

    /// The centre of these draws, and the factor with which they reach as much farther as they are off.
    fn unbiased(&self, measured: f64, draws: &[f64]) -> (f64, f64) {
        let mut finite: Vec<f64> = draws
            .iter()
            .copied()
            .filter(|one| one.is_finite())
            .collect();
        if finite.is_empty() {
            return (measured, self.factor);
        }
        finite.sort_unstable_by(f64::total_cmp);
        let centre = finite.iter().sum::<f64>() / finite.len() as f64;
        let at = |part: f64| finite[((finite.len() - 1) as f64 * part).round() as usize];
        let reach = (centre - at(BY_CHANCE)).max(at(1.0 - BY_CHANCE) - centre);
        let farther = match reach > 0.0 {
            true => (reach + 2.0 * (centre - measured).abs()) / reach,
            false => 1.0,
        };
        (centre, self.factor * farther)
    }
}

/// Degrees of freedom of the mean of these differences, one for each row.
fn freedom(differences: &[f64], units: &[Vec<usize>]) -> f64 {
    let mean = differences.iter().sum::<f64>() / differences.len() as f64;
    let adds = |unit: &Vec<usize>| unit.iter().map(|&row| differences[row] - mean).sum::<f64>();
    let squares = units.iter().map(|unit| adds(unit).powi(2));
    let (mut second, mut fourth) = (0.0, 0.0);
    for square in squares {
        second += square;
        fourth += square * square;
    }
    let count = units.len().max(2) as f64;
    let kurtosis = count * fourth / (second * second);
    if kurtosis > 1.0 {
        (2.0 * count / (kurtosis - 1.0)).min(count - 1.0)
    } else {
        count - 1.0
    }
}

/// Returns how often a row is drawn among many: a Poisson number with mean 1 (Knuth's multiplication).
fn times(random: &mut Random) -> f64 {
    let least = libm::exp(-1.0);
    let (mut times, mut product) = (0.0, random.uniform());
    while product > least {
        times += 1.0;
        product *= random.uniform();
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;

    fn singly(rows: usize) -> Vec<Vec<usize>> {
        (0..rows).map(|row| vec![row]).collect()
    }

    #[test]
    fn the_freedom_of_a_mean_is_that_of_the_rows_that_decide() {
        // Half of the rows on either side: all of them decide.
        let even: Vec<f64> = (0..40).map(|row| f64::from(row % 2)).collect();
        assert_eq!(freedom(&even, &singly(40)), 39.0);
        // Two of four hundred rows decide.
        let mut rare = vec![0.0; 400];
        (rare[7], rare[99]) = (5.0, -5.0);
        let found = freedom(&rare, &singly(400));
        assert!((found - 4.02).abs() < 0.01, "{found}");
        // Ten visits each of the same persons are no more than these.
        let visits: Vec<f64> = (0..400).map(|row| even[row / 10]).collect();
        let persons: Vec<Vec<usize>> = (0..40)
            .map(|person| (10 * person..10 * person + 10).collect())
            .collect();
        assert_eq!(freedom(&visits, &persons), 39.0);
        assert_eq!(freedom(&[0.0; 30], &singly(30)), 29.0);
    }

    #[test]
    fn rows_that_are_all_right_are_not_certain() {
        let right = Statistic::Mean(vec![1.0; 30]);
        let widening = Widening::of(&right, &right, &singly(30));
        assert_eq!(widening.one_more, [1.0 / 32.0]);
        let draws = widening.widen(0.0, &[0.0; 2_000], "rows");
        let square = draws.iter().map(|draw| draw * draw).sum::<f64>() / 2_000.0;
        // Two Poisson numbers of variance 1, widened.
        let expected = 2.0 * (widening.factor / 32.0).powi(2);
        assert!((square / expected - 1.0).abs() < 0.1, "{square} {expected}");
        assert_eq!(draws, widening.widen(0.0, &[0.0; 2_000], "rows"));
        assert_ne!(draws, widening.widen(0.0, &[0.0; 2_000], "others"));
        // Losses are no shares.
        let losses = Statistic::Mean(vec![0.3; 30]);
        assert!(
            Widening::of(&losses, &losses, &singly(30))
                .one_more
                .is_empty()
        );
    }

    #[test]
    fn draws_that_are_off_are_moved_back_and_reach_farther() {
        let widening = Widening {
            factor: 1.0,
            one_more: Vec::new(),
            biased: true,
        };
        let draws: Vec<f64> = (0..=1_000)
            .map(|at| 0.5 + f64::from(at) / 1_000.0)
            .collect();
        let found = widening.widen(0.8, &draws, "rows");
        let mean = found.iter().sum::<f64>() / found.len() as f64;
        assert!((mean - 0.8).abs() < 1e-9, "{mean}");
        // They reached .475 from their centre of 1, and reach .4 farther.
        let reach = 0.5 * (0.475 + 0.4) / 0.475;
        assert!(
            (found[1_000] - (0.8 + reach)).abs() < 1e-9,
            "{}",
            found[1_000]
        );
    }
}
