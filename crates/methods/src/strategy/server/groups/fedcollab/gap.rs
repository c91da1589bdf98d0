//! The gap of a silo: how much more its local model loses on held-out rows than on those that it was
//! trained on.
//!
//! It has two uses. A cross-evaluation compares what a silo's local model loses on its own rows, which
//! it was trained on, with what others lose there, which were not; without the gap even silos
//! of one distribution look different. And it says how much a silo lacks data: the bound has `C/√m`
//! for it, so `C` is the mean of `gap·√m`.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Metrics, Split, Update};
use crate::params::{Attached, Layout, Params, Role, TensorSpec};
use crate::strategy::server::groups::cs_rcfl_auto::FoldModels;
use crate::strategy::{EquipError, Fitting, LoadedManifest, ModelEntry, Participant};

/// Name of what is attached to a contribution.
const REPORT: &str = "report";
/// Name of the only tensor of the report.
const GAP: &str = "gap";

/// C where no silo can hold rows out, so that no gap is known.
const UNKNOWN: f64 = 1.0;

fn attached(model: &Arc<Layout>) -> Result<Attached, EquipError> {
    let gap = Layout::new(vec![TensorSpec::new(GAP, [1], Role::Buffer)])?;
    Ok(Attached::new(model, &[(REPORT, &gap)])?)
}

/// Refuses a model to which no gap can be attached.
pub(super) fn equip(learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
    attached(&learner.layout())?;
    Ok(learner)
}

/// Layout of a contribution.
pub(super) fn contribution(model: &Arc<Layout>) -> Arc<Layout> {
    let attached = attached(model).expect("the learner was equipped");
    attached.whole().clone()
}

/// The update with the gap of its model, which is 0 where no rows can be held out.
pub(super) fn measured(
    participant: Participant<'_>,
    start: &Params,
    update: Update,
    fit: &Fitting,
    folds: usize,
) -> Result<Update, LearnError> {
    let Participant {
        learner, radius, ..
    } = participant;
    let model = &update.shared;
    let (personal, go_on) = (&update.personal, &mut |_| {
        std::ops::ControlFlow::Continue(())
    });
    let access = learner.row_access().ok();
    let divisible = access.and_then(|rows| rows.holding_out(0, 2, participant.seed));
    let gap = match divisible {
        None => 0.0,
        Some(_) => {
            let radius = radius.get(learner, model, personal)?;
            let seen = learner.loss(model, personal, radius, Split::Train)?;
            let held_out = FoldModels::fit(participant, start, fit, folds, go_on)?;
            let unseen = held_out.own_loss(radius)?;
            (unseen - seen).max(0.0)
        }
    };
    let attached =
        attached(model.layout()).map_err(|error| LearnError::Failed(error.to_string()))?;
    let gap = Params::from_values(attached.part(0), &[gap as f32]);
    Ok(Update {
        shared: attached.join(model, &[&gap]),
        metrics: Metrics { ..update.metrics },
        ..update
    })
}

/// The gap that an entry reports.
pub(super) fn of(entry: &ModelEntry) -> f64 {
    let gap = entry.model.tensor(&format!("{REPORT}.{GAP}"));
    gap.and_then(|gap| gap.first())
        .map_or(0.0, |&gap| gap.into())
}

/// Refuses a gap that no silo can report.
pub(super) fn admit(entry: &ModelEntry) -> Result<(), String> {
    let gap = of(entry);
    let holds = gap.is_finite() && gap >= 0.0;
    let why = || format!("the report holds a gap of {gap}, which is not a loss of at least 0");
    holds.then_some(()).ok_or_else(why)
}

/// C, from the gaps of silos with these numbers of rows.
pub(super) fn penalty(gaps: &[f64], rows: &[u64]) -> f64 {
    let each = gaps.iter().zip(rows).filter(|(gap, _)| **gap > 0.0);
    let each: Vec<f64> = each
        .map(|(gap, &rows)| gap * (rows as f64).sqrt())
        .collect();
    if each.is_empty() {
        UNKNOWN
    } else {
        each.iter().sum::<f64>() / gaps.len() as f64
    }
}

/// The contributed model by itself.
pub(super) fn bare(contributed: &Params) -> Params {
    let attached = Attached::find(contributed.layout(), &[REPORT]);
    attached.split(contributed).0
}

/// The manifest with the models by themselves.
pub(super) fn without(manifest: &LoadedManifest) -> LoadedManifest {
    let mut manifest = manifest.clone();
    for entry in &mut manifest.entries {
        entry.model = bare(&entry.model);
    }
    manifest
}
