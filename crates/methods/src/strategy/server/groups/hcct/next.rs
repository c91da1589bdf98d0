//! Groups that are formed before the next round, as in the paper (`grouping = "paper"`).
//!
//! Until it trains again a silo holds the model of the group in which it trained, and then it starts
//! from that of its next group. So a coalition of the state is a pair of the two: its model is what
//! its members hold, and the state keeps what they start from, and the number of the next group.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::aggregation::Aggregation;
use crate::params::Params;
use crate::strategy::server::means::{coalition_means, combined, kept};
use crate::strategy::{Kept, LoadedManifest, ModelEntry, Outcome, SettleError, State};

/// The model that the members of every coalition start from, where that is not what they hold.
const STARTS: &str = "hcct.starts";
/// The next group of every coalition, where groups are formed before the next round.
const NEXT: &str = "hcct.next";

/// The models that the members of every coalition start from.
pub(super) fn starts(state: &State) -> &[Params] {
    let starts = state.tables.get(STARTS);
    let starts = starts.filter(|starts| starts.len() == state.models.len());
    starts.map_or(state.models.as_slice(), Vec::as_slice)
}

/// The group in which entries of these coalitions train.
pub(super) fn groups(state: &State, coalitions: &[u32]) -> Vec<u32> {
    let count = state.models.len();
    let next = state.memory.assignment(NEXT, count, count);
    let group = |&own: &u32| next.map_or(own, |next| next[own as usize]);
    coalitions.iter().map(group).collect()
}

fn rows(entry: &ModelEntry) -> f64 {
    entry.weight.unwrap_or(0) as f64
}

/// The mean of every group by what its members trained. Groups without entries have none.
fn trained(
    rule: &Aggregation,
    manifest: &LoadedManifest,
    groups: &[u32],
) -> Result<BTreeMap<u32, Params>, SettleError> {
    let mut means = BTreeMap::new();
    for &group in groups {
        if let Entry::Vacant(mean) = means.entry(group) {
            let pairs = manifest.entries.iter().zip(groups);
            let members = pairs.filter(|(_, own)| **own == group);
            let members: Vec<_> = members
                .map(|(entry, _)| (&entry.model, rows(entry)))
                .collect();
            mean.insert(combined(rule, &members)?);
        }
    }
    Ok(means)
}

/// After a round with new groups for the next: every silo holds the mean of the group in which it
/// trained, and starts from the mean of what the members of its next group hold, by rows.
pub(super) fn go_on(
    rule: &Aggregation,
    state: State,
    manifest: &LoadedManifest,
    next: &[u32],
) -> Result<Outcome, SettleError> {
    manifest.fits(next)?;
    let groups = groups(&state, &kept(&state, manifest)?);
    let held = trained(rule, manifest, &groups)?;
    let mut begun = BTreeMap::new();
    for &group in next {
        if let Entry::Vacant(mean) = begun.entry(group) {
            let each = manifest.entries.iter().zip(&groups).zip(next);
            let members = each.filter(|(_, own)| **own == group);
            let members: Vec<_> = members
                .map(|((entry, own), _)| (&held[own], rows(entry)))
                .collect();
            mean.insert(combined(rule, &members)?);
        }
    }
    // Numbered in the order of their first entries.
    let mut pairs: Vec<(u32, u32)> = Vec::new();
    let mut assignment = Vec::with_capacity(next.len());
    for pair in groups.iter().copied().zip(next.iter().copied()) {
        let known = pairs.iter().position(|known| *known == pair);
        assignment.push(known.unwrap_or(pairs.len()) as u32);
        if known.is_none() {
            pairs.push(pair);
        }
    }
    let models = pairs
        .iter()
        .map(|(held_by, _)| held[held_by].clone())
        .collect();
    let starts = pairs.iter().map(|(_, next)| begun[next].clone()).collect();
    let mut state = state.with(models);
    state.tables.insert(STARTS.into(), starts);
    let next = pairs.iter().map(|(_, next)| *next).collect();
    state.memory.insert(NEXT, Kept::Assignment(next));
    Ok(Outcome { assignment, state })
}

/// After a round without new groups: every silo holds the mean of the group in which it trained.
pub(super) fn stay(
    rule: &Aggregation,
    state: &State,
    manifest: &LoadedManifest,
    coalitions: Vec<u32>,
) -> Result<Outcome, SettleError> {
    if !state.tables.contains_key(STARTS) && state.memory.get(NEXT).is_none() {
        let count = state.models.len();
        let models = coalition_means(rule, manifest, &coalitions, &state.models, count, rows)?;
        return Ok(Outcome {
            assignment: coalitions,
            state: state.with(models),
        });
    }
    let held = trained(rule, manifest, &groups(state, &coalitions))?;
    let all: Vec<u32> = (0..state.models.len() as u32).collect();
    let each = groups(state, &all).into_iter().zip(&state.models);
    let models = each.map(|(group, before)| held.get(&group).unwrap_or(before).clone());
    let mut state = state.with(models.collect());
    state.tables.remove(STARTS);
    Ok(Outcome {
        assignment: coalitions,
        state,
    })
}

/// The model that a newcomer to this group is given.
pub(super) fn model_of(state: &State, group: u32) -> Option<&Params> {
    let all: Vec<u32> = (0..state.models.len() as u32).collect();
    let at = groups(state, &all)
        .into_iter()
        .position(|own| own == group)?;
    starts(state).get(at)
}
