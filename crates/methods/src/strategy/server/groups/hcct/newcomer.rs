//! A silo from outside: admitted to a group by the utility of eq. (15), as in the paper's experiment
//! with newcomers.

use std::collections::BTreeMap;

use super::{Merging, gradient, utility};
use crate::learner::{LearnError, Update};
use crate::params::{Params, weighted_mean};
use crate::strategy::server::means::kept;
use crate::strategy::{Newcomer, SettleError, Sheet, State};

/// What silos started from and what they trained, in the order of the last sheet that formed
/// groups. Both are models that the round has anyway.
const STARTED: &str = "hcct.started";
const TRAINED: &str = "hcct.trained";
/// Their rows and their groups.
const ROWS: &str = "hcct.rows";
const GROUPS: &str = "hcct.groups";

/// Keeps what a newcomer is compared with.
pub(super) fn remember(
    state: &State,
    sheet: &Sheet,
    assignment: &[u32],
    memory: &mut BTreeMap<String, Vec<f64>>,
    tables: &mut BTreeMap<String, Vec<Params>>,
) -> Result<(), SettleError> {
    let starts = kept(state, sheet)?.into_iter();
    let started = starts.map(|start| state.models[start as usize].clone());
    let trained = sheet.entries.iter().map(|entry| entry.model.clone());
    let rows = sheet
        .entries
        .iter()
        .map(|entry| entry.weight.unwrap_or(0) as f64);
    tables.insert(STARTED.into(), started.collect());
    tables.insert(TRAINED.into(), trained.collect());
    memory.insert(ROWS.into(), rows.collect());
    let groups = assignment.iter().map(|&group| group.into());
    memory.insert(GROUPS.into(), groups.collect());
    Ok(())
}

impl Merging {
    /// The newcomer trains once from the mean of what the others started from (the common model in
    /// the first round), by rows, and joins the group that gains most by it; one by which no group
    /// gains stays with what it trained.
    pub(super) fn admit_newcomer(
        &self,
        state: &State,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        let remembered = (
            state.tables.get(STARTED),
            state.tables.get(TRAINED),
            state.memory.get(ROWS),
            state.memory.get(GROUPS),
        );
        let (Some(started), Some(trained), Some(rows), Some(groups)) = remembered else {
            // No round has formed groups yet.
            return Ok(state.models[0].clone());
        };
        let unsupported = |error: &dyn std::fmt::Display| LearnError::Failed(error.to_string());
        let weighted: Vec<_> = started.iter().zip(rows.iter().copied()).collect();
        let start = weighted_mean(&weighted).map_err(|error| unsupported(&error))?;
        let Update {
            shared, samples, ..
        } = newcomer.train(&start, &self.basis.training)?;
        let mut gradients: Vec<_> = started
            .iter()
            .zip(trained)
            .map(|(start, model)| gradient(start, model))
            .collect();
        gradients.push(gradient(&start, &shared));
        let mut rows: Vec<_> = rows.iter().map(|&rows| rows as u64).collect();
        rows.push(samples);
        let groups: Vec<_> = groups.iter().map(|&group| group as u32).collect();
        let utility = self
            .compared(state, &gradients)
            .and_then(|compared| utility(&gradients, &compared, &rows, &self.options.alpha))
            .map_err(|error| unsupported(&error))?;
        let group = utility.admit(&groups).group;
        let model = group.and_then(|group| state.models.get(group as usize));
        Ok(model.cloned().unwrap_or(shared))
    }
}
