//! The checks after a run, and the diagnosis of a run that failed or stalled.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use protocol::message::{Block, Content};
use protocol::parameters::Epoch;
use protocol::{Hash, Record};

use super::work;

/// The state of all members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// All members, in the order of the roster.
    pub members: Vec<DiagnosedMember>,
}

/// The state of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosedMember {
    /// Name of the member.
    pub name: String,
    /// Faults of the member: Byzantine behaviours, death, loss of its journal; empty if there are none.
    pub fault: String,
    /// The view and round that the member is in; `None` while it is down.
    pub at: Option<(u64, u64)>,
    /// True if the member has all rounds.
    pub complete: bool,
    /// The last reason why the member refused something or voted against a view.
    pub last: String,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, member) in self.members.iter().enumerate() {
            if at > 0 {
                writeln!(f)?;
            }
            write!(f, "  {}: ", member.name)?;
            match member.at {
                Some(_) if member.complete => write!(f, "complete")?,
                Some((view, round)) => write!(f, "in view {view}, round {round}")?,
                None => write!(f, "down")?,
            }
            if !member.fault.is_empty() {
                write!(f, "; {}", member.fault)?;
            }
            if !member.last.is_empty() && !member.complete {
                write!(f, "; last: {}", member.last)?;
            }
        }
        Ok(())
    }
}

/// The final blocks that a journal holds, in order, with the hash of each. Empty blocks after a
/// change are left out: they only made it final, and are no part of the next epoch.
pub(super) fn chain(journal: &[Record]) -> Vec<(Hash, &Block)> {
    let blocks = journal.iter().filter_map(|record| match record {
        Record::Final { blocks, .. } => Some(blocks),
        _ => None,
    });
    let counts = |blocks: &Vec<Block>| {
        let change = blocks.iter().position(|block| block.change().is_some());
        change.map_or(blocks.len(), |at| at + 1)
    };
    blocks
        .flat_map(|blocks| &blocks[..counts(blocks)])
        .map(|block| (block.hash(), block))
        .collect()
}

/// The chain of a member at the end.
pub(super) struct MemberChain<'a> {
    /// Name of the member.
    pub(super) name: String,
    /// True if the member is honest and alive.
    pub(super) honest: bool,
    /// True if the member reports that it has all rounds.
    pub(super) complete: bool,
    /// Final blocks of the member, with the hash of each.
    pub(super) chain: Vec<(Hash, &'a Block)>,
}

/// Checks that all final blocks form one chain through all epochs, of which every honest member has
/// its part in order; that rounds follow one another, and that every outcome follows from its
/// manifest. A member that reports to be complete must have the last round. A member may lack blocks
/// of an epoch that was over before it came back. `recoveries` says whether institutions may have gone on
/// without others.
pub(super) fn check(
    epochs: &[&Epoch],
    all: &[MemberChain<'_>],
    recoveries: bool,
) -> Result<(), String> {
    let known: BTreeMap<_, _> = all
        .iter()
        .flat_map(|held| held.chain.iter().copied())
        .collect();
    let parents: BTreeSet<_> = known.values().map(|block| block.parent).collect();
    let tips: Vec<_> = known
        .keys()
        .filter(|hash| !parents.contains(*hash))
        .collect();
    let (Some(first), Some(last)) = (epochs.first(), epochs.last()) else {
        return Ok(());
    };
    if tips.len() > 1 {
        return Err(format!(
            "the final blocks part: {tips:?} have no successors"
        ));
    }
    let mut chain = Vec::new();
    let mut at = tips.first().map_or(first.id, |tip| **tip);
    while at != first.id {
        let Some(block) = known.get(&at) else {
            return Err(format!("no member has the final block {at}"));
        };
        chain.push((at, *block));
        at = block.parent;
    }
    chain.reverse();
    let rounds = |chain: &[(Hash, &Block)]| {
        let round = |block: &Block| match &block.content {
            Content::Learning(learning) => learning.round,
            Content::Masked(masked) => masked.round,
            Content::Change(change) => change.after.round,
            Content::Recovery(recovery) => recovery.after.round,
            Content::Empty => 0,
        };
        chain
            .iter()
            .map(|(_, block)| round(block))
            .max()
            .unwrap_or(0)
    };
    for held in all.iter().filter(|held| held.honest) {
        let mut rest = chain.iter();
        let missing = held
            .chain
            .iter()
            .find(|(hash, _)| !rest.any(|(other, _)| other == hash));
        if let Some((hash, block)) = missing {
            return Err(format!(
                "{} has block {hash} of view {} out of the order of the chain",
                held.name, block.view
            ));
        }
        let (has, all) = (rounds(&held.chain), last.protocol.rounds);
        if held.complete && has != all {
            return Err(format!(
                "{} reports to be complete with {all} rounds, but its chain has {has}",
                held.name
            ));
        }
    }
    check_rounds(first, &chain, recoveries)
}

/// Checks that rounds follow one another and outcomes from manifests, and that changes say where the
/// federation stood.
fn check_rounds(first: &Epoch, chain: &[(Hash, &Block)], recoveries: bool) -> Result<(), String> {
    // None after a secure-aggregation round, whose outcome stands in the next block.
    let (mut state, mut last) = (Some(first.protocol.start), 0);
    // What each round gave. Those after the round that a recovery goes on from are done again.
    let mut outcomes = vec![state];
    for (hash, block) in chain {
        let learning = match &block.content {
            Content::Learning(learning) => learning,
            Content::Change(change)
                if change.after.round == last
                    && state.is_none_or(|state| state == change.after.outcome) =>
            {
                state = Some(change.after.outcome);
                continue;
            }
            Content::Masked(masked) => {
                if masked.round != last + 1 {
                    return Err(format!("round {} follows round {last}", masked.round));
                }
                if state.is_some_and(|state| state != masked.state) {
                    return Err(format!("round {} starts from another state", masked.round));
                }
                // What the round before gave.
                outcomes.pop();
                outcomes.extend([Some(masked.state), None]);
                (state, last) = (None, masked.round);
                continue;
            }
            Content::Change(change) => {
                return Err(format!(
                    "the change {hash} names round {} as the last, it was {last}",
                    change.after.round
                ));
            }
            Content::Recovery(recovery) if recoveries => {
                let after = recovery.after;
                let known = outcomes.get(after.round as usize).copied();
                if known.is_none_or(|known| known.is_some_and(|known| known != after.outcome)) {
                    return Err(format!(
                        "the recovery {hash} continues from another outcome of round {}",
                        after.round
                    ));
                }
                (state, last) = (Some(after.outcome), after.round);
                outcomes.truncate(last as usize);
                outcomes.push(state);
                continue;
            }
            Content::Recovery(_) => return Err(format!("nobody asked for the recovery {hash}")),
            Content::Empty => continue,
        };
        if learning.round != last + 1 {
            return Err(format!("round {} follows round {last}", learning.round));
        }
        last = learning.round;
        let right = state.map(|state| work::outcome(&state, last, &learning.manifest));
        if right.is_some_and(|right| right != learning.outcome) {
            return Err(format!(
                "the outcome of round {last} is {}, but {right:?} follows from its sheet",
                learning.outcome
            ));
        }
        state = Some(learning.outcome);
        outcomes.push(state);
    }
    Ok(())
}
