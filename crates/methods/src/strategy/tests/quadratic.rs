//! A learner with a known optimum, and federations of it by hand.

use std::ops::ControlFlow;

use super::*;
use crate::learner::{
    Capabilities, Classifiers, GradientModifier, LearnError, Learner, Metrics, ModifiedGradients,
    Outputs, Progress, RobustFits, RobustLosses, RowAccess, Split, Stochastic, StochasticModels,
    Training, Update,
};
use crate::params::Gate;
use crate::robust::RadiusGrid;

/// Loss `½ Σ h_i (w_i − c_i)²` with curvature `h` and centre `c` of one's own, over the trained
/// tensors in the order of the file; an epoch is one step. The buffer counts trainings. The outputs
/// for the silo's one row are the values of the model.
#[derive(Clone)]
pub(super) struct Quadratic {
    pub(super) curvature: [f64; 5],
    pub(super) centre: [f64; 5],
}

pub(super) fn layout() -> Arc<Layout> {
    Layout::new(vec![
        TensorSpec::new("layer0.weight", [2], Role::Weight),
        TensorSpec::new("layer1.bias", [1], Role::Bias),
        TensorSpec::new("layer1.weight", [1], Role::Weight),
        TensorSpec::new("norm0.weight", [1], Role::Weight),
        TensorSpec::new("norm0.count", [1], Role::Buffer),
    ])
    .unwrap()
}

/// Trained values in the order of the file: norm0.count is the fifth of six.
const TRAINED: [usize; 5] = [0, 1, 2, 3, 5];

pub(super) fn trained(model: &Params) -> [f64; 5] {
    TRAINED.map(|at| model.values()[at].into())
}

impl Quadratic {
    pub(super) fn loss(&self, model: &Params) -> f64 {
        let each = trained(model)
            .into_iter()
            .zip(self.curvature)
            .zip(self.centre);
        each.map(|((w, h), c)| 0.5 * h * (w - c) * (w - c)).sum()
    }
}

impl Learner for Quadratic {
    fn layout(&self) -> Arc<Layout> {
        layout()
    }

    fn initial(&self, seed: u64) -> Params {
        Params::from_values(&layout(), &[seed as f32, 0.0, 0.0, 0.0, 0.0, 0.0])
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let plain = GradientModifier::none(start);
        self.train_modified(start, personal, training, &plain, seed, progress)
    }

    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        let loss = self.loss(model);
        // A share that falls as the loss grows.
        let values = [("loss", loss), ("accuracy", 1.0 / (1.0 + loss))];
        let values = values.map(|(name, value)| (name.to_owned(), value)).into();
        Ok(Metrics { samples: 1, values })
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            summaries: None,
            robust: Some(self),
            robust_fits: Some(self),
            gradients: Some(self),
            row_access: Some(self),
            outputs: Some(self),
            classifiers: Some(self),
            stochastic: Some(self),
        }
    }
}

impl ModifiedGradients for Quadratic {
    fn train_modified(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        modifier: &GradientModifier<'_>,
        _: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        assert_eq!(start.layout(), &layout());
        let Optimiser::Sgd { rate, .. } = training.optimiser else {
            panic!("plain steps only");
        };
        // Value by value, the tensor's name with each.
        let names: Vec<String> = layout()
            .tensors()
            .iter()
            .flat_map(|tensor| (0..tensor.len()).map(|at| format!("{}/{at}", tensor.name)))
            .collect();
        let of = |from: &Params, at: usize| -> Option<f64> {
            let (name, place) = names[at].split_once('/').unwrap();
            let values = from.tensor(name)?;
            Some(values[place.parse::<usize>().unwrap()].into())
        };
        let frozen = |at: usize| {
            let (name, _) = names[at].split_once('/').unwrap();
            let frozen = modifier.frozen;
            frozen.is_some_and(|frozen| frozen.position(name).is_some())
        };
        let mut values: Vec<f64> = start.values().iter().map(|&value| value.into()).collect();
        for epoch in 1..=training.epochs {
            for (nth, at) in TRAINED
                .into_iter()
                .enumerate()
                .filter(|&(_, at)| !frozen(at))
            {
                let w = values[at];
                let mut slope = self.curvature[nth] * (w - self.centre[nth]);
                slope += of(modifier.anchor, at).map_or(0.0, |anchor| modifier.mu * (w - anchor));
                slope += modifier
                    .shift
                    .and_then(|shift| of(shift, at))
                    .unwrap_or(0.0);
                values[at] = w - rate * slope;
            }
            let at = Progress {
                step: epoch.into(),
                steps: training.epochs.into(),
                loss: 0.0,
            };
            if progress(at).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        values[4] += 1.0;
        let metrics = self.evaluate(start, personal, Split::Train)?;
        let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
        Ok(Update {
            shared: Params::from_values(&layout(), &values),
            personal: personal.clone(),
            samples: 1,
            metrics,
        })
    }
}

impl RobustLosses for Quadratic {
    fn robust_loss(&self, model: &Params, _: &Params, _: f64, _: Split) -> Result<f64, LearnError> {
        Ok(self.loss(model))
    }
}

impl RobustFits for Quadratic {
    /// The centre.
    fn robust_fit(
        &self,
        start: &Params,
        personal: &Params,
        _: f64,
        _: f64,
    ) -> Result<Update, LearnError> {
        let mut values = start.values().to_vec();
        values[4] += 1.0;
        for (at, centre) in TRAINED.into_iter().zip(self.centre) {
            values[at] = centre as f32;
        }
        let shared = Params::from_values(&layout(), &values);
        Ok(Update {
            shared,
            ..Update::kept(start, personal, 1)
        })
    }

    fn cross_validated_radius(
        &self,
        _: &Params,
        _: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        Ok(search.grid[0])
    }
}

impl RowAccess for Quadratic {
    fn holding_out(&self, _: usize, _: usize, _: u64) -> Option<Arc<dyn Learner>> {
        None
    }

    fn batches(&self, training: &Training, _: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        Ok(vec![vec![0]; training.epochs as usize])
    }

    fn only(&self, _: Split, rows: &[u32]) -> Option<Arc<dyn Learner>> {
        (rows == [0]).then(|| Arc::new(self.clone()) as _)
    }
}

impl Outputs for Quadratic {
    fn outputs(&self, model: &Params, _: &Params, _: Split) -> Result<Vec<f64>, LearnError> {
        Ok(model.values().iter().map(|&value| value.into()).collect())
    }

    fn measure(
        &self,
        _: &Params,
        personal: &Params,
        outputs: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        let values: Vec<f32> = outputs.iter().map(|&value| value as f32).collect();
        self.evaluate(&Params::from_values(&layout(), &values), personal, split)
    }
}

impl Classifiers for Quadratic {
    fn classifier(&self, labels: &[u32], classes: usize, _: &[usize]) -> Arc<dyn Learner> {
        let votes = vec![TensorSpec::new("votes", [classes], Role::Weight)];
        Arc::new(Votes {
            layout: Layout::new(votes).unwrap(),
            label: labels[0] as usize,
        })
    }
}

impl StochasticModels for Quadratic {
    fn stochastic(&self, _: &Stochastic) -> Arc<dyn Learner> {
        Arc::new(self.clone())
    }
}

/// A classifier of one row: a vote for every class, drawn towards 1 for its label and 0 otherwise.
struct Votes {
    layout: Arc<Layout>,
    label: usize,
}

impl Learner for Votes {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, seed: u64) -> Params {
        Params::build(&self.layout, |into| {
            for (class, vote) in (1..).zip(into) {
                *vote = (crate::learner::mixed_seed(seed, class) % 7) as f32;
            }
        })
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        _: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let Training {
            epochs,
            optimiser: Optimiser::Sgd { rate, .. },
            ..
        } = *training
        else {
            panic!("plain steps only");
        };
        let mut votes = start.values().to_vec();
        for epoch in 1..=epochs {
            for (class, vote) in votes.iter_mut().enumerate() {
                *vote -= rate as f32 * (*vote - f32::from(u8::from(class == self.label)));
            }
            let at = Progress {
                step: epoch.into(),
                steps: epochs.into(),
                loss: 0.0,
            };
            if progress(at).is_break() {
                return Err(LearnError::Stopped);
            }
        }
        let mut update = Update::kept(start, personal, 1);
        update.shared = Params::from_values(&self.layout, &votes);
        Ok(update)
    }

    fn evaluate(&self, _: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        Ok(Metrics::default())
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            outputs: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl Outputs for Votes {
    fn outputs(&self, model: &Params, _: &Params, _: Split) -> Result<Vec<f64>, LearnError> {
        Ok(model.values().iter().map(|&value| value.into()).collect())
    }

    fn measure(
        &self,
        model: &Params,
        personal: &Params,
        _: &[f64],
        split: Split,
    ) -> Result<Metrics, LearnError> {
        self.evaluate(model, personal, split)
    }
}

/// A federation, as silos see it.
pub(super) struct Federation {
    pub(super) strategy: Box<dyn Strategy>,
    pub(super) learners: Vec<Arc<dyn Learner>>,
    pub(super) personal: Vec<Params>,
    pub(super) coalitions: Vec<u32>,
    /// Fixed, and the same at all.
    pub(super) radius: OwnRadius,
    pub(super) state: State,
    pub(super) round: u64,
}

impl Federation {
    pub(super) fn new<L: Learner + 'static>(strategy: Box<dyn Strategy>, silos: Vec<L>) -> Self {
        let equip = |silo| strategy.equip(Arc::new(silo) as Arc<dyn Learner>).unwrap();
        let learners: Vec<_> = silos.into_iter().map(equip).collect();
        let initial = |learner: &Arc<dyn Learner>| learner.initial_personal(7);
        Self {
            personal: learners.iter().map(initial).collect(),
            coalitions: vec![0; learners.len()],
            radius: OwnRadius::default(),
            state: State::genesis(learners[0].initial(7)),
            round: 0,
            strategy,
            learners,
        }
    }

    /// One round in which all silos take part.
    pub(super) fn round(&mut self) {
        self.round += 1;
        let plan = self.strategy.plan(&self.state, self.round);
        let layout = self.learners[0].layout();
        let layout = self.strategy.expects(&layout, None, self.round);
        assert!(
            self.strategy
                .layouts(&self.learners[0].layout(), None)
                .contains(&layout),
            "round {}: the layout of the contributions is declared",
            self.round
        );
        let gate = Gate {
            layout,
            norm: f64::INFINITY,
        };
        let (mut entries, mut who, mut after) = (Vec::new(), Vec::new(), Vec::new());
        for (silo, learner) in self.learners.iter().enumerate() {
            let personal = &self.personal[silo];
            let out = |members: &Vec<u16>| !members.contains(&(silo as u16));
            if plan.participants.as_ref().is_some_and(out) {
                continue;
            }
            let mut last = (0, 0);
            let mut watch = |at: Progress| {
                assert!(
                    at.step > last.0 && (last.1 == at.steps || last.1 == 0),
                    "{last:?} {at:?}"
                );
                last = (at.step, at.steps);
                ControlFlow::Continue(())
            };
            let participant = Participant {
                member: silo as u16,
                coalition: self.coalitions[silo],
                learner: &**learner,
                personal,
                radius: &self.radius,
                seed: self.round,
            };
            let (state, strategy) = (&self.state, &self.strategy);
            let contributed =
                strategy.contribute(state, &plan, self.round, participant, &mut watch);
            let (coalition, update) = contributed.unwrap();
            assert_eq!(last.0, last.1, "all steps are reported, or none");
            who.push(silo);
            assert_eq!(update.personal.layout(), personal.layout());
            let entry = ModelEntry {
                model: gate.admit(update.shared.document()).unwrap(),
                coalition: Some(coalition),
                weight: plan.weights.then_some(update.samples),
                member: (self.strategy.names() == Names::Shown).then_some(silo as u16),
            };
            self.strategy.admit(&entry, self.round).unwrap();
            after.push(update.personal);
            entries.push(entry);
        }
        let row = |(own, &silo): (usize, &usize)| -> Vec<f64> {
            let participant = Participant {
                member: silo as u16,
                coalition: self.coalitions[silo],
                learner: &*self.learners[silo],
                personal: &self.personal[silo],
                radius: &self.radius,
                seed: self.round,
            };
            let score = |(at, entry): (usize, &ModelEntry)| {
                let scored = Scored {
                    model: &entry.model,
                    personal: &after[own],
                    own: at == own,
                };
                let (state, round) = (&self.state, self.round);
                let score = self
                    .strategy
                    .score(state, &plan, round, participant, scored);
                score.unwrap()
            };
            entries.iter().enumerate().map(score).collect()
        };
        let rows = plan
            .cross_evaluate
            .then(|| -> Vec<Vec<f64>> { who.iter().enumerate().map(row).collect() });
        for (&silo, personal) in who.iter().zip(after) {
            self.personal[silo] = personal;
        }
        let sheet = sheet(entries, rows.as_deref());
        let outcome = round(&*self.strategy, &self.state, &sheet, self.round);
        for (silo, coalition) in who.into_iter().zip(outcome.assignment) {
            self.coalitions[silo] = coalition;
        }
        self.state = outcome.state;
    }

    pub(super) fn rounds(mut self, rounds: u64) -> Self {
        (0..rounds).for_each(|_| self.round());
        self
    }

    /// The loss of what every silo uses.
    pub(super) fn losses(&self) -> Vec<f64> {
        let each = self
            .learners
            .iter()
            .zip(&self.personal)
            .zip(&self.coalitions);
        each.map(|((learner, personal), &own)| {
            let model = &self.state.models[own as usize];
            learner
                .evaluate(model, personal, Split::Test)
                .unwrap()
                .values["loss"]
        })
        .collect()
    }
}
