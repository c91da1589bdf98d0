//! Other members: whether they can be reached, and what their answers prove.

use std::time::Duration;

use crate::member::Member;
use crate::member::consensus::sync::proves;
use crate::message::SyncResponse;
use crate::roster::MemberIndex;

impl Member {
    /// A member cannot be reached.
    pub(in crate::member) fn peer_down(&mut self, peer: MemberIndex) {
        self.consensus.presence.down(peer);
        self.consensus.sync.unreachable(peer);
    }

    /// A member can be reached.
    pub(in crate::member) fn peer_up(&mut self, peer: MemberIndex, round_trip: Duration) {
        self.consensus
            .presence
            .up(&self.config.epoch, peer, round_trip);
        self.syncing().ask_if_useful(peer);
        self.recovering().send_standings(&[peer]);
        if self.governance.recoveries.signed() {
            return;
        }
        self.adopting().send_complete_to(peer);
        self.contributing().send_nothing(&[peer]);
        self.amending().send(&[peer]);
    }

    /// Takes over what an answer proves: final blocks that continue this member's chain, and
    /// certificates of later views.
    pub(in crate::member) fn receive_sync_response(
        &mut self,
        sender: MemberIndex,
        response: SyncResponse,
    ) {
        if !self.syncing().takes(sender, &response) {
            return;
        }
        let own = response.yours.map(|own| own.message());
        if !self.consensus.participation.listening() {
            // Before anything is signed, and whatever has become final since: a journal that lacks
            // something that this member signed is an older copy.
            own.iter().for_each(|own| self.own_key().look_at(own));
        }
        let before = self.syncing().missing_from();
        let known = self.consensus.chain.tip.view;
        let blocks: Vec<_> = response
            .blocks
            .into_iter()
            .filter(|block| block.view > known)
            .collect();
        if let Some(proof) = response.proof
            && proves(&blocks, &self.consensus.chain.tip.hash, &proof)
        {
            self.advance(blocks, proof);
        }
        let ancestors = self.syncing().keep_missing(response.missing);
        // Asks again only if this answer had something new, even if it announces more.
        let ancestors = ancestors && self.consensus.chain.missing().is_some();
        if self.consensus.chain.missing().is_none()
            && let Some(waiting) = self.consensus.chain.unresolved.take()
        {
            // A final block that has waited for its ancestors.
            self.make_final(waiting);
        }
        let mut highest = 0;
        for certificate in response.certificates.into_iter().chain(response.highest) {
            highest = certificate.view.max(highest);
            self.add_certificate(certificate);
        }
        let more = response.more && self.syncing().missing_from() > before;
        self.consensus.sync.catching_up = ancestors || more;
        own.iter().for_each(|own| self.own_key().look_at(own));
        self.consensus
            .participation
            .answered(sender, highest, response.more);
        self.try_to_take_part();
        if self.consensus.sync.catching_up {
            self.syncing().ask(sender);
        }
    }
}
