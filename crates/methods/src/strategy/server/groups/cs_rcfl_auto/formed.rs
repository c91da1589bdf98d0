//! State that the first round of a pair leaves to the second, and the layout of what that reports.

use std::sync::Arc;

use super::MOST;
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::strategy::{Kept, LoadedManifest, ModelEntry, State};

/// The only tensor of what a silo contributes in a measuring round: what its coalition's mean
/// model loses under every candidate, 0 where there are fewer candidates than places.
pub(super) const LOSSES: &str = "losses";

/// In the state between the two rounds, by memory, where models count by rows: the rows of every
/// entry.
const ROWS: &str = "coalitions.rows";
/// In the state between the two rounds, by memory: the candidates.
const CANDIDATES: &str = "coalitions.candidates";
/// In the state between the two rounds, by memory: which of the kept start models every entry started
/// from; and by table, these models.
const STARTS: &str = "coalitions.starts";
/// In the state of coalitions that were measured, by memory: the number of silos of each, where one is alone in its coalition
/// and models have exact fits.
const SILOS: &str = "coalitions.silos";

/// State that the first round of a pair leaves to the second; entry by entry, the models are
/// [`State::models`].
pub(super) struct Formed<'a> {
    pub(super) models: &'a [Params],
    pub(super) candidates: &'a [Vec<u32>],
    pub(super) starts: Vec<&'a Params>,
    /// Weight of every model in a mean.
    pub(super) weights: Vec<f64>,
}

impl<'a> Formed<'a> {
    /// Reads it; none of it is missing from a state that the first round left.
    pub(super) fn read(state: &'a State) -> Option<Self> {
        let models = state.models.as_slice();
        let table = state.tables.get(STARTS)?;
        let starts = state.memory.assignment(STARTS, models.len(), table.len())?;
        let rows = state.memory.counts(ROWS, models.len());
        Some(Self {
            models,
            weights: match rows {
                Some(rows) => rows.iter().map(|&rows| rows as f64).collect(),
                None => vec![1.0; models.len()],
            },
            candidates: state.memory.candidates(CANDIDATES, models.len())?,
            starts: starts.iter().map(|&at| &table[at as usize]).collect(),
        })
    }
}

/// The state after the first round: every entry's local model, the groupings, what the entries started
/// from, and where models count `by_rows`, the rows.
pub(super) fn leave(
    before: &State,
    manifest: &LoadedManifest,
    candidates: &[Vec<u32>],
    by_rows: bool,
) -> State {
    let models = manifest.entries.iter().map(|entry| entry.model.clone());
    let mut after = before.with(models.collect());
    let start = |entry: &ModelEntry| match entry.coalition {
        Some(start) if (start as usize) < before.models.len() => start,
        _ => 0,
    };
    let starts = manifest.entries.iter().map(start).collect();
    let memory = &mut after.memory;
    memory.insert(CANDIDATES, Kept::Candidates(candidates.to_vec()));
    memory.insert(STARTS, Kept::Assignment(starts));
    if by_rows {
        let rows = manifest
            .entries
            .iter()
            .map(|entry| entry.weight.unwrap_or(0));
        memory.insert(ROWS, Kept::Counts(rows.collect()));
    }
    after.tables.insert(STARTS.into(), before.models.clone());
    after
}

/// The state without what [`leave`] added.
pub(super) fn forget(mut state: State) -> State {
    state.memory.remove(CANDIDATES);
    state.memory.remove(STARTS);
    state.memory.remove(ROWS);
    state.memory.remove(SILOS);
    state.tables.remove(STARTS);
    state
}

/// Keeps the numbers of silos of these coalitions, if one is alone.
pub(super) fn keep_silos(state: &mut State, grouping: &[u32]) {
    let mut silos = vec![0; state.models.len()];
    for &coalition in grouping {
        silos[coalition as usize] += 1;
    }
    if silos.contains(&1) {
        state.memory.insert(SILOS, Kept::Counts(silos));
    }
}

/// Returns whether the silo of this coalition is alone in it, and models have exact fits.
pub(super) fn is_alone(state: &State, coalition: u32) -> bool {
    let silos = state.memory.counts(SILOS, state.models.len());
    silos.is_some_and(|silos| silos.get(coalition as usize) == Some(&1))
}

/// The members of the coalition of `own` in a grouping.
pub(super) fn coalition(grouping: &[u32], own: usize) -> Vec<usize> {
    let members = 0..grouping.len();
    members
        .filter(|&member| grouping[member] == grouping[own])
        .collect()
}

/// Layout of a report.
pub(super) fn report() -> Arc<Layout> {
    let losses = TensorSpec::new(LOSSES, [MOST + 1], Role::Buffer);
    Layout::new(vec![losses]).expect("one tensor has no equal names")
}
