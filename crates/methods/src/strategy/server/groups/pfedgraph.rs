//! pFedGraph (Ye et al. 2023): for every silo a model of its own, the mean of those like its own.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::aggregation::weights;
use crate::learner::{Task, Training};
use crate::params::{Params, weighted_mean};
use crate::similarity::{Embedding, Metric, Part};
use crate::strategy::catalogue::{positive, require};
use crate::strategy::server::groups::local::numbers;
use crate::strategy::server::means::{
    admit_rows, fits, given, kept, must_be, require_rows, weight,
};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    DecideError, Decision, Entry, Objection, Outcome, Plan, SettleError, Sheet, State, Strategy,
    StrategyError,
};

/// Where the model of before the first round is remembered.
const FIRST: &str = "pfedgraph.first";

/// Options of pFedGraph.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PFedGraph {
    /// What the prior is: by training rows, or all alike.
    pub weight: WeightRule,
    /// α > 0: how much the prior counts against likeness. Default 0.8.
    pub alpha: f64,
    /// From -1 to 1: cosines above this count as 1. Default 0.9; at 1, none do.
    pub alike: f64,
    /// From where changes are measured.
    pub since: Since,
}

/// From where the change of a silo's model is measured.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Since {
    /// From the model of before the first round, which all have in common.
    #[default]
    First,
    /// From the silo's own model of before this round.
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
    pub(crate) fn build(&self, training: Training) -> Result<Box<dyn Strategy>, StrategyError> {
        positive("alpha", self.alpha)?;
        let valid = (-1.0..=1.0).contains(&self.alike);
        require(valid, "alike", "from -1 to 1", self.alike)?;
        Ok(Box::new(Graph {
            training,
            by_rows: self.weight == WeightRule::Exact,
            since: self.since,
            rule: weights::PFedGraph {
                alpha: self.alpha,
                alike: self.alike,
            },
        }))
    }
}

struct Graph {
    training: Training,
    by_rows: bool,
    since: Since,
    rule: weights::PFedGraph,
}

fn unusable(error: impl ToString) -> DecideError {
    DecideError::Unusable {
        entry: 0,
        reason: error.to_string(),
    }
}

impl Graph {
    /// Who has which number of its own.
    fn own(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Vec<u32>, DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        if self.by_rows {
            require_rows(sheet)?;
        }
        Ok(numbers(state, sheet, round))
    }

    /// A row of weights for every entry, in plain `f64`: the same bits everywhere.
    fn graph(&self, state: &State, sheet: &Sheet) -> Result<Matrix, DecideError> {
        let first = state.tables.get(FIRST).and_then(|first| first.first());
        let own = kept(state, sheet)?;
        let start = |&own: &u32| match (self.since, first) {
            (Since::First, Some(first)) => first,
            _ => &state.models[own as usize],
        };
        let starts: Vec<&Params> = own.iter().map(start).collect();
        let models: Vec<_> = sheet.entries.iter().map(|entry| &entry.model).collect();
        let changes = Embedding {
            part: Part::All,
            update: true,
            sketch: None,
        };
        let rows = changes.rows(&models, &starts).map_err(unusable)?;
        let cosines = Metric::Cosine.similarity_f64(&rows).map_err(unusable)?;
        let prior = sheet.entries.iter();
        let prior: Vec<f64> = prior.map(|entry| weight(entry, self.by_rows)).collect();
        self.rule.weights(&cosines, &prior).map_err(unusable)
    }
}

impl Strategy for Graph {
    fn name(&self) -> &'static str {
        "pfedgraph"
    }

    /// But in the first, which numbers everybody.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: false,
            weights: self.by_rows,
        }
    }

    fn admit(&self, entry: &Entry, _: u64) -> Result<(), String> {
        admit_rows(entry, self.by_rows)
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        Ok(given(self.own(state, sheet, round)?))
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        let own = self.own(state, sheet, round)?;
        must_be(decision, &own, "every entry keeps its own coalition")
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        fits(sheet, &decision.assignment)?;
        if decision.assignment != self.own(state, sheet, round)? {
            let rule = "every entry keeps its own coalition";
            return Err(SettleError::Infeasible(rule.into()));
        }
        let graph = self.graph(state, sheet)?;
        let mut tables = state.tables.clone();
        let mut models = state.models.clone();
        if round == 1 {
            // Before the first round there is one model, which is nobody's own.
            if self.since == Since::First {
                tables.insert(FIRST.into(), models.clone());
            }
            models.clear();
        }
        for (row, &own) in decision.assignment.iter().enumerate() {
            let entries = sheet.entries.iter().map(|entry| &entry.model);
            let weighed = entries.zip(graph.row(row).iter().copied());
            let mean = weighted_mean(&weighed.collect::<Vec<_>>())?;
            match models.get_mut(own as usize) {
                Some(model) => *model = mean,
                // New numbers ascend in bundle order.
                None => models.push(mean),
            }
        }
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: State {
                tables,
                ..state.with(models)
            },
        })
    }
}
