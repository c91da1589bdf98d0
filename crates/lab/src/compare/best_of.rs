//! The best of several strategies, measured on seeds that did not choose it.
//!
//! Of many ways that are all alike one looks best, and its gain looks larger than it is. So the best one is
//! chosen on every second seed, and its gain is measured on the others.

use task::metrics::MetricName;

use super::comparison::BestOf;
use super::entry::{ExperimentEntry, is_alone};
use super::result::{SiloModel, UnitResult};
use super::scope::{ReferenceResults, difference};

/// Fewest strategies of which one is the best by choice.
const SEVERAL: usize = 3;

/// The results of every second seed, those that choose or the others.
pub(super) fn half<'a>(results: &[&'a UnitResult], confirms: bool) -> Vec<&'a UnitResult> {
    let own = results.iter().copied();
    own.filter(|one| one.failed.is_none() && (one.unit.seed % 2 == 1) == confirms)
        .collect()
}

impl BestOf {
    /// `None` where too few strategies can be compared with the reference of this label.
    pub(super) fn of(
        metric: MetricName,
        all: &[(&ExperimentEntry, Vec<&UnitResult>)],
        (references, over): (&ReferenceResults<'_>, &str),
    ) -> Option<Self> {
        let mut named = references.all.iter().filter(|(label, _)| *label == over);
        let (_, theirs) = named.next()?;
        let ways: Vec<_> = all
            .iter()
            .filter(|(entry, _)| !entry.is_reference() && !is_alone(entry.name()))
            .filter(|(entry, _)| entry.label != over)
            .collect();
        if ways.len() < SEVERAL {
            return None;
        }
        let gain = |results: &[&UnitResult], confirms, outside| {
            difference(
                metric,
                (&half(results, confirms), SiloModel::Strategy),
                (&half(theirs, confirms), SiloModel::Strategy),
                outside,
                references.draws,
            )
        };
        let of_scope = |outside| {
            let gains = ways.iter().filter_map(|(entry, results)| {
                let chosen = gain(results, false, outside)?.interval()?;
                Some((entry, results, chosen))
            });
            let gains: Vec<_> = gains.collect();
            let count = gains.len();
            let best = gains.into_iter().max_by(|a, b| a.2.by.total_cmp(&b.2.by))?;
            (count >= SEVERAL).then_some((best, count))
        };
        let mut scopes = [false, true].into_iter();
        let found = scopes.find_map(|outside| Some((outside, of_scope(outside)?)));
        let (outside, ((entry, results, chosen), of)) = found?;
        let confirmed = gain(results, true, outside);
        Some(Self {
            label: entry.label.clone(),
            of,
            over: over.to_owned(),
            outside,
            chosen,
            seeds: confirmed.as_ref().map_or(0, |one| one.seeds),
            confirmed: confirmed.and_then(|one| one.interval()),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::super::tests::SMALL;
    use super::super::{Choices, CompareOptions, Experiment, compare};
    use super::BestOf;

    /// The best of copies of one strategy that differ in nothing but their name and rate.
    fn best(ways: usize, seeds: usize) -> Option<BestOf> {
        let (text, _) = SMALL.split_once("[[strategy]]").unwrap();
        let mut text = text.replace("seeds = 2", &format!("seeds = {seeds}\nserved = false"));
        text += "[[strategy]]\nname = \"local\"\n";
        for way in 0..ways {
            text += &format!(
                "[[strategy]]\nlabel = \"way {way}\"\nname = \"fedavg\"\nset = {{ rounds = {} }}\n",
                2 + way
            );
        }
        let choices = Choices::default();
        let experiment = Experiment::parse("x.toml", &text, Path::new(""), &choices).unwrap();
        let comparison = compare(&experiment, CompareOptions::default()).unwrap();
        comparison.variants[0].best.clone()
    }

    #[test]
    fn the_best_of_several_is_measured_on_seeds_that_did_not_choose() {
        let found = best(3, 5).unwrap();
        assert_eq!(
            (found.of, found.seeds, found.over.as_str()),
            (3, 2, "local")
        );
        assert!(found.label.starts_with("way ") && !found.outside);
        let confirmed = found.confirmed.unwrap();
        assert!(confirmed.low < confirmed.high && confirmed != found.chosen);
        // Of a single seed nothing is left to confirm by; of two ways none is the best of many.
        let one = best(3, 1).unwrap();
        assert_eq!((one.seeds, one.confirmed), (0, None));
        assert_eq!(best(2, 2), None);
    }
}
