//! Limits what other members may cost this silo: budgets, mutes, and notices about dropped frames.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use protocol::budget::{Admitted, Budget, Denied, Path};
use protocol::envelope::{OpenError, Opened};
use protocol::message::Kind;
use protocol::{Epoch, Frame, MemberIndex, Time};

use crate::notice::Notice;
use crate::run_state::Counters;

/// Least time between two notices of one kind about one member.
const NOTICE_INTERVAL: Duration = Duration::from_secs(60);

/// Subject of a complaint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ComplaintSubject {
    Unopened,
    Dropped(Denied),
}

/// A complaint about a member: when its last notice was sent, and how often it occurred since.
struct Complaint {
    notified: Time,
    since: u64,
}

/// The budget of every member, and the complaints about them.
pub(super) struct Guard {
    budget: Budget,
    /// Members of this epoch. Neighbours behind them are former members, which have no name.
    members: usize,
    complaints: BTreeMap<(MemberIndex, ComplaintSubject), Complaint>,
    counters: Rc<Counters>,
}

/// Consequence of a frame that was not let in.
pub(super) struct Consequence {
    /// Notices to send; none while the last is recent.
    pub(super) notices: Vec<Notice>,
    /// Time from now for which the neighbour that passed it on is muted.
    pub(super) mute: Option<Duration>,
}

impl Guard {
    pub(super) fn new(epoch: &Epoch, now: Time, counters: Rc<Counters>) -> Self {
        Self {
            budget: Budget::new(epoch, now),
            members: epoch.roster.len(),
            complaints: BTreeMap::new(),
            counters,
        }
    }

    /// Counts a frame that this silo sends: a sync request entitles the member to an answer.
    pub(super) fn sent(&mut self, to: MemberIndex, frame: &Frame) {
        if frame.kind() == Some(Kind::SyncRequest) {
            self.budget.asked(to);
        }
    }

    /// Returns whether a frame may be opened.
    pub(super) fn admit(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        frame: &Frame,
    ) -> Result<Admitted, Denied> {
        let position = self.counters.position();
        self.budget.at(position.view, position.last_final);
        self.budget.admit(now, from, path, frame)
    }

    /// Charges a frame that opened. An error if it must be dropped nevertheless.
    pub(super) fn opened(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        opened: &Opened,
    ) -> Result<(), Denied> {
        self.budget.opened(now, admitted, checked, opened)
    }

    /// Charges a frame that did not open.
    pub(super) fn refused(
        &mut self,
        now: Time,
        from: MemberIndex,
        (admitted, checked): (&Admitted, u64),
        error: &OpenError,
    ) -> Consequence {
        self.counters.add(|counts| counts.unopened += 1);
        let mute = self.budget.refused(now, admitted, checked, error);
        let times = self.complain(now, from, ComplaintSubject::Unopened);
        let unopened = |times| Notice::Unopened {
            from,
            reason: error.to_string(),
            times,
        };
        self.follow(from, times.map(unopened), mute)
    }

    /// Charges a frame that was dropped unread.
    pub(super) fn denied(&mut self, now: Time, from: MemberIndex, why: Denied) -> Consequence {
        self.counters.add(|counts| counts.dropped += 1);
        // The first two are no fault of the member, and the mute had its own notice.
        let silent = matches!(why, Denied::Stale | Denied::Repeated | Denied::Muted);
        let times = if silent {
            None
        } else {
            self.complain(now, from, ComplaintSubject::Dropped(why))
        };
        let dropped = |times| Notice::Dropped {
            from,
            reason: why.to_string(),
            times,
        };
        let mute = self.budget.denied(now, from, why);
        self.follow(from, times.map(dropped), mute)
    }

    /// Returns whether a frame of another epoch may be looked at.
    pub(super) fn admit_elsewhere(&mut self, now: Time, from: MemberIndex) -> Result<(), Denied> {
        self.budget.admit_elsewhere(now, from)
    }

    /// Returns whether a neighbour in another epoch may be answered now.
    pub(super) fn may_answer(&mut self, now: Time, to: MemberIndex) -> bool {
        self.budget.may_answer(now, to)
    }

    /// Returns whether a member may ask for this many blobs.
    pub(super) fn wants(&mut self, now: Time, by: MemberIndex, blobs: usize) -> bool {
        let position = self.counters.position();
        self.budget.at(position.view, position.last_final);
        self.budget.admit_blob_request(now, by, blobs)
    }

    fn follow(
        &self,
        member: MemberIndex,
        notice: Option<Notice>,
        mute: Option<Duration>,
    ) -> Consequence {
        let muted = mute.map(|span| {
            self.counters.add(|counts| counts.mutes += 1);
            Notice::Muted { member, span }
        });
        let named = member.at() < self.members;
        let notices = notice.into_iter().chain(muted).filter(|_| named);
        Consequence {
            notices: notices.collect(),
            mute,
        }
    }

    /// Returns how often it occurred since its last notice; none while that is recent.
    fn complain(&mut self, now: Time, about: MemberIndex, what: ComplaintSubject) -> Option<u64> {
        let Some(complaint) = self.complaints.get_mut(&(about, what)) else {
            let first = Complaint {
                notified: now,
                since: 0,
            };
            self.complaints.insert((about, what), first);
            return Some(1);
        };
        complaint.since += 1;
        if now - complaint.notified < NOTICE_INTERVAL {
            return None;
        }
        complaint.notified = now;
        Some(std::mem::take(&mut complaint.since))
    }
}
