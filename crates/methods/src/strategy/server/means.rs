//! Coalition means, which most methods share.

use crate::aggregation::{Aggregation, ReferenceModels};
use crate::params::{Params, squared_distance, weighted_mean};
use crate::strategy::{DecideError, LoadedManifest, ModelEntry, SettleError, State};

/// The model of every coalition 0..`coalitions`: its entries in the order of the contribution list, combined by `rule`.
/// One too small for what a rule counts on takes the coordinate median, which needs no number. A
/// coalition without entries keeps its model of `before`.
pub(crate) fn coalition_means(
    rule: &Aggregation,
    manifest: &LoadedManifest,
    assignment: &[u32],
    before: &[Params],
    coalitions: usize,
    weight: impl Fn(&ModelEntry) -> f64,
) -> Result<Vec<Params>, SettleError> {
    manifest.fits(assignment)?;
    if let Some(beyond) = assignment
        .iter()
        .find(|&&coalition| coalition as usize >= coalitions)
    {
        return Err(SettleError::Infeasible(format!(
            "coalition {beyond} of {coalitions} does not exist"
        )));
    }
    (0..coalitions)
        .map(|coalition| {
            let members: Vec<_> = manifest
                .entries
                .iter()
                .zip(assignment)
                .filter(|(_, own)| **own as usize == coalition)
                .map(|(entry, _)| (&entry.model, weight(entry)))
                .collect();
            match (members.as_slice(), before.get(coalition)) {
                ([], Some(kept)) => Ok(kept.clone()),
                (members, _) => combined(rule, members),
            }
        })
        .collect()
}

/// The model of one coalition, from its members with their weights.
pub(crate) fn combined(
    rule: &Aggregation,
    members: &[(&Params, f64)],
) -> Result<Params, SettleError> {
    match rule {
        Aggregation::Mean => Ok(weighted_mean(members)?),
        rule if members.len() < rule.least_models() => {
            let rule = Aggregation::CoordinateMedian;
            Ok(rule.combine(members, ReferenceModels::default())?)
        }
        rule => Ok(rule.combine(members, ReferenceModels::default())?),
    }
}

/// Returns where every entry belongs as long as coalitions stay as they are: the coalition that it started
/// from, or for one that has none (a newcomer) that whose model is nearest. A coalition that does
/// not exist counts as none: a member that claims one must not cost the others their round.
pub(crate) fn kept(state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError> {
    manifest.not_empty()?;
    let place = |entry: &ModelEntry| match entry.coalition {
        Some(own) if (own as usize) < state.models.len() => own,
        _ => nearest(&entry.model, &state.models),
    };
    Ok(manifest.entries.iter().map(place).collect())
}

/// Position of the model nearest to `model` in ℓ2 (FeSEM's rule); the first of equals.
fn nearest(model: &Params, models: &[Params]) -> u32 {
    let mut best = (f64::INFINITY, 0);
    for (position, candidate) in (0..).zip(models) {
        let distance = squared_distance(model, candidate).unwrap_or(f64::INFINITY);
        if distance < best.0 {
            best = (distance, position);
        }
    }
    best.1
}
