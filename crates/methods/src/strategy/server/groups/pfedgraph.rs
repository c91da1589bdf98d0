//! pFedGraph (Ye et al. 2023): for every silo a model of its own, the mean of those like its own.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::aggregation::weights;
use crate::learner::Training;
use crate::params::{Params, weighted_mean};
use crate::similarity::{Embedding, Part, SimilarityMetric};
use crate::strategy::options::{MethodSetting, positive, require};
use crate::strategy::server::groups::local::{OWN_COALITION, numbers, replaced};
use crate::strategy::server::means::kept;
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    AssignAndAggregate, DecideError, LoadedManifest, SettleError, State, Strategy, StrategyError,
};

/// Where the model of before the first round is remembered.
const FIRST: &str = "pfedgraph.first";

/// Options of pFedGraph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PFedGraph {
    /// Prior weight of a silo's model in the means of the others.
    pub weight: WeightRule,
    /// Strength α of the prior against similarity in the weights of a mean: the larger, the nearer
    /// are all silos' models to one mean. Default 0.8.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub alpha: f64,
    /// Cosine of two silos' changes above which it counts as 1. At 1 every cosine counts as it is.
    /// Default 0.9.
    #[schemars(range(min = -1, max = 1))]
    pub alike: f64,
    /// Model from which a silo's change is measured.
    pub since: Since,
}

/// From where the change of a silo's model is measured.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// The global model before the first round.
    #[default]
    First,
    /// The silo's local model at the beginning of this round.
    Round,
}

impl Default for PFedGraph {
    fn default() -> Self {
        let weights::PFedGraph { alpha, alike } = weights::PFedGraph::default();
        Self {
            weight: WeightRule::default(),
            alpha,
            alike,
            since: Since::default(),
        }
    }
}

impl PFedGraph {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("alpha", self.alpha)?;
        let valid = (-1.0..=1.0).contains(&self.alike);
        require(valid, "alike", "from -1 to 1", self.alike)?;
        Ok(Box::new(CollaborationGraph {
            training: setting.training,
            members: setting.members,
            by_rows: self.weight == WeightRule::Exact,
            since: self.since,
            rule: weights::PFedGraph {
                alpha: self.alpha,
                alike: self.alike,
            },
        }))
    }
}

struct CollaborationGraph {
    training: Training,
    members: usize,
    by_rows: bool,
    since: Since,
    rule: weights::PFedGraph,
}

impl CollaborationGraph {
    /// A row of weights for every entry, in plain `f64`: the same bits everywhere.
    fn graph(&self, state: &State, manifest: &LoadedManifest) -> Result<Matrix, DecideError> {
        let first = state.tables.get(FIRST).and_then(|first| first.first());
        let own = kept(state, manifest)?;
        let start = |&own: &u32| match (self.since, first) {
            (Since::First, Some(first)) => first,
            _ => &state.models[own as usize],
        };
        let starts: Vec<&Params> = own.iter().map(start).collect();
        let models: Vec<_> = manifest.entries.iter().map(|entry| &entry.model).collect();
        let changes = Embedding {
            part: Part::All,
            update: true,
            sketch: None,
        };
        let rows = changes
            .rows(&models, &starts)
            .map_err(DecideError::unusable)?;
        let cosines = SimilarityMetric::Cosine
            .similarity_f64(&rows)
            .map_err(DecideError::unusable)?;
        let prior = manifest.entries.iter();
        let prior: Vec<f64> = prior.map(|entry| entry.share(self.by_rows)).collect();
        self.rule
            .weights(&cosines, &prior)
            .map_err(DecideError::unusable)
    }
}

impl AssignAndAggregate for CollaborationGraph {
    fn name(&self) -> &'static str {
        "pfedgraph"
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn by_rows(&self) -> bool {
        self.by_rows
    }

    /// In every round but the first, which numbers all members.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn assign(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        if self.by_rows {
            manifest.require_rows()?;
        }
        Ok(numbers(state, manifest, self.members, round))
    }

    fn rule(&self) -> &'static str {
        OWN_COALITION
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        if assignment != self.assign(state, manifest, round)? {
            return Err(SettleError::Infeasible(OWN_COALITION.into()));
        }
        let graph = self.graph(state, manifest)?;
        let mut tables = state.tables.clone();
        let mut before = state.models.clone();
        if round == 1 {
            // The one model before the first round belongs to no member.
            if self.since == Since::First {
                tables.insert(FIRST.into(), before.clone());
            }
            before.clear();
        }
        let mean = |row: usize| {
            let entries = manifest.entries.iter().map(|entry| &entry.model);
            let weighed = entries.zip(graph.row(row).iter().copied());
            weighted_mean(&weighed.collect::<Vec<_>>())
        };
        let means = (0..manifest.entries.len()).map(mean);
        let means = means.collect::<Result<Vec<_>, _>>()?;
        Ok(State {
            tables,
            ..state.with(replaced(before, assignment, means))
        })
    }
}
