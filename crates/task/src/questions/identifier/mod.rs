//! Columns that say whose a row is, by how they behave.
//!
//! A patient's number stands in all rows of one patient. So rows with one value are alike in what else is known of
//! them, while rows with the next larger value are not: the number tells nothing but who it is. Of something that is
//! measured, rows with neighbouring values are as alike as rows with one value. The first is told from the second
//! whatever the column is called, and however its values are spread. Where rows of one patient are not alike, their
//! number still stands in one run of rows, far from other numbers. Numbers like ages are the exception: persons that
//! are numbered from 40 to 90, say, are not told from them.

use super::columns::{RowColumn, RowColumns, RowValues};
use super::{RowDoubt, RowQuestion};
use crate::counted::counted;
use crate::random::{shuffle, stream};

/// Fewest different values of a column that says whose a row is.
const FEWEST: usize = 10;
/// Fewest rows beyond the first of each value.
const REPEATS: usize = 8;
/// The same where nothing is known but that they follow each other.
const RUNS: usize = 20;
/// Most rows for each value on average: of more it is a place, or a kind.
const VISITS: f64 = 50.0;
/// Most columns by which rows are compared.
const COMPANIONS: usize = 20;
/// Most columns that are looked at.
const COLUMNS: usize = 2_000;
/// Most values of a column whose rows are compared, and most rows of one.
const LEVELS: usize = 2_000;
const ROWS: usize = 20;
/// Share of the difference of two rows by chance that has to vanish within a value and stay beside it.
const ALIKE: f64 = 0.5;
/// The same where hardly anything differs within a value.
const CONSTANT: f64 = 0.8;
/// Standard errors by which that has to differ from none.
const ERRORS: f64 = 4.0;
/// Mean distance of neighbouring values, in steps, from which on they are far apart.
const APART: f64 = 5.0;
/// The largest number that may be an age.
const AGES: f64 = 150.0;
/// Fewest values that count the persons from 1 on.
const COUNTED: usize = 20;
/// Fewest rows of a column that has another number in every row.
const EACH: usize = 50;

/// The columns that behave like the number of a person or a case, in order, with the reason.
pub(crate) fn identifiers(rows: &RowColumns<'_>) -> Vec<RowQuestion> {
    let step = rows.names.len().div_ceil(COMPANIONS).max(1);
    let mut order: Vec<usize> = (0..rows.silos.len()).collect();
    shuffle(&mut stream(0, "rows"), &mut order);
    let mut companions: Vec<Companion> = Vec::new();
    for (name, column) in &rows.targets {
        companions.extend(Companion::of(name, column, (&rows.silos, &order), true));
    }
    for at in (0..rows.names.len()).step_by(step) {
        let (name, column) = (&rows.names[at], (rows.column)(at));
        companions.extend(Companion::of(name, &column, (&rows.silos, &order), false));
    }
    let look = |at: usize, groups: &[u32]| {
        let column = (rows.column)(at);
        let key = KeyColumn::of(&column, (&rows.silos, &order), groups)?;
        let why = key.why(&rows.names[at], &companions)?;
        Some(FoundKey {
            at,
            strength: why.strength,
            what: key.said(&rows.names[at], &why.reason),
        })
    };
    let all = 0..rows.names.len().min(COLUMNS);
    let mut found: Vec<FoundKey> = all.filter_map(|at| look(at, &rows.groups)).collect();
    let strongest = found
        .iter()
        .max_by(|a, b| a.strength.total_cmp(&b.strength));
    let strongest = strongest.map_or(0, |found| found.at);
    // Of the others those that tell more than whose a row is by the strongest.
    if rows.groups.is_empty() && found.len() > 1 {
        let groups = groups_of(&(rows.column)(strongest));
        let others = found
            .into_iter()
            .filter_map(|own| match own.at == strongest {
                true => Some(own),
                false => look(own.at, &groups),
            });
        found = others.collect();
    }
    let question = |found: FoundKey| RowQuestion {
        column: rows.names[found.at].clone(),
        doubt: RowDoubt::Identifier,
        what: found.what,
    };
    found.into_iter().map(question).collect()
}

/// A column that was found.
struct FoundKey {
    at: usize,
    strength: f64,
    what: String,
}

/// Reason for which a column may say whose a row is, with its strength.
struct KeyReason {
    strength: f64,
    reason: String,
}

/// The group of every row by the values of a column; rows without one are each of their own.
pub(crate) fn groups_of(column: &RowColumn) -> Vec<u32> {
    let mut distinct: Vec<f64> = column
        .values
        .iter()
        .copied()
        .filter(|v| !v.is_nan())
        .collect();
    distinct.sort_unstable_by(f64::total_cmp);
    distinct.dedup();
    let group = |(row, value): (u32, &f64)| match value.is_nan() {
        true => u32::MAX - row,
        false => distinct.partition_point(|own| own < value) as u32,
    };
    (0..).zip(&column.values).map(group).collect()
}

/// A column by which rows are compared.
struct Companion {
    name: String,
    /// The place of every row among all, from 0 to 1; or of unordered values the value.
    values: Vec<f64>,
    ordered: bool,
    target: bool,
    /// The mean difference of two rows of one silo.
    chance: f64,
}

impl Companion {
    /// `None` where nearly all rows are the same.
    fn of(
        name: &str,
        column: &RowColumn,
        (silos, order): (&[u32], &[usize]),
        target: bool,
    ) -> Option<Self> {
        let ordered = column.kind == RowValues::Numbers;
        let values = match ordered {
            true => ranks(&column.values),
            false => column.values.clone(),
        };
        let mut companion = Self {
            name: name.to_owned(),
            values,
            ordered,
            target,
            chance: 0.0,
        };
        let mut order = order[..order.len().min(LEVELS * ROWS)].to_vec();
        order.sort_by_key(|&row| silos[row]);
        let pairs = order.windows(2);
        let pairs = pairs.filter(|pair| silos[pair[0]] == silos[pair[1]]);
        companion.chance = mean(pairs.filter_map(|pair| companion.difference(pair[0], pair[1])))?;
        (companion.chance > 0.02).then_some(companion)
    }

    /// Returns how different two rows are, from 0 to 1; `None` where one has no value.
    fn difference(&self, one: usize, other: usize) -> Option<f64> {
        let (one, other) = (self.values[one], self.values[other]);
        match self.ordered {
            _ if one.is_nan() || other.is_nan() => None,
            true => Some((one - other).abs()),
            false => Some(f64::from(u8::from(one != other))),
        }
    }
}

/// A column that may say whose a row is.
struct KeyColumn<'a> {
    kind: RowValues,
    values: &'a [f64],
    silos: &'a [u32],
    groups: &'a [u32],
    /// The rows that have a value, by silo and value, those of one value in an order of chance.
    order: Vec<usize>,
    /// Begin and end of every value in that order.
    levels: Vec<(usize, usize)>,
}

impl<'a> KeyColumn<'a> {
    /// `None` where the values are fractions, or few.
    fn of(
        column: &'a RowColumn,
        (silos, order): (&'a [u32], &[usize]),
        groups: &'a [u32],
    ) -> Option<Self> {
        let values = &column.values[..];
        let whole = |value: &f64| value.is_nan() || (value.fract() == 0.0 && value.abs() < 1e18);
        if !values.iter().all(whole) || !has_many(values) {
            return None;
        }
        let there = order.iter().copied().filter(|&row| !values[row].is_nan());
        let mut order: Vec<usize> = there.collect();
        let by_value = |a: &usize, b: &usize| {
            let silo = silos[*a].cmp(&silos[*b]);
            silo.then(values[*a].total_cmp(&values[*b]))
        };
        order.sort_by(by_value);
        let mut levels: Vec<(usize, usize)> = Vec::new();
        for level in order.chunk_by(|a, b| by_value(a, b).is_eq()) {
            let begin = levels.last().map_or(0, |(_, end)| *end);
            levels.push((begin, begin + level.len()));
        }
        let own = Self {
            kind: column.kind,
            values,
            silos,
            groups,
            order,
            levels,
        };
        (own.levels.len() >= FEWEST && !own.like_ages()).then_some(own)
    }

    /// Returns true if these may well be ages, pulses or scores: whole numbers that stand close together, begin
    /// above 1, where persons are counted from, and end where ages do. Rows that are alike there are no reason
    /// to ask.
    fn like_ages(&self) -> bool {
        if self.kind != RowValues::Numbers {
            return false;
        }
        let values = self.distinct();
        let (first, last) = (values[0], values[values.len() - 1]);
        first > 1.0 && last <= AGES && 2.0 * values.len() as f64 > last - first
    }

    /// Returns what was found, in words.
    fn said(&self, name: &str, why: &str) -> String {
        let kind = match self.kind {
            RowValues::Numbers => "numbers",
            RowValues::Codes | RowValues::Texts => "texts",
        };
        let (each, rows) = (self.levels.len(), counted(self.order.len(), "row"));
        // Two silos may each have a first person.
        let found = match self.distinct().len() {
            all if self.kind == RowValues::Numbers && all < each => {
                format!("{all} different numbers ({each}, if every silo counts its own)")
            }
            _ => format!("{each} different {kind}"),
        };
        format!(
            "column {name:?}: {found} in {rows} behave like the number of a person or case, because {why}"
        )
    }

    /// Returns the reason for which it may say whose a row is.
    fn why(&self, name: &str, companions: &[Companion]) -> Option<KeyReason> {
        let repeated = self.order.len() - self.levels.len();
        let because = |strength: f64, reason: &str| KeyReason {
            strength,
            reason: reason.into(),
        };
        if repeated < REPEATS {
            let counts = self.is_count();
            return counts.then(|| because(0.0, "no two rows have the same"));
        }
        if self.is_of_groups() {
            return Some(because(0.5, "each of them is of one person or case only"));
        }
        let others = companions.iter().filter(|other| other.name != name);
        let each = self.order.len() as f64 / self.levels.len() as f64;
        let others = others.filter(|_| each <= VISITS);
        let alike = others.filter_map(|other| Some((other, self.alike(other)?)));
        let alike: Vec<(&Companion, f64)> = alike.filter(|(_, part)| *part >= ALIKE).collect();
        let target = alike.iter().any(|(other, _)| other.target);
        let constant = alike.iter();
        let constant = constant.filter(|(other, part)| !other.target && *part >= CONSTANT);
        let constant = constant.count();
        let tells = match self.kind {
            RowValues::Numbers => !alike.is_empty(),
            RowValues::Codes => target || constant >= 2,
            RowValues::Texts => target && constant >= 1,
        };
        if tells {
            let names = alike
                .iter()
                .take(3)
                .map(|(other, _)| format!("{:?}", other.name));
            let names: Vec<String> = names.collect();
            let reason = format!(
                "rows with one of them are alike in {}, and rows with the next one are not",
                names.join(", ")
            );
            let strength = alike.iter().map(|(_, part)| part).sum();
            return Some(KeyReason { strength, reason });
        }
        // Runs of a known person are those of all that never changes of it.
        let runs = self.groups.is_empty() && self.in_runs();
        runs.then(|| {
            because(
                0.5,
                "the rows of each follow each other, and nobody measures such values",
            )
        })
    }

    /// Returns whether every value is of one of the groups that are known, and looks like a code.
    fn is_of_groups(&self) -> bool {
        let code = match self.kind {
            RowValues::Numbers => {
                self.far_apart() && self.digits().is_some_and(|digits| digits >= 3)
            }
            RowValues::Codes => true,
            RowValues::Texts => false,
        };
        let first = |level: &(usize, usize)| self.groups[self.order[level.0]];
        let of_one = |level: &(usize, usize)| {
            let rows = &self.order[level.0..level.1];
            rows.iter().all(|&row| self.groups[row] == first(level))
        };
        !self.groups.is_empty() && code && self.levels.iter().all(of_one)
    }

    /// The digits behind the first of every number, where all have as many.
    fn digits(&self) -> Option<u32> {
        let digits = |row: &usize| self.values[*row].abs().max(1.0).log10().floor();
        let first = digits(self.order.first()?);
        let same = self.order.iter().all(|row| digits(row) == first);
        same.then_some(first as u32)
    }

    /// The part of the difference by chance that two rows of one value lack, and two rows of neighbouring values
    /// have, where that is no chance itself.
    fn alike(&self, other: &Companion) -> Option<f64> {
        let same_group =
            |a: usize, b: usize| !self.groups.is_empty() && self.groups[a] == self.groups[b];
        let differ = |a: usize, b: usize| match same_group(a, b) && self.silos[a] == self.silos[b] {
            true => None,
            false => other.difference(a, b),
        };
        let step = self.levels.len().div_ceil(LEVELS);
        let gains = (0..self.levels.len()).step_by(step).filter_map(|at| {
            let rows = self.rows(at);
            let silo = self.silos[rows[0]];
            let beside = [at + 1, at.wrapping_sub(1)].into_iter();
            let beside = beside.filter(|&other| other < self.levels.len());
            let beside = beside.map(|other| self.rows(other));
            let beside = beside
                .into_iter()
                .find(|rows| self.silos[rows[0]] == silo)?;
            let within = mean(rows.windows(2).filter_map(|pair| differ(pair[0], pair[1])))?;
            let pairs = rows.iter().zip(beside.iter().cycle());
            Some(mean(pairs.filter_map(|(a, b)| differ(*a, *b)))? - within)
        });
        let gains: Vec<f64> = gains.collect();
        if gains.len() < FEWEST {
            return None;
        }
        let gain = mean(gains.iter().copied())?;
        let squares = mean(gains.iter().map(|own| (own - gain).powi(2)))?;
        let error = (squares / gains.len() as f64).sqrt();
        (gain > ERRORS * error).then_some(gain / other.chance)
    }

    /// The rows of a value, a few of many.
    fn rows(&self, level: usize) -> &[usize] {
        let (begin, end) = self.levels[level];
        &self.order[begin..end.min(begin + ROWS)]
    }

    /// Returns true if nearly all rows of one value follow each other, and the values are codes, or far apart,
    /// or counted.
    fn in_runs(&self) -> bool {
        let (mut runs, mut up, mut down) = (0, 0, 0);
        let mut before: Option<(u32, f64)> = None;
        for (&silo, &value) in self.silos.iter().zip(self.values) {
            if value.is_nan() {
                before = None;
                continue;
            }
            match before {
                Some((own, last)) if own == silo && last == value => continue,
                Some((own, last)) if own == silo => match value > last {
                    true => up += 1,
                    false => down += 1,
                },
                _ => {}
            }
            runs += 1;
            before = Some((silo, value));
        }
        let levels = self.levels.len();
        let repeated = self.order.len() >= (3 * levels).div_ceil(2).max(levels + RUNS);
        let sorted = up == 0 || down == 0;
        let apart = match self.kind {
            RowValues::Numbers => self.far_apart() || sorted && self.counts_persons(),
            RowValues::Codes => true,
            RowValues::Texts => false,
        };
        let rows = self.order.len();
        let few = self.kind == RowValues::Numbers || rows as f64 <= VISITS * levels as f64;
        // Nobody has a quarter of all rows.
        let most = self.levels.iter().map(|(begin, end)| end - begin).max();
        let each = few && most.is_some_and(|most| 4 * most <= rows);
        // Of the rows that could follow one with the same value nearly all do.
        repeated && each && 10 * (rows - runs) >= 9 * (rows - levels) && apart
    }

    /// The different values, ascending.
    fn distinct(&self) -> Vec<f64> {
        let first = self
            .levels
            .iter()
            .map(|(begin, _)| self.values[self.order[*begin]]);
        let mut values: Vec<f64> = first.collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        values
    }

    /// Returns whether neighbouring values have many others between them that could be measured.
    fn far_apart(&self) -> bool {
        let values = self.distinct();
        let gaps = values.windows(2).map(|pair| pair[1] - pair[0]);
        let step = round_part(gaps.clone().fold(0.0, greatest_common_divisor));
        gaps.sum::<f64>() >= APART * step * (values.len() - 1) as f64
    }

    /// Returns whether the values are all whole numbers from 0 or 1 on.
    fn counts_persons(&self) -> bool {
        let values = self.distinct();
        let (first, last) = (values[0], values[values.len() - 1]);
        values.len() >= COUNTED && first <= 1.0 && last - first == (values.len() - 1) as f64
    }

    /// Returns true if every row has another number: counted, or far apart in the order of the rows, or of as
    /// many digits.
    fn is_count(&self) -> bool {
        let each = self.order.len() == self.levels.len() && self.order.len() > EACH;
        if self.kind != RowValues::Numbers || !each {
            return false;
        }
        let mut pairs = (1..self.values.len()).map(|row| (row - 1, row));
        let rises =
            pairs.all(|(a, b)| self.silos[a] != self.silos[b] || self.values[a] < self.values[b]);
        let counts = rises && (self.far_apart() || self.counts_persons());
        counts || self.digits().is_some_and(|digits| digits >= 4)
    }
}

/// Returns whether there are enough different values, which most columns have not.
fn has_many(values: &[f64]) -> bool {
    let mut found: Vec<f64> = Vec::with_capacity(FEWEST);
    for value in values.iter().filter(|value| !value.is_nan()) {
        if !found.contains(value) {
            found.push(*value);
        }
        if found.len() == FEWEST {
            return true;
        }
    }
    false
}

/// The part of a step that people round to: its divisors 2, 3 and 5.
fn round_part(step: f64) -> f64 {
    let mut rest = step.max(1.0);
    for divisor in [2.0, 3.0, 5.0] {
        while rest % divisor == 0.0 {
            rest /= divisor;
        }
    }
    step.max(1.0) / rest
}

fn greatest_common_divisor(a: f64, b: f64) -> f64 {
    match b == 0.0 {
        true => a,
        false => greatest_common_divisor(b, a % b),
    }
}

/// The mean of some numbers; `None` of none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| {
        (sum + value, count + 1)
    });
    (count > 0).then(|| sum / count as f64)
}

/// The place of every value among all, from 0 to 1; equal ones share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.retain(|&row| !values[row].is_nan());
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let (mut ranks, mut before) = (vec![f64::NAN; values.len()], 0);
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = before as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal
            .iter()
            .for_each(|&row| ranks[row] = rank / order.len() as f64);
        before += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests;
