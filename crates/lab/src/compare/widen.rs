//! Settings and rounds beyond those that were tried.
//!
//! A choice at the edge of a grid, or a best round that is the last, says that the search ended too early. From
//! the values that were tried follows the next one, as far as the option allows any: a share of 1 has nothing
//! beyond it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toml::Value as TomlValue;

use super::entry::ExperimentEntry;
use super::experiment::Experiment;
use super::file::{RunSettings, Variant};

/// The key of the number of rounds, of which the last is the edge.
pub(super) const ROUNDS: &str = "scenario.rounds";
/// Number of times that the step beyond an edge is halved where the option does not allow it.
const HALVED: u32 = 6;

/// Settings by key, as a result holds them.
pub(super) type GridPoint = BTreeMap<String, Value>;

/// The smallest or largest number that was tried for a key.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Edge {
    pub(super) key: String,
    pub(super) value: f64,
    /// The number next to it that was tried.
    next: f64,
    /// True if it is the largest one.
    pub(super) largest: bool,
    /// True if all that was tried are whole numbers.
    whole: bool,
}

impl Edge {
    /// The edges of the numbers that were tried in these points, by key, the smallest of each first.
    pub(super) fn all<'a>(tried: impl Iterator<Item = &'a GridPoint>) -> Vec<Self> {
        let mut numbers = BTreeMap::<&str, (Vec<f64>, bool)>::new();
        for (key, value) in tried.flatten().filter(|(key, _)| *key != ROUNDS) {
            if let Some(number) = value.as_f64() {
                let (all, whole) = numbers.entry(key).or_insert((Vec::new(), true));
                all.push(number);
                *whole &= value.is_i64() || value.is_u64();
            }
        }
        let of_key = |(key, (mut all, whole)): (&str, (Vec<f64>, bool))| {
            all.sort_by(f64::total_cmp);
            all.dedup();
            let edge = |value: f64, next: f64, largest| Self {
                key: key.to_owned(),
                value,
                next,
                largest,
                whole,
            };
            match all[..] {
                [least, second, ..] => {
                    let (most, before) = (all[all.len() - 1], all[all.len() - 2]);
                    vec![edge(least, second, false), edge(most, before, true)]
                }
                _ => Vec::new(),
            }
        };
        numbers.into_iter().flat_map(of_key).collect()
    }

    /// Returns whether a choice is at this edge.
    pub(super) fn holds(&self, point: &GridPoint) -> bool {
        let own = point.get(&self.key).and_then(Value::as_f64);
        own.is_some_and(|own| own == self.value)
    }

    /// Values beyond this edge, the farthest first: a step in the ratio of the last two values, and nearer ones.
    fn beyond(&self) -> Vec<TomlValue> {
        let ratio = self.value / self.next;
        let far = if self.value > 0.0 && self.next > 0.0 {
            self.value * ratio
        } else {
            self.value + (self.value - self.next)
        };
        let steps = (0..=HALVED).map(|halved| {
            let step = (far - self.value) / f64::from(1u32 << halved);
            let value = self.value + step;
            match (self.whole, self.largest) {
                // At least one more, or one less.
                (true, true) => value.floor().max(self.value + 1.0),
                (true, false) => value.ceil().min(self.value - 1.0),
                (false, _) => rounded(value),
            }
        });
        let mut seen = BTreeSet::new();
        let new = steps.filter(|value| seen.insert(value.to_bits()));
        let written = |value: f64| match self.whole {
            true => TomlValue::Integer(value as i64),
            false => TomlValue::Float(value),
        };
        new.map(written).collect()
    }
}

/// Without the last digits, which a ratio of decimals gets wrong.
fn rounded(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

/// Settings as a result holds them.
pub(super) fn as_json(point: &RunSettings) -> GridPoint {
    let value = |value: &TomlValue| serde_json::to_value(value).unwrap_or_default();
    point
        .iter()
        .map(|(key, one)| (key.clone(), value(one)))
        .collect()
}

/// Settings of a result, to run with.
pub(super) fn as_settings(point: &GridPoint) -> RunSettings {
    let value = |value: &Value| TomlValue::try_from(value).ok();
    let pairs = point.iter();
    pairs
        .filter_map(|(key, one)| Some((key.clone(), value(one)?)))
        .collect()
}

impl Experiment {
    /// These settings with one that is at an edge moved beyond it; `None` where the option allows nothing there.
    pub(super) fn beyond(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        point: &RunSettings,
        edge: &Edge,
    ) -> Option<RunSettings> {
        let moved = edge.beyond().into_iter().map(|value| {
            let mut moved = point.clone();
            moved.insert(edge.key.clone(), value);
            moved
        });
        let mut allowed = moved.filter(|moved| self.scenario(variant, entry, moved, 0).is_ok());
        allowed.next()
    }

    /// These settings with twice as many rounds; `None` where these are not allowed.
    pub(super) fn longer(
        &self,
        variant: &Variant,
        entry: &ExperimentEntry,
        point: &RunSettings,
    ) -> Option<RunSettings> {
        let rounds = self.scenario(variant, entry, point, 0).ok()?.rounds;
        let mut longer = point.clone();
        let twice = i64::try_from(rounds.checked_mul(2)?).ok()?;
        longer.insert(ROUNDS.into(), TomlValue::Integer(twice));
        let allowed = self.scenario(variant, entry, &longer, 0).is_ok();
        allowed.then_some(longer)
    }
}

/// Returns whether a choice was also tried with more rounds, which were no better.
pub(super) fn tried_longer<'a>(
    point: &GridPoint,
    mut tried: impl Iterator<Item = &'a GridPoint>,
) -> bool {
    let rounds = |point: &GridPoint| point.get(ROUNDS).and_then(Value::as_u64).unwrap_or(0);
    let others = |point: &GridPoint| -> GridPoint {
        let mut others = point.clone();
        others.remove(ROUNDS);
        others
    };
    let own = others(point);
    tried.any(|one| rounds(one) > rounds(point) && others(one) == own)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::super::tests::SMALL;
    use super::super::{Choices, CompareOptions, ComparisonRow, compare};
    use super::*;

    fn point(values: &[(&str, Value)]) -> GridPoint {
        let pairs = values.iter();
        pairs
            .map(|(key, value)| ((*key).to_owned(), value.clone()))
            .collect()
    }

    /// Returns what is tried beyond the edges of these values of a key of `fedavg` or another strategy.
    fn beyond(strategy: &str, key: &str, values: &[Value]) -> [Option<TomlValue>; 2] {
        let (text, _) = SMALL.split_once("[[strategy]]").unwrap();
        let text = format!("{text}\n[[strategy]]\nname = \"{strategy}\"\n");
        let experiment =
            Experiment::parse("x.toml", &text, Path::new(""), &Choices::default()).unwrap();
        let tried: Vec<GridPoint> = values
            .iter()
            .map(|one| point(&[(key, one.clone())]))
            .collect();
        let edges = Edge::all(tried.iter());
        let of = |edge: &Edge| {
            let at = experiment.beyond(
                &experiment.variants[0],
                &experiment.entries[0],
                &RunSettings::new(),
                edge,
            );
            at.map(|point| point[&edge.key].clone())
        };
        [of(&edges[0]), of(&edges[1])]
    }

    #[test]
    fn the_next_value_keeps_the_ratio_as_far_as_the_option_allows() {
        let float = |value: f64| Some(TomlValue::Float(value));
        let rates = [0.02, 0.005].map(Value::from);
        let found = beyond("fedavg", "training.optimiser.rate", &rates);
        assert_eq!(found, [float(0.00125), float(0.08)]);
        // Nothing is below a weight decay of 0, and much above.
        let decays = [0.0, 0.1].map(Value::from);
        let found = beyond("fedavg", "training.optimiser.weight-decay", &decays);
        assert_eq!(found, [None, float(0.2)]);
        // A momentum is below 1, so the step is halved; a share is at most 1.
        let momenta = [0.3, 0.9].map(Value::from);
        let [_, above] = beyond("fedavg", "training.optimiser.momentum", &momenta);
        let above = above.unwrap().as_float().unwrap();
        assert!(above > 0.9 && above < 1.0, "{above}");
        let shares = [0.5, 1.0].map(Value::from);
        assert_eq!(
            beyond("fedavg", "participation", &shares),
            [float(0.25), None]
        );
    }

    #[test]
    fn whole_numbers_stay_whole() {
        let whole = |value: i64| Some(TomlValue::Integer(value));
        let groups = [2, 3].map(Value::from);
        let found = beyond("cs-rcfl", "coalitions", &groups);
        assert_eq!(found, [whole(1), whole(4)]);
        let epochs = [1, 5].map(Value::from);
        let found = beyond("fedavg", "training.epochs", &epochs);
        assert_eq!(found, [None, whole(25)]);
    }

    #[test]
    fn a_choice_that_was_tried_with_more_rounds_is_finished() {
        let rate = ("rate", Value::from(0.1));
        let long = |rounds: u64| point(&[rate.clone(), (ROUNDS, Value::from(rounds))]);
        let short = point(std::slice::from_ref(&rate));
        assert!(!tried_longer(&short, [&short].into_iter()));
        assert!(tried_longer(&short, [&short, &long(8)].into_iter()));
        assert!(!tried_longer(&long(8), [&short, &long(8)].into_iter()));
        let other = point(&[("rate", Value::from(0.2)), (ROUNDS, Value::from(8))]);
        assert!(!tried_longer(&short, [&other].into_iter()));
    }

    #[test]
    fn settings_are_the_same_after_they_were_kept() {
        let settings: RunSettings = [
            ("a".to_owned(), TomlValue::Integer(3)),
            ("b".to_owned(), TomlValue::Float(3.0)),
            ("c".to_owned(), TomlValue::String("auto".into())),
            ("d".to_owned(), TomlValue::Boolean(true)),
        ]
        .into();
        let text = serde_json::to_string(&as_json(&settings)).unwrap();
        let kept: GridPoint = serde_json::from_str(&text).unwrap();
        assert_eq!(as_settings(&kept), settings);
    }

    /// FedAvg on patients with rates that are far too small, in two rounds that train.
    fn climbing(widen: usize, tune: &str) -> ComparisonRow {
        let (text, _) = SMALL.split_once("[[strategy]]").unwrap();
        let text = text
            .replace("[0.02, 0.005]", "[0.001, 0.002]")
            .replace("seeds = 2", "seeds = 2\nserved = false")
            .replace("widen = 0", tune);
        let text = format!("{text}\n[[strategy]]\nname = \"fedavg\"\nweight = \"equal\"\n");
        let choices = Choices {
            widen: Some(widen),
            ..Choices::default()
        };
        let experiment = Experiment::parse("x.toml", &text, Path::new(""), &choices).unwrap();
        let comparison = compare(&experiment, CompareOptions::default()).unwrap();
        comparison.variants[0].strategies[0].clone()
    }

    #[test]
    fn a_climbing_baseline_gets_more_rounds_and_larger_rates() {
        let [never, once, often] = [0, 1, 9].map(|widen| climbing(widen, ""));
        assert_eq!(
            (never.tried.len(), never.unfinished.len()),
            (2, 2),
            "{:?}",
            never.unfinished
        );
        // One step is not enough, and that is said.
        assert!(once.tried.len() > 2 && !once.unfinished.is_empty());
        assert_eq!(often.unfinished, [""; 0], "{:?}", often.chosen);
        let loss =
            |row: &ComparisonRow| row.metrics[0].inside.as_ref().unwrap().silos.unwrap().mean;
        assert!(loss(&once) < loss(&never) && loss(&often) < loss(&once));
        // Every step is a training more that is counted.
        assert!(often.tuning > once.tuning && once.tuning > never.tuning);
    }

    #[test]
    fn where_the_first_seed_chooses_for_all_it_also_widens_for_all() {
        let row = climbing(1, "every-seed = false");
        assert_eq!((row.seeds, row.chosen.len()), (2, 1), "{:?}", row.chosen);
        let chosen = &row.chosen[0].settings;
        let wider = chosen.get(ROUNDS) == Some(&Value::from(6));
        let rate = chosen["training.optimiser.rate"].as_f64().unwrap();
        assert!(wider || rate > 0.002, "{chosen:?}");
    }

    #[test]
    fn a_comparison_is_widened_unless_it_is_quick() {
        let scenario = include_str!("../../../../simulations/scenarios/diabetes.toml");
        let silent = SMALL.replace("widen = 0", "");
        let widen = |text: &str, quick: bool, widen: Option<usize>| {
            let choices = Choices {
                quick,
                widen,
                ..Choices::default()
            };
            let experiment = Experiment::parse("x.toml", text, Path::new(""), &choices);
            experiment.unwrap().tune.widen
        };
        for text in [scenario, &silent] {
            assert_eq!(widen(text, false, None), 2);
            assert_eq!(
                (widen(text, true, None), widen(text, true, Some(3))),
                (0, 3)
            );
        }
        assert_eq!(
            (widen(SMALL, false, None), widen(SMALL, false, Some(1))),
            (0, 1)
        );
    }
}
