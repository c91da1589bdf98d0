//! Certificates that are forged or withheld.

use std::sync::Arc;

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::certificate::{Certificate, Vote};
use protocol::codec;
use protocol::envelope::{OVERHEAD, sign_certificate};
use protocol::identity::Signature;
use protocol::message::{Body, Kind};

use super::{Actions, Attacker, Deviation, OutgoingFrame};
use crate::invariants::kind;

/// A certificate for this verdict with invalid votes: swapped signatures, a member that does not exist,
/// synthetic signatures, or too few votes.
pub(super) fn forged(attacker: &mut Attacker, certificate: &Certificate) -> Certificate {
    let mut votes: Vec<Vote> = certificate.votes.to_vec();
    match attacker.random.below(4) {
        0 => {
            let signatures: Vec<_> = votes.iter().map(|vote| vote.signature).collect();
            for (vote, signature) in votes.iter_mut().zip(signatures.into_iter().rev()) {
                vote.signature = signature;
            }
        }
        1 => {
            if let Some(last) = votes.last_mut() {
                last.member = MemberIndex(60_000);
            }
        }
        2 => {
            for vote in &mut votes {
                let half = attacker.random.bytes();
                let mut bytes = [0; 64];
                bytes[..32].copy_from_slice(&half);
                vote.signature = Signature::from_bytes(&bytes);
            }
        }
        _ => {
            votes.pop();
        }
    }
    Certificate {
        votes: Arc::from(votes),
        ..certificate.clone()
    }
}

/// The certificate in a frame, if it is one.
pub fn certificate(frame: &Bytes) -> Option<Certificate> {
    if kind(frame) != Some(Kind::Certificate) {
        return None;
    }
    codec::decode(frame.get(OVERHEAD..)?, frame.len()).ok()
}

/// Does not forward certificates, or only to some members.
pub(super) struct WithholdCertificates {
    to: Vec<bool>,
}

impl WithholdCertificates {
    pub(super) fn new(attacker: &mut Attacker) -> Self {
        let none = attacker.random.chance(0.5);
        let to = attacker
            .random_members()
            .into_iter()
            .map(|one| one && !none)
            .collect();
        Self { to }
    }
}

impl Deviation for WithholdCertificates {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        if kind(outgoing.frame) != Some(Kind::Certificate) {
            return false;
        }
        let readers = attacker.others().filter(|member| self.to[member.at()]);
        for to in readers.filter(|&member| outgoing.to.is_none_or(|to| to == member)) {
            actions.send(Some(to), outgoing.frame.clone());
        }
        actions.misdeeds += 1;
        true
    }
}

/// Changes the votes in certificates that it forwards or proposes with.
pub(super) struct ForgedProofs;

impl Deviation for ForgedProofs {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        if !attacker.random.chance(0.5) {
            return false;
        }
        if let Some(certificate) = certificate(outgoing.frame) {
            let forged = forged(attacker, &certificate);
            actions.send(outgoing.to, sign_certificate(&attacker.epoch, &forged));
            actions.misdeeds += 1;
            return true;
        }
        let Some(message) = outgoing.message else {
            return false;
        };
        let Body::Proposal(proposal) = &message.body else {
            return false;
        };
        let mut other = proposal.clone();
        for certificate in other.parent.iter_mut().chain(&mut other.skipped) {
            *certificate = forged(attacker, certificate);
        }
        actions.send(
            outgoing.to,
            attacker.sign(0, message.view, Body::Proposal(other)),
        );
        actions.misdeeds += 1;
        true
    }
}
