//! Puts a Byzantine member between a silo and its network.

use std::sync::Arc;

use bytes::Bytes;
use protocol::envelope::Opened;
use protocol::net::Command;
use protocol::{Hash, MemberIndex};
use silo::{Blobs, SiloConfig};

use crate::recorder::Recorder;
use bare::Behaviour;
use bare::byzantine::{ByzantineMember, certificate};
use bare::invariants::{DecodedFrame, read_frame};

/// Changes what one silo sends and serves, and keeps messages from it.
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
            member: member.with_blobs(Arc::new(move |hash| blobs.get(hash))),
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
        let mut out = self.enter();
        let now = self.recorder.now();
        out.extend(self.member.outgoing(now, to, frame).out);
        out.into_iter().map(as_command).collect()
    }

    /// A frame is delivered: the commands that go out because of it, and whether the silo gets it. Nothing
    /// is verified.
    pub fn incoming(&mut self, frame: &Bytes) -> (Vec<Command>, bool) {
        let opened = match read_frame(frame) {
            DecodedFrame::Message(message) => Opened::Message(*message),
            DecodedFrame::Evidence(_) => return (Vec::new(), true),
            DecodedFrame::Other => match certificate(frame) {
                Some(certificate) => Opened::Certificate(certificate),
                None => return (Vec::new(), true),
            },
        };
        let mut out = self.enter();
        let now = self.recorder.now();
        let (actions, received) = self.member.hear(now, &opened);
        out.extend(actions.out);
        (out.into_iter().map(as_command).collect(), received)
    }

    /// The frames that the member sends when its silo enters a view.
    fn enter(&mut self) -> Vec<AddressedFrame> {
        match self.recorder.entered(self.me) {
            Some((view, lead, round)) if (view, lead) != self.view => {
                self.view = (view, lead);
                let now = self.recorder.now();
                self.member.entered(now, (view, lead), round).out
            }
            _ => Vec::new(),
        }
    }

    /// Returns what is answered to a member that asks for blobs, if the silo is not to answer itself.
    pub fn answer(&self, to: MemberIndex, wanted: &[Hash]) -> Option<Vec<Option<Bytes>>> {
        self.member.answer(to, wanted)
    }
}

/// A frame, for one member or for all others.
type AddressedFrame = (Option<MemberIndex>, Bytes);

fn as_command((to, frame): AddressedFrame) -> Command {
    match to {
        Some(to) => Command::Send { to, frame },
        None => Command::Publish { frame },
    }
}
