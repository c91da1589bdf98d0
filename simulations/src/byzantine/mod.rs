//! Behaviours of Byzantine members that only a federation with models shows; the rest is in
//! [`bare::byzantine`].
//!
//! | file | what its behaviours do |
//! |---|---|
//! | `deciding` | leads that group silos worse than they could |
//! | `learning` | lies about models, labels and losses that no check can find |

mod deciding;
mod learning;

pub(crate) use deciding::worse_coalitions;
pub use learning::lying;
