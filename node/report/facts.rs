//! Traffic, checks, time and trace in a line each: the same in the terminal and on the page.

use simulations::summary::Summary;

use super::numbers::{bytes, count, seconds};

/// A word and a text each.
pub(crate) fn of(summary: &Summary) -> Vec<(&'static str, String)> {
    let checks = &summary.checks;
    let memo = match checks.memo {
        true => "on: checks that are alike were done once for all silos",
        false => "off: every member did every check",
    };
    let mut facts = vec![
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
            "took",
            format!(
                "{} for {} in the federation, {} events; the comparison {}",
                seconds(summary.seconds),
                seconds(summary.virtual_seconds),
                count(summary.events),
                seconds(summary.reference_seconds)
            ),
        ),
    ];
    if let Some(sum) = summary.weights_abs_sum {
        facts.push(("weights", format!("sum of |w| of the final model {sum:.6}")));
    }
    facts.push(("trace", summary.trace.clone()));
    facts
}
