//! A training of FedCG under way: one step after the other of everything that is trained.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::branches::{Branched, no_rows, unusable};
use super::graph::BranchGraph;
use super::shape::FedCgParts;
use crate::Matrix;
use crate::learner::{
    JointStep, LearnError, Learner, Optimiser, OptimiserState, RowsOfModel, Split, Training, Update,
};
use crate::params::{Params, Role};

/// The settings of [`Optimiser::Sgd`].
#[derive(Clone, Copy)]
pub(super) struct Sgd {
    pub(super) rate: f64,
    pub(super) momentum: f64,
    pub(super) weight_decay: f64,
}

impl Sgd {
    /// The optimiser of values that are moved by the learning rate times the gradient instead of
    /// the gradient: its velocities are in the same unit, and its own rate is 1.
    fn of_moves(self, decayed: Vec<bool>) -> OptimiserState {
        let optimiser = Optimiser::Sgd {
            rate: 1.0,
            momentum: self.momentum,
            weight_decay: self.rate * self.weight_decay,
        };
        OptimiserState::new(&optimiser, decayed)
    }
}

/// A training under way.
pub(super) struct FedCgTraining<'a> {
    by: &'a Branched,
    inner: &'a dyn Learner,
    rate: f64,
    /// Values of what all domains share, what each is for, and their optimiser.
    base: Vec<f64>,
    roles: Vec<Role>,
    optimiser: OptimiserState,
    graph: BranchGraph,
    /// By layer with branches, and by what is [trained](super::graph::Convolution::trained) of it.
    /// Branches are decayed as the layers that they are; W and λ are not.
    optimisers: Vec<Vec<OptimiserState>>,
    personal: Params,
}

impl<'a> FedCgTraining<'a> {
    pub(super) fn new(
        by: &'a Branched,
        inner: &'a dyn Learner,
        parts: &FedCgParts,
        personal: &Params,
        sgd: Sgd,
    ) -> Self {
        let tensors = parts.base.layout().tensors().iter();
        let roles: Vec<Role> = tensors
            .flat_map(|tensor| vec![tensor.role; tensor.len()])
            .collect();
        let mut graph = parts.graph.clone();
        let layers = graph.layers.iter_mut().enumerate();
        let optimisers = layers.map(|(layer, own)| {
            let weights: Vec<bool> = by.shape.is_weight(layer);
            let each = own.trained().into_iter().enumerate();
            let optimisers = each.map(|(which, values)| {
                let decayed = |at: usize| which == 0 && weights[at % weights.len()];
                sgd.of_moves((0..values.len()).map(decayed).collect())
            });
            optimisers.collect()
        });
        let optimisers = optimisers.collect();
        let values = parts.base.values();
        Self {
            by,
            inner,
            rate: sgd.rate,
            base: values.iter().map(|&value| value.into()).collect(),
            optimiser: sgd.of_moves(roles.iter().map(|&role| role == Role::Weight).collect()),
            roles,
            optimisers,
            graph,
            personal: personal.clone(),
        }
    }

    fn base(&self) -> Params {
        let values: Vec<f32> = self.base.iter().map(|&value| value as f32).collect();
        Params::from_values(self.by.shape.base(), &values)
    }

    /// One step on the rows `batch`, of which `labels` has the domains; their mean loss before it.
    ///
    /// Rows of a step that influence each other (batch normalisation) all go through the silo's own
    /// learner together. Otherwise those of every domain go by themselves, one domain
    /// after the other: what is personal, and buffers, are handed on from one to the next;
    /// everything else starts from the same values.
    pub(super) fn step(
        &mut self,
        labels: &[u32],
        batch: &[u32],
        seed: u64,
    ) -> Result<f64, LearnError> {
        let silent = self.by.is_silent();
        let label = |row: u32| if silent { 0 } else { labels[row as usize] };
        let generated = if silent {
            Vec::new()
        } else {
            self.graph.generate().map_err(unusable)?
        };
        let mut moves = vec![0.0; self.base.len()];
        let none = |made: &Matrix| Matrix::zeros(made.rows(), made.columns());
        let mut upstream: Vec<Matrix> = generated.iter().map(none).collect();
        let mut by_domain: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &row in batch {
            by_domain.entry(label(row)).or_default().push(row);
        }
        let mut loss = 0.0;
        let mut joint = self.joint(&by_domain, &generated, seed)?.map(|step| {
            (loss, self.personal) = (step.loss, step.personal);
            step.models.into_iter()
        });
        for (domain, rows) in by_domain {
            let start = self.effective(domain, &generated);
            let reached = match joint.as_mut().and_then(Iterator::next) {
                Some(reached) => reached,
                None => {
                    let share = rows.len() as f64 / batch.len() as f64;
                    let update = self.alone(&start, &rows, share, seed)?;
                    loss += share * update.metrics.values.get("loss").copied().unwrap_or(0.0);
                    self.personal = update.personal;
                    update.shared
                }
            };
            let reached = reached.values();
            let pairs = start.values().iter().zip(reached);
            let went: Vec<f64> = pairs
                .map(|(&from, &to)| f64::from(from) - f64::from(to))
                .collect();
            for (at, went) in went.iter().enumerate() {
                match self.roles[at] {
                    Role::Buffer => self.base[at] = reached[at].into(),
                    Role::Weight | Role::Bias => moves[at] += went,
                }
            }
            if !self.by.shape.is_agnostic() {
                let own = self.by.shape.in_model.iter();
                for range in own.flat_map(|layer| &layer.ranges) {
                    moves[range.clone()].fill(0.0);
                }
            }
            for (upstream, layer) in upstream.iter_mut().zip(&self.by.shape.in_model) {
                let places = layer.ranges.iter().cloned().flatten();
                let row = upstream.row_mut(domain as usize).iter_mut();
                row.zip(places).for_each(|(into, at)| *into = went[at]);
            }
        }
        self.optimiser.step(&mut self.base, &moves);
        self.follow(&generated, &upstream)?;
        self.finite(&self.base)?;
        Ok(loss)
    }

    /// The model that the rows of a domain pass through, with the branches `generated`.
    fn effective(&self, domain: u32, generated: &[Matrix]) -> Params {
        let layers = self.graph.layers.iter();
        let lambdas: Vec<f64> = layers.map(|layer| layer.lambda).collect();
        let branch = generated.iter().map(|made| made.row(domain as usize));
        let branch = [(1.0, branch.collect())];
        self.by.effective(&self.base(), &lambdas, &branch)
    }

    /// One plain step on the rows of several domains together, if they influence each other.
    fn joint(
        &self,
        by_domain: &BTreeMap<u32, Vec<u32>>,
        generated: &[Matrix],
        seed: u64,
    ) -> Result<Option<JointStep>, LearnError> {
        if by_domain.len() < 2 {
            return Ok(None);
        }
        let domains = by_domain.keys();
        let models: Vec<Params> = domains
            .map(|&domain| self.effective(domain, generated))
            .collect();
        let parts = by_domain.values().zip(&models);
        let parts: Vec<RowsOfModel<'_>> = parts
            .map(|(rows, model)| RowsOfModel { model, rows })
            .collect();
        let rows = self.inner.row_access()?;
        rows.joint_step(&parts, &self.personal, self.rate, seed)
            .transpose()
    }

    /// One plain step of the silo's own learner on these rows, as large as their share of the step.
    fn alone(
        &self,
        start: &Params,
        rows: &[u32],
        share: f64,
        seed: u64,
    ) -> Result<Update, LearnError> {
        let only = self.inner.row_access()?.only(Split::Train, rows);
        let only = only.ok_or_else(no_rows)?;
        let training = Training {
            epochs: 1,
            batch: 0,
            optimiser: Optimiser::Sgd {
                rate: self.rate * share,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let go_on = &mut |_| ControlFlow::Continue(());
        only.train(start, &self.personal, &training, seed, go_on)
    }

    /// The step of branches and graph, from how far the layers went in every domain.
    fn follow(&mut self, generated: &[Matrix], upstream: &[Matrix]) -> Result<(), LearnError> {
        for (layer, (made, upstream)) in generated.iter().zip(upstream).enumerate() {
            let moves = self.graph.gradients(layer, made, upstream);
            let moves = moves.map_err(unusable)?;
            let trained = self.graph.layers[layer].trained();
            let fixed = if self.by.options.learn_lambda {
                trained.len()
            } else {
                trained.len() - 1
            };
            let optimisers = &mut self.optimisers[layer];
            let each = trained.into_iter().zip(&moves).zip(optimisers);
            for ((values, moves), optimiser) in each.take(fixed) {
                optimiser.step(values, moves);
            }
        }
        for layer in &self.graph.layers {
            self.finite(layer.parameters.values())?;
            self.finite(&[layer.lambda])?;
            for weight in layer.weights() {
                self.finite(weight.values())?;
            }
        }
        Ok(())
    }

    /// Refuses what is not finite as the `f32` that it will be.
    fn finite(&self, values: &[f64]) -> Result<(), LearnError> {
        if values.iter().all(|&value| (value as f32).is_finite()) {
            return Ok(());
        }
        Err(LearnError::Diverged {
            step: 0,
            rate: self.rate,
        })
    }

    /// Everything as it is now, and what is personal.
    pub(super) fn finish(self, start: FedCgParts) -> (FedCgParts, Params) {
        let parts = FedCgParts {
            base: self.base(),
            graph: self.graph,
            ..start
        };
        (parts, self.personal)
    }
}
