//! The settings that are tried for a strategy.

use std::collections::BTreeMap;

use toml::Value;

use super::file::RunSettings;
use simulations::random::Random;

/// All combinations of the values, or `most` of them drawn by `label` where there are more. At least
/// one, which may be empty. The first combination is always among them.
pub(super) fn points(
    grid: &BTreeMap<String, Vec<Value>>,
    most: usize,
    label: &str,
) -> Vec<RunSettings> {
    let mut all = vec![RunSettings::new()];
    for (key, values) in grid.iter().filter(|(_, values)| !values.is_empty()) {
        let extended = all.iter().flat_map(|point| {
            values.iter().map(|value| {
                let mut point = point.clone();
                point.insert(key.clone(), value.clone());
                point
            })
        });
        all = extended.collect();
    }
    if all.len() > most {
        let mut random = Random::new(0, &format!("settings of {label}"));
        // The first stays; the others are drawn without replacement.
        for at in 1..most {
            let from = at + random.below(all.len() - at);
            all.swap(at, from);
        }
        all.truncate(most);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(sizes: &[(&str, i64)]) -> BTreeMap<String, Vec<Value>> {
        let values =
            |&(key, size): &(&str, i64)| (key.to_owned(), (0..size).map(Value::Integer).collect());
        sizes.iter().map(values).collect()
    }

    #[test]
    fn every_combination_is_tried_once() {
        let all = points(&grid(&[("a", 2), ("b", 3)]), 10, "x");
        assert_eq!(all.len(), 6);
        let different: std::collections::BTreeSet<String> =
            all.iter().map(|point| format!("{point:?}")).collect();
        assert_eq!(different.len(), 6);
        assert_eq!(points(&grid(&[]), 10, "x"), [RunSettings::new()]);
    }

    #[test]
    fn of_larger_grids_as_many_as_the_budget_allows_are_drawn() {
        let large = grid(&[("a", 10), ("b", 10)]);
        let drawn = points(&large, 7, "x");
        assert_eq!(drawn.len(), 7);
        let different: std::collections::BTreeSet<String> =
            drawn.iter().map(|point| format!("{point:?}")).collect();
        assert_eq!(different.len(), 7);
        assert_eq!(drawn, points(&large, 7, "x"));
        assert_eq!(drawn[0], points(&large, 100, "x")[0]);
        assert_ne!(drawn, points(&large, 7, "y"));
    }
}
