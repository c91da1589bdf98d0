//! Traffic, checks, time and trace in a line each: the same in the terminal and on the page.

use simulations::Mesh;
use simulations::summary::Summary;

use super::numbers::{bytes, count, seconds};

/// `S1–S9`: the numbers of the first and the last of these properties.
fn range(invariants: &[&str]) -> String {
    let number = |name: &&str| name.split(' ').next().unwrap_or_default().to_owned();
    let ends = [invariants.first(), invariants.last()];
    ends.map(|name| name.map_or_else(String::new, number))
        .join("–")
}

/// A word and a text each.
pub(crate) fn of(summary: &Summary) -> Vec<(&'static str, String)> {
    let checks = &summary.checks;
    let memo = match checks.memo {
        true => "on: checks that are alike were done once for all silos",
        false => "off: every member did every check",
    };
    let mut facts = vec![
        ("mesh", carried(&summary.mesh)),
        (
            "sent",
            format!(
                "{}: {} of signed messages, {} of models and outcomes",
                bytes(summary.bytes),
                bytes(summary.bytes_messages),
                bytes(summary.bytes_blobs)
            ),
        ),
        (
            "checked",
            format!(
                "{} signatures, {} hashed, {} decisions, {} outcomes computed",
                count(checks.signatures),
                bytes(checks.bytes_hashed),
                count(checks.checks),
                count(checks.settles)
            ),
        ),
        ("memo", memo.to_owned()),
        (
            "agreement",
            format!(
                "{} held after each of {} events",
                range(&summary.invariants),
                count(summary.events)
            ),
        ),
        ("took", took(summary)),
    ];
    if let Some(sum) = summary.weights_abs_sum {
        facts.push(("weights", format!("sum of |w| of the final model {sum:.6}")));
    }
    // Nothing repeats the order in which real sockets deliver.
    if summary.virtual_seconds.is_some() {
        facts.push(("trace", summary.trace.clone()));
    }
    facts
}

fn carried(mesh: &Mesh) -> String {
    match mesh.transport {
        None => format!("{}: a simulated network and a clock of its own", mesh.name),
        Some(transport) => format!(
            "{}, {}: real sockets and real time; what the scenario says of links and costs of \
             work does not apply",
            mesh.name,
            transport.to_uppercase()
        ),
    }
}

fn took(summary: &Summary) -> String {
    let virtually = summary.virtual_seconds.map_or_else(String::new, |lasted| {
        format!(" for {} in the federation", seconds(lasted))
    });
    format!(
        "{}{virtually}, {} events; the comparison {}{}",
        seconds(summary.seconds),
        count(summary.events),
        seconds(summary.reference_seconds),
        if summary.virtual_seconds.is_none() {
            " in virtual time"
        } else {
            ""
        },
    )
}
