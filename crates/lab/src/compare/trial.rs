//! One federation, trained, and its models of every round measured.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agreement::silo_seed;
use learn::{Study, StudySilo};
use methods::learner::{Split, Task};
use methods::serving::{
    Adaptation, Alone, CandidateComparison, ComparedModels, LocalModels, alone_start,
    mean_of_coalitions, members_of, model_of_all_rows,
};
use methods::strategy::{Kept, State};
use methods::{Learner, Params};
use protocol::MemberIndex;

use super::measured_model::{MeasuredModel, MetricValues};
use crate::keep::{self, KeepError};
use crate::participation::{ParticipatingSilos, participation};
use crate::summary::{
    AdoptedModel, Constant, NoiseBound, OwnModel, TrainingTargets, adopted_models,
    constant_measured, constants, given_model, mean_target, measured, why_unusable,
};
use simulations::Federation;
use simulations::Options;
use simulations::RunError;
use simulations::pool::Threads;
use simulations::position;
use simulations::scenario::{Fault, Scenario};
use simulations::{RunRecord, Surrounding, federate};

/// Models of a trial, round by round.
enum TrialModels {
    /// By a federation.
    Federated(Box<Federated>),
    /// On the rows of all members, by one learner: the model after every round, from the first; one
    /// where it is fitted exactly.
    Pooled(Vec<Params>),
    /// No models: every row is given the mean target of the members' training rows. The model is the one
    /// of another training that holds the scale.
    Constant(Vec<f64>, Params),
    /// The model that every silo, members first, has made alone; `None` where it cannot.
    Own(Vec<Option<OwnModel>>),
}

struct Federated {
    federation: Federation,
    record: RunRecord,
    adopted: Vec<AdoptedModel>,
    /// Bytes that all members had sent when a round was final, and seconds that it took here until then.
    reached: Vec<(u64, Option<u64>, f64)>,
}

/// A trained federation.
pub(super) struct TrainedFederation {
    scenario: Scenario,
    study: Arc<Study>,
    participation: ParticipatingSilos,
    models: TrialModels,
    /// Adaptation by every silo of its model to its own rows afterwards.
    adapted: Option<Adaptation>,
    /// Wall-clock seconds of the training.
    pub(super) seconds: f64,
}

/// Kind of training of a strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LearningWay {
    /// By a federation.
    Federated,
    /// On the rows of all members.
    Pooled,
    /// Not at all.
    Constant,
}

impl TrainedFederation {
    /// Trains, and holds on to the contributions of a federation's rounds where they are to be kept.
    ///
    /// # Errors
    /// [`RunError`]: the federation does not finish, or its training fails.
    pub(super) fn run(
        scenario: &Scenario,
        study: &Arc<Study>,
        way: LearningWay,
        keep: bool,
    ) -> Result<Self, RunError> {
        let participation = participation(scenario, study)?;
        let began = Instant::now();
        let models = match way {
            LearningWay::Federated => {
                let federated = Federated::run(scenario, &participation, keep)?;
                TrialModels::Federated(Box::new(federated))
            }
            LearningWay::Pooled => pooled(scenario, study, &participation)?,
            LearningWay::Constant => constant(scenario, &participation)?,
        };
        Ok(Self {
            scenario: scenario.clone(),
            study: study.clone(),
            participation,
            models,
            adapted: None,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// The same federation, each of whose silos adapts its model to its own training rows afterwards.
    pub(super) fn adapted(self, adapted: Option<Adaptation>) -> Self {
        Self { adapted, ..self }
    }

    /// The models that every silo, members first, has made alone since `began`.
    ///
    /// # Errors
    /// [`RunError`]: no silo takes part.
    pub(super) fn own(
        scenario: &Scenario,
        study: &Arc<Study>,
        models: Vec<Option<OwnModel>>,
        began: Instant,
    ) -> Result<Self, RunError> {
        Ok(Self {
            scenario: scenario.clone(),
            study: study.clone(),
            participation: participation(scenario, study)?,
            models: TrialModels::Own(models),
            adapted: None,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// Writes what a federation learned in every round into a folder, which is made.
    ///
    /// # Errors
    /// [`KeepError`]: a file cannot be written.
    pub(super) fn keep(&self, folder: &Path) -> Result<(), KeepError> {
        let TrialModels::Federated(federated) = &self.models else {
            return Ok(());
        };
        let silos = &self.participation.study.silos;
        keep::write(
            folder,
            &self.scenario,
            silos,
            &federated.federation,
            &federated.record,
        )
    }

    /// Returns what the noise of all rounds bounds; `None` without noise.
    pub(super) fn noise(&self) -> Option<NoiseBound> {
        let TrialModels::Federated(federated) = &self.models else {
            return None;
        };
        NoiseBound::of(&federated.federation.epoch.protocol)
    }

    /// The members, then the unseen silos.
    fn silos(&self) -> impl Iterator<Item = &StudySilo> {
        let (members, others) = (&self.participation.members, &self.participation.others);
        let places = members.iter().chain(others);
        places.map(|&at| &self.study.silos[at])
    }

    /// Names of the members, then of the unseen silos.
    pub(super) fn names(&self) -> Vec<String> {
        self.silos().map(|silo| silo.name.clone()).collect()
    }

    /// Returns whether a silo has rows to choose settings and rounds by.
    pub(super) fn has_validation_rows(&self) -> bool {
        self.silos().any(|silo| silo.rows.validation > 0)
    }

    /// For every member whether it is honest: no scripted fault makes it misbehave. Results are those
    /// of honest members.
    pub(super) fn honest(&self) -> Vec<bool> {
        let members = &self.participation.study.silos;
        let names: Vec<_> = members.iter().map(|silo| silo.name.as_str()).collect();
        let mut honest = vec![true; members.len()];
        for fault in &self.scenario.faults {
            if let Fault::Byzantine { member, .. } = fault
                && let Ok(at) = position(&names, member)
            {
                honest[at] = false;
            }
        }
        honest
    }

    /// Number of members.
    pub(super) fn members(&self) -> usize {
        self.participation.members.len()
    }

    /// The rounds after which there are trained models.
    pub(super) fn rounds(&self) -> Vec<u64> {
        let first = self.scenario.strategy.first_training();
        match &self.models {
            TrialModels::Federated(federated) => {
                let mut rounds: Vec<u64> = federated
                    .adopted
                    .iter()
                    .map(|adopted| adopted.round)
                    .collect();
                rounds.sort_unstable();
                rounds.dedup();
                rounds.retain(|&round| round >= first);
                rounds
            }
            TrialModels::Pooled(models) => (first..first + models.len() as u64).collect(),
            TrialModels::Constant(..) | TrialModels::Own(_) => vec![first],
        }
    }

    /// True where the federation ended by itself: what it learned is what it ended with, whatever the rounds before
    /// were like.
    pub(super) fn ended(&self) -> bool {
        let TrialModels::Federated(federated) = &self.models else {
            return false;
        };
        let strategy = &federated.federation.members[0].strategy;
        let last = self.rounds().pop().and_then(|last| self.state(last));
        last.is_some_and(|state| strategy.ends(state))
    }

    /// Bytes that all members sent up to the end of a round.
    pub(super) fn bytes(&self, round: u64) -> u64 {
        let TrialModels::Federated(federated) = &self.models else {
            return 0;
        };
        let until = federated.reached.iter().filter(|(of, ..)| *of <= round);
        until.filter_map(|(_, bytes, _)| *bytes).max().unwrap_or(0)
    }

    /// Wall-clock seconds up to the end of a round, where there were rounds.
    pub(super) fn seconds_until(&self, round: u64) -> Option<f64> {
        let TrialModels::Federated(federated) = &self.models else {
            return None;
        };
        let mut until = federated.reached.iter().rev();
        let found = until.find(|(of, ..)| *of <= round);
        found.map(|(_, _, seconds)| *seconds)
    }

    /// Number of trained parameters of a model.
    pub(super) fn parameters(&self) -> u64 {
        let learner: &dyn Learner = match &self.models {
            TrialModels::Federated(federated) => &*federated.federation.members[0].learner,
            TrialModels::Constant(..) => return 0,
            TrialModels::Pooled(_) | TrialModels::Own(_) => &*self.study.silos[0].learner,
        };
        learner.layout().trained().len() as u64
    }

    /// Coalition of every member after a round, where it adopted it.
    pub(super) fn coalitions(&self, round: u64) -> Vec<Option<u32>> {
        let TrialModels::Federated(federated) = &self.models else {
            return vec![Some(0); self.members()];
        };
        (0..self.members())
            .map(|member| Some(federated.adopted_by(member, round)?.coalition))
            .collect()
    }

    /// The state after a round, where there is a federation.
    fn state(&self, round: u64) -> Option<&State> {
        let TrialModels::Federated(federated) = &self.models else {
            return None;
        };
        Some(&federated.adopted_by(0, round)?.state)
    }

    /// The numbers that the strategy kept after a round, by name.
    pub(super) fn memory(&self, round: u64) -> MetricValues {
        let kept = self
            .state(round)
            .into_iter()
            .flat_map(keep::strategy_memory);
        kept.filter_map(|(name, kept)| Some((name, kept.as_f64()?)))
            .collect()
    }

    /// The graph of members that the strategy kept after a round, where it keeps one.
    pub(super) fn graph(&self, round: u64) -> Option<Vec<[u32; 2]>> {
        let mut kept = self.state(round)?.memory.iter();
        kept.find_map(|(_, kept)| match kept {
            Kept::Graph(graph) if graph.nodes as usize == self.members() => {
                Some(graph.edges.clone())
            }
            _ => None,
        })
    }

    /// The model of silo `place` (members first) after a round, with the learner that takes it. A
    /// silo outside is given one. One without training rows adapts nothing, and neither does one that cannot.
    fn model(&self, place: usize, round: u64) -> Option<(Arc<dyn Learner>, OwnModel)> {
        let (learner, model) = self.trained(place, round)?;
        let Some(how) = self.adapted.filter(|_| learner.samples() > 0) else {
            return Some((learner, model));
        };
        let model = how.adapt(&*learner, &model).ok()?;
        Some((learner, model))
    }

    /// The model of silo `place` after a round, as the training made it.
    fn trained(&self, place: usize, round: u64) -> Option<(Arc<dyn Learner>, OwnModel)> {
        let plain = self.silos().nth(place)?.learner.clone();
        let of_plain = |model: &Params| {
            let personal = plain.initial_personal(self.scenario.seed);
            Some((plain.clone(), (model.clone(), personal)))
        };
        let federated = match &self.models {
            TrialModels::Federated(federated) => federated,
            TrialModels::Pooled(models) => {
                let nth = round.checked_sub(self.scenario.strategy.first_training())?;
                return of_plain(models.get(nth as usize)?);
            }
            TrialModels::Constant(_, model) => return of_plain(model),
            TrialModels::Own(models) => return Some((plain, models.get(place)?.clone()?)),
        };
        if place < self.members() {
            let adopted = federated.adopted_by(place, round)?;
            let learner = federated.federation.members[place].learner.clone();
            return Some((learner, adopted.model.clone()));
        }
        let strategy = &federated.federation.members[0].strategy;
        let equipped = strategy.equip(plain).ok()?;
        let alone = alone(&self.scenario, Params::empty(), place, round);
        let radius = &self.scenario.protocol.radius;
        let state = self.state(round)?;
        let own = given_model(&**strategy, &*equipped, state, radius, &alone).ok()?;
        Some((equipped, own))
    }

    /// Number of rows and metrics of silo `place` after a round. The loss is not a number where the model
    /// cannot be measured; `None` where there is no model or no row.
    pub(super) fn evaluate(
        &self,
        place: usize,
        round: u64,
        split: Split,
    ) -> Option<(u64, MetricValues)> {
        if self.silos().nth(place)?.rows.of(split) == 0 {
            return None;
        }
        let (learner, (model, personal)) = self.model(place, round)?;
        let metrics = learner.evaluate(&model, &personal, split);
        Some(metrics.map_or_else(
            |_| (1, [("loss".to_owned(), f64::NAN)].into()),
            |metrics| (metrics.samples, metrics.values),
        ))
    }

    /// The model of silo `place` after a round, measured row by row on test rows; `None` where there is no
    /// model or no row.
    pub(super) fn measured(&self, place: usize, round: u64) -> Option<MeasuredModel> {
        if self.silos().nth(place)?.rows.test == 0 {
            return None;
        }
        let (learner, model) = self.model(place, round)?;
        let mut one = MeasuredModel::of(learner, model);
        if let (TrialModels::Constant(mean, _), Ok(own)) = (&self.models, &one.results) {
            // A silo outside need not have training rows.
            let rows = own.rows.as_ref().map_or(0, |rows| rows.len());
            let constant = constant_measured(&one.learner, &one.model, rows, mean);
            one.results = constant.ok_or_else(|| "its outputs have no constant".into());
        }
        Some(one)
    }

    /// Returns what silo `place` could serve, compared: the strategy's model, after this round, and those that it makes
    /// alone. `None` where there is no federation.
    pub(super) fn compare(
        &self,
        place: usize,
        round: u64,
        strategys: &MeasuredModel,
        local: &LocalModels,
    ) -> Option<ComparedModels> {
        let TrialModels::Federated(federated) = &self.models else {
            return None;
        };
        let plain = &self.silos().nth(place)?.learner;
        let last = federated.adopted_by(0, round)?;
        let (models, entries) = (&last.state.models, &last.assignment);
        let global = mean_of_coalitions(models, entries);
        let members = if place < self.members() {
            members_of(entries, federated.adopted_by(place, round)?.coalition)
        } else {
            // Its rows were in no training of the model that it is given.
            usize::MAX
        };
        let comparison = CandidateComparison {
            plain: &**plain,
            equipped: &*strategys.learner,
            alone: &alone(&self.scenario, Params::empty(), place, round),
            local,
            coalition: &strategys.model,
            members,
            global: global.as_ref().zip(Some(entries.len())),
            folds: self.scenario.serve.folds,
            adapted: self.scenario.is_noised(),
        };
        Some(comparison.compare())
    }

    /// Names of the subgroups of rows.
    pub(super) fn subgroups(&self) -> &[String] {
        &self.study.subgroups
    }

    /// Returns the reasons for which these models of the members are of no use, as clauses: they give no finite
    /// numbers, or are far worse than a constant prediction.
    pub(super) fn unusable(&self, members: &[Option<MeasuredModel>]) -> Vec<(usize, String)> {
        let targets = |one: &Option<MeasuredModel>| {
            let one = one.as_ref()?;
            TrainingTargets::of(&one.learner, &one.model, one.results.as_ref().ok()?)
        };
        let targets: Vec<Option<TrainingTargets>> = members.iter().map(targets).collect();
        let targets: Vec<_> = targets.iter().map(Option::as_ref).collect();
        let constants = constants(&targets, targets.len());
        let over_all = Constant::over_all(&constants);
        let metric = self.study.metric.name;
        let why = |(place, one): (usize, &Option<MeasuredModel>)| {
            let baseline = |key: &str| constants[place].as_ref()?.lenient(&over_all, key);
            let why = match &one.as_ref()?.results {
                Ok(results) => why_unusable(&results.metrics, metric, baseline)?,
                Err(error) => error.clone(),
            };
            Some((place, why))
        };
        members.iter().enumerate().filter_map(why).collect()
    }

    /// The first training that failed, in a sentence without a full stop.
    pub(super) fn failure(&self) -> Option<String> {
        let TrialModels::Federated(federated) = &self.models else {
            return None;
        };
        let mut failures = federated.failures();
        let (round, reason) = failures.next()?;
        let more = failures.count();
        Some(match more {
            0 => format!("training failed in round {round}: {reason}"),
            more => format!("training failed in round {round} and {more} times more: {reason}"),
        })
    }
}

impl Federated {
    fn run(
        scenario: &Scenario,
        participation: &ParticipatingSilos,
        keep: bool,
    ) -> Result<Self, RunError> {
        let (study, faults) = (&participation.study, &scenario.faults);
        let federation = Federation::new(scenario, study, &scenario.strategy, faults)?;
        let (mut reached, began) = (Vec::new(), Instant::now());
        let mut options = Options {
            cache: true,
            threads: 1,
            references: false,
            keep_contributions: keep,
            surrounding: Surrounding::of(scenario),
            progress: Box::new(|done| {
                reached.push((done.round, done.bytes, began.elapsed().as_secs_f64()));
            }),
            ..Options::default()
        };
        let threads = Threads::new(1);
        let record = federate(scenario, &federation, faults, &mut options, &threads)?;
        drop(options);
        let adopted = adopted_models(&record.notices);
        Ok(Self {
            federation,
            record,
            adopted,
            reached,
        })
    }

    /// Returns what a member had adopted at the end of a round.
    fn adopted_by(&self, member: usize, round: u64) -> Option<&AdoptedModel> {
        let own = self
            .adopted
            .iter()
            .filter(|one| one.silo == member && one.round <= round);
        own.max_by_key(|one| one.round)
    }

    /// Trainings that failed: the round and the reason.
    fn failures(&self) -> impl Iterator<Item = (u64, &str)> {
        self.record
            .notices
            .iter()
            .filter_map(|(_, _, notice)| match notice {
                silo::Notice::Protocol(protocol::Report::TrainingFailed { round, reason }) => {
                    Some((*round, reason.as_str()))
                }
                _ => None,
            })
    }
}

/// Returns how silo `place` trains without a federation, as the federation trains, up to a round.
pub(super) fn alone(scenario: &Scenario, start: Params, place: usize, round: u64) -> Alone {
    Alone {
        start,
        initial: scenario.seed,
        task: Task::Train(scenario.strategy.training.clone()),
        seed: silo_seed(scenario.seed, MemberIndex(place as u16)),
        rounds: scenario.strategy.first_training()..=round,
    }
}

/// A model from which all rows can be trained, on the common scale where there is one.
pub(super) fn start(
    scenario: &Scenario,
    participation: &ParticipatingSilos,
) -> Result<Params, RunError> {
    let plain = &*participation.study.silos[0].learner;
    if !scenario.strategy.standardise {
        return Ok(plain.initial(scenario.seed));
    }
    // The scale is agreed in the first round of a federation; one more is needed for a model on it.
    let mut short = scenario.clone();
    short.rounds = 2;
    short.faults.clear();
    let federated = Federated::run(&short, participation, false)?;
    let adopted = federated.adopted.iter().max_by_key(|adopted| adopted.round);
    let adopted = adopted.ok_or_else(|| RunError::Setup("no model was adopted".into()))?;
    Ok(alone_start(plain, scenario.seed, &adopted.model.0))
}

/// One model of the rows of all members: fitted exactly where it is linear, otherwise trained for as many
/// rounds as the federation.
fn pooled(
    scenario: &Scenario,
    study: &Study,
    participation: &ParticipatingSilos,
) -> Result<TrialModels, RunError> {
    let pool = study
        .pooled
        .as_ref()
        .ok_or_else(|| RunError::Setup("the rows of these silos cannot be pooled".into()))?;
    let alone = Alone {
        seed: scenario.seed,
        ..alone(
            scenario,
            start(scenario, participation)?,
            0,
            scenario.rounds,
        )
    };
    let mut models = Vec::new();
    let learner = pool(&participation.members);
    let trained = model_of_all_rows(&*learner, &alone, |model| models.push(model.clone()));
    let failed = |error| format!("training on the rows of all members: {error}");
    trained.map_err(|error| RunError::Setup(failed(error)))?;
    Ok(TrialModels::Pooled(models))
}

/// The mean target of all members' training rows.
fn constant(
    scenario: &Scenario,
    participation: &ParticipatingSilos,
) -> Result<TrialModels, RunError> {
    let model = start(scenario, participation)?;
    let targets = participation.study.silos.iter().map(|silo| {
        let own = (model.clone(), silo.learner.initial_personal(scenario.seed));
        let measured = measured(&silo.learner, &own).unwrap_or_default();
        TrainingTargets::of(&silo.learner, &own, &measured)
    });
    let targets: Option<Vec<TrainingTargets>> = targets.collect();
    let mean = targets.and_then(|targets| mean_target(targets.iter()));
    let mean =
        mean.ok_or_else(|| RunError::Setup("the targets of these silos have no mean".into()));
    Ok(TrialModels::Constant(mean?, model))
}
