//! What the strategies share: coalition means and checks of their shape.

use crate::aggregation::{Aggregation, References};
use crate::learner::Training;
use crate::params::{Params, squared_distance, weighted_mean};
use crate::strategy::{DecideError, Entry, Objection, SettleError, Sheet, State};

/// What all methods with coalition means have in common.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    /// What a member does in a round.
    pub(crate) training: Training,
    /// How the models of a coalition become one.
    pub(crate) rule: Aggregation,
}

/// The model of every coalition 0..`coalitions`: its entries in bundle order, combined by `rule`.
/// One too small for what a rule counts on takes the coordinate median, which needs no number. A
/// coalition without entries keeps its model of `before`.
pub(crate) fn coalition_means(
    rule: &Aggregation,
    sheet: &Sheet,
    assignment: &[u32],
    before: &[Params],
    coalitions: usize,
    weight: impl Fn(&Entry) -> f64,
) -> Result<Vec<Params>, SettleError> {
    fits(sheet, assignment)?;
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
            let members: Vec<_> = sheet
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
            Ok(rule.combine(members, References::default())?)
        }
        rule => Ok(rule.combine(members, References::default())?),
    }
}

/// Whether decision and sheet are of one length.
pub(crate) fn fits(sheet: &Sheet, assignment: &[u32]) -> Result<(), SettleError> {
    let (assigned, entries) = (assignment.len(), sheet.entries.len());
    if assigned == entries {
        Ok(())
    } else {
        Err(SettleError::Mismatch { assigned, entries })
    }
}

/// Checks a decision that leaves nothing to choose.
pub(crate) fn must_be(
    decision: &crate::strategy::Decision,
    expected: &[u32],
    rule: &str,
) -> Result<(), Objection> {
    if decision.assignment != expected {
        return Err(Objection::Infeasible(rule.into()));
    }
    no_candidates(decision)?;
    for stated in [decision.objective, decision.lower_bound] {
        if stated != 0.0 {
            return Err(Objection::Misstated {
                stated,
                actual: 0.0,
            });
        }
    }
    Ok(())
}

/// Refuses a decision that leaves something to a later round.
pub(crate) fn no_candidates(decision: &crate::strategy::Decision) -> Result<(), Objection> {
    if decision.candidates.is_empty() {
        return Ok(());
    }
    let why = "it names further assignments, for which this round has no use";
    Err(Objection::Infeasible(why.into()))
}

/// The decision that [`must_be`] accepts.
pub(crate) fn given(assignment: Vec<u32>) -> crate::strategy::Decision {
    crate::strategy::Decision {
        assignment,
        ..crate::strategy::Decision::default()
    }
}

/// Where every entry belongs as long as coalitions stay as they are: the coalition that it started
/// from, or for one that has none (a newcomer) that whose model is nearest. A coalition that does
/// not exist counts as none: a member that claims one must not cost the others their round.
pub(crate) fn kept(state: &State, sheet: &Sheet) -> Result<Vec<u32>, DecideError> {
    if sheet.entries.is_empty() {
        return Err(DecideError::NoEntries);
    }
    let place = |entry: &Entry| match entry.coalition {
        Some(own) if (own as usize) < state.models.len() => own,
        _ => nearest(&entry.model, &state.models),
    };
    Ok(sheet.entries.iter().map(place).collect())
}

/// Whether an entry says on how many rows it was trained, where that is asked for.
pub(crate) fn admit_rows(entry: &Entry, asked: bool) -> Result<(), String> {
    match entry.weight {
        None | Some(0) if asked => Err("the number of training rows is missing".into()),
        _ => Ok(()),
    }
}

/// What an entry weighs: its rows, or as much as any other.
pub(crate) fn weight(entry: &Entry, by_rows: bool) -> f64 {
    match entry.weight {
        Some(rows) if by_rows => rows as f64,
        _ => 1.0,
    }
}

/// Whether every entry says on how many rows it was trained, and there is one.
pub(crate) fn require_rows(sheet: &Sheet) -> Result<(), DecideError> {
    if sheet.entries.is_empty() {
        return Err(DecideError::NoEntries);
    }
    let without = |entry: &Entry| entry.weight.is_none_or(|rows| rows == 0);
    match sheet.entries.iter().position(without) {
        Some(entry) => Err(DecideError::NoWeight { entry }),
        None => Ok(()),
    }
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
