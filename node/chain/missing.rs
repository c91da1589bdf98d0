//! Blocks that a journal lacks: what became final while its node was away, or before its institution was
//! admitted, ahead of a change of the agreement that the node then followed. A member that was there has
//! them; no node asks for blocks of an epoch that is over.

use protocol::message::Passage;
use protocol::{Hash, MemberIndex};
use serde::Serialize;

use super::Who;

/// Blocks that are not in a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct MissingBlocks {
    /// The first of their rounds; `None` where only blocks without a round are missing.
    pub from: Option<u64>,
    /// The last.
    pub to: Option<u64>,
    /// Hash of the block that follows them, which ends the epoch.
    pub before: String,
    /// The members whose signatures made that block final. As a rule their nodes have the blocks.
    pub members: Vec<Who>,
}

impl MissingBlocks {
    /// The missing rounds, as the subject of a sentence.
    pub fn what(&self) -> String {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from == to => format!("round {from} is"),
            (Some(from), Some(to)) => format!("rounds {from} to {to} are"),
            _ => "blocks without a round are".into(),
        }
    }

    /// Returns what is missing, why, and who has it, as a sentence.
    pub fn sentence(&self) -> String {
        let members: Vec<_> = self.members.iter().map(Who::shown).collect();
        format!(
            "{} not in this journal: final before the next change, while this node was away or not yet a member; \
             the members that signed that change have them: {}",
            self.what(),
            members.join(", ")
        )
    }
}

/// Returns what is missing before the end of an epoch, in a chain whose last block and round these are.
/// `tip` is `None` where it is not known.
pub(crate) fn before(
    passage: &Passage,
    tip: Option<Hash>,
    last: u64,
    who: impl Fn(MemberIndex) -> Who,
) -> Option<MissingBlocks> {
    let end = passage.blocks.first()?;
    let (after, signed): (_, Vec<MemberIndex>) = match (end.change(), end.recovery()) {
        (Some(change), _) => {
            let voters = passage.proof.votes.iter();
            (change.after.round, voters.map(|vote| vote.member).collect())
        }
        (_, Some(recovery)) => {
            let signers = recovery.standings.iter();
            (
                recovery.after.round,
                signers.map(|signed| signed.by).collect(),
            )
        }
        _ => return None,
    };
    let rounds = (after > last).then_some((last + 1, after));
    // A recovery may go on from an earlier round than the last final one.
    let gap = tip.is_some_and(|tip| tip != end.parent) && end.recovery().is_none();
    (rounds.is_some() || gap).then(|| MissingBlocks {
        from: rounds.map(|(from, _)| from),
        to: rounds.map(|(_, to)| to),
        before: format!("{:#}", end.hash()),
        members: signed.into_iter().map(who).collect(),
    })
}
