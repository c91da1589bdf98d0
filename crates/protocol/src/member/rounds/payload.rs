//! Questions of consensus to the rounds.

use crate::member::consensus::chain::Chain;
use crate::member::consensus::payload::BlockPayload;
use crate::member::rounds::Rounds;
use crate::message::{Body, Message};
use crate::roster::MemberIndex;

impl BlockPayload for Rounds {
    fn round(&self) -> u64 {
        self.round.number
    }

    fn contributed(&self) -> Option<u64> {
        let contributed = self.round.own.has_contributed();
        contributed.then_some(self.round.number)
    }

    fn has_signed(&self, round: u64, body: &Body) -> bool {
        match body {
            Body::Outcome { .. } => self.outcomes.remembers(body),
            _ => self.round.own.is_contribution(round, body),
        }
    }

    fn signed_by(&self, member: MemberIndex) -> Option<&Message> {
        let outcome = self.outcomes.votes.get(&member);
        outcome.or_else(|| self.round.inbox.contribution_of(member))
    }

    fn renewed_in(&self, chain: &Chain) -> u64 {
        self.kind.renewed_in(chain)
    }
}
