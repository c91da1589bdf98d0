//! Limits of opened counts, which all members check.

use crate::QuestionStopped;
use crate::sums::{CommonKnowledge, Gates};

/// Returns whether the counts allow another round.
pub(crate) fn gates(gates: &Gates, known: &CommonKnowledge) -> Result<(), QuestionStopped> {
    let (counts, rules) = (&known.counts, &known.rules);
    let coefficients = gates.coefficients as u64;
    let smallest = rules.smallest_cell;
    let at_least = |what: &str, found: f64, needed: u64, remedy: &str| {
        if found >= needed as f64 {
            return Ok(());
        }
        let shown = if found > 0.0 && found < smallest as f64 {
            format!("fewer than {smallest}")
        } else {
            found.to_string()
        };
        Err(QuestionStopped::TooFew {
            what: what.to_owned(),
            found: shown,
            needed,
            remedy: remedy.to_owned(),
        })
    };
    at_least(
        "rows that the filter keeps",
        counts.rows,
        smallest,
        "use a wider filter, or ask more sites",
    )?;
    let rows = smallest.max(rules.rows_per_coefficient * coefficients);
    if coefficients > 0 {
        at_least(
            "complete rows",
            counts.complete,
            rows,
            "use fewer columns, or ask more sites",
        )?;
    }
    if gates.events && coefficients > 0 {
        let needed = rules.events_per_coefficient * coefficients;
        let remedy = "use fewer columns, a `ridge`, or ask more sites";
        at_least("events", counts.events.unwrap_or_default(), needed, remedy)?;
    }
    for rows in counts.groups.iter().filter(|rows| **rows > 0.0) {
        at_least(
            "rows of a group",
            *rows,
            smallest,
            "use coarser groups, or a filter without this group",
        )?;
    }
    Ok(())
}
