//! CFL (Sattler, Müller & Samek 2021): a cluster is split in two when its global model has settled
//! and its silos still pull apart.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering;
use crate::clustering::cfl::Linkage;
use crate::learner::Training;
use crate::params::Params;
use crate::similarity::{Embedding, Part, gram_f64};
use crate::strategy::options::{MethodSetting, not_negative};
use crate::strategy::server::means::{coalition_means, kept};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    AssignAndAggregate, DecideError, LoadedManifest, ModelEntry, SettleError, State, Strategy,
    StrategyError,
};

/// Options of CFL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Cfl {
    /// Weight of a silo's model in the mean of its cluster. Default equal, as in the authors' code.
    pub weight: WeightRule,
    /// Threshold ε₁, in the unit of the weights: a cluster is split only if the norm of its mean
    /// update is below it, so that its global model has converged. Default 0.4, from the authors'
    /// code; it depends on the model and has to be tuned.
    #[schemars(range(min = 0), extend("x-unit" = "weights"))]
    pub mean_below: f64,
    /// Threshold ε₂, in the unit of the weights: a cluster is split only if the largest norm of a
    /// member's update is above it, so that the model does not suit that member. Default 1.6, from
    /// the authors' code; it depends on the model and has to be tuned.
    #[schemars(range(min = 0), extend("x-unit" = "weights"))]
    pub largest_above: f64,
    /// Clusters of at most this many silos are never split. Default 2, from the authors' code.
    #[schemars(extend("x-unit" = "silos"))]
    pub larger_than: usize,
    /// Number of first rounds in which no cluster is split. Default 20, from the authors' code.
    #[schemars(extend("x-unit" = "rounds"))]
    pub after: u64,
    /// Linkage by which a cluster is split in two. Default single, as in the paper.
    pub linkage: Linkage,
}

impl Default for Cfl {
    fn default() -> Self {
        let clustering::CflRule {
            mean_below,
            largest_above,
            larger_than,
            after_round,
            linkage,
        } = clustering::CflRule::default();
        Self {
            weight: WeightRule::Equal,
            mean_below,
            largest_above,
            larger_than,
            after: after_round,
            linkage,
        }
    }
}

impl Cfl {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("mean-below", self.mean_below)?;
        not_negative("largest-above", self.largest_above)?;
        Ok(Box::new(Splitting {
            setting,
            by_rows: self.weight == WeightRule::Exact,
            rule: clustering::CflRule {
                mean_below: self.mean_below,
                largest_above: self.largest_above,
                larger_than: self.larger_than,
                after_round: self.after,
                linkage: self.linkage,
            },
        }))
    }
}

struct Splitting {
    setting: MethodSetting,
    by_rows: bool,
    rule: clustering::CflRule,
}

/// Products of what the entries changed in models that they started from, in plain `f64`: the same
/// bits everywhere.
fn products(manifest: &LoadedManifest, starts: &[&Params]) -> Result<Matrix, DecideError> {
    let models: Vec<_> = manifest.entries.iter().map(|entry| &entry.model).collect();
    let changes = Embedding {
        part: Part::All,
        update: true,
        sketch: None,
    };
    let rows = changes
        .rows(&models, starts)
        .map_err(DecideError::unusable)?;
    gram_f64(&rows).map_err(DecideError::unusable)
}

/// Numbers for the parts of clusters that were there before: of a cluster in two, the part of its
/// first entry keeps the number, and the other gets the next new one, up to `most` clusters; beyond,
/// a cluster stays in one piece.
///
/// Where every member stays in its cluster there are never more clusters than members. A member
/// that claims to belong to one cluster after the other can leave empty ones behind; `most` bounds
/// how many.
fn numbered(own: &[u32], parts: &[u32], clusters: usize, most: usize) -> Vec<u32> {
    let mut continued = vec![false; clusters];
    let mut numbers: Vec<Option<u32>> = vec![None; parts.len()];
    let mut next = clusters;
    let number = |(&own, &part): (&u32, &u32)| {
        *numbers[part as usize].get_or_insert_with(|| {
            let second = std::mem::replace(&mut continued[own as usize], true);
            if second && next < most {
                next += 1;
                next as u32 - 1
            } else {
                own
            }
        })
    };
    own.iter().zip(parts).map(number).collect()
}

impl AssignAndAggregate for Splitting {
    fn name(&self) -> &'static str {
        "cfl"
    }

    fn training(&self) -> &Training {
        &self.setting.training
    }

    fn by_rows(&self) -> bool {
        self.by_rows
    }

    fn keeps_numbers(&self, _: u64) -> bool {
        true
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
        let own = kept(state, manifest)?;
        if round <= self.rule.after_round {
            return Ok(own);
        }
        let starts: Vec<_> = own.iter().map(|&own| &state.models[own as usize]).collect();
        let products = products(manifest, &starts)?;
        let parts = self.rule.refine(&products, &own, round);
        let parts = parts.map_err(DecideError::unusable)?;
        let most = self.setting.members.max(manifest.entries.len());
        Ok(numbered(&own, &parts, state.models.len(), most))
    }

    fn rule(&self) -> &'static str {
        "every entry keeps its cluster, unless that is to be split"
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        _: u64,
    ) -> Result<State, SettleError> {
        let before = &state.models;
        let last = assignment.iter().max().map_or(0, |&last| last as usize + 1);
        let most = before.len() + manifest.entries.len();
        let clusters = last.clamp(before.len(), most);
        let weight = |entry: &ModelEntry| entry.share(self.by_rows);
        let rule = &self.setting.rule;
        let models = coalition_means(rule, manifest, assignment, before, clusters, weight)?;
        Ok(state.with(models))
    }
}
