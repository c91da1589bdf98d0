//! What must be true of a run that is over, and where its members stand if it is not.

use std::fmt;

use protocol::charter::Epoch;
use protocol::message::{Block, Content};
use protocol::{Hash, Record};

use super::work;

/// Where everybody stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// All members, in the order of the roster.
    pub members: Vec<Standing>,
}

/// Where a member stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// What is wrong with it: what it does as a liar, how it died. Empty if nothing.
    pub flaw: String,
    /// View and round it is in; none while it is down.
    pub at: Option<(u64, u64)>,
    /// Whether it has all rounds.
    pub complete: bool,
    /// Why it last refused something or voted against a view.
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
            if !member.flaw.is_empty() {
                write!(f, "; {}", member.flaw)?;
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

/// What an honest member ended with.
pub(super) struct Held<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Whether it says that it has all rounds.
    pub(super) complete: bool,
    /// Its final blocks, with the hash of each.
    pub(super) chain: Vec<(Hash, &'a Block)>,
}

/// Whether the chains of honest members are one, each round follows on the one before, and every
/// outcome is what the sheet gives. Who says that it is complete must hold all rounds.
pub(super) fn check(epoch: &Epoch, all: &[Held<'_>]) -> Result<(), String> {
    let Some(longest) = all.iter().max_by_key(|held| held.chain.len()) else {
        return Ok(());
    };
    for held in all {
        let mut pairs = held.chain.iter().zip(&longest.chain);
        let parts = pairs.find(|((one, _), (other, _))| one != other);
        if let Some(((one, block), (other, _))) = parts {
            return Err(format!(
                "{} has block {one} of view {}, {} has {other} in its place",
                held.name, block.view, longest.name
            ));
        }
        let rounds = held.chain.iter().filter_map(|(_, block)| block.learning());
        let rounds = rounds.count() as u64;
        if held.complete && rounds != epoch.charter.rounds {
            return Err(format!(
                "{} says that it has all {} rounds, its chain has {rounds}",
                held.name, epoch.charter.rounds
            ));
        }
    }
    let (mut parent, mut state, mut last) = (epoch.id, epoch.charter.start, 0);
    for (hash, block) in &longest.chain {
        if block.parent != parent {
            return Err(format!("block {hash} does not follow on {parent}"));
        }
        parent = *hash;
        let Content::Learning(learning) = &block.content else {
            continue;
        };
        if learning.round != last + 1 {
            return Err(format!("round {} follows on round {last}", learning.round));
        }
        last = learning.round;
        let right = work::outcome(&state, last, &learning.sheet);
        if learning.outcome != right {
            return Err(format!(
                "the outcome of round {last} is {}, its sheet gives {right}",
                learning.outcome
            ));
        }
        state = learning.outcome;
    }
    Ok(())
}
