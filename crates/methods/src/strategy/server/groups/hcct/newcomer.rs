//! A silo from outside: admitted to a group by the utility of eq. (15), as in the paper's experiment
//! with newcomers.

use super::{Merging, gradient, next, utility};
use crate::learner::{LearnError, Update};
use crate::merging::Alpha;
use crate::params::{Params, weighted_mean};
use crate::strategy::server::means::kept;
use crate::strategy::{Kept, LoadedManifest, Newcomer, SettleError, State};

/// The models that silos started from and those that they trained, in the order of the last manifest
/// that formed groups. Both are models that the round has anyway.
const STARTED: &str = "hcct.started";
const TRAINED: &str = "hcct.trained";
/// Training rows of the silos, and their groups.
const ROWS: &str = "hcct.rows";
const GROUPS: &str = "hcct.groups";
/// Their α, where every silo has its own.
const ALPHAS: &str = "hcct.alphas";

/// The last round that formed groups, by entry: what a newcomer is compared with.
pub(super) struct LastGroups {
    started: Vec<Params>,
    trained: Vec<Params>,
    rows: Vec<u64>,
    groups: Vec<u32>,
    /// Empty where all have the same rule.
    alphas: Vec<f64>,
}

impl LastGroups {
    /// Of this round.
    pub(super) fn of(
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        alpha: Alpha,
    ) -> Result<Self, SettleError> {
        let starts = kept(state, manifest)?.into_iter();
        let all = next::starts(state);
        let started = starts.map(|start| all[start as usize].clone());
        let entries = manifest.entries.iter();
        Ok(Self {
            started: started.collect(),
            trained: entries.clone().map(|entry| entry.model.clone()).collect(),
            rows: entries.map(|entry| entry.weight.unwrap_or(0)).collect(),
            groups: assignment.to_vec(),
            alphas: match alpha {
                Alpha::Each(alphas) => alphas,
                Alpha::Own | Alpha::Share(_) | Alpha::Common(_) => Vec::new(),
            },
        })
    }

    /// As the state keeps them; `None` before any round has formed groups.
    fn read(state: &State) -> Option<Self> {
        let (started, trained) = (state.tables.get(STARTED)?, state.tables.get(TRAINED)?);
        let entries = started.len();
        if entries == 0 || trained.len() != entries {
            return None;
        }
        let groups = state.memory.assignment(GROUPS, entries, entries)?;
        let alphas = match state.memory.get(ALPHAS) {
            Some(Kept::Numbers(alphas)) => alphas.clone(),
            _ => Vec::new(),
        };
        Some(Self {
            rows: state.memory.counts(ROWS, entries)?.to_vec(),
            groups: groups.to_vec(),
            alphas,
            started: started.clone(),
            trained: trained.clone(),
        })
    }

    /// Keeps them in the state.
    pub(super) fn keep(self, state: &mut State) {
        state.tables.insert(STARTED.into(), self.started);
        state.tables.insert(TRAINED.into(), self.trained);
        state.memory.insert(ROWS, Kept::Counts(self.rows));
        state.memory.insert(GROUPS, Kept::Assignment(self.groups));
        if !self.alphas.is_empty() {
            state.memory.insert(ALPHAS, Kept::Numbers(self.alphas));
        }
    }
}

impl Merging {
    /// In `round` the newcomer trains once from the mean of what the others started from (the global model in
    /// the first round), by rows, and joins the group that gains most by it; one by which no group
    /// gains stays with what it trained. Where every member has an α of its own, that of the newcomer is
    /// their mean.
    pub(super) fn admit_newcomer(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        let Some(last) = LastGroups::read(state) else {
            return newcomer.best_model(state, None);
        };
        let LastGroups {
            started,
            trained,
            mut rows,
            groups,
            mut alphas,
        } = last;
        let unsupported = |error: &dyn std::fmt::Display| LearnError::Failed(error.to_string());
        let weights = rows.iter().map(|&rows| rows as f64);
        let weighted: Vec<_> = started.iter().zip(weights).collect();
        let start = weighted_mean(&weighted).map_err(|error| unsupported(&error))?;
        let Update {
            shared, samples, ..
        } = newcomer.train(&start, &self.setting.training.at(round))?;
        let mut gradients: Vec<_> = started
            .iter()
            .zip(&trained)
            .map(|(start, model)| gradient(start, model))
            .collect();
        gradients.push(gradient(&start, &shared));
        rows.push(samples);
        let alpha = match &self.options.alpha {
            Alpha::Each(_) => {
                alphas.push(alphas.iter().sum::<f64>() / alphas.len().max(1) as f64);
                Alpha::Each(alphas)
            }
            alpha => alpha.clone(),
        };
        let utility = self
            .compared(state, &gradients)
            .and_then(|compared| utility(&gradients, &compared, &rows, &alpha))
            .map_err(|error| unsupported(&error))?;
        let group = utility.admit(&groups).group;
        let model = group.and_then(|group| next::model_of(state, group));
        Ok(model.cloned().unwrap_or(shared))
    }
}
