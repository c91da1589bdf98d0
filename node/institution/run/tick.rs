//! Checks of a node with every tick: whether to end, what to report, what its institution approves.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use protocol::{Epoch, Hash};
use silo::SiloHandle;

use super::leaving::Leaving;
use crate::events::NodeEvent;
use crate::institution::agreement::amendments::AmendmentFolder;
use crate::institution::agreement::recovery_wish::{RecoveryWish, WishFile};
use crate::institution::agreement::signed::Owed;
use crate::institution::locked;
use crate::institution::report::health::Health;
use crate::institution::report::no_part::{Waiting, WaitingChange};
use crate::institution::report::thread::Reporter;
use crate::institution::report::unreachable::Unreachable;
use crate::institution::serve::Serving;
use crate::institution::start::signed_rows::ChangedRows;
use crate::status::socket;

/// State that is checked at every tick of the node.
pub(super) struct NodeWatch {
    pub(super) leaving: Arc<Mutex<Leaving>>,
    pub(super) until_done: bool,
    pub(super) waiting: Arc<Mutex<Waiting>>,
    pub(super) serving: Option<Serving>,
    pub(super) health: Arc<Health>,
    pub(super) reporter: Reporter,
    pub(super) unreachable: Unreachable,
    pub(super) sockets: Vec<socket::Listening>,
    pub(super) names: Vec<String>,
    pub(super) amendments: AmendmentFolder,
    /// The numbers of the words to amendments that the silo has.
    pub(super) given: BTreeMap<Hash, u64>,
    /// Files that were reported because they are not used.
    pub(super) unused: BTreeSet<PathBuf>,
    /// File with the institution's wish to continue without members that are gone.
    pub(super) wish: WishFile,
    /// Last wish of the institution.
    pub(super) wanted: Option<RecoveryWish>,
    /// The institution's signature under the agreement in force, until it is there.
    pub(super) owed: Option<Owed>,
    /// Rows of another kind than the institution signed for, until it has signed with them.
    pub(super) other: Option<ChangedRows>,
    /// True if its own policy lets it contribute nothing.
    pub(super) refused: bool,
    /// The epoch in force.
    pub(super) epoch: Arc<Epoch>,
}

impl NodeWatch {
    /// Passes on what the institution says to amendments of the epoch in force: the bytes that it
    /// approved, whatever else is known under their name.
    pub(super) fn approve(&mut self, handle: &SiloHandle, began: Instant) {
        let found = self.amendments.words();
        for word in found.words_of(&self.epoch.id) {
            let hash = word.amendment.hash();
            if self.given.insert(hash, word.number) != Some(word.number) {
                if word.stands {
                    handle.approve(word.amendment.clone(), word.number)
                } else {
                    handle.withdraw(hash, word.number)
                }
            }
        }
        for unused in found.unused {
            if self.unused.insert(unused.file.clone()) {
                let line = unused.line();
                let event = NodeEvent::FileNotUsed {
                    file: unused.file.display().to_string(),
                    why: unused.why.clone(),
                };
                self.health.warning(SystemTime::now(), &line);
                let at = began.elapsed().as_secs_f64();
                self.reporter.print(at, event, format!("warning: {line}"));
            }
        }
    }

    /// Passes on that the institution has signed the agreement in force, with the rows that it has.
    pub(super) fn resume(&mut self, handle: &SiloHandle, began: Instant) {
        let waited = self.owed.is_some() || self.other.is_some();
        let health = &self.health;
        let over = |owed: &mut Owed| owed.asked().is_some_and(|from| health.questions_over(from));
        let unanswered = self.owed.take_if(over).is_some();
        self.owed.take_if(|owed| owed.is_signed());
        self.other.take_if(|other| other.is_signed());
        if !waited || self.owed.is_some() || self.other.is_some() || self.refused {
            return;
        }
        handle.resume();
        locked(&self.waiting).resume();
        let line = match unanswered {
            true => {
                "the questions that this institution did not approve are over, and it contributes again"
            }
            false => "this institution has signed the agreement in force and contributes again",
        };
        let at = began.elapsed().as_secs_f64();
        self.reporter.print(at, NodeEvent::Signed {}, line.into());
    }

    /// Reports which model was chosen to be served.
    pub(super) fn report_serving(&self) {
        if let Some(serving) = &self.serving {
            serving.report(&self.reporter);
        }
    }

    /// Passes on that the institution wants to go on without members that are gone, or to give a round up.
    pub(super) fn recover(&mut self, handle: &SiloHandle) {
        let wanted = self.wish.wanted(&self.epoch);
        if wanted != self.wanted {
            match wanted.clone() {
                Some(RecoveryWish::Without { lost, abandon }) => handle.recover(lost, abandon),
                Some(RecoveryWish::GiveUp(round)) => handle.give_up(round),
                None => {}
            }
            self.wanted = wanted;
        }
    }

    pub(super) fn why_leave(&self) -> Option<&'static str> {
        let why = || locked(&self.leaving).reason(Instant::now());
        let done = self.until_done && self.serving.as_ref().is_none_or(Serving::is_idle);
        done.then(why).flatten()
    }

    pub(super) fn report_waiting(&self, began: Instant) {
        let reachable = locked(&self.leaving).reachable();
        let at = began.elapsed().as_secs_f64();
        match locked(&self.waiting).change(reachable, Instant::now()) {
            Some(WaitingChange::Waits(why)) => {
                let event = NodeEvent::Waiting { why: why.clone() };
                self.reporter.print(at, event, why);
            }
            Some(WaitingChange::Back) => {
                let event = NodeEvent::TakingPart {};
                self.reporter.print(at, event, "taking part again".into());
            }
            None => {}
        }
    }

    pub(super) fn report_unreachable(&mut self, began: Instant) {
        let now = SystemTime::now();
        for report in self.unreachable.due(&self.health.peers(), now) {
            let Some(name) = self.names.get(report.member.at()) else {
                continue;
            };
            let event = NodeEvent::PeerUnreachable {
                member: name.clone(),
                why: report.why.clone(),
                seconds: report.lasting.as_secs(),
                attempts: report.attempts,
                again_in_seconds: report.pause.as_secs(),
            };
            let at = began.elapsed().as_secs_f64();
            self.health.warning(now, &format!("{name} {}", report.why));
            self.reporter.print(at, event, report.line(name));
        }
    }
}
