//! A federation in a loop: every round by the strategy's own functions, without a network.

use std::error::Error;
use std::ops::ControlFlow;
use std::sync::Arc;

use methods::strategy::{OwnRadius, Participant, Scored, StrategyConfig, build};
use methods::{Learner, LoadedManifest, ModelEntry, Params, Scores, Split, State, Strategy};

/// Silos that all take part in every round.
pub(crate) struct ExampleFederation {
    strategy: Box<dyn Strategy>,
    learners: Vec<Arc<dyn Learner>>,
    personal: Vec<Params>,
    /// The coalition of every silo.
    pub(crate) coalitions: Vec<u32>,
    radius: Vec<OwnRadius>,
    state: State,
    seed: u64,
    round: u64,
    /// Rounds whose coalitions are not those of the round before.
    pub(crate) changes: u64,
}

impl ExampleFederation {
    /// Before the first round; every silo has this radius.
    pub(crate) fn new(
        config: &StrategyConfig,
        silos: &[Arc<dyn Learner>],
        radius: f64,
        seed: u64,
    ) -> Result<Self, Box<dyn Error>> {
        let strategy = build(config, silos.len())?;
        let radius = vec![OwnRadius::from(radius); silos.len()];
        let equip = |silo: &Arc<dyn Learner>| strategy.equip(silo.clone());
        let learners: Vec<_> = silos.iter().map(equip).collect::<Result<_, _>>()?;
        for (learner, radius) in learners.iter().zip(&radius) {
            strategy.can_take_part(&**learner, radius)?;
        }
        let personal = learners.iter().map(|one| one.initial_personal(seed));
        Ok(Self {
            personal: personal.collect(),
            coalitions: vec![0; learners.len()],
            radius,
            state: strategy.initial_state(&*learners[0], seed),
            round: 0,
            changes: 0,
            seed,
            strategy,
            learners,
        })
    }

    fn participant(&self, silo: usize) -> Participant<'_> {
        let learner = &*self.learners[silo];
        Participant {
            member: silo as u16,
            coalition: self.coalitions[silo],
            learner,
            personal: &self.personal[silo],
            radius: &self.radius[silo],
            seed: learner.seed(self.seed * 1_000 + silo as u64, self.round),
        }
    }

    /// One round.
    pub(crate) fn round(&mut self) -> Result<(), Box<dyn Error>> {
        self.round += 1;
        let (strategy, round) = (&self.strategy, self.round);
        let plan = strategy.plan(&self.state, round);
        let (mut entries, mut after) = (Vec::new(), Vec::new());
        for silo in 0..self.learners.len() {
            let go_on = &mut |_| ControlFlow::Continue(());
            let participant = self.participant(silo);
            let contributed = strategy.contribute(&self.state, &plan, round, participant, go_on)?;
            let (coalition, update) = contributed;
            entries.push(ModelEntry {
                model: update.shared,
                coalition: Some(coalition),
                weight: plan.weights.then_some(update.samples),
                member: Some(silo as u16),
            });
            after.push(update.personal);
        }
        let mut scores = None;
        if plan.cross_evaluate {
            let mut rows = Vec::new();
            for (silo, personal) in after.iter().enumerate() {
                let participant = self.participant(silo);
                let score = |(at, entry): (usize, &ModelEntry)| {
                    let scored = Scored {
                        model: &entry.model,
                        personal,
                        own: at == silo,
                    };
                    strategy.score(&self.state, &plan, round, participant, scored)
                };
                rows.push(
                    entries
                        .iter()
                        .enumerate()
                        .map(score)
                        .collect::<Result<_, _>>()?,
                );
            }
            scores = Some(Scores::from_rows(&rows)?);
        }
        let manifest = LoadedManifest { entries, scores };
        let decision = strategy.decide(&self.state, &manifest, round)?;
        strategy.check(&self.state, &manifest, &decision, round)?;
        let outcome = strategy.settle(&self.state, &manifest, &decision, round)?;
        self.changes += u64::from(!same_groups(&self.coalitions, &outcome.assignment));
        self.coalitions = outcome.assignment;
        self.state = outcome.state;
        self.personal = after;
        Ok(())
    }

    /// The mean over the silos of a metric on their test rows, of the models that they hold.
    pub(crate) fn measure(&self, metric: &str) -> Result<f64, Box<dyn Error>> {
        let mut sum = 0.0;
        for silo in 0..self.learners.len() {
            let model = &self.state.models[self.coalitions[silo] as usize];
            let learner = &self.learners[silo];
            let metrics = learner.evaluate(model, &self.personal[silo], Split::Test)?;
            sum += metrics.get(metric)?;
        }
        Ok(sum / self.learners.len() as f64)
    }
}

/// Returns whether two assignments are one grouping.
pub(crate) fn same_groups(a: &[u32], b: &[u32]) -> bool {
    let pairs = || (0..a.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs().all(|(i, j)| (a[i] == a[j]) == (b[i] == b[j]))
}
