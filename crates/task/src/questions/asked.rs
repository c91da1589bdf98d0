//! Questions about rows, where they are asked, and their answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::counted::rows_that;
use crate::data::number;
use crate::typed::{typed, typed_pair};

/// What a person has answered about the rows of files, by the agreed names of columns.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RowAnswers {
    /// For each column, numbers that look as if they stood for a missing value, and are measured ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keep: BTreeMap<String, Vec<String>>,
    /// Columns that behave like the number of a person or case, and are something to learn from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learn: Vec<String>,
}

impl RowAnswers {
    /// Returns whether a person said that this number of a column is a measured one.
    pub fn keeps(&self, column: &str, value: f64) -> bool {
        let same = |text: &String| number(text) == Some(value);
        self.keep
            .get(column)
            .is_some_and(|kept| kept.iter().any(same))
    }

    /// Returns whether a question is answered.
    pub fn answers(&self, question: &RowQuestion) -> bool {
        match question.doubt {
            RowDoubt::StandIn(value) => self.keeps(&question.column, value),
            RowDoubt::Identifier => self.learns(&question.column),
        }
    }

    /// Returns whether a person said that this column is something to learn from.
    pub fn learns(&self, column: &str) -> bool {
        self.learn.iter().any(|name| name == column)
    }

    /// Takes an answer `COLUMN=VALUE` or `COLUMN`: that a number is a measured one, or that a column is something to
    /// learn from.
    pub fn add(&mut self, column: &str, value: Option<&str>) {
        let known = match value {
            Some(_) => self.keep.entry(column.to_owned()).or_default(),
            None => &mut self.learn,
        };
        let text = value.unwrap_or(column).to_owned();
        if !known.contains(&text) {
            known.push(text);
        }
    }

    /// Takes the answer that a number is a measured one, or that a column is something to learn from.
    pub fn answer(&mut self, question: &RowQuestion) {
        match question.doubt {
            RowDoubt::StandIn(value) => self.add(&question.column, Some(&value.to_string())),
            RowDoubt::Identifier => self.add(&question.column, None),
        }
    }

    /// Takes all answers of another one, too.
    pub fn extend(&mut self, more: &Self) {
        for (column, values) in &more.keep {
            values
                .iter()
                .for_each(|value| self.add(column, Some(value)));
        }
        more.learn.iter().for_each(|column| self.add(column, None));
    }
}

/// Subject of a question about a column.
#[derive(Debug, Clone, PartialEq)]
pub enum RowDoubt {
    /// This number may stand for a missing value.
    StandIn(f64),
    /// The column may say whose a row is.
    Identifier,
}

/// One question to a person.
#[derive(Debug, Clone, PartialEq)]
pub struct RowQuestion {
    /// The column, by its agreed name.
    pub column: String,
    /// Subject of the question.
    pub doubt: RowDoubt,
    /// Finding, as a sentence without a full stop.
    pub what: String,
}

/// Place where a question is asked, which decides how it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedAt {
    /// A description of a table is drafted.
    Draft,
    /// A scenario is simulated.
    Scenario,
    /// An institution brings its rows to columns that are agreed on.
    Member,
    /// An institution has a `node.toml`.
    Node,
}

impl RowQuestion {
    pub(crate) fn stand_in(column: &str, (value, rows): (f64, usize)) -> Self {
        Self {
            column: column.to_owned(),
            doubt: RowDoubt::StandIn(value),
            what: format!(
                "column {column:?}: {} {value}, unlike all other numbers of the column",
                rows_that(rows, "hold")
            ),
        }
    }

    /// The question with what answers it there, in one sentence without a full stop.
    pub fn at(&self, at: AskedAt) -> String {
        let (what, column) = (&self.what, &self.column);
        let answer = match self.doubt {
            RowDoubt::StandIn(value) => {
                let (missing, measured) = match at {
                    AskedAt::Draft => {
                        let pair = typed_pair(column, value);
                        (
                            format!("say --missing-mark={pair}"),
                            format!("--keep {pair}"),
                        )
                    }
                    AskedAt::Member => (
                        format!(
                            "say --missing {} {}",
                            typed(column),
                            typed(&value.to_string())
                        ),
                        format!("--keep {}", typed_pair(column, value)),
                    ),
                    AskedAt::Scenario => (
                        format!(
                            "write `missing = {{ {column:?} = [\"{value}\"] }}` in `names` of its file"
                        ),
                        format!(
                            "`answers = {{ keep = {{ {column:?} = [\"{value}\"] }} }}` below \
                             [task.table.data.rows]"
                        ),
                    ),
                    AskedAt::Node => (
                        format!(
                            "write `missing = {{ {column:?} = [\"{value}\"] }}` below [data.rows.names] of node.toml"
                        ),
                        format!(
                            "`keep = {{ {column:?} = [\"{value}\"] }}` below [data.rows.answers]"
                        ),
                    ),
                };
                format!(
                    "if that stands for a missing value, {missing}; if it is measured, {measured}"
                )
            }
            RowDoubt::Identifier => match at {
                AskedAt::Draft => {
                    let column = typed(column);
                    format!(
                        "if it says whose a row is, say --group {column}, and all rows of one stay together; to learn \
                         from it all the same, --number {column} or --category {column}; to leave it out, --drop \
                         {column}"
                    )
                }
                AskedAt::Scenario => format!(
                    "if it says whose a row is, write `group = {column:?}` in `split`, and take it out of what is \
                     learned from (`ignore`, `drop`, or the schema); to learn from it all the same, write `answers \
                     = {{ learn = [{column:?}] }}` below [task.table.data.rows]"
                ),
                AskedAt::Member | AskedAt::Node => {
                    let learn = match at {
                        AskedAt::Node => {
                            format!(
                                "write `learn = [{column:?}]` below [data.rows.answers] of node.toml"
                            )
                        }
                        _ => format!("say --keep {}", typed(column)),
                    };
                    format!(
                        "the agreement learns from it; if it says whose a row is, do not sign, and ask for an \
                         agreement that has `group = {column:?}` in `split` and does not learn from it; if it is \
                         right as it is, {learn}"
                    )
                }
            },
        };
        format!("{what}: {answer}")
    }
}

/// Questions that nobody has answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unanswered {
    /// Each with what answers it, in a sentence without a full stop.
    pub sentences: Vec<String>,
    /// Those of them that can be asked at a terminal.
    pub questions: Vec<RowQuestion>,
}

impl Unanswered {
    /// These questions where they are asked; `None` where there are none.
    pub fn at(at: AskedAt, questions: Vec<RowQuestion>) -> Option<Self> {
        let sentences = questions.iter().map(|question| question.at(at));
        let sentences: Vec<String> = sentences.collect();
        (!sentences.is_empty()).then_some(Self {
            sentences,
            questions,
        })
    }
}

impl fmt::Display for Unanswered {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        text.write_str(&self.sentences.join("\n"))
    }
}
