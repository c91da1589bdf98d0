//! Columns whose values at one silo are far from those of the other silos, as in another unit.

use methods::Params;
use methods::strategy::SUM_REST;

use crate::data::Moments;
use crate::learners::column_scale;

/// Rows below which a silo, or the others together, have too few to tell.
const ROWS: f64 = 10.0;
/// Deviations of the others' rows from their mean to that of a silo, from which on it is far.
const SHIFT: f64 = 4.0;
/// Ratio of deviations, larger or smaller, from which on a silo is far.
const RATIO: f64 = 8.0;

/// Rows, mean and deviation of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ColumnSpread {
    rows: f64,
    mean: f64,
    deviation: f64,
}

impl ColumnSpread {
    /// Returns whether a silo with this column is far from other silos: its mean from all their rows
    /// together, or its deviation from that within most of them.
    fn is_far_from(self, others: Self, within: &[f64]) -> bool {
        let enough = self.rows >= ROWS && others.rows >= ROWS;
        // A column that does not vary at all elsewhere gives no measure of what is far.
        if !enough || others.deviation.is_nan() || others.deviation <= 1e-14 * others.mean.abs() {
            return false;
        }
        let apart = (self.mean - others.mean).abs() / others.deviation;
        let unlike = |&&other: &&f64| {
            let ratio = self.deviation / other;
            let vary = self.deviation > 0.0 && other > 0.0;
            vary && (ratio >= RATIO || ratio <= 1.0 / RATIO)
        };
        apart >= SHIFT || 2 * within.iter().filter(unlike).count() > within.len()
    }
}

/// A column of one silo that is far from that column of the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FarColumn {
    /// Position among the columns.
    pub column: usize,
    /// Mean at the silo.
    pub mean: f64,
    /// Mean of the others.
    pub others: f64,
}

/// For one column of all silos: which of them are far from the others together.
pub(crate) fn far_silos(column: usize, silos: &[Moments]) -> Vec<(usize, FarColumn)> {
    // Squares around one of the means do not lose the digits of a spread that is far from 0.
    let centre = silos.first().map_or(0.0, |one| one.mean);
    let parts = |one: &Moments| {
        let (rows, apart) = (one.count as f64, one.mean - centre);
        (rows, rows * apart, one.squares + rows * apart * apart)
    };
    let all = silos.iter().map(parts).fold((0.0, 0.0, 0.0), |all, one| {
        (all.0 + one.0, all.1 + one.1, all.2 + one.2)
    });
    let far = |(at, one): (usize, &Moments)| {
        let (rows, sum, squares) = parts(one);
        let rest = all.0 - rows;
        let apart = (all.1 - sum) / rest;
        let square = (all.2 - squares) / rest - apart * apart;
        let mean = centre + apart;
        let others = ColumnSpread {
            rows: rest,
            mean,
            deviation: square.max(0.0).sqrt(),
        };
        let own = ColumnSpread {
            rows,
            mean: one.mean,
            deviation: (one.squares / rows).sqrt(),
        };
        let found = FarColumn {
            column,
            mean: one.mean,
            others: mean,
        };
        let others_of = silos.iter().enumerate().filter(|(other, _)| *other != at);
        let enough = others_of.filter(|(_, one)| one.count as f64 >= ROWS);
        let deviations: Vec<f64> = enough
            .map(|(_, one)| (one.squares / one.count as f64).sqrt())
            .collect();
        let far = own.is_far_from(others, &deviations);
        far.then_some((at, found))
    };
    silos.iter().enumerate().filter_map(far).collect()
}

/// The feature columns of a silo that are far from those of the other members, from what it knows
/// itself: its own summary (as of [`Summaries`](methods::learner::Summaries)) and the common scale
/// in the model. How many rows the others have is not known, so that every one of the `members` is
/// taken to have as many as this silo. Empty where the model carries no scale. Columns of zeros and
/// ones are left out: that a level is frequent at one silo says nothing about its unit.
pub fn far_columns(summary: &Params, model: &Params, members: usize) -> Vec<FarColumn> {
    let tensors = ["count", "sum", "squares"].map(|name| summary.tensor(name));
    let [Some(count), Some(sums), Some(squares)] = tensors else {
        return Vec::new();
    };
    let rests = summary.tensor(SUM_REST);
    let (rows, others) = (f64::from(count[0]), members.saturating_sub(1) as f64);
    let share = 1.0 / members.max(1) as f64;
    let columns = sums.iter().zip(squares).enumerate();
    let columns = columns.filter_map(|(column, (&sum, &square))| {
        let rest = rests.map_or(0.0, |rests| f64::from(rests[column]));
        let scale = column_scale(model, column)?;
        Some((column, (f64::from(sum) + rest, square), scale))
    });
    let far = |(column, (sum, square), (all, deviation)): (usize, (f64, f32), (f64, f64))| {
        let own = ColumnSpread {
            rows,
            mean: sum / rows,
            deviation: (f64::from(square) / rows).sqrt(),
        };
        // The mean and the variance of all are those of this silo and of the others, mixed.
        let rest = (all - share * own.mean) / (1.0 - share);
        let apart = share * (1.0 - share) * (own.mean - rest).powi(2);
        let variance = deviation.powi(2);
        // Where nearly all of the variance lies between this silo and the others, what remains for
        // the others is lost in rounding, but not that it is small.
        let least = if apart > variance / 2.0 {
            1e-6 * variance
        } else {
            0.0
        };
        let within = variance - apart - share * own.deviation.powi(2);
        let others = ColumnSpread {
            rows: rows * others,
            mean: rest,
            deviation: (within / (1.0 - share)).max(least).sqrt(),
        };
        let found = FarColumn {
            column,
            mean: own.mean,
            others: rest,
        };
        // Of zeros and ones the mean gives the spread.
        let share = own.mean.clamp(0.0, 1.0);
        let spread = f64::from(square) / rows;
        let binary = share == own.mean && (spread - share * (1.0 - share)).abs() < 1e-5;
        (!binary && own.is_far_from(others, &[others.deviation])).then_some(found)
    };
    columns.filter_map(far).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use methods::strategy::{DEVIATION, MEAN};
    use methods::{Layout, Role, TensorSpec};

    fn moments(mean: f64, deviation: f64) -> Moments {
        let half = |row: usize| if row.is_multiple_of(2) { 1.0 } else { -1.0 };
        Moments::of((0..40).map(move |row| mean + deviation * half(row)))
    }

    fn far(silos: &[Moments]) -> Vec<usize> {
        far_silos(0, silos).iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn another_unit_is_far_and_an_older_population_is_not() {
        // Heights in m, and one in cm.
        let metres = moments(1.7, 0.1);
        assert_eq!(far(&[metres, metres, moments(170.0, 10.0), metres]), [2]);
        // Glucose in mg/dl, and one in mmol/l.
        let glucose = moments(120.0, 40.0);
        assert_eq!(far(&[moments(6.7, 2.2), glucose, glucose]), [0]);
        // Ages of three generations.
        let ages = [moments(25.0, 5.0), moments(50.0, 5.0), moments(75.0, 5.0)];
        assert_eq!(far(&ages), [0; 0]);
        // Constant everywhere else, or here.
        assert_eq!(
            far(&[moments(1.0, 0.0), moments(1.0, 0.0), moments(2.0, 0.5)]),
            [0; 0]
        );
        assert_eq!(
            far(&[moments(1.0, 0.0), moments(1.2, 0.5), moments(0.8, 0.5)]),
            [0; 0]
        );
    }

    #[test]
    fn a_member_finds_its_far_column_from_the_common_scale() {
        let params = |tensors: &[(&str, &[f32])]| {
            let spec = |(name, values): &(&str, &[f32])| {
                TensorSpec::new(*name, [values.len()], Role::Buffer)
            };
            let layout = Layout::new(tensors.iter().map(spec).collect()).unwrap();
            Params::build(&layout, |into| {
                for (name, values) in tensors {
                    let at = layout.position(name).unwrap();
                    into[layout.range(at)].copy_from_slice(values);
                }
            })
        };
        // Column 0 in cm here and in m at seven others; column 1 alike everywhere.
        let own = moments(170.0, 10.0);
        let summary = params(&[
            ("count", &[40.0]),
            ("sum", &[own.sum as f32, 0.0]),
            ("squares", &[own.squares as f32, 40.0]),
        ]);
        let mean = (170.0 + 7.0 * 1.7) / 8.0;
        let square = (10.0 * 10.0 + 7.0 * 0.01) / 8.0 + 7.0 / 64.0 * (170.0f32 - 1.7).powi(2);
        let model = params(&[(MEAN, &[mean, 0.0]), (DEVIATION, &[square.sqrt(), 1.0])]);
        let found = far_columns(&summary, &model, 8);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].column, 0);
        assert!((found[0].others - 1.7).abs() < 0.1, "{found:?}");
        assert!(far_columns(&summary, &summary, 8).is_empty());
        // A level that half of the rows have here and hardly any elsewhere.
        let level = params(&[("count", &[40.0]), ("sum", &[20.0]), ("squares", &[10.0])]);
        let model = params(&[(MEAN, &[0.07]), (DEVIATION, &[0.25])]);
        assert!(far_columns(&level, &model, 8).is_empty());
    }
}
