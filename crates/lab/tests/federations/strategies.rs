//! Every strategy in whole federations of toy silos, and on real digits.

#![allow(clippy::unwrap_used)]

use crate::skipped;

use std::collections::BTreeSet;
use std::sync::Arc;

use lab::{Summary, run_study};
use methods::learner::QuadraticLearner;
use methods::strategy::STRATEGIES;
use simulations::toy::study;
use simulations::{Options, Scenario};

use crate::common::{of_any_model, outcomes, three_tensors};

fn play(strategy: &str, more: &str, threads: usize) -> Summary {
    let text = format!(
        "name = \"toy\"
        seed = 3
        rounds = 4
        task = {{ constant = {{ parameters = 3 }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"{strategy}\"
        training = {{ epochs = 3, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.25 }} }}
        {more}"
    );
    let scenario = Scenario::parse("toy.toml", &text).unwrap();
    let centres = [
        [0.0, 1.0, 2.0],
        [0.0, 1.2, 0.0],
        [5.0, 5.0, -1.0],
        [5.2, 5.0, 3.0],
    ];
    let options = Options {
        threads,
        references: false,
        ..Options::default()
    };
    run_study(&scenario, &three_tensors(&centres), options)
        .unwrap_or_else(|e| panic!("{strategy}: {e}"))
}

#[test]
fn a_lead_killed_in_the_middle_changes_no_outcome() {
    for info in of_any_model() {
        let calm = play(info.name, "", 2);
        assert_eq!(calm.rounds.len(), 4, "{}", info.name);
        for phase in ["collecting", "deciding", "voting", "notarised"] {
            let kill = format!(
                "[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2\nrestart-after = \"8s\""
            );
            let cut = play(info.name, &kill, 2);
            assert_ne!(cut.trace, calm.trace, "{}: no lead was killed", info.name);
            let authors = |summary: &Summary| -> Vec<BTreeSet<String>> {
                let rounds = summary.rounds.iter();
                rounds
                    .map(|round| round.authors.iter().cloned().collect())
                    .collect()
            };
            // DRFA draws the participants of every round.
            let all = |authors: &BTreeSet<String>| info.name == "drfa" || authors.len() == 4;
            assert!(
                authors(&calm).iter().all(all) && authors(&cut) == authors(&calm),
                "{}, {phase}: a member was left out",
                info.name
            );
            assert_eq!(outcomes(&cut), outcomes(&calm), "{}, {phase}", info.name);
        }
    }
}

#[test]
fn rounded_contributions_are_agreed_on_and_taken_over_from_a_dead_lead() {
    for strategy in ["fedavg", "scaffold", "hcct", "cs-rcfl"] {
        let exact = play(strategy, "", 2);
        for encoding in ["\"bf16\"", "\"int8\"", "{ topk = 0.34 }"] {
            let more = format!("encoding = {encoding}");
            let rounded = play(strategy, &more, 2);
            assert_eq!(rounded.rounds.len(), 4, "{strategy} {encoding}");
            assert_ne!(
                outcomes(&rounded),
                outcomes(&exact),
                "{strategy} {encoding}"
            );
            // A round whose lead dies takes over the rounded contributions as they are.
            let kill = "[[fault]]\nkill = \"lead\"\nphase = \"deciding\"\nround = 2\nrestart-after = \"8s\"";
            let cut = play(strategy, &format!("{more}\n{kill}"), 2);
            assert_eq!(cut.rounds.len(), 4, "{strategy} {encoding}");
            // What rounding left out does not survive a restart, so later rounds may differ.
            let both = [&cut, &rounded].map(|run| outcomes(run)[..2].to_vec());
            assert_eq!(both[0], both[1], "{strategy} {encoding}");
        }
    }
}

/// Two groups of silos whose optima have something in common, which no model has at the start.
#[test]
fn equal_starts_collapse_to_one_coalition_and_random_starts_find_both_groups() {
    let silos = [
        [6.0, 40_000.0, 60_000.0],
        [6.0, -40_000.0, -60_000.0],
        [6.0, 41_000.0, 60_000.0],
        [6.0, -41_000.0, -60_000.0],
    ];
    let coalitions = |strategy: &str, start: &str| {
        let text = format!(
            "name = \"starts\"
            seed = 3
            rounds = 10
            task = {{ constant = {{ parameters = 3 }} }}
            [strategy]
            {strategy}
            models = 2
            start = \"{start}\"
            training = {{ epochs = 3, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.25 }} }}"
        );
        let scenario = Scenario::parse("starts.toml", &text).unwrap();
        let options = Options {
            threads: 2,
            references: false,
            ..Options::default()
        };
        let summary = run_study(&scenario, &three_tensors(&silos), options).unwrap();
        assert_eq!(summary.rounds.len(), 10, "{strategy}, {start}");
        for round in &summary.rounds {
            assert_eq!(round.authors.len(), 4, "{strategy}, {start}");
        }
        let number = |name: &String| summary.silos.iter().position(|silo| silo.name == *name);
        let coalitions = &summary.rounds.last().unwrap().coalitions;
        let numbers = coalitions
            .iter()
            .map(|one| one.iter().filter_map(number).collect());
        numbers.collect::<BTreeSet<Vec<usize>>>()
    };
    for strategy in ["name = \"ifca\"", "name = \"flsc\"\nselect = 1"] {
        let (equal, random) = (
            coalitions(strategy, "equal"),
            coalitions(strategy, "random"),
        );
        assert_eq!(equal, [vec![0, 1, 2, 3]].into(), "{strategy}");
        assert_eq!(random, [vec![0, 2], vec![1, 3]].into(), "{strategy}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_trace() {
    for info in of_any_model() {
        let [one, three] = [1, 3].map(|threads| play(info.name, "", threads));
        assert_eq!(one.trace, three.trace, "{}", info.name);
    }
}

#[test]
fn personal_layers_lower_the_loss_under_every_kind_of_strategy() {
    for name in ["fedavg", "cs-rcfl", "scaffold", "fedadam", "ditto"] {
        let shared = play(name, "", 2);
        let own = play(name, "personal = [\"layer0\", \"norm-layers\"]", 2);
        let loss = |summary: &Summary| -> f64 {
            summary
                .silos
                .iter()
                .map(|silo| silo.coalition.unwrap())
                .sum()
        };
        assert!(
            loss(&own) < loss(&shared),
            "{name}: {} {}",
            loss(&own),
            loss(&shared)
        );
    }
}

#[test]
fn a_model_without_the_layers_that_a_strategy_needs_is_refused() {
    let text = "name = \"t\"
        rounds = 1
        task = { constant = { parameters = 3 } }
        [strategy]
        name = \"fedbn\"
        training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.25 } }";
    let scenario = Scenario::parse("t.toml", text).unwrap();
    let silos = [Arc::new(QuadraticLearner::new(&[1.0]))];
    let error = run_study(&scenario, &study(&silos), Options::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "t.toml, strategy: personal: the model has no tensor or layer \"norm-layers\"; it has w [1]"
    );
}

/// Four groups of patients. Radii are cross-validated, and the number of coalitions is found.
fn patients(strategy: &str, more: &str, threads: usize) -> Summary {
    let text = format!(
        "name = \"patients\"
        seed = 3
        rounds = 4
        silos = 4
        [task.table]
        data = \"diabetes\"
        standardise = \"federation\"
        split = {{ validation = 0.0, test = 0.3 }}
        model = {{ linear = {{ loss = \"absolute\" }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        radius = {{ folds = 3, grid = [0.01, 0.1] }}
        [strategy]
        {strategy}
        training = {{ epochs = 3, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.05 }} }}
        {more}"
    );
    let scenario = Scenario::parse("patients.toml", &text).unwrap();
    let options = Options {
        threads,
        references: false,
        ..Options::default()
    };
    lab::run(&scenario, options).unwrap_or_else(|error| panic!("{strategy}: {error}"))
}

#[test]
fn found_coalitions_and_robust_fits_depend_neither_on_the_lead_nor_on_threads() {
    for strategy in [
        "name = \"cs-rcfl\"\ncoalitions = \"auto\"\nfolds = 3",
        "name = \"robust-local\"",
    ] {
        let calm = patients(strategy, "", 2);
        assert_eq!(calm.rounds.len(), 4);
        assert_eq!(patients(strategy, "", 3).trace, calm.trace, "{strategy}");
        for round in [2, 3] {
            let kill = format!(
                "[[fault]]\nkill = \"lead\"\nphase = \"deciding\"\nround = {round}\nrestart-after = \"8s\""
            );
            let cut = patients(strategy, &kill, 2);
            assert_ne!(cut.trace, calm.trace, "{strategy}: no lead was killed");
            assert_eq!(outcomes(&cut), outcomes(&calm), "{strategy}, round {round}");
        }
    }
}

#[test]
fn finding_coalitions_needs_at_least_two_rounds() {
    let text = "name = \"t\"
        rounds = 1
        task = { constant = { parameters = 3 } }
        [strategy]
        name = \"cs-rcfl\"
        coalitions = \"auto\"
        training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.25 } }";
    let error = Scenario::parse("t.toml", text).unwrap_err().to_string();
    assert!(
        error.contains("at least 2: one to train, one to measure coalitions"),
        "{error}"
    );
}

/// Twenty silos with a partition of the optical digits, and a perceptron.
#[test]
fn every_strategy_learns_real_digits() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(std::path::PathBuf::from) else {
        skipped::skipped("needs the digits, and ROTA_DATA is not set");
        return;
    };
    for info in STRATEGIES {
        let more = match info.name {
            // Its models start at random and need more than a few rounds to specialise.
            "ifca" | "flsc" => "start = \"k-means\"",
            "fedcg" => "domains = 2\nprojection = \"none\"",
            _ => "",
        };
        let text = format!(
            "name = \"digits\"
            seed = 3
            rounds = 6
            silos = 20
            task = \"digits8-bench\"
            serve = {{ folds = 0 }}
            [strategy]
            name = \"{name}\"
            training = {{ epochs = 2, batch = 32, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
            {more}",
            name = info.name,
        );
        let scenario = Scenario::parse("digits.toml", &text).unwrap();
        let options = Options {
            data: Some(data.clone()),
            cache: true,
            references: false,
            ..Options::default()
        };
        let summary = lab::run(&scenario, options);
        // Strategies that cannot train a perceptron are refused with the reason.
        let cannot = match info.name {
            "fedbn" => Some("the model has no tensor or layer \"norm-layers\""),
            "robust-local" => Some("the learner has no robust fits"),
            "hierarchical" => Some("the learner has no rows of a linear model"),
            _ => None,
        };
        if let Some(why) = cannot {
            let error = summary.unwrap_err().to_string();
            assert!(error.contains(why), "{}: {error}", info.name);
            continue;
        }
        let summary = summary.unwrap_or_else(|e| panic!("{}: {e}", info.name));
        let each = summary.silos.iter().map(|silo| silo.coalition.unwrap());
        let accuracy = each.sum::<f64>() / 20.0;
        println!("{}: {accuracy:.3}", info.name);
        // The curves measure a model once for all silos, which have one set of test rows; the results of
        // the silos measure it at each.
        for silo in &summary.silos {
            let points = summary
                .curves
                .iter()
                .filter(|point| point.silo == silo.name);
            let last = points.filter_map(|point| point.metric).next_back();
            assert_eq!(last, silo.coalition, "{}, {}", info.name, silo.name);
        }
        // Chance gives a tenth. Every silo has a few of the ten digits and is tested on all: models
        // of one silo, or of few, cannot know the others.
        let own = ["fedper", "fedrep", "ditto", "pfedme", "apfl", "fedala"].contains(&info.name);
        let together = summary
            .rounds
            .iter()
            .all(|round| round.coalitions.len() == 1);
        let least = if together && !own { 0.3 } else { 0.15 };
        assert!(accuracy > least, "{}: {accuracy}", info.name);
    }
}
