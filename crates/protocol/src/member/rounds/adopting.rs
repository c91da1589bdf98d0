//! Plans and outcomes (R4), and the end after the last round.

use std::collections::BTreeSet;

use crate::effects::{Effect, FinalRound};
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::Lead;
use crate::member::rounds::adoption::{Adoption, AdoptionState};
use crate::member::rounds::completion::Completion;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::refusal::Refusal;
use crate::work::{Request, WorkError};

use crate::effects::Report;
use crate::member::rounds::round::RoundPlan;
use crate::message::Body;
use crate::roster::MemberIndex;
use crate::work::Planned;
/// Plans and outcomes, and the end of the federation. Borrows what that depends on.
pub(in crate::member) struct Adopting<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) round: &'a mut Round,
    pub(in crate::member) lead: &'a mut Option<Lead>,
    pub(in crate::member) adoption: &'a mut Adoption,
    pub(in crate::member) completion: &'a mut Completion,
}

impl Member {
    /// Lends what plans, outcomes and the end of the federation depend on.
    pub(in crate::member) fn adopting(&mut self) -> Adopting<'_> {
        Adopting {
            config: &self.config,
            out: &mut self.out,
            chain: &self.consensus.chain,
            round: &mut self.rounds.round,
            lead: &mut self.consensus.lead,
            adoption: &mut self.rounds.adoption,
            completion: &mut self.rounds.completion,
        }
    }
}

impl Adopting<'_> {
    /// The last round, as far as this member knows it.
    pub(in crate::member) fn last_round(&self) -> u64 {
        self.completion.last_round(&self.config.epoch)
    }

    /// Adopts what became final.
    pub(in crate::member) fn adopt(&mut self) {
        if self.adoption.state != AdoptionState::Idle || self.adoption.waiting.is_empty() {
            return;
        }
        self.adoption.state = AdoptionState::Running;
        // Voters come first: they have probably computed the outcome themselves. Where not all members
        // do, its lead and auditors have.
        let certified = self
            .chain
            .certified
            .iter()
            .map(|(certificate, _)| certificate);
        let proofs = certified.chain(&self.chain.tip.proof).take(1);
        let voters = proofs.flat_map(|proof| &*proof.votes);
        let voters: BTreeSet<_> = voters.map(|vote| vote.member).collect();
        let keepers = &self.chain.learned.keepers;
        let mut holders = self.config.others();
        holders.sort_by_key(|member| (!keepers.contains(member), !voters.contains(member)));
        self.out.push(Effect::Work(Request::Apply {
            rounds: self.adoption.waiting.clone(),
            holders,
        }));
    }

    /// A heartbeat has passed: models and outcomes that could not be fetched may be requested again.
    pub(in crate::member) fn retry(&mut self) {
        self.round.inbox.retry();
        self.adoption.retry();
    }

    /// Outcomes were adopted, or could not be.
    pub(in crate::member) fn applied(
        &mut self,
        round: u64,
        ends: bool,
        result: Result<(), WorkError>,
    ) {
        let adoption = &mut *self.adoption;
        match result {
            Ok(()) => {
                adoption.state = AdoptionState::Idle;
                adoption.applied = adoption.applied.max(round);
                let stays = |waiting: &FinalRound| waiting.round > round;
                adoption.waiting.retain(stays);
                let ended = &mut self.completion.ended;
                *ended = ended.or(ends.then_some(round));
            }
            Err(WorkError::Unavailable) => adoption.state = AdoptionState::Stalled,
            Err(WorkError::Refused(reason)) => {
                adoption.state = AdoptionState::Stalled;
                self.out
                    .refuse(self.config.me, round, Refusal::Work(reason));
            }
        }
        if self.adoption.applied >= self.last_round() && !self.completion.reached {
            self.all_rounds_applied();
        }
    }

    /// Requests the plan once the state that it follows from is adopted.
    pub(in crate::member) fn request_plan(&mut self) {
        let state = self.chain.state_before(self.round.number);
        let ready = self.adoption.applied + 1 == self.round.number;
        let Some(state) = state.filter(|_| ready) else {
            return;
        };
        if self.completion.reached || !matches!(self.round.plan, RoundPlan::NotRequested) {
            return;
        }
        self.round.plan = RoundPlan::Requested;
        self.out.push(Effect::Work(Request::Plan {
            round: self.round.number,
            state,
        }));
    }

    /// The plan of a round is known.
    pub(in crate::member) fn planned(&mut self, plan: Planned) {
        if plan.round == self.round.number {
            let all = || self.config.epoch.roster.members().collect();
            let mut participants = plan.participants.clone().unwrap_or_else(all);
            // Nobody trains, draws noise or waits for a member that no sum of this epoch has (M9).
            let left_out = plan.voids.left_out();
            participants.retain(|by| Some(*by) != left_out);
            self.round.plan = RoundPlan::Known { plan, participants };
        }
    }

    /// The last round is final and adopted here.
    pub(in crate::member) fn all_rounds_applied(&mut self) {
        self.completion.reached = true;
        *self.lead = None;
        self.completion.unsent = true;
        let last = self.last_round();
        self.out.push(Effect::Report(Report::Complete { last }));
    }

    /// Tells the others that the last round is adopted here, with the first heartbeat after it. Not at
    /// once, because all members are busy with that round then.
    pub(in crate::member) fn send_complete_to_all(&mut self) {
        if std::mem::take(&mut self.completion.unsent) {
            // To each directly: messages of this kind are not passed on by gossip.
            self.send_complete(self.config.others());
        }
    }

    /// A member can be reached: Complete is sent to it too, if the last round is adopted here.
    pub(in crate::member) fn send_complete_to(&mut self, peer: MemberIndex) {
        if self.completion.reached && peer != self.config.me {
            self.send_complete(vec![peer]);
        }
    }

    fn send_complete(&mut self, members: Vec<MemberIndex>) {
        let (_, frame) = self.config.sign(self.last_round(), 0, Body::Complete);
        let send = |to| Effect::Send {
            to,
            frame: frame.clone(),
        };
        self.out.extend(members.into_iter().map(send));
    }

    /// Another member has adopted `round` as the last one, so it has everything that is missing here.
    /// Where the strategy ends the federation, this member knows which round that is once it has
    /// adopted it too. Gives whether something is missing here.
    pub(in crate::member) fn receive_complete(&mut self, member: MemberIndex, round: u64) -> bool {
        let possible = 1..=self.config.epoch.protocol.rounds;
        if !possible.contains(&round)
            || member == self.config.me
            || !self.completion.others.insert(member)
        {
            return false;
        }
        self.out
            .push(Effect::Report(Report::MemberComplete { member }));
        self.chain.learned.round < round
    }
}
