//! The cells of a column, counted.

use std::collections::BTreeMap;

use super::RARE;
use super::form::{WrittenForm, written_form};
use super::surroundings::AroundNumbers;
use crate::data::{ColumnMarks, DataError, Format, RawFile, are_with_zeros, without_zeros};
use crate::schema::{MeasuredColumn, MissingRule};

/// Distinct numbers from which on a column of half numbers is one of numbers.
const MANY: usize = 30;

/// Fewest rows of which the usual numbers are told: of fewer they would tell about single ones.
const USUAL: usize = 50;

/// The first of these numbers that is told: with those before it, enough rows hold it.
fn told<'a>(mut numbers: impl Iterator<Item = &'a (f64, usize)>) -> Option<f64> {
    let mut rows = 0;
    let found = numbers.find(|(_, times)| {
        rows += times;
        rows >= RARE
    });
    found.map(|(number, _)| *number)
}

/// The next smaller number of one digit.
fn down(value: f64) -> f64 {
    one_digit(value, f64::floor)
}

/// The next larger number of one digit.
fn up(value: f64) -> f64 {
    one_digit(value, f64::ceil)
}

fn one_digit(value: f64, whole: fn(f64) -> f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    to_step(value, (1.0, value.abs().log10().floor() as i32), whole)
}

/// The value as a whole multiple of a step: so many of a power of ten.
fn to_step(value: f64, (times, power): (f64, i32), whole: fn(f64) -> f64) -> f64 {
    // Tens are exact, tenths are not: they are divided by.
    if power >= 0 {
        let step = times * 10_f64.powi(power);
        whole(value / step) * step
    } else {
        let unit = 10_f64.powi(-power);
        whole(value * unit / times) * times / unit
    }
}

/// A range rounded outwards: each bound to one digit of its own, or to the next step of 1, 2 or 5 times a power of ten
/// that is a tenth of their distance or more, where that is nearer. So 131.2 to 148.7 becomes 130 to 150, and 0.02 to 1480 becomes 0.02 to 1600. The
/// bounds are finite, the smaller one first.
pub fn outward([low, high]: [f64; 2]) -> [f64; 2] {
    if low >= high {
        return [low, high];
    }
    let power = (high - low).log10().floor() as i32;
    let times = match (high - low) / 10_f64.powi(power) {
        ..2.0 => 2.0,
        2.0..5.0 => 5.0,
        _ => 10.0,
    };
    let step = (times, power - 1);
    [
        down(low).max(to_step(low, step, f64::floor)),
        up(high).min(to_step(high, step, f64::ceil)),
    ]
}

/// The cells of a column in all files.
pub struct Cells<'a> {
    pub(super) name: &'a str,
    /// Every value as it is written, with how often it occurs.
    pub values: BTreeMap<String, usize>,
    /// Cells in all, and those without a value.
    pub(super) count: usize,
    /// Number of cells without a value.
    pub missing: usize,
    /// Those of them that hold a minus alone.
    pub(super) minus: usize,
    /// The numbers among the values, ascending, with how often each occurs.
    pub numbers: Vec<(f64, usize)>,
    /// Cells that hold a number.
    pub(super) numeric: usize,
    /// Values that are no numbers, with how often they occur.
    others: BTreeMap<String, usize>,
    /// Texts around numbers among these.
    pub(super) around: AroundNumbers,
    /// Conclusion from the form of the numbers, where it means something.
    pub(super) form: Option<WrittenForm>,
}

impl<'a> Cells<'a> {
    /// The cells of the column of this name in all files, whose numbers are read as `measured` says.
    ///
    /// # Errors
    /// [`DataError`]: a file without the column.
    pub fn of(
        files: &[(RawFile, Format)],
        name: &'a str,
        measured: &MeasuredColumn<'_>,
    ) -> Result<Self, DataError> {
        Self::marked(files, name, &ColumnMarks::default(), measured)
    }

    /// The same, where more is known of the texts of the column than the formats say.
    ///
    /// # Errors
    /// [`DataError`]: a file without the column.
    pub fn marked(
        files: &[(RawFile, Format)],
        name: &'a str,
        marks: &ColumnMarks,
        measured: &MeasuredColumn<'_>,
    ) -> Result<Self, DataError> {
        let (mut values, mut others) = (BTreeMap::new(), BTreeMap::new());
        let (mut count, mut missing, mut numeric, mut minus) = (0, 0, 0, 0);
        let mut numbers = Vec::new();
        let mut around = AroundNumbers::default();
        let mut form = None;
        for (file, format) in files {
            let place = file.place(name)?;
            let cells = || {
                file.rows
                    .iter()
                    .map(|row| row.cells.get(place).unwrap_or_default())
            };
            let present = || cells().filter(|text| !format.is_missing_in(marks, text));
            let zeros = are_with_zeros(present());
            count += file.rows.len();
            missing += file.rows.len() - present().count();
            minus += cells()
                .filter(|text| text.trim() == "-" && format.is_missing_in(marks, text))
                .count();
            let mut texts: BTreeMap<&str, usize> = BTreeMap::new();
            present().for_each(|text| *texts.entry(text).or_default() += 1);
            form = form.or_else(|| written_form(&texts, format));
            for (text, times) in texts {
                match measured.number(format, text) {
                    Some(number) => {
                        numeric += times;
                        // There is one zero, whatever sign stands before it.
                        numbers.push((number + 0.0, times));
                    }
                    None => {
                        around.add(format, text, times);
                        *others.entry(text.to_owned()).or_default() += times;
                    }
                }
                let plain = without_zeros(text).filter(|_| zeros).unwrap_or(text);
                *values.entry(plain.to_owned()).or_default() += times;
            }
        }
        numbers.sort_unstable_by(|a: &(f64, usize), b| a.0.total_cmp(&b.0));
        numbers.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        Ok(Self {
            name,
            values,
            count,
            missing,
            minus,
            numbers,
            numeric,
            others,
            around,
            form,
        })
    }

    pub(super) fn present(&self) -> usize {
        self.count - self.missing
    }

    /// Returns whether every value is a number.
    pub(super) fn all_numbers(&self) -> bool {
        self.present() > 0 && self.numeric == self.present()
    }

    /// Returns whether all values are whole numbers.
    pub fn whole(&self) -> bool {
        self.numbers.iter().all(|(number, _)| number.fract() == 0.0)
    }

    /// Returns whether the column holds numbers, and a few cells that are none: one odd cell makes no category
    /// of a column.
    pub(super) fn mostly_numbers(&self) -> bool {
        let share = 100 * self.numeric / self.present().max(1);
        self.numeric < self.present() && (share >= 80 || (share >= 50 && self.numbers.len() > MANY))
    }

    /// The cells that are no numbers, of a column of numbers: the most frequent ones.
    pub fn odd(&self) -> Vec<(&str, usize)> {
        let mut odd: Vec<(&str, usize)> = self
            .others
            .iter()
            .map(|(text, times)| (text.as_str(), *times))
            .collect();
        odd.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        odd
    }

    /// Returns whether the column could say which silo a row is of.
    pub(super) fn may_name_silos(&self) -> bool {
        let distinct = self.values.len();
        let enough = (2..=1000).contains(&distinct) && self.present() >= 10 * distinct;
        enough && self.missing == 0 && (!self.all_numbers() || (self.whole() && distinct > 2))
    }

    /// Smallest, middle and largest number, in words.
    pub fn range(&self) -> String {
        let kind = if self.whole() {
            "whole numbers"
        } else {
            "numbers"
        };
        let (Some((low, _)), Some((high, _))) = (self.numbers.first(), self.numbers.last()) else {
            return "no number".into();
        };
        format!("{kind} from {low} to {high}, median {}", self.median())
    }

    /// The number in the middle; the lower one of two.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The smallest number that is not smaller than this part of all.
    pub fn quantile(&self, part: f64) -> f64 {
        let mut before = 0;
        for (number, times) in &self.numbers {
            before += times;
            if before as f64 >= part * self.numeric as f64 {
                return *number;
            }
        }
        f64::NAN
    }

    /// Between which numbers four of five lie, to one digit and outwards; `None` where there are few.
    pub(super) fn usual(&self) -> Option<[f64; 2]> {
        let many = self.numeric >= USUAL && self.numbers.len() > 2;
        many.then(|| [down(self.quantile(0.1)), up(self.quantile(0.9))])
    }

    /// A range that an agreement could have, to one digit and outwards: of a few rows at either end it tells
    /// nothing, as a list of levels leaves out rare ones. `None` where there are few numbers, or nearly all are
    /// equal.
    pub(super) fn agreeable(&self) -> Option<[f64; 2]> {
        let low = down(told(self.numbers.iter())?);
        let high = up(told(self.numbers.iter().rev())?);
        (self.numeric >= USUAL && low < high).then_some([low, high])
    }

    /// The cells without the column's name, which is another one elsewhere.
    pub fn unnamed(self) -> Cells<'static> {
        Cells { name: "", ..self }
    }

    /// The rule for missing numbers: the median where few are missing, an indicator with them where
    /// that they are missing may itself mean something.
    pub(super) fn rule(&self) -> MissingRule {
        match 20 * self.missing > self.count {
            _ if self.missing == 0 => MissingRule::Refuse,
            true => MissingRule::Indicator,
            false => MissingRule::Median,
        }
    }

    /// `what`, with the number of missing values behind it.
    pub fn with_missing(&self, what: String) -> String {
        match self.missing {
            0 => what,
            missing => format!(
                "{what}; {:.1} % missing",
                100.0 * missing as f64 / self.count as f64
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_rounded_outwards_to_the_nearer_step() {
        for (range, rounded) in [
            ([131.2, 148.7], [130.0, 150.0]),
            ([0.02, 1480.0], [0.02, 1600.0]),
            ([23.4, 88.1], [20.0, 90.0]),
            ([-3.0, 250.0], [-3.0, 250.0]),
            ([-0.113, 0.17], [-0.15, 0.2]),
            ([0.0, 39.6], [0.0, 40.0]),
            ([0.0, 115.0], [0.0, 120.0]),
            ([20.0, 90.0], [20.0, 90.0]),
            ([7.0, 7.0], [7.0, 7.0]),
        ] {
            assert_eq!(outward(range), rounded, "{range:?}");
        }
    }
}
