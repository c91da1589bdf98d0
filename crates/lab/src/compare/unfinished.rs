//! Whether a way of learning was trained to the end, with settings that are not at the edge of what was tried.
//!
//! A gain over a way that still climbs, or whose rate should have been larger, is none.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::result::UnitResult;

/// Why the results of a way of learning are not finished, as clauses; empty where nothing speaks against them.
/// A reason counts that holds for at least half of the seeds in which something was chosen.
pub(super) fn unfinished(results: &[&UnitResult]) -> Vec<String> {
    let chosen = results.iter().filter(|one| one.near.is_some());
    let chosen: Vec<&UnitResult> = chosen.copied().collect();
    let seeds = chosen.len();
    let most = |count: usize| 2 * count >= seeds && count > 0;
    let mut reasons = Vec::new();
    let last = |one: &&&UnitResult| {
        one.curve
            .last()
            .is_some_and(|point| point.round == one.round)
    };
    let at_last = chosen.iter().filter(last).count();
    if most(at_last) {
        reasons.push(format!(
            "the best round is the last one in {at_last} of {seeds} seeds: allow more `rounds`"
        ));
    }
    let tried = numbers(results);
    for (key, values) in tried.iter().filter(|(_, values)| values.len() > 1) {
        let at = |edge: &f64| {
            let own = chosen
                .iter()
                .filter_map(|one| one.point.get(*key)?.as_f64());
            own.filter(|value| value == edge).count()
        };
        let (least, most_tried) = (&values[0], &values[values.len() - 1]);
        for (edge, count, which, other) in [
            (least, at(least), "smallest", "smaller"),
            (most_tried, at(most_tried), "largest", "larger"),
        ] {
            if most(count) && can_go_on(*edge, other) {
                let name = key.rsplit('.').next().unwrap_or(key);
                reasons.push(format!(
                    "the chosen `{name}` is the {which} that was tried ({edge}) in {count} of {seeds} seeds: try a {other} one"
                ));
            }
        }
    }
    reasons
}

/// Whether there is anything beyond this edge: nothing is smaller than none.
fn can_go_on(edge: f64, towards: &str) -> bool {
    towards == "larger" || edge > 0.0
}

/// The different numbers that were tried for every key, ascending.
fn numbers<'a>(results: &[&'a UnitResult]) -> BTreeMap<&'a str, Vec<f64>> {
    let mut found = BTreeMap::<&str, BTreeSet<u64>>::new();
    let points = results.iter().flat_map(|one| &one.tried);
    for (key, value) in points.flat_map(|tried| &tried.point) {
        // Numbers that are not negative are ordered as their bits.
        if let Some(value) = Value::as_f64(value).filter(|value| *value >= 0.0) {
            found.entry(key).or_default().insert(value.to_bits());
        }
    }
    let values = |bits: BTreeSet<u64>| bits.into_iter().map(f64::from_bits).collect();
    found
        .into_iter()
        .map(|(key, bits)| (key, values(bits)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::result::{ExperimentUnit, StoredPoint, TriedPoint};
    use super::*;

    /// A seed that tried these rates, chose one, and this round of 40.
    fn seed(rates: &[f64], chosen: f64, round: u64) -> UnitResult {
        let point = |rate: f64| BTreeMap::from([("training.rate".to_owned(), Value::from(rate))]);
        let unit = ExperimentUnit {
            variant: String::new(),
            strategy: "fedavg".into(),
            seed: 0,
        };
        let mut result = UnitResult::new(&unit);
        let tried = rates.iter().map(|&rate| TriedPoint {
            point: point(rate),
            round: None,
            near: None,
            value: None,
            failed: None,
        });
        result.tried = tried.collect();
        result.point = point(chosen);
        (result.near, result.round) = (Some(1), round);
        result.curve = vec![StoredPoint {
            round: 40,
            ..StoredPoint::default()
        }];
        result
    }

    fn of(seeds: &[UnitResult]) -> Vec<String> {
        unfinished(&seeds.iter().collect::<Vec<_>>())
    }

    #[test]
    fn a_last_round_and_a_rate_at_the_edge_are_said() {
        let rates = [0.1, 0.4, 0.2];
        assert_eq!(of(&[seed(&rates, 0.2, 30)]), [""; 0]);
        let found = of(&[
            seed(&rates, 0.4, 40),
            seed(&rates, 0.2, 40),
            seed(&rates, 0.4, 12),
        ]);
        assert_eq!(
            found,
            [
                "the best round is the last one in 2 of 3 seeds: allow more `rounds`",
                "the chosen `rate` is the largest that was tried (0.4) in 2 of 3 seeds: try a larger one"
            ]
        );
        // Once of three times is chance; one rate has no edge; none is smaller than 0.
        let once = [
            seed(&rates, 0.1, 40),
            seed(&rates, 0.2, 3),
            seed(&rates, 0.2, 3),
        ];
        assert_eq!(of(&once), [""; 0]);
        assert_eq!(of(&[seed(&[0.1], 0.1, 3)]), [""; 0]);
        assert_eq!(of(&[seed(&[0.0, 0.1], 0.0, 3)]), [""; 0]);
        assert_eq!(of(&[seed(&[0.01, 0.1], 0.01, 3)]).len(), 1);
        // Where nothing was chosen, nothing was left unfinished by a choice.
        let mut fixed = seed(&rates, 0.4, 40);
        fixed.near = None;
        assert_eq!(of(&[fixed]), [""; 0]);
    }
}
