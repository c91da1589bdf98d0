//! Check that programs measure the metric that is agreed: one that nobody measures would be missing in every
//! round and in every mean.

use std::collections::BTreeSet;

use methods::learner::Split;

use crate::data::DataError;
use crate::metrics::MetricName;
use crate::study::StudySilo;

/// The metrics that a silo's learner gives for a model.
struct GivenMetrics {
    names: Vec<String>,
    /// Why its outputs, which it says that it can give, give none.
    why: Option<String>,
}

/// The metrics that a silo's learner gives for the model before the first round, where the agreed one is not
/// among them; `None` where it is, or where nothing can be measured yet, for which there are other errors.
fn lacking(silo: &StudySilo, metric: MetricName, seed: u64) -> Option<GivenMetrics> {
    let learner = &*silo.learner;
    let (model, personal) = (learner.initial(seed), learner.initial_personal(seed));
    let parts = [Split::Test, Split::Validation];
    let split = parts.into_iter().find(|split| silo.rows.of(*split) > 0)?;
    let found = learner.evaluate(&model, &personal, split).ok()?.values;
    if found.contains_key(metric.key()) {
        return None;
    }
    let mut names: BTreeSet<String> = found.into_keys().collect();
    let more = learner.outputs().ok().map(|outputs| {
        let values = outputs.outputs(&model, &personal, split)?;
        outputs.measure(&model, &personal, &values, split)
    });
    let (more, why) = match more {
        Some(Ok(more)) => (Some(more), None),
        Some(Err(why)) => (None, Some(why.to_string())),
        None => (None, None),
    };
    names.extend(more.into_iter().flat_map(|more| more.values.into_keys()));
    let names = names.into_iter().collect();
    Some(GivenMetrics { names, why })
}

/// Refuses an agreed metric that no silo of a simulation measures.
///
/// # Errors
/// [`DataError::Config`]: what the first one measures, and what to do.
pub(super) fn measured_somewhere(
    silos: &[StudySilo],
    metric: MetricName,
    seed: u64,
) -> Result<(), DataError> {
    let mut first = None;
    for silo in silos {
        match lacking(silo, metric, seed) {
            Some(found) => {
                first.get_or_insert((silo, found));
            }
            // Some silos may have no rows to measure it on.
            None if silo.rows.test + silo.rows.validation > 0 => return Ok(()),
            None => {}
        }
    }
    match first {
        None => Ok(()),
        Some((silo, found)) => Err(DataError::Config(format!(
            "no program measures the agreed metric {:?}: {}",
            metric.key(),
            remedy(&silo.name, metric, &found)
        ))),
    }
}

/// Refuses an agreed metric that the program of this institution does not measure. The area under the ROC
/// curve may be missing because the rows have one class only, and concordance because no two are comparable: that is
/// said, and not refused.
///
/// # Errors
/// [`DataError::Config`]: what it measures, and what to do.
pub(super) fn measured_here(
    silo: &StudySilo,
    metric: MetricName,
    seed: u64,
) -> Result<(), DataError> {
    let Some(found) = lacking(silo, metric, seed) else {
        return Ok(());
    };
    let what = format!(
        "the agreed metric {:?} is not measured here: {}",
        metric.key(),
        remedy(&silo.name, metric, &found)
    );
    match metric {
        MetricName::RocAuc => {
            tracing::warn!("{what}; with rows of one class it has no value");
            Ok(())
        }
        MetricName::Concordance => {
            tracing::warn!(
                "{what}; where no row has its event while another is observed it has no value"
            );
            Ok(())
        }
        _ => Err(DataError::Config(what)),
    }
}

/// Returns what a silo's program measures, and what to do, without a full stop.
fn remedy(silo: &str, metric: MetricName, found: &GivenMetrics) -> String {
    let why = found.why.as_ref();
    let why = why.map_or_else(String::new, |why| {
        format!(" (nothing by its outputs: {why})")
    });
    format!(
        "the program of {silo:?} measures {}{why}; agree on one of these (`metric` of [task.external]; one that Rota does \
         not know as {{ own = \"NAME\", better = \"larger\" }}, or \"smaller\"), or let its `evaluate` give {:?}",
        found.names.join(", "),
        metric.key()
    )
}
