//! The lead's part of a round, in stages.
//!
//! | file | stages |
//! |---|---|
//! | `collect` | contributions and receipts, until the bundle closes the set |
//! | `sheet` | scores and inclusions, until all authors signed for the sheet |
//! | `propose` | the decision, its outcome, and the proposed block |
//! | `masked` | in masked rounds: the list, the vectors, the sheet, and the proposed block |

mod collect;
mod masked;
mod propose;
mod sheet;

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::effects::{Effect, Report};
use crate::member::consensus::chain::Chain;
use crate::member::consensus::links::Presence;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::stage::{BlockDraft, Lead, Stage};
use crate::member::consensus::timers::Timing;
use crate::member::consensus::views::View;
use crate::member::rounds::absences::Absences;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Body, Bundle, Content, Message, Phase, Sheet};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::time::Time;

/// Leading the view. Borrows what that depends on.
pub(in crate::member) struct Leading<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    view: &'a View,
    round: &'a mut Round,
    presence: &'a Presence,
    absences: &'a Absences,
    lead: &'a mut Option<Lead>,
}

impl Member {
    /// Lends what leading depends on.
    pub(in crate::member) fn leading(&mut self) -> Leading<'_> {
        Leading {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            round: &mut self.rounds.round,
            presence: &self.consensus.presence,
            absences: &self.rounds.absences,
            lead: &mut self.consensus.lead,
        }
    }

    /// Goes through as many stages of leading as possible now.
    pub(in crate::member) fn lead(&mut self) {
        loop {
            let Some(before) = self.consensus.lead.as_ref().map(Lead::phase) else {
                return;
            };
            let next = if self.leading().collecting() && self.amending().waits() {
                Ok(self.amending().draft())
            } else {
                self.leading().go_on()
            };
            match next {
                Ok(None) => {}
                Ok(Some(draft)) => {
                    let proposed = self.voting().propose(draft);
                    self.leading().proposed(proposed);
                }
                Err(reason) => self.voting().nullify(reason),
            }
            let phase = self.leading().phase();
            if phase.is_none_or(|phase| phase == before) {
                return;
            }
        }
    }
}

impl Leading<'_> {
    /// The spans of the present view.
    fn timing(&self) -> Timing<'_> {
        Timing {
            config: self.config,
            now: self.now,
            chain: self.chain,
            view: self.view,
            round: self.round,
            presence: self.presence,
            absences: self.absences,
            lead: self.lead.as_ref(),
        }
    }

    /// A block was proposed, or may not be.
    fn proposed(&mut self, proposed: Option<(Message, Bytes)>) {
        self.set_stage(match proposed {
            Some((message, frame)) => Stage::Voting { message, frame },
            None => Stage::Over,
        });
    }

    /// Starts to lead: the view begins, or the round within it, or a restarted member is back in a
    /// view that it leads. A proposal that is durable stays the only one of the view.
    pub(in crate::member) fn start(&mut self, durable: Option<(Message, Bytes)>) {
        let waiting = self.chain.newest_notarised().is_some() || !self.chain.settled();
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

    /// Goes on with the present stage, as far as possible now. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    fn go_on(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        match self.lead.as_ref().map(|lead| &lead.stage) {
            None | Some(Stage::Over | Stage::Voting { .. } | Stage::Deciding { .. }) => {}
            Some(Stage::Waiting) => return Ok(self.wait_for_finality()),
            Some(Stage::Collecting) => self.collect_contributions(),
            Some(Stage::Scoring { .. }) => self.collect_scores()?,
            Some(Stage::Including { .. }) => self.collect_inclusions()?,
            Some(Stage::Settling { .. }) => return self.propose_settled(),
            Some(Stage::Masking(_)) => self.collect_vectors()?,
            Some(Stage::Sealing(_)) => return self.seal_masked(),
        }
        Ok(None)
    }

    /// Whether contributions are taken.
    fn collecting(&self) -> bool {
        let stage = self.lead.as_ref().map(|lead| &lead.stage);
        matches!(stage, Some(Stage::Collecting))
    }

    /// The phase, which is reported when it is another one than before.
    fn phase(&mut self) -> Option<Phase> {
        let lead = self.lead.as_mut()?;
        let phase = lead.phase();
        if lead.reported != Some(phase) && !matches!(lead.stage, Stage::Over) {
            lead.reported = Some(phase);
            let (view, round) = (self.view.number, self.round.number);
            let report = Report::Leading { view, round, phase };
            self.out.push(Effect::Report(report));
        }
        Some(phase)
    }

    /// Waits for the finality of a notarised block, and for the outcome of a final masked round. If the
    /// finality takes longer than D, proposes an empty block on top of it, with which it becomes final too.
    fn wait_for_finality(&mut self) -> Option<BlockDraft> {
        let Some(notarised) = self.chain.newest_notarised().cloned() else {
            if self.chain.settled() {
                self.set_stage(Stage::Collecting);
            }
            return None;
        };
        if self.now < self.view.entered + self.timing().phase() {
            return None;
        }
        let parent = notarised.verdict.block()?;
        Some(BlockDraft {
            content: Content::Empty,
            parent,
            proof: Some(notarised),
        })
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(lead) = &mut self.lead {
            lead.stage = stage;
        }
    }

    /// Once per beat: sends again what members have not answered. A proposal is answered by `voters`.
    pub(in crate::member) fn repeat(&mut self, voters: &BTreeSet<MemberIndex>) {
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
            Stage::Masking(gathering) => {
                let body = Body::KeyList(gathering.list.keys.clone());
                let silent = |by: &MemberIndex| !gathering.vectors.contains_key(by);
                let others = self.config.others().into_iter();
                (body, others.filter(silent).collect())
            }
            Stage::Sealing(sealing) => {
                let body = Body::MaskedSheet((*sealing.sheet).clone());
                let silent = |by: &MemberIndex| !sealing.signed.contains_key(by);
                let others = self.config.others().into_iter();
                (body, others.filter(silent).collect())
            }
            Stage::Voting { message, frame } => {
                let (message, frame) = (message.clone(), frame.clone());
                let silent: Vec<_> = self
                    .config
                    .others()
                    .into_iter()
                    .filter(|member| !voters.contains(member))
                    .collect();
                for body in self.rests_on(&message) {
                    let (other, bytes) = self.config.seal(round, view, body);
                    for &to in &silent {
                        self.out.send(to, &other, &bytes);
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

impl Timing<'_> {
    /// When a span that the lead waits for ends.
    pub(in crate::member) fn lead_deadline(&self) -> Vec<Time> {
        let entered = self.view.entered + self.phase();
        match self.lead.map(|lead| &lead.stage) {
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
            Some(Stage::Masking(gathering)) => {
                let (due, over) = self.vectors_due(gathering);
                vec![due, over]
            }
            Some(Stage::Sealing(sealing)) => vec![self.seals_due(sealing)],
            _ => Vec::new(),
        }
    }
}

impl Leading<'_> {
    /// What a proposal rests on, for members that may not have it.
    fn rests_on(&self, message: &Message) -> Vec<Body> {
        let Body::Proposal(proposal) = &message.body else {
            return Vec::new();
        };
        match &proposal.block.content {
            Content::Learning(learning) => {
                let sheet = self.round.sheets.get(&learning.sheet);
                sheet.map(|sheet| sheet_body(sheet)).into_iter().collect()
            }
            Content::Masked(masked) => {
                let masks = &self.round.masks;
                let list = masks
                    .list(&masked.list)
                    .map(|list| Body::KeyList(list.keys.clone()));
                let sheet = masks.sheet(&masked.sheet);
                let sheet = sheet.map(|sheet| Body::MaskedSheet((**sheet).clone()));
                list.into_iter().chain(sheet).collect()
            }
            Content::Empty | Content::Change(_) | Content::Recovery(_) => Vec::new(),
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
