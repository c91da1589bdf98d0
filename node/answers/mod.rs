//! Answers to the questions of an agreement, from all rows of an institution.
//!
//! | file | holds |
//! |---|---|
//! | `file` | the file of a question that an institution asks |
//! | `tables` | rows of files as tables, with every column by its agreed name |
//! | `site` | what one institution answers, after its own rules of disclosure |
//! | `learner` | a learner that answers, too |
//! | `found` | the answers that a state folder holds |
//! | `printed` | the tables of an answer as text |

pub(crate) mod file;
mod found;
mod learner;
mod printed;
mod site;
pub mod tables;

pub use printed::texts;

pub(crate) use found::{FoundAnswer, answered, found, over};
pub(crate) use learner::AnsweringLearner;
pub(crate) use site::{RECORD, SiteAnswers};
