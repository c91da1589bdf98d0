//! Questions to a federation: statistics that are sums over sites.
//!
//! Every round of a [`FederatedQuestion`] needs one sum. A site computes a vector from its rows and from what all know
//! ([`FederatedQuestion::answer`]), the vectors are added as integers, and everybody takes the same next step from the sum
//! ([`FederatedQuestion::step`]), with `+ − × ÷ √` in a fixed order. So nobody needs the rows of another site, and whoever
//! has the sums can repeat every step.
//!
//! * [`Kind`]: the questions, from means to Cox regression.
//! * [`SumLayout`]: what the numbers of a round are, and their integers; a number beyond their reach is refused.
//! * [`disclosure`]: what a site checks before it answers.
//! * [`outcome`]: what is printed, after small cells are suppressed.
//! * [`ask`](fn@ask): a whole question with the tables of all sites in one process.

pub mod algebra;
mod broken;
pub mod disclosure;
mod driver;
mod estimate;
mod explain;
pub mod kinds;
mod layout;
pub mod newton;
mod noise;
pub mod outcome;
mod question;
mod refusal;
mod refusal_rule;
mod replay;
mod row_hash;
pub mod special;
mod sums;
pub mod table;

pub use driver::{AskedNothing, AskedQuestion, QuestionRound, ask};
pub use estimate::Estimate;
pub use layout::{DecodedSum, SumBlock, SumLayout, add_words};
pub use noise::SumNoise;
pub use question::{FederatedQuestion, Kind, KindProgress, Outcome, QuestionProgress};
pub use refusal::{QuestionError, QuestionStopped, SiteRefusal};
pub use refusal_rule::RefusalRule;
pub use replay::QuestionReplay;
pub use sums::{AgreedColumns, FirstCounts, QuestionMode, QuestionRules, Step};

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
#[cfg(test)]
mod tests;
