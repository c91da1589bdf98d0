//! What the first round of a pair leaves to the second, and the layout of what that reports.

use std::sync::Arc;

use super::MOST;
use crate::params::{Layout, Params, Role, TensorSpec};
use crate::strategy::{Entry, Sheet, State};

/// The only tensor of what a silo contributes in a measuring round: what its coalition's mean
/// model loses under every candidate, 0 where there are fewer candidates than places.
pub(super) const LOSSES: &str = "losses";

/// In the state between the two rounds, by memory: the candidates, one after the other.
const CANDIDATES: &str = "coalitions.candidates";
/// The same: which of the kept start models every entry started from; and by table, these models.
const STARTS: &str = "coalitions.starts";

/// What the first round of a pair leaves to the second; entry by entry, the models are
/// [`State::models`].
pub(super) struct Formed<'a> {
    pub(super) models: &'a [Params],
    pub(super) candidates: Vec<Vec<u32>>,
    pub(super) starts: Vec<&'a Params>,
}

impl<'a> Formed<'a> {
    /// Reads it; none of it is missing from a state that the first round left.
    pub(super) fn read(state: &'a State) -> Option<Self> {
        let models = state.models.as_slice();
        let whole = |numbers: &Vec<f64>| numbers.iter().map(|&number| number as u32).collect();
        let candidates: Vec<u32> = state.memory.get(CANDIDATES).map(whole)?;
        let places: Vec<u32> = state.memory.get(STARTS).map(whole)?;
        let table = state.tables.get(STARTS)?;
        let starts = places.iter().map(|&place| table.get(place as usize));
        let starts = starts.collect::<Option<Vec<_>>>()?;
        let fit = !models.is_empty() && candidates.len().is_multiple_of(models.len());
        (fit && starts.len() == models.len() && !candidates.is_empty()).then(|| Self {
            models,
            candidates: candidates
                .chunks(models.len())
                .map(<[u32]>::to_vec)
                .collect(),
            starts,
        })
    }
}

/// The state after the first round: every entry's own model, the divisions, and what the entries
/// started from.
pub(super) fn leave(before: &State, sheet: &Sheet, candidates: &[Vec<u32>]) -> State {
    let models = sheet.entries.iter().map(|entry| entry.model.clone());
    let mut after = before.with(models.collect());
    let start = |entry: &Entry| match entry.coalition {
        Some(start) if (start as usize) < before.models.len() => start,
        _ => 0,
    };
    let candidates = candidates.iter().flatten().copied();
    let starts = sheet.entries.iter().map(start);
    let (candidates, starts) = (candidates.map(f64::from), starts.map(f64::from));
    after.memory.insert(CANDIDATES.into(), candidates.collect());
    after.memory.insert(STARTS.into(), starts.collect());
    after.tables.insert(STARTS.into(), before.models.clone());
    after
}

/// The state without what [`leave`] added.
pub(super) fn forget(mut state: State) -> State {
    state.memory.remove(CANDIDATES);
    state.memory.remove(STARTS);
    state.tables.remove(STARTS);
    state
}

/// The members of the coalition of `own` in a division.
pub(super) fn coalition(division: &[u32], own: usize) -> Vec<usize> {
    let members = 0..division.len();
    members
        .filter(|&member| division[member] == division[own])
        .collect()
}

/// Layout of a report.
pub(super) fn report() -> Arc<Layout> {
    let losses = TensorSpec::new(LOSSES, [MOST + 1], Role::Buffer);
    Layout::new(vec![losses]).expect("one tensor has no equal names")
}
