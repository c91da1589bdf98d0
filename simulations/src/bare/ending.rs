//! The checks after a run, and the diagnosis of a run that failed or stalled.

use std::fmt;

use protocol::charter::Epoch;
use protocol::message::{Block, Content};
use protocol::{Hash, Record};

use super::work;

/// The state of all members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// All members, in the order of the roster.
    pub members: Vec<Standing>,
}

/// The state of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its faults: Byzantine behaviours, death, loss of its journal; empty if there are none.
    pub fault: String,
    /// The view and round that it is in; `None` while it is down.
    pub at: Option<(u64, u64)>,
    /// Whether it has all rounds.
    pub complete: bool,
    /// The last reason why it refused something or voted against a view.
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

/// The final blocks that a journal holds, in order, with the hash of each.
pub(super) fn chain(journal: &[Record]) -> Vec<(Hash, &Block)> {
    let blocks = journal.iter().filter_map(|record| match record {
        Record::Final { blocks, .. } => Some(blocks),
        _ => None,
    });
    blocks
        .flatten()
        .map(|block| (block.hash(), block))
        .collect()
}

/// The chain of an honest member at the end.
pub(super) struct MemberChain<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Whether it reports that it has all rounds.
    pub(super) complete: bool,
    /// Its final blocks, with the hash of each.
    pub(super) chain: Vec<(Hash, &'a Block)>,
}

/// Checks that honest members have the same chain, that rounds follow one another, and that every
/// outcome follows from its sheet. A member that reports to be complete must have all rounds.
pub(super) fn check(epoch: &Epoch, all: &[MemberChain<'_>]) -> Result<(), String> {
    let Some(longest) = all.iter().max_by_key(|held| held.chain.len()) else {
        return Ok(());
    };
    for held in all {
        let mut pairs = held.chain.iter().zip(&longest.chain);
        let parts = pairs.find(|((one, _), (other, _))| one != other);
        if let Some(((one, block), (other, _))) = parts {
            return Err(format!(
                "{} has block {one} of view {} where {} has {other}",
                held.name, block.view, longest.name
            ));
        }
        let rounds = held.chain.iter().filter_map(|(_, block)| block.learning());
        let rounds = rounds.count() as u64;
        if held.complete && rounds != epoch.charter.rounds {
            return Err(format!(
                "{} reports to be complete with {} rounds, but its chain has {rounds}",
                held.name, epoch.charter.rounds
            ));
        }
    }
    let (mut parent, mut state, mut last) = (epoch.id, epoch.charter.start, 0);
    for (hash, block) in &longest.chain {
        if block.parent != parent {
            return Err(format!("the parent of block {hash} is not {parent}"));
        }
        parent = *hash;
        let Content::Learning(learning) = &block.content else {
            continue;
        };
        if learning.round != last + 1 {
            return Err(format!("round {} follows round {last}", learning.round));
        }
        last = learning.round;
        let right = work::outcome(&state, last, &learning.sheet);
        if learning.outcome != right {
            return Err(format!(
                "the outcome of round {last} is {}, but {right} follows from its sheet",
                learning.outcome
            ));
        }
        state = learning.outcome;
    }
    Ok(())
}
