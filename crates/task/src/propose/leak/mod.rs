//! Columns that give the target away: one alone predicts it nearly without error, perhaps because it is
//! known only after the outcome.

use crate::data::{DataSet, Table, Target};
use crate::metrics::roc_auc;
use crate::random::{shuffle, stream};
use crate::schema::{FeatureValues, Schema};

/// Area under the ROC curve from which on a column gives a class away.
const AREA: f64 = 0.99;
/// Rank correlation from which on a number gives a number away.
const CORRELATION: f64 = 0.995;
/// Explained part of the variance from which on levels give a number away.
const EXPLAINED: f64 = 0.99;
/// Fewest rows to tell.
const ROWS: usize = 20;
/// Most rows that are looked at, evenly from all.
const MOST_ROWS: usize = 20_000;
/// Most columns that are looked at.
const MOST_COLUMNS: usize = 2_000;
/// Most classes and numbers to predict that are looked at.
const MOST_TARGETS: usize = 20;
/// Most distinct values of a number that may be a code.
const CODES: usize = 30;
/// Logarithm of the odds against an order by chance, beside the number of columns.
const ODDS: f64 = 5.0;

/// A column that gives the target away.
#[derive(Debug, Clone, PartialEq)]
pub struct Leak {
    /// The column, as the schema names it.
    pub column: String,
    /// Area under the ROC curve, size of the rank correlation, or explained part of the variance.
    pub score: f64,
    /// A question to the user, in one sentence.
    pub question: String,
}

/// The columns of all silos' rows that alone predict the target nearly without error.
pub fn leaks_of(data: &DataSet) -> Vec<Leak> {
    let tables: Vec<&Table> = data.silos.iter().map(|(_, table)| table).collect();
    leaks(&tables, &data.target, data.schema.as_ref())
}

/// The columns of these tables, which are of one schema, that alone predict the target nearly without
/// error. Without a schema every column holds numbers. Empty where there are fewer than 20 rows, and
/// for masks.
///
/// Numbers are taken by their order, which a chance order of so many rows must not explain; categories,
/// and numbers of few values, by the mean of the target at each level, learned on one half of the rows
/// and measured on the other, so that a level of a single row says nothing. Missing values are the
/// smallest, the largest, or a level. It takes O(n log n) for a column, of at most 20,000 rows and
/// 2,000 columns.
pub fn leaks(tables: &[&Table], target: &Target, schema: Option<&Schema>) -> Vec<Leak> {
    let all: usize = tables.iter().map(|table| table.len()).sum();
    if all < ROWS || matches!(target, Target::Mask { .. }) {
        return Vec::new();
    }
    let rows = tables
        .iter()
        .flat_map(|table| (0..table.len()).map(move |row| (*table, row)));
    let rows: Vec<(&Table, usize)> = rows.step_by(all.div_ceil(MOST_ROWS)).collect();
    let columns = columns(tables[0], schema);
    let wanted = LeakTarget::of(&rows, target, schema, columns.len());
    let mut halves: Vec<usize> = (0..rows.len()).collect();
    shuffle(&mut stream(0, "halves"), &mut halves);
    let mut found: Vec<Leak> = Vec::new();
    for column in columns.iter().take(MOST_COLUMNS) {
        let best = wanted.iter().filter_map(|wanted| {
            let (score, what) = column.score(&rows, wanted, &halves)?;
            Some((score, wanted.said(score, what)))
        });
        let Some((score, said)) = best.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            continue;
        };
        let leak = Leak {
            column: column.name.clone(),
            score,
            question: format!(
                "{:?} alone {said}: is it known before the outcome?",
                column.name
            ),
        };
        // Of a date every part may tell: one question is enough.
        match found.last_mut().filter(|last| last.column == leak.column) {
            Some(last) if last.score < leak.score => *last = leak,
            Some(_) => {}
            None => found.push(leak),
        }
    }
    found
}

/// One thing to predict, of every row.
struct LeakTarget {
    values: Vec<f64>,
    /// True if they are 0 and 1.
    class: bool,
    /// Name of the target behind a number; empty for the only two classes.
    name: String,
}

impl LeakTarget {
    fn of(
        rows: &[(&Table, usize)],
        target: &Target,
        schema: Option<&Schema>,
        columns: usize,
    ) -> Vec<Self> {
        let value = |at: usize| rows.iter().map(move |(table, row)| table.targets(*row)[at]);
        let name = |at: usize| schema.and_then(|schema| schema.target.name.iter().nth(at));
        let wanted: Vec<Self> = match target {
            Target::Classes(classes) => {
                let first = usize::from(classes.len() == 2);
                let each = classes.iter().enumerate().skip(first).take(MOST_TARGETS);
                each.map(|(at, class)| Self {
                    values: value(0)
                        .map(|own| f64::from(u8::from(own == at as f64)))
                        .collect(),
                    class: true,
                    name: match classes.len() {
                        2 => String::new(),
                        _ => format!(" for {class:?}"),
                    },
                })
                .collect()
            }
            Target::Number { .. } | Target::Numbers { .. } => {
                let count = rows.first().map_or(0, |(table, _)| table.targets(0).len());
                let each = (0..count.min(MOST_TARGETS)).map(|at| Self {
                    values: value(at).collect(),
                    class: false,
                    name: name(at)
                        .map_or_else(|| " the target".into(), |name| format!(" {name:?}")),
                });
                each.collect()
            }
            // Another time of follow-up orders rows as the time does, and a cause of death tells that there was one.
            Target::Survival { .. } => vec![
                Self {
                    values: value(0).collect(),
                    class: true,
                    name: name(0).map_or_else(String::new, |name| format!(" for {name:?}")),
                },
                Self {
                    values: value(1).collect(),
                    class: false,
                    name: name(1).map_or_else(|| " the time".into(), |name| format!(" {name:?}")),
                },
            ],
            Target::Mask { .. } => Vec::new(),
        };
        wanted
            .into_iter()
            .filter(|one| one.can_tell(columns))
            .collect()
    }

    /// Returns whether no column of chance would order these rows.
    fn can_tell(&self, columns: usize) -> bool {
        if !self.class {
            let first = self.values[0];
            return self.values.iter().any(|&value| value != first);
        }
        let (rows, ones) = (self.values.len(), self.values.iter().sum::<f64>() as usize);
        let few = ones.min(rows - ones);
        // The logarithm of the number of ways to choose so many rows, one of which is the right one.
        let ways = (0..few.min(1_000)).map(|at| ((rows - at) as f64 / (few - at) as f64).ln());
        ways.sum::<f64>() >= ODDS + (columns as f64).ln()
    }

    fn said(&self, score: f64, what: What) -> String {
        let name = &self.name;
        // Never rounded up to all.
        let three = (score * 1e3).floor() / 1e3;
        match what {
            What::Area => format!("gives AUC {three:.3}{name}"),
            What::Correlation => format!("has the rank correlation {three:.3} with{name}"),
            What::Explained => {
                let percent = (score * 1e3).floor() / 10.0;
                format!("explains {percent:.1} % of the variance of{name}")
            }
        }
    }
}

/// Kind of score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Area,
    Correlation,
    Explained,
}

/// A feature of a column of the schema, by its places among the encoded columns.
struct ColumnPlaces {
    /// The column's name.
    name: String,
    /// The number, where it is one.
    number: Option<usize>,
    /// The levels but the first.
    levels: Vec<usize>,
}

/// The features of the columns of a schema, those of one column together.
fn columns(table: &Table, schema: Option<&Schema>) -> Vec<ColumnPlaces> {
    let place = |name: &str| table.columns.iter().position(|own| own == name);
    let plain = |(at, name): (usize, &String)| ColumnPlaces {
        name: name.clone(),
        number: Some(at),
        levels: Vec::new(),
    };
    let Some(schema) = schema else {
        return table.columns.iter().enumerate().map(plain).collect();
    };
    let columns = schema.columns().flat_map(|(name, column)| {
        let of = move |feature: crate::schema::ColumnFeature| {
            let numbers = feature.numbers();
            let mut places = numbers.iter().filter_map(|number| place(number));
            let (number, levels) = match feature.values {
                FeatureValues::Number { .. } => (places.next(), Vec::new()),
                FeatureValues::Levels(_) => (None, places.collect()),
            };
            ColumnPlaces {
                name: name.to_owned(),
                number,
                levels,
            }
        };
        column.kind.features(name).into_iter().map(of)
    });
    columns.collect()
}

impl ColumnPlaces {
    /// The score where it is high enough, and what it is.
    fn score(
        &self,
        rows: &[(&Table, usize)],
        wanted: &LeakTarget,
        halves: &[usize],
    ) -> Option<(f64, What)> {
        let Some(number) = self.number else {
            let level = |(table, row): &(&Table, usize)| {
                let row = table.row(*row);
                let missing = self.levels.iter().any(|&at| row[at].is_nan());
                let own = self.levels.iter().position(|&at| row[at] == 1.0);
                if missing {
                    usize::MAX
                } else {
                    own.map_or(0, |own| own + 1)
                }
            };
            let levels: Vec<usize> = rows.iter().map(level).collect();
            return by_level(&levels, wanted, halves);
        };
        let values: Vec<f64> = rows
            .iter()
            .map(|(table, row)| table.row(*row)[number])
            .collect();
        let ordered = by_order(&values, wanted);
        ordered.or_else(|| by_level(&codes(&values)?, wanted, halves))
    }
}

/// The places of few distinct numbers among them; a missing one is one more.
fn codes(values: &[f64]) -> Option<Vec<usize>> {
    let mut distinct: Vec<f64> = Vec::new();
    for value in values.iter().filter(|value| !value.is_nan()) {
        if let Err(place) = distinct.binary_search_by(|own| own.total_cmp(value)) {
            if distinct.len() == CODES {
                return None;
            }
            distinct.insert(place, *value);
        }
    }
    let place = |value: &f64| distinct.binary_search_by(|own| own.total_cmp(value));
    Some(
        values
            .iter()
            .map(|value| place(value).unwrap_or(CODES))
            .collect(),
    )
}

/// Returns how well the order of a number predicts.
fn by_order(values: &[f64], wanted: &LeakTarget) -> Option<(f64, What)> {
    let filled = |with: f64| -> Vec<f64> {
        let each = values.iter();
        each.map(|value| if value.is_nan() { with } else { *value })
            .collect()
    };
    let missing = values.iter().any(|value| value.is_nan());
    let fills: &[f64] = if missing {
        &[f64::NEG_INFINITY, f64::INFINITY]
    } else {
        &[0.0]
    };
    let scores = fills.iter().filter_map(|&with| {
        let values = filled(with);
        if wanted.class {
            let positive: Vec<bool> = wanted.values.iter().map(|&own| own > 0.5).collect();
            let area = roc_auc(&values, &positive)?;
            return Some(area.max(1.0 - area));
        }
        Some(correlation(&ranks(&values), &ranks(&wanted.values))?.abs())
    });
    let best = scores.max_by(f64::total_cmp)?;
    let (least, what) = if wanted.class {
        (AREA, What::Area)
    } else {
        (CORRELATION, What::Correlation)
    };
    (best >= least).then_some((best, what))
}

/// Returns how well the means of levels on one half of the rows predict the other half: the worse of both.
fn by_level(levels: &[usize], wanted: &LeakTarget, halves: &[usize]) -> Option<(f64, What)> {
    let (one, other) = halves.split_at(halves.len() / 2);
    let score = |learn: &[usize], test: &[usize]| -> Option<f64> {
        let mut sums = std::collections::BTreeMap::<usize, (f64, f64)>::new();
        let mut all = (0.0, 0.0);
        for &row in learn {
            let value = wanted.values[row];
            let own = sums.entry(levels[row]).or_default();
            (own.0, own.1) = (own.0 + value, own.1 + 1.0);
            all = (all.0 + value, all.1 + 1.0);
        }
        let mean = all.0 / all.1;
        let predicted = |row: &usize| {
            sums.get(&levels[*row])
                .map_or(mean, |(sum, count)| sum / count)
        };
        let predicted: Vec<f64> = test.iter().map(predicted).collect();
        let truth: Vec<f64> = test.iter().map(|&row| wanted.values[row]).collect();
        if wanted.class {
            let positive: Vec<bool> = truth.iter().map(|&own| own > 0.5).collect();
            return roc_auc(&predicted, &positive);
        }
        let own = truth.iter().sum::<f64>() / truth.len() as f64;
        let squares =
            |of: &dyn Fn(usize) -> f64| (0..truth.len()).map(|at| of(at).powi(2)).sum::<f64>();
        let (left, spread) = (
            squares(&|at| truth[at] - predicted[at]),
            squares(&|at| truth[at] - own),
        );
        (spread > 0.0).then(|| 1.0 - left / spread)
    };
    let score = score(one, other)?.min(score(other, one)?);
    let (least, what) = if wanted.class {
        (AREA, What::Area)
    } else {
        (EXPLAINED, What::Explained)
    };
    (score >= least).then_some((score, what))
}

/// The rank of every value; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut before) = (vec![0.0; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|&row| ranks[row] = rank);
        before += equal.len();
    }
    ranks
}

/// Pearson's correlation; `None` where one does not vary.
fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (own, other) = (mean(a), mean(b));
    let (mut both, mut squares) = (0.0, (0.0, 0.0));
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - own, b - other);
        both += a * b;
        squares = (squares.0 + a * a, squares.1 + b * b);
    }
    let size = (squares.0 * squares.1).sqrt();
    (size > 0.0).then(|| both / size)
}

#[cfg(test)]
mod tests;
