//! Chooses the model that the silo serves, after the last round: on its own rows, in a thread of its own.
//! Nothing of it leaves the silo.

pub(super) mod choice;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use learn::export::HeldOut;
use methods::serving::ComparedOn;
use protocol::Hash;
use serde_json::json;
use silo::Notice;

use self::choice::{AdoptedRound, ComparisonJob};
use crate::events::NodeEvent;
use crate::institution::report::thread::Reporter;
use crate::model::{HeldRounds, ModelError, ServedNote, keep_served, served};
use formatting::numbers::plural;

/// Time after which a comparison that is still running reports so again.
const AGAIN: Duration = Duration::from_secs(60);

/// Chooses the model to serve, once.
#[derive(Clone)]
pub(super) struct Serving {
    job: Arc<ComparisonJob>,
    /// Comparisons under way.
    busy: Arc<AtomicU32>,
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
            let line = format!(
                "still training models alone for the comparison, for {seconds} s so far: the federation is done, \
                 and nobody waits for this"
            );
            reporter.print(self.job.at(), event, line);
        }
    }

    fn results(&self) -> MutexGuard<'_, Vec<(f64, NodeEvent, String)>> {
        // No code panics while it holds this lock.
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a comparison when the last round is adopted: the agreed one, or one after which the strategy ends.
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
        if self.job.is_over(*round, &state.memory) {
            self.begin(AdoptedRound {
                round: *round,
                models: state.models.clone(),
                assignment: assignment.to_vec(),
                coalition: *coalition,
                model: model.clone(),
                personal: personal.clone(),
            });
        }
    }

    /// Starts the comparison of an earlier run that ended before it was done. `held` is what the state
    /// holds.
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
        if !job.is_over(round.round, &round.memory) || noted {
            return Ok(());
        }
        let equipped = &job.equipment.equipped;
        let models = held.models(round, &equipped.layout())?;
        let personal = held.personal(round, equipped.initial_personal(job.initial_seed))?;
        let Some(model) = models.get(round.coalition as usize).cloned() else {
            return Ok(());
        };
        self.begin(AdoptedRound {
            round: round.round,
            models,
            assignment: round.assignment.clone(),
            coalition: round.coalition,
            model,
            personal,
        });
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

    fn begin(&self, adopted: AdoptedRound) {
        let own = self.clone();
        self.busy.fetch_add(1, Ordering::AcqRel);
        // Ended by the end of the process: the next start compares again.
        thread::spawn(move || {
            own.choose(&adopted);
            own.busy.fetch_sub(1, Ordering::AcqRel);
        });
    }

    fn choose(&self, adopted: &AdoptedRound) {
        let job = &*self.job;
        let began = Instant::now();
        let on = job.comparable(adopted);
        if on != ComparedOn::Nothing {
            let rounds = (job.last + 1).saturating_sub(job.first);
            let event = NodeEvent::Comparing {
                round: Some(adopted.round),
                on: Some(json!(on)),
                rounds: Some(rounds),
                seconds: 0,
            };
            let line = format!(
                "training models alone, each for up to {}, to compare them with the federation's ({})",
                plural(rounds as usize, "round"),
                on.words()
            );
            self.results().push((job.at(), event, line));
            self.now(Some((began, began)));
        }
        let (compared, tuned, held_out) = job.compare(adopted, on);
        self.now(None);
        let learner = if compared.candidate.is_own() {
            &job.equipment.plain.learner
        } else {
            &job.equipment.equipped
        };
        let model = learner.deployed(&compared.model.0, &compared.model.1);
        let note = ServedNote {
            round: adopted.round,
            candidate: compared.candidate,
            on: compared.on,
            measured: compared.measured,
            personal: compared.personal,
            local: tuned,
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
    let line = format!(
        "serves {} ({}{}){}",
        note.candidate.words(),
        note.on.words(),
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

    use methods::serving::{Candidate, PersonalParts};

    use super::*;

    /// The line of a model of these parts, measured on 150 rows of which one is of the rarer class.
    fn line(personal: PersonalParts) -> String {
        let note = ServedNote {
            round: 3,
            candidate: Candidate::Coalition,
            on: ComparedOn::Nothing,
            measured: Vec::new(),
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
}
