//! Rows of the same persons, which are not independent of each other.

use super::*;

/// Shares of the second class, and persons.
const SIZES: [(f64, usize); 3] = [(0.5, 12), (0.5, 40), (0.2, 60)];
/// The ways in which models differ here.
const MODELS: [SimulatedModels; 3] = [
    SimulatedModels::Coins,
    SimulatedModels::Near,
    SimulatedModels::Right,
];
/// Most rows of a person.
const VISITS: usize = 6;

/// Numbers of a person's rows, of which a part is common to all of them: correlated by .64.
struct PersonalNumbers(f64);

impl PersonalNumbers {
    fn of(random: &mut Random) -> Self {
        Self(normal(random))
    }

    fn draw(&self, random: &mut Random) -> f64 {
        0.8 * self.0 + 0.6 * normal(random)
    }
}

/// Both models' outputs for the rows of so many persons.
fn of_persons(
    models: SimulatedModels,
    prevalence: f64,
    persons: usize,
    random: &mut Random,
) -> SimulatedPair {
    let (mut each, mut groups) = (Vec::new(), Vec::new());
    for person in 0..persons {
        let own = [(); 3].map(|()| PersonalNumbers::of(random));
        for _ in 0..=random.below(VISITS) {
            let [x, a, b] = own.each_ref().map(|one| one.draw(random));
            each.push(row_of(models, prevalence, [x, a, b], random));
            groups.push(person as u32);
        }
    }
    let mut pair = outputs(&each);
    pair.iter_mut()
        .for_each(|one| one.groups.clone_from(&groups));
    pair
}

#[test]
fn intervals_over_persons_hold_where_they_have_several_rows() {
    for metric in ["accuracy", "log-loss", "brier", "roc-auc"] {
        // Of twelve persons there are seldom ten with rows of each class, and draws of areas take long.
        let (silos, sizes) = match metric {
            "roc-auc" => (100, &SIZES[1..]),
            _ => (200, &SIZES[..]),
        };
        let mut checked = CheckedCell::default();
        for models in MODELS {
            for &(prevalence, persons) in sizes {
                let found = shares(metric, silos, persons, None, |persons, random| {
                    of_persons(models, prevalence, persons, random)
                });
                let what = format!("{models:?}, {prevalence} of {persons} persons");
                // As of many rows: persons have several.
                let least = least(metric, models, persons.max(30));
                checked.0.push((what, least, found));
            }
        }
        checked.assert(&format!("{metric} of persons"), &[]);
    }
}
