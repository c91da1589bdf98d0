//! Leading a view: beginning, progress, and the wait for the finality of a notarised block. What is gathered
//! for a block is not asked here.

use bytes::Bytes;

use crate::effects::{Effect, Report};
use crate::member::Config;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::{BlockDraft, Lead, Stage};
use crate::member::consensus::timers::Timing;
use crate::member::consensus::views::View;
use crate::message::{Body, Content, Message, Phase};
use crate::time::Time;

/// Leading the view. Borrows what that depends on.
pub(in crate::member) struct LeadingView<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) now: Time,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) presence: &'a Presence,
    pub(in crate::member) lead: &'a mut Option<Lead>,
    /// How far the content of a block is gathered.
    pub(in crate::member) gathered: Phase,
}

impl LeadingView<'_> {
    /// The spans of the present view.
    fn timing(&self) -> Timing<'_> {
        Timing {
            config: self.config,
            now: self.now,
            chain: self.chain,
            view: self.view,
            presence: self.presence,
        }
    }

    /// Starts to lead: the view begins, or the round within it, or a restarted member is back in a
    /// view that it leads. A proposal that is durable stays the only one of the view.
    pub(in crate::member) fn start(&mut self, durable: Option<(Message, Bytes)>) {
        let waiting = self.chain.newest_notarised().is_some() || !self.chain.settled();
        // While a round may become final, the next heartbeat is early enough to say who leads: with its
        // finality the lead may change.
        let sure = !(waiting && self.config.epoch.protocol.rotation.follows_rounds());
        let Some(lead) = &mut self.lead else { return };
        lead.stage = match durable {
            Some((message, frame)) => Stage::Voting {
                message: Box::new(message),
                frame,
            },
            None if waiting => Stage::Waiting,
            None => Stage::Gathering,
        };
        if lead.heartbeats == 0 && sure {
            self.send_progress();
        }
        if let Some(Lead {
            stage: Stage::Voting { message, frame },
            ..
        }) = &self.lead
        {
            let (message, frame) = (message.clone(), frame.clone());
            self.out.publish(*message, frame);
        }
    }

    /// Sends Progress to all members.
    pub(in crate::member) fn send_progress(&mut self) {
        let Some(phase) = self.phase() else { return };
        let Some(lead) = &mut self.lead else { return };
        let body = Body::Progress {
            phase,
            counter: lead.heartbeats,
        };
        lead.heartbeats += 1;
        let (message, frame) = self.config.sign(0, self.view.number, body);
        self.out.publish(message, frame);
    }

    /// The phase that this lead is in.
    pub(in crate::member) fn phase(&self) -> Option<Phase> {
        self.lead.as_ref().map(|lead| match lead.stage {
            Stage::Waiting => Phase::Waiting,
            Stage::Gathering => self.gathered,
            // In `Over` nothing more is sent, so the phase does not matter.
            Stage::Voting { .. } | Stage::Over => Phase::Voting,
        })
    }

    /// The phase, which is reported when it is another one than before.
    pub(in crate::member) fn report_phase(&mut self, round: u64) -> Option<Phase> {
        let phase = self.phase()?;
        let lead = self.lead.as_mut()?;
        if lead.reported != Some(phase) && !matches!(lead.stage, Stage::Over) {
            lead.reported = Some(phase);
            let view = self.view.number;
            let report = Report::Leading { view, round, phase };
            self.out.push(Effect::Report(report));
        }
        Some(phase)
    }

    /// Waits for the finality of a notarised block, and for the outcome of a final masked round. If the
    /// finality takes longer than D, proposes an empty block on top of it, with which it becomes final too.
    pub(in crate::member) fn wait_for_finality(&mut self) -> Option<BlockDraft> {
        let Some(notarised) = self.chain.newest_notarised().cloned() else {
            if self.chain.settled() {
                self.set_stage(Stage::Gathering);
            }
            return None;
        };
        if self.now < self.view.entered + self.timing().phase() {
            return None;
        }
        let parent = notarised.verdict.block()?;
        Some(BlockDraft {
            content: Content::Empty,
            parent,
            proof: Some(notarised),
        })
    }

    /// A block was proposed, or may not be.
    pub(in crate::member) fn proposed(&mut self, proposed: Option<(Message, Bytes)>) {
        self.set_stage(match proposed {
            Some((message, frame)) => Stage::Voting {
                message: Box::new(message),
                frame,
            },
            None => Stage::Over,
        });
    }

    /// Goes on to another stage, if this member leads.
    pub(in crate::member) fn set_stage(&mut self, stage: Stage) {
        if let Some(lead) = &mut self.lead {
            lead.stage = stage;
        }
    }
}
