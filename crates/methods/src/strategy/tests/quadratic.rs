//! A layout for learners with a known optimum, and federations of them by hand.

use std::ops::ControlFlow;

use super::*;
use crate::learner::{Learner, Progress, Split};
use crate::params::Gate;

pub(super) fn layout() -> Arc<Layout> {
    Layout::by_depth(vec![
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

/// A silo with this centre over the trained values of [`layout`], whose buffer counts trainings.
pub(super) fn quadratic(centre: [f64; 5]) -> QuadraticLearner {
    QuadraticLearner::with_layout(&layout(), &centre)
}

/// The centre of such a silo.
pub(super) fn centre(silo: &QuadraticLearner) -> [f64; 5] {
    silo.centre().try_into().unwrap()
}

/// A federation, as silos see it.
pub(super) struct QuadraticFederation {
    pub(super) strategy: Box<dyn Strategy>,
    pub(super) learners: Vec<Arc<dyn Learner>>,
    pub(super) personal: Vec<Params>,
    pub(super) coalitions: Vec<u32>,
    /// Fixed, and the same at all.
    pub(super) radius: OwnRadius,
    pub(super) state: State,
    pub(super) round: u64,
}

impl QuadraticFederation {
    pub(super) fn new<L: Learner + 'static>(strategy: Box<dyn Strategy>, silos: Vec<L>) -> Self {
        let equip = |silo| strategy.equip(Arc::new(silo) as Arc<dyn Learner>).unwrap();
        let learners: Vec<_> = silos.into_iter().map(equip).collect();
        let initial = |learner: &Arc<dyn Learner>| learner.initial_personal(7);
        Self {
            personal: learners.iter().map(initial).collect(),
            coalitions: vec![0; learners.len()],
            radius: OwnRadius::default(),
            state: strategy.initial_state(&*learners[0], 7),
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
        let layout = self
            .strategy
            .expects(&self.state, &layout, None, self.round);
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
        let takes_part = |silo: &usize| {
            let within = |members: &Vec<u16>| members.contains(&(*silo as u16));
            plan.participants.as_ref().is_none_or(within)
        };
        let who: Vec<usize> = (0..self.learners.len()).filter(takes_part).collect();
        let contributed = who
            .iter()
            .map(|&silo| self.contribution(silo, &plan, &gate));
        let (entries, after): (Vec<_>, Vec<_>) = contributed.unzip();
        let row = |(own, &silo): (usize, &usize)| -> Vec<f64> {
            let participant = self.participant(silo);
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
        let manifest = manifest(entries, rows.as_deref());
        let outcome = round(&*self.strategy, &self.state, &manifest, self.round);
        for (silo, coalition) in who.into_iter().zip(outcome.assignment) {
            self.coalitions[silo] = coalition;
        }
        self.state = outcome.state;
    }

    /// Returns what a silo contributes, admitted, and its personal state after that.
    fn contribution(&self, silo: usize, plan: &Plan, gate: &Gate) -> (ModelEntry, Params) {
        let mut last = (0, 0);
        let mut watch = |at: Progress| {
            assert!(
                at.step > last.0 && (last.1 == at.steps || last.1 == 0),
                "{last:?} {at:?}"
            );
            last = (at.step, at.steps);
            ControlFlow::Continue(())
        };
        let (participant, round) = (self.participant(silo), self.round);
        let contributed =
            self.strategy
                .contribute(&self.state, plan, round, participant, &mut watch);
        let (coalition, update) = contributed.unwrap();
        assert_eq!(last.0, last.1, "all steps are reported, or none");
        assert_eq!(update.personal.layout(), self.personal[silo].layout());
        let entry = ModelEntry {
            model: gate.admit(update.shared.document()).unwrap(),
            coalition: Some(coalition),
            weight: plan.weights.then_some(update.samples),
            member: (self.strategy.names() == Names::Shown).then_some(silo as u16),
        };
        self.strategy.admit(&entry, round).unwrap();
        (entry, update.personal)
    }

    fn participant(&self, silo: usize) -> Participant<'_> {
        Participant {
            member: silo as u16,
            coalition: self.coalitions[silo],
            learner: &*self.learners[silo],
            personal: &self.personal[silo],
            radius: &self.radius,
            seed: self.round,
        }
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
