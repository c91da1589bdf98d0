//! Turns what a silo reports into lines for its operator, and measures adopted models on its own rows.

mod masked;
mod reported;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use agreement::Agreement;
use bytes::Bytes;
use methods::{Params, Split};
use protocol::accusation::Lineage;
use protocol::{Epoch, Hash, MemberIndex, Time};
use silo::Notice;

use super::health::Health;
use super::late::Late;
use super::output::OutputLines;
use super::weights::WeightWatch;
use crate::equipment::Equipment;
use crate::events::NodeEvent;
use crate::model::HeldRounds;
use crate::status::document::HeldOutMetrics;

/// Seconds from which a round's line says what they were spent on.
const LONG: f64 = 5.0;
/// Warnings that are remembered, so that each is printed once.
const WARNINGS: usize = 256;
/// Wrong transcripts that are kept until it is known whose they are.
const WRONG: usize = 16;

/// Turns a silo's notices into lines.
pub(in crate::institution) struct News {
    output: OutputLines,
    epoch: Arc<Epoch>,
    /// True if the strategy may end the federation early.
    may_stop: bool,
    /// Equipment with which the silo learns, if it can.
    equipment: Option<Equipment>,
    health: Arc<Health>,
    /// The node's state folder, where evidence is kept.
    state: PathBuf,
    /// Origin of the epoch, for evidence.
    lineage: Lineage,
    /// Warnings so far about weights and rows.
    weights: WeightWatch,
    /// Rounds for which this institution's model came too late.
    late: Late,
    /// Time of the present event.
    now: SystemTime,
    /// The round under way.
    round: u64,
    /// The leads of the last views that this member entered.
    leads: BTreeMap<u64, MemberIndex>,
    /// A view that was nullified, until the next one is entered.
    nullified: Option<u64>,
    /// Training loss of a round.
    loss: Option<(u64, f64)>,
    /// Rounds that are final and not adopted yet.
    finals: Vec<Finality>,
    warnings: BTreeSet<(MemberIndex, String)>,
    /// The lists and transcripts that were found wrong last, until it is known whose they are. A list has
    /// several authors, and more than one may be wrong.
    wrong: VecDeque<(Bytes, Bytes)>,
}

/// A round that became final.
struct Finality {
    round: u64,
    view: u64,
    lead: MemberIndex,
    block: Hash,
    authors: usize,
}

impl News {
    pub(in crate::institution) fn new(
        output: OutputLines,
        agreement: &Agreement,
        equipment: Option<Equipment>,
        health: Arc<Health>,
        (state, lineage): (PathBuf, Lineage),
    ) -> Self {
        let epoch = &agreement.epoch;
        Self {
            output,
            epoch: epoch.clone(),
            may_stop: agreement.strategy_config.stop.is_some() && agreement.serving.is_none(),
            equipment,
            health,
            state,
            lineage,
            weights: WeightWatch::new(epoch, agreement.max_weight),
            late: Late::default(),
            now: SystemTime::now(),
            round: 0,
            leads: BTreeMap::new(),
            nullified: None,
            loss: None,
            finals: Vec::new(),
            warnings: BTreeSet::new(),
            wrong: VecDeque::new(),
        }
    }

    /// Prints a notice, if it is for the operator. An adopted model is measured on the own rows if
    /// `measure`.
    pub(super) fn notice(&mut self, now: SystemTime, at: Time, notice: &Notice, measure: bool) {
        self.now = now;
        match notice {
            Notice::Protocol(report) => self.report(at, report),
            Notice::Trained {
                round,
                loss,
                samples,
                ..
            } => self.trained(at, *round, *loss, *samples),
            Notice::Adopted {
                round,
                outcome,
                state,
                coalition,
                model,
                personal,
                ..
            } => {
                let held_out = measure.then(|| self.measure(model, personal)).flatten();
                let of = (*coalition, state.models.len());
                self.adopted(at, *round, *outcome, of, held_out);
            }
            Notice::Unopened { from, reason, .. } | Notice::Dropped { from, reason, .. } => {
                self.warn(at, *from, 0, reason);
            }
            Notice::Muted { member, span } => {
                let (member, seconds) = (self.named(*member), span.as_secs_f64());
                let line = format!(
                    "warning: {member} keeps breaking the rules: its messages are ignored for {seconds} s"
                );
                self.print(at, NodeEvent::Muted { member, seconds }, line);
            }
            Notice::Lost { messages } => {
                let messages = *messages;
                self.print(at, NodeEvent::Lost { messages }, String::new());
            }
            Notice::Clipped { .. } | Notice::VoidSum { .. } | Notice::Searched { .. } => {
                self.masked_notice(at, notice);
            }
            Notice::WrongTranscript { list, transcript } => {
                self.wrong.push_back((list.clone(), transcript.clone()));
                if self.wrong.len() > WRONG {
                    self.wrong.pop_front();
                }
            }
            // Printed by `waiting` for as long as it lasts.
            Notice::Listening => {}
            Notice::Missing(gone) => {
                let event = NodeEvent::Gone {
                    what: gone.what().into(),
                    round: gone.round(),
                    why: gone.to_string(),
                };
                self.print(at, event, format!("warning: {gone}"));
            }
            Notice::Recovered { round } => {
                let line = format!("all files of round {round} have been fetched again");
                self.print(at, NodeEvent::Whole { round: *round }, line);
            }
            Notice::Store { reason } => {
                let reason = reason.to_string();
                self.print(at, NodeEvent::Store { reason }, String::new());
            }
            Notice::Stopped(reason) => {
                let line = reason.to_string();
                let event = NodeEvent::Stopped {
                    reason: line.clone(),
                };
                self.print(at, event, line);
            }
        }
    }

    /// Notes the loss of a training, and says so where more rows were claimed than there are.
    fn trained(&mut self, at: Time, round: u64, loss: f64, samples: u64) {
        // A round that only agrees on a scale has no loss.
        if loss.is_finite() {
            self.loss = Some((round, loss));
        }
        let own = self.equipment.as_ref();
        let own = own.map_or(0, |equipment| equipment.equipped.samples());
        if let Some(line) = self.weights.trained(samples, own) {
            let event = NodeEvent::RowsClaimed {
                round,
                claimed: samples,
                rows: own,
            };
            self.print(at, event, format!("warning: {line}"));
        }
    }

    /// Says which round the silo goes on from, and measures its model again.
    pub(super) fn goes_on(&mut self, held: &HeldRounds, seed: u64) {
        let Ok(last) = held.round(None) else {
            return;
        };
        let held_out = self.equipment.as_ref().and_then(|equipment| {
            let equipped = &equipment.equipped;
            let own = last.models.get(last.coalition as usize)?;
            let model = held.model(last, own.hash, &equipped.layout());
            let personal = held.personal(last, equipped.initial_personal(seed));
            let both = model.and_then(|model| Ok((model, personal?)));
            let both = both.map_err(|why| tracing::debug!("no held-out metrics: {why}"));
            let (model, personal) = both.ok()?;
            self.measure(&model, &personal)
        });
        let measured = held_out.as_ref();
        let measured = measured.map_or(String::new(), |held_out| format!(": {}", held_out.brief()));
        let line = format!(
            "resuming after round {}, coalition {} of {}{measured}",
            last.round,
            last.coalition + 1,
            last.models.len(),
        );
        let event = NodeEvent::GoesOn {
            round: last.round,
            outcome: format!("{:#}", last.outcome),
            coalition: last.coalition,
            coalitions: last.models.len(),
            held_out: held_out.clone(),
        };
        if let Some(held_out) = held_out {
            self.health.measured(last.round, held_out);
        }
        self.output.print(self.now, 0.0, event, &line);
    }

    /// The metrics of a model on the own held-out rows; `None` if there are none.
    fn measure(&self, model: &Params, personal: &Params) -> Option<HeldOutMetrics> {
        let Equipment {
            equipped, metric, ..
        } = self.equipment.as_ref()?;
        let measured = equipped.evaluate(model, personal, Split::Test);
        let measured = measured.map_err(|error| tracing::debug!("no held-out metrics: {error}"));
        let measured = measured.ok()?;
        let (finite, not): (Vec<_>, Vec<_>) = measured
            .values
            .into_iter()
            .partition(|(_, value)| value.is_finite());
        Some(HeldOutMetrics {
            rows: measured.samples,
            metric: metric.name.key().to_owned(),
            unit: metric.unit.clone(),
            metrics: finite.into_iter().collect(),
            not_finite: not.into_iter().map(|(name, _)| name).collect(),
        })
    }

    fn adopted(
        &mut self,
        at: Time,
        round: u64,
        outcome: Hash,
        (own, of): (u32, usize),
        held_out: Option<HeldOutMetrics>,
    ) {
        let loss = self.loss.filter(|(trained, _)| *trained == round);
        let loss = loss.map(|(_, loss)| loss);
        let finals = std::mem::take(&mut self.finals);
        let block = finals.iter().find(|last| last.round == round);
        let spent = self.health.took(round);
        let event = NodeEvent::Adopted {
            round,
            outcome: format!("{outcome:#}"),
            coalition: own,
            coalitions: of,
            loss,
            held_out: held_out.clone(),
            block: block.map(|last| format!("{:#}", last.block)),
            spent: spent.clone(),
        };
        for last in &finals {
            if last.round != round {
                let line = format!(
                    "{}   adopted later, together with a newer one",
                    self.head(last)
                );
                self.output.line(self.now, &line);
            }
        }
        let head = block.map_or_else(|| format!("round {round:>4}"), |last| self.head(last));
        let loss = loss.map_or(String::new(), |loss| format!("   loss {loss:.4}"));
        let measured = held_out.as_ref();
        let measured =
            measured.map_or(String::new(), |held_out| format!("   {}", held_out.brief()));
        let took = spent.filter(|spent| spent.seconds >= LONG);
        let took = took.map_or(String::new(), |spent| format!("   {}", spent.text()));
        let line = format!(
            "{head}   coalition {} of {of}{loss}{measured}{took}",
            own + 1
        );
        if let Some(held_out) = held_out {
            self.health.measured(round, held_out);
        }
        self.print(at, event, line);
    }

    fn head(&self, last: &Finality) -> String {
        let Finality {
            round,
            view,
            lead,
            authors,
            ..
        } = last;
        let lead = self.name(*lead);
        format!("round {round:>4}   view {view:>4}   lead {lead}   {authors} models")
    }

    /// Prints that a message was not accepted. Any machine that can reach this node can cause that,
    /// so each warning is printed once.
    fn warn(&mut self, at: Time, member: MemberIndex, round: u64, reason: &str) {
        let warning = (member, reason.to_owned());
        if self.warnings.len() >= WARNINGS || !self.warnings.insert(warning) {
            return;
        }
        let name = self.name(member);
        let event = NodeEvent::Refused {
            member: name.into(),
            round,
            reason: reason.into(),
        };
        let line = format!("warning: a message of {name} was not accepted: {reason}");
        self.print(at, event, line);
    }

    fn name(&self, member: MemberIndex) -> &str {
        self.epoch.roster.name(member)
    }

    fn named(&self, member: MemberIndex) -> String {
        self.name(member).to_owned()
    }

    fn print(&self, at: Time, event: NodeEvent, line: String) {
        if let Some(warning) = line.strip_prefix("warning: ") {
            self.health.warning(self.now, warning);
        }
        let at = at.elapsed().as_secs_f64();
        self.output.print(self.now, at, event, &line);
    }
}
