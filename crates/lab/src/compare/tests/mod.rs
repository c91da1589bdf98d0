//! Whole comparisons on the built-in patients.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use learn::TaskStudy;
use simulations::lies;

use super::*;

mod built_in;
mod ended;
mod served;

pub(super) const SMALL: &str = r#"
name = "small"
seeds = 2
metrics = ["mae", "mse"]

[scenario]
rounds = 3
silos = 4

[scenario.task.table]
data = "diabetes"
standardise = "federation"
model = { linear = { loss = "absolute" } }

[training]
epochs = 2
batch = 8
optimiser = { name = "sgd", rate = 0.02 }

[tune]
points = 2
widen = 0
grid = { "training.optimiser.rate" = [0.02, 0.005] }

[quick]
seeds = 1

[[strategy]]
name = "local"

[[strategy]]
label = "equal"
name = "fedavg"
weight = "equal"

[[strategy]]
name = "pooled"

[[strategy]]
name = "constant"

[[strategy]]
label = "groups"
name = "cs-rcfl"
coalitions = 2
"#;

fn small(choices: &Choices) -> Experiment {
    Experiment::parse("small.toml", SMALL, Path::new(""), choices).unwrap()
}

fn without_seconds(mut comparison: Comparison) -> Comparison {
    comparison.seconds = 0.0;
    for variant in &mut comparison.variants {
        variant.strategies.iter_mut().for_each(|row| {
            row.seconds = (0.0, 0.0);
            row.curve.iter_mut().for_each(|point| point.seconds = None);
            row.served
                .iter_mut()
                .for_each(|served| served.seconds = 0.0);
        });
    }
    comparison
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let experiment = small(&Choices::default());
    let run = |threads| {
        let options = CompareOptions {
            threads,
            ..CompareOptions::default()
        };
        without_seconds(compare(&experiment, options).unwrap())
    };
    let (one, three) = (run(1), run(3));
    assert_eq!(one, three);
    let table = &one.variants[0];
    assert_eq!((table.members.len(), table.outside.len()), (4, 0));
    assert!(one.missing.is_empty() && one.failures() == 0);
    let row = |label: &str| {
        table
            .strategies
            .iter()
            .find(|row| row.label == label)
            .unwrap()
    };
    let mae = |label: &str| {
        row(label).metrics[0]
            .inside
            .as_ref()
            .unwrap()
            .silos
            .unwrap()
            .mean
    };
    // On 442 patients, a model beats no model, and all rows beat the rows of a quarter.
    assert!(mae("pooled") < mae("constant") && mae("pooled") < mae("local"));
    // Every strategy had the same budget: two settings, two rounds of training at four silos.
    for label in ["local", "equal", "groups"] {
        assert_eq!(row(label).tuning, 16.0, "{label}");
        assert_eq!(row(label).tried.len(), 2);
    }
    assert_eq!(row("constant").tuning, 0.0);
    let over: Vec<&str> = row("groups")
        .against
        .iter()
        .map(|one| one.over.as_str())
        .collect();
    assert_eq!(over, ["local", "equal", "pooled"]);
    assert!(
        row("groups")
            .against
            .iter()
            .all(|one| one.inside.is_some() && one.outside.is_none())
    );
    assert_eq!(row("groups").coalitions.unwrap().mean, 2.0);
    // Bytes and numbers grow with rounds, of which the first agrees on the scale and trains nothing.
    let [near, best, end] = [
        &row("equal").to_near,
        &row("equal").to_best,
        &row("equal").to_end,
    ]
    .map(|reach| reach.as_ref().unwrap());
    assert!(near.rounds.mean <= best.rounds.mean && best.rounds.mean <= end.rounds.mean);
    assert!(near.bytes.mean > 1_000.0 && near.bytes.mean <= best.bytes.mean);
    assert_eq!((end.rounds.mean, end.parameters.mean), (3.0, 2.0 * 11.0));
}

#[test]
fn a_label_may_hold_the_comma_at_which_names_are_separated() {
    let text = SMALL.replace("label = \"equal\"", "label = \"fedavg, equal\"");
    assert_ne!(text, SMALL);
    let pieces = "fedavg, equal,local".split(',').map(str::to_owned);
    let choices = Choices {
        strategies: pieces.collect(),
        ..Choices::default()
    };
    let experiment = Experiment::parse("x.toml", &text, Path::new(""), &choices).unwrap();
    let labels: Vec<&str> = experiment
        .entries
        .iter()
        .map(|entry| &*entry.label)
        .collect();
    assert_eq!(labels, ["fedavg, equal", "local"]);
}

#[test]
fn the_first_seed_may_choose_for_all() {
    let text = SMALL.replace("points = 2", "points = 2\nevery-seed = false");
    let choices = Choices {
        strategies: vec!["equal".into()],
        ..Choices::default()
    };
    let experiment = Experiment::parse("x.toml", &text, Path::new(""), &choices).unwrap();
    let comparison = compare(&experiment, CompareOptions::default()).unwrap();
    let row = &comparison.variants[0].strategies[0];
    // The second seed tries nothing, and does not count in the mean of what was tried.
    assert_eq!((row.seeds, row.tuning, row.chosen.len()), (2, 16.0, 1));
    assert!(row.to_near.is_some());
}

/// Three silos with two subgroups of rows, one of which follows another line, and one of few rows.
fn with_subgroups(folder: &Path) -> String {
    let mut files = Vec::new();
    for silo in 0..3 {
        let mut text = "x,sex,y\n".to_owned();
        for row in 0..90 {
            let x = f64::from((row * 37 + silo * 11) % 90) / 90.0;
            let (sex, y) = match row % 30 {
                29 => ("d", x),
                nth if nth % 3 == 0 => ("f", 3.0 - x),
                _ => ("m", x),
            };
            text.push_str(&format!("{x},{sex},{y}\n"));
        }
        std::fs::write(folder.join(format!("{silo}.csv")), text).unwrap();
        files.push(format!("{{ path = \"{silo}.csv\" }}"));
    }
    let data = format!(
        "data = {{ rows = {{ files = [{}], columns = {{ target = \"y\", subgroup = \"sex\", drop = [\"sex\"] }} }} }}",
        files.join(", ")
    );
    let text = SMALL.replace("data = \"diabetes\"", &data);
    text.replace("silos = 4\n", "")
        .replace("rounds = 3", "rounds = 8")
}

#[test]
fn metrics_are_given_by_subgroup_and_small_ones_are_suppressed() {
    let folder = std::env::temp_dir().join(format!("rota-subgroups-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = with_subgroups(&folder);
    let choices = Choices {
        strategies: vec!["equal".into(), "constant".into()],
        ..Choices::default()
    };
    let experiment = Experiment::parse("x.toml", &text, &folder, &choices).unwrap();
    let comparison = compare(&experiment, CompareOptions::default()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    for row in &comparison.variants[0].strategies {
        assert!(row.failed.is_empty(), "{:?}", row.failed);
        let scope = row.metrics[0].inside.as_ref().unwrap();
        let [few, women, men] = &scope.subgroups[..] else {
            panic!("{:?}", scope.subgroups);
        };
        // Nine rows in all, of which a part is tested.
        assert_eq!((&*few.name, few.rows, few.value), ("d", None, None));
        assert_eq!((&*women.name, &*men.name), ("f", "m"));
        let (f, m) = (women.value.unwrap().mean, men.value.unwrap().mean);
        assert!(women.rows.unwrap() < men.rows.unwrap());
        assert!(f > m, "{f} {m}");
        assert!((scope.gap.unwrap().mean - (f - m)).abs() < 1e-6);
        // The mean over all rows lies between those of the subgroups.
        let all = scope.rows.unwrap().mean;
        assert!(m < all && all < f);
    }
}

#[test]
fn an_interrupted_comparison_continues_and_parts_are_merged() {
    let experiment = small(&Choices {
        quick: true,
        ..Choices::default()
    });
    let folder = std::env::temp_dir().join(format!("rota-compare-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let run = |name: &str, shard: Option<Shard>, resume: bool| {
        let options = CompareOptions {
            threads: 2,
            folder: Some(folder.join(name)),
            shard,
            resume,
            ..CompareOptions::default()
        };
        compare(&experiment, options)
    };
    let whole = without_seconds(run("whole", None, false).unwrap());
    assert!(matches!(
        run("whole", None, false),
        Err(ExperimentError::There(_))
    ));
    // A line that was half written counts as not there.
    let runs = folder.join("whole/runs");
    let mut files: Vec<_> = std::fs::read_dir(&runs)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    std::fs::write(&files[0], "{").unwrap();
    std::fs::remove_file(&files[1]).unwrap();
    assert_eq!(without_seconds(run("whole", None, true).unwrap()), whole);

    let part = |index| Shard { index, of: 2 };
    let first = run("first", Some(part(1)), false).unwrap();
    assert_eq!(first.missing.len(), 2);
    run("second", Some(part(2)), false).unwrap();
    let parts = [folder.join("first"), folder.join("second")];
    let (again, merged) = merge(&parts, None).unwrap();
    assert_eq!(again, experiment);
    assert_eq!(without_seconds(merged), whole);

    // Other settings are another experiment.
    let other = SMALL.replace("rate = 0.02 }", "rate = 0.01 }");
    let other = Experiment::parse("other.toml", &other, Path::new(""), &Choices::default());
    let options = CompareOptions {
        folder: Some(folder.join("first")),
        resume: true,
        ..CompareOptions::default()
    };
    assert!(matches!(
        compare(&other.unwrap(), options),
        Err(ExperimentError::Other(_))
    ));
    assert!(matches!(
        merge(&[folder.join("none")], None),
        Err(ExperimentError::Result { .. })
    ));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_strategy_that_diverges_is_named_and_the_others_compared() {
    let wild = SMALL.replace("[0.02, 0.005]", "[1e30]");
    let experiment = Experiment::parse(
        "wild.toml",
        &wild,
        Path::new(""),
        &Choices {
            strategies: vec!["local".into(), "equal".into(), "constant".into()],
            quick: true,
            ..Choices::default()
        },
    );
    let comparison = compare(&experiment.unwrap(), CompareOptions::default()).unwrap();
    let rows = &comparison.variants[0].strategies;
    assert_eq!(comparison.failures(), 2);
    assert!(
        rows[0].failed.len() == 1 && rows[0].seeds == 0,
        "{:?}",
        rows[0]
    );
    assert!(rows[2].failed.is_empty() && rows[2].seeds == 1);
}

#[test]
fn a_scenario_is_compared_with_the_references() {
    let text = include_str!("../../../../../simulations/scenarios/diabetes.toml");
    let experiment =
        Experiment::parse("diabetes.toml", text, Path::new(""), &Choices::default()).unwrap();
    let labels: Vec<&str> = experiment
        .entries
        .iter()
        .map(|entry| entry.label.as_str())
        .collect();
    assert_eq!(
        labels,
        [
            "cs-rcfl",
            "own-fit",
            "local",
            "fedavg, by rows",
            "fedavg, equal weights",
            "fedavg, own intercept",
            "pooled",
            "constant"
        ]
    );
    assert_eq!(experiment.points(&experiment.entries[0]).len(), 3);
}

#[test]
fn the_agreed_metric_is_compared_where_none_is_named() {
    let of = |above: &str, agreed: &str| {
        let text = format!(
            "name = 'agreed'\n{above}\n[scenario]\nrounds = 1\n[scenario.task.external]\n{agreed}
            tensors = [{{ name = 'w', shape = [1], role = 'weight' }}]
            [training]\nepochs = 1\nbatch = 0\noptimiser = {{ name = 'sgd', rate = 0.1 }}
            [[strategy]]\nname = 'local'"
        );
        let parsed = Experiment::parse("agreed.toml", &text, Path::new(""), &Choices::default());
        let metrics = parsed.unwrap().metrics;
        let pairs = metrics
            .iter()
            .map(|one| (one.key(), one.higher_is_better()));
        pairs.collect::<Vec<_>>()
    };
    let own = "metric = { own = 'r2', better = 'larger' }";
    assert_eq!(of("", own), [("r2", true)]);
    assert_eq!(of("metrics = ['mae']", own), [("mae", false)]);
    assert_eq!(of("", "metric = 'loss'"), [("loss", false)]);
    assert!(of("", "").is_empty());
}

#[test]
fn errors_name_the_strategy_and_the_key() {
    let parse = |text: &str, choices: &Choices| {
        Experiment::parse("x.toml", text, Path::new(""), choices)
            .unwrap_err()
            .to_string()
    };
    let none = Choices::default();
    let wrong = SMALL.replace("coalitions = 2", "coalition = 2");
    let error = parse(&wrong, &none);
    assert!(
        error.starts_with("x.toml, strategy \"groups\": ") && error.contains("coalition"),
        "{error}"
    );
    let error = parse(&SMALL.replace("points = 2", "points = 0"), &none);
    assert_eq!(error, "x.toml: `tune.points` is 0, it must be at least 1");
    let error = parse(&SMALL.replace("seeds = 2", "sedes = 2"), &none);
    assert!(error.contains("sedes"), "{error}");
    let error = parse(
        SMALL,
        &Choices {
            strategies: vec!["fedavgg".into()],
            ..none
        },
    );
    assert!(error.contains("fedavgg"), "{error}");
}

/// Ten silos of one true model, three of which contribute their updates reversed.
const LIARS: &str = r#"
name = "liars"
seeds = 1
metrics = ["log-loss"]

[scenario]
rounds = 4
silos = 10
fault = [
  { behaviour = "sign-flip", member = "0" },
  { behaviour = "sign-flip", member = "silo 4" },
  { behaviour = "sign-flip", member = "9" },
]

[scenario.task.table]
data = { synthetic = { target = "logistic", groups = 1, rows = [40, 40] } }
model = "logistic"

[training]
epochs = 3
batch = 8
optimiser = { name = "sgd", rate = 0.1 }

[tune]
points = 1
widen = 0

[[strategy]]
label = "mean"
name = "fedavg"
weight = "equal"

[[strategy]]
label = "median"
name = "fedavg"
weight = "equal"
aggregation = { name = "coordinate-median" }

[[strategy]]
name = "tfl"
"#;

#[test]
fn only_honest_members_are_measured_and_a_median_bears_liars() {
    let choices = Choices::default();
    let experiment = Experiment::parse("liars.toml", LIARS, Path::new(""), &choices).unwrap();
    let comparison = compare(&experiment, CompareOptions::default()).unwrap();
    let table = &comparison.variants[0];
    let honest = [2, 3, 5, 6, 7, 8, 9].map(|number| format!("silo {number}"));
    assert_eq!(table.members, honest);
    let loss = |label: &str| {
        let mut rows = table.strategies.iter();
        let row = rows.find(|row| row.label == label).unwrap();
        row.metrics[0].inside.as_ref().unwrap().silos.unwrap().mean
    };
    let (mean, median) = (loss("mean"), loss("median"));
    assert!(median < 0.8 * mean, "median {median}, mean {mean}");
}

#[test]
fn built_in_experiments_can_be_read_also_in_their_reduced_form() {
    for (name, _) in BUILT_IN {
        for quick in [false, true] {
            let choices = Choices {
                quick,
                ..Choices::default()
            };
            let experiment = Experiment::load(name, &choices).unwrap();
            assert_eq!(experiment.name, *name);
            assert!(!experiment.description.is_empty());
        }
    }
}

#[test]
fn a_lie_of_an_unknown_silo_is_refused() {
    let fault = simulations::scenario::Fault::Byzantine {
        member: "nobody".into(),
        behaviour: simulations::Behaviour::Noise,
    };
    let error = lies(&[], &[fault]).unwrap_err();
    assert!(
        error.starts_with("a fault names an unknown silo \"nobody\""),
        "{error}"
    );
}

#[test]
fn a_constant_is_measured_at_unseen_silos_without_training_rows() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(std::path::PathBuf::from) else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let choices = Choices {
        strategies: vec!["constant".into()],
        quick: true,
        ..Choices::default()
    };
    let experiment = Experiment::load("tpt48", &choices).unwrap();
    let options = CompareOptions {
        data: Some(data),
        ..CompareOptions::default()
    };
    let comparison = compare(&experiment, options).unwrap();
    let east_to_west = &comparison.variants[0].strategies[0].metrics[0];
    assert_eq!(east_to_west.inside, None, "members have no test rows");
    let outside = east_to_west.outside.as_ref().unwrap();
    // Targets are z-scores over the source states.
    let mean = outside.silos.unwrap().mean;
    assert!((0.5..1.6).contains(&mean), "{mean}");
}

#[test]
fn what_every_run_learned_is_kept_and_nothing_else_changes() {
    let mut experiment = small(&Choices {
        quick: true,
        ..Choices::default()
    });
    experiment.entries.truncate(2);
    let folder = std::env::temp_dir().join(format!("rota-kept-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let run = |keep: Option<PathBuf>| {
        let options = CompareOptions {
            keep,
            ..CompareOptions::default()
        };
        without_seconds(compare(&experiment, options).unwrap())
    };
    assert_eq!(run(Some(folder.clone())), run(None));
    for place in ["1-local", "2-equal"] {
        let of_run = folder.join(place).join("seed-0");
        let index = std::fs::read_to_string(of_run.join("index.json")).unwrap();
        let index: serde_json::Value = serde_json::from_str(&index).unwrap();
        let rounds = index["rounds"].as_array().unwrap();
        assert_eq!(rounds.len(), 3);
        let sent = rounds[2]["contributions"].as_array().unwrap();
        assert_eq!(sent.len(), 4);
        for one in sent {
            let file = of_run.join(one["file"].as_str().unwrap());
            assert!(std::fs::read(file).unwrap().len() > 100);
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_part_is_one_of_as_many() {
    let parsed = |text: &str| text.parse::<Shard>();
    assert_eq!(parsed("2/8"), Ok(Shard { index: 2, of: 8 }));
    for wrong in ["0/8", "9/8", "2", "a/b", "1/0", ""] {
        let why = parsed(wrong).unwrap_err().to_string();
        assert!(why.contains("such as 2/8"), "{wrong}");
    }
}
