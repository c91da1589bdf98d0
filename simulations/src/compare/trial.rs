//! One federation, trained, and its models of every round measured.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use learn::Study;
use methods::learner::{Split, Task};
use methods::serving::{Alone, alone_start};
use methods::strategy::{Kept, Newcomer, OwnRadius};
use methods::{Learner, Params, State};
use protocol::MemberIndex;
use serde::{Deserialize, Serialize};

use super::rows::StoredRows;
use crate::error::RunError;
use crate::federate::{RunRecord, federate};
use crate::federation::Federation;
use crate::options::Options;
use crate::participation::{Participation, participation, position};
use crate::pool::Threads;
use crate::scenario::{Fault, Scenario};
use crate::summary::{AdoptedModel, Constant, OwnModel, adopted_models, why_unusable};

/// Metrics by name.
pub(super) type Values = BTreeMap<String, f64>;

/// What is measured of one model at one silo.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Number of rows measured on.
    pub(super) samples: u64,
    /// Metrics by name.
    pub(super) values: Values,
}

/// How models are trained and kept, round by round.
enum Models {
    /// By a federation.
    Federated(Box<Federated>),
    /// On the rows of all members, by one learner: the model after every round, from 1.
    Pooled(Vec<Params>),
    /// No models: every row is given this mean target. The model is the one of another training
    /// that holds the scale.
    Constant(Vec<f64>, Params),
}

struct Federated {
    federation: Federation,
    record: RunRecord,
    adopted: Vec<AdoptedModel>,
    /// Bytes that all members had sent when a round was final.
    bytes: Vec<(u64, u64)>,
}

/// A trained federation.
pub(super) struct Trial {
    scenario: Scenario,
    study: Arc<Study>,
    participation: Participation,
    models: Models,
    /// Wall-clock seconds of the training.
    pub(super) seconds: f64,
}

/// How a way of learning is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// By a federation.
    Federated,
    /// On the rows of all members.
    Pooled,
    /// Not at all.
    Constant,
}

impl Trial {
    /// Trains.
    ///
    /// # Errors
    /// [`RunError`]: the federation does not finish, or its training fails.
    pub(super) fn run(scenario: &Scenario, study: &Arc<Study>, way: Way) -> Result<Self, RunError> {
        let participation = participation(scenario, study)?;
        let began = Instant::now();
        let models = match way {
            Way::Federated => {
                let federated = Federated::run(scenario, &participation, &scenario.faults)?;
                Models::Federated(Box::new(federated))
            }
            Way::Pooled => pooled(scenario, study, &participation)?,
            Way::Constant => constant(scenario, &participation)?,
        };
        Ok(Self {
            scenario: scenario.clone(),
            study: study.clone(),
            participation,
            models,
            seconds: began.elapsed().as_secs_f64(),
        })
    }

    /// Names of the members, then of the silos outside.
    pub(super) fn names(&self) -> Vec<String> {
        let places = self
            .participation
            .members
            .iter()
            .chain(&self.participation.others);
        places
            .map(|&at| self.study.silos[at].name.clone())
            .collect()
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
        let first = 1 + u64::from(self.scenario.strategy.standardise);
        match &self.models {
            Models::Federated(federated) => {
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
            Models::Pooled(models) => (first..first + models.len() as u64).collect(),
            Models::Constant(..) => vec![first],
        }
    }

    /// Bytes that all members sent up to the end of a round.
    pub(super) fn bytes(&self, round: u64) -> u64 {
        let Models::Federated(federated) = &self.models else {
            return 0;
        };
        let until = federated.bytes.iter().filter(|(of, _)| *of <= round);
        until.map(|(_, bytes)| *bytes).max().unwrap_or(0)
    }

    /// Number of trained parameters of a model.
    pub(super) fn parameters(&self) -> u64 {
        let learner: &dyn Learner = match &self.models {
            Models::Federated(federated) => &*federated.federation.members[0].learner,
            Models::Constant(..) => return 0,
            Models::Pooled(_) => &*self.study.silos[0].learner,
        };
        learner.layout().trained().len() as u64
    }

    /// Coalition of every member after a round, where it adopted it.
    pub(super) fn coalitions(&self, round: u64) -> Vec<Option<u32>> {
        let Models::Federated(federated) = &self.models else {
            return vec![Some(0); self.members()];
        };
        (0..self.members())
            .map(|member| Some(federated.adopted_by(member, round)?.coalition))
            .collect()
    }

    /// The numbers that the strategy kept after a round, by name.
    pub(super) fn memory(&self, round: u64) -> Values {
        let Models::Federated(federated) = &self.models else {
            return Values::new();
        };
        let Some(adopted) = federated.adopted_by(0, round) else {
            return Values::new();
        };
        let numbers = adopted.state.memory.iter();
        numbers
            .filter_map(|(name, kept)| Some((name.to_owned(), kept.json().as_f64()?)))
            .collect()
    }

    /// The graph of members that the strategy kept after a round, where it keeps one.
    pub(super) fn graph(&self, round: u64) -> Option<Vec<[u32; 2]>> {
        let Models::Federated(federated) = &self.models else {
            return None;
        };
        let adopted = federated.adopted_by(0, round)?;
        adopted
            .state
            .memory
            .iter()
            .find_map(|(_, kept)| match kept {
                Kept::Graph(graph) if graph.nodes as usize == self.members() => {
                    Some(graph.edges.clone())
                }
                _ => None,
            })
    }

    /// The model of silo `place` (members first) after a round, with the learner that takes it. A
    /// silo outside is given one.
    fn model(&self, place: usize, round: u64) -> Option<(Arc<dyn Learner>, OwnModel)> {
        let federated = match &self.models {
            Models::Federated(federated) => federated,
            Models::Pooled(models) => {
                let first = 1 + u64::from(self.scenario.strategy.standardise);
                let model = models.get((round - first) as usize)?.clone();
                return Some(self.plain(place, model));
            }
            Models::Constant(_, model) => return Some(self.plain(place, model.clone())),
        };
        if place < self.members() {
            let adopted = federated.adopted_by(place, round)?;
            let learner = federated.federation.members[place].learner.clone();
            return Some((learner, adopted.model.clone()));
        }
        let last = federated.adopted_by(0, round)?;
        self.given(federated, place, round, &last.state)
    }

    /// A model of the plain learner.
    fn plain(&self, place: usize, model: Params) -> (Arc<dyn Learner>, OwnModel) {
        let learner = self.learner(place);
        let personal = learner.initial_personal(self.scenario.seed);
        (learner, (model, personal))
    }

    fn learner(&self, place: usize) -> Arc<dyn Learner> {
        let places = self
            .participation
            .members
            .iter()
            .chain(&self.participation.others);
        let at = places.copied().nth(place).unwrap_or_default();
        self.study.silos[at].learner.clone()
    }

    /// What a silo outside is given of a state, with its personal parameters trained around it.
    fn given(
        &self,
        federated: &Federated,
        place: usize,
        round: u64,
        state: &State,
    ) -> Option<(Arc<dyn Learner>, OwnModel)> {
        let strategy = &federated.federation.members[0].strategy;
        let equipped = strategy.equip(self.learner(place)).ok()?;
        let seed = agreement::silo_seed(self.scenario.seed, MemberIndex(place as u16));
        let personal = equipped.initial_personal(self.scenario.seed);
        let radius = OwnRadius::from(self.scenario.charter.radius.clone());
        let newcomer = Newcomer {
            learner: &*equipped,
            personal: &personal,
            radius: &radius,
            seed: equipped.seed(seed, round + 1),
        };
        let model = strategy.unseen(state, round + 1, newcomer).ok()?;
        let first = 1 + u64::from(self.scenario.strategy.standardise);
        let alone = Alone {
            start: model.clone(),
            initial: self.scenario.seed,
            task: Task::Train(self.scenario.strategy.training.clone()),
            seed,
            rounds: first..=round,
        };
        let own = alone.around(&*equipped, &model).ok()?;
        Some((equipped, own))
    }

    /// Metrics of silo `place` after a round. Not a number where the model cannot be measured;
    /// `None` where there is no model or no row.
    pub(super) fn measure(&self, place: usize, round: u64, split: Split) -> Option<Measured> {
        let places = self
            .participation
            .members
            .iter()
            .chain(&self.participation.others);
        let at = places.copied().nth(place)?;
        if self.study.silos[at].rows.of(split) == 0 {
            return None;
        }
        if let Models::Constant(mean, _) = &self.models {
            let (learner, (model, personal)) = self.model(place, round)?;
            let outputs = learner.outputs().ok()?;
            let rows = self.study.silos[at].rows.of(split);
            let values = outputs.constant(mean).repeat(rows);
            let metrics = outputs.measure(&model, &personal, &values, split).ok()?;
            return Some(Measured {
                samples: metrics.samples,
                values: metrics.values,
            });
        }
        let (learner, (model, personal)) = self.model(place, round)?;
        let metrics = learner.evaluate(&model, &personal, split);
        Some(metrics.map_or_else(
            |_| Measured {
                samples: 1,
                values: [("loss".to_owned(), f64::NAN)].into(),
            },
            |metrics| Measured {
                samples: metrics.samples,
                values: metrics.values,
            },
        ))
    }

    /// Why the models of the first members are of no use after a round, as clauses: they give no finite
    /// numbers, or are far worse than a constant prediction. `values` holds the metrics of all
    /// members on test rows.
    pub(super) fn unusable(&self, round: u64, values: &[Values]) -> Vec<(usize, String)> {
        let constants = self.constants(round);
        let why = |place: usize| {
            let own = constants.get(place).and_then(Option::as_ref);
            let baseline = |key: &str| own?.lenient(&constants, key);
            why_unusable(&values[place], self.study.metric.name, baseline)
        };
        (0..values.len())
            .filter_map(|place| Some((place, why(place)?)))
            .collect()
    }

    /// What the mean target of all members' training rows gives as a constant prediction on the test
    /// rows of every member.
    fn constants(&self, round: u64) -> Vec<Option<Constant>> {
        let models: Vec<_> = (0..self.members())
            .map(|place| self.model(place, round))
            .collect();
        let (mut sum, mut weights) = (Vec::<f64>::new(), 0.0);
        for (learner, (model, personal)) in models.iter().flatten() {
            let mean = || {
                let outputs = learner.outputs().ok()?;
                let values = outputs.outputs(model, personal, Split::Test).ok()?;
                let rows = outputs
                    .row_results(model, personal, &values, Split::Test)
                    .ok()?;
                outputs.mean_target(model, personal, values.len() / rows.len().max(1))
            };
            let Some(mean) = mean() else { continue };
            let weight = learner.samples() as f64;
            sum.resize(mean.len(), 0.0);
            sum.iter_mut()
                .zip(&mean)
                .for_each(|(sum, mean)| *sum += weight * mean);
            weights += weight;
        }
        sum.iter_mut().for_each(|sum| *sum /= weights);
        let constant = |place: usize| {
            let (learner, (model, personal)) = models[place].as_ref()?;
            let outputs = learner.outputs().ok()?;
            let rows = self.study.silos[self.participation.members[place]]
                .rows
                .test;
            let values = outputs.constant(&sum).repeat(rows);
            let metrics = outputs
                .measure(model, personal, &values, Split::Test)
                .ok()?;
            Some(Constant {
                metrics: metrics.values,
                rows: rows as f64,
            })
        };
        match sum.is_empty() {
            true => vec![None; self.members()],
            false => (0..self.members()).map(constant).collect(),
        }
    }

    /// What the model of silo `place` gives row by row on its test rows after a round.
    pub(super) fn rows(&self, place: usize, round: u64) -> Option<StoredRows> {
        let (learner, (model, personal)) = self.model(place, round)?;
        let outputs = learner.outputs().ok()?;
        let values = match &self.models {
            Models::Constant(mean, _) => {
                let places = self
                    .participation
                    .members
                    .iter()
                    .chain(&self.participation.others);
                let at = places.copied().nth(place)?;
                outputs
                    .constant(mean)
                    .repeat(self.study.silos[at].rows.test)
            }
            _ => outputs.outputs(&model, &personal, Split::Test).ok()?,
        };
        let results = outputs
            .row_results(&model, &personal, &values, Split::Test)
            .ok()?;
        Some(StoredRows::of(&results))
    }
}

impl Federated {
    fn run(
        scenario: &Scenario,
        participation: &Participation,
        faults: &[Fault],
    ) -> Result<Self, RunError> {
        let study = &participation.study;
        let federation = Federation::new(scenario, study, &scenario.strategy, faults)?;
        let mut bytes = Vec::new();
        let mut options = Options {
            memo: true,
            threads: 1,
            references: false,
            progress: Box::new(|done| bytes.push((done.round, done.bytes))),
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
            bytes,
        })
    }

    /// What a member had adopted at the end of a round.
    fn adopted_by(&self, member: usize, round: u64) -> Option<&AdoptedModel> {
        let own = self
            .adopted
            .iter()
            .filter(|one| one.silo == member && one.round <= round);
        own.max_by_key(|one| one.round)
    }

    /// Trainings that failed, with the silo's position and the reason.
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

impl Trial {
    /// The first training that failed, in a sentence without a full stop.
    pub(super) fn failure(&self) -> Option<String> {
        let Models::Federated(federated) = &self.models else {
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

/// A model from which all rows can be trained, on the common scale where there is one.
fn start(scenario: &Scenario, participation: &Participation) -> Result<Params, RunError> {
    let plain = &*participation.study.silos[0].learner;
    if !scenario.strategy.standardise {
        return Ok(plain.initial(scenario.seed));
    }
    // The scale is agreed in the first round of a federation; one more is needed for a model on it.
    let mut short = scenario.clone();
    short.rounds = 2;
    let federated = Federated::run(&short, participation, &[])?;
    let adopted = federated.adopted.iter().max_by_key(|adopted| adopted.round);
    let adopted = adopted.ok_or_else(|| RunError::Setup("no model was adopted".into()))?;
    Ok(alone_start(plain, scenario.seed, &adopted.model.0))
}

/// Trains one model on the rows of all members, for as many rounds as the federation.
fn pooled(
    scenario: &Scenario,
    study: &Study,
    participation: &Participation,
) -> Result<Models, RunError> {
    let pool = study
        .pooled
        .as_ref()
        .ok_or_else(|| RunError::Setup("the rows of these silos cannot be pooled".into()))?;
    let learner = pool(&participation.members);
    let mut model = start(scenario, participation)?;
    let mut personal = learner.initial_personal(scenario.seed);
    let mut models = Vec::new();
    let first = 1 + u64::from(scenario.strategy.standardise);
    for round in first..=scenario.rounds {
        let task = Task::Train(scenario.strategy.training.at(round + 1 - first));
        let mut go_on = |_| ControlFlow::Continue(());
        let seed = learner.seed(scenario.seed, round);
        let update = learner
            .carry_out(&model, &personal, &task, seed, &mut go_on)
            .map_err(|error| {
                RunError::Setup(format!("training on the rows of all members: {error}"))
            })?;
        (model, personal) = (update.shared, update.personal);
        models.push(model.clone());
    }
    Ok(Models::Pooled(models))
}

/// The mean target of all members' training rows.
fn constant(scenario: &Scenario, participation: &Participation) -> Result<Models, RunError> {
    let model = start(scenario, participation)?;
    let mut sum: Vec<f64> = Vec::new();
    let mut rows = 0.0;
    let refused = || RunError::Setup("the targets of these silos have no mean".into());
    for silo in &participation.study.silos {
        let outputs = silo.learner.outputs().map_err(|_| refused())?;
        let personal = silo.learner.initial_personal(scenario.seed);
        let own = outputs.outputs(&model, &personal, Split::Train);
        let own = own.map_err(|error| RunError::Setup(error.to_string()))?;
        let width = own.len() / silo.rows.train.max(1);
        let mean = outputs
            .mean_target(&model, &personal, width)
            .ok_or_else(refused)?;
        let weight = silo.learner.samples() as f64;
        sum.resize(mean.len(), 0.0);
        sum.iter_mut()
            .zip(&mean)
            .for_each(|(sum, mean)| *sum += weight * mean);
        rows += weight;
    }
    sum.iter_mut().for_each(|sum| *sum /= rows);
    Ok(Models::Constant(sum, model))
}
