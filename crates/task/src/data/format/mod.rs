//! Format of the cells of a text file: separator, decimal mark, encoding, missing values.

use encoding_rs::Encoding;
use serde::{Deserialize, Serialize};

use super::DataError;

mod around;
mod charset;
mod decode;
mod grammar;
mod guess;
mod marks;
mod words;

pub use marks::ColumnMarks;

pub use around::{AroundNumber, LimitSide};
pub use charset::Charset;
pub use grammar::{Negative, RAISED, WrittenNumber, core, grouped};
use grammar::{folded, is_space};
pub use guess::{EncodingGuess, encoding_of};

/// How the cells of a CSV file are written. Parquet files need `missing` only, and spreadsheets `sheet` and `missing`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Format {
    /// Names of the columns, for files without a first line of names. `[]` names them by
    /// position: `"1"`, `"2"`, and so on. By default the first line has the names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What separates cells, one ASCII character; `","` by default.
    pub delimiter: char,
    /// The mark before the decimals of a number, `"."` (the default) or `","`.
    pub decimal: char,
    /// The mark between groups of digits of a large number: `","`, `"."`, `"'"`, `"_"` or `" "`, which
    /// stands for every kind of space. By default digits are not grouped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// The encoding of the text, by its name in the WHATWG standard, such as `"windows-1252"`, `"latin1"` or
    /// `"shift_jis"`, or `"cp850"`, that of DOS; `"utf-8"` by default.
    pub encoding: String,
    /// The sheet of a spreadsheet to read, by its name; the first by default. Other files have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sheet: Option<String>,
    /// Texts that mean a missing value, in any case and whatever blanks surround them; of one that is a
    /// number, such as `-999`, also the same number with other decimals, such as `-999.0`. By default the
    /// empty cell and the marks that statistics programs, databases and spreadsheets write, such as
    /// `NA`, `NaN`, `NULL`, `None`, `.`, `-`, `?` and `#N/A`.
    #[serde(skip_serializing_if = "usual")]
    pub missing: Vec<String>,
}

/// Texts that usually mean a missing value: of pandas and R, of SAS and Stata, of databases, of
/// spreadsheets, of people.
pub(crate) const MISSING: [&str; 44] = [
    "",
    "NA",
    "N/A",
    "<NA>",
    "NaN",
    "-NaN",
    "NaT",
    "None",
    "NULL",
    "(null)",
    "\\N",
    ".",
    "-",
    "--",
    "---",
    "\u{2013}",
    "\u{2014}",
    "?",
    "#N/A",
    "#NA",
    "#NV",
    "#N/A N/A",
    "#DIV/0!",
    "#VALUE!",
    "#WERT!",
    "#REF!",
    "#BEZUG!",
    "#NAME?",
    "#NUM!",
    "#ZAHL!",
    "#NULL!",
    "1.#QNAN",
    "-1.#IND",
    "n.a.",
    "k.A.",
    "k. A.",
    "n. v.",
    "not available",
    "not applicable",
    "not recorded",
    "missing",
    "unknown value",
    "(empty)",
    "(blank)",
];

/// Returns whether these are the default marks.
fn usual(missing: &Vec<String>) -> bool {
    *missing == MISSING
}

/// Remedy where a number has a unit around it that nobody agreed on.
const UNIT: &str = ": if that is its unit, say so with `unit` in the schema, or for these files alone with \
                    `units` in their `names` (--unit COLUMN=TEXT)";

/// Remedy where a bound stands in place of a number.
const BOUND: &str = ": say with `censored` in the schema how such a one is read, write the number, or leave it \
                     empty";

/// Spellings of a missing value that nobody takes for anything else.
const PLAIN: [&str; 8] = ["", "NA", "N/A", "NaN", "nan", "NULL", "null", "<NA>"];

impl Default for Format {
    fn default() -> Self {
        Self {
            columns: None,
            delimiter: ',',
            decimal: '.',
            thousands: None,
            encoding: "utf-8".into(),
            sheet: None,
            missing: MISSING.map(String::from).to_vec(),
        }
    }
}

impl Format {
    /// Returns whether its keys go together.
    ///
    /// # Errors
    /// [`DataError::Config`]: two that do not.
    pub fn check(&self) -> Result<(), DataError> {
        let fail = |text: String| Err(DataError::Config(format!("`format`: {text}")));
        if !self.delimiter.is_ascii() {
            return fail("`delimiter` must be one ASCII character".into());
        }
        if !matches!(self.decimal, '.' | ',') {
            return fail("`decimal` must be \".\" or \",\"".into());
        }
        match self.thousands {
            None => {}
            Some(mark) if mark == self.decimal => {
                let other = if mark == '.' { ',' } else { '.' };
                return fail(format!(
                    "`thousands` and `decimal` are both {:?}: one mark cannot mean both; is the decimal \
                     mark {:?}?",
                    mark.to_string(),
                    other.to_string()
                ));
            }
            Some(mark) if matches!(mark, ',' | '.' | '\'' | '_') || is_space(mark) => {}
            Some(_) => {
                return fail("`thousands` must be \",\", \".\", \"'\", \"_\" or \" \"".into());
            }
        }
        if Charset::of(&self.encoding).is_none() {
            return fail(format!(
                "there is no encoding {:?}; usual ones are \"utf-8\", \"windows-1252\", \"latin1\", \"utf-16le\"",
                self.encoding
            ));
        }
        Ok(())
    }

    /// The number that a cell writes, and how.
    pub fn written(&self, text: &str) -> Option<WrittenNumber> {
        grammar::written(text, self.decimal, self.thousands.map(spaces))
    }

    /// A finite number, if the text is one: digits with the marks of this format, perhaps with an
    /// exponent, a currency or a sign of per cent. `12 %` is 12.
    pub fn number(&self, text: &str) -> Option<f64> {
        self.written(text).map(|written| written.value)
    }

    /// A number with a point and without marks of thousands, each digit as it is; `None` for a text that
    /// is no number, or has more around its digits.
    pub fn pointed(&self, text: &str) -> Option<String> {
        let text = folded(text);
        let plain = grammar::plain(&text, self.decimal, self.thousands.map(spaces))?;
        // Only the marks change: exponents and signs stay as they are.
        let grouped = self
            .thousands
            .is_some_and(|mark| text.contains(spaces(mark)));
        if !grouped && text.contains(['e', 'E', 'd', 'D', '+']) {
            Some(text.replacen([self.decimal, grammar::RAISED], ".", 1))
        } else {
            Some(plain)
        }
    }

    /// Returns what is expected of a text that is no number.
    pub fn needed(&self, text: &str) -> String {
        match self
            .other_marks(text)
            .or_else(|| self.no_plain_number(text))
        {
            Some(question) => format!("a number is needed{question}"),
            None => "a number is needed".into(),
        }
    }

    /// Returns what to ask or to say where a number has other marks of decimals or thousands.
    fn other_marks(&self, text: &str) -> Option<String> {
        let sample = |mark| grammar::written(text, '.', Some(mark)).map(|written| written.value);
        let as_decimal = |mark: char| grammar::written(text, mark, None).map(|own| own.value);
        // The other of comma and point.
        let (mark, name) = match self.decimal {
            '.' => (',', "comma"),
            _ => ('.', "point"),
        };
        let decimal = as_decimal(mark);
        let thousands = grammar::written(text, self.decimal, Some(mark)).map(|own| own.value);
        match (decimal, thousands) {
            (Some(small), Some(large)) => {
                return Some(format!(
                    "; is the {name} between thousands ({large}) or a decimal {name} ({small})? \
                     Then say so in `format`: thousands = \"{mark}\" or {}",
                    decimals(mark, self.thousands)
                ));
            }
            (Some(_), None) => {
                return Some(format!(
                    "; is the {name} a decimal {name}? Then say so in `format`: {}",
                    decimals(mark, self.thousands)
                ));
            }
            (None, Some(_)) => {
                return Some(format!(
                    "; is the {name} between thousands? Then say so in `format`: thousands = \
                     \"{mark}\""
                ));
            }
            (None, None) => {}
        }
        for (mark, name) in [('\'', "apostrophe"), (' ', "space"), ('_', "underscore")] {
            let german = grammar::written(text, ',', Some(mark)).is_some();
            if self.thousands != Some(mark) && (sample(mark).is_some() || german) {
                let comma = if german && sample(mark).is_none() && self.decimal == '.' {
                    ", decimal = \",\""
                } else {
                    ""
                };
                return Some(format!(
                    "; is the {name} between thousands? Then say so in `format`: thousands = \
                     \"{mark}\"{comma}"
                ));
            }
        }
        for (decimal, thousands) in [('.', ','), (',', '.')] {
            if grammar::written(text, decimal, Some(thousands)).is_some() {
                return Some(format!(
                    "; say in `format` which marks it has: decimal = \"{decimal}\", thousands = \
                     \"{thousands}\""
                ));
            }
        }
        None
    }

    /// Returns what to say of a number that is none to compute with, or has something around it.
    fn no_plain_number(&self, text: &str) -> Option<String> {
        let plain = folded(text);
        let lower = plain.to_lowercase();
        let size = lower.trim_start_matches(['+', '-']);
        if matches!(
            size,
            "inf" | "infinity" | "infinite" | "\u{221e}" | "1.#inf"
        ) {
            return Some(", and an infinite one cannot be computed with".into());
        }
        if size.strip_prefix("0x").is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_hexdigit())
        }) {
            return Some(", in decimal digits".into());
        }
        if grammar::plain(&plain, self.decimal, self.thousands.map(spaces)).is_some() {
            return Some(", and this one is too large to compute with".into());
        }
        let found = self.around(text)?;
        Some(match (found.bound, found.unit) {
            (Some(_), _) => format!(", not a bound{BOUND}"),
            (None, unit) => format!(", without {:?}{UNIT}", unit.unwrap_or_default()),
        })
    }

    /// A number in one notation, so that `1,0` and `1.0` are equal; any other text unchanged.
    pub fn plain(&self, text: &str) -> String {
        let text = self.pointed(text).unwrap_or_else(|| text.to_owned());
        super::number(&text).map_or(text, |number| number.to_string())
    }

    /// Returns whether a cell means that the value is missing: it is one of the marks, or the same number as a mark
    /// that is a number, however many decimals the file writes.
    pub fn is_missing(&self, text: &str) -> bool {
        self.marks(&self.missing, text.trim())
    }

    /// Returns whether a text without blanks around it is one of these marks.
    fn marks(&self, marks: &[String], text: &str) -> bool {
        let same = |missing: &String| trimmed(missing).eq_ignore_ascii_case(text);
        let number = |mark: &String| self.is_mark(trimmed(mark), text);
        marks.iter().any(same) || (is_bare(text) && marks.iter().any(number))
    }

    /// Returns whether a number is the one that a mark of a missing value writes.
    fn is_mark(&self, mark: &str, text: &str) -> bool {
        // Looked at for every number of a file: the usual marks end with no digit.
        let ends = mark.ends_with(|letter: char| letter.is_ascii_digit());
        let mark = Some(mark).filter(|mark| ends && is_bare(mark));
        let mark = mark.and_then(|mark| super::number(mark).or_else(|| self.number(mark)));
        mark.is_some_and(|mark| self.number(text) == Some(mark))
    }

    /// Returns whether a mark of a missing value is one by default only, and could be a value as well.
    pub fn is_guess(&self, text: &str) -> bool {
        let text = text.trim();
        let usual = MISSING.iter().any(|mark| mark.eq_ignore_ascii_case(text));
        usual && self.has_default_marks() && !PLAIN.contains(&text)
    }

    /// Returns whether numbers and missing values are written as in another format.
    pub fn writes_as(&self, other: &Self) -> bool {
        self.decimal == other.decimal
            && self.thousands == other.thousands
            && self.missing == other.missing
    }
}

/// A mark without the spaces around it. It is looked at for every cell of a file, and hardly any has some.
fn trimmed(mark: &str) -> &str {
    let odd = |byte: &u8| !byte.is_ascii_graphic();
    let bytes = mark.as_bytes();
    match bytes.first().is_some_and(odd) || bytes.last().is_some_and(odd) {
        true => mark.trim(),
        false => mark,
    }
}

/// Returns whether a text has what numbers have and nothing else, and is not a code that looks like a number, as
/// `007` and `4E2` do.
fn is_bare(text: &str) -> bool {
    let digits = text.trim_start_matches(['-', '+', '\u{2212}']);
    let mut letters = digits.chars();
    let (first, second) = (letters.next(), letters.next());
    let padded = first == Some('0') && second.is_some_and(|second| second.is_ascii_digit());
    let power = digits.contains(['e', 'E']) && !digits.contains(['.', ',', '+', '-']);
    // As large as no code: what a program writes where it has no number.
    let huge = power && digits.parse::<f64>().is_ok_and(|value| value >= 1e15);
    let known = |letter: char| letter.is_ascii_digit() || "+-.,'_eE ".contains(letter);
    first.is_some_and(|first| first.is_ascii_digit() || matches!(first, '.' | ','))
        && !padded
        && (!power || huge)
        && digits.chars().all(known)
}

/// UTF-16 without a mark at its beginning, by the zero bytes of its ASCII letters.
pub fn by_zero_bytes(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(2000) & !1];
    let zeros = |first: usize| {
        let own = head.iter().skip(first).step_by(2);
        own.filter(|byte| **byte == 0).count()
    };
    let (even, odd) = (zeros(0), zeros(1));
    let many = head.len() / 4;
    match (even, odd) {
        _ if head.is_empty() => None,
        (0, odd) if odd > many => Some(encoding_rs::UTF_16LE),
        (even, 0) if even > many => Some(encoding_rs::UTF_16BE),
        _ => None,
    }
}

/// The mark of thousands, with one space for all kinds.
fn spaces(mark: char) -> char {
    if is_space(mark) { ' ' } else { mark }
}

/// Returns how a decimal mark is written in `format`.
fn decimals(mark: char, thousands: Option<char>) -> String {
    if thousands == Some(mark) {
        format!("decimal = \"{mark}\" without `thousands`")
    } else {
        format!("decimal = \"{mark}\"")
    }
}

#[cfg(test)]
mod tests;
