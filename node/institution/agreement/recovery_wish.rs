//! Going on without members that are gone for good: what the institution asked for, beside the journal,
//! and the lines about it.
//!
//! ```text
//! STATE/recovery/EPOCH.lost   the members declared lost in that epoch, a name a line, behind a first line
//!                             that says `abandon` or nothing; or one line `give up ROUND`;
//!                             written by `rota recover`
//! ```
//!
//! A node looks at it while it runs, so it may be written before the node starts, and again while it runs:
//! the last one counts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use protocol::{Epoch, Hash, MemberIndex, Report, Time};
use silo::Notice;

use crate::events::NodeEvent;
use crate::institution::config::Institution;
use crate::institution::report::output::OutputLines;
use crate::store;

/// The first line, where what was confirmed is abandoned.
const ABANDON: &str = "abandon";
/// Beginning of the only line, where a round is given up.
const GIVE_UP: &str = "give up ";
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

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// File with the wish of an institution in one epoch.
#[derive(Debug, Clone)]
pub struct WishFile {
    file: PathBuf,
}

/// Wish of an institution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveryWish {
    /// To go on without these members.
    Without {
        /// The members declared lost, ascending.
        lost: Vec<MemberIndex>,
        /// See [`Input::Recover`](protocol::Input::Recover).
        abandon: bool,
    },
    /// To do this final round again, whose outcome no quorum certifies.
    GiveUp(u64),
}

impl WishFile {
    /// In the epoch in force, of the node with this state folder.
    pub fn of(state: &Path, epoch: &Epoch) -> Self {
        Self {
            file: state.join(FOLDER).join(format!("{:#}.lost", epoch.id)),
        }
    }

    /// Returns what was asked for last; `None` if nothing was.
    pub fn wanted(&self, epoch: &Epoch) -> Option<RecoveryWish> {
        let text = fs::read_to_string(&self.file).ok()?;
        let position = |name: &str| {
            let silos = epoch.roster.silos();
            let at = silos.iter().position(|silo| silo.name == name)?;
            Some(MemberIndex(at as u16))
        };
        let mut lines = text.lines();
        let first = lines.next()?;
        if let Some(round) = first.strip_prefix(GIVE_UP) {
            return round.parse().ok().map(RecoveryWish::GiveUp);
        }
        let lost: Option<BTreeSet<_>> = lines.map(position).collect();
        Some(RecoveryWish::Without {
            lost: lost?.into_iter().collect(),
            abandon: first == ABANDON,
        })
    }

    /// Asks for it: the node signs it, also while it runs. What was asked for before counts no more.
    ///
    /// # Errors
    /// An error of the system.
    pub fn ask(&self, lost: &[String], abandon: bool) -> io::Result<()> {
        let first = if abandon { ABANDON } else { "" };
        self.write(&format!("{first}\n{}\n", lost.join("\n")))
    }

    /// Asks for a round to be given up.
    ///
    /// # Errors
    /// An error of the system.
    pub fn give_up(&self, round: u64) -> io::Result<()> {
        self.write(&format!("{GIVE_UP}{round}\n"))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let private = |why: store::StoreOpenError| io::Error::other(why.to_string());
        if let Some(state) = self.file.parent().and_then(Path::parent) {
            store::subfolder(state, FOLDER).map_err(private)?;
        }
        let new = self.file.with_extension("new");
        fs::write(&new, text)?;
        store::close_file(&new)?;
        fs::rename(new, &self.file)
    }
}

/// Prints what the silo hears of recoveries.
pub(in crate::institution) struct RecoveryPrinter {
    pub(in crate::institution) institution: Institution,
    pub(in crate::institution) output: OutputLines,
}

impl RecoveryPrinter {
    pub(in crate::institution) fn observe(&self, at: Time, notice: &Notice) {
        let Notice::Protocol(report) = notice else {
            return;
        };
        let Some((event, line)) = line(&self.institution, report) else {
            return;
        };
        let at = at.elapsed().as_secs_f64();
        self.output.print(SystemTime::now(), at, event, &line);
    }
}

/// The event of a report, and the line about it.
fn line(institution: &Institution, report: &Report) -> Option<(NodeEvent, String)> {
    let epoch = &institution.agreement.epoch;
    match report {
        Report::Recovery {
            lost,
            signed,
            confirmed,
            needed,
            round,
            notarised,
        } => {
            let (gone, by) = (names(epoch, lost), names(epoch, signed));
            let own = signed.contains(&institution.me);
            let advice = match (own, signed.len() < *needed) {
                (false, _) => sign_here(epoch, lost, *round),
                (true, true) if lost.is_empty() => {
                    "; this node does nothing more in the present epoch. If a member is gone that has to \
                     sign, `rota recover --lost ...` corrects it"
                        .to_owned()
                }
                (true, true) => "; this node does nothing more in the present epoch. If these are not the \
                                 members that are gone, `rota recover` with the right ones corrects it"
                    .to_owned(),
                (true, false) => so_many_confirmed(epoch, confirmed, *needed),
            };
            let risk = match notarised {
                Some(view) => format!(
                    "; the block of view {view} was notarised, so a member declared lost may have one \
                     round more"
                ),
                None => String::new(),
            };
            let what = if lost.is_empty() {
                format!("round {} is given up", round + 1)
            } else {
                format!("recovery without {gone}, after round {round}")
            };
            let line = format!(
                "{what}: {} of {needed} signatures ({by}){risk}{advice}",
                signed.len()
            );
            let event = NodeEvent::Recovery {
                lost: gone,
                signed: by,
                needed: *needed,
                confirmed: names(epoch, confirmed),
                round: *round,
                notarised: *notarised,
            };
            Some((event, line))
        }
        Report::RecoveryHeld { confirmed, awaits } => Some(held(epoch, confirmed, awaits)),
        Report::LeftBehind {
            recovery,
            by,
            round,
        } => Some(left_behind(epoch, recovery, by, *round)),
        _ => None,
    }
}

/// Returns what an institution can do that has not signed a recovery without these members after this round.
fn sign_here(epoch: &Epoch, lost: &[MemberIndex], round: u64) -> String {
    if lost.is_empty() {
        let open = round + 1;
        return format!(
            "; if round {open} has no outcome here either, sign it here too with `rota recover --abort-round {open}`"
        );
    }
    let each = lost
        .iter()
        .map(|lost| format!(" --lost {}", quoted(epoch.roster.name(*lost))));
    let each: String = each.collect();
    format!("; if they are gone for good, sign it here too with `rota recover{each}`")
}

/// Returns who has confirmed that all signatures of a recovery are there.
fn so_many_confirmed(epoch: &Epoch, confirmed: &[MemberIndex], needed: usize) -> String {
    format!(
        "; {} of {needed} have confirmed that they have all signatures ({})",
        confirmed.len(),
        if confirmed.is_empty() {
            "none yet".into()
        } else {
            names(epoch, confirmed)
        }
    )
}

/// A correction that this node cannot sign yet: it has confirmed to go on without others, and so may
/// have those that it awaits.
fn held(epoch: &Epoch, confirmed: &[MemberIndex], awaits: &[MemberIndex]) -> (NodeEvent, String) {
    let (gone, open) = (names(epoch, confirmed), names(epoch, awaits));
    let line = format!(
        "warning: this node cannot sign the correction yet: it has confirmed to continue without {gone}, and \
         {open} may have confirmed the same. It signs as soon as one of them has made the correction too; if they \
         confirm, it continues as confirmed. If {open} will never come back, name them as lost too: `rota recover \
         --abandon --lost ...`"
    );
    let event = NodeEvent::RecoveryHeld {
        confirmed_without: gone,
        awaits: open,
    };
    (event, line)
}

/// A recovery in which these members declared this institution lost.
fn left_behind(
    epoch: &Epoch,
    recovery: &Hash,
    by: &[MemberIndex],
    round: u64,
) -> (NodeEvent, String) {
    let by = names(epoch, by);
    let line = format!(
        "warning: {by} declared this institution lost and continued without it after round {round} (recovery \
         {recovery:#}). This node does not follow by itself. If they are right, ask them to admit it again, and \
         start it with `rota run --follow-recovery {recovery:#} \
         --wait-for-admission`"
    );
    let event = NodeEvent::LeftBehind {
        by,
        round,
        recovery: format!("{recovery:#}"),
    };
    (event, line)
}
