//! The note about a contribution that weighs more than all others together.

use std::collections::BTreeMap;

use protocol::{MemberIndex, Report, Time};
use silo::Notice;

use simulations::Federation;

/// Says in one sentence in which rounds one contribution had more than half of the weight, whose it was,
/// and how much it was at most; none where that never was.
pub(super) fn heavy_note(
    notices: &[(Time, MemberIndex, Notice)],
    federation: &Federation,
) -> Option<String> {
    let roster = &federation.epoch.roster;
    let mut heavy = BTreeMap::new();
    for (_, _, notice) in notices {
        let Notice::Protocol(Report::HeavyEntry {
            round, rows, total, ..
        }) = notice
        else {
            continue;
        };
        heavy.insert(*round, (*rows, *total));
    }
    let claimed = |round: u64, rows: u64| {
        let authors = notices
            .iter()
            .filter_map(move |(_, member, notice)| match notice {
                Notice::Trained {
                    round: of, samples, ..
                } if *of == round && (*samples).min(roster.rows(*member)) == rows => {
                    Some(roster.name(*member))
                }
                _ => None,
            });
        authors.take(1)
    };
    let mut names: Vec<_> = heavy
        .iter()
        .flat_map(|(&round, &(rows, _))| claimed(round, rows))
        .collect();
    names.sort_unstable();
    names.dedup();
    let share = |&(rows, total): &(u64, u128)| rows as f64 / total as f64;
    let largest = heavy.values().map(share).reduce(f64::max)?;
    let (first, last) = (heavy.keys().next()?, heavy.keys().next_back()?);
    let rounds = if first == last {
        format!("round {first}")
    } else {
        format!("{} rounds between {first} and {last}", heavy.len())
    };
    let bound = federation.members.first().and_then(|silo| silo.max_weight);
    let then = match bound {
        Some(bound) => format!("`max-weight` limits it to {:.1} %", 100.0 * bound),
        None => "it alone almost determines the model".into(),
    };
    // Not rounded up to all of it.
    Some(format!(
        "in {rounds} one contribution has more than half of the total weight, up to {:.1} %: {}; {then}",
        (1000.0 * largest).floor() / 10.0,
        names.join(", ")
    ))
}

#[cfg(test)]
mod tests;
