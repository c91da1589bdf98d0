//! Printed form of an answer: tables of named columns, after small cells are suppressed.
//!
//! One sheet has the same cells as text, CSV and JSON; only their digits differ.

mod baselines;
pub mod curves;
mod models;
mod tables;
mod trees;

use std::fmt::Write;

use serde::{Serialize, Serializer};

use crate::{FederatedQuestion, FirstCounts, Outcome, QuestionMode};

/// The level of printed intervals.
pub const LEVEL: f64 = 0.95;

/// One cell.
#[derive(Debug, Clone, PartialEq)]
pub enum PrintedCell {
    /// A name.
    Text(String),
    /// A whole number.
    Count(f64),
    /// A number.
    Number(f64),
    /// A number that is printed with all its digits, such as a time of a grid.
    Exact(f64),
    /// A p-value.
    Probability(f64),
    /// A count that is not printed, because it or another one is small.
    Suppressed,
    /// Nothing to print.
    Nothing,
}

impl PrintedCell {
    /// A number, if there is one.
    pub fn number(number: Option<f64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }

    /// Text of a cell for people.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(count) => grouped(*count),
            Self::Number(number) => significant(*number),
            Self::Exact(number) => number.to_string(),
            Self::Probability(p) if *p < 0.0001 => "< 0.0001".to_owned(),
            Self::Probability(p) => format!("{p:.4}"),
            Self::Suppressed => "·".to_owned(),
            Self::Nothing => String::new(),
        }
    }

    /// Text of a cell for programs: all digits, and nothing for what is not printed.
    pub fn exact(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Count(number)
            | Self::Number(number)
            | Self::Exact(number)
            | Self::Probability(number) => number.to_string(),
            Self::Suppressed | Self::Nothing => String::new(),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_))
    }
}

impl Serialize for PrintedCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Count(count) => serializer.serialize_i64(*count as i64),
            Self::Number(number) | Self::Exact(number) | Self::Probability(number) => {
                serializer.serialize_f64(*number)
            }
            Self::Suppressed => serializer.serialize_str("suppressed"),
            Self::Nothing => serializer.serialize_none(),
        }
    }
}

/// A table of cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrintedTable {
    /// Its name for programs, in snake case.
    pub name: String,
    /// Its title for people.
    pub title: String,
    /// The names of the columns for programs, in snake case.
    pub columns: Vec<String>,
    /// The names of the columns for people.
    #[serde(skip)]
    pub header: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<PrintedCell>>,
    /// Remarks on them, in sentences without a full stop.
    pub notes: Vec<String>,
}

impl PrintedTable {
    /// A sheet of these columns, each with its name for programs and for people.
    fn new(name: &str, title: &str, columns: &[(&str, &str)]) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            header: columns
                .iter()
                .map(|(_, header)| (*header).to_owned())
                .collect(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn column(&mut self, name: &str, header: &str) {
        self.columns.push(name.to_owned());
        self.header.push(header.to_owned());
    }

    /// The sheet as text, in columns.
    pub fn text(&self) -> String {
        let cells: Vec<Vec<String>> = self
            .rows
            .iter()
            .map(|row| row.iter().map(PrintedCell::text).collect())
            .collect();
        let width = |at: usize| {
            let all = cells
                .iter()
                .filter_map(|row| row.get(at))
                .chain(self.header.get(at));
            all.map(|text| text.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.header.len()).map(width).collect();
        let left = |at: usize| {
            self.rows
                .iter()
                .all(|row| row.get(at).is_none_or(PrintedCell::is_text))
        };
        let line = |cells: &[String]| {
            let padded = cells.iter().enumerate().map(|(at, text)| {
                let blank = " ".repeat(widths[at] - text.chars().count());
                if left(at) {
                    format!("{text}{blank}")
                } else {
                    format!("{blank}{text}")
                }
            });
            format!("  {}", padded.collect::<Vec<_>>().join("  "))
                .trim_end()
                .to_owned()
        };
        let mut text = format!("{}:\n{}\n", self.title, line(&self.header));
        for row in &cells {
            let _ = writeln!(text, "{}", line(row));
        }
        text
    }

    /// The sheet as CSV, with a line of names.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| {
            if text.contains([',', '"', '\n']) {
                format!("\"{}\"", text.replace('"', "\"\""))
            } else {
                text.to_owned()
            }
        };
        let line = |cells: Vec<String>| {
            cells
                .iter()
                .map(|cell| quoted(cell))
                .collect::<Vec<_>>()
                .join(",")
                + "\n"
        };
        let rows = self
            .rows
            .iter()
            .map(|row| line(row.iter().map(PrintedCell::exact).collect()));
        line(self.columns.clone()) + &rows.collect::<String>()
    }
}

/// The sheets of an answer. Small cells are suppressed.
pub fn sheets(
    question: &FederatedQuestion,
    counts: &FirstCounts,
    outcome: &Outcome,
) -> Vec<PrintedTable> {
    // Noise hides small cells already.
    let smallest = match question.mode {
        QuestionMode::Masked | QuestionMode::Clear => question.rules.smallest_cell,
        QuestionMode::Noised => 0,
    };
    let mut sheets = vec![rows(counts, smallest)];
    match outcome {
        Outcome::Describe(found) => sheets.push(tables::described(found, smallest)),
        Outcome::Quantiles(found) => sheets.push(tables::quantiles(found)),
        Outcome::Crosstab(found) => sheets.extend(tables::crosstab(found, smallest)),
        Outcome::Correlate(found) => sheets.extend(tables::correlations(found)),
        Outcome::Km(found) => {
            sheets.extend(curves::survival(found, question.rules.smallest_cell));
        }
        Outcome::Logrank(found) => sheets.extend(curves::logrank(found)),
        Outcome::Cox(found) => sheets.extend(models::cox(found)),
        Outcome::Glm(found) => sheets.extend(models::glm(found)),
        Outcome::Meta(found) => sheets.extend(models::meta(found)),
        Outcome::Mixed(found) => sheets.extend(models::mixed(found)),
        Outcome::Trees(found) => sheets.extend(trees::boosted(found)),
        Outcome::Baselines(found) => sheets.extend(baselines::compared(found)),
    }
    if question.mode == QuestionMode::Noised && !errors_contain_noise(outcome) {
        // Tests compare with chance alone, and noise is more.
        sheets.retain(|sheet| !sheet.columns.iter().any(|column| column == "p_value"));
    }
    sheets
}

/// Returns whether the errors of an answer with noise are those of chance and noise together.
fn errors_contain_noise(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Glm(_) | Outcome::Logrank(_) | Outcome::Correlate(_)
    )
}

/// Returns what noise of this standard deviation in the numbers of the last sum does to an answer, in a sentence without a
/// full stop.
pub fn said_of_noise(outcome: &Outcome, deviation: f64) -> String {
    let means = match outcome {
        Outcome::Glm(_) => {
            "standard errors, intervals and p-values contain it, and the table says which part of a variance it is"
        }
        Outcome::Correlate(_) => {
            "the table says how much of it is in each mean and standard deviation"
        }
        Outcome::Logrank(_) => "the test contains it, and counts may be negative",
        _ => {
            "sums of values scaled to ±1 have as much: counts may be negative, and intervals are of chance alone"
        }
    };
    format!(
        "every number of the last round has noise with a standard deviation of {deviation:.2}; {means}"
    )
}

/// The counts of the first round.
fn rows(counts: &FirstCounts, smallest: u64) -> PrintedTable {
    let columns = [
        ("sites", "sites"),
        ("rows", "rows"),
        ("complete", "complete"),
        ("missing", "missing"),
        ("outside", "out of range"),
    ];
    let mut sheet = PrintedTable::new("rows", "Rows", &columns);
    let missing = counts.rows - counts.complete - counts.outside;
    let counted = [
        counts.sites,
        counts.rows,
        counts.complete,
        missing,
        counts.outside,
    ];
    let mut cells = counted.map(PrintedCell::Count).to_vec();
    if let Some(events) = counts.events {
        sheet.column("events", "events");
        let few = events > 0.0 && events < smallest as f64;
        cells.push(if few {
            PrintedCell::Suppressed
        } else {
            PrintedCell::Count(events)
        });
    }
    sheet.rows.push(cells);
    sheet
}

/// A count with commas between thousands.
fn grouped(count: f64) -> String {
    let digits = format!("{:.0}", count.abs());
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if count < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// A number with four significant digits, or all before its point.
fn significant(number: f64) -> String {
    if !number.is_finite() {
        return "not defined".to_owned();
    }
    let size = number.abs();
    let before = if size >= 1.0 {
        libm::log10(size).floor() as i32 + 1
    } else {
        0
    };
    let after = if size > 0.0 && size < 0.001 {
        6
    } else {
        (4 - before).clamp(0, 4)
    };
    let text = format!("{size:.0$}", after.unsigned_abs() as usize);
    let zero = !text.contains(|letter: char| ('1'..='9').contains(&letter));
    if number < 0.0 && !zero {
        format!("−{text}")
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits_and_counts_have_commas() {
        let texts = [
            1234.6,
            12.345,
            0.12345,
            -0.5,
            0.000_123_4,
            -0.000_000_01,
            0.0,
        ]
        .map(significant);
        assert_eq!(
            texts,
            [
                "1235",
                "12.35",
                "0.1235",
                "−0.5000",
                "0.000123",
                "0.000000",
                "0.0000"
            ]
        );
        assert_eq!(
            [999.0, 1000.0, 1_234_567.0].map(grouped),
            ["999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn a_sheet_has_the_same_cells_in_every_form() {
        let mut sheet = PrintedTable::new(
            "s",
            "PrintedTable",
            &[("term", "term"), ("n", "rows"), ("p_value", "p")],
        );
        sheet.rows.push(vec![
            PrintedCell::Text("a, b".to_owned()),
            PrintedCell::Count(1200.0),
            PrintedCell::Probability(0.00001),
        ]);
        sheet.rows.push(vec![
            PrintedCell::Text("c".to_owned()),
            PrintedCell::Suppressed,
            PrintedCell::Nothing,
        ]);
        assert_eq!(sheet.csv(), "term,n,p_value\n\"a, b\",1200,0.00001\nc,,\n");
        assert!(
            sheet.text().contains("  a, b  1,200  < 0.0001\n"),
            "{}",
            sheet.text()
        );
        let json = serde_json::to_value(&sheet).unwrap_or_default();
        assert_eq!(
            json["rows"][1],
            serde_json::json!(["c", "suppressed", null])
        );
    }
}
