//! The agreed chain in a node's journal, as text or JSON: for each block its view, lead, outcome and
//! the members that contributed.
//!
//! The chain is the same at every member, so the outputs of two nodes can be compared byte by byte, up
//! to the shorter one. What a node did not hear before the agreement changed it never gets, though: then
//! the output says which rounds are [`MissingBlocks`] here, and who has them. What the sums of a secure-aggregation round
//! told is known for the rounds that a node keeps.

mod links;
mod missing;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::{Epoch, Hash};
use serde::Serialize;
use silo::outcome::{Document, MaskedNote};

use crate::corrupters;
use crate::store::{self, AGREEMENT, StoreOpenError};
use agreement::{Agreement, ConfigError};
use formatting::numbers::plain;

pub(crate) use links::{Leads, authors, certified_outcomes};
pub use missing::MissingBlocks;
pub(crate) use missing::before;

/// Why the chain cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// No journal.
    #[error(
        "there is no journal in {}: the node has not run yet", .0.display()
    )]
    Nothing(PathBuf),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] StoreOpenError),
    /// The file of the agreement cannot be read.
    #[error(transparent)]
    Agreement(#[from] ConfigError),
    /// The agreement and the journal belong to different federations.
    #[error(
        "{} is the agreement of federation {agreed}, but the journal belongs to federation \
         {journal}: give the file that this node ran with", file.display()
    )]
    Federation {
        /// The agreement's file.
        file: PathBuf,
        /// The federation of the agreement.
        agreed: Hash,
        /// The federation of the journal.
        journal: Hash,
    },
    /// The blocks in the journal are not a valid chain.
    #[error("the chain of the journal in {} is not valid: {why}", folder.display())]
    Broken {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// The final blocks of a federation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct FinalChain {
    /// The federation's id.
    pub federation: String,
    /// The members' names in the order of the roster; `None` without the agreement.
    pub members: Option<Vec<String>>,
    /// Oldest first.
    pub blocks: Vec<ChainLink>,
    /// What the chain lacks here, oldest first.
    pub missing: Vec<MissingBlocks>,
    /// Who was left out how often in the rounds of which lead; only leads that left somebody out. `None`
    /// without the agreement, and where plans name some members only.
    pub left_out: Option<Vec<LeftOutBy>>,
}

/// The members that are missing in the rounds of one lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct LeftOutBy {
    /// The lead; `None` where the chain does not tell.
    pub lead: Option<Who>,
    /// Rounds that it led to their end.
    pub rounds: usize,
    /// The members that the plan named and whose contributions are not in the round, with the rounds.
    pub members: Vec<LeftOutMember>,
}

/// A member that a lead left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct LeftOutMember {
    /// The member.
    pub member: Who,
    /// The rounds.
    pub rounds: Vec<u64>,
}

/// One final block.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ChainLink {
    /// The learning round; `None` for other blocks.
    pub round: Option<u64>,
    /// What a change of the agreement changes; `None` for other blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<String>>,
    /// The members whose institutions approved the change, or signed the recovery; empty for other blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approved: Vec<Who>,
    /// True if the block is a recovery: all members that were not lost went on without a quorum.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
    /// The view of its proposal.
    pub view: u64,
    /// The lead of that view; `None` without the agreement.
    pub lead: Option<Who>,
    /// Hash of the block.
    pub block: String,
    /// The hash of the block before it.
    pub parent: String,
    /// The hash of the outcome; `None` for an empty block.
    pub outcome: Option<String>,
    /// The members whose contributions are in it.
    pub included: Vec<Who>,
    /// The members that the plan named and whose contributions are not in it. `None` for an empty
    /// block, without the agreement, and where plans name some members only.
    pub left_out: Option<Vec<Who>>,
    /// All other members, where plans name some members only: whether the plan named them follows from
    /// the models, which `rota verify` reads as far as they are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<Vec<Who>>,
    /// Of a secure-aggregation round alone: what is known of its sums.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masked: Option<MaskedLink>,
}

/// The sums of a secure-aggregation round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct MaskedLink {
    /// The groups that were not complete, each as the names of its members; `None` without the agreement.
    pub sat_out: Option<Vec<String>>,
    /// The sums that told nothing, and why; known where the outcome is kept.
    pub void: Vec<String>,
    /// What void sums show by then of who corrupts them, if one of this round was void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Who {
    /// By name.
    Name(String),
    /// By position in the roster, from 0, without the agreement.
    Position(u16),
}

impl FinalChain {
    /// Reads the chain from the journal in `folder`, with names from the agreement in the file
    /// `federation`, or from the copy that the node keeps in the folder. Needs no key and changes
    /// nothing; the node may be running. With the agreement, the votes of a quorum are verified for
    /// every block; without it, only that each block follows the one before it.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn read(folder: &Path, federation: Option<&Path>) -> Result<Self, ChainError> {
        if std::fs::symlink_metadata(folder.join("journal.redb")).is_err() {
            return Err(ChainError::Nothing(folder.to_owned()));
        }
        let journal = store::snapshot(folder)?;
        let agreement = match federation {
            Some(file) => {
                let agreement = Agreement::load_kept(file)?;
                let agreed = agreement.epoch.federation;
                if agreed != journal.federation {
                    return Err(ChainError::Federation {
                        file: file.to_owned(),
                        agreed,
                        journal: journal.federation,
                    });
                }
                Some(agreement)
            }
            None => Agreement::load_kept(&folder.join(AGREEMENT))
                .ok()
                .filter(|agreement| agreement.epoch.federation == journal.federation),
        };
        let drawn = agreement
            .as_ref()
            .is_some_and(|of| of.strategy.draws_members());
        let epoch = agreement.as_ref().map(|agreement| agreement.epoch.clone());
        let outcomes = links::certified_outcomes(&journal.records);
        let parts = links::parts(journal.records);
        let found = links::links(&parts, agreement).map_err(|why| ChainError::Broken {
            folder: folder.to_owned(),
            why,
        })?;
        let (mut blocks, missing) = found;
        for link in blocks.iter_mut().filter(|link| link.masked.is_some()) {
            let outcome = outcomes
                .iter()
                .find(|(block, _)| format!("{block:#}") == link.block);
            link.outcome = outcome.map(|(_, outcome)| format!("{outcome:#}"));
            let note = outcome.and_then(|(_, outcome)| note(folder, outcome));
            if let (Some(masked), Some(note)) = (&mut link.masked, note) {
                masked.void = void(&note, epoch.as_deref());
                let of = epoch.as_deref().filter(|epoch| epoch.id == note.epoch);
                let of = of.filter(|_| !masked.void.is_empty());
                masked.search = of.and_then(|epoch| corrupters::said(&note.voids(), epoch, None));
            }
        }
        if drawn {
            let drawn = |link: &mut ChainLink| link.others = link.left_out.take();
            blocks.iter_mut().for_each(drawn);
        }
        let left_out = epoch.as_deref().filter(|_| !drawn);
        let left_out = left_out.map(|_| left_out_by(&blocks));
        let names = |epoch: &Epoch| {
            let silos = epoch.roster.silos().iter();
            silos.map(|silo| silo.name.clone()).collect()
        };
        Ok(Self {
            federation: format!("{:#}", journal.federation),
            members: epoch.as_deref().map(names),
            blocks,
            missing,
            left_out,
        })
    }

    /// Returns the number of learning rounds that are in it.
    pub fn rounds(&self) -> usize {
        let blocks = self.blocks.iter();
        blocks.filter(|link| link.round.is_some()).count()
    }

    /// Writes the chain as text, with two lines for a block.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let count = self.blocks.len();
        writeln!(out, "federation {}, {count} final blocks", self.federation)?;
        for (at, link) in self.blocks.iter().enumerate() {
            for missing in self.missing.iter().filter(|gap| gap.before == link.block) {
                writeln!(out, "missing      {}", missing.sentence())?;
            }
            let what = match link.round {
                Some(round) => format!("round {round:>4}"),
                None if link.recovery => "recovery  ".into(),
                None if link.change.is_some() => "change    ".into(),
                None => "empty     ".into(),
            };
            let lead = link.lead.as_ref().map_or("?".into(), Who::shown);
            let outcome = match (&link.outcome, &link.masked) {
                (Some(outcome), _) => format!("   outcome {}", short(outcome)),
                (None, Some(_)) if self.blocks[at..].iter().any(|later| later.recovery) => {
                    "   no outcome: the recovery continues without it".into()
                }
                (None, Some(_)) => "   outcome not known yet".into(),
                (None, None) => String::new(),
            };
            writeln!(
                out,
                "view {:>5}   {what}   block {}   parent {}{outcome}   lead {lead}",
                link.view,
                short(&link.block),
                short(&link.parent),
            )?;
            if let Some(change) = link.change.as_ref().filter(|change| !change.is_empty()) {
                let approved = match (link.recovery, link.approved.as_slice()) {
                    (false, by @ [_, ..]) => format!("   approved by {}", all(by)),
                    // Its words say who signed.
                    _ => String::new(),
                };
                let change = change.join(", ");
                writeln!(out, "             the agreement: {change}{approved}")?;
            }
            if link.round.is_some() {
                let out_of = match (link.left_out.as_deref(), link.others.as_deref()) {
                    (Some([_, ..]), _) => {
                        let left = link.left_out.as_deref().map(all).unwrap_or_default();
                        format!("   left out by {lead}: {left}")
                    }
                    (_, Some(others @ [_, ..])) => {
                        format!("   not asked, or left out by {lead}: {}", all(others))
                    }
                    _ => String::new(),
                };
                let what = if link.masked.is_some() { "ready" } else { "in" };
                writeln!(out, "             {what} {}{out_of}", all(&link.included))?;
            }
            if let Some(masked) = &link.masked {
                for group in masked.sat_out.iter().flatten() {
                    writeln!(
                        out,
                        "             sat out, because one of them was not ready: {group}"
                    )?;
                }
                for void in &masked.void {
                    writeln!(out, "             void: the sum of {void}")?;
                }
                if let Some(search) = &masked.search {
                    writeln!(out, "             {}", plain(search))?;
                }
            }
        }
        for by in self.left_out.iter().flatten() {
            let lead = by.lead.as_ref().map_or("?".into(), Who::shown);
            let times = |left: &LeftOutMember| {
                let times = match left.rounds.len() {
                    1 => "once".to_owned(),
                    more => format!("{more} times"),
                };
                format!("{} {times}", left.member.shown())
            };
            let members: Vec<_> = by.members.iter().map(times).collect();
            let rounds = match by.rounds {
                1 => "the one round".to_owned(),
                more => format!("the {more} rounds"),
            };
            writeln!(
                out,
                "left out in {rounds} that {lead} led: {}",
                members.join(", ")
            )?;
        }
        Ok(())
    }
}

/// Returns what the kept outcome of a secure-aggregation round says of its sums.
fn note(folder: &Path, outcome: &Hash) -> Option<MaskedNote> {
    let blob = store::blob(folder, outcome)?;
    Document::read(&blob).ok()?.masked
}

/// The sums of a secure-aggregation round that told nothing, and why.
fn void(note: &MaskedNote, epoch: Option<&Epoch>) -> Vec<String> {
    let masked = epoch.and_then(|epoch| epoch.protocol.privacy.masked());
    let groups = masked.map(|masked| masked.groups());
    let noised = epoch.is_some_and(|epoch| epoch.protocol.privacy.is_noised());
    let sums = note.sums.iter();
    let void = sums.filter_map(|sum| Some((usize::from(sum.group), sum.void?)));
    let some = note.left_out.contains(&false);
    let of = epoch.filter(|epoch| some && epoch.id == note.epoch);
    let corrupted = of.map(|epoch| corrupters::names(&note.corrupted().collect::<Vec<_>>(), epoch));
    let words = |(at, why)| match groups.and_then(|groups| groups.get(at)) {
        Some(group) => format!("{}: {why}", links::group_names(group)),
        None if noised => {
            let all = if some {
                "half of those that were ready"
            } else {
                "all that were ready"
            };
            format!("{}: {why}", corrupted.as_deref().unwrap_or(all))
        }
        None => format!("group {}: {why}", at + 1),
    };
    void.map(words).collect()
}

impl Who {
    /// Name or position of the member, for people.
    pub fn shown(&self) -> String {
        match self {
            Self::Name(name) => plain(name),
            Self::Position(position) => format!("#{position}"),
        }
    }
}

/// Members by the rounds in which they are missing.
type Absent<'a> = BTreeMap<&'a Who, Vec<u64>>;

/// Returns who was left out how often in the rounds of each lead.
fn left_out_by(blocks: &[ChainLink]) -> Vec<LeftOutBy> {
    let mut leads: BTreeMap<Option<&Who>, (usize, Absent<'_>)> = BTreeMap::new();
    for link in blocks {
        let (Some(round), Some(left_out)) = (link.round, &link.left_out) else {
            continue;
        };
        let (rounds, members) = leads.entry(link.lead.as_ref()).or_default();
        *rounds += 1;
        for member in left_out {
            members.entry(member).or_default().push(round);
        }
    }
    let leads = leads.into_iter().filter(|(_, (_, left))| !left.is_empty());
    leads
        .map(|(lead, (rounds, members))| LeftOutBy {
            lead: lead.cloned(),
            rounds,
            members: members
                .into_iter()
                .map(|(member, rounds)| LeftOutMember {
                    member: member.clone(),
                    rounds,
                })
                .collect(),
        })
        .collect()
}

fn all(members: &[Who]) -> String {
    let shown: Vec<_> = members.iter().map(Who::shown).collect();
    shown.join(", ")
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}
