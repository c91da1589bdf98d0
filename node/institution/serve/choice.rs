//! Compares the models that a silo could serve: the federation's and those trained alone, and knows when.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use learn::export::HeldOut;
use methods::learner::Task;
use methods::serving::{
    Alone, CandidateComparison, ComparedModels, ComparedOn, Effort, LocalModels, NotTogether,
    PersonalParts, Served, Together, TogetherRounds, alone_start, comparable, is_never_trained,
    mean_of_coalitions, members_of,
};
use methods::strategy::{LAST_QUESTION, Memory, QuestionState};
use methods::{Params, State, Strategy};

use crate::comparison::OwnComparison;
use crate::equipment::Equipment;

/// Input of a comparison beside the adopted round.
pub(in crate::institution) struct ComparisonJob {
    /// Equipment with which the silo learns.
    pub(in crate::institution) equipment: Equipment,
    /// The strategy, which may end the federation before the last round.
    pub(in crate::institution) strategy: Arc<dyn Strategy>,
    /// Task by which the silo would train alone.
    pub(in crate::institution) task: Task,
    /// Seed of the initial model and of the initial personal state.
    pub(in crate::institution) initial_seed: u64,
    /// The silo's seed.
    pub(in crate::institution) seed: u64,
    /// The first round that trains.
    pub(in crate::institution) first: u64,
    /// The last round.
    pub(in crate::institution) last: u64,
    /// The last round that learns, where no other was between.
    pub(in crate::institution) learning: u64,
    /// Parts that its rows are divided into; 0 for no comparison.
    pub(in crate::institution) folds: usize,
    /// The rounds in which the members decide together; `None` where each decides alone.
    pub(in crate::institution) together: Option<TogetherRounds>,
    /// True if the model of its coalition, adapted to its own rows, is a candidate.
    pub(in crate::institution) adapted: bool,
    /// The state folder, for the note.
    pub(in crate::institution) state: PathBuf,
    /// Time at which the node began, for times.
    pub(in crate::institution) began: Instant,
}

/// The decision that members agreed to make together: the sums of all, or why there are none.
pub(super) type AgreedDecision = Result<Together, NotTogether>;

/// Work after a round.
pub(super) enum ServingStage {
    /// Nothing: rounds follow that learn.
    Learning,
    /// The models are compared, because the members wait for that.
    Deciding,
    /// One of them is chosen, by the decision of the members where they made one together.
    Over(Option<AgreedDecision>),
}

/// A round as the silo adopted it.
pub(super) struct AdoptedRound {
    pub(super) round: u64,
    pub(super) models: Vec<Params>,
    pub(super) assignment: Vec<u32>,
    pub(super) coalition: u32,
    pub(super) model: Params,
    pub(super) personal: Params,
}

impl ComparisonJob {
    /// Seconds since the node began.
    pub(super) fn at(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Returns what is to be done after this round, after which the strategy keeps this memory.
    pub(super) fn after(&self, round: u64, memory: &Memory) -> ServingStage {
        // Whether it ends follows from what is kept, and not from the models.
        let state = State {
            models: Vec::new(),
            memory: memory.clone(),
            tables: Default::default(),
        };
        if round == self.last || self.strategy.ends(&state) {
            let question = QuestionState::of(memory, LAST_QUESTION);
            let decided = |rounds: TogetherRounds| rounds.decided(&question);
            return ServingStage::Over(self.together.map(decided));
        }
        match self.together {
            Some(_) if self.strategy.has_learned(&state) => ServingStage::Deciding,
            Some(_) | None => ServingStage::Learning,
        }
    }

    /// The rows on which models can be compared: without any, training alone would be in vain.
    pub(super) fn comparable(&self, adopted: &AdoptedRound) -> ComparedOn {
        let Equipment {
            plain, equipped, ..
        } = &self.equipment;
        let coalition = (adopted.model.clone(), adopted.personal.clone());
        match self.folds {
            0 => ComparedOn::Nothing,
            folds => comparable(
                &*plain.learner,
                &**equipped,
                &coalition,
                (&self.task, folds),
                self.seed,
            ),
        }
    }

    /// Compares the models that the silo could serve, on these rows. Where that is not possible, there is only its
    /// coalition's model to serve.
    pub(super) fn compare(&self, adopted: &AdoptedRound, on: ComparedOn) -> OwnComparison {
        let Equipment {
            plain, equipped, ..
        } = &self.equipment;
        let plain = &*plain.learner;
        let coalition = (adopted.model.clone(), adopted.personal.clone());
        let alone = Alone {
            start: alone_start(plain, self.initial_seed, &adopted.model),
            initial: self.initial_seed,
            task: self.task.clone(),
            seed: self.seed,
            rounds: self.first..=self.learning,
        };
        let tune = || {
            let effort = Effort::within(Effort::work(plain, &alone));
            LocalModels::tune(plain, &alone, self.folds, effort).ok()
        };
        let local = (on != ComparedOn::Nothing).then(tune).flatten();
        let global = mean_of_coalitions(&adopted.models, &adopted.assignment);
        let models = match &local {
            Some(local) => CandidateComparison {
                plain,
                equipped: &**equipped,
                alone: &alone,
                local,
                coalition: &coalition,
                members: members_of(&adopted.assignment, adopted.coalition),
                global: global.as_ref().zip(Some(adopted.assignment.len())),
                folds: self.folds,
                adapted: self.adapted,
            }
            .compare(),
            None => {
                let of = (&coalition.0, &coalition.1);
                let personal = match is_never_trained(&**equipped, of, self.initial_seed) {
                    true => PersonalParts::NeverTrained,
                    false => PersonalParts::Trained,
                };
                ComparedModels::none(coalition, personal)
            }
        };
        let tuned = local.and_then(|local| local.tuned);
        OwnComparison { models, tuned }
    }

    /// The metrics of the model that is served, on the held-out rows.
    pub(super) fn held_out(&self, served: &Served) -> Option<HeldOut> {
        let Equipment {
            plain, equipped, ..
        } = &self.equipment;
        let learner = match served.candidate.is_own() {
            true => &plain.learner,
            false => equipped,
        };
        let (model, personal) = &served.model;
        self.equipment.metrics(&**learner, model, personal)
    }
}
