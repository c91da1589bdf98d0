//! Amendments in the state folder: what a node knows of them, and what its institution approves.
//!
//! ```text
//! STATE/amendments/ID.amendment   an amendment, and who approves it; written by the node, and by the
//!                                 command that proposes it
//! STATE/amendments/ID.approved    this institution approves it; written by `rota federation`
//! ```
//!
//! ID is the beginning of the amendment's hash. A node looks for approvals while it runs, so they may
//! be given before it starts, and count again after a restart.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fs, io};

use agreement::Agreement;
use protocol::message::Amendment;
use protocol::{Epoch, Formats, Genesis, Hash, MemberIndex, Report, Time, codec};
use serde::{Deserialize, Serialize};
use serde_json::json;
use silo::Notice;

use super::config::Institution;
use super::output::Output;
use crate::federation::changed_words;

/// Name of the folder.
const FOLDER: &str = "amendments";

/// An amendment as a node knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownAmendment {
    /// The epoch that it would end.
    pub epoch: Hash,
    /// The amendment.
    pub amendment: Amendment,
    /// The members that approve it, as far as this node knows, ascending.
    pub approved: Vec<MemberIndex>,
    /// Number of approvals that it needs.
    pub needed: u64,
}

impl KnownAmendment {
    /// What names it in files and on the command line: the beginning of its hash.
    pub fn id(&self) -> String {
        self.amendment.hash().to_string()
    }

    /// Why this program cannot follow it, if it cannot.
    pub fn unspoken(&self) -> Option<String> {
        let spoken = self.amendment.is_spoken(Formats::SPOKEN);
        spoken.err().map(|why| why.to_string())
    }

    /// What it changes, one line each.
    ///
    /// # Errors
    /// Why its text cannot be read.
    pub fn lines(&self, agreement: &Agreement) -> Result<Vec<String>, String> {
        let genesis = Genesis {
            silos: self.amendment.silos.clone(),
            charter: self.amendment.charter.clone(),
        };
        let format = self.amendment.format;
        let epoch = Epoch::first_in(format, &genesis).map_err(|error| error.to_string())?;
        let after = agreement.after(&self.amendment, Arc::new(epoch));
        let after = after.map_err(|error| error.to_string())?;
        Ok(changed_words(agreement, &after))
    }
}

/// The amendments of one state folder.
#[derive(Debug, Clone)]
pub struct Amendments {
    folder: PathBuf,
}

impl Amendments {
    /// Of this state folder. Nothing is created yet.
    pub fn of(state: &Path) -> Self {
        Self {
            folder: state.join(FOLDER),
        }
    }

    /// All that are known, by id. Files that cannot be read are passed over.
    pub fn known(&self) -> Vec<KnownAmendment> {
        let read = |path: &PathBuf| {
            let bytes = fs::read(path).ok()?;
            codec::decode::<KnownAmendment>(&bytes, codec::LIMIT).ok()
        };
        let mut known: Vec<_> = self.files("amendment").iter().filter_map(read).collect();
        known.sort_by_key(KnownAmendment::id);
        known
    }

    /// The ids of those that this institution approves.
    pub fn approved(&self) -> BTreeSet<String> {
        let files = self.files("approved").into_iter();
        let stem = |path: PathBuf| Some(path.file_stem()?.to_str()?.to_owned());
        files.filter_map(stem).collect()
    }

    /// Keeps what is known of an amendment.
    ///
    /// # Errors
    /// An error of the system.
    pub fn keep(&self, known: &KnownAmendment) -> io::Result<()> {
        self.write(&format!("{}.amendment", known.id()), &codec::encode(known))
    }

    /// This institution approves an amendment, which must be known.
    ///
    /// # Errors
    /// An error of the system.
    pub fn approve(&self, id: &str) -> io::Result<()> {
        self.write(&format!("{id}.approved"), b"")
    }

    /// Removes those that would end another epoch than this one.
    pub fn only_of(&self, epoch: Hash) {
        let now: BTreeSet<_> = self
            .known()
            .into_iter()
            .filter(|known| known.epoch == epoch)
            .map(|known| known.id())
            .collect();
        for path in ["amendment", "approved"]
            .into_iter()
            .flat_map(|kind| self.files(kind))
        {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if stem.is_none_or(|id| !now.contains(id)) {
                // One that stays is of no use to anybody.
                let _ = fs::remove_file(path);
            }
        }
    }

    fn files(&self, kind: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        paths
            .filter(|path| path.extension().is_some_and(|extension| extension == kind))
            .collect()
    }

    /// Writes a file in one piece, so that no half of it is ever read.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let (new, file) = (
            self.folder.join(format!("{name}.new")),
            self.folder.join(name),
        );
        fs::write(&new, bytes)?;
        fs::rename(new, file)
    }
}

/// Keeps and prints what the silo hears of amendments.
pub(super) struct HeardOf {
    pub(super) amendments: Amendments,
    pub(super) institution: Institution,
    pub(super) output: Output,
}

impl HeardOf {
    pub(super) fn observe(&mut self, at: Time, notice: &Notice) {
        let Notice::Protocol(Report::Amendment {
            amendment,
            approved,
            needed,
            ..
        }) = notice
        else {
            return;
        };
        let agreement = &self.institution.agreement;
        let known = KnownAmendment {
            epoch: agreement.epoch.id,
            amendment: (**amendment).clone(),
            approved: approved.clone(),
            needed: *needed as u64,
        };
        if let Err(error) = self.amendments.keep(&known) {
            tracing::warn!("an amendment cannot be kept: {error}");
        }
        let id = known.id();
        let names: Vec<_> = approved
            .iter()
            .map(|member| agreement.epoch.roster.name(*member).to_owned())
            .collect();
        let own = approved.contains(&self.institution.me);
        let unspoken = known.unspoken();
        let advice = match (own || approved.len() >= *needed, unspoken) {
            (_, Some(why)) => format!("; {why}"),
            (true, None) => String::new(),
            (false, None) => format!(
                "; `rota federation changes` shows it, `rota federation approve {id}` approves it"
            ),
        };
        let line = format!(
            "amendment {id}: {} of {needed} approvals ({}){advice}",
            approved.len(),
            names.join(", ")
        );
        let document = json!({
            "event": "amendment", "at": at.elapsed().as_secs_f64(), "amendment": id,
            "approved": names, "needed": needed,
        });
        self.output.print(SystemTime::now(), document, &line);
    }
}
