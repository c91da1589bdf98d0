//! Adopting final outcomes (R4).

use std::collections::BTreeSet;

use super::chain::Chain;
use super::completion::Completion;
use super::lead::Lead;
use super::outbox::Outbox;
use super::round::Round;
use super::{Config, Member, Mutation};
use crate::effects::{Effect, FinalRound};
use crate::refusal::Refusal;
use crate::work::WorkError;

/// Final rounds, and how far this member has adopted them.
#[derive(Default)]
pub(super) struct Adoption {
    /// Final rounds that are not adopted yet, oldest first.
    pub(super) waiting: Vec<FinalRound>,
    /// The last round adopted; 0 for none.
    pub(super) applied: u64,
    state: State,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Idle,
    Running,
    /// It failed; tried again after a beat.
    Stalled,
}

impl Adoption {
    /// Whether outcomes are being adopted.
    pub(super) fn is_running(&self) -> bool {
        self.state == State::Running
    }

    /// A beat has passed: an outcome that could not be fetched may be requested again.
    fn retry(&mut self) {
        if self.state == State::Stalled {
            self.state = State::Idle;
        }
    }
}

/// Plans and outcomes, and the end of the federation. Borrows what that depends on.
pub(super) struct Adopting<'a> {
    pub(super) config: &'a mut Config,
    pub(super) out: &'a mut Outbox,
    pub(super) chain: &'a Chain,
    pub(super) round: &'a mut Round,
    pub(super) lead: &'a mut Option<Lead>,
    pub(super) adoption: &'a mut Adoption,
    pub(super) completion: &'a mut Completion,
}

impl Member {
    /// Lends what plans, outcomes and the end of the federation depend on.
    pub(super) fn adopting(&mut self) -> Adopting<'_> {
        Adopting {
            config: &mut self.config,
            out: &mut self.out,
            chain: &self.chain,
            round: &mut self.round,
            lead: &mut self.lead,
            adoption: &mut self.adoption,
            completion: &mut self.completion,
        }
    }
}

impl Adopting<'_> {
    /// Adopts what became final.
    pub(super) fn adopt(&mut self) {
        if self.adoption.state != State::Idle || self.adoption.waiting.is_empty() {
            return;
        }
        self.adoption.state = State::Running;
        // Voters come first: they have probably computed the outcome themselves. Where not all members
        // do, its lead and auditors have.
        let voters = self.chain.tip.proof.iter().flat_map(|proof| &*proof.votes);
        let voters: BTreeSet<_> = voters.map(|vote| vote.member).collect();
        let keepers = &self.chain.learned.keepers;
        let mut holders = self.config.others();
        holders.sort_by_key(|member| (!keepers.contains(member), !voters.contains(member)));
        self.out.push(Effect::Apply {
            rounds: self.adoption.waiting.clone(),
            holders,
        });
    }

    /// A beat has passed: models and outcomes that could not be fetched may be requested again.
    pub(super) fn retry(&mut self) {
        self.round.inbox.retry();
        self.adoption.retry();
    }

    /// Outcomes were adopted, or could not be.
    pub(super) fn applied(&mut self, round: u64, ends: bool, result: Result<(), WorkError>) {
        let again = self.config.broken(Mutation::AdoptedAgain) && self.adoption.applied < round;
        let adoption = &mut *self.adoption;
        match result {
            Ok(()) => {
                adoption.state = State::Idle;
                adoption.applied = adoption.applied.max(round);
                let stays =
                    |waiting: &FinalRound| waiting.round > round || again && waiting.round == round;
                adoption.waiting.retain(stays);
                self.config.ended = self.config.ended.or(ends.then_some(round));
            }
            Err(WorkError::Unavailable) => adoption.state = State::Stalled,
            Err(WorkError::Refused(reason)) => {
                adoption.state = State::Stalled;
                self.out
                    .refuse(self.config.me, round, Refusal::Work(reason));
            }
        }
        if self.adoption.applied >= self.config.last_round() && !self.completion.reached {
            self.all_rounds_applied();
        }
    }
}
