//! Floods of messages.

use protocol::MemberIndex;
use protocol::certificate::Checked;
use protocol::envelope::Opened;
use protocol::message::{
    Amendment, Body, Confirmation, Contribution, ContributionList, Entry, EntryFields,
    MemberScores, Phase, RoundManifest, Standing,
};
use protocol::parameters::Checkpoint;

use super::{Actions, Attacker, Deviation, OutgoingFrame};
use crate::genesis::MODEL_BYTES;

/// Messages per heartbeat.
const MANY: usize = 12;
/// Manifests per view: more than a member keeps in a round.
const MANIFESTS: usize = 70;

/// Entries of a manifest that no member contributed.
fn entries(attacker: &mut Attacker, k: usize) -> Vec<Entry> {
    let mut entries: Vec<_> = (0..k)
        .map(|_| {
            let (id, blob) = (attacker.random_hash(), attacker.random_hash());
            let fields = EntryFields {
                blob,
                size: MODEL_BYTES,
                coalition: None,
                weight: None,
                member: None,
            };
            Entry { id, fields }
        })
        .collect();
    entries.sort_by_key(|entry| entry.id);
    entries
}

/// As a lead, sends far more contribution lists and manifests than a view may have.
#[derive(Default)]
pub(super) struct FloodManifests {
    /// True if the manifests of this round seem to have scores.
    scored: bool,
}

impl Deviation for FloodManifests {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Message(message) = opened {
            match &message.body {
                Body::Scores(_) | Body::Manifest(_) => self.scored = true,
                Body::Inclusion { .. } => self.scored = false,
                _ => {}
            }
        }
        false
    }

    fn entered(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        if !attacker.leads() {
            return;
        }
        let k = attacker.epoch.roster.len() - attacker.epoch.roster.faulty();
        for count in 0..MANIFESTS {
            let entries = entries(attacker, k);
            // A few are of the other kind, because `scored` may stem from another round.
            let body = if self.scored == (count % 8 > 0) {
                let scores = Some(vec![vec![1.0; k]; k]);
                Body::Manifest(RoundManifest { entries, scores })
            } else {
                Body::ContributionList(ContributionList { entries })
            };
            actions.send(None, attacker.sign(attacker.round, attacker.view, body));
            actions.misdeeds += 1;
        }
    }
}

/// Sends messages of future views, and of views that it does not lead.
pub(super) struct FloodAhead;

impl Deviation for FloodAhead {
    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let n = attacker.epoch.roster.len() as u64;
        for ahead in 0..2 * n {
            let view = attacker.view + ahead;
            let entry = attacker.random_hash();
            let progress = Body::Progress {
                phase: Phase::Voting,
                counter: ahead,
            };
            for body in [Body::Receipt { entry }, progress] {
                actions.send(None, attacker.sign(0, view, body));
                actions.misdeeds += 1;
            }
        }
    }
}

/// A flood of one kind of message.
pub(super) enum Flood {
    Votes,
    Contributions,
    MemberScores,
    Complete,
    /// Amendments, all with the same text.
    Amendments,
    /// Approvals and withdrawals of amendments that nobody knows, and of those that others sent.
    Approvals,
    /// Words that others are lost.
    Standings,
    /// Confirmations of standings that nobody knows.
    Confirmations,
}

impl Deviation for Flood {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let (Self::Contributions, Some(message)) = (&self, outgoing.message) else {
            return false;
        };
        if let Body::Contribution(own) = &message.body {
            for ahead in 1..=3 {
                let other = Contribution {
                    nonce: attacker.random.bytes(),
                    ..own.clone()
                };
                let body = Body::Contribution(other);
                actions.send(None, attacker.sign(message.round + ahead, 0, body));
                actions.misdeeds += 1;
            }
        }
        false
    }

    fn heartbeat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let round = attacker.round;
        let far = attacker.view + 2 * attacker.epoch.roster.len() as u64 + 2;
        for count in 0..MANY as u64 {
            let frame = match self {
                Self::Votes => {
                    let view = attacker.view
                        + attacker.random.below((far - attacker.view) as usize) as u64;
                    let block = attacker.random_hash();
                    let checked = Checked::Structure;
                    let bodies = [
                        Body::Notarize { block, checked },
                        Body::Finalize { block },
                        Body::Nullify,
                    ];
                    let body = bodies[attacker.random.below(3)].clone();
                    attacker.sign(0, view, body)
                }
                Self::Contributions => return,
                Self::Amendments | Self::Approvals | Self::Standings | Self::Confirmations => {
                    let body = self.of_changes(attacker, count);
                    attacker.sign(0, 0, body)
                }
                Self::MemberScores => {
                    let (entry, blob) = (attacker.random_hash(), attacker.random_hash());
                    let losses = vec![(blob, 1.0)];
                    let scores = Body::Scores(MemberScores { entry, losses });
                    let inclusion = Body::Inclusion { manifest: entry };
                    let body = if count % 2 == 0 { scores } else { inclusion };
                    attacker.sign(round, 0, body)
                }
                Self::Complete => {
                    let last = attacker.epoch.protocol.rounds;
                    if count % 2 == 0 {
                        attacker.sign(last + count / 4, 0, Body::Complete)
                    } else {
                        let (after, nonce) = (count / 2, count);
                        let from = after + 1;
                        attacker.sign(
                            0,
                            0,
                            Body::SyncRequest {
                                after,
                                from,
                                missing: None,
                                nonce,
                            },
                        )
                    }
                }
            };
            actions.send(None, frame);
            actions.misdeeds += 1;
        }
    }
}

impl Flood {
    /// A message about changes or about going on without others, another one each time.
    fn of_changes(&self, attacker: &mut Attacker, count: u64) -> Body {
        let heartbeats = attacker.now.elapsed().as_micros() as u64;
        let (hash, number) = (attacker.random_hash(), heartbeats * MANY as u64 + count);
        let epoch = attacker.epoch.clone();
        match self {
            Self::Amendments => {
                let mut protocol = epoch.protocol.clone();
                protocol.rounds += 1 + number;
                Body::Amendment(Box::new(Amendment {
                    format: epoch.format,
                    silos: epoch.roster.silos().to_vec(),
                    protocol,
                    text: b"amended".to_vec(),
                    stolen: Vec::new(),
                }))
            }
            Self::Standings => {
                let members = epoch.roster.members().zip(attacker.random_members());
                let lost = members.filter(|(member, lost)| *lost && *member != attacker.me);
                let lost: Vec<MemberIndex> = lost.map(|(member, _)| member).collect();
                Body::Standing(Box::new(Standing {
                    number,
                    lost,
                    adopted: Checkpoint {
                        round: count % 3,
                        block: hash,
                        outcome: hash,
                    },
                    view: count,
                    block: hash,
                    notarised: count * 2,
                }))
            }
            Self::Confirmations => Body::Confirmation(Box::new(Confirmation { number, set: hash })),
            _ => Body::Approval {
                amendment: hash,
                number,
                stands: count.is_multiple_of(2),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use protocol::envelope::{Known, open};
    use protocol::identity::Strict;
    use protocol::parameters::{Rotation, Verification};
    use protocol::{SecretKey, Time};

    use super::super::{Behaviour, ByzantineMember};
    use super::*;
    use crate::genesis::epoch_with;

    /// A flood that nobody can open tests nothing, and bare worlds pass over what a faulty member seals.
    #[test]
    fn every_message_of_a_flood_about_changes_can_be_opened() {
        let keys = [1, 2, 3, 4].map(|number| SecretKey::from_bytes(&[number; 32]));
        let epoch = epoch_with(&keys, 3, Rotation::EveryRound, Verification::Full);
        let epoch = Arc::new(epoch);
        for behaviour in Behaviour::OF_CHANGES {
            let (me, key) = (MemberIndex(2), keys[2].clone());
            let mut member = ByzantineMember::new(epoch.clone(), me, key, &[behaviour], 7);
            let mut all = Vec::new();
            for _ in 0..3 {
                all.extend(member.heartbeat(Time::ZERO, 1).out);
            }
            assert_eq!(all.len(), 3 * MANY, "{behaviour:?}");
            for (to, frame) in all {
                let opened = open(&epoch, &Strict, &Known::default(), &frame);
                assert!(to.is_none() && opened.is_ok(), "{behaviour:?}: {opened:?}");
            }
        }
    }
}
