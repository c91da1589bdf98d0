//! Secure-aggregation rounds: every strategy that they allow learns what it learns in clear, and all others are
//! refused before the first round.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lab::absence::AbsenceRound;
use learn::Study;
use methods::strategy::STRATEGIES;
use protocol::{MemberIndex, Report};
use silo::Notice;
use simulations::pool::Threads;
use simulations::{Federation, Options, Overrides, RunRecord, Scenario, federate};

use crate::common::three_tensors;
use crate::skipped;

/// The strategies that need nothing but sums.
const ALLOWED: [&str; 12] = [
    "fedavg",
    "fedprox",
    "fedadam",
    "fedyogi",
    "fedadagrad",
    "fedper",
    "fedrep",
    "fedbn",
    "ditto",
    "apfl",
    "pfedme",
    "fedala",
];

const MASKED: &str = "[privacy]\nmode = \"secure-aggregation\"";

fn text(strategy: &str, privacy: &str, faults: &str) -> String {
    let training =
        "training = { epochs = 3, batch = 0, optimiser = { name = \"sgd\", rate = 0.25 } }";
    format!(
        "name = \"toy\"
        seed = 3
        rounds = 4
        task = {{ constant = {{ parameters = 3 }} }}
        {privacy}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"{strategy}\"
        {training}
        {faults}"
    )
}

fn toys(n: usize) -> Study {
    let centres: Vec<[f64; 3]> = (0..n)
        .map(|i| [i as f64 / 2.0, (i * i % 5) as f64, 2.0 - i as f64])
        .collect();
    three_tensors(&centres)
}

/// Runs a federation in virtual time.
fn run(scenario: &Scenario, study: &Study) -> RunRecord {
    let faults = &scenario.faults;
    let federation = Federation::new(scenario, study, &scenario.strategy, faults)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.strategy.name()));
    let mut options = Options::default();
    let threads = Threads::new(2);
    federate(scenario, &federation, faults, &mut options, &threads)
        .unwrap_or_else(|error| panic!("{}: {error}", scenario.strategy.name()))
}

fn play(strategy: &str, privacy: &str, faults: &str, n: usize) -> RunRecord {
    let scenario = Scenario::parse("toy.toml", &text(strategy, privacy, faults)).unwrap();
    run(&scenario, &toys(n))
}

/// The models and personal states that every member has in the end.
fn models(record: &RunRecord) -> BTreeMap<MemberIndex, (Vec<f32>, Vec<f32>)> {
    let notices = record.notices.iter();
    let adopted = notices.filter_map(|(_, by, notice)| match notice {
        Notice::Adopted {
            model, personal, ..
        } => Some((*by, (model.values().to_vec(), personal.values().to_vec()))),
        _ => None,
    });
    adopted.collect()
}

/// The largest distance of two models, relative to the norm of the second.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let square = |value: f64| value * value;
    let pairs = found.iter().zip(expected);
    let apart: f64 = pairs
        .map(|(a, b)| square(f64::from(*a) - f64::from(*b)))
        .sum();
    let norm: f64 = expected.iter().map(|value| square(f64::from(*value))).sum();
    (apart / norm.max(1e-9)).sqrt()
}

fn same(what: &str, masked: &RunRecord, clear: &RunRecord, within: f64) {
    assert_eq!(masked.rounds.len(), clear.rounds.len(), "{what}");
    let (masked, clear) = (models(masked), models(clear));
    assert!(masked.keys().eq(clear.keys()), "{what}");
    for (by, (model, personal)) in &masked {
        let (other, other_personal) = &clear[by];
        let apart = distance(model, other);
        assert!(apart <= within, "{what}, model of {by}: {apart}");
        let apart = distance(personal, other_personal);
        assert!(apart <= within, "{what}, personal state of {by}: {apart}");
    }
}

#[test]
fn every_allowed_strategy_learns_what_it_learns_in_clear() {
    for strategy in ALLOWED {
        let equal = "weight = \"equal\"";
        let clear = play(strategy, "", equal, 5);
        let masked = play(strategy, MASKED, equal, 5);
        same(strategy, &masked, &clear, 1e-4);
    }
}

/// From the moment at which a member has the final block to that at which it has adopted the outcome: the
/// shares travel, then the votes. Masking took the same time as in clear everything takes.
#[test]
fn a_final_round_is_adopted_within_two_round_trips() {
    let trip = Duration::from_millis(200);
    let network = "[network]\nlatency = [\"100ms\", \"100ms\"]\njitter = \"0ms\"";
    for n in [4, 7, 10] {
        let record = play(
            "fedavg",
            MASKED,
            &format!("weight = \"equal\"\n{network}"),
            n,
        );
        let mut finals = BTreeMap::new();
        let mut took = Vec::new();
        for (at, by, notice) in &record.notices {
            match notice {
                Notice::Protocol(Report::Final { round, .. }) => {
                    finals.entry((*by, *round)).or_insert(*at);
                }
                Notice::Adopted { round, .. } => took.push(*at - finals[&(*by, *round)]),
                _ => {}
            }
        }
        took.sort();
        let (fastest, slowest) = (took[0], took[took.len() - 1]);
        println!(
            "{n} members, {} adoptions: {fastest:?} to {slowest:?}",
            took.len()
        );
        assert_eq!(took.len(), 4 * n);
        assert!(slowest <= 2 * trip, "{n} members: {slowest:?}");
    }
}

#[test]
fn every_other_strategy_is_refused_at_the_start_with_a_remedy() {
    for info in STRATEGIES
        .iter()
        .filter(|info| !ALLOWED.contains(&info.name))
    {
        let refused = Scenario::parse("toy.toml", &text(info.name, MASKED, ""));
        let why = refused
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(
            why.contains("`name` is") && why.contains("choose fedavg"),
            "{}: {why}",
            info.name
        );
    }
}

#[test]
fn a_lead_that_dies_in_any_phase_changes_no_model() {
    let equal = "weight = \"equal\"";
    let calm = play("fedavg", MASKED, equal, 5);
    for phase in [
        "waiting",
        "collecting",
        "masking",
        "including",
        "voting",
        "notarised",
    ] {
        let kill = format!(
            "{equal}\n[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2\nrestart-after = \"8s\""
        );
        let cut = play("fedavg", MASKED, &kill, 5);
        let stops = |record: &RunRecord| record.protocol.as_ref().unwrap().stops.len();
        assert_eq!(stops(&cut), stops(&calm) + 1, "{phase}: no lead was killed");
        // Bit by bit: the sums have the same authors.
        assert_eq!(models(&cut), models(&calm), "{phase}");
    }
}

/// Eight hospitals whose models are shrunken towards a common one.
fn hierarchical(privacy: &str, more: &str) -> Scenario {
    let text = format!(
        "name = \"mixed\"
        seed = 2
        rounds = 40
        silos = 8
        {privacy}
        [task.table]
        data = \"diabetes\"
        standardise = \"silo\"
        split = {{ validation = 0.0, test = 0.3 }}
        model = {{ linear = {{ loss = \"squared\" }} }}
        [protocol]
        heartbeat = \"1s\"
        straggler-timeout = 30
        [strategy]
        name = \"hierarchical\"
        exponent = 0
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}
        {more}"
    );
    Scenario::parse("mixed.toml", &text).unwrap()
}

#[test]
fn shrunken_models_are_those_of_clear_rounds_whoever_dies() {
    let opens = "unknowns-per-number = 0.01";
    let play = |privacy: &str, more: &str| {
        let scenario = hierarchical(privacy, more);
        let study = scenario.study(None).unwrap();
        run(&scenario, &study)
    };
    let (clear, masked) = (play("", ""), play(MASKED, opens));
    let rounds = masked.rounds.len();
    assert!((6..40).contains(&rounds), "it ends by itself: {rounds}");
    assert_eq!(clear.rounds.len(), rounds);
    // Bit by bit, with what every silo keeps to itself.
    assert_eq!(models(&masked), models(&clear));
    for phase in ["collecting", "masking", "voting"] {
        let kill = format!(
            "{opens}\n[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 3\nrestart-after = \"8s\""
        );
        let cut = play(MASKED, &kill);
        let stops = |record: &RunRecord| record.protocol.as_ref().unwrap().stops.len();
        assert_eq!(
            stops(&cut),
            stops(&masked) + 1,
            "{phase}: no lead was killed"
        );
        assert_eq!(models(&cut), models(&masked), "{phase}");
    }
}

#[test]
fn sums_of_too_many_numbers_are_refused_before_the_first_round() {
    let scenario = hierarchical(MASKED, "");
    let study = scenario.study(None).unwrap();
    let federation = Federation::new(&scenario, &study, &scenario.strategy, &[]).unwrap();
    let (mut options, threads) = (Options::default(), Threads::new(2));
    let ran = federate(&scenario, &federation, &[], &mut options, &threads);
    let why = ran.map(drop).unwrap_err().to_string();
    assert!(
        why.contains("numbers, and the 5 silos") && why.contains("agree on fewer `rounds`"),
        "{why}"
    );
}

#[test]
fn two_groups_with_weights_are_one_weighted_mean() {
    let groups = "[privacy]\nmode = \"secure-aggregation\"\ncolluders = 1\n
        [[privacy.group]]\n\"toy 0\" = 1\n\"toy 1\" = 1\n\"toy 2\" = 1\n
        [[privacy.group]]\n\"toy 3\" = 1\n\"toy 4\" = 1\n\"toy 5\" = 1\n\"toy 6\" = 1\n";
    let equal = "weight = \"equal\"";
    let clear = play("fedavg", "", equal, 7);
    let masked = play("fedavg", groups, equal, 7);
    same("two groups", &masked, &clear, 1e-4);
}

/// A scenario that is built in, with weights as secure-aggregation rounds have them.
fn built_in(name: &str, change: impl Fn(String) -> String) -> [Scenario; 2] {
    let (_, text) = simulations::scenario::BUILT_IN
        .iter()
        .find(|(built_in, _)| *built_in == name)
        .unwrap();
    let clear = change((*text).to_owned());
    let masked = format!("{clear}\n{MASKED}\n");
    [clear, masked].map(|text| Scenario::parse(name, &text).unwrap())
}

/// Models after all rounds of real tasks.
fn real(name: &str, change: impl Fn(String) -> String) {
    let Some(data) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let [clear, masked] = built_in(name, change);
    let study = clear.study(Some(&data)).unwrap();
    let clear = run(&clear, &study);
    let masked = run(&masked, &study);
    same(name, &masked, &clear, 1e-3);
}

#[test]
fn digits_are_learned_as_in_clear() {
    real("digits20", |text| text.replace("\"exact\"", "\"equal\""));
}

#[test]
fn four_hospitals_learn_as_in_clear() {
    real("heart", |text| {
        let text = text.replace("rounds = 1", "rounds = 12");
        let strategy = "name = \"fedavg\"\nweight = \"equal\"\n";
        let text = text.replace("name = \"cs-rcfl\"\ncoalitions = 2\n", strategy);
        text.replace("radius = 0.05", "")
    });
}

/// Weights and running statistics of the norm layers are personal: no mask is needed for what does not leave.
#[test]
fn a_network_whose_norms_stay_at_home_is_learned_as_in_clear() {
    let text = |privacy: &str, strategy: &str| {
        format!(
            "name = \"norms\"
            seed = 3
            rounds = 5
            silos = 4
            {privacy}
            [task.table]
            data = \"diabetes\"
            standardise = \"silo\"
            model = {{ network = {{ layers = [{{ dense = 8 }}, \"norm\", \"relu\"] }} }}
            [strategy]
            name = \"{strategy}\"
            weight = \"equal\"
            training = {{ epochs = 2, batch = 16, optimiser = {{ name = \"sgd\", rate = 0.01 }} }}"
        )
    };
    let play = |privacy: &str| {
        let scenario = Scenario::parse("norms.toml", &text(privacy, "fedbn")).unwrap();
        let study = scenario.study(None).unwrap();
        run(&scenario, &study)
    };
    let (clear, masked) = (play(""), play(MASKED));
    let personal = models(&masked).values().next().unwrap().1.len();
    // Scale, shift, running mean and running variance of eight units.
    assert_eq!(personal, 32);
    same("norms", &masked, &clear, 1e-3);

    // With another strategy the statistics would leave.
    let refused = Scenario::parse("norms.toml", &text(MASKED, "fedavg"));
    let why = refused.err().map(|error| error.to_string());
    assert!(
        why.as_ref()
            .is_some_and(|why| why.contains("choose the strategy fedbn")),
        "{why:?}"
    );
    // A network without such layers has none that could leave.
    let plain = text(MASKED, "fedavg").replace("\"norm\", ", "");
    Scenario::parse("norms.toml", &plain).unwrap();
}

/// The hospitals hardly move any more in round 41.
#[test]
fn sums_of_different_authors_reveal_an_update_and_others_do_not() {
    let Some(data) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        skipped::skipped("needs the hospitals' rows, and ROTA_DATA is not set");
        return;
    };
    let overrides = Overrides {
        rounds: Some(42),
        ..Overrides::default()
    };
    let scenario = Scenario::load("heart").unwrap().with(&overrides).unwrap();
    let options = Options {
        data: Some(data),
        ..Options::default()
    };
    let found = lab::absence::absence(&scenario, options).unwrap();
    let last = found.rounds.last().unwrap();
    assert_eq!((last.round, last.without.len()), (41, 4));
    let least = last.without.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(least >= 0.99, "{last:?}");
    let most = |cosines: &[f64]| cosines.iter().copied().fold(0.0, f64::max);
    let over = |of: fn(&AbsenceRound) -> &[f64]| {
        let rounds = found.rounds.iter();
        rounds.map(|round| most(of(round))).fold(0.0, f64::max)
    };
    // Sums of the same authors come no nearer than a sum alone does.
    assert!(over(|round| &round.with_all) <= over(|round| &round.sum));
}

/// Vectors take longer than a phase on these links.
#[test]
fn a_lead_waits_for_vectors_that_are_on_their_way() {
    let text = text("fedavg", MASKED, "weight = \"equal\"").replace("\"1s\"", "\"100ms\"");
    let slow = format!("{text}\n[network]\nlatency = [\"40ms\", \"90ms\"]\njitter = \"20ms\"\n");
    let scenario = Scenario::parse("toy.toml", &slow).unwrap();
    let record = run(&scenario, &toys(5));
    let views: Vec<_> = record
        .rounds
        .iter()
        .map(|round| round.led.as_ref().unwrap().view)
        .collect();
    assert_eq!(views, [1, 2, 3, 4]);
}

#[test]
fn the_report_of_secure_aggregation_has_references_and_no_names() {
    let scenario =
        Scenario::parse("toy.toml", &text("fedavg", MASKED, "weight = \"equal\"")).unwrap();
    let options = Options::default();
    assert!(options.references);
    let summary = lab::run_study(&scenario, &toys(5), options).unwrap();
    assert_eq!(summary.rounds.len(), 4);
    assert!(summary.linkage.is_none(), "{:?}", summary.linkage);
}

#[test]
fn fewer_authors_than_a_quorum_are_refused_and_more_required() {
    let with = |least: u16| {
        let protocol = format!("straggler-timeout = 30\n        min-contributions = {least}");
        let text = text("fedavg", MASKED, "weight = \"equal\"")
            .replace("straggler-timeout = 30", &protocol);
        let scenario = Scenario::parse("toy.toml", &text).unwrap();
        Federation::new(&scenario, &toys(5), &scenario.strategy, &[])
    };
    let refused = with(2).map(drop).unwrap_err().to_string();
    assert!(
        refused.contains("min-contributions is 2, it must be between 4 and 5"),
        "{refused}"
    );
    let kept = with(5).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(kept.epoch.protocol.min_contributions, 5);
}
