//! Benefit of a federation with noise, on public rows.

#![allow(clippy::unwrap_used)]

#[path = "../../examples/noised/rows.rs"]
mod public_rows;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lab::compare::{
    AdviceRows, Experiment, MakeRows, NoiseAdvice, ReleaseAdvice, advise_noise, noise_choices,
};
use methods::serving::Adaptation;

use crate::skipped;

/// A federation of a logistic model, whose rows are given.
const SCENARIO: &str = "name = \"worth\"
    seed = 0
    rounds = 20
    [task.table]
    data = \"heart\"
    model = \"logistic\"
    standardise = \"none\"
    metric = \"log-loss\"
    split = { validation = 0.0 }
    [strategy]
    name = \"fedavg\"
    weight = \"equal\"
    training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 5.0 } }
    ";

fn folder() -> Option<PathBuf> {
    let folder = std::env::var_os("ROTA_DATA").map(PathBuf::from);
    if folder.is_none() {
        skipped::skipped("needs the data sets, and ROTA_DATA is not set");
    }
    folder
}

/// Advice on a scenario within so many seconds, or as many more as this machine needs for two seeds.
fn advice(text: &str, rows: &Arc<MakeRows>, epsilon: f64, seconds: u64) -> NoiseAdvice {
    let choices = noise_choices(epsilon);
    let rows = AdviceRows {
        data: None,
        made: Some(rows.clone()),
    };
    let within = |seconds: u64| {
        let experiment = Experiment::parse("worth.toml", text, Path::new(""), &choices).unwrap();
        let budget = Duration::from_secs(seconds);
        advise_noise(experiment, epsilon, &rows, budget, |_| ()).unwrap()
    };
    let budgets = [seconds, 4 * seconds, 16 * seconds];
    let found = budgets
        .into_iter()
        .map(within)
        .find(|advice| advice.seeds > 1);
    let advice = found.expect("two seeds within sixteen times the time that a quiet machine needs");
    assert_eq!(advice.comparison.failures(), 0);
    // Each kind of release as it is, with an intercept of the silos' own, and with own fits that are shrunken to it.
    let kinds = if text.contains("[privacy]") { 1 } else { 2 };
    assert_eq!(advice.releases.len(), 3 * kinds);
    for release in &advice.releases {
        let noise = release.noise.as_ref().unwrap();
        assert!(noise.epsilon.unwrap() <= epsilon + 1e-4);
        assert!(noise.epsilon_alone.unwrap() > noise.epsilon.unwrap());
    }
    advice
}

#[test]
fn a_global_model_does_not_pay_for_four_heart_hospitals() {
    let Some(folder) = folder() else { return };
    let rows = public_rows::four_hospitals(&folder).unwrap();
    for epsilon in [1.0, 4.0] {
        let advice = advice(SCENARIO, &rows, epsilon, 10);
        // An own fit that is shrunken towards it may.
        let shrunken = Some(Adaptation::Shrunken);
        let mut common = advice.releases.iter().filter(|one| one.adapted != shrunken);
        assert!(
            !common.any(ReleaseAdvice::joins),
            "epsilon {epsilon}: {advice:?}"
        );
        // The own fit is better, not just as good, whatever the noise.
        let gain = advice.releases[0].gain.unwrap();
        assert!(gain.by < 0.0, "{gain:?}");
    }
}

/// Settings as somebody chooses them who knows public rows that are alike.
#[test]
fn ten_silos_with_few_rows_are_advised_to_join_with_settings() {
    let Some(folder) = folder() else { return };
    let rows = public_rows::breast_cancer(&folder).unwrap();
    let fitting = SCENARIO
        .replace("rounds = 20", "rounds = 40")
        .replace("rate = 5.0", "rate = 40.0")
        .replace("validation = 0.0", "validation = 0.0, keyed = true");
    let noise = "[privacy]\nmode = \"differential-privacy\"\nepsilon = 4.0\nclipping-norm = 0.2\n";
    let advice = advice(&(fitting + noise), &rows, 4.0, 25);
    assert!(advice.joins, "{:?}", advice.releases);
    assert!(advice.releases[0].joins(), "{:?}", advice.releases[0]);
    assert_eq!(advice.changes, None);
}

/// Rounds that look at no row for their settings gain nothing over an own fit that is not held back.
#[test]
fn settings_that_see_no_row_do_not_beat_the_local_fit() {
    let Some(folder) = folder() else { return };
    let rows = public_rows::breast_cancer(&folder).unwrap();
    let advice = advice(SCENARIO, &rows, 1.0, 10);
    let plain = &advice.releases[0];
    assert!(!plain.joins(), "{plain:?}");
    // Noise costs something.
    assert!(plain.price.unwrap().by < 0.0);
}
