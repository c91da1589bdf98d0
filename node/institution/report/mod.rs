//! Reports of a node about itself and others: lines of output, warnings, and its present state, which it shows and
//! sends to the other members.

pub(super) mod ask_members;
pub(super) mod far_columns;
pub(super) mod format_texts;
pub(super) mod health;
mod late;
pub(super) mod lines;
pub(super) mod no_part;
pub(super) mod output;
pub(super) mod strangers;
pub(super) mod thread;
pub(super) mod unreachable;
pub(super) mod usage;
mod weights;
