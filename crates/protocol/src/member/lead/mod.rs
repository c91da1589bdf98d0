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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::chain::Chain;
use super::outbox::Outbox;
use super::presence::Presence;
use super::round::Round;
use super::timers::Timing;
use super::{ByMember, Config, Inclusions, Member, Mutation, View};
use crate::certificate::Certificate;
use crate::effects::{Effect, Report};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::message::{Body, Bundle, Content, Entry, Message, Phase, Sheet};
use crate::refusal::Refusal;
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

/// Leading the view. Borrows what that depends on.
pub(super) struct Leading<'a> {
    config: &'a Config,
    now: Time,
    out: &'a mut Outbox,
    chain: &'a Chain,
    view: &'a View,
    round: &'a mut Round,
    presence: &'a Presence,
    lead: &'a mut Option<Lead>,
}

/// A block that a lead is about to propose.
pub(super) struct Draft {
    pub(super) content: Content,
    pub(super) parent: Hash,
    /// The certificate of the parent.
    pub(super) proof: Option<Certificate>,
}

impl Member {
    /// Lends what leading depends on.
    pub(super) fn leading(&mut self) -> Leading<'_> {
        Leading {
            config: &self.config,
            now: self.now,
            out: &mut self.out,
            chain: &self.chain,
            view: &self.view,
            round: &mut self.round,
            presence: &self.presence,
            lead: &mut self.lead,
        }
    }

    /// Goes through as many stages of leading as possible now.
    pub(super) fn lead(&mut self) {
        loop {
            let Some(before) = self.lead.as_ref().map(Lead::phase) else {
                return;
            };
            let next = match self.leading().collecting() && self.amending().waits() {
                true => Ok(self.amending().draft()),
                false => self.leading().go_on(),
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
    pub(super) fn start(&mut self, durable: Option<(Message, Bytes)>) {
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

    /// Goes on with the present stage, as far as possible now. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    fn go_on(&mut self) -> Result<Option<Draft>, Refusal> {
        match self.lead.as_ref().map(|lead| &lead.stage) {
            None | Some(Stage::Over | Stage::Voting { .. } | Stage::Deciding { .. }) => {}
            Some(Stage::Waiting) => return Ok(self.wait_for_finality()),
            Some(Stage::Collecting) => self.collect_contributions(),
            Some(Stage::Scoring { .. }) => self.collect_scores()?,
            Some(Stage::Including { .. }) => self.collect_inclusions()?,
            Some(Stage::Settling { .. }) => return self.propose_settled(),
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

    /// Waits for the finality of a notarised block. If it takes longer than D, proposes an empty
    /// block on top of it, with which it becomes final too.
    fn wait_for_finality(&mut self) -> Option<Draft> {
        let Some(notarised) = self.chain.newest_notarised().cloned() else {
            self.set_stage(Stage::Collecting);
            return None;
        };
        if self.config.broken(Mutation::NoEmptyBlock) {
            return None;
        }
        if self.now < self.view.entered + self.timing().phase() {
            return None;
        }
        let parent = notarised.verdict.block()?;
        Some(Draft {
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
    pub(super) fn repeat(&mut self, voters: &BTreeSet<MemberIndex>) {
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
                    .filter(|member| !voters.contains(member))
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
            _ => Vec::new(),
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
