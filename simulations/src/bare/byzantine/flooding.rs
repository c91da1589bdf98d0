//! More messages than anybody can remember.

use protocol::certificate::Checked;
use protocol::envelope::Opened;
use protocol::message::{Body, Bundle, Contribution, Entry, EntryFields, Phase, Scores, Sheet};

use super::{Act, Lie, Said, Who};
use crate::bare::work;

/// Messages of one beat.
const MANY: usize = 12;
/// More sheets than a member keeps in a round.
const SHEETS: usize = 70;

/// Entries that nobody contributed, as a sheet has them.
fn entries(who: &mut Who, k: usize) -> Vec<Entry> {
    let mut entries: Vec<_> = (0..k)
        .map(|_| {
            let (id, blob) = (who.hash(), who.hash());
            let fields = EntryFields {
                blob,
                size: work::SIZE,
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

/// As a lead it sends far more bundles and sheets than a view can have.
#[derive(Default)]
pub(super) struct StuffSheets {
    /// Whether this round's sheets have scores, as far as it heard.
    scored: bool,
}

impl Lie for StuffSheets {
    fn hear(&mut self, _: &mut Who, opened: &Opened, _: &mut Act) -> bool {
        if let Opened::Message(message) = opened {
            match &message.body {
                Body::Scores(_) | Body::Sheet(_) => self.scored = true,
                Body::Inclusion { .. } => self.scored = false,
                _ => {}
            }
        }
        false
    }

    fn entered(&mut self, who: &mut Who, act: &mut Act) {
        if !who.leads() {
            return;
        }
        let k = who.epoch.roster.len() - who.epoch.roster.faulty();
        for count in 0..SHEETS {
            let entries = entries(who, k);
            // A few of the other kind: what it heard may be of another round.
            let body = if self.scored == (count % 8 > 0) {
                let scores = Some(vec![vec![1.0; k]; k]);
                Body::Sheet(Sheet { entries, scores })
            } else {
                Body::Bundle(Bundle { entries })
            };
            act.say(None, who.seal(who.round, who.view, body));
            act.bad += 1;
        }
    }
}

/// Sends messages of views that are yet to come, and of views that it does not lead.
pub(super) struct StuffAhead;

impl Lie for StuffAhead {
    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        let n = who.epoch.roster.len() as u64;
        for ahead in 0..2 * n {
            let view = who.view + ahead;
            let entry = who.hash();
            let progress = Body::Progress {
                phase: Phase::Voting,
                counter: ahead,
            };
            for body in [Body::Receipt { entry }, progress] {
                act.say(None, who.seal(0, view, body));
                act.bad += 1;
            }
        }
    }
}

/// Something without end.
pub(super) enum Flood {
    Votes,
    Contributions,
    Scores,
    Complete,
}

impl Lie for Flood {
    fn say(&mut self, who: &mut Who, said: &Said<'_>, act: &mut Act) -> bool {
        let (Self::Contributions, Some(message)) = (&self, said.message) else {
            return false;
        };
        if let Body::Contribution(own) = &message.body {
            for ahead in 1..=3 {
                let other = Contribution {
                    nonce: who.random.bytes(),
                    ..own.clone()
                };
                let body = Body::Contribution(other);
                act.say(None, who.seal(message.round + ahead, 0, body));
                act.bad += 1;
            }
        }
        false
    }

    fn beat(&mut self, who: &mut Who, act: &mut Act) {
        let round = who.round;
        let far = who.view + 2 * who.epoch.roster.len() as u64 + 2;
        for count in 0..MANY as u64 {
            let frame = match self {
                Self::Votes => {
                    let view = who.view + who.random.below((far - who.view) as usize) as u64;
                    let block = who.hash();
                    let checked = Checked::Structure;
                    let bodies = [
                        Body::Notarize { block, checked },
                        Body::Finalize { block },
                        Body::Nullify,
                    ];
                    let body = bodies[who.random.below(3)].clone();
                    who.seal(0, view, body)
                }
                Self::Contributions => return,
                Self::Scores => {
                    let (entry, blob) = (who.hash(), who.hash());
                    let losses = vec![(blob, 1.0)];
                    let scores = Body::Scores(Scores { entry, losses });
                    let inclusion = Body::Inclusion { sheet: entry };
                    let body = if count % 2 == 0 { scores } else { inclusion };
                    who.seal(round, 0, body)
                }
                Self::Complete => {
                    let last = who.epoch.charter.rounds;
                    if count % 2 == 0 {
                        who.seal(last + count / 4, 0, Body::Complete)
                    } else {
                        let (after, nonce) = (count / 2, count);
                        let from = after + 1;
                        who.seal(
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
            act.say(None, frame);
            act.bad += 1;
        }
    }
}
