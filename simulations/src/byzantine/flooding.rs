//! Floods of messages.

use std::sync::Arc;

use protocol::certificate::Checked;
use protocol::charter::Epoch;
use protocol::envelope::Opened;
use protocol::message::{
    Amendment, Body, Bundle, Confirmation, Contribution, Entry, EntryFields, Phase, Scores, Sheet,
    Standing,
};

use super::{Actions, Attacker, Deviation, Outgoing};
use crate::genesis::MODEL_BYTES;

/// Messages per beat.
const MANY: usize = 12;
/// Sheets per view: more than a member keeps in a round.
const SHEETS: usize = 70;

/// Entries of a sheet that no member contributed.
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

/// As a lead, sends far more bundles and sheets than a view may have.
#[derive(Default)]
pub(super) struct FloodSheets {
    /// Whether the sheets of this round seem to have scores.
    scored: bool,
}

impl Deviation for FloodSheets {
    fn receive(&mut self, _: &mut Attacker, opened: &Opened, _: &mut Actions) -> bool {
        if let Opened::Message(message) = opened {
            match &message.body {
                Body::Scores(_) | Body::Sheet(_) => self.scored = true,
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
        for count in 0..SHEETS {
            let entries = entries(attacker, k);
            // A few are of the other kind, because `scored` may stem from another round.
            let body = if self.scored == (count % 8 > 0) {
                let scores = Some(vec![vec![1.0; k]; k]);
                Body::Sheet(Sheet { entries, scores })
            } else {
                Body::Bundle(Bundle { entries })
            };
            actions.send(None, attacker.seal(attacker.round, attacker.view, body));
            actions.misdeeds += 1;
        }
    }
}

/// Sends messages of future views, and of views that it does not lead.
pub(super) struct FloodAhead;

impl Deviation for FloodAhead {
    fn beat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let n = attacker.epoch.roster.len() as u64;
        for ahead in 0..2 * n {
            let view = attacker.view + ahead;
            let entry = attacker.random_hash();
            let progress = Body::Progress {
                phase: Phase::Voting,
                counter: ahead,
            };
            for body in [Body::Receipt { entry }, progress] {
                actions.send(None, attacker.seal(0, view, body));
                actions.misdeeds += 1;
            }
        }
    }
}

/// Sends all that changes an agreement, ever new, of its epoch and of others.
pub(super) struct FloodChanges;

impl FloodChanges {
    /// An amendment that nobody has written, some words about others, a standing that names one member
    /// after the other, and a confirmation of a set that does not exist.
    fn bodies(attacker: &mut Attacker, count: u64) -> [Body; 4] {
        let epoch = attacker.epoch.clone();
        let roster = &epoch.roster;
        let mut charter = epoch.charter.clone();
        charter.rounds += 1 + count;
        let lost = (attacker.me.at() + 1 + count as usize) % roster.len();
        let number = attacker.view * MANY as u64 + count + 1;
        [
            Body::Amendment(Box::new(Amendment {
                format: epoch.format,
                silos: roster.silos().to_vec(),
                charter,
                text: attacker.random_hash().0.to_vec(),
                stolen: Vec::new(),
            })),
            Body::Approval {
                amendment: attacker.random_hash(),
                number,
                stands: count.is_multiple_of(2),
            },
            Body::Standing(Box::new(Standing {
                number,
                lost: vec![protocol::MemberIndex(lost as u16)],
                adopted: epoch.began,
                view: 0,
                block: epoch.id,
                notarised: 0,
            })),
            Body::Confirmation(Box::new(Confirmation {
                number,
                set: attacker.random_hash(),
            })),
        ]
    }
}

impl Deviation for FloodChanges {
    fn beat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
        let own = attacker.epoch.clone();
        // An epoch that nobody knows: its frames are of no epoch that a member has been in.
        let mut other = Epoch::clone(&own);
        (other.id, other.number) = (attacker.random_hash(), own.number + 1);
        let other = Arc::new(other);
        for count in 0..MANY as u64 / 2 {
            for epoch in [&own, &other] {
                attacker.epoch = epoch.clone();
                for body in Self::bodies(attacker, count) {
                    actions.send(None, attacker.seal(0, 0, body));
                    actions.misdeeds += 1;
                }
            }
        }
        attacker.epoch = own;
    }
}

/// A flood of one kind of message.
pub(super) enum Flood {
    Votes,
    Contributions,
    Scores,
    Complete,
}

impl Deviation for Flood {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &Outgoing<'_>,
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
                actions.send(None, attacker.seal(message.round + ahead, 0, body));
                actions.misdeeds += 1;
            }
        }
        false
    }

    fn beat(&mut self, attacker: &mut Attacker, actions: &mut Actions) {
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
                    attacker.seal(0, view, body)
                }
                Self::Contributions => return,
                Self::Scores => {
                    let (entry, blob) = (attacker.random_hash(), attacker.random_hash());
                    let losses = vec![(blob, 1.0)];
                    let scores = Body::Scores(Scores { entry, losses });
                    let inclusion = Body::Inclusion { sheet: entry };
                    let body = if count % 2 == 0 { scores } else { inclusion };
                    attacker.seal(round, 0, body)
                }
                Self::Complete => {
                    let last = attacker.epoch.charter.rounds;
                    if count % 2 == 0 {
                        attacker.seal(last + count / 4, 0, Body::Complete)
                    } else {
                        let (after, nonce) = (count / 2, count);
                        let from = after + 1;
                        attacker.seal(
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
