//! Federations without messages learn what federations over a network learn, to the bit.

#![allow(clippy::unwrap_used)]

use crate::skipped;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use lab::summary::RoundInfo;
use lab::{Summary, run_study};
use learn::Study;
use methods::learner::{Capabilities, QuadraticLearner, Split, Watch};
use methods::strategy::STRATEGIES;
use methods::{Layout, LearnError, Learner, Metrics, Params, Training, Update};
use simulations::toy::toy_study;
use simulations::{Options, Scenario, Surrounding};

use crate::common::{of_any_model, three_tensors};

/// Runs a scenario over the simulated network and without messages, on its own data unless there is a
/// study. Checks that both learned the same, and gives the second.
fn both(what: &str, text: &str, study: Option<&Study>, data: Option<PathBuf>) -> Summary {
    let scenario = Scenario::parse("both.toml", text).unwrap();
    let [mesh, direct] = [Surrounding::Virtual, Surrounding::Direct].map(|surrounding| {
        let options = Options {
            data: data.clone(),
            cache: true,
            threads: 2,
            references: false,
            surrounding,
            ..Options::default()
        };
        let summary = match study {
            Some(study) => run_study(&scenario, study, options),
            None => lab::run(&scenario, options),
        };
        summary.unwrap_or_else(|error| panic!("{what}: {error}"))
    });
    same(what, &mesh, &direct);
    direct
}

/// Checks that two federations learned the same in every round, and that every silo ended with the same.
fn same(what: &str, mesh: &Summary, direct: &Summary) {
    let round = |round: &RoundInfo| {
        let authors: BTreeSet<String> = round.authors.iter().cloned().collect();
        let memory = round.memory.clone();
        let rest = (round.kind, round.cross_evaluated, round.coalitions.clone());
        (round.round, round.outcome.clone(), authors, memory, rest)
    };
    let rounds = |summary: &Summary| summary.rounds.iter().map(round).collect::<Vec<_>>();
    assert_eq!(rounds(direct), rounds(mesh), "{what}");
    assert!(mesh.rounds.iter().all(|round| !round.outcome.is_empty()));
    assert_eq!(direct.silos, mesh.silos, "{what}");
    assert_eq!(direct.newcomers, mesh.newcomers, "{what}");
    assert_eq!(direct.curves, mesh.curves, "{what}");
    assert_eq!(direct.training_failed, mesh.training_failed, "{what}");
    // A member that has no entry, or contributes what all know, is not waited for, and may then fetch the
    // outcome besides the models that it follows from. About one run in thirty has a member that sees a
    // round final before it has fetched all models, and does so, too.
    let members = mesh.silos.iter().filter(|silo| !silo.outside).count();
    let all = |round: &RoundInfo| round.authors.len() == members;
    let [counted, sent] = [direct, mesh].map(|summary| summary.bytes_blobs.unwrap());
    if !mesh.rounds.iter().all(all) || mesh.strategy == "robust-local" {
        assert!(
            counted <= sent && sent <= 2 * counted,
            "{what}: {counted}, {sent}"
        );
    } else if mesh.scenario == "patients" {
        let besides = sent.checked_sub(counted).unwrap();
        assert!(besides < counted / 10, "{what}: {counted}, {sent}");
    } else {
        assert_eq!(counted, sent, "{what}");
    }
    assert_eq!((direct.mesh.name, mesh.mesh.name), ("direct", "virtual"));
}

fn toy(strategy: &str, more: &str) -> String {
    format!(
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
    )
}

fn centres() -> Study {
    three_tensors(&[
        [0.0, 1.0, 2.0],
        [0.0, 1.2, 0.0],
        [5.0, 5.0, -1.0],
        [5.2, 5.0, 3.0],
        [0.4, 0.9, 0.0],
    ])
}

#[test]
fn every_strategy_has_the_same_outcomes() {
    for info in of_any_model() {
        let direct = both(info.name, &toy(info.name, ""), Some(&centres()), None);
        assert_eq!(direct.rounds.len(), 4, "{}", info.name);
    }
}

#[test]
fn options_of_strategies_have_the_same_outcomes() {
    for (strategy, more) in [
        ("fedavg", "encoding = \"bf16\""),
        ("scaffold", "encoding = \"int8\""),
        ("hcct", "encoding = { topk = 0.34 }"),
        ("cs-rcfl", "encoding = { topk = 0.34 }"),
        ("fedavg", "personal = [\"layer0\", \"norm-layers\"]"),
        ("cs-rcfl", "personal = [\"layer0\"]"),
        ("ditto", "personal = [\"layer0\"]"),
        ("fedadam", "trained = [\"layer1\"]"),
        (
            "fedavg",
            "weight = \"equal\"\naggregation = { name = \"coordinate-median\" }",
        ),
        ("ifca", "models = 2\nstart = \"random\""),
        ("flsc", "models = 2\nstart = \"random\"\nselect = 1"),
        ("tfl", "participants = { sample = 2 }"),
        ("drfa", "sample = 3"),
    ] {
        let what = format!("{strategy} {more}");
        both(&what, &toy(strategy, more), Some(&centres()), None);
    }
}

/// Two of five members are drawn; all five vote, of whom four are needed.
#[test]
fn drawn_members_alone_train_under_every_strategy_and_nobody_waits_for_the_others() {
    for info in of_any_model() {
        if info.name == "drfa" {
            let text = toy(info.name, "participation = 2");
            let error = Scenario::parse("toy.toml", &text).unwrap_err().to_string();
            assert!(error.contains("draws the members of a round"), "{error}");
            continue;
        }
        let what = format!("{}, participation", info.name);
        let text = toy(info.name, "participation = 0.4");
        let direct = both(&what, &text, Some(&centres()), None);
        let mut drawn = BTreeSet::new();
        for round in direct.rounds.iter().filter(|round| round.kind == "train") {
            assert_eq!(round.authors.len(), 2, "{what}, round {}", round.round);
            drawn.insert(round.authors.clone());
        }
        assert!(drawn.len() > 1, "{what}: {drawn:?}");
        let scenario = Scenario::parse("toy.toml", &text).unwrap();
        let options = Options {
            cache: true,
            references: false,
            ..Options::default()
        };
        let mesh = run_study(&scenario, &centres(), options).unwrap();
        assert_eq!(mesh.nullified, [], "{what}");
        assert_eq!(mesh.left_out, [], "{what}");
        // A round that waits for somebody lasts for a patience of 30 s.
        assert!(mesh.virtual_seconds < Some(20.0), "{what}");
    }
}

fn patients(strategy: &str, protocol: &str, more: &str) -> String {
    format!(
        "name = \"patients\"
        seed = 3
        rounds = 6
        silos = 5
        newcomers = [3]
        unseen = [\"4\"]
        [task.table]
        data = \"diabetes\"
        standardise = \"federation\"
        split = {{ validation = 0.2, test = 0.3 }}
        model = {{ linear = {{ loss = \"absolute\" }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        radius = {{ folds = 3, grid = [0.01, 0.1] }}
        {protocol}
        [strategy]
        {strategy}
        training = {{ epochs = 3, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.5 }} }}
        {more}"
    )
}

#[test]
fn tables_with_a_common_scale_newcomers_and_an_early_end_have_the_same_outcomes() {
    for strategy in [
        "name = \"cs-rcfl\"\ncoalitions = \"auto\"\nfolds = 3",
        "name = \"robust-local\"",
        "name = \"fedavg\"\nencoding = \"int8\"",
        "name = \"hcct\"",
        "name = \"hcct\"\ngroups = \"auto\"",
    ] {
        let direct = both(strategy, &patients(strategy, "", ""), None, None);
        assert_eq!(direct.newcomers.len(), 1, "{strategy}");
    }
    let stopping = "name = \"fedavg\"\nstop = { patience = 1 }";
    let direct = both(stopping, &patients(stopping, "", ""), None, None);
    assert!(direct.rounds.len() < 6, "it ends early");
    let drawn = "name = \"fedavg\"\nparticipation = 2";
    let direct = both(drawn, &patients(drawn, "", ""), None, None);
    let authors = direct.rounds.iter().map(|round| round.authors.len());
    assert_eq!(authors.collect::<Vec<_>>(), [4, 2, 2, 2, 2, 2]);
    let bounded = "name = \"fedavg\"";
    both(
        bounded,
        &patients(bounded, "max-weight = 0.3", ""),
        None,
        None,
    );
}

/// Eight hospitals with a linear model of squared loss.
fn hierarchical(rounds: usize, more: &str) -> String {
    format!(
        "name = \"mixed\"
        seed = 2
        rounds = {rounds}
        silos = 8
        unseen = [\"7\"]
        [task.table]
        data = \"diabetes\"
        standardise = \"federation\"
        split = {{ validation = 0.0, test = 0.3 }}
        model = {{ linear = {{ loss = \"squared\" }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"hierarchical\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
        {more}"
    )
}

#[test]
fn a_hierarchical_model_has_the_same_outcomes_and_ends_by_itself() {
    let direct = both("hierarchical", &hierarchical(60, ""), None, None);
    // A round for the scale, some for the estimates, and one to compare with fits alone.
    let rounds = direct.rounds.len();
    assert!((6..40).contains(&rounds), "{rounds}");
    let memory = &direct.rounds.last().unwrap().memory;
    assert!(memory.contains_key("hierarchical.losses"));
    // A round for the scale, then too few.
    let cut = both("cut", &hierarchical(4, ""), None, None);
    assert_eq!(cut.rounds.len(), 4);
    for silo in &cut.silos {
        assert!(silo.coalition.unwrap().is_finite());
    }
}

#[test]
fn members_that_lie_about_what_they_learn_have_the_same_outcomes() {
    for behaviour in [
        "sign-flip",
        "noise",
        "shuffled-labels",
        "false-losses",
        "false-rows",
        "collusion",
    ] {
        let lie =
            |member| format!("[[fault]]\nmember = \"{member}\"\nbehaviour = \"{behaviour}\"\n");
        let lies = lie(1) + &lie(2);
        for strategy in [
            "name = \"cs-rcfl\"\ncoalitions = 2",
            "name = \"fedavg\"",
            "name = \"fedavg\"\nweight = \"equal\"\naggregation = { name = \"krum\", byzantine = 1 }",
            "name = \"hcct\"",
            "name = \"hcct\"\ngroups = \"auto\"",
        ] {
            let what = format!("{behaviour}, {strategy}");
            both(&what, &patients(strategy, "", &lies), None, None);
        }
    }
}

/// A silo that cannot train, or cannot measure, in some rounds.
struct Unable {
    inner: QuadraticLearner,
    trains: bool,
}

impl Learner for Unable {
    fn layout(&self) -> Arc<Layout> {
        self.inner.layout()
    }

    fn initial(&self, seed: u64) -> Params {
        self.inner.initial(seed)
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        seed: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        if self.trains {
            self.inner.train(start, personal, training, seed, watch)
        } else {
            Err(LearnError::Failed("no memory is left".into()))
        }
    }

    fn evaluate(&self, model: &Params, own: &Params, split: Split) -> Result<Metrics, LearnError> {
        match (self.trains, split) {
            (true, Split::Train) => Err(LearnError::Failed("the rows are gone".into())),
            _ => self.inner.evaluate(model, own, split),
        }
    }

    fn samples(&self) -> u64 {
        self.inner.samples()
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

#[test]
fn a_member_that_cannot_train_or_score_is_left_out_by_both() {
    for (strategy, trains) in [("fedavg", false), ("cs-rcfl", true)] {
        let mut study = centres();
        let layout = study.silos[0].learner.layout();
        study.silos[4].learner = Arc::new(Unable {
            inner: QuadraticLearner::with_layout(&layout, &[1.0, 1.0, 1.0]),
            trains,
        });
        let direct = both(strategy, &toy(strategy, ""), Some(&study), None);
        let failed = if trains { 0 } else { 4 };
        assert_eq!(direct.training_failed.len(), failed, "{strategy}");
        assert_eq!(direct.rounds[0].authors.len(), 4, "{strategy}");
    }
}

#[test]
fn too_few_contributions_end_a_direct_federation_with_the_reason() {
    let mut study = centres();
    let layout = study.silos[0].learner.layout();
    for at in 0..3 {
        study.silos[at].learner = Arc::new(Unable {
            inner: QuadraticLearner::with_layout(&layout, &[1.0, 1.0, 1.0]),
            trains: false,
        });
    }
    let scenario = Scenario::parse("toy.toml", &toy("fedavg", "")).unwrap();
    let [mesh, direct] = [Surrounding::Virtual, Surrounding::Direct].map(|surrounding| {
        let options = Options {
            references: false,
            surrounding,
            ..Options::default()
        };
        let error = run_study(&scenario, &study, options).unwrap_err();
        error.to_string()
    });
    assert!(direct.contains("no memory is left"), "{direct}");
    let start = "round 1 cannot reach its minimum of";
    assert!(
        direct.starts_with(start) && mesh.starts_with(start),
        "{mesh}"
    );
}

#[test]
fn faults_of_messages_are_refused_without_messages() {
    let kill = "[[fault]]\nkill = \"lead\"\nphase = \"voting\"\nround = 2";
    let scenario = Scenario::parse("toy.toml", &toy("fedavg", kill)).unwrap();
    assert!(scenario.needs_network());
    let options = Options {
        surrounding: Surrounding::Direct,
        ..Options::default()
    };
    let error = run_study(&scenario, &centres(), options).unwrap_err();
    assert_eq!(
        error.to_string(),
        "toy.toml: a [[fault]] needs messages, and a direct federation has none: choose another mesh"
    );
}

#[test]
fn what_does_not_exist_without_messages_is_not_in_the_summary() {
    let direct = both("fedavg", &toy("fedavg", ""), Some(&centres()), None);
    let json = serde_json::to_value(&direct).unwrap();
    for key in [
        "trace",
        "events",
        "invariants",
        "bytes",
        "bytes_messages",
        "checks",
        "timeline",
        "traffic",
    ] {
        assert_eq!(json.get(key), None, "{key}");
    }
    for key in ["view", "lead", "at"] {
        assert_eq!(json["rounds"][0].get(key), None, "{key}");
    }
}

/// Twenty silos with a partition of the optical digits, and a perceptron.
#[test]
fn every_strategy_learns_the_same_from_real_digits() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        skipped::skipped("needs the digits, and ROTA_DATA is not set");
        return;
    };
    for info in STRATEGIES {
        let more = match info.name {
            // These cannot train a perceptron.
            "fedbn" | "robust-local" | "hierarchical" => continue,
            "ifca" | "flsc" => "start = \"k-means\"",
            "fedcg" => "domains = 2\nprojection = \"none\"",
            _ => "",
        };
        let text = format!(
            "name = \"digits\"
            seed = 3
            rounds = 3
            silos = 20
            task = \"digits8-bench\"
            serve = {{ folds = 0 }}
            [strategy]
            name = \"{name}\"
            training = {{ epochs = 1, batch = 32, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
            {more}",
            name = info.name,
        );
        both(info.name, &text, None, Some(data.clone()));
    }
}

#[test]
fn more_silos_than_a_roster_holds_learn_without_messages_only() {
    let centres: Vec<_> = (0..1_001).map(|at| vec![f64::from(at)]).collect();
    let (study, _) = toy_study(&centres);
    let text = toy("fedavg", "participation = 0.01").replace("rounds = 4", "rounds = 2");
    let scenario = Scenario::parse("many.toml", &text).unwrap();
    let run = |surrounding| {
        let options = Options {
            references: false,
            surrounding,
            ..Options::default()
        };
        run_study(&scenario, &study, options)
    };
    let summary = run(Surrounding::Direct).unwrap();
    let authors = summary.rounds.iter().map(|round| round.authors.len());
    assert_eq!(authors.collect::<Vec<_>>(), [10, 10]);
    assert_eq!(
        run(Surrounding::Virtual).unwrap_err().to_string(),
        "many.toml: 1001 silos are more than 1000, the largest federation over a network: choose the \
         direct mesh"
    );
}
