//! A schema by questions: ranges, fillings and levels from sums over all institutions, and not from the table of the
//! one that drafts the agreement.
//!
//! [`schema_questions`] lists the questions that a schema needs: quantiles of numbers, tables of counts of levels.
//! [`SchemaAnswers`] reads what `rota ask --json` and `rota federation answers --json` print of their answers, with
//! small cells suppressed already. [`settled`] changes the schema accordingly and says in sentences where each value
//! comes from, and [`SettledSchema::text`] writes it. Nothing is in force by that: people read the text, and sign an
//! agreement with it or not.
//!
//! | file | holds |
//! |---|---|
//! | `asked` | the questions of a schema |
//! | `answers` | answers, read from JSON |
//! | `settled` | the schema that follows from them, and sentences |
//! | `baselines` | the error of the best constant |
//! | `digits` | numbers in sentences |
//! | `entries` | keys of TOML in an order for readers |
//! | `written` | the schema as TOML, and in the text of a file |

mod answers;
mod asked;
mod baselines;
mod digits;
mod entries;
mod settled;
mod written;

pub use answers::{AnswerFileError, SchemaAnswers};
pub use asked::{SchemaQuestion, SchemaQuestions, schema_questions};
pub use settled::{SettledSchema, settled};
pub use written::with_schema;

#[cfg(test)]
mod tests;
