//! The agreed chain in a node's journal, as text or JSON: for each block its view, lead, outcome and
//! the members that contributed. The chain is the same at every member, so the outputs of two nodes
//! can be compared byte by byte, up to the shorter one.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use protocol::certificate::Certificate;
use protocol::identity::Strict;
use protocol::message::{Block, Content, Passage, Recovery};
use protocol::rotation::Turns;
use protocol::{Epoch, Hash, MemberIndex};
use serde::Serialize;
use silo::Record;

use crate::report::numbers::plain;
use crate::store::{self, AGREEMENT, OpenError};
use agreement::{Agreement, ConfigError};

/// Why the chain cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// No journal.
    #[error(
        "there is no journal in {}: give the folder of a node with --state, as `state` in its \
         silo.toml names it", .0.display()
    )]
    Nothing(PathBuf),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] OpenError),
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Chain {
    /// The federation's id.
    pub federation: String,
    /// The members' names in the order of the roster; `None` without the agreement.
    pub members: Option<Vec<String>>,
    /// Oldest first.
    pub blocks: Vec<Link>,
    /// Who was left out how often in the rounds of which lead; only leads that left somebody out. `None`
    /// without the agreement, and where plans name some members only.
    pub left_out: Option<Vec<LeftOutBy>>,
}

/// The members that are missing in the rounds of one lead.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOutBy {
    /// The lead; `None` where the chain does not tell.
    pub lead: Option<Who>,
    /// Rounds that it led to their end.
    pub rounds: usize,
    /// The members that the plan named and whose contributions are not in the round, with the rounds.
    pub members: Vec<LeftOut>,
}

/// A member that a lead left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LeftOut {
    /// The member.
    pub member: Who,
    /// The rounds.
    pub rounds: Vec<u64>,
}

/// One final block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// The learning round; `None` for other blocks.
    pub round: Option<u64>,
    /// What a change of the agreement changes; `None` for other blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<String>>,
    /// Whether it is a recovery: all members that were not lost went on without a quorum.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
    /// The view of its proposal.
    pub view: u64,
    /// The lead of that view; `None` without the agreement.
    pub lead: Option<Who>,
    /// Its hash.
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

impl Chain {
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
                let agreement = Agreement::load(file)?;
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
            None => Agreement::load(&folder.join(AGREEMENT))
                .ok()
                .filter(|agreement| agreement.epoch.federation == journal.federation),
        };
        let drawn = agreement
            .as_ref()
            .is_some_and(|of| of.strategy.draws_members());
        let epoch = agreement.map(|agreement| agreement.epoch);
        let mut parts = Vec::new();
        for record in journal.records {
            match record {
                // This record starts the chain again, so earlier blocks are dropped.
                Record::Lost => parts.clear(),
                Record::Protocol(protocol::Record::Final { blocks, proof }) => {
                    parts.push((blocks, proof))
                }
                _ => {}
            }
        }
        let blocks = links(&parts, epoch.clone()).map_err(|why| ChainError::Broken {
            folder: folder.to_owned(),
            why,
        })?;
        let mut blocks: Vec<Link> = blocks;
        if drawn {
            let drawn = |link: &mut Link| link.others = link.left_out.take();
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
            left_out,
        })
    }

    /// Writes the chain as text, with two lines for a block.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let count = self.blocks.len();
        writeln!(out, "federation {}, {count} final blocks", self.federation)?;
        for link in &self.blocks {
            let what = match link.round {
                Some(round) => format!("round {round:>4}"),
                None if link.recovery => "recovery  ".into(),
                None if link.change.is_some() => "change    ".into(),
                None => "empty     ".into(),
            };
            let lead = link.lead.as_ref().map_or("?".into(), Who::shown);
            let outcome = match &link.outcome {
                Some(outcome) => format!("   outcome {}", short(outcome)),
                None => String::new(),
            };
            writeln!(
                out,
                "view {:>5}   {what}   block {}   parent {}{outcome}   lead {lead}",
                link.view,
                short(&link.block),
                short(&link.parent),
            )?;
            if let Some(change) = link.change.as_ref().filter(|change| !change.is_empty()) {
                writeln!(out, "             the agreement: {}", change.join(", "))?;
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
                writeln!(out, "             in {}{out_of}", all(&link.included))?;
            }
        }
        for by in self.left_out.iter().flatten() {
            let lead = by.lead.as_ref().map_or("?".into(), Who::shown);
            let times = |left: &LeftOut| {
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

impl Who {
    fn shown(&self) -> String {
        match self {
            Self::Name(name) => plain(name),
            Self::Position(position) => format!("#{position}"),
        }
    }
}

/// Members by the rounds in which they are missing.
type Missing<'a> = BTreeMap<&'a Who, Vec<u64>>;

/// Who was left out how often in the rounds of each lead.
fn left_out_by(blocks: &[Link]) -> Vec<LeftOutBy> {
    let mut leads: BTreeMap<Option<&Who>, (usize, Missing<'_>)> = BTreeMap::new();
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
                .map(|(member, rounds)| LeftOut {
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

/// The links of all blocks, after verifying that each follows the one before it, and its certificate.
fn links(
    parts: &[(Vec<Block>, Certificate)],
    mut epoch: Option<Arc<Epoch>>,
) -> Result<Vec<Link>, String> {
    let mut parent = epoch.as_ref().map(|epoch| epoch.id);
    let mut links = Vec::new();
    let mut leads = epoch.clone().map(Leads::new);
    for (blocks, proof) in parts {
        let passage = Passage::among(blocks, proof);
        let count = blocks.len() - passage.as_ref().map_or(0, |passage| passage.blocks.len());
        for block in &blocks[..count] {
            if parent.is_some_and(|parent| parent != block.parent) {
                return Err(format!(
                    "the block of view {} does not follow the block before it",
                    block.view
                ));
            }
            parent = Some(block.hash());
            let lead = leads.as_mut().and_then(|leads| leads.of(block));
            links.push(link(block, epoch.as_deref(), lead));
        }
        if let Some(passage) = passage {
            // Empty blocks after the change only made it final. A member that was away lacks the
            // blocks before it.
            let change = &passage.blocks[0];
            let leads_it = leads.as_ref().filter(|_| passage.recovery().is_none());
            let lead = leads_it.map(|leads| leads.turns.lead(&leads.epoch, change.view));
            links.push(link(change, epoch.as_deref(), lead));
            parent = Some(change.hash());
            if let Some(old) = &epoch {
                let next = passage
                    .verify(old, &Strict)
                    .map_err(|error| error.to_string())?;
                epoch = Some(Arc::new(next));
                leads = epoch.clone().map(Leads::new);
            }
            continue;
        }
        if proof.verdict.block() != parent {
            return Err(format!(
                "the certificate of view {} is of another block",
                proof.view
            ));
        }
        if let Some(epoch) = &epoch {
            let verified = proof.verify(epoch, &Strict);
            verified.map_err(|error| error.to_string())?;
        }
    }
    Ok(links)
}

/// The leads of a chain's blocks, asked for in order.
struct Leads {
    epoch: Arc<Epoch>,
    turns: Turns,
    /// Who led before the last learning block, if the block before was that one.
    before: Option<Turns>,
}

impl Leads {
    fn new(epoch: Arc<Epoch>) -> Self {
        Self {
            turns: epoch.turns(),
            epoch,
            before: None,
        }
    }

    /// The lead of a block. An empty block after a learning block was proposed before that one was
    /// known to be final; for one after an empty block the chain does not tell, unless the view
    /// alone does.
    fn of(&mut self, block: &Block) -> Option<MemberIndex> {
        let Some(learning) = block.learning() else {
            let before = self.before.take();
            let turns = match self.epoch.charter.rotation.follows_rounds() {
                true => before?,
                false => self.turns.clone(),
            };
            return Some(turns.lead(&self.epoch, block.view));
        };
        let lead = self.turns.lead(&self.epoch, block.view);
        let authors: Vec<_> = learning.inclusions.iter().map(|(by, _)| *by).collect();
        self.before = Some(self.turns.clone());
        self.turns.advance(&self.epoch, block.view, &authors);
        Some(lead)
    }
}

/// What a recovery says, a few words each.
fn recovered(epoch: Option<&Epoch>, recovery: &Recovery) -> Vec<String> {
    let name = |member: MemberIndex| match epoch {
        Some(epoch) => plain(epoch.roster.name(member)),
        None => format!("#{}", member.0),
    };
    let lost = recovery
        .lost
        .iter()
        .map(|lost| format!("lost {}", name(*lost)));
    let by: Vec<_> = recovery
        .standings
        .iter()
        .map(|(by, ..)| name(*by))
        .collect();
    let mut words: Vec<_> = lost.collect();
    words.push(format!(
        "without a quorum, signed by all that remain ({}), after round {}",
        by.join(", "),
        recovery.after.round
    ));
    for round in recovery.rounds_lost() {
        words.push(format!(
            "round {round} was final and nobody that remains has its models"
        ));
    }
    if let Some(view) = recovery.notarised() {
        words.push(format!(
            "the block of view {view} was notarised and may be final for a lost member"
        ));
    }
    words
}

/// What a change changes, a few words each.
fn changed(epoch: Option<&Epoch>, change: &protocol::message::Change) -> Vec<String> {
    let Some(epoch) = epoch else {
        return Vec::new();
    };
    let (old, new) = (epoch.roster.silos(), &change.amendment.silos);
    let mut words = Vec::new();
    for silo in new {
        match old.iter().find(|before| before.name == silo.name) {
            None => words.push(format!("admits {}", plain(&silo.name))),
            Some(before) if before.key != silo.key => {
                words.push(format!("another key of {}", plain(&silo.name)));
            }
            Some(_) => {}
        }
    }
    let gone = old
        .iter()
        .filter(|before| new.iter().all(|silo| silo.name != before.name));
    words.extend(gone.map(|silo| format!("without {}", plain(&silo.name))));
    let (before, after) = (&epoch.charter, &change.amendment.charter);
    if before.rounds != after.rounds {
        words.push(format!("{} rounds", after.rounds));
    }
    if before.work != after.work && before.rounds == after.rounds {
        words.push("other options".into());
    }
    let rounds = protocol::Charter {
        rounds: after.rounds,
        // Holds the number of rounds too.
        work: after.work.clone(),
        ..before.for_members(old.len(), new.len())
    };
    if rounds != *after {
        words.push("other rules".into());
    }
    if words.is_empty() {
        words.push("other addresses".into());
    }
    words
}

fn link(block: &Block, epoch: Option<&Epoch>, lead: Option<MemberIndex>) -> Link {
    let who = |member: protocol::MemberIndex| match epoch {
        Some(epoch) => Who::Name(epoch.roster.name(member).to_owned()),
        None => Who::Position(member.0),
    };
    let learning = block.learning();
    let signers: Vec<_> = learning
        .map(|learning| {
            learning
                .inclusions
                .iter()
                .map(|(member, _)| *member)
                .collect()
        })
        .unwrap_or_default();
    let left_out = epoch.filter(|_| learning.is_some()).map(|epoch| {
        let others = epoch
            .roster
            .members()
            .filter(|other| !signers.contains(other));
        others.map(who).collect()
    });
    Link {
        round: learning.map(|learning| learning.round),
        change: match &block.content {
            Content::Change(change) => Some(changed(epoch, change)),
            Content::Recovery(recovery) => Some(recovered(epoch, recovery)),
            Content::Learning(_) | Content::Empty => None,
        },
        recovery: block.recovery().is_some(),
        view: block.view,
        lead: lead.map(who),
        block: format!("{:#}", block.hash()),
        parent: format!("{:#}", block.parent),
        outcome: learning.map(|learning| format!("{:#}", learning.outcome)),
        included: signers.iter().copied().map(who).collect(),
        left_out,
        others: None,
    }
}
