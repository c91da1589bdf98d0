//! Who corrupted the sum of a void round, found out from the secrets that its authors disclose.
//!
//! An institution discloses its secret of one void round in a [file](DisclosureFile), after it has read what
//! that gives away. Anybody who has kept the round examines the files: what each author sent has to follow
//! from its secret. Nobody can disclose the secret of a round whose sum was adopted, because it is gone, and
//! nobody is asked to: such a round is refused.

mod file;
mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use privacy::masks::Secret;
use protocol::work::FinalMasked;
use protocol::{Epoch, Hash, MemberIndex};
use serde::Serialize;
use silo::JournalRecord;
use silo::outcome::Document;
use silo::rounds::{NotVoid, VoidRound, disclosed_secret};

pub use file::{DisclosureFile, DisclosureFileError};

use crate::store;
use crate::verify::{KeptChain, VerifyError};

/// Why nobody is blamed.
#[derive(Debug, thiserror::Error)]
pub enum BlameError {
    /// The state folder cannot be read, or is not as it has to be.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// A round that is not there.
    #[error("round {0} is not in the chain of this state folder: `rota chain` prints which are")]
    Round(u64),
    /// A round whose outcome is not known.
    #[error(
        "the outcome of round {0} is not kept here: no quorum has voted for it yet, or this node keeps fewer \
         rounds; ask another member"
    )]
    Outcome(u64),
    /// Nobody can be blamed for the round.
    #[error("nobody can be blamed for round {round}: {why}")]
    NotVoid {
        /// The round.
        round: u64,
        /// Why.
        why: NotVoid,
    },
    /// The node has no secret of the round.
    #[error("{member} has nothing to disclose of round {round}: {why}")]
    Secret {
        /// Name of the institution.
        member: String,
        /// The round.
        round: u64,
        /// Why.
        why: String,
    },
    /// A file that discloses nothing of the round.
    #[error(transparent)]
    File(#[from] DisclosureFileError),
}

/// A void round, and what the disclosed secrets show of its authors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Blame {
    /// The federation's name.
    pub federation_name: String,
    /// The round.
    pub round: u64,
    /// Id of its final block.
    pub block: String,
    /// The sums that told nothing.
    pub sums: Vec<CorruptedSum>,
    /// The disclosures that were examined, in the order in which they were given.
    pub examined: Vec<ExaminedAuthor>,
    /// Authors of these sums that were not looked at, because nothing of theirs was given.
    pub not_looked_at: Vec<String>,
}

/// A sum that told nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct CorruptedSum {
    /// Names of its authors.
    pub authors: Vec<String>,
    /// Why it told nothing.
    pub why: String,
}

/// What a disclosed secret shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct ExaminedAuthor {
    /// Name of the author.
    pub member: String,
    /// What was found.
    pub finding: AuthorFinding,
}

/// What was found of an author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "what")]
pub enum AuthorFinding {
    /// All that it sent follows from its secret.
    Right,
    /// It deviated, in a sentence about "it".
    Deviates(String),
    /// It could not be examined, in a sentence. A file of somebody else proves nothing against it.
    Refused(String),
}

/// A round of a state folder that was found to be void.
struct FoundRound {
    kept: KeptChain,
    epoch: Arc<Epoch>,
    of: FinalMasked,
    document: Document,
}

impl FoundRound {
    fn find(folder: &Path, federation: Option<&Path>, round: u64) -> Result<Self, BlameError> {
        let kept = KeptChain::read(folder, federation)?;
        let Some((epoch, of, outcome)) = kept.masked(round) else {
            let why = NotVoid::Clear;
            return Err(match kept.has(round) {
                true => BlameError::NotVoid { round, why },
                false => BlameError::Round(round),
            });
        };
        let document = outcome.and_then(|outcome| store::blob(folder, &outcome));
        let document = document.and_then(|document| Document::read(&document).ok());
        Ok(Self {
            document: document.ok_or(BlameError::Outcome(round))?,
            kept,
            epoch,
            of,
        })
    }

    fn void(&self, folder: &Path) -> Result<VoidRound<'_>, BlameError> {
        let blob = |hash: &Hash| store::blob(folder, hash);
        let round = self.of.round.round;
        let void = VoidRound::read(&self.epoch, &self.of, &self.document, blob);
        void.map_err(|why| BlameError::NotVoid { round, why })
    }

    fn federation(&self) -> String {
        format!("{:#}", self.epoch.federation)
    }

    fn block(&self) -> String {
        format!("{:#}", self.of.block)
    }
}

/// Returns what a void round is, and what the files show of its authors; `folder` is the state folder of any node
/// that has kept the round. Needs no key and changes nothing; the node may run.
///
/// # Errors
/// [`BlameError`]: nobody can be blamed for the round, or a file is not of it.
pub fn blame(
    folder: &Path,
    federation: Option<&Path>,
    round: u64,
    files: &[PathBuf],
) -> Result<Blame, BlameError> {
    let found = FoundRound::find(folder, federation, round)?;
    let void = found.void(folder)?;
    let roster = &found.epoch.roster;
    let name = |by: u16| roster.name(MemberIndex(by)).to_owned();
    let sums = void.sums().iter().map(|(sum, why)| CorruptedSum {
        authors: sum.authors.iter().map(|(by, _)| name(by.0)).collect(),
        why: why.to_string(),
    });
    let sums: Vec<_> = sums.collect();
    let mut examined = Vec::new();
    for path in files {
        let file = DisclosureFile::read(path)?;
        same(path, &file, &found)?;
        let author = roster.members().find(|by| roster.name(*by) == file.member);
        let blob = |hash: &Hash| store::blob(folder, hash);
        let finding = match (author, file.secret()) {
            (Some(author), Some(secret)) => match void.examine(author, &secret, blob) {
                Ok(None) => AuthorFinding::Right,
                Ok(Some(deviation)) => AuthorFinding::Deviates(deviation.sentence(name)),
                Err(why) => AuthorFinding::Refused(why),
            },
            _ => AuthorFinding::Refused(format!("{} is no member of the federation", file.member)),
        };
        let member = file.member;
        examined.push(ExaminedAuthor { member, finding });
    }
    let looked_at = |author: &String| {
        let mut of = examined.iter().filter(|one| one.member == *author);
        of.any(|one| !matches!(one.finding, AuthorFinding::Refused(_)))
    };
    let authors = sums.iter().flat_map(|sum: &CorruptedSum| &sum.authors);
    let not_looked_at = authors.filter(|author| !looked_at(author)).cloned();
    Ok(Blame {
        federation_name: found.kept.federation().to_owned(),
        round,
        block: found.block(),
        not_looked_at: not_looked_at.collect(),
        sums,
        examined,
    })
}

/// Returns whether a file is of the round.
fn same(path: &Path, file: &DisclosureFile, found: &FoundRound) -> Result<(), DisclosureFileError> {
    let round = found.of.round.round;
    if (&file.federation, file.round, &file.block) == (&found.federation(), round, &found.block()) {
        return Ok(());
    }
    let words = |round: u64, block: &str, federation: &str| {
        format!("round {round} with block {block} of the federation {federation}")
    };
    Err(DisclosureFileError::Other {
        file: path.to_owned(),
        found: words(file.round, &file.block, &file.federation),
        expected: words(round, &found.block(), &found.federation()),
    })
}

/// Returns what the node with this state folder can disclose of a void round.
///
/// # Errors
/// [`BlameError`]: nobody can be blamed for the round, or the node has no secret of it.
pub fn disclosure(
    folder: &Path,
    federation: Option<&Path>,
    round: u64,
) -> Result<DisclosureFile, BlameError> {
    let found = FoundRound::find(folder, federation, round)?;
    let void = found.void(folder)?;
    let roster = &found.epoch.roster;
    let me = roster.position(&found.kept.key);
    let member = me.map_or_else(
        || found.kept.key.to_string(),
        |me| roster.name(me).to_owned(),
    );
    let refused = |why: String| BlameError::Secret {
        member: member.clone(),
        round,
        why,
    };
    let me = me.ok_or_else(|| refused("it was no member then".into()))?;
    let secret = secret(folder, &found.kept.records, round);
    let forgotten = "its node has no secret of this round: it was not there when the round was adopted, more \
                     rounds were void since, or the agreement has changed";
    let secret = secret.ok_or_else(|| refused(forgotten.into()))?;
    void.keys(me, &secret).map_err(refused)?;
    Ok(DisclosureFile::new(
        found.federation(),
        (round, found.block()),
        member,
        &secret,
    ))
}

/// The last secret of a round that a journal names and that is here.
fn secret(folder: &Path, records: &[JournalRecord], round: u64) -> Option<Secret> {
    let named = records.iter().rev().filter_map(|record| match record {
        JournalRecord::Prepared {
            round: of, blob, ..
        } if *of == round => Some(Hash(*blob)),
        _ => None,
    });
    let mut secrets = named.filter_map(|hash| disclosed_secret(&store::blob(folder, &hash)?));
    secrets.next()
}
