//! Amendments in the state folder: what a node knows of them, and what its institution says to them.
//!
//! ```text
//! STATE/amendments/ID.amendment   an amendment, and who approves it; written by the node, and by the
//!                                 command that proposes it
//! STATE/amendments/ID.approved    the same amendment, that this institution approves it (or does no
//!                                 more), and the number of that word; written by `rota federation`
//! ```
//!
//! ID is the whole hash of the amendment in the file. A file with another name is reported and never
//! used: what the institution approved is what its own file holds, whatever else has its name. A node
//! looks for these files while it runs, so they may be written before it starts, and count again after a
//! restart. What the silo forgets of an amendment that nobody approves is removed here, too. A word to an
//! amendment that came into force stays: where no earlier signature is missing, it is the institution's
//! signature under that agreement.

mod heard;
mod known;
mod word;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use protocol::{Epoch, Hash, codec};
use serde::de::DeserializeOwned;
use task::file;

pub(in crate::institution) use heard::HeardOf;
pub use known::KnownAmendment;
pub use word::AmendmentWord;

use crate::store::{self, StoreOpenError};

/// Name of the folder.
const FOLDER: &str = "amendments";
/// Ending of the name of a known amendment.
const KNOWN: &str = "amendment";
/// Ending of the name of this institution's word.
const WORD: &str = "approved";

/// The amendments of one state folder.
#[derive(Debug, Clone)]
pub struct AmendmentFolder {
    state: PathBuf,
}

/// Content of the folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundAmendments {
    /// The amendments that are known, ascending by hash.
    pub known: Vec<KnownAmendment>,
    /// Words of this institution, ascending by the hash of the amendment.
    pub words: Vec<AmendmentWord>,
    /// Files that are not used.
    pub unused: Vec<Unused>,
}

impl FoundAmendments {
    /// Returns what this institution says to an amendment.
    pub fn word(&self, amendment: &Hash) -> Option<&AmendmentWord> {
        let mut words = self.words.iter();
        words.find(|word| word.amendment.hash() == *amendment)
    }

    /// The amendments of this epoch that are known, ascending by hash; those that this institution has
    /// said something to are among them.
    pub fn of(&self, epoch: &Epoch) -> Vec<KnownAmendment> {
        let known = self.known.iter();
        let known = known.filter(|known| known.epoch == epoch.id).cloned();
        let mut known: Vec<_> = known.collect();
        for word in self.words_of(&epoch.id) {
            let hash = word.amendment.hash();
            if known.iter().all(|known| known.hash() != hash) {
                known.push(KnownAmendment {
                    epoch: epoch.id,
                    needed: word.amendment.needed(epoch) as u64,
                    approved: Vec::new(),
                    amendment: word.amendment.clone(),
                });
            }
        }
        known.sort_by_key(KnownAmendment::hash);
        known
    }

    /// Returns what this institution says to amendments of this epoch.
    pub fn words_of(&self, epoch: &Hash) -> impl Iterator<Item = &AmendmentWord> {
        let words = self.words.iter();
        words.filter(move |word| word.epoch == *epoch)
    }
}

/// A file that is not used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unused {
    /// The file.
    pub file: PathBuf,
    /// Reason.
    pub why: String,
}

impl Unused {
    /// The file and the reason in a sentence.
    pub fn line(&self) -> String {
        format!("{} is not used: {}", self.file.display(), self.why)
    }
}

impl AmendmentFolder {
    /// Of this state folder. Nothing is created yet.
    pub fn of(state: &Path) -> Self {
        Self {
            state: state.to_owned(),
        }
    }

    /// All that is in the folder.
    pub fn found(&self) -> FoundAmendments {
        let mut found = self.words();
        for path in self.files(KNOWN) {
            match read(&path, |known: &KnownAmendment| known.amendment.hash()) {
                Ok(known) => found.known.push(known),
                Err(unused) => found.unused.push(unused),
            }
        }
        found.known.sort_by_key(|known| known.amendment.hash());
        found.unused.sort();
        found
    }

    /// Returns what the folder has, without the amendments that are only known.
    pub fn words(&self) -> FoundAmendments {
        let mut found = FoundAmendments::default();
        for path in self.files(WORD) {
            match read(&path, |word: &AmendmentWord| word.amendment.hash()) {
                Ok(word) => found.words.push(word),
                Err(unused) => found.unused.push(unused),
            }
        }
        found.words.sort_by_key(|word| word.amendment.hash());
        found
    }

    /// Keeps what is known of an amendment.
    ///
    /// # Errors
    /// [`StoreOpenError`]: an error of the system.
    pub fn keep(&self, known: &KnownAmendment) -> Result<(), StoreOpenError> {
        let hash = known.amendment.hash();
        self.write(&hash, KNOWN, &codec::encode(known))
    }

    /// Keeps what this institution says, to be signed by its node.
    ///
    /// # Errors
    /// [`StoreOpenError`]: an error of the system.
    pub fn say(&self, word: &AmendmentWord) -> Result<(), StoreOpenError> {
        let hash = word.amendment.hash();
        self.write(&hash, WORD, &codec::encode(word))
    }

    /// Removes what is known of an amendment that nobody approves, and that the silo has forgotten: otherwise a
    /// member that proposes and withdraws fills the others' disks. What this institution says stays.
    pub fn forget(&self, amendment: &Hash) {
        self.remove(amendment, KNOWN);
    }

    /// Removes the oldest known amendments to which this institution has said nothing, until at most `most` are
    /// left: after a restart the silo hears again of those that stand.
    pub fn at_most(&self, most: usize) {
        let FoundAmendments { known, words, .. } = self.found();
        let said: BTreeSet<_> = words.iter().map(|word| word.amendment.hash()).collect();
        let hashes = known.iter().map(KnownAmendment::hash);
        let unsaid = hashes.filter(|hash| !said.contains(hash));
        let written = |hash: &Hash| fs::metadata(self.path(hash, KNOWN))?.modified();
        let mut unsaid: Vec<_> = unsaid.map(|hash| (written(&hash).ok(), hash)).collect();
        unsaid.sort();
        let more = unsaid.len().saturating_sub(most);
        for (_, hash) in &unsaid[..more] {
            self.remove(hash, KNOWN);
        }
    }

    /// Removes what would end another epoch than this one, but for words to amendments that came into
    /// force. What is not used stays, because it is somebody else's.
    pub fn only_of(&self, epoch: Hash, in_force: &BTreeSet<Hash>) {
        let FoundAmendments { known, words, .. } = self.found();
        let known = known.into_iter().filter(|known| known.epoch != epoch);
        let words = words.into_iter().filter(|word| word.epoch != epoch);
        let known = known.map(|known| (known.amendment.hash(), KNOWN));
        let words = words.map(|word| (word.amendment.hash(), WORD));
        let words = words.filter(|(hash, _)| !in_force.contains(hash));
        for (hash, kind) in known.chain(words) {
            self.remove(&hash, kind);
        }
    }

    fn remove(&self, hash: &Hash, kind: &str) {
        // One that stays is of no use to anybody.
        let _ = fs::remove_file(self.path(hash, kind));
    }

    fn path(&self, hash: &Hash, kind: &str) -> PathBuf {
        self.state.join(FOLDER).join(name(hash, kind))
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state.join(FOLDER)).into_iter();
        let paths = entries.flatten().flatten().map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == kind))
            .collect()
    }

    fn write(&self, hash: &Hash, kind: &str, bytes: &[u8]) -> Result<(), StoreOpenError> {
        let folder = store::subfolder(&self.state, FOLDER)?;
        store::keep_file(&folder, &name(hash, kind), bytes)
    }
}

fn name(hash: &Hash, kind: &str) -> String {
    format!("{hash:#}.{kind}")
}

/// Reads a file whose name must be the hash of its content.
fn read<T: DeserializeOwned + serde::Serialize>(
    path: &Path,
    hash: impl Fn(&T) -> Hash,
) -> Result<T, Unused> {
    let unused = |why: String| Unused {
        file: path.to_owned(),
        why,
    };
    let bytes = file::read(path, codec::LIMIT as u64);
    let bytes = bytes.map_err(|error| unused(format!("it cannot be read ({error})")))?;
    let read = codec::decode::<T>(&bytes, codec::LIMIT);
    let read = read.map_err(|error| {
        unused(format!(
            "it cannot be read ({error}): another version of Rota wrote it, or it is damaged; remove it"
        ))
    })?;
    let found = format!("{:#}", hash(&read));
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    if stem == Some(&*found) {
        Ok(read)
    } else {
        Err(unused(format!(
            "it holds the amendment {found}, and its name must be that: somebody renamed it or put \
             other bytes there; remove it"
        )))
    }
}

#[cfg(test)]
mod tests;
