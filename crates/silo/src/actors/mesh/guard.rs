//! What others may cost this silo: the budget, what it dropped, and what is told of that.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use protocol::budget::{self, Admitted, Budget, Denied, Path};
use protocol::envelope::{OpenError, Opened};
use protocol::message::Kind;
use protocol::{Epoch, MemberIndex, Time};

use crate::handle::Counters;
use crate::notice::Notice;

/// The same complaint about a member is told once in that time.
const ONCE_IN: Duration = Duration::from_secs(60);

/// What is complained about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Unopened,
    Dropped(Denied),
}

/// When it was last told, and how often it has happened since.
struct Told {
    at: Time,
    since: u64,
}

pub(super) struct Guard {
    budget: Budget,
    complaints: BTreeMap<(MemberIndex, About), Told>,
    counters: Rc<Counters>,
}

/// What follows from something that was not let in.
pub(super) struct Consequence {
    /// What is told, if it is time.
    pub(super) notices: Vec<Notice>,
    /// How long its neighbour is muted from now on.
    pub(super) mute: Option<Duration>,
}

impl Guard {
    pub(super) fn new(epoch: &Epoch, now: Time, counters: Rc<Counters>) -> Self {
        Self {
            budget: Budget::new(epoch, now),
            complaints: BTreeMap::new(),
            counters,
        }
    }

    /// Takes note of what this silo says.
    pub(super) fn said(&mut self, to: MemberIndex, frame: &[u8]) {
        if budget::kind(frame) == Some(Kind::SyncRequest) {
            self.budget.asked(to);
        }
    }

    /// Whether a frame may be opened.
    pub(super) fn admit(
        &mut self,
        now: Time,
        from: MemberIndex,
        path: Path,
        frame: &[u8],
    ) -> Result<Admitted, Denied> {
        let place = self.counters.place();
        self.budget.at(place.view, place.last_final);
        self.budget.admit(now, from, path, frame)
    }

    /// A frame opened. Whether it is to be heard.
    pub(super) fn opened(
        &mut self,
        now: Time,
        admitted: &Admitted,
        checked: u64,
        opened: &Opened,
    ) -> Result<(), Denied> {
        self.budget.opened(now, admitted, checked, opened)
    }

    /// A frame did not open.
    pub(super) fn refused(
        &mut self,
        now: Time,
        from: MemberIndex,
        (admitted, checked): (&Admitted, u64),
        error: &OpenError,
    ) -> Consequence {
        self.counters.add(|counts| counts.unopened += 1);
        let mute = self.budget.refused(now, admitted, checked, error);
        let told = self.complain(now, from, About::Unopened);
        let unopened = |times| Notice::Unopened {
            from,
            reason: error.to_string(),
            times,
        };
        self.follow(from, told.map(unopened), mute)
    }

    /// A frame was dropped.
    pub(super) fn denied(&mut self, now: Time, from: MemberIndex, why: Denied) -> Consequence {
        self.counters.add(|counts| counts.dropped += 1);
        // These are nobody's fault, or were told when the mute began.
        let silent = matches!(why, Denied::Stale | Denied::Repeated | Denied::Muted);
        let told = match silent {
            true => None,
            false => self.complain(now, from, About::Dropped(why)),
        };
        let dropped = |times| Notice::Dropped {
            from,
            reason: why.to_string(),
            times,
        };
        let mute = self.budget.denied(now, from, why);
        self.follow(from, told.map(dropped), mute)
    }

    /// Whether a member may ask for so many blobs.
    pub(super) fn wants(&mut self, now: Time, by: MemberIndex, blobs: usize) -> bool {
        let place = self.counters.place();
        self.budget.at(place.view, place.last_final);
        self.budget.admit_blob_request(now, by, blobs)
    }

    fn follow(
        &self,
        member: MemberIndex,
        told: Option<Notice>,
        mute: Option<Duration>,
    ) -> Consequence {
        let muted = mute.map(|span| {
            self.counters.add(|counts| counts.mutes += 1);
            Notice::Muted { member, span }
        });
        Consequence {
            notices: told.into_iter().chain(muted).collect(),
            mute,
        }
    }

    /// How often it happened since it was last told, if it is time to tell it.
    fn complain(&mut self, now: Time, about: MemberIndex, what: About) -> Option<u64> {
        let told = self.complaints.get_mut(&(about, what));
        let Some(told) = told else {
            let first = Told { at: now, since: 0 };
            self.complaints.insert((about, what), first);
            return Some(1);
        };
        told.since += 1;
        if now - told.at < ONCE_IN {
            return None;
        }
        told.at = now;
        Some(std::mem::take(&mut told.since))
    }
}
