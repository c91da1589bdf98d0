//! Parts of a member that are lent to the structs of consensus for one call.

use crate::member::Member;
use crate::member::consensus::finality::Extending;
use crate::member::consensus::own_key::OwnKey;
use crate::member::consensus::sync::Syncing;
use crate::member::consensus::timers::Timing;
use crate::member::consensus::voting::Voting;

impl Member {
    /// Lends what the chain and its certificates depend on.
    pub(in crate::member) fn extending(&mut self) -> Extending<'_> {
        Extending {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &mut self.consensus.chain,
            ballots: &mut self.consensus.ballots,
        }
    }

    /// Lends what voting depends on.
    pub(in crate::member) fn voting(&mut self) -> Voting<'_> {
        let at_rest = self.at_rest();
        Voting {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            ballots: &mut self.consensus.ballots,
            view: &self.consensus.view,
            participation: &self.consensus.participation,
            at_rest,
        }
    }

    /// Lends what the use of this member's key depends on.
    pub(in crate::member) fn own_key(&mut self) -> OwnKey<'_> {
        OwnKey {
            config: &self.config,
            out: &mut self.out,
            chain: &self.consensus.chain,
            ballots: &mut self.consensus.ballots,
            payload: &self.rounds,
            participation: &mut self.consensus.participation,
            lead: &mut self.consensus.lead,
        }
    }

    /// Lends what questions and answers depend on.
    pub(in crate::member) fn syncing(&mut self) -> Syncing<'_> {
        Syncing {
            config: &self.config,
            out: &mut self.out,
            chain: &mut self.consensus.chain,
            ballots: &self.consensus.ballots,
            view: &self.consensus.view,
            payload: &self.rounds,
            sync: &mut self.consensus.sync,
            participation: &self.consensus.participation,
        }
    }

    /// The spans of the present view.
    pub(in crate::member) fn timing(&self) -> Timing<'_> {
        Timing {
            config: &self.config,
            now: self.now,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            presence: &self.consensus.presence,
        }
    }
}
