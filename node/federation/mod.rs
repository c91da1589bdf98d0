//! The files of a federation: an agreement in words, what it means for an institution's data, how it
//! comes to the members and is signed, and a whole federation on one machine to try out.

mod address;
mod begins;
mod changed;
mod consents;
mod continuing;
mod disclosure;
mod join;
mod newcomers;
mod own_names;
mod pace;
pub mod print;
mod rows;
mod start;
mod trial;
mod words;

pub use address::{addresses, is_loopback};
pub use begins::{BeginFault, StaleKeys, begins, follows};
pub use changed::{changed_words, changed_words_for, protection, sentence, whole_text};
pub use consents::{GivenConsents, consents_beside};
pub use continuing::{Changes, ContinueError, GivenUp, StartModel, continued};
pub(crate) use disclosure::told;
pub use disclosure::{OwnSide, brief, disclosure, officer};
pub use join::{Join, JoinError, Joined, keep_consent, own_rows};
pub use newcomers::newcomers;
pub use own_names::{own_tables, with_names};
pub use pace::{TrainingPace, pace};
pub use rows::{beyond, exceeds, undeclared, weighs_by_rows};
pub use start::{FederationStart, FirstError, first, first_of, first_under, too_large};
pub use trial::{examined, tried};
pub use words::{draft_words, rotation, rows_in_words, verification, words, words_for};
