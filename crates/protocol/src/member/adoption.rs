//! Adopting final outcomes (R4).

use std::collections::BTreeSet;

use super::{Member, Mutation};
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
    pub(super) fn retry(&mut self) {
        if self.state == State::Stalled {
            self.state = State::Idle;
        }
    }
}

impl Member {
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

    pub(super) fn applied(&mut self, round: u64, ends: bool, result: Result<(), WorkError>) {
        let again = self.config.broken(Mutation::AdoptedAgain) && self.adoption.applied < round;
        let adoption = &mut self.adoption;
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
