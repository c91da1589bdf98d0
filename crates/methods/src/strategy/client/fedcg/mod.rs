//! FedCG (Caldarola et al. 2021): domains of rows, a branch for each, and a graph between them.
//!
//! A teacher, which all silos share, sorts rows into domains. Some layers of the model have a branch
//! for every domain, added to what all domains share; the branches are made by a graph convolution
//! over all of them ([`domains`](crate::domains)), so that a domain with few rows learns from its
//! neighbours. A student learns the labels of the teacher at the silos, and every few rounds becomes
//! the teacher. Where the domains of rows are known, these take the teacher's place. Everything that is
//! trained is averaged by training rows (eq. (2)); every member computes the graph from
//! the averaged branches.

mod branched;
mod branches;
mod findings;
mod graph;
mod layers;
mod running;
mod shape;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::branches::Branched;
use self::shape::{DOMAIN, FedCgShape, GRAPH, SHARES, STUDENT, TEACHER, graph_of};
use crate::Matrix;
use crate::domains::adjacency::{self, AdjacencyError};
use crate::domains::{Activation, Passes};
use crate::learner::{Learner, Optimiser};
use crate::params::{Params, TensorSpec};
use crate::strategy::options::{MethodSetting, at_least_one, not_negative, positive};
use crate::strategy::server::one_model::fedavg::{FedAvg, WeightRule};
use crate::strategy::server::one_model::one_model;
use crate::strategy::wrappers::learner_wrapper::WrappedLearner;
use crate::strategy::wrappers::strategy_wrapper::{StrategyWrapper, WrappedStrategy};
use crate::strategy::{
    EquipError, Kept, LoadedManifest, ModelEntry, Outcome, SettleError, State, Strategy,
    StrategyError,
};

pub use self::findings::findings;
pub use self::layers::{Branches, LayerKind};

/// Rounds settled so far, in [`State::memory`].
const ROUNDS: &str = "fedcg.rounds";

/// Training rows of all silos in every domain in the last round, in [`State::memory`], where numbers of
/// rows are sent; rounded.
const DOMAIN_ROWS: &str = "fedcg.rows";
/// Mean share of a silo's training rows in every domain, where they are not.
const DOMAIN_SHARES: &str = "fedcg.shares";
/// Silos that had any training row in a domain.
const DOMAIN_SILOS: &str = "fedcg.silos";

/// Largest absolute value of λ and W in a contribution, in multiples of where λ starts (but at
/// least of 1). Both start near 1 and are no weights of the model, so that the bound of its norm
/// does not cover them.
const LARGEST: f64 = 1000.0;

/// Most domains that a parameter set may ask for.
const MOST: usize = 1024;

/// Options of FedCG.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedCg {
    /// Weight of a silo's model in the mean.
    pub weight: WeightRule,
    /// Number of domains D into which the student sorts rows. Default 4, the best of the paper's
    /// table 4.
    #[schemars(range(min = 1, max = 1024), extend("x-unit" = "domains"))]
    pub domains: usize,
    /// True if the domain of every row is known, as of the silo that it is in (`domains` in
    /// `[task.table]`) or from the source (mixed `images`). If so, there is no teacher, and the student learns to recognise the named domains. Default false.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
    /// Layers that have a branch per domain: `"last-convolution"`, `"all-convolutions"` (with their
    /// normalisation layers), `"last"`, `"all"`, or their names. Default: the last convolution, as in
    /// the paper, or the last layer of a model without convolutions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Branches>,
    /// True if the layers with branches also have what all domains share. `false` is an ablation of the
    /// paper's table 3: such a layer is made of its branches alone. Default true.
    #[serde(skip_serializing_if = "Clone::clone")]
    pub agnostic: bool,
    /// Projection `W` of the graph convolution.
    pub projection: Mixing,
    /// Number of propagations along the graph with a bottleneck projection; not used otherwise.
    pub passes: Passes,
    /// Activation σ of the graph convolution; ReLU in the paper's final model.
    pub sigma: Activation,
    /// Initial value of λ, the factor of the branches in every layer that has them. At 0 the
    /// branches have no gradient until λ has moved. Default 1; the paper reports 0.3 and 2.1 after
    /// training, and no initial value.
    #[schemars(range(min = 0))]
    pub lambda: f64,
    /// True if λ is trained. A λ of 0 that is not trained gives FedAvg.
    pub learn_lambda: bool,
    /// Edges of the graph of domains after the first aggregation; before it there are none.
    pub adjacency: Neighbours,
    /// Edges of the graph before the first aggregation. Default `"identity"`.
    #[serde(skip_serializing_if = "is_identity")]
    pub adjacency_start: AdjacencyStart,
    /// Whether one graph connects the branches of all layers, or every layer has its own. Default
    /// `"one"`.
    #[serde(skip_serializing_if = "is_one")]
    pub graphs: Graphs,
    /// Share β of a domain's own branch in its neighbourhood. Default 0.5, as in the paper.
    #[schemars(range(min = 0, max = 1))]
    pub beta: f64,
    /// Which branches evaluate a row, given the student's probabilities of its domains.
    pub assignment: Assignment,
    /// Number of rounds after which the student replaces the teacher, if there is one. Default 10,
    /// a guess: the paper gives no number.
    #[schemars(range(min = 1), extend("x-unit" = "rounds"))]
    pub refresh: u64,
    /// Learning rate of the student. Default 1e-4, as in the paper.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub student_rate: f64,
    /// Widths of the student's hidden layers on tables, each at least 1. Default one layer of 16, a
    /// guess: the paper's student is a network for images.
    pub hidden: Vec<usize>,
}

/// The graph of domains before the first aggregation. The paper names all three.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum AdjacencyStart {
    /// No domain has neighbours.
    #[default]
    Identity,
    /// Every share is drawn, and those of a domain sum to 1.
    Random,
    /// All domains are neighbours, with equal weights.
    Uniform,
}

/// How many graphs of domains there are.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Graphs {
    /// One for all layers, by the distance of all branches of a domain.
    #[default]
    One,
    /// One for every layer, by the distance of the branches in it.
    PerLayer,
}

fn is_identity(start: &AdjacencyStart) -> bool {
    *start == AdjacencyStart::Identity
}

fn is_one(graphs: &Graphs) -> bool {
    *graphs == Graphs::One
}

/// W of the graph convolution.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Mixing {
    /// A full square matrix over the values of a layer: as many parameters as their number squared.
    #[default]
    Full,
    /// A matrix of lower rank, by this factor, at least 1; 16 in the paper.
    Bottleneck(usize),
    /// No projection.
    None,
}

/// Which domains are neighbours.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Neighbours {
    /// Domains with similar branches are neighbours (eq. (6)).
    #[default]
    Distance,
    /// Domains with similar attributes are neighbours: their numbers, read in binary, differ in few bits
    /// (inverse Hamming distance). For `given` domains that are numbered so.
    Hamming,
    /// All domains are neighbours, with equal weights.
    Uniform,
    /// No domain has neighbours.
    Identity,
}

/// How the student's domains of a row are used.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Assignment {
    /// All branches, weighted by the probabilities of their domains.
    #[default]
    Soft,
    /// Only the branch of the most probable domain.
    Hard,
}

impl Default for FedCg {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            domains: 4,
            given: false,
            layers: None,
            agnostic: true,
            projection: Mixing::default(),
            passes: Passes::default(),
            sigma: Activation::default(),
            lambda: 1.0,
            learn_lambda: true,
            adjacency: Neighbours::default(),
            adjacency_start: AdjacencyStart::default(),
            graphs: Graphs::default(),
            beta: adjacency::BETA,
            assignment: Assignment::default(),
            refresh: 10,
            student_rate: 1e-4,
            hidden: vec![16],
        }
    }
}

impl FedCg {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let refuse = |option, allowed, got| {
            Err(StrategyError::Option {
                option,
                allowed,
                got,
            })
        };
        if !(1..=MOST).contains(&self.domains) {
            return refuse("domains", "from 1 to 1024", self.domains.to_string());
        }
        if let Mixing::Bottleneck(factor) = self.projection {
            at_least_one("projection.bottleneck", factor as u64)?;
        }
        not_negative("lambda", self.lambda)?;
        if !(0.0..=1.0).contains(&self.beta) {
            return refuse("beta", "from 0 to 1", self.beta.to_string());
        }
        at_least_one("refresh", self.refresh)?;
        positive("student-rate", self.student_rate)?;
        if self.hidden.contains(&0) {
            return refuse("hidden", "widths of at least 1", "0".into());
        }
        if !matches!(setting.training.optimiser, Optimiser::Sgd { .. }) {
            return refuse("training.optimiser", "sgd for fedcg", "another".into());
        }
        Ok(Box::new(WrappedStrategy {
            name: "fedcg",
            inner: Arc::new(FedAvg::on(setting, self.weight)),
            by: self.clone(),
        }))
    }

    /// `A` of these branches, one row each.
    fn neighbours(&self, branches: &Matrix) -> Result<Matrix, AdjacencyError> {
        let domains = branches.rows();
        match self.adjacency {
            Neighbours::Distance => adjacency::by_parameters(branches, self.beta),
            Neighbours::Hamming => adjacency::by_attributes(domains, self.beta),
            Neighbours::Uniform => adjacency::uniform(domains, self.beta),
            Neighbours::Identity => Ok(adjacency::identity(domains)),
        }
    }

    /// Every `A` that follows from the averaged branches, by the names of their tensors.
    fn graphs_of(&self, mean: &Params) -> Result<Params, SettleError> {
        let infeasible = |error: &dyn std::fmt::Display| SettleError::Infeasible(error.to_string());
        let is_graph = |tensor: &&TensorSpec| graph_of(&tensor.name).is_some();
        let layout = mean.layout().select(is_graph);
        let mut graphs = Vec::with_capacity(layout.len());
        for tensor in layout.tensors() {
            let [domains, _] = tensor.shape[..] else {
                return Err(infeasible(&"the graph between domains is not a matrix"));
            };
            // Without the name of a layer, of all layers.
            let layer = graph_of(&tensor.name).filter(|layer| !layer.is_empty());
            let rows: Vec<Vec<f64>> = (0..domains)
                .map(|domain| branches_of(mean, domain, layer))
                .collect();
            let branches = Matrix::from_rows(&rows).map_err(|error| infeasible(&error))?;
            let graph = self.neighbours(&branches);
            let graph = graph.map_err(|error| infeasible(&error))?;
            graphs.extend(graph.values().iter().map(|&share| share as f32));
        }
        Ok(Params::from_values(&layout, &graphs))
    }
}

/// The values of a domain's branches: of one layer, or of all.
fn branches_of(model: &Params, domain: usize, layer: Option<&str>) -> Vec<f64> {
    let prefix = format!("{DOMAIN}{domain}.");
    let own = |tensor: &&TensorSpec| {
        let own = tensor.name.strip_prefix(&prefix);
        own.is_some_and(|own| match layer {
            Some(layer) => own.rsplit_once('.').map_or("", |(of, _)| of) == layer,
            None => true,
        })
    };
    let layout = model.layout().select(own);
    let own = Params::gather(&layout, &[model]).expect("tensors of this model");
    own.values().iter().map(|&value| value.into()).collect()
}

impl StrategyWrapper for FedCg {
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let rows = vec![0; inner.samples() as usize];
        let classifiers = inner.classifiers()?;
        let classifier = classifiers.classifier(&rows, self.domains, &self.hidden);
        let output = inner.outputs()?.output_layer();
        let shape = FedCgShape::new(self, &*inner, &classifier.layout())?;
        let by = Branched::new(self, shape, output);
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn can_take_part(&self, learner: &dyn Learner) -> Result<(), EquipError> {
        if !self.given {
            return Ok(());
        }
        let domains = self.domains;
        let rows = learner.row_domains().ok_or(EquipError::NoDomain)?;
        match rows.into_iter().find(|&domain| domain as usize >= domains) {
            Some(domain) => Err(EquipError::Domain { domain, domains }),
            None => Ok(()),
        }
    }

    fn admit(&self, entry: &ModelEntry) -> Result<(), String> {
        let most = LARGEST * self.lambda.max(1.0);
        for tensor in entry.model.layout().tensors() {
            let connects = tensor.name.starts_with(GRAPH)
                && tensor.name != SHARES
                && graph_of(&tensor.name).is_none();
            let values = entry.model.tensor(&tensor.name).filter(|_| connects);
            let large = |value: &&f32| f64::from(value.abs()) > most;
            if let Some(value) = values.unwrap_or_default().iter().find(large) {
                let name = &tensor.name;
                return Err(format!(
                    "tensor {name:?} holds {value}, expected at most {most} in absolute value"
                ));
            }
        }
        let shares = entry.model.tensor(SHARES).unwrap_or_default();
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return Err(format!(
                "tensor {SHARES:?} holds {shares:?}, expected shares of rows from 0 to 1"
            ));
        }
        Ok(())
    }

    /// The teacher, if there is one, is what it was, or now and then the student; `A` is computed
    /// anew. No contribution decides either of them.
    fn adopt(
        &self,
        before: &State,
        manifest: &LoadedManifest,
        after: Outcome,
    ) -> Result<Outcome, SettleError> {
        let (start, mean) = one_model(&before.models, &after.state.models)?;
        let rounds = before.memory.count(ROUNDS).unwrap_or(0).saturating_add(1);
        let teacher = match rounds % self.refresh {
            0 if !self.given => named(mean, STUDENT),
            _ => named(start, TEACHER),
        };
        let teachers = named(start, TEACHER).layout().clone();
        let teacher = Params::from_values(&teachers, teacher.values());
        let graph = self.graphs_of(mean)?;
        let domains = named(mean, SHARES).values().len();
        let none = Params::zeros(named(mean, SHARES).layout());
        let model = Params::gather(mean.layout(), &[&teacher, &graph, &none, mean]);
        let mut after = after;
        after.state.models = vec![model.expect("the mean has every tensor")];
        let memory = &mut after.state.memory;
        memory.insert(ROUNDS, Kept::Count(rounds));
        for (name, kept) in domain_sizes(manifest, domains) {
            memory.insert(name, kept);
        }
        Ok(after)
    }
}

/// Returns how the training rows of all silos were divided into domains, for reports.
fn domain_sizes(manifest: &LoadedManifest, domains: usize) -> [(&'static str, Kept); 2] {
    let mut silos = vec![0; domains];
    let mut sums = vec![0.0; domains];
    let by_rows = manifest.entries.iter().all(|entry| entry.weight.is_some());
    for entry in &manifest.entries {
        let shares = entry.model.tensor(SHARES).unwrap_or_default();
        let weight = if by_rows {
            entry.share(true)
        } else {
            1.0 / manifest.entries.len() as f64
        };
        for ((silos, sum), &share) in silos.iter_mut().zip(&mut sums).zip(shares) {
            *silos += u64::from(share > 0.0);
            *sum += weight * f64::from(share);
        }
    }
    let sizes = if by_rows {
        let rows = sums.iter().map(|&rows| libm::round(rows) as u64);
        (DOMAIN_ROWS, Kept::Counts(rows.collect()))
    } else {
        (DOMAIN_SHARES, Kept::Numbers(sums))
    };
    [sizes, (DOMAIN_SILOS, Kept::Counts(silos))]
}

/// The tensors whose names begin so, in the order of their names.
fn named(model: &Params, prefix: &str) -> Params {
    let is = |tensor: &&TensorSpec| tensor.name.starts_with(prefix);
    let layout = model.layout().select(is);
    Params::gather(&layout, &[model]).expect("tensors of this model")
}
