//! Answers to the questions of a schema, as `rota ask --json` and `rota federation answers --json` print them: with
//! small cells suppressed.

use std::collections::BTreeMap;

use questions::QuestionMode;
use serde::Deserialize;
use serde_json::Value;
use task::schema::{ReadCells, Schema};

/// The name of the level of missing values in a table of counts.
const MISSING: &str = "(missing)";

/// Why a file has no answers.
#[derive(Debug, thiserror::Error)]
#[error(
    "{file} has no answers ({why}): give what `rota ask QUESTION.toml --json` or `rota federation answers --json` \
     prints"
)]
pub struct AnswerFileError {
    /// The file.
    file: String,
    /// The reason.
    why: String,
}

/// One answer of a federation.
#[derive(Deserialize)]
struct SavedNodeAnswer {
    number: usize,
    mode: QuestionMode,
    state: String,
    answer: Vec<SavedTable>,
}

/// The answer that a process played.
#[derive(Deserialize)]
struct SavedPlayedAnswer {
    answer: Vec<SavedTable>,
}

/// A printed table.
#[derive(Deserialize)]
struct SavedTable {
    name: String,
    title: String,
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

/// The rows that an answer is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AnsweredRowCounts {
    /// Where the answer stands, for sentences.
    pub(super) source: String,
    /// Sites that answered.
    pub(super) sites: u64,
    /// All their rows.
    pub(super) rows: u64,
    /// Rows with a value beyond what some column of the question was asked for.
    pub(super) outside: u64,
}

/// Known quantiles, counts and moments of a column of numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnQuantiles {
    pub(super) of: AnsweredRowCounts,
    /// Rows with a number within the range that was asked for.
    pub(super) known: u64,
    /// Probability, quantile, and the width of its bin, by probability.
    pub(super) quantiles: Vec<[f64; 3]>,
}

/// The mean of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnMean {
    pub(super) of: AnsweredRowCounts,
    pub(super) known: u64,
    pub(super) mean: f64,
    /// The standard deviation, with n − 1.
    pub(super) deviation: f64,
}

/// Printed count of the rows of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelRows {
    /// All its rows.
    Total(u64),
    /// The rows of those cells that are printed.
    AtLeast(u64),
    /// No cell with rows is printed.
    Hidden,
}

/// Known counts of a column of levels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ColumnLevels {
    pub(super) of: AnsweredRowCounts,
    /// The columns of the question.
    pub(super) asked: String,
    /// The levels that were asked for.
    pub(super) levels: BTreeMap<String, LevelRows>,
    /// Rows without a value, or with another level.
    pub(super) missing: LevelRows,
}

/// Answers to the questions of a schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SchemaAnswers {
    pub(super) quantiles: BTreeMap<String, ColumnQuantiles>,
    pub(super) means: BTreeMap<String, ColumnMean>,
    pub(super) levels: BTreeMap<String, ColumnLevels>,
    /// Tables that were read and are not used, in sentences without a full stop.
    pub(super) unused: Vec<String>,
}

impl SchemaAnswers {
    /// Returns whether nothing was read that settles anything.
    pub fn is_empty(&self) -> bool {
        self.quantiles.is_empty() && self.means.is_empty() && self.levels.is_empty()
    }

    /// Adds the answers in the text of a file about columns of a schema; a later one about the same column replaces
    /// an earlier one.
    ///
    /// # Errors
    /// [`AnswerFileError`]: the text is no answer, or the answer of another version.
    pub fn add(&mut self, file: &str, text: &str, schema: &Schema) -> Result<(), AnswerFileError> {
        let wrong = |why: String| AnswerFileError {
            file: file.to_owned(),
            why,
        };
        let broken = |error: serde_json::Error| wrong(error.to_string());
        let value: Value = serde_json::from_str(text).map_err(broken)?;
        let mut answers = Vec::new();
        if value.is_array() {
            let nodes: Vec<SavedNodeAnswer> = serde_json::from_value(value).map_err(broken)?;
            for answer in nodes {
                let source = format!("question {}", answer.number);
                match (&*answer.state, answer.mode) {
                    // With noise a rare level cannot be told from an absent one.
                    ("answered", QuestionMode::Noised) => self.unused.push(format!(
                        "{source} of {file} was answered with noise, by which no schema is settled"
                    )),
                    ("answered", QuestionMode::Masked | QuestionMode::Clear) => {
                        answers.push((source, answer.answer));
                    }
                    (state, _) => self
                        .unused
                        .push(format!("{source} of {file} has no answer (`{state}`)")),
                }
            }
        } else {
            let played: SavedPlayedAnswer = serde_json::from_value(value).map_err(broken)?;
            answers.push((file.to_owned(), played.answer));
        }
        for (source, tables) in answers {
            self.add_answer(source, &tables, schema)
                .ok_or_else(|| wrong("a table lacks columns that it should have".to_owned()))?;
        }
        Ok(())
    }

    /// Adds an answer; `None` if a table lacks what `rota` prints.
    fn add_answer(&mut self, source: String, tables: &[SavedTable], schema: &Schema) -> Option<()> {
        let rows = tables.iter().find(|table| table.name == "rows")?;
        let count = |name: &str| rows.number(0, name).map(|number| number as u64);
        let of = AnsweredRowCounts {
            source,
            sites: count("sites")?,
            rows: count("rows")?,
            outside: count("outside")?,
        };
        for table in tables {
            match &*table.name {
                "quantiles" => self.add_quantiles(&of, table)?,
                "columns" => self.add_means(&of, table)?,
                "counts" => self.add_counts(&of, table, schema)?,
                _ => {}
            }
        }
        Some(())
    }

    fn add_quantiles(&mut self, of: &AnsweredRowCounts, table: &SavedTable) -> Option<()> {
        let mut found: BTreeMap<String, ColumnQuantiles> = BTreeMap::new();
        for row in 0..table.rows.len() {
            let number = |name: &str| table.number(row, name);
            let column = found.entry(table.text(row, "column")?.to_owned());
            let known = number("n")? as u64;
            let column = column.or_insert_with(|| ColumnQuantiles {
                of: of.clone(),
                known,
                quantiles: Vec::new(),
            });
            let quantile = [number("probability")?, number("value")?, number("within")?];
            column.quantiles.push(quantile);
        }
        for column in found.values_mut() {
            column.quantiles.sort_by(|a, b| a[0].total_cmp(&b[0]));
        }
        self.quantiles.extend(found);
        Some(())
    }

    fn add_means(&mut self, of: &AnsweredRowCounts, table: &SavedTable) -> Option<()> {
        if table.place("group").is_some() {
            let unused = format!("the means by group of {} settle nothing", of.source);
            self.unused.push(unused);
            return Some(());
        }
        for row in 0..table.rows.len() {
            let column = table.text(row, "column")?;
            let number = |name: &str| table.number(row, name);
            // Suppressed where few rows have a value.
            let (Some(known), Some(mean), Some(deviation)) =
                (number("n"), number("mean"), number("standard_deviation"))
            else {
                continue;
            };
            let mean = ColumnMean {
                of: of.clone(),
                known: known as u64,
                mean,
                deviation,
            };
            self.means.insert(column.to_owned(), mean);
        }
        Some(())
    }

    fn add_counts(
        &mut self,
        of: &AnsweredRowCounts,
        table: &SavedTable,
        schema: &Schema,
    ) -> Option<()> {
        let Some([rows, columns]) = crossed(&table.title, schema) else {
            let unused = format!(
                "{} has a table \"{}\", and these are no columns of levels or classes of the schema",
                of.source, table.title
            );
            self.unused.push(unused);
            return Some(());
        };
        let levels = LevelTable::of(table)?;
        let asked = match rows == columns {
            true => rows.clone(),
            false => format!("{rows} and {columns}"),
        };
        for (column, mut counted) in [(columns, levels.by_column()), (rows, levels.by_row())] {
            let missing = counted.pop()?.1;
            let levels = ColumnLevels {
                of: of.clone(),
                asked: asked.clone(),
                levels: counted.into_iter().collect(),
                missing,
            };
            self.levels.insert(column, levels);
        }
        Some(())
    }
}

impl SavedTable {
    fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    fn cell(&self, row: usize, column: &str) -> Option<&Value> {
        self.rows.get(row)?.get(self.place(column)?)
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        self.cell(row, column)?.as_f64()
    }

    fn text(&self, row: usize, column: &str) -> Option<&str> {
        self.cell(row, column)?.as_str()
    }
}

/// The columns of a table of counts, by its title: columns of levels or classes of the schema.
fn crossed(title: &str, schema: &Schema) -> Option<[String; 2]> {
    let is_levels = |cells| matches!(cells, ReadCells::Levels(_));
    let features = schema.columns();
    let mut names: Vec<&str> = features
        .filter(|(_, feature)| is_levels(feature.kind.cells()))
        .map(|(name, _)| name)
        .collect();
    if schema.target.classes.is_some() {
        names.extend(schema.target.name.iter());
    }
    let pairs = names
        .iter()
        .flat_map(|rows| names.iter().map(move |columns| (*rows, *columns)));
    let mut pairs = pairs.filter(|(rows, columns)| format!("{rows} by {columns}") == title);
    pairs
        .next()
        .map(|(rows, columns)| [rows.to_owned(), columns.to_owned()])
}

/// A printed table of counts: levels of both columns, missing values last, and totals where they are printed.
struct LevelTable<'a> {
    /// Names of the levels by row, and by column.
    names: [Vec<&'a str>; 2],
    /// Counts by row and column; `None` where one is suppressed.
    counts: Vec<Vec<Option<u64>>>,
    /// Totals of rows, and of columns, where they are printed.
    totals: [Option<Vec<u64>>; 2],
}

impl<'a> LevelTable<'a> {
    fn of(table: &'a SavedTable) -> Option<Self> {
        let heads: Vec<&str> = table.columns.iter().map(String::as_str).collect();
        let width = heads.iter().rposition(|name| *name == MISSING)?;
        let firsts: Option<Vec<&str>> =
            table.rows.iter().map(|row| row.first()?.as_str()).collect();
        let firsts = firsts?;
        let height = firsts.iter().rposition(|name| *name == MISSING)? + 1;
        let cells = |row: &'a Vec<Value>| row.iter().map(Value::as_u64).collect::<Vec<_>>();
        let all: Vec<Vec<Option<u64>>> = table.rows.iter().map(cells).collect();
        let counts = all[..height]
            .iter()
            .map(|row| Some(row.get(1..=width)?.to_vec()))
            .collect::<Option<Vec<_>>>()?;
        let by_row: Option<Vec<u64>> = match heads.len() > width + 1 {
            true => all[..height]
                .iter()
                .map(|row| row.get(width + 1).copied().flatten())
                .collect(),
            false => None,
        };
        let below = all.get(height).and_then(|row| row.get(1..=width));
        let by_column: Option<Vec<u64>> = below.and_then(|row| row.iter().copied().collect());
        Some(Self {
            names: [firsts[..height].to_vec(), heads[1..=width].to_vec()],
            counts,
            totals: [by_row, by_column],
        })
    }

    fn by_row(&self) -> Vec<(String, LevelRows)> {
        let level = |(at, name): (usize, &&str)| {
            let total = self.totals[0].as_ref().map(|totals| totals[at]);
            let rows = total.map_or_else(|| printed(self.counts[at].iter()), LevelRows::Total);
            ((*name).to_owned(), rows)
        };
        self.names[0].iter().enumerate().map(level).collect()
    }

    fn by_column(&self) -> Vec<(String, LevelRows)> {
        let level = |(at, name): (usize, &&str)| {
            let total = self.totals[1].as_ref().map(|totals| totals[at]);
            let cells = || self.counts.iter().map(|row| &row[at]);
            let rows = total.map_or_else(|| printed(cells()), LevelRows::Total);
            ((*name).to_owned(), rows)
        };
        self.names[1].iter().enumerate().map(level).collect()
    }
}

/// Returns the rows of a level by its printed cells.
fn printed<'a>(cells: impl Iterator<Item = &'a Option<u64>>) -> LevelRows {
    let (mut sum, mut suppressed) = (0, false);
    for cell in cells {
        sum += cell.unwrap_or(0);
        suppressed |= cell.is_none();
    }
    match (sum, suppressed) {
        (_, false) => LevelRows::Total(sum),
        (0, true) => LevelRows::Hidden,
        (_, true) => LevelRows::AtLeast(sum),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SCHEMA: &str = "target = { name = \"end\", classes = [\"home\", \"died\"] }\n\
                          [[feature]]\nname = \"age\"\n\
                          [[feature]]\nname = \"ward\"\ntype = \"category\"\nlevels = [\"a\", \"b\", \"c\"]\n";
    const ROWS: &str = r#"{"name": "rows", "title": "Rows", "columns": ["sites", "rows", "complete", "missing", "outside"],
                          "rows": [[4, 410, 386, 24, 3]], "notes": []}"#;

    fn schema() -> Schema {
        toml::from_str(SCHEMA).unwrap()
    }

    fn read(tables: &str) -> SchemaAnswers {
        let text = format!(r#"{{"simulated": true, "answer": [{ROWS}, {tables}]}}"#);
        let mut answers = SchemaAnswers::default();
        answers.add("a.json", &text, &schema()).unwrap();
        answers
    }

    #[test]
    fn quantiles_are_sorted_by_probability() {
        let table = r#"{"name": "quantiles", "title": "Quantiles", "columns": ["column", "n", "probability", "value", "within"],
                        "rows": [["age", 386, 0.9, 80.5, 2.5], ["age", 386, 0.1, 30.0, 2.5]], "notes": []}"#;
        let answers = read(table);
        let age = &answers.quantiles["age"];
        assert_eq!((age.known, age.of.rows, age.of.sites), (386, 410, 4));
        assert_eq!(age.quantiles, [[0.1, 30.0, 2.5], [0.9, 80.5, 2.5]]);
    }

    #[test]
    fn levels_have_totals_or_what_is_printed() {
        let table = r#"{"name": "counts", "title": "ward by end", "columns": ["level", "home", "died", "(missing)", "total"],
                        "rows": [["a", 90, 60, 0, 150], ["b", "suppressed", 63, 0, 70], ["c", "suppressed", "suppressed", 0, 9],
                                 ["(missing)", 0, 0, 0, 0]], "notes": []}"#;
        let answers = read(table);
        let ward = &answers.levels["ward"];
        assert_eq!(ward.levels["a"], LevelRows::Total(150));
        assert_eq!(ward.levels["c"], LevelRows::Total(9));
        assert_eq!(ward.missing, LevelRows::Total(0));
        assert_eq!(ward.asked, "ward and end");
        let end = &answers.levels["end"];
        assert_eq!(end.levels["home"], LevelRows::AtLeast(90));
        assert_eq!(end.levels["died"], LevelRows::AtLeast(123));
        let without = table.replace(", \"total\"", "").replace(", 150]", "]");
        let without = without.replace(", 70]", "]").replace(", 9]", "]");
        let ward = &read(&without.replace("0, 0, 0, 0", "0, 0, 0")).levels["ward"];
        assert_eq!(ward.levels["a"], LevelRows::Total(150));
        assert_eq!(ward.levels["b"], LevelRows::AtLeast(63));
        assert_eq!(ward.levels["c"], LevelRows::Hidden);
    }

    #[test]
    fn a_column_with_itself_is_counted_on_the_diagonal() {
        let table = r#"{"name": "counts", "title": "ward by ward", "columns": ["level", "a", "b", "c", "(missing)", "total"],
                        "rows": [["a", 150, 0, 0, 0, 150], ["b", 0, 70, 0, 0, 70], ["c", 0, 0, 0, 0, 0],
                                 ["(missing)", 0, 0, 0, 8, 8], ["total", 150, 70, 0, 8]], "notes": []}"#;
        let ward = &read(table).levels["ward"];
        let rows = |level: &str| ward.levels[level];
        assert_eq!(
            [rows("a"), rows("b"), rows("c")],
            [150, 70, 0].map(LevelRows::Total)
        );
        assert_eq!((ward.missing, &*ward.asked), (LevelRows::Total(8), "ward"));
    }

    #[test]
    fn exact_answers_of_nodes_are_read_and_others_are_named() {
        let table = r#"{"name": "columns", "title": "Columns", "columns": ["column", "n", "missing", "mean", "standard_deviation"],
                        "rows": [["age", 386, 24, 61.5, 12.0], ["bmi", "suppressed", "suppressed", "suppressed", "suppressed"]], "notes": []}"#;
        let text = format!(
            r#"[{{"number": 1, "mode": "clear", "state": "open", "answer": []}},
                {{"number": 2, "mode": "secure-aggregation", "state": "answered", "answer": [{ROWS}, {table}]}},
                {{"number": 3, "mode": "differential-privacy", "state": "answered", "answer": [{ROWS}, {table}]}}]"#
        );
        let mut answers = SchemaAnswers::default();
        answers.add("answers.json", &text, &schema()).unwrap();
        assert_eq!(answers.means.len(), 1);
        assert_eq!(answers.means["age"].of.source, "question 2");
        let unused = &answers.unused;
        assert_eq!(unused.len(), 2, "{unused:?}");
        assert!(
            unused[0].contains("`open`") && unused[1].contains("with noise"),
            "{unused:?}"
        );
    }

    #[test]
    fn what_is_no_answer_is_refused_and_other_tables_are_named() {
        let mut answers = SchemaAnswers::default();
        for wrong in ["{", "{\"answer\": []}", "[{\"number\": 1}]"] {
            let why = answers.add("a.json", wrong, &schema()).unwrap_err();
            assert!(
                why.to_string().starts_with("a.json has no answers"),
                "{why}"
            );
        }
        let table = r#"{"name": "counts", "title": "ward by nurse", "columns": ["level", "(missing)"], "rows": [], "notes": []}"#;
        assert!(read(table).unused[0].contains("ward by nurse"));
    }
}
