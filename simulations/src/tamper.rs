//! Puts a Byzantine member between a silo and its network.

use std::sync::Arc;

use bytes::Bytes;
use protocol::net::Command;
use protocol::{Hash, MemberIndex};
use silo::{Blobs, SiloConfig};

use crate::byzantine::{Behaviour, ByzantineMember};
use crate::recorder::Recorder;

/// Changes what one silo sends and serves.
pub struct Tamper {
    me: MemberIndex,
    member: ByzantineMember,
    /// Has the clock, and knows the view that the silo is in.
    recorder: Recorder,
    view: (u64, MemberIndex),
}

impl Tamper {
    /// A tamper for the silo with this configuration and these blobs; free parameters of its
    /// behaviours are drawn from `seed`.
    pub(crate) fn new(
        silo: &SiloConfig,
        blobs: Arc<dyn Blobs>,
        behaviours: &[Behaviour],
        seed: u64,
        recorder: Recorder,
    ) -> Self {
        let silo = &silo.member;
        let (epoch, key) = (silo.epoch.clone(), silo.key.clone());
        let first = epoch.lead(1);
        let member = ByzantineMember::new(epoch, silo.me, key, behaviours, seed);
        Self {
            me: silo.me,
            member: member.with_blobs(blobs),
            recorder,
            view: (1, first),
        }
    }

    /// The commands that go out in place of one command of the silo.
    pub fn outgoing(&mut self, command: Command) -> Vec<Command> {
        let (to, frame) = match command {
            Command::Send { to, frame } => (Some(to), frame),
            Command::Publish { frame } => (None, frame),
            other => return vec![other],
        };
        let now = self.recorder.now();
        let mut out = Vec::new();
        if let Some((view, lead, round)) = self.recorder.entered(self.me)
            && (view, lead) != self.view
        {
            self.view = (view, lead);
            out = self.member.entered(now, (view, lead), round).out;
        }
        out.extend(self.member.outgoing(now, to, frame).out);
        let command = |(to, frame)| match to {
            Some(to) => Command::Send { to, frame },
            None => Command::Publish { frame },
        };
        out.into_iter().map(command).collect()
    }

    /// What is answered to a member that asks for blobs, if the silo is not to answer itself.
    pub fn answer(&self, to: MemberIndex, wanted: &[Hash]) -> Option<Vec<Option<Bytes>>> {
        self.member.answer(to, wanted)
    }
}
