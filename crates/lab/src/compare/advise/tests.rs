//! Answers on rows whose truth is known.

use simulations::random::Random;

use super::super::differences::coverage::normal;
use std::sync::Arc;

use super::*;

/// A gain in this many seeds, with an interval or the reason why there is none.
fn gain(seeds: usize, interval: Result<(f64, f64), NoInterval>) -> MeanDifference {
    let wide = |(low, high)| Interval {
        by: (low + high) / 2.0,
        low,
        high,
    };
    MeanDifference {
        per_silo: interval.ok().map(wide),
        per_row: None,
        seeds,
        no_interval: interval.err(),
        wins: 0,
        ties: 0,
        losses: 0,
        losers: Vec::new(),
    }
}

#[test]
fn what_has_no_interval_or_no_fair_reference_is_not_known() {
    let of = |seeds, interval, untuned| verdict(Some(&gain(seeds, interval)), untuned);
    let not_known = |why| AdviceVerdict::NotKnown { why, minutes: None };
    let better = Ok((0.1, 0.3));
    assert_eq!(of(3, better, None), AdviceVerdict::Together);
    assert_eq!(of(3, Ok((-0.1, 0.3)), None), AdviceVerdict::Alone);
    for reason in [NoInterval::RareClass, NoInterval::NotMeasured] {
        let expected = not_known(WhyNotKnown::NoInterval(reason));
        assert_eq!(of(3, Err(reason), None), expected);
    }
    // Seeds that failed confirm nothing.
    assert_eq!(of(2, better, None), not_known(WhyNotKnown::FewSeeds(2)));
    assert_eq!(verdict(None, None), not_known(WhyNotKnown::NotCompared));
    // Silos whose model was not tuned are in no difference: where others are left, these decide.
    assert_eq!(of(3, better, Some(4)), AdviceVerdict::Together);
    assert_eq!(verdict(None, Some(4)), not_known(WhyNotKnown::Untuned(4)));
}

#[test]
fn silos_of_nearly_one_each_are_alone() {
    assert!(are_apart(8, 8) && are_apart(6, 8) && !are_apart(5, 8));
    assert!(
        !are_apart(1, 1),
        "a single silo has nobody to be apart from"
    );
}

/// Advice by six seeds on the rows of a task.
fn advice(silos: &str, task: &str, data: Option<&Path>) -> Advice {
    let folder = tempfile::tempdir().expect("a folder");
    let text = format!(
        "name = \"known\"
        rounds = 15
        {silos}
        [task.table]
        {task}
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 2, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}"
    );
    let file = folder.path().join("known.toml");
    std::fs::write(&file, text).expect("a file");
    let mut experiment = Experiment::for_advice(&file.to_string_lossy()).expect("a scenario");
    let study = |scenario: &Scenario| scenario.study(data).map(Arc::new);
    experiment.leave_out_unable(&study).expect("silos");
    (experiment.seeds, experiment.tune.points) = STEPS[1];
    let options = CompareOptions {
        data: data.map(Path::to_owned),
        ..CompareOptions::default()
    };
    let results = run_units(&experiment, options, None, &mut |_| ());
    Advice::of(&experiment, results.expect("results"), Duration::ZERO, None)
}

/// Advice on synthetic rows of six silos.
fn of_synthetic(data: &str) -> Advice {
    let task = format!("data = {{ synthetic = {{ {data} }} }}\nmodel = {{ linear = {{}} }}");
    advice("silos = 6", &task, None)
}

/// Advice on 20 silos that learn from 18 rows of eight columns, with coefficients `spread` around common ones.
fn of_mixed(spread: f64) -> Advice {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::new(7, "mixed");
    let mut rows = String::from("silo,a,b,c,d,e,f,g,h,y\n");
    for silo in 0..20 {
        let own = [1.0, -1.0, 1.0, -1.0, 0.5, -0.5, 0.0, 0.0];
        let own = own.map(|mean| mean + spread * normal(&mut random));
        for _ in 0..60 {
            let x = [(); 8].map(|()| normal(&mut random));
            let y: f64 = x.iter().zip(&own).map(|(x, own)| x * own).sum();
            let x = x.map(|x| x.to_string()).join(",");
            rows += &format!("{silo},{x},{}\n", y + normal(&mut random));
        }
    }
    let file = folder.path().join("rows.csv");
    std::fs::write(&file, rows).expect("a file");
    let task = format!(
        "standardise = \"federation\"
        split = {{ validation = 0.0, test = 0.7 }}
        model = {{ linear = {{}} }}
        data.rows = {{ files = [{{ path = {file:?} }}], silo-column = \"silo\", columns.target = \"y\" }}"
    );
    advice("", &task, None)
}

/// Advice on public data; `None` where they are not here.
fn of_public(task: &str) -> Option<Advice> {
    let Some(data) = std::env::var_os("ROTA_DATA") else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return None;
    };
    Some(advice("", task, Some(Path::new(&data))))
}

#[test]
fn silos_of_one_law_and_few_rows_learn_together() {
    let found = of_synthetic("groups = 1, features = 8, rows = [14, 14], noise = 2.0");
    assert_eq!(found.verdict, AdviceVerdict::Together, "{found:?}");
    assert_eq!((found.alone.as_str(), found.seeds), (OWN, 6));
}

#[test]
fn silos_of_different_laws_and_many_rows_stay_alone() {
    let found = of_synthetic("groups = 6, features = 3, rows = [150, 150]");
    assert_eq!(found.verdict, AdviceVerdict::Alone, "{found:?}");
    assert!(found.gain.is_none_or(|gain| gain.low <= 0.0));
    assert!(!found.unlearned, "of many rows they learn their laws");
}

#[test]
fn where_columns_tell_nothing_a_constant_is_as_good() {
    let found = of_synthetic("groups = 1, features = 3, rows = [20, 20], noise = 100.0");
    assert!(found.unlearned, "{found:?}");
}

#[test]
fn silos_of_a_mixed_model_are_sent_to_it() {
    let found = of_mixed(0.3);
    assert_eq!(found.verdict, AdviceVerdict::Together, "{found:?}");
    assert_eq!(found.best.as_deref(), Some("hierarchical"), "{found:?}");
    // Nothing in common: a mixed model is as good as models alone, and no better.
    let found = of_mixed(20.0);
    assert_eq!(found.verdict, AdviceVerdict::Alone, "{found:?}");
}

#[test]
fn what_needs_a_linear_model_is_not_tried_with_others() {
    let labels = |found: Advice| -> Vec<String> {
        let rows = found.comparison.variants[0].strategies.iter();
        rows.map(|row| row.label.clone()).collect()
    };
    let of = |model: &str| {
        let data = "data = { synthetic = { groups = 1, features = 2, rows = [10, 10] } }";
        labels(advice(
            "silos = 3",
            &format!("{data}\nmodel = {model}"),
            None,
        ))
    };
    let tried = |labels: &[String]| labels.iter().any(|one| one == "hierarchical");
    assert!(tried(&of("{ linear = {} }")));
    assert!(!tried(&of("{ mlp = { hidden = [2] } }")));
}

/// Truth by `measurements/results.md`: own models are best, and as good as anything learned together.
#[test]
fn hospitals_of_heart_disease_are_not_told_to_join() {
    let task = "data = \"heart\"\nmodel = \"logistic\"\nmetric = \"log-loss\"\nstandardise = \"federation\"";
    if let Some(found) = of_public(task) {
        assert_eq!(found.verdict, AdviceVerdict::Alone, "{found:?}");
    }
}

/// Truth by the same: nothing is better beyond chance, and a constant is as good as what hospitals fit.
#[test]
fn hospitals_with_few_patients_are_not_told_to_join() {
    let task = "data = { eicu-los = { hospitals = 20, least-rows = 10 } }
                model = \"logistic\"\nmetric = \"log-loss\"\nstandardise = \"federation\"
                split = { validation = 0.0, test = 0.3 }";
    if let Some(found) = of_public(task) {
        assert_ne!(found.verdict, AdviceVerdict::Together, "{found:?}");
        assert!(found.unlearned, "{found:?}");
    }
}

/// Truth by the same: a state's own linear model is far better than one for all states.
#[test]
fn states_are_not_told_to_share_one_model_of_temperatures() {
    let task = "data = { tpt48 = { from = \"east\", to = \"east\" } }\nmetric = \"mse\"\nmodel = { mlp = { hidden = [] } }";
    if let Some(found) = of_public(task) {
        assert_eq!(found.verdict, AdviceVerdict::Alone, "{found:?}");
        assert!(found.gain.is_some_and(|gain| gain.high < 0.0), "{found:?}");
    }
}
