//! What a member's key has signed and its journal does not hold.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::message::Kind;

/// A message that was signed with a member's key and that its journal does not hold, although it must
/// hold everything that the member signs (R5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forgotten {
    /// Kind of the message.
    pub kind: Kind,
    /// Round of the message; 0 if messages of its kind belong to none.
    pub round: u64,
    /// View of the message; 0 if messages of its kind belong to none.
    pub view: u64,
}

impl fmt::Display for Forgotten {
    /// As part of a sentence: "its Finalize vote of view 12".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, round, view } = self;
        match kind {
            Kind::Notarize | Kind::Finalize | Kind::Nullify | Kind::Outcome => {
                write!(f, "its {kind:?} vote of view {view}")
            }
            Kind::Inclusion => write!(f, "its signature for the sheet of round {round}"),
            _ if *view > 0 => write!(f, "its {kind:?} of view {view}"),
            _ => write!(f, "its {kind:?} of round {round}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_round_or_the_view() {
        let said = |kind, round, view| Forgotten { kind, round, view }.to_string();
        assert_eq!(said(Kind::Finalize, 0, 12), "its Finalize vote of view 12");
        assert_eq!(said(Kind::Proposal, 0, 7), "its Proposal of view 7");
        let manifest = "its signature for the sheet of round 3";
        assert_eq!(said(Kind::Inclusion, 3, 0), manifest);
        let contribution = "its Contribution of round 4";
        assert_eq!(said(Kind::Contribution, 4, 0), contribution);
    }
}
