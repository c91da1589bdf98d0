//! Wrong contributions, score rows and inclusions.

use std::collections::BTreeMap;

use bytes::Bytes;
use protocol::envelope::Opened;
use protocol::message::{Body, Content, Contribution, EntryFields, Kind, MemberScores, Message};
use protocol::{Hash, MemberIndex};

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// Sends two different contributions in a round.
pub(super) struct DoubleContribution;

impl Deviation for DoubleContribution {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        if let Some(message) = outgoing.message
            && let Body::Contribution(contribution) = &message.body
        {
            let other = Contribution {
                nonce: attacker.random.bytes(),
                ..contribution.clone()
            };
            let body = Body::Contribution(other);
            actions.send(
                outgoing.to,
                attacker.sign(message.round, message.view, body),
            );
            actions.misdeeds += 1;
        }
        false
    }
}

/// Sends its first contribution again in place of every later one.
#[derive(Default)]
pub(super) struct RepeatedContribution {
    first: Option<Bytes>,
}

impl Deviation for RepeatedContribution {
    fn send(
        &mut self,
        _: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let kind = outgoing.message.map(|message| message.body.kind());
        if kind != Some(Kind::Contribution) {
            return false;
        }
        match &self.first {
            None => {
                self.first = Some(outgoing.frame.clone());
                false
            }
            Some(first) => {
                actions.send(outgoing.to, first.clone());
                actions.misdeeds += 1;
                true
            }
        }
    }
}

/// The message, if the victim of its round sent it while this member leads.
fn harmed<'a>(attacker: &Attacker, opened: &'a Opened) -> Option<&'a Message> {
    match opened {
        Opened::Message(message)
            if message.sender == attacker.victim(message.round) && attacker.leads() =>
        {
            Some(message)
        }
        _ => None,
    }
}

/// As a lead, changes the scores of another member's row.
pub(super) struct ForgedRow;

impl Deviation for ForgedRow {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        let Some(message) = harmed(attacker, opened) else {
            return false;
        };
        let Body::Scores(scores) = &message.body else {
            return false;
        };
        let mut forged = scores.clone();
        forged.losses.iter_mut().for_each(|(_, loss)| *loss += 1.0);
        actions.inject.push(Opened::Message(Message {
            body: Body::Scores(forged),
            ..message.clone()
        }));
        actions.misdeeds += 1;
        true
    }
}

/// As a lead, gives a Receipt and leaves the entry out.
pub(super) struct IgnoredReceipt;

impl Deviation for IgnoredReceipt {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        let Some(message) = harmed(attacker, opened) else {
            return false;
        };
        let Body::Contribution(own) = &message.body else {
            return false;
        };
        let entry = own.entry(&attacker.epoch.federation, message.round).id;
        let receipt = attacker.sign(0, attacker.view, Body::Receipt { entry });
        actions.send(Some(message.sender), receipt);
        actions.misdeeds += 1;
        true
    }
}

/// As a lead, replaces another member's entry by a synthetic one.
#[derive(Default)]
pub(super) struct ForgedEntry {
    /// By round: the victim, and the contribution synthetic in its name.
    invented: BTreeMap<u64, (MemberIndex, Contribution)>,
    /// The models of these contributions, which it claims to hold.
    blobs: Vec<Hash>,
}

impl Deviation for ForgedEntry {
    fn receive(&mut self, attacker: &mut Attacker, opened: &Opened, actions: &mut Actions) -> bool {
        let Some(message) = harmed(attacker, opened) else {
            return false;
        };
        let Body::Contribution(own) = &message.body else {
            return false;
        };
        let (blob, nonce) = (attacker.random_hash(), attacker.random.bytes());
        let invented = Contribution {
            fields: EntryFields {
                blob,
                ..own.fields.clone()
            },
            nonce,
            ..own.clone()
        };
        let place = self.invented.entry(message.round);
        let (_, invented) = place.or_insert((message.sender, invented));
        self.blobs.push(invented.fields.blob);
        actions.inject.push(Opened::Message(Message {
            body: Body::Contribution(invented.clone()),
            ..message.clone()
        }));
        actions.misdeeds += 1;
        true
    }

    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let round = match &message.body {
            Body::Proposal(proposal) => proposal.block.learning().map_or(0, |l| l.round),
            _ => message.round,
        };
        let Some((victim, invented)) = self.invented.get(&round) else {
            return false;
        };
        match &message.body {
            Body::ContributionList(contribution_list) => {
                let blobs = contribution_list
                    .entries
                    .iter()
                    .map(|entry| entry.fields.blob);
                let mut losses: Vec<_> = blobs.map(|blob| (blob, 1.0)).collect();
                losses.sort_by_key(|&(blob, _)| blob);
                let entry = invented.entry(&attacker.epoch.federation, round).id;
                let body = Body::Scores(MemberScores { entry, losses });
                actions.inject.push(pretend(attacker, *victim, round, body));
                false
            }
            Body::Manifest(manifest) => {
                let manifest = manifest.root();
                let body = Body::Inclusion { manifest };
                actions.inject.push(pretend(attacker, *victim, round, body));
                false
            }
            Body::Proposal(proposal) => {
                let mut other = proposal.clone();
                if let Content::Learning(learning) = &mut other.block.content {
                    let signed = learning.inclusions.iter();
                    let others = signed.filter(|(member, _)| member != victim);
                    learning.inclusions = others.copied().collect();
                }
                actions.send(
                    outgoing.to,
                    attacker.sign(0, message.view, Body::Proposal(other)),
                );
                actions.misdeeds += 1;
                true
            }
            _ => false,
        }
    }

    fn claims_blob(&self, blob: &Hash) -> bool {
        self.blobs.contains(blob)
    }
}

/// A message as if another member had sent it; only its own member accepts it.
fn pretend(attacker: &Attacker, sender: MemberIndex, round: u64, body: Body) -> Opened {
    let signature = attacker.key.sign(b"pretended");
    Opened::Message(Message {
        round,
        view: 0,
        sender,
        body,
        signature,
    })
}

/// Contributes, but withholds its scores or its signature for the manifest.
pub(super) struct MissingSignature {
    missing: Kind,
}

impl MissingSignature {
    pub(super) fn new(attacker: &mut Attacker) -> Self {
        let scores = attacker.random.chance(0.5);
        let missing = if scores {
            Kind::Scores
        } else {
            Kind::Inclusion
        };
        Self { missing }
    }
}

impl Deviation for MissingSignature {
    fn send(
        &mut self,
        _: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let kind = outgoing.message.map(|message| message.body.kind());
        let kept = kind == Some(self.missing);
        actions.misdeeds += u64::from(kept);
        kept
    }
}

/// Takes part in rounds whose plan does not name it.
pub(super) struct Uninvited;

impl Deviation for Uninvited {
    fn claims_invitation(&self) -> bool {
        true
    }
}
