//! Proofs that are forged or kept back.

use std::sync::Arc;

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::certificate::{Certificate, Vote};
use protocol::codec;
use protocol::envelope::{OVERHEAD, seal_certificate};
use protocol::identity::Signature;
use protocol::message::{Body, Kind};

use super::{Act, Lie, Said, Who};
use crate::invariants::kind;

/// The same verdict with votes that prove nothing: signatures that belong to others, members that
/// do not exist, invented signatures, or too few.
pub(super) fn forged(who: &mut Who, certificate: &Certificate) -> Certificate {
    let mut votes: Vec<Vote> = certificate.votes.to_vec();
    match who.random.below(4) {
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
                let half = who.random.bytes();
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

/// The certificate that a frame is.
pub(super) fn certificate(frame: &Bytes) -> Option<Certificate> {
    if kind(frame) != Some(Kind::Certificate) {
        return None;
    }
    codec::decode(frame.get(OVERHEAD..)?, frame.len()).ok()
}

/// Does not pass certificates on, or only to some.
pub(super) struct Hoard {
    to: Vec<bool>,
}

impl Hoard {
    pub(super) fn new(who: &mut Who) -> Self {
        let none = who.random.chance(0.5);
        let to = who.some().into_iter().map(|one| one && !none).collect();
        Self { to }
    }
}

impl Lie for Hoard {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        if kind(said.frame) != Some(Kind::Certificate) {
            return false;
        }
        let readers = who.others().filter(|member| self.to[member.at()]);
        for to in readers.filter(|&member| said.to.is_none_or(|to| to == member)) {
            act.say(Some(to), said.frame.clone());
        }
        act.bad += 1;
        true
    }
}

/// Changes the votes of certificates that it passes on or proposes with.
pub(super) struct ForgedProofs;

impl Lie for ForgedProofs {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        if !who.random.chance(0.5) {
            return false;
        }
        if let Some(certificate) = certificate(said.frame) {
            let forged = forged(who, &certificate);
            act.say(said.to, seal_certificate(&who.epoch, &forged));
            act.bad += 1;
            return true;
        }
        let Some(message) = said.message else {
            return false;
        };
        let Body::Proposal(proposal) = &message.body else {
            return false;
        };
        let mut other = proposal.clone();
        for certificate in other.parent.iter_mut().chain(&mut other.skipped) {
            *certificate = forged(who, certificate);
        }
        act.say(said.to, who.seal(0, message.view, Body::Proposal(other)));
        act.bad += 1;
        true
    }
}
