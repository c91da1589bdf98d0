//! The lines about traffic, checks, time and trace, which the terminal and the page share.

use lab::summary::{Summary, Tuning};
use simulations::Mesh;

use super::numbers::{bytes, count, seconds};

/// Below this gap coalitions count as the best possible ones.
const NO_GAP: f64 = 1e-6;

/// The numbers of the first and the last of these properties, as `S1–S9`.
fn range(invariants: &[&str]) -> String {
    let number = |name: &&str| name.split(' ').next().unwrap_or_default().to_owned();
    let ends = [invariants.first(), invariants.last()];
    ends.map(|name| name.map_or_else(String::new, number))
        .join("–")
}

/// The lines: a name and a text each.
pub(crate) fn of(summary: &Summary) -> Vec<(&'static str, String)> {
    let mut facts = vec![("mesh", carried(&summary.mesh))];
    facts.extend(sent(summary).map(|text| ("sent", text)));
    if let Some(checks) = &summary.checks {
        let cache = if checks.cache {
            "on: a check that several silos would repeat was computed once for all of them"
        } else {
            "off: every member computed every check itself"
        };
        let signatures = if checks.simulated_signatures {
            "signatures simulated by keyed hashes".to_owned()
        } else {
            format!("{} signatures", count(checks.signatures))
        };
        let checked = format!(
            "{signatures}, {} hashed, {} decisions, {} outcomes computed",
            bytes(checks.bytes_hashed),
            count(checks.checks),
            count(checks.settles)
        );
        facts.extend([("checked", checked), ("cache", cache.to_owned())]);
    }
    facts.extend(proven(summary).map(|text| ("proven", text)));
    if let Some(events) = summary.events {
        let held = range(&summary.invariants);
        let safety = format!("{held} held after each of {} events", count(events));
        facts.push(("safety", safety));
    }
    facts.push(("took", took(summary)));
    facts.extend(summary.tuning.map(|tuning| ("alone", tuned(&tuning))));
    if let Some(sum) = summary.weights_abs_sum {
        facts.push(("weights", format!("sum of |w| of the final model {sum:.6}")));
    }
    // Over real sockets the order of messages differs from run to run.
    let trace = summary.trace.as_ref();
    facts.extend(
        trace
            .filter(|_| summary.virtual_seconds.is_some())
            .map(|trace| ("trace", trace.clone())),
    );
    facts
}

/// Returns what was sent, or would be over a network; none where that depends on who leads.
fn sent(summary: &Summary) -> Option<String> {
    let blobs = summary.bytes_blobs.map(bytes)?;
    Some(match (summary.bytes, summary.bytes_messages) {
        (Some(all), Some(messages)) => format!(
            "{}: {} of signed messages, {blobs} of models and outcomes",
            bytes(all),
            bytes(messages)
        ),
        _ => {
            format!(
                "nothing, because there is no network; members that check everything would send {blobs} of \
                     models"
            )
        }
    })
}

/// Returns how far the last coalitions can be from the best ones, where the lead has proven it.
pub(crate) fn proven(summary: &Summary) -> Option<String> {
    let gap = summary.rounds.last()?.memory.get("coalitions.gap")?;
    let gap = gap.as_f64()?;
    Some(if gap > NO_GAP {
        format!(
            "of the loss by which members exceed the best model on their rows, another grouping into as many \
             coalitions could save at most {:.1} %",
            100.0 * gap
        )
    } else {
        "no other grouping into as many coalitions has a smaller total loss on the members' rows"
            .to_owned()
    })
}

/// Returns how models trained alone were tuned.
fn tuned(tuning: &Tuning) -> String {
    let searched = if tuning.rates {
        "epochs, learning rate and weight decay"
    } else {
        "epochs"
    };
    let trained = format!(
        "tuned by cross-validation on training rows ({searched}): per silo {:.0} trainings as long as the federation's",
        tuning.trainings
    );
    let fitted = "exact fits to the training rows, with a ridge chosen by cross-validation";
    match tuning.silos - tuning.fitted {
        0 => format!("models trained alone are {fitted}"),
        trained_alone if tuning.fitted > 0 => format!(
            "models trained alone are {fitted}, at {} of {} silos; those of the other {trained_alone} were {trained}",
            tuning.fitted, tuning.silos
        ),
        _ => format!("models trained alone were {trained}"),
    }
}

fn carried(mesh: &Mesh) -> String {
    match mesh.transport {
        None if *mesh == Mesh::DIRECT => format!(
            "{}: no messages, leads or votes; the outcomes are bit by bit those of a network without faults; \
             [network] and [costs] of the scenario do not apply",
            mesh.name
        ),
        None => format!("{}: simulated network, virtual time", mesh.name),
        Some(transport) => format!(
            "{}, {}: real sockets, real time; [network] and [costs] of the scenario do not apply",
            mesh.name,
            transport.to_uppercase()
        ),
    }
}

fn took(summary: &Summary) -> String {
    let virtually = summary.virtual_seconds.map_or_else(String::new, |lasted| {
        format!(" for {} of virtual time", seconds(lasted))
    });
    let events = summary
        .events
        .map_or_else(String::new, |events| format!(", {} events", count(events)));
    format!(
        "{}{virtually}{events}; reference models {}",
        seconds(summary.seconds),
        seconds(summary.reference_seconds),
    )
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    fn proven(gap: Option<f64>) -> Option<String> {
        let mut summary = fixture::summary(4, 2, 3);
        if let (Some(gap), Some(last)) = (gap, summary.rounds.last_mut()) {
            let name = "coalitions.gap".to_owned();
            last.memory.insert(name, gap.into());
        }
        let mut facts = super::of(&summary).into_iter();
        facts
            .find(|(name, _)| *name == "proven")
            .map(|(_, text)| text)
    }

    #[test]
    fn the_report_has_a_proven_distance_to_the_best_coalitions() {
        assert_eq!(proven(None), None);
        assert!(
            proven(Some(0.0))
                .is_some_and(|text| text.contains("no other grouping into as many coalitions"))
        );
        assert!(proven(Some(0.0312)).is_some_and(|text| text.contains("at most 3.1 %")));
    }
}
