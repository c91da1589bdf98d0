//! Chooses the model that a silo serves, by cross-validation on its own training rows.
//!
//! A silo that is unlike the others may do better with a model of its own than with the model of
//! the federation. So it compares four candidates by k-fold cross-validation: a model that it
//! trains alone, the model of its coalition, that model tuned on its own rows, and the mean of all
//! coalitions' models. It serves another model than its own only where the advantage is larger than
//! its standard error over the folds. No data leave the silo.
//!
//! Whatever the silo trains for this never sees the fold that it is measured on: models trained
//! alone, tuned models, and the personal state beside a coalition's model (personal layers, a model
//! of its own), which is trained anew around that model without the fold. The coalition's model
//! itself was trained on the silo's rows, among others, so its losses are too low, and the more so
//! the fewer silos share it. The rule of one standard error corrects for that. A model that no
//! other silo shares is not compared at all: it would be measured on the rows that it was trained
//! on. The tests on real hospitals show that this suffices there.

mod adopted;

use std::ops::ControlFlow;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::learner::{LearnError, Learner, Split, Task};
use crate::params::Params;

pub use adopted::{alone_start, mean_of_coalitions, members_of};

/// How a silo chooses the model that it serves at the end, by cross-validation on its own rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServeConfig {
    /// Number of folds of the cross-validation, at least 2; or 0 for no comparison.
    pub folds: usize,
}

impl Default for ServeConfig {
    fn default() -> Self {
        Self { folds: 5 }
    }
}

impl ServeConfig {
    /// Whether the number of folds can be used.
    ///
    /// # Errors
    /// What it must be.
    pub fn check(&self) -> Result<(), &'static str> {
        match self.folds {
            1 => Err("must be at least 2, or 0 for no comparison"),
            _ => Ok(()),
        }
    }
}

/// The origin of a model that a silo may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Candidate {
    /// Trained alone.
    Local,
    /// The model of its coalition.
    Coalition,
    /// The mean of all coalitions' models, by the number of their members.
    Global,
    /// The coalition's model, trained on by the silo.
    FineTuned,
}

impl Candidate {
    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Local => "the model that it trains alone",
            Self::Coalition => "the model of its coalition",
            Self::Global => "the mean of all coalitions' models",
            Self::FineTuned => "the model of its coalition, tuned on its own rows",
        }
    }
}

/// The loss of one candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The candidate.
    pub candidate: Candidate,
    /// Mean loss over all rows, each in the fold that holds it.
    pub loss: f64,
    /// How much less that is than of the local model.
    pub advantage: f64,
    /// Standard error of the advantage over the folds.
    pub error: f64,
}

/// The model that a silo serves, and the comparison behind the choice.
#[derive(Debug, Clone)]
pub struct Served {
    /// The choice.
    pub candidate: Candidate,
    /// The comparison, the local model first; empty where the silo has too few rows to compare, and
    /// serves its coalition's model.
    pub measured: Vec<Measured>,
    /// The model and the personal state: as the strategy equips the silo, unless the choice is
    /// [`Candidate::Local`].
    pub model: (Params, Params),
}

/// The candidates of a silo, and the settings of the comparison.
#[derive(Clone, Copy)]
pub struct Comparison<'a> {
    /// The silo without a strategy.
    pub plain: &'a dyn Learner,
    /// The silo as the strategy equips it.
    pub equipped: &'a dyn Learner,
    /// How it trains alone.
    pub alone: &'a Alone,
    /// The model that it trained alone, and the personal state.
    pub local: &'a (Params, Params),
    /// The model of its coalition, and the personal state.
    pub coalition: &'a (Params, Params),
    /// Whether several silos share that model. One that is not shared is served only where there
    /// is nothing to compare.
    pub shared: bool,
    /// The mean of all coalitions' models, where that is another.
    pub global: Option<&'a Params>,
    /// Parts that its training rows are divided into, at least 2.
    pub folds: usize,
}

/// Training without a federation, for as many rounds as one.
#[derive(Debug, Clone)]
pub struct Alone {
    /// The model to start from.
    pub start: Params,
    /// Seed of the initial personal state.
    pub initial: u64,
    /// The task of every round; a decay of its learning rate counts these rounds.
    pub task: Task,
    /// The silo's seed.
    pub seed: u64,
    /// The rounds.
    pub rounds: RangeInclusive<u64>,
}

impl Alone {
    /// Trains.
    ///
    /// # Errors
    /// [`LearnError`] of the learner.
    pub fn train(&self, learner: &dyn Learner) -> Result<(Params, Params), LearnError> {
        let mut model = self.start.clone();
        let mut personal = learner.initial_personal(self.initial);
        for round in self.rounds.clone() {
            (model, personal) = self.step(learner, &model, &personal, round)?;
        }
        Ok((model, personal))
    }

    /// A given model, with the personal state trained around it: from the initial state, for as
    /// many rounds, the model itself being the same in each. Without personal state, the model as it
    /// is.
    ///
    /// # Errors
    /// [`LearnError`] of the learner.
    pub fn around(
        &self,
        learner: &dyn Learner,
        model: &Params,
    ) -> Result<(Params, Params), LearnError> {
        let mut personal = learner.initial_personal(self.initial);
        if !personal.values().is_empty() {
            for round in self.rounds.clone() {
                (_, personal) = self.step(learner, model, &personal, round)?;
            }
        }
        Ok((model.clone(), personal))
    }

    fn step(
        &self,
        learner: &dyn Learner,
        model: &Params,
        personal: &Params,
        round: u64,
    ) -> Result<(Params, Params), LearnError> {
        let seed = learner.seed(self.seed, round);
        let mut go_on = |_| ControlFlow::Continue(());
        let task = match &self.task {
            Task::Train(training) => {
                let before = round.saturating_sub(*self.rounds.start());
                Task::Train(training.at(before + 1))
            }
            other => other.clone(),
        };
        let update = learner.carry_out(model, personal, &task, seed, &mut go_on)?;
        Ok((update.shared, update.personal))
    }
}

/// Losses of one candidate, and rows, by fold.
type Folds = Vec<(f64, f64)>;

impl Comparison<'_> {
    /// Compares, and chooses. A candidate that cannot be trained or measured is left out.
    pub fn serve(&self) -> Served {
        let tuned = self.tune(self.equipped, self.coalition).ok();
        let mut losses: Vec<(Candidate, Folds)> = Vec::new();
        if let Some(local) = self.folds_of(|plain, _| {
            let model = self.alone.train(plain)?;
            loss(plain, &model)
        }) {
            losses.push((Candidate::Local, local));
            let fixed =
                |model: &Params| self.folds_of(|_, own| loss(own, &self.alone.around(own, model)?));
            let shared = Some(&self.coalition.0).filter(|_| self.shared);
            let tune = |model: &Params| {
                self.folds_of(|_, own| loss(own, &self.tune(own, &self.alone.around(own, model)?)?))
            };
            let others = [
                (Candidate::Coalition, shared.and_then(fixed)),
                (Candidate::Global, self.global.and_then(fixed)),
                (
                    Candidate::FineTuned,
                    shared.filter(|_| tuned.is_some()).and_then(tune),
                ),
            ];
            losses.extend(
                others
                    .into_iter()
                    .filter_map(|(candidate, folds)| Some((candidate, folds?))),
            );
        }
        let measured = measured(&losses);
        let candidate = match measured.is_empty() {
            true => Candidate::Coalition,
            false => choose(&measured),
        };
        let model = match (candidate, tuned, self.global) {
            (Candidate::Local, ..) => self.local.clone(),
            (Candidate::FineTuned, Some(tuned), _) => tuned,
            (Candidate::Global, _, Some(global)) => (global.clone(), self.coalition.1.clone()),
            _ => self.coalition.clone(),
        };
        Served {
            candidate,
            measured,
            model,
        }
    }

    /// The coalition's model after one more round of training at the silo.
    fn tune(
        &self,
        learner: &dyn Learner,
        (model, personal): &(Params, Params),
    ) -> Result<(Params, Params), LearnError> {
        let round = self.alone.rounds.end() + 1;
        let (shared, personal) = self.alone.step(learner, model, personal, round)?;
        // What goes with a contribution is no part of the model.
        let shared = Params::gather(model.layout(), &[&shared]);
        let why = || LearnError::Failed("the training contributes no model".into());
        Ok((shared.ok_or_else(why)?, personal))
    }

    /// A candidate's loss on every fold, given both learners without it.
    fn folds_of(
        &self,
        measure: impl Fn(&dyn Learner, &dyn Learner) -> Result<(f64, f64), LearnError>,
    ) -> Option<Folds> {
        let fold = |fold: usize| {
            let without = |learner: &dyn Learner| {
                let access = learner.row_access().ok()?;
                access.holding_out(fold, self.folds, self.alone.seed)
            };
            let (plain, equipped) = (without(self.plain)?, without(self.equipped)?);
            let (loss, rows) = measure(&*plain, &*equipped).ok()?;
            (loss.is_finite() && rows > 0.0).then_some((loss, rows))
        };
        (0..self.folds).map(fold).collect()
    }
}

/// The loss on the rows held out, and how many they are.
fn loss(learner: &dyn Learner, model: &(Params, Params)) -> Result<(f64, f64), LearnError> {
    let metrics = learner.evaluate(&model.0, &model.1, Split::Validation)?;
    let loss = metrics.values.get("loss").copied().unwrap_or(f64::NAN);
    Ok((loss, metrics.samples as f64))
}

/// Mean loss, advantage over the first and its standard error, of every candidate. Folds weigh by
/// their rows; the error is that of their weighted mean, `√(Σ w_i² (a_i − ā)² · k/(k−1))` over `k`
/// folds with weights `w` that sum to 1.
fn measured(losses: &[(Candidate, Folds)]) -> Vec<Measured> {
    let Some((_, local)) = losses.first() else {
        return Vec::new();
    };
    let rows: f64 = local.iter().map(|(_, rows)| rows).sum();
    let mean = |values: &mut dyn Iterator<Item = f64>| -> f64 {
        let each = values.zip(local);
        each.map(|(value, (_, fold))| value * fold / rows).sum()
    };
    let measure = |(candidate, folds): &(Candidate, Folds)| {
        let advantages = || {
            folds
                .iter()
                .zip(local)
                .map(|((own, _), (alone, _))| alone - own)
        };
        let advantage = mean(&mut advantages());
        let spread: f64 = advantages()
            .zip(local)
            .map(|(one, (_, fold))| fold / rows * (one - advantage))
            .map(|apart| apart * apart)
            .sum();
        let k = folds.len() as f64;
        Measured {
            candidate: *candidate,
            loss: mean(&mut folds.iter().map(|(loss, _)| *loss)),
            advantage,
            error: (spread * k / (k - 1.0)).sqrt(),
        }
    };
    losses.iter().map(measure).collect()
}

/// The candidate with the least loss of those whose advantage over the local model is larger than
/// its standard error; the local model where there is none. Of equals the first.
pub fn choose(measured: &[Measured]) -> Candidate {
    let mut best = (f64::INFINITY, Candidate::Local);
    for one in measured {
        let ahead = one.candidate != Candidate::Local && one.advantage > one.error;
        if ahead && one.loss < best.0 {
            best = (one.loss, one.candidate);
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folds(losses: [f64; 4]) -> Folds {
        losses.map(|loss| (loss, 5.0)).to_vec()
    }

    fn chosen(others: &[(Candidate, [f64; 4])]) -> Candidate {
        let mut losses = vec![(Candidate::Local, folds([1.0, 2.0, 3.0, 4.0]))];
        losses.extend(
            others
                .iter()
                .map(|(candidate, of)| (*candidate, folds(*of))),
        );
        choose(&measured(&losses))
    }

    #[test]
    fn the_local_model_is_served_unless_another_is_better_by_more_than_its_standard_error() {
        let none: [(Candidate, [f64; 4]); 0] = [];
        assert_eq!(chosen(&none), Candidate::Local);
        // Better on average by 0.1, but by luck: better in one fold only.
        let lucky = (Candidate::Coalition, [1.2, 2.2, 3.2, 3.0]);
        assert_eq!(chosen(&[lucky]), Candidate::Local);
        let surely = (Candidate::Coalition, [0.9, 1.9, 2.9, 3.9]);
        assert_eq!(chosen(&[surely]), Candidate::Coalition);
        let best = (Candidate::FineTuned, [0.7, 1.8, 2.7, 3.8]);
        assert_eq!(chosen(&[surely, best, lucky]), Candidate::FineTuned);
        let worse = (Candidate::Global, [1.1, 2.1, 3.1, 4.1]);
        assert_eq!(chosen(&[worse]), Candidate::Local);
    }

    #[test]
    fn advantages_are_weighted_by_rows_with_the_standard_error_of_their_mean() {
        let losses = [
            (Candidate::Local, vec![(1.0, 1.0), (1.0, 3.0)]),
            (Candidate::Coalition, vec![(0.6, 1.0), (0.8, 3.0)]),
        ];
        let [local, other] = &measured(&losses)[..] else {
            panic!("two candidates");
        };
        assert_eq!((local.advantage, local.error), (0.0, 0.0));
        assert!((other.loss - 0.75).abs() < 1e-12 && (other.advantage - 0.25).abs() < 1e-12);
        // Deviations .15 and −.05 with weights ¼ and ¾.
        let (first, second): (f64, f64) = (0.15 * 0.25, 0.05 * 0.75);
        let spread = first * first + second * second;
        assert!((other.error - (2.0 * spread).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn training_alone_follows_a_falling_rate_from_its_first_round() {
        let learner = crate::learner::QuadraticLearner::new(&[1.0, -2.0]);
        let training = crate::learner::Training {
            epochs: 2,
            batch: 0,
            optimiser: crate::learner::Optimiser::Sgd {
                rate: 0.2,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: Some(crate::learner::Decay::Exponential(0.5)),
        };
        let alone = |training: &crate::learner::Training, rounds| Alone {
            start: learner.initial(3),
            initial: 3,
            task: Task::Train(training.clone()),
            seed: 1,
            rounds,
        };
        let decayed = alone(&training, 2..=4).train(&learner).ok();
        let mut by_hand = learner.initial(3);
        for (round, at) in [(2, 1), (3, 2), (4, 3)] {
            let one = Alone {
                start: by_hand.clone(),
                ..alone(&training.at(at), round..=round)
            };
            by_hand = one.train(&learner).map_or(by_hand, |(model, _)| model);
        }
        assert_eq!(decayed.map(|(model, _)| model), Some(by_hand));
        let constant = crate::learner::Training {
            decay: None,
            ..training.clone()
        };
        let constant = alone(&constant, 2..=4).train(&learner).ok();
        assert_ne!(constant, alone(&training, 2..=4).train(&learner).ok());
    }
}
