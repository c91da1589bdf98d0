//! The lead's part of a round, in stages.
//!
//! | file | stages |
//! |---|---|
//! | `collect` | contributions and receipts, until the bundle closes the set |
//! | `sheet` | scores and inclusions, until all authors signed for the sheet |
//! | `propose` | the decision, its outcome, and the proposed block |

mod collect;
mod propose;
mod sheet;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{ByMember, Inclusions, Member, Mutation};
use crate::effects::{Effect, Report};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Body, Bundle, Content, Entry, Message, Phase, Sheet};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::Case;

/// What a member keeps while it leads a view.
pub(super) struct Lead {
    stage: Stage,
    /// The entries of members that got a receipt.
    receipts: ByMember<Entry>,
    /// How often members were left out in this view.
    reissues: usize,
    /// The counter of the next Progress message.
    beats: u64,
    /// The phase that was reported last.
    reported: Option<Phase>,
}

enum Stage {
    /// A notarised block has to become final first.
    Waiting,
    Collecting,
    Scoring {
        entries: Vec<Entry>,
        since: Time,
    },
    Including {
        sheet: Arc<Sheet>,
        root: Hash,
        since: Time,
        signed: ByMember<Signature>,
    },
    Deciding {
        sheet: Arc<Sheet>,
        root: Hash,
        inclusions: Inclusions,
    },
    Settling {
        case: Case,
        id: Hash,
        root: Hash,
        inclusions: Inclusions,
    },
    Voting {
        message: Message,
        frame: Bytes,
    },
    /// This lead has voted against its own view.
    Over,
}

impl Lead {
    pub(super) fn new() -> Self {
        Self {
            stage: Stage::Collecting,
            receipts: BTreeMap::new(),
            reissues: 0,
            beats: 0,
            reported: None,
        }
    }

    fn phase(&self) -> Phase {
        match self.stage {
            Stage::Waiting => Phase::Waiting,
            Stage::Collecting => Phase::Collecting,
            Stage::Scoring { .. } => Phase::Scoring,
            Stage::Including { .. } => Phase::Including,
            Stage::Deciding { .. } | Stage::Settling { .. } => Phase::Deciding,
            // In `Over` nothing more is sent, so the phase does not matter.
            Stage::Voting { .. } | Stage::Over => Phase::Voting,
        }
    }

    /// Whether it has proposed a block.
    pub(super) fn proposed(&self) -> bool {
        matches!(self.stage, Stage::Voting { .. })
    }

    /// The members whose entries these are.
    fn authors(&self, entries: &[Entry]) -> Vec<MemberIndex> {
        let listed = |entry: &Entry| entries.iter().any(|other| other.id == entry.id);
        self.receipts
            .iter()
            .filter(|(_, entry)| listed(entry))
            .map(|(&member, _)| member)
            .collect()
    }
}

impl Member {
    /// Starts to lead: the view begins, or the round within it, or a restarted member is back in a
    /// view that it leads.
    pub(super) fn start_leading(&mut self) {
        let durable = self.ballots.proposal(self.view.number).cloned();
        let waiting = self.chain.newest_notarised().is_some()
            && !self.config.broken(Mutation::RoundFromNotarised);
        // While a round may become final, the next beat is early enough to say who leads: with its
        // finality the lead may change.
        let sure = !(waiting && self.config.epoch.charter.rotation.follows_rounds());
        let Some(lead) = &mut self.lead else { return };
        lead.stage = match durable {
            Some((message, frame)) => Stage::Voting { message, frame },
            None if waiting => Stage::Waiting,
            None => Stage::Collecting,
        };
        lead.receipts.clear();
        if lead.beats == 0 && sure {
            self.send_progress();
        }
        if let Some(Lead {
            stage: Stage::Voting { message, frame },
            ..
        }) = &self.lead
        {
            let (message, frame) = (message.clone(), frame.clone());
            self.out.publish(message, frame);
        }
    }

    /// Sends Progress to all members.
    fn send_progress(&mut self) {
        let Some(lead) = &mut self.lead else { return };
        let body = Body::Progress {
            phase: lead.phase(),
            counter: lead.beats,
        };
        lead.beats += 1;
        let (message, frame) = self.config.seal(0, self.view.number, body);
        self.out.publish(message, frame);
    }

    /// Goes through as many stages as possible now.
    pub(super) fn lead(&mut self) {
        loop {
            let before = self.lead.as_ref().map(Lead::phase);
            match self.lead.as_ref().map(|lead| &lead.stage) {
                None | Some(Stage::Over | Stage::Voting { .. }) => {}
                Some(Stage::Waiting) => self.wait_for_finality(),
                Some(Stage::Collecting) if self.amendments.pending() => self.propose_change(),
                Some(Stage::Collecting) => self.collect_contributions(),
                Some(Stage::Scoring { .. }) => self.collect_scores(),
                Some(Stage::Including { .. }) => self.collect_inclusions(),
                Some(Stage::Deciding { .. }) => {}
                Some(Stage::Settling { .. }) => self.propose_settled(),
            }
            let Some(lead) = &mut self.lead else { return };
            let phase = lead.phase();
            if lead.reported != Some(phase) && !matches!(lead.stage, Stage::Over) {
                lead.reported = Some(phase);
                let (view, round) = (self.view.number, self.round.number);
                self.out
                    .push(Effect::Report(Report::Leading { view, round, phase }));
            }
            if before == Some(phase) {
                return;
            }
        }
    }

    /// When a span that the lead waits for ends.
    pub(super) fn lead_deadline(&self) -> Vec<Time> {
        let entered = self.view.entered + self.phase_time();
        match self.lead.as_ref().map(|lead| &lead.stage) {
            Some(Stage::Waiting) => vec![entered],
            Some(Stage::Collecting) => {
                vec![entered, self.round.started + self.config.epoch.patience()]
            }
            Some(Stage::Scoring { entries, since }) => vec![self.scores_due(entries, *since)],
            Some(Stage::Including {
                sheet,
                since,
                signed,
                ..
            }) => vec![self.inclusions_due(&sheet.entries, signed, *since)],
            _ => Vec::new(),
        }
    }

    /// Waits for the finality of a notarised block. If it takes longer than D, proposes an empty
    /// block on top of it, with which it becomes final too.
    fn wait_for_finality(&mut self) {
        let Some(notarised) = self.chain.newest_notarised().cloned() else {
            return self.set_stage(Stage::Collecting);
        };
        if self.config.broken(Mutation::NoEmptyBlock) {
            return;
        }
        if self.now < self.view.entered + self.phase_time() {
            return;
        }
        let Some(parent) = notarised.verdict.block() else {
            return;
        };
        self.propose(Content::Empty, parent, Some(notarised));
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(lead) = &mut self.lead {
            lead.stage = stage;
        }
    }

    /// Once per beat: sends again what members have not answered.
    pub(super) fn repeat_as_lead(&mut self) {
        let over = |lead: &Lead| matches!(lead.stage, Stage::Over);
        if self.lead.as_ref().is_none_or(over) {
            // Progress would only make the others wait.
            return;
        }
        self.send_progress();
        let Some(lead) = &self.lead else { return };
        let (round, view) = (self.round.number, self.view.number);
        let (body, to): (Body, Vec<_>) = match &lead.stage {
            Stage::Scoring { entries, .. } => {
                let silent = |member: &MemberIndex| {
                    let scores = self.round.inbox.scores.get(member);
                    scores.is_none_or(|scores| scores.row(entries).is_none())
                };
                let body = Body::Bundle(Bundle {
                    entries: entries.clone(),
                });
                (
                    body,
                    lead.authors(entries).into_iter().filter(silent).collect(),
                )
            }
            Stage::Including { sheet, signed, .. } => {
                let silent = |member: &MemberIndex| !signed.contains_key(member);
                (
                    sheet_body(sheet),
                    self.config.others().into_iter().filter(silent).collect(),
                )
            }
            Stage::Voting { message, frame } => {
                let (message, frame) = (message.clone(), frame.clone());
                let silent: Vec<_> = self
                    .config
                    .others()
                    .into_iter()
                    .filter(|&member| !self.ballots.voted(view, member))
                    .collect();
                let sheet = match &message.body {
                    Body::Proposal(proposal) => proposal.block.learning(),
                    _ => None,
                }
                .and_then(|learning| self.round.sheets.get(&learning.sheet).cloned());
                if let Some(sheet) = sheet {
                    let (sheet, bytes) = self.config.seal(round, view, sheet_body(&sheet));
                    for &to in &silent {
                        self.out.send(to, &sheet, &bytes);
                    }
                }
                for to in silent {
                    self.out.send(to, &message, &frame);
                }
                return;
            }
            _ => return,
        };
        let (message, frame) = self.config.seal(round, view, body);
        for member in to {
            self.out.send(member, &message, &frame);
        }
    }
}

/// How a sheet travels: without scores it is the bundle.
fn sheet_body(sheet: &Sheet) -> Body {
    if sheet.scores.is_some() {
        Body::Sheet(sheet.clone())
    } else {
        Body::Bundle(Bundle {
            entries: sheet.entries.clone(),
        })
    }
}
