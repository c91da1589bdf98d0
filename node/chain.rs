//! The agreed chain as one node's journal holds it, for people and programs: which block, in which
//! view, by whose lead, with which outcome, and who was in. Every member's journal says the same, so
//! the output of two nodes can be compared byte by byte, as far as both have come.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use protocol::certificate::Certificate;
use protocol::identity::Strict;
use protocol::message::Block;
use protocol::{Epoch, Hash};
use serde::Serialize;
use silo::Record;

use crate::report::numbers::plain;
use crate::store::{self, AGREEMENT, OpenError};
use agreement::{Agreement, ConfigError};

/// Why there is no chain to show.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// No journal.
    #[error(
        "there is no journal in {}: say with --state where a node keeps its state, `state` in its \
         silo.toml", .0.display()
    )]
    Nothing(PathBuf),
    /// The journal cannot be read.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The agreement that was named cannot be read.
    #[error(transparent)]
    Agreement(#[from] ConfigError),
    /// It is another federation's.
    #[error(
        "{} is the agreement of federation {agreed}, and the journal belongs to {journal}: name the \
         file that this node ran with", file.display()
    )]
    Federation {
        /// The agreement's file.
        file: PathBuf,
        /// What it says.
        agreed: Hash,
        /// What the journal says.
        journal: Hash,
    },
    /// What the journal holds is no chain.
    #[error("the journal in {} holds no chain: {why}", folder.display())]
    Broken {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// The final blocks of a federation, from the first on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Chain {
    /// The federation's id.
    pub federation: String,
    /// The members' names in the order of the roster; `None` without the agreement.
    pub members: Option<Vec<String>>,
    /// Oldest first.
    pub blocks: Vec<Link>,
}

/// One final block.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Link {
    /// The learning round; `None` for an empty block.
    pub round: Option<u64>,
    /// The view that it was proposed in.
    pub view: u64,
    /// Who led that view; `None` without the agreement.
    pub lead: Option<Who>,
    /// Its hash.
    pub block: String,
    /// The hash of the block before.
    pub parent: String,
    /// The hash of the outcome; `None` for an empty block.
    pub outcome: Option<String>,
    /// Whose contributions are in it.
    pub included: Vec<Who>,
    /// Everybody else, those that a strategy did not ask among them; `None` for an empty block and
    /// without the agreement.
    pub left_out: Option<Vec<Who>>,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Who {
    /// By name.
    Name(String),
    /// By place in the roster, from 0, where the agreement is not at hand.
    Place(u16),
}

impl Chain {
    /// What the journal in `folder` holds, with names from the agreement in `federation`, or from
    /// the one that the node left in the folder. Needs no key and changes nothing; the node may run.
    /// With the agreement every block is proven final by the votes of a quorum; without, only that
    /// each block names the one before.
    ///
    /// # Errors
    /// [`ChainError`].
    pub fn read(folder: &Path, federation: Option<&Path>) -> Result<Self, ChainError> {
        if std::fs::symlink_metadata(folder.join("journal.redb")).is_err() {
            return Err(ChainError::Nothing(folder.to_owned()));
        }
        let journal = store::snapshot(folder)?;
        let epoch = match federation {
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
                Some(agreement.epoch)
            }
            None => Agreement::load(&folder.join(AGREEMENT))
                .ok()
                .map(|agreement| agreement.epoch)
                .filter(|epoch| epoch.federation == journal.federation),
        };
        let mut parts = Vec::new();
        for record in journal.records {
            match record {
                // Whatever was before is told again.
                Record::Lost => parts.clear(),
                Record::Protocol(protocol::Record::Final { blocks, proof }) => {
                    parts.push((blocks, proof))
                }
                _ => {}
            }
        }
        let blocks = links(&parts, epoch.as_deref()).map_err(|why| ChainError::Broken {
            folder: folder.to_owned(),
            why,
        })?;
        let names = |epoch: &Epoch| {
            let silos = epoch.roster.silos().iter();
            silos.map(|silo| silo.name.clone()).collect()
        };
        Ok(Self {
            federation: format!("{:#}", journal.federation),
            members: epoch.as_deref().map(names),
            blocks,
        })
    }

    /// For people: two lines for a block.
    ///
    /// # Errors
    /// What the writer says.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let count = self.blocks.len();
        writeln!(out, "federation {}, {count} final blocks", self.federation)?;
        for link in &self.blocks {
            let what = match link.round {
                Some(round) => format!("round {round:>4}"),
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
            if link.round.is_some() {
                let out_of = match link.left_out.as_deref() {
                    None | Some([]) => String::new(),
                    Some(left) => format!("   left out {}", all(left)),
                };
                writeln!(out, "             in {}{out_of}", all(&link.included))?;
            }
        }
        Ok(())
    }
}

impl Who {
    fn shown(&self) -> String {
        match self {
            Self::Name(name) => plain(name),
            Self::Place(place) => format!("#{place}"),
        }
    }
}

fn all(members: &[Who]) -> String {
    let shown: Vec<_> = members.iter().map(Who::shown).collect();
    shown.join(", ")
}

fn short(hash: &str) -> &str {
    hash.get(..16).unwrap_or(hash)
}

/// Every block, after checking that it follows on the one before and is proven.
fn links(parts: &[(Vec<Block>, Certificate)], epoch: Option<&Epoch>) -> Result<Vec<Link>, String> {
    let mut parent = epoch.map(|epoch| epoch.id);
    let mut links = Vec::new();
    for (blocks, proof) in parts {
        for block in blocks {
            if parent.is_some_and(|parent| parent != block.parent) {
                return Err(format!(
                    "the block of view {} does not follow on the one before",
                    block.view
                ));
            }
            parent = Some(block.hash());
            links.push(link(block, epoch));
        }
        if proof.verdict.block() != parent {
            return Err(format!(
                "the certificate of view {} is of another block",
                proof.view
            ));
        }
        if let Some(epoch) = epoch {
            let verified = proof.verify(epoch, &Strict);
            verified.map_err(|error| error.to_string())?;
        }
    }
    Ok(links)
}

fn link(block: &Block, epoch: Option<&Epoch>) -> Link {
    let who = |member: protocol::MemberIndex| match epoch {
        Some(epoch) => Who::Name(epoch.roster.name(member).to_owned()),
        None => Who::Place(member.0),
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
        view: block.view,
        lead: epoch.map(|epoch| who(epoch.lead(block.view))),
        block: format!("{:#}", block.hash()),
        parent: format!("{:#}", block.parent),
        outcome: learning.map(|learning| format!("{:#}", learning.outcome)),
        included: signers.iter().copied().map(who).collect(),
        left_out,
    }
}
