//! The comparison of models per silo: its own, one global model, and its coalition's.

use std::fmt;

use lab::summary::{Interval, ModelKind};
use methods::serving::Candidate;

use super::story::{SiloStory, Story};

use super::numbers;

/// A model that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The silo's local model, trained alone.
    Own,
    /// One model for all silos.
    Global,
    /// The model of its coalition, which the silo adopted.
    Coalition,
}

impl Column {
    /// All of them, in the order of the table.
    pub const ALL: [Column; 3] = [Column::Own, Column::Global, Column::Coalition];

    /// The head of the column.
    pub fn title(self) -> &'static str {
        match self {
            Column::Own => "local model",
            Column::Global => "global model",
            Column::Coalition => "coalition's",
        }
    }

    /// The model, as the summary names it.
    pub fn kind(self) -> ModelKind {
        match self {
            Column::Own => ModelKind::Local,
            Column::Global => ModelKind::Global,
            Column::Coalition => ModelKind::Coalition,
        }
    }

    pub(crate) fn of(self, silo: &SiloStory) -> Option<f64> {
        match self {
            Column::Own => silo.local,
            Column::Global => silo.global,
            Column::Coalition => silo.coalition,
        }
    }

    pub(crate) fn second(self, silo: &SiloStory) -> Option<f64> {
        match self {
            Column::Own => silo.second.local,
            Column::Global => silo.second.global,
            Column::Coalition => silo.second.coalition,
        }
    }

    /// Returns whether the silo has such a result that is of use.
    fn is_usable(self, silo: &SiloStory) -> bool {
        self.of(silo).is_some_and(f64::is_finite) && silo.no_use(self.kind()).is_none()
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Column::Own => "local models",
            Column::Global => "one global model",
            Column::Coalition => "the coalitions' models",
        })
    }
}

/// One value of the table.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The measured value; not finite where there is none because a training failed.
    pub value: f64,
    /// The value as it is printed.
    pub text: String,
    /// `true` if the value is better than every other of its row, or the same model, by more than the spread of
    /// the held-out rows.
    pub best: bool,
    /// Reason for which the model is of no use, if it is of none.
    pub no_use: Option<String>,
}

/// A mean over silos, by measured column.
pub type Means = Vec<Option<Cell>>;

/// The table: one row per silo and rows of means.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonTable {
    /// The columns that were measured.
    pub columns: Vec<Column>,
    /// Decimals of every column.
    pub decimals: Vec<usize>,
    /// By silo, in roster order, and by measured column.
    pub rows: Vec<Vec<Option<Cell>>>,
    /// Gain of the coalition's model over the silo's local one, by silo; empty if these are not both measured.
    pub gains: Vec<Option<Interval>>,
    /// Members that have a result of use in every column that has any.
    pub common: usize,
    /// Means over these members, in which every silo counts once.
    pub means: Means,
    /// Means over these members, in which every held-out row counts once.
    pub row_means: Means,
    /// The rows of unseen silos.
    pub outside: Vec<Vec<Option<Cell>>>,
    /// Means over the unseen silos; none if no silo is outside.
    pub outside_means: Option<Means>,
    /// The metric of one model trained on the rows of all members together, by silo, members
    /// first. Empty if it was not trained. It is shown beside the table and not compared, because
    /// a federation may not pool rows.
    pub pooled: Vec<Option<String>>,
    /// The mean of [`pooled`](Self::pooled) over members.
    pub pooled_mean: Option<String>,
    /// The model that each silo serves and its metric, members first; empty if none was chosen.
    pub served: Vec<Option<(Candidate, String)>>,
    /// The mean of [`served`](Self::served) over members.
    pub served_mean: Option<String>,
}

/// The name of a served model, in a word or two.
pub fn choice(candidate: Candidate) -> &'static str {
    match candidate {
        Candidate::Local => "own",
        Candidate::Robust => "own robust",
        Candidate::Coalition => "coalition's",
        Candidate::Global => "mean of all",
        Candidate::FineTuned => "fine-tuned",
        Candidate::OwnIntercept => "own intercept",
        Candidate::Shrunken => "shrunken",
    }
}

impl ComparisonTable {
    /// Compares the models that were measured.
    pub fn of(story: &Story) -> ComparisonTable {
        let (silos, outside) = (&story.silos, &story.outside);
        let all = || silos.iter().chain(outside);
        let measured = |column: &Column| {
            let any = |silo: &SiloStory| {
                column.of(silo).is_some() || silo.no_use(column.kind()).is_some()
            };
            // Members may have no rows to test on.
            all().any(any)
        };
        let columns: Vec<Column> = Column::ALL.into_iter().filter(measured).collect();
        let decimals: Vec<usize> = columns
            .iter()
            .map(|column| {
                let usable = all().filter(|silo| column.is_usable(silo));
                numbers::decimals_of(usable.filter_map(|silo| column.of(silo)))
            })
            .collect();
        let row = |silo: &SiloStory| row(silo, &columns, &decimals);
        let (common, means) = means(story, silos, &columns, &decimals, Count::Silos);
        let (_, row_means) = self::means(story, silos, &columns, &decimals, Count::Rows);
        let coarse = decimals.iter().copied().min().unwrap_or(3);
        let text = |value: f64| numbers::value(value, coarse);
        let of_use = |silo: &SiloStory, kind, value: Option<f64>| {
            value.filter(|value| value.is_finite() && silo.no_use(kind).is_none())
        };
        let pooled = |silo: &SiloStory| of_use(silo, ModelKind::Pooled, silo.pooled);
        let served = |silo: &SiloStory| {
            let (candidate, value) = silo.serves()?;
            Some((candidate, of_use(silo, ModelKind::Served, value)?))
        };
        let some = |cells: Vec<Option<String>>| {
            if cells.iter().any(Option::is_some) {
                cells
            } else {
                Vec::new()
            }
        };
        let both = columns.contains(&Column::Own) && columns.contains(&Column::Coalition);
        let gain = |silo: &SiloStory| silo.gain(ModelKind::Coalition, ModelKind::Local);
        let serves: Vec<_> = all()
            .map(|silo| served(silo).map(|(candidate, value)| (candidate, text(value))))
            .collect();
        ComparisonTable {
            rows: silos.iter().map(row).collect(),
            gains: if both {
                silos.iter().map(gain).collect()
            } else {
                Vec::new()
            },
            common,
            means,
            row_means,
            outside: outside.iter().map(row).collect(),
            outside_means: (!outside.is_empty()).then(|| {
                let (_, means) = self::means(story, outside, &columns, &decimals, Count::Silos);
                means
            }),
            pooled: some(all().map(|silo| pooled(silo).map(text)).collect()),
            pooled_mean: mean(silos.iter().map(|silo| Some((pooled(silo)?, 1.0)))).map(text),
            served_mean: mean(silos.iter().map(|silo| Some((served(silo)?.1, 1.0)))).map(text),
            served: if serves.iter().any(Option::is_some) {
                serves
            } else {
                Vec::new()
            },
            columns,
            decimals,
        }
    }

    /// The cell of the means for a column.
    pub fn mean(&self, column: Column) -> Option<&Cell> {
        cell(&self.columns, &self.means, column)
    }

    /// The cell of the means over rows for a column.
    pub fn row_mean(&self, column: Column) -> Option<&Cell> {
        cell(&self.columns, &self.row_means, column)
    }

    /// The decimals of differences.
    pub fn fine(&self) -> usize {
        self.decimals.iter().copied().max().unwrap_or(3)
    }
}

fn cell<'a>(columns: &[Column], means: &'a [Option<Cell>], column: Column) -> Option<&'a Cell> {
    let at = columns.iter().position(|one| *one == column)?;
    means.get(at)?.as_ref()
}

/// One silo's row.
fn row(silo: &SiloStory, columns: &[Column], decimals: &[usize]) -> Vec<Option<Cell>> {
    let usable: Vec<Column> = columns
        .iter()
        .copied()
        .filter(|column| column.is_usable(silo))
        .collect();
    let gain = |model: Column, over: Column| silo.gain(model.kind(), over.kind());
    let cell = |(&column, &decimals): (&Column, &usize)| {
        let no_use = silo.no_use(column.kind()).map(str::to_owned);
        let value = column.of(silo);
        if value.is_none() && no_use.is_none() {
            return None;
        }
        let value = value.unwrap_or(f64::NAN);
        let text = match (&no_use, column.of(silo)) {
            (Some(_), None) => "failed".to_owned(),
            (Some(_), Some(_)) => "diverged".to_owned(),
            (None, _) => numbers::value(value, decimals),
        };
        Some(Cell {
            value,
            text,
            best: best(column, &usable, gain),
            no_use,
        })
    };
    columns.iter().zip(decimals).map(cell).collect()
}

/// Returns whether a column is better than all others by more than noise; those that are the very same
/// model do not count.
fn best(
    column: Column,
    usable: &[Column],
    gain: impl Fn(Column, Column) -> Option<Interval>,
) -> bool {
    let others = usable.iter().filter(|other| **other != column);
    let over: Vec<Option<Interval>> = others.map(|other| gain(column, *other)).collect();
    let same = |one: &Interval| one.by == 0.0 && one.low == 0.0 && one.high == 0.0;
    usable.contains(&column)
        && over
            .iter()
            .all(|one| one.is_some_and(|one| one.low > 0.0 || same(&one)))
        && over.iter().any(|one| one.is_some_and(|one| one.low > 0.0))
}

/// Unit that counts once in a mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Silos,
    Rows,
}

/// The means over the silos that have a result of use in every column that has any, and
/// how many they are.
fn means(
    story: &Story,
    silos: &[SiloStory],
    columns: &[Column],
    decimals: &[usize],
    count: Count,
) -> (usize, Means) {
    let weight = |silo: &SiloStory| match count {
        Count::Silos => 1.0,
        Count::Rows => silo.held_out() as f64,
    };
    let alive: Vec<Column> = columns
        .iter()
        .copied()
        .filter(|column| silos.iter().any(|silo| column.is_usable(silo)))
        .collect();
    let common: Vec<&SiloStory> = silos
        .iter()
        .filter(|silo| alive.iter().all(|column| column.is_usable(silo)))
        .collect();
    let members = std::ptr::eq(silos, story.silos.as_slice());
    let gain = |model: Column, over: Column| {
        let mean = |a: Column, b: Column| {
            let gain = story.gain(a.kind(), b.kind())?;
            Some(match count {
                Count::Silos => gain.per_silo,
                Count::Rows => gain.per_row,
            })
        };
        let direct = mean(model, over);
        direct
            .or_else(|| mean(over, model).map(Interval::turned))
            .filter(|_| members)
    };
    let cell = |(&column, &decimals): (&Column, &usize)| {
        if !alive.contains(&column) {
            let reason = silos.iter().find_map(|silo| silo.no_use(column.kind()))?;
            return Some(Cell {
                value: f64::NAN,
                text: "diverged".to_owned(),
                best: false,
                no_use: Some(reason.to_owned()),
            });
        }
        let values = common
            .iter()
            .map(|silo| Some((column.of(silo)?, weight(silo))));
        let value = mean(values)?;
        Some(Cell {
            value,
            text: numbers::value(value, decimals),
            best: best(column, &alive, gain),
            no_use: None,
        })
    };
    let means = columns.iter().zip(decimals).map(cell).collect();
    (common.len(), means)
}

/// The weighted mean over those that have a value.
fn mean(values: impl Iterator<Item = Option<(f64, f64)>>) -> Option<f64> {
    let (sum, weights) = values
        .flatten()
        .fold((0.0, 0.0), |(sum, weights), (value, weight)| {
            (sum + weight * value, weights + weight)
        });
    (weights > 0.0).then(|| sum / weights)
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;
    use lab::summary::Gain;

    /// A story with these values of own, global and coalition's model, and intervals of ± `noise`
    /// around the differences.
    pub(crate) fn story(metric_up: bool, noise: f64, rows: &[[Option<f64>; 3]]) -> Story {
        let mut story = fixture::story(rows.len(), 1, 1);
        story.metric.higher_is_better = metric_up;
        let sign = if metric_up { 1.0 } else { -1.0 };
        for (silo, values) in story.silos.iter_mut().zip(rows) {
            [silo.local, silo.global, silo.coalition] = *values;
            (silo.pooled, silo.served) = (None, None);
            let value = |kind: ModelKind| match kind {
                ModelKind::Local => values[0],
                ModelKind::Global => values[1],
                _ => values[2],
            };
            use ModelKind::{Coalition, Global, Local};
            let pairs = [(Coalition, Local), (Coalition, Global), (Global, Local)];
            let gain = |(model, over): (ModelKind, ModelKind)| {
                let by = sign * (value(model)? - value(over)?);
                let (low, high) = (by - noise, by + noise);
                let interval = Interval { by, low, high };
                Some(Gain {
                    model,
                    over,
                    interval,
                })
            };
            silo.gains = pairs.into_iter().filter_map(gain).collect();
        }
        story.gains.clear();
        story
    }

    fn best_of(row: &[Option<Cell>]) -> Vec<bool> {
        row.iter().map(|cell| cell.as_ref().unwrap().best).collect()
    }

    fn text_of(row: &[Option<Cell>]) -> Vec<&str> {
        row.iter()
            .map(|cell| cell.as_ref().unwrap().text.as_str())
            .collect()
    }

    #[test]
    fn lower_is_best_for_errors_and_higher_for_accuracies() {
        let rows = [[Some(3.0), Some(2.0), Some(1.0)]];
        let best = |up| best_of(&ComparisonTable::of(&story(up, 0.5, &rows)).rows[0]);
        assert_eq!(best(false), [false, false, true]);
        assert_eq!(best(true), [true, false, false]);
    }

    #[test]
    fn nothing_is_best_by_a_difference_within_noise() {
        let rows = [
            [Some(3.0), Some(2.0), Some(1.0)],
            [Some(3.0), Some(2.5), Some(1.0)],
        ];
        let table = ComparisonTable::of(&story(false, 1.2, &rows));
        assert_eq!(best_of(&table.rows[0]), [false, false, false]);
        assert_eq!(best_of(&table.rows[1]), [false, false, true]);
        // Without intervals nothing is known.
        let mut unknown = story(false, 0.0, &rows);
        unknown.silos.iter_mut().for_each(|silo| silo.gains.clear());
        assert_eq!(
            best_of(&ComparisonTable::of(&unknown).rows[0]),
            [false, false, false]
        );
    }

    #[test]
    fn the_same_model_under_two_names_is_best_twice() {
        let mut story = story(false, 0.5, &[[Some(3.0), Some(1.0), Some(1.0)]]);
        for gain in &mut story.silos[0].gains {
            if gain.interval.by == 0.0 {
                (gain.interval.low, gain.interval.high) = (0.0, 0.0);
            }
        }
        assert_eq!(
            best_of(&ComparisonTable::of(&story).rows[0]),
            [false, true, true]
        );
    }

    #[test]
    fn one_absurd_value_is_named_and_leaves_the_others_their_digits() {
        let rows = [
            [Some(40.123), Some(41.0), Some(1.2e28)],
            [Some(44.123), Some(45.0), Some(43.5)],
        ];
        let mut story = story(false, 0.1, &rows);
        let reason = "its mae is 1.2e28, that of a constant prediction 65.0".to_owned();
        story.silos[0].unusable = vec![(ModelKind::Coalition, reason.clone())];
        let table = ComparisonTable::of(&story);
        assert_eq!(text_of(&table.rows[0]), ["40.12", "41.00", "diverged"]);
        assert_eq!(text_of(&table.rows[1]), ["44.12", "45.00", "43.50"]);
        assert_eq!(best_of(&table.rows[0]), [true, false, false]);
        assert_eq!(
            table.rows[0][2].as_ref().unwrap().no_use,
            Some(reason.clone())
        );
        // Means are over the same silos in every column.
        assert_eq!(
            (table.common, text_of(&table.means)),
            (1, vec!["44.12", "45.00", "43.50"])
        );
        story.silos[1].unusable = vec![(ModelKind::Coalition, reason)];
        let table = ComparisonTable::of(&story);
        assert_eq!(
            (table.common, text_of(&table.means)),
            (2, vec!["42.12", "43.00", "diverged"])
        );
    }

    #[test]
    fn a_training_that_failed_is_in_the_table() {
        let mut story = story(false, 0.1, &[[None, Some(1.0), Some(1.0)]]);
        story.silos[0].unusable = vec![(ModelKind::Local, "training diverged at step 3".into())];
        let table = ComparisonTable::of(&story);
        assert_eq!(table.columns[0], Column::Own);
        assert_eq!(text_of(&table.rows[0]), ["failed", "1.000", "1.000"]);
    }

    #[test]
    fn every_column_has_digits_of_its_own() {
        let rows = [[Some(0.000_12), Some(4321.5), Some(43.2)]];
        let table = ComparisonTable::of(&story(false, 0.0, &rows));
        assert_eq!(text_of(&table.rows[0]), ["0.000120", "4322", "43.20"]);
    }

    #[test]
    fn means_count_silos_or_held_out_rows() {
        let mut story = story(false, 0.1, &[[Some(1.0); 3], [Some(4.0); 3]]);
        (story.silos[0].test_samples, story.silos[1].test_samples) = (30, 10);
        let table = ComparisonTable::of(&story);
        assert_eq!(table.mean(Column::Own).unwrap().value, 2.5);
        assert_eq!(table.row_mean(Column::Own).unwrap().value, 1.75);
    }

    #[test]
    fn values_that_are_missing_are_skipped() {
        let table = ComparisonTable::of(&story(true, 0.1, &[[Some(0.4), Some(0.5), None]]));
        assert_eq!(table.columns, [Column::Own, Column::Global]);
        assert!(table.gains.is_empty());
    }
}
