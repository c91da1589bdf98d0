//! Answers to the questions of an agreement, from all rows of an institution.
//!
//! | file | holds |
//! |---|---|
//! | `file` | the file of a question that an institution asks |
//! | `tables` | rows of files as tables, with every column by its agreed name |
//! | `site` | what one institution answers, after its own rules of disclosure |
//! | `serving` | what it says while members decide together which model each serves |
//! | `own` | all that it answers |
//! | `pseudonyms` | by which others tell its answers from those of others, and not whose they are |
//! | `learner` | a learner that answers, too |
//! | `found` | the answers that a state folder holds |
//! | `printed` | the tables of an answer as text |
//! | `certificate` | the round that has them, and its quorum |
//! | `page` | the HTML page of answered questions |

mod certificate;
pub(crate) mod file;
mod found;
mod learner;
mod own;
pub mod page;
mod printed;
mod pseudonyms;
mod serving;
mod site;
pub mod tables;

pub use printed::texts;

pub(crate) use certificate::AnswerCertificate;
pub(crate) use found::{FoundAnswer, FoundAnswers, answered, over};
pub(crate) use learner::AnsweringLearner;
pub(crate) use own::OwnAnswers;
pub(crate) use serving::ServingAnswers;
pub(crate) use site::{RECORD, SiteAnswers};
