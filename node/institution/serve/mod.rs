//! Chooses the model that the silo serves, after the last round: on its own rows, in a thread of its own.
//! Nothing of it leaves the silo, unless the members agreed to decide together: then what it measured is ready when
//! they open their sums ([`ServingAnswers`](crate::answers)).

pub(super) mod choice;

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use learn::export::HeldOut;
use methods::serving::{ComparedModels, ComparedOn, Served};
use protocol::Hash;
use serde_json::json;
use silo::Notice;

use self::choice::{AdoptedRound, AgreedDecision, ComparisonJob, ServingStage};
use crate::comparison::OwnComparison;
use crate::events::NodeEvent;
use crate::institution::report::thread::Reporter;
use crate::model::{DecisionNote, HeldRounds, ModelError, ServedNote, keep_served, served};
use formatting::numbers::plural;

/// Time after which a comparison that is still running reports so again.
const AGAIN: Duration = Duration::from_secs(60);

/// Chooses the model to serve, once.
#[derive(Clone)]
pub(super) struct Serving {
    job: Arc<ComparisonJob>,
    /// Comparisons and choices under way.
    busy: Arc<AtomicU32>,
    /// True once a comparison has begun for which the members wait.
    compares: Arc<AtomicBool>,
    /// Time of the last report on the comparison under way, and that of its beginning.
    said: Arc<Mutex<Option<(Instant, Instant)>>>,
    /// Results that are to be printed. The thread holds no output: a node that is stopped ends
    /// without waiting for it.
    results: Arc<Mutex<Vec<(f64, NodeEvent, String)>>>,
}

impl Serving {
    pub(super) fn new(job: ComparisonJob) -> Self {
        Self {
            job: Arc::new(job),
            busy: Arc::default(),
            compares: Arc::default(),
            said: Arc::default(),
            results: Arc::default(),
        }
    }

    /// Prints what has been found out since the last call, and every minute that it goes on.
    pub(super) fn report(&self, reporter: &Reporter) {
        for (at, event, line) in self.results().drain(..) {
            reporter.print(at, event, line);
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((last, began)) = said.as_mut().filter(|(last, _)| last.elapsed() >= AGAIN) {
            *last = Instant::now();
            let seconds = began.elapsed().as_secs();
            let event = NodeEvent::Comparing {
                round: None,
                on: None,
                rounds: None,
                seconds,
            };
            let waits = match self.compares.load(Ordering::Acquire) {
                true => {
                    "the members decide together once all have compared, or the agreed rounds are over"
                }
                false => "the federation is done, and nobody waits for this",
            };
            let line = format!(
                "still training models alone for the comparison, for {seconds} s so far: {waits}"
            );
            reporter.print(self.job.at(), event, line);
        }
    }

    fn results(&self) -> MutexGuard<'_, Vec<(f64, NodeEvent, String)>> {
        // No code panics while it holds this lock.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares and chooses when the last round is adopted: the agreed one, or one after which the strategy ends. Where
    /// the members decide together, it compares after the last round that learns.
    pub(super) fn observe(&self, notice: &Notice) {
        let Notice::Adopted {
            round,
            state,
            assignment,
            coalition,
            model,
            personal,
            ..
        } = notice
        else {
            return;
        };
        match self.job.after(*round, &state.memory) {
            ServingStage::Learning => {}
            stage => {
                let adopted = AdoptedRound {
                    round: *round,
                    models: state.models.clone(),
                    assignment: assignment.to_vec(),
                    coalition: *coalition,
                    model: model.clone(),
                    personal: personal.clone(),
                };
                self.begin(adopted, stage);
            }
        }
    }

    /// Goes on with an earlier run that ended before it was done. `held` is what the state holds.
    pub(super) fn resume(&self, held: &HeldRounds) -> Result<(), ModelError> {
        let job = &self.job;
        let round = held.round(None)?;
        let noted = match served(&job.state) {
            Ok(noted) => noted.is_some_and(|noted| noted.served.round == round.round),
            Err(why) => {
                tracing::warn!("the model to serve is chosen again: {why}");
                false
            }
        };
        let stage = match job.after(round.round, &round.memory) {
            ServingStage::Learning => return Ok(()),
            _ if noted => return Ok(()),
            stage => stage,
        };
        let equipped = &job.equipment.equipped;
        let models = held.models(round, &equipped.layout())?;
        let personal = held.personal(round, equipped.initial_personal(job.initial_seed))?;
        let Some(model) = models.get(round.coalition as usize).cloned() else {
            return Ok(());
        };
        let adopted = AdoptedRound {
            round: round.round,
            models,
            assignment: held.assignment(round).to_vec(),
            coalition: round.coalition,
            model,
            personal,
        };
        self.begin(adopted, stage);
        Ok(())
    }

    /// Returns whether no comparison is under way, and the results of all have been printed.
    pub(super) fn is_idle(&self) -> bool {
        self.busy.load(Ordering::Acquire) == 0 && self.results().is_empty()
    }

    /// Notes when a comparison began, or that none is under way.
    fn now(&self, said: Option<(Instant, Instant)>) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = said;
    }

    /// Compares, and chooses where all is over, in a thread of its own.
    fn begin(&self, adopted: AdoptedRound, stage: ServingStage) {
        let deciding = matches!(stage, ServingStage::Deciding);
        if deciding && self.compares.swap(true, Ordering::AcqRel) {
            return;
        }
        let own = self.clone();
        self.busy.fetch_add(1, Ordering::AcqRel);
        // Ended by the end of the process: the next start compares again.
        thread::spawn(move || {
            match stage {
                ServingStage::Learning => {}
                ServingStage::Deciding => {
                    own.compared(&adopted, true);
                }
                ServingStage::Over(decided) => own.choose(&adopted, decided),
            }
            own.busy.fetch_sub(1, Ordering::AcqRel);
        });
    }

    /// The comparison, which is made once. Others may be waiting for it.
    fn compared(&self, adopted: &AdoptedRound, awaited: bool) -> &OwnComparison {
        let job = &*self.job;
        job.equipment.comparison.make(|| {
            let began = Instant::now();
            let on = job.comparable(adopted);
            if on != ComparedOn::Nothing {
                let rounds = (job.learning + 1).saturating_sub(job.first);
                let event = NodeEvent::Comparing {
                    round: Some(adopted.round),
                    on: Some(json!(on)),
                    rounds: Some(rounds),
                    seconds: 0,
                };
                let line = format!(
                    "training models alone, each for up to {}, to compare them with the federation's ({}){}",
                    plural(rounds as usize, "round"),
                    on.words(),
                    match awaited {
                        true => ": the members decide together then",
                        false => "",
                    }
                );
                self.results().push((job.at(), event, line));
                self.now(Some((began, began)));
            }
            let compared = job.compare(adopted, on);
            self.now(None);
            compared
        })
    }

    fn choose(&self, adopted: &AdoptedRound, decided: Option<AgreedDecision>) {
        let job = &*self.job;
        let began = Instant::now();
        let OwnComparison { models, tuned } = self.compared(adopted, false);
        let (chosen, decided) = chosen(models, decided);
        let held_out = job.held_out(&chosen);
        let learner = if chosen.candidate.is_own() {
            &job.equipment.plain.learner
        } else {
            &job.equipment.equipped
        };
        let model = learner.deployed(&chosen.model.0, &chosen.model.1);
        let note = ServedNote {
            round: adopted.round,
            candidate: chosen.candidate,
            on: chosen.on,
            measured: chosen.measured,
            decided,
            personal: chosen.personal,
            local: tuned.clone(),
            held_out,
            model: model
                .as_ref()
                .map(|model| format!("{:#}", Hash(model.hash()))),
        };
        let kept = keep_served(&job.state, &note, model.as_ref());
        let (event, line) = serves(&note, began.elapsed());
        self.results().push((job.at(), event, line));
        if let Err(why) = kept {
            tracing::warn!(
                "the choice of the served model was not saved in the state folder: {why}"
            );
        }
    }
}

/// Returns what a silo with this comparison serves, by the decision of all members where there is one, and how it was chosen
/// where they agreed on one.
fn chosen(
    models: &ComparedModels,
    decided: Option<AgreedDecision>,
) -> (Served, Option<DecisionNote>) {
    let alone = |why: String| Some(DecisionNote::Alone { why });
    let models = models.clone();
    match decided {
        None => (models.alone(), None),
        Some(Err(why)) => (models.alone(), alone(why.to_string())),
        Some(Ok(_)) if !models.compares() => {
            let why = "it compared nothing with its local model";
            (models.alone(), alone(why.into()))
        }
        Some(Ok(together)) => {
            let silos = together.silos();
            let note = DecisionNote::Together { silos };
            (together.serve(models), Some(note))
        }
    }
}

/// Returns what is served, which took so long to choose, as an event and in a line.
fn serves(note: &ServedNote, took: Duration) -> (NodeEvent, String) {
    let metric = note.held_out.as_ref().and_then(|held_out| {
        let value = held_out.metrics.get(&held_out.metric)?;
        Some((held_out, *value))
    });
    let event = NodeEvent::Serves {
        round: note.round,
        candidate: json!(note.candidate),
        on: json!(note.on),
        decided: note.decided.as_ref().map(|decided| json!(decided)),
        measured: json!(note.measured),
        local: json!(note.local),
        metric: metric.map(|(held_out, _)| held_out.metric.clone()),
        value: metric.map(|(_, value)| value),
        rows: metric.map(|(held_out, _)| held_out.rows),
        seconds: took.as_secs_f64(),
    };
    let metric = metric.map(|(held_out, value)| {
        let unit = match held_out.unit.as_str() {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        format!(
            "   {} {value:.4}{unit} on {} held-out rows",
            held_out.metric, held_out.rows
        )
    });
    let unmeasured = note.held_out.as_ref().and_then(HeldOut::unmeasured);
    let decided = note.decided.as_ref();
    let decided = decided.map(|decided| format!("; {}", decided.words()));
    let line = format!(
        "serves {} ({}{}{}){}",
        note.candidate.words(),
        note.on.words(),
        decided.unwrap_or_default(),
        note.personal.words(),
        metric
            .or(unmeasured.map(|why| format!("   {why}")))
            .unwrap_or_default()
    );
    (event, line)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use methods::Params;
    use methods::serving::{Candidate, NotTogether, PersonalParts, Together};

    use super::*;

    /// The line of a model of these parts, measured on 150 rows of which one is of the rarer class.
    fn line(personal: PersonalParts) -> String {
        let note = ServedNote {
            round: 3,
            candidate: Candidate::Coalition,
            on: ComparedOn::Nothing,
            measured: Vec::new(),
            decided: None,
            personal,
            local: None,
            held_out: Some(HeldOut {
                rows: 150,
                metric: "roc-auc".into(),
                unit: String::new(),
                metrics: BTreeMap::from([("accuracy".to_owned(), 0.99)]),
                constant: BTreeMap::new(),
            }),
            model: None,
        };
        serves(&note, Duration::ZERO).1
    }

    #[test]
    fn one_positive_in_many_is_not_measured_and_the_line_states_why() {
        let line = line(PersonalParts::Trained);
        let why = "nothing was measured on 150 held-out rows: roc-auc needs some of both classes";
        assert!(line.contains(why), "{line}");
        assert!(!line.contains("trained"), "{line}");
    }

    #[test]
    fn heads_that_no_round_has_trained_are_stated_where_they_serve() {
        let never = line(PersonalParts::NeverTrained);
        assert!(
            never.contains("were never trained: do not use it"),
            "{never}"
        );
        let late = line(PersonalParts::TrainedAtTheEnd);
        assert!(
            late.contains("trained on its own rows at the end"),
            "{late}"
        );
    }

    #[test]
    fn how_the_members_decided_is_stated() {
        let none = || {
            let coalition = (Params::empty(), Params::empty());
            ComparedModels::none(coalition, PersonalParts::Trained)
        };
        let said = |decided| chosen(&none(), decided).1.map(|decided| decided.words());
        assert_eq!(said(None), None);
        let refused = said(Some(Err(NotTogether::Refused)));
        let expected = "decided alone, because a silo refused to decide together";
        assert_eq!(refused.as_deref(), Some(expected));
        // Without a comparison the sums say nothing of this silo.
        let uncounted = said(Some(Ok(Together::default()))).unwrap_or_default();
        assert!(
            uncounted.contains("alone, because it compared nothing"),
            "{uncounted}"
        );
        let together = DecisionNote::Together { silos: 4 }.words();
        assert_eq!(together, "decided together, by the sums of 4 silos");
    }
}
