//! Going on without members that are gone for good: what the institution asked for, beside the journal,
//! and the lines about it.
//!
//! ```text
//! STATE/recovery/EPOCH.lost   the members declared lost in that epoch, a name a line; written by
//!                             `rota recover`
//! ```
//!
//! A node looks for it while it runs, so it may be written before the node starts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use protocol::{Epoch, MemberIndex, Report, Time};
use serde_json::json;
use silo::Notice;

use super::config::Institution;
use super::output::Output;

/// Name of the folder.
const FOLDER: &str = "recovery";

/// Names of members, for people.
fn names(epoch: &Epoch, members: &[MemberIndex]) -> String {
    let names: Vec<_> = members
        .iter()
        .map(|member| epoch.roster.name(*member))
        .collect();
    names.join(", ")
}

/// What an institution asked for in one epoch.
#[derive(Debug, Clone)]
pub struct Wish {
    file: PathBuf,
}

impl Wish {
    /// In the epoch in force, of the node with this state folder.
    pub fn of(state: &Path, epoch: &Epoch) -> Self {
        Self {
            file: state.join(FOLDER).join(format!("{:#}.lost", epoch.id)),
        }
    }

    /// The members declared lost, ascending; none if nothing was asked for.
    pub fn lost(&self, epoch: &Epoch) -> Option<Vec<MemberIndex>> {
        let text = fs::read_to_string(&self.file).ok()?;
        let position = |name: &str| {
            let silos = epoch.roster.silos();
            let at = silos.iter().position(|silo| silo.name == name)?;
            Some(MemberIndex(at as u16))
        };
        let lost: Option<BTreeSet<_>> = text.lines().map(position).collect();
        lost.map(|lost| lost.into_iter().collect())
    }

    /// Asks for it: the node signs it, and that cannot be taken back.
    ///
    /// # Errors
    /// An error of the system.
    pub fn ask(&self, lost: &[String]) -> io::Result<()> {
        if let Some(folder) = self.file.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = self.file.with_extension("new");
        fs::write(&new, lost.join("\n") + "\n")?;
        fs::rename(new, &self.file)
    }
}

/// Prints what the silo hears of recoveries.
pub(super) struct Recoveries {
    pub(super) institution: Institution,
    pub(super) output: Output,
}

impl Recoveries {
    pub(super) fn observe(&self, at: Time, notice: &Notice) {
        let Notice::Protocol(report) = notice else {
            return;
        };
        let Some((mut document, line)) = line(&self.institution, report) else {
            return;
        };
        document["at"] = at.elapsed().as_secs_f64().into();
        self.output.print(SystemTime::now(), document, &line);
    }
}

/// The line about a report, and the same as a document.
fn line(institution: &Institution, report: &Report) -> Option<(serde_json::Value, String)> {
    let epoch = &institution.agreement.epoch;
    match report {
        Report::Recovery {
            lost,
            signed,
            needed,
            round,
            notarised,
        } => {
            let (gone, by) = (names(epoch, lost), names(epoch, signed));
            let own = signed.contains(&institution.me);
            let advice = match (own, signed.len() < *needed) {
                (false, _) => {
                    let each = lost
                        .iter()
                        .map(|lost| format!(" --lost {}", epoch.roster.name(*lost)));
                    let each: String = each.collect();
                    format!("; if they are gone for good, `rota recover{each}` signs it here too")
                }
                (true, true) => "; this node does nothing more in the present epoch".to_owned(),
                (true, false) => String::new(),
            };
            let risk = match notarised {
                Some(view) => format!(
                    "; the block of view {view} was notarised, so a member declared lost may have one \
                     round more"
                ),
                None => String::new(),
            };
            let line = format!(
                "recovery without {gone}, after round {round}: {} of {needed} signatures ({by}){risk}{advice}",
                signed.len()
            );
            let document = json!({
                "event": "recovery", "lost": gone, "signed": by, "needed": needed,
                "round": round, "notarised": notarised,
            });
            Some((document, line))
        }
        Report::LeftBehind {
            recovery,
            by,
            round,
        } => {
            let by = names(epoch, by);
            let line = format!(
                "warning: {by} declared this institution lost and went on without it after round {round} \
                 (recovery {recovery}). This node does not follow by itself. If they are right, ask them \
                 to admit it again, and start it with `rota run --follow-recovery {recovery} \
                 --wait-for-admission`"
            );
            let document = json!({
                "event": "left-behind", "by": by, "round": round,
                "recovery": format!("{recovery:#}"),
            });
            Some((document, line))
        }
        _ => None,
    }
}
