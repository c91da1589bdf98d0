//! The questions that a schema needs.

use std::collections::BTreeMap;

use questions::kinds::crosstab::Crosstab;
use questions::kinds::describe::Describe;
use questions::kinds::quantiles::Quantiles;
use questions::{AgreedColumns, FederatedQuestion, Kind};
use task::propose::outward;
use task::schema::{ClassValues, ColumnNames, ReadCells, Schema, TargetColumn};

use super::entries::{entries, push};
use crate::question::AgreedQuestion;

/// Bins of one round of quantiles. With a last bin as wide as the first ones, one round is enough, and 64 numbers of
/// each column are opened in place of several hundred.
const BINS: f64 = 64.0;
/// Columns of numbers of one question.
const COLUMNS: usize = 50;
/// Distance by which a question looks beyond the usual values, in multiples of theirs.
const BEYOND: f64 = 3.0;
/// Rows beyond an outer quantile that are wanted: twice the smallest cell.
const TAIL_ROWS: f64 = 10.0;
/// Shares of rows beyond an outer quantile, of which the smallest with enough rows is taken.
const TAILS: [f64; 8] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25];

/// A question about columns of a schema.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaQuestion {
    /// A name for its file, such as `quantiles` or `levels-2`.
    pub name: String,
    /// The question.
    pub agreed: AgreedQuestion,
}

impl SchemaQuestion {
    /// The question as the TOML of a file, with the default rules.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn text(&self) -> Result<String, String> {
        let mut head = entries(&self.agreed)?;
        let is_table = |key: &str| ["rules", "ranges", "levels"].contains(&key);
        head.retain(|(key, _)| !is_table(key));
        let mut text = String::new();
        push(&mut text, &head);
        let agreed = self.agreed.plain().agreed;
        for (name, table) in [
            ("ranges", toml::to_string(&agreed.ranges)),
            ("levels", toml::to_string(&agreed.levels)),
        ] {
            let table = table.map_err(|error| error.to_string())?;
            if !table.is_empty() {
                text += &format!("\n[{name}]\n{table}");
            }
        }
        Ok(text)
    }
}

/// The questions that a schema needs.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaQuestions {
    /// The questions.
    pub questions: Vec<SchemaQuestion>,
    /// Columns about which nothing is asked, with the reasons, in sentences without a full stop.
    pub left_out: Vec<String>,
}

/// Columns of numbers with the ranges in which they are asked for, and columns of classes with their values.
#[derive(Default)]
struct AskedColumns {
    numbers: Vec<(String, [f64; 2])>,
    classes: Vec<(String, Vec<String>)>,
    left_out: Vec<String>,
}

/// Returns the questions whose answers a schema can be settled by, for a federation with about `rows` rows.
///
/// Every column of classes stands in one table of counts alone, because rows that two tables count differently could
/// be few.
pub fn schema_questions(schema: &Schema, rows: u64) -> SchemaQuestions {
    let mut asked = AskedColumns::default();
    let target = asked.add_target(schema);
    asked.add_features(schema);
    let AskedColumns {
        numbers,
        classes,
        left_out,
    } = asked;
    let mut questions = Vec::new();
    let groups: Vec<_> = numbers.chunks(COLUMNS).collect();
    for (at, group) in groups.iter().enumerate() {
        let name = numbered("quantiles", at, groups.len());
        questions.push(quantiles(name, group, rows));
    }
    if let Some((column, range)) = target {
        questions.push(mean(column, range));
    }
    let pairs: Vec<_> = classes.chunks(2).collect();
    for (at, pair) in pairs.iter().enumerate() {
        questions.push(levels(numbered("levels", at, pairs.len()), pair));
    }
    SchemaQuestions {
        questions,
        left_out,
    }
}

fn numbered(name: &str, at: usize, count: usize) -> String {
    match count {
        1 => name.to_owned(),
        _ => format!("{name}-{}", at + 1),
    }
}

impl AskedColumns {
    /// Adds a column of numbers, if it is known where to look for them.
    fn add_number(
        &mut self,
        schema: &Schema,
        name: &str,
        agreed: Option<[f64; 2]>,
    ) -> Option<[f64; 2]> {
        let usual = schema.usual.get(name).copied();
        let range = agreed.or_else(|| usual.map(around));
        match range {
            Some(range) => self.numbers.push((name.to_owned(), range)),
            None => self.left_out.push(format!(
                "{name:?} has neither a `range` nor `usual` values, so it is not known where to look for its \
                 quantiles: add one of them to the schema, roughly"
            )),
        }
        range
    }

    /// Adds the column to predict. Returns it, if it is one number.
    fn add_target(&mut self, schema: &Schema) -> Option<(String, [f64; 2])> {
        let target = &schema.target;
        let ColumnNames::One(name) = &target.name else {
            let why = match target.survival {
                true => "the columns of a time to an event settle nothing",
                false => "several columns are predicted together: nothing is asked about them",
            };
            self.left_out.push(why.to_owned());
            return None;
        };
        if let Some(classes) = &target.classes {
            let values = classes.iter().flat_map(ClassValues::values).cloned();
            self.classes.push((name.clone(), values.collect()));
            return None;
        }
        let range = self.add_number(schema, name, target.range)?;
        is_predicted_number(target).then(|| (name.clone(), range))
    }

    fn add_features(&mut self, schema: &Schema) {
        for (name, feature) in schema.columns() {
            match feature.kind.cells() {
                ReadCells::Numbers { agreed, .. } => {
                    self.add_number(schema, name, agreed.range);
                }
                ReadCells::Levels(levels) => {
                    self.classes.push((name.to_owned(), levels.listed.clone()));
                }
                ReadCells::Days(_) => self.left_out.push(format!(
                    "{name:?} holds dates, of which there are no quantiles: its `since` and `until` stay"
                )),
            }
        }
    }
}

/// Returns whether a number is predicted, and not a class by a rule.
pub(super) fn is_predicted_number(target: &TargetColumn) -> bool {
    target.classes.is_none() && target.rule.is_none() && !target.mask
}

/// Where quantiles are looked for: around the usual values, and not below 0 where these are not.
fn around([low, high]: [f64; 2]) -> [f64; 2] {
    let reach = BEYOND * (high - low).max(0.1 * high.abs()).max(1e-9);
    let least = if low >= 0.0 {
        (low - reach).max(0.0)
    } else {
        low - reach
    };
    outward([least, high + reach])
}

/// Returns the share of rows beyond an outer quantile, for a federation of `rows` rows.
fn tail(rows: u64) -> f64 {
    let many = |tail: &&f64| rows as f64 * **tail >= TAIL_ROWS;
    *TAILS.iter().find(many).unwrap_or(&TAILS[TAILS.len() - 1])
}

/// Returns a question with its reason.
fn reasoned(name: String, reason: &str, kind: Kind, agreed: AgreedColumns) -> SchemaQuestion {
    let question = FederatedQuestion::new(kind, agreed);
    let agreed = AgreedQuestion::new(reason, &question);
    SchemaQuestion { name, agreed }
}

fn quantiles(name: String, numbers: &[(String, [f64; 2])], rows: u64) -> SchemaQuestion {
    let tail = tail(rows);
    let probabilities = match tail {
        ..0.1 => vec![tail, 0.1, 0.5, 0.9, 1.0 - tail],
        _ => vec![tail, 0.5, 1.0 - tail],
    };
    let widths = numbers.iter().map(|(_, [low, high])| high - low);
    let kind = Kind::Quantiles(Quantiles {
        columns: numbers.iter().map(|(column, _)| column.clone()).collect(),
        probabilities,
        width: Some(widths.fold(0.0, f64::max) / BINS),
    });
    let agreed = AgreedColumns {
        ranges: numbers.iter().cloned().collect(),
        levels: BTreeMap::new(),
    };
    let reason = "ranges and fillings of the agreement, from all institutions";
    reasoned(name, reason, kind, agreed)
}

fn mean(column: String, range: [f64; 2]) -> SchemaQuestion {
    let reason = format!("mean and variance of {column}: the error of a constant");
    let kind = Kind::Describe(Describe {
        columns: vec![column.clone()],
        group: None,
    });
    let agreed = AgreedColumns {
        ranges: BTreeMap::from([(column, range)]),
        levels: BTreeMap::new(),
    };
    reasoned("target".to_owned(), &reason, kind, agreed)
}

/// A table of counts of two columns; of one with itself where there is no other.
fn levels(name: String, pair: &[(String, Vec<String>)]) -> SchemaQuestion {
    let (first, last) = (&pair[0], &pair[pair.len() - 1]);
    let kind = Kind::Crosstab(Crosstab {
        rows: first.0.clone(),
        columns: last.0.clone(),
    });
    let agreed = AgreedColumns {
        ranges: BTreeMap::new(),
        levels: pair.iter().cloned().collect(),
    };
    let reason = match pair {
        [one] => format!("levels of {} in the agreement", one.0),
        _ => format!("levels of {} and {} in the agreement", first.0, last.0),
    };
    reasoned(name, &reason, kind, agreed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const SCHEMA: &str = "usual = { age = [40, 70], days = [2, 9] }\ntarget = { name = \"days\" }\n\
                          [[feature]]\nname = [\"age\", \"ph\"]\n\
                          [[feature]]\nname = \"bp\"\nrange = [60.0, 200.0]\n\
                          [[feature]]\nname = \"ward\"\ntype = \"category\"\nlevels = [\"a\", \"b\"]\n\
                          [[feature]]\nname = \"stage\"\ntype = \"category\"\nlevels = [\"I\", \"II\"]\n\
                          [[feature]]\nname = \"sex\"\ntype = \"category\"\nlevels = [\"f\", \"m\"]\n\
                          [[feature]]\nname = \"day\"\ntype = \"date\"\nsince = \"2020-01-01\"\n";

    fn asked(text: &str, rows: u64) -> SchemaQuestions {
        schema_questions(&toml::from_str(text).unwrap(), rows)
    }

    #[test]
    fn every_column_is_asked_once_or_named_as_left_out() {
        let SchemaQuestions {
            questions,
            left_out,
        } = asked(SCHEMA, 1000);
        let names: Vec<&str> = questions.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["quantiles", "target", "levels-1", "levels-2"]);
        let question = |at: usize| questions[at].agreed.plain();
        let quantiles = question(0);
        let ranges = &quantiles.agreed.ranges;
        assert_eq!(ranges.len(), 3, "{ranges:?}");
        assert_eq!(ranges["bp"], [60.0, 200.0]);
        assert_eq!(ranges["age"], [0.0, 160.0]);
        assert_eq!(question(1).kind.name(), "describe");
        assert_eq!(question(1).agreed.ranges["days"], ranges["days"]);
        assert_eq!(
            question(2).agreed.levels.keys().collect::<Vec<_>>(),
            ["stage", "ward"]
        );
        assert_eq!(question(3).agreed.levels["sex"], ["f", "m"]);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        assert!(left_out[0].starts_with("\"ph\"") && left_out[1].starts_with("\"day\""));
        for question in &questions {
            assert!(question.agreed.plain().inputs().is_ok());
            let read: AgreedQuestion = toml::from_str(&question.text().unwrap()).unwrap();
            assert_eq!(read, question.agreed);
        }
    }

    #[test]
    fn quantiles_take_one_round_after_the_counts() {
        let questions = asked(SCHEMA, 1000).questions;
        let question = questions[0].agreed.plain();
        // 64 numbers of each of three columns, and four counts.
        let layouts = question.first_layouts().unwrap();
        assert_eq!([layouts[0].len(), layouts[1].len()], [4, 192]);
        let Kind::Quantiles(kind) = &question.kind else {
            panic!("{question:?}");
        };
        let widest = question
            .agreed
            .ranges
            .values()
            .map(|range| range[1] - range[0]);
        assert_eq!(kind.width, Some(widest.fold(0.0, f64::max) / 64.0));
    }

    #[test]
    fn outer_quantiles_have_ten_rows_beyond_them() {
        for (rows, expected) in [
            (100, 0.1),
            (410, 0.025),
            (1000, 0.01),
            (20, 0.25),
            (1_000_000, 0.001),
        ] {
            assert_eq!(tail(rows), expected, "{rows}");
        }
    }

    #[test]
    fn classes_to_predict_are_counted_by_their_values() {
        let classes = "target = { name = \"end\", classes = [\"home\", { name = \"died\", values = [\"1\", \"dead\"] }] }\n\
                       [[feature]]\nname = \"ward\"\ntype = \"category\"\nlevels = [\"a\", \"b\"]\n";
        let questions = asked(classes, 1000).questions;
        assert_eq!(questions.len(), 1);
        assert_eq!(questions[0].name, "levels");
        let levels = questions[0].agreed.plain().agreed.levels;
        assert_eq!(levels["end"], ["home", "1", "dead"]);
        assert_eq!(levels["ward"], ["a", "b"]);
    }
}
