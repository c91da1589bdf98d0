//! Strategies that were not trained to the end, or whose settings are at the edge of what was tried.
//!
//! A gain over a way that still climbs, or whose rate should have been larger, is none. Nor is one over the model
//! that a silo makes alone, where that could not be tuned.

use std::collections::{BTreeMap, BTreeSet};

use formatting::numbers;

use super::result::{TriedPoint, UnitResult};
use super::widen::{Edge, GridPoint, tried_longer};

/// Most silos that a sentence names.
const NAMED: usize = 3;

/// Returns the reasons for which the results of a strategy are not finished, as clauses; empty where there are
/// none. A reason counts that holds for at least half of the seeds in which something was chosen. Of `exact` fits the
/// last round is as good as any. `allowed` returns true if an option allows a value beyond an edge of these settings.
pub(super) fn unfinished(
    results: &[&UnitResult],
    exact: bool,
    allowed: impl Fn(&GridPoint, &Edge) -> bool,
) -> Vec<String> {
    let chosen = results.iter().filter(|one| one.near.is_some());
    let chosen: Vec<&UnitResult> = chosen.copied().collect();
    let seeds = chosen.len();
    let most = |count: usize| 2 * count >= seeds && count > 0;
    let mut reasons: Vec<String> = untuned(results).into_iter().collect();
    let at_last = chosen
        .iter()
        .filter(|one| ends_at_last(one, results))
        .count();
    if most(at_last) && !exact {
        reasons.push(format!(
            "the best round is the last one in {at_last} of {seeds} seeds: allow more `rounds`"
        ));
    }
    let mut at = BTreeMap::<(String, bool), Vec<(Edge, &GridPoint)>>::new();
    for one in &chosen {
        let edges = Edge::all(tried(one, results).map(|tried| &tried.point)).into_iter();
        for edge in edges.filter(|edge| edge.holds(&one.point)) {
            let same = at.entry((edge.key.clone(), edge.largest)).or_default();
            same.push((edge, &one.point));
        }
    }
    for ((key, largest), seeds_there) in at {
        let count = seeds_there.len();
        let (edge, point) = &seeds_there[0];
        if most(count) && allowed(point, edge) {
            let (which, other) = match largest {
                true => ("largest", "larger"),
                false => ("smallest", "smaller"),
            };
            reasons.push(format!(
                "the chosen `{}` is the {which} that was tried ({}) in {count} of {seeds} seeds: try a {other} one",
                key.rsplit('.').next().unwrap_or(&key),
                // Products of a grid: 0.15, and not 0.15000000000000002.
                edge.value as f32,
            ));
        }
    }
    reasons
}

/// Returns what a seed tried; where the first seed chooses for all, what that one tried.
fn tried<'a>(one: &'a UnitResult, results: &[&'a UnitResult]) -> std::slice::Iter<'a, TriedPoint> {
    match (one.tried.is_empty(), results.first()) {
        (true, Some(first)) => first.tried.iter(),
        _ => one.tried.iter(),
    }
}

/// Returns whether the best round is the last one, and more rounds may be better. What is fitted at once, and sends
/// nothing, has one round; what ended by itself needs no more.
fn ends_at_last(one: &UnitResult, results: &[&UnitResult]) -> bool {
    let Some(last) = one.curve.last() else {
        return false;
    };
    let at_once = one.curve.len() == 1 && last.bytes == 0;
    let tried = tried(one, results).filter(|tried| tried.value.is_some());
    let longer = tried_longer(&one.point, tried.map(|tried| &tried.point));
    last.round == one.round && !at_once && !longer && !one.ended
}

/// That silos could not tune the model that they make alone, as a clause.
fn untuned(results: &[&UnitResult]) -> Option<String> {
    let names: BTreeSet<&String> = results.iter().flat_map(|one| &one.untuned).collect();
    let names: Vec<String> = names.into_iter().cloned().collect();
    let count = names.len();
    (count > 0).then(|| {
        format!(
            "at {} ({}) the model that {} alone could not be tuned, because rows, or persons, are too few to divide \
             or not here: {} as the federation trains, or left out, and no gain over {} counts",
            numbers::plural(count, "silo"),
            numbers::names(&names, NAMED),
            numbers::verb(count, "it makes", "they make"),
            numbers::verb(count, "it is trained", "they are trained"),
            numbers::verb(count, "it", "them"),
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::result::{ExperimentUnit, StoredPoint};
    use super::super::widen::ROUNDS;
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
            bytes: 1_000,
            ..StoredPoint::default()
        }];
        result
    }

    fn of(seeds: &[UnitResult]) -> Vec<String> {
        allowed(seeds, |edge| edge.largest || edge.value > 0.0)
    }

    fn allowed(seeds: &[UnitResult], allowed: impl Fn(&Edge) -> bool) -> Vec<String> {
        unfinished(&seeds.iter().collect::<Vec<_>>(), false, |_, edge| {
            allowed(edge)
        })
    }

    #[test]
    fn a_last_round_and_a_rate_at_the_edge_are_reported() {
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
        // An end of the range of an option is no edge.
        assert_eq!(allowed(&[seed(&[0.5, 1.0], 1.0, 3)], |_| false), [""; 0]);
        // A choice that was no better with more rounds is finished.
        let mut longer = seed(&rates, 0.2, 40);
        longer.tried[2].point.insert(ROUNDS.into(), Value::from(80));
        assert_eq!(of(&[longer.clone()]).len(), 1, "its training failed");
        longer.tried[2].value = Some(0.5);
        assert_eq!(of(&[longer]), [""; 0]);
        // A model that is fitted at once has one round, and sends nothing.
        let mut fitted = seed(&rates, 0.2, 40);
        fitted.curve[0].bytes = 0;
        assert_eq!(of(&[fitted]), [""; 0]);
        // Nor is there more in another round of exact fits.
        let exact = [seed(&rates, 0.2, 40)];
        assert_eq!(unfinished(&[&exact[0]], true, |_, _| true), [""; 0]);
        // A federation that ends by itself needs no more rounds.
        let mut ended = seed(&rates, 0.2, 40);
        ended.ended = true;
        assert_eq!(of(&[ended]), [""; 0]);
        // Where nothing was chosen, nothing was left unfinished by a choice.
        let mut fixed = seed(&rates, 0.4, 40);
        fixed.near = None;
        assert_eq!(of(&[fixed]), [""; 0]);
    }

    #[test]
    fn local_models_that_could_not_be_tuned_are_named() {
        let mut own = seed(&[], 0.0, 1);
        own.near = None;
        own.untuned = vec!["north".into(), "south".into()];
        let found = of(&[own.clone(), own]);
        assert_eq!(
            found,
            [
                "at 2 silos (north, south) the model that they make alone could not be tuned, because rows, or persons, \
                 are too few to divide or not here: they are trained as the federation trains, or left out, and \
                 no gain over them counts"
            ]
        );
    }
}
