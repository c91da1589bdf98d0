//! Finds out what a column holds.

use std::collections::BTreeMap;

use super::Wishes;
use crate::data::{DataError, Format, RawFile};
use crate::schema::{ColumnType, FeatureColumns, MissingRule};

/// Most levels that a category keeps; rarer ones become `other`.
const LEVELS: usize = 20;
/// Most distinct values of a column of whole numbers that may hold codes.
const CODES: usize = 30;

/// The cells of a column in all files.
pub(super) struct Cells<'a> {
    name: &'a str,
    /// Every value, numbers in one way of writing, with how often it occurs.
    pub(super) values: BTreeMap<String, usize>,
    /// Cells in all, and those without a value.
    pub(super) count: usize,
    pub(super) missing: usize,
    /// The numbers among the values, ascending, each once.
    pub(super) numbers: Vec<f64>,
    /// Cells that hold a number.
    numeric: usize,
}

/// What becomes of a column.
pub(super) enum Found {
    /// It is learned from; what it holds, in one phrase.
    Feature(FeatureColumns, String),
    /// It is not; why.
    LeftOut(String),
}

impl<'a> Cells<'a> {
    pub(super) fn of(files: &[RawFile], name: &'a str, format: &Format) -> Result<Self, DataError> {
        let mut texts: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut count, mut missing) = (0, 0);
        for file in files {
            let place = file.place(name)?;
            for row in &file.rows {
                let text = row.cells.get(place).unwrap_or_default();
                count += 1;
                match format.is_missing(text) {
                    true => missing += 1,
                    false => *texts.entry(text).or_default() += 1,
                }
            }
        }
        let (mut values, mut numbers, mut numeric) = (BTreeMap::new(), Vec::new(), 0);
        for (text, times) in texts {
            let number = format.number(text);
            if let Some(number) = number {
                numeric += times;
                numbers.push(number);
            }
            *values.entry(format.plain(text)).or_default() += times;
        }
        numbers.sort_unstable_by(f64::total_cmp);
        numbers.dedup();
        Ok(Self {
            name,
            values,
            count,
            missing,
            numbers,
            numeric,
        })
    }

    pub(super) fn present(&self) -> usize {
        self.count - self.missing
    }

    /// Whether every value is a number.
    pub(super) fn all_numbers(&self) -> bool {
        self.present() > 0 && self.numeric == self.present()
    }

    pub(super) fn whole(&self) -> bool {
        self.numbers.iter().all(|number| number.fract() == 0.0)
    }

    /// Whether the column could say which silo a row is of.
    pub(super) fn may_name_silos(&self) -> bool {
        let distinct = self.values.len();
        let enough = (2..=1000).contains(&distinct) && self.present() >= 10 * distinct;
        enough && self.missing == 0 && (!self.all_numbers() || (self.whole() && distinct > 2))
    }

    /// Whether numbers look like codes: whole, few, and the name says so.
    fn looks_like_codes(&self) -> bool {
        let name = self.name.to_ascii_lowercase();
        let words = ["id", "code", "type", "class", "category", "kind", "group"];
        let named = name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .any(|word| words.contains(&word));
        named && self.whole() && self.values.len() <= CODES
    }

    pub(super) fn found(&self, wishes: &Wishes) -> Found {
        let named = |names: &[String]| names.iter().any(|name| name == self.name);
        let distinct = self.values.len();
        if self.present() == 0 {
            return Found::LeftOut("no value in any row".into());
        }
        if distinct == 1 {
            let value = self.values.keys().next().map_or("", String::as_str);
            return Found::LeftOut(format!("the same value in every row: {value:?}"));
        }
        let share = self.missing as f64 / self.count as f64;
        if share > 0.6 && !named(&wishes.numbers) && !named(&wishes.categories) {
            return Found::LeftOut(format!("{:.0} % of the values are missing", 100.0 * share));
        }
        let numeric = self.all_numbers() || named(&wishes.numbers);
        let codes = numeric && self.looks_like_codes();
        if named(&wishes.categories) || (!named(&wishes.numbers) && (!numeric || codes)) {
            return self.category(codes, named(&wishes.categories));
        }
        let wanted = named(&wishes.numbers);
        if self.whole() && distinct == self.present() && distinct > 50 && !wanted {
            return Found::LeftOut("a different whole number in every row: an identifier".into());
        }
        if self.whole() && self.name.to_ascii_lowercase().ends_with("id") && !wanted {
            let what = format!("{distinct} whole numbers, and by the name an identifier");
            return Found::LeftOut(what);
        }
        let (low, high) = (self.numbers[0], self.numbers[self.numbers.len() - 1]);
        let kind = match self.whole() {
            true => ColumnType::Integer,
            false => ColumnType::Number,
        };
        let what = match self.whole() {
            true => format!("whole numbers from {low} to {high}"),
            false => format!("numbers from {low} to {high}"),
        };
        let feature = FeatureColumns {
            kind,
            missing: self.rule(),
            ..FeatureColumns::numbers(self.name.into())
        };
        Found::Feature(feature, self.with_missing(what))
    }

    fn category(&self, codes: bool, asked: bool) -> Found {
        let distinct = self.values.len();
        if 2 * distinct > self.present() && distinct > LEVELS && !asked {
            return Found::LeftOut(format!(
                "{distinct} different texts in {} rows: names, dates or free text",
                self.present()
            ));
        }
        let mut by_count: Vec<(&String, usize)> = self
            .values
            .iter()
            .map(|(value, &times)| (value, times))
            .collect();
        by_count.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        // A rare level is a column of almost nothing but zeros.
        let rare = (self.present() / 200).max(1);
        let frequent = by_count.iter().filter(|(_, times)| *times >= rare).count();
        let kept = match distinct <= LEVELS {
            true if frequent >= 2 && distinct - frequent <= 1 => distinct,
            _ => frequent.clamp(2, LEVELS).min(distinct),
        };
        let other = kept < distinct;
        let covered: usize = by_count.iter().take(kept).map(|(_, times)| times).sum();
        if 4 * covered < self.present() && !asked {
            return Found::LeftOut(format!(
                "{distinct} different texts, none of which is frequent: names, dates or free text"
            ));
        }
        let levels = by_count
            .iter()
            .take(kept)
            .map(|(value, _)| (*value).clone());
        let what = match (other, codes) {
            (true, _) => {
                format!("texts: the {kept} most frequent of {distinct}, and the others together")
            }
            (false, true) => format!("{distinct} codes, by the column's name"),
            (false, false) => format!("{distinct} texts"),
        };
        let share = 100 * self.numeric / self.present();
        let what = match (50..100).contains(&share) {
            true => format!("{what}; {share} % are numbers: to read them as such, see `codes`"),
            false => what,
        };
        let feature = FeatureColumns {
            other,
            missing: match self.missing {
                0 => MissingRule::Refuse,
                _ => MissingRule::Indicator,
            },
            ..FeatureColumns::category(self.name, levels.collect())
        };
        Found::Feature(feature, self.with_missing(what))
    }

    /// The rule for missing numbers: the median where few are missing, an indicator with them where
    /// that they are missing may itself mean something.
    fn rule(&self) -> MissingRule {
        match 20 * self.missing > self.count {
            _ if self.missing == 0 => MissingRule::Refuse,
            true => MissingRule::Indicator,
            false => MissingRule::Median,
        }
    }

    fn with_missing(&self, what: String) -> String {
        match self.missing {
            0 => what,
            missing => format!(
                "{what}; {:.1} % missing",
                100.0 * missing as f64 / self.count as f64
            ),
        }
    }
}
