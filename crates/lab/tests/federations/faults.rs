//! Whole federations of four toy silos over three rounds of CS-RCFL, with scripted faults.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use crate::common::LEAD_PHASES;
use lab::{Summary, run_study};
use methods::learner::QuadraticLearner;
use serde_json::Value;
use simulations::toy::toy_study;
use simulations::{Options, Overrides, RunError, Scenario, Signatures};

const TOY: &str = r#"
name = "toy"
seed = 3
rounds = 3
task = { constant = { parameters = 2 } }

[strategy]
name = "cs-rcfl"
coalitions = 2
freeze = 0
training = { epochs = 5, batch = 0, optimiser = { name = "sgd", rate = 0.5 } }

[protocol]
heartbeat = "1s"
straggler-timeout = 6
"#;

struct ToyRun {
    result: Result<Summary, RunError>,
    learners: Vec<Arc<QuadraticLearner>>,
}

fn play(faults: &str, threads: usize, seed: u64) -> ToyRun {
    let options = Options {
        threads,
        ..Options::default()
    };
    play_with(faults, seed, options)
}

fn play_with(faults: &str, seed: u64, options: Options<'_>) -> ToyRun {
    play_under(None, faults, seed, options)
}

/// Under another strategy than CS-RCFL, if there is one.
fn play_under(strategy: Option<&str>, faults: &str, seed: u64, options: Options<'_>) -> ToyRun {
    let scenario = Scenario::parse("toy.toml", &format!("{TOY}{faults}")).unwrap();
    let overrides = Overrides {
        seed: Some(seed),
        strategy: strategy.map(str::to_owned),
        ..Overrides::default()
    };
    let scenario = scenario.with(&overrides).unwrap();
    // Two pairs that agree with each other.
    let centres = [[0.0, 1.0], [0.0, 1.2], [5.0, 5.0], [5.2, 5.0]].map(|c| c.to_vec());
    let (study, learners) = toy_study(&centres);
    let options = Options {
        references: false,
        ..options
    };
    ToyRun {
        result: run_study(&scenario, &study, options),
        learners,
    }
}

fn summary(faults: &str) -> Summary {
    play(faults, 2, 3)
        .result
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn silos_with_close_optima_share_a_model() {
    let summary = summary("");
    assert_eq!(summary.rounds.len(), 3);
    let mut pairs = summary.rounds[2].coalitions.clone();
    pairs.sort();
    assert_eq!(pairs, [["toy 0", "toy 1"], ["toy 2", "toy 3"]]);
    let losses: Vec<_> = summary
        .silos
        .iter()
        .map(|silo| silo.coalition.unwrap())
        .collect();
    // Halfway between two points that are 0.2 apart: 0.1² / 2.
    assert!(
        losses.iter().all(|loss| (loss - 0.005).abs() < 1e-3),
        "{losses:?}"
    );
    assert!(summary.nullified.is_empty() && summary.refused.is_empty());
    assert_eq!(
        summary
            .timeline
            .iter()
            .filter(|lead| lead.result == "final")
            .count(),
        3
    );
}

#[test]
fn a_seed_gives_the_same_trace_on_any_number_of_threads() {
    let trace = |threads, seed| play("", threads, seed).result.unwrap().trace;
    let first = trace(1, 3);
    assert_eq!(first, trace(4, 3));
    assert_eq!(first, trace(1, 3));
    assert_ne!(first, trace(1, 4));
}

#[test]
fn a_lead_killed_in_any_phase_costs_one_view_and_no_training() {
    let calm = summary("");
    for phase in LEAD_PHASES {
        let fault = format!(
            "[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2\nrestart-after = \"60s\""
        );
        let toy = play(&fault, 2, 3);
        let summary = toy
            .result
            .unwrap_or_else(|error| panic!("killed while {phase}: {error}"));
        assert_ne!(summary.trace, calm.trace, "{phase}: no lead was killed");
        assert_eq!(summary.rounds.len(), 3, "{phase}");
        let extra = summary.rounds[1].view().unwrap() - calm.rounds[1].view().unwrap();
        assert!(extra <= 1, "{phase}: {extra} more views");
        let trainings: Vec<_> = toy
            .learners
            .iter()
            .map(|learner| learner.trainings())
            .collect();
        // Only the silo that is killed may train again, if it had not finished.
        assert!(
            trainings.iter().filter(|&&trainings| trainings > 3).count() <= 1,
            "{phase}: {trainings:?}"
        );
        assert!(
            trainings.iter().all(|&trainings| trainings <= 4),
            "{phase}: {trainings:?}"
        );
    }
}

#[test]
fn a_crash_before_or_after_any_commit_costs_no_round() {
    let calm = summary("");
    for (nth, cut) in (2..14).flat_map(|nth| [(nth, "before"), (nth, "persisted")]) {
        let fault = format!(
            "[[fault]]\nkill = \"toy 1\"\ncommit = {nth}\ncut = \"{cut}\"\nrestart-after = \"4s\""
        );
        let result = play(&fault, 2, 3).result;
        let summary = result.unwrap_or_else(|error| panic!("commit {nth}, {cut}: {error}"));
        assert_ne!(
            summary.trace, calm.trace,
            "commit {nth}, {cut}: nothing crashed"
        );
        assert_eq!(summary.rounds.len(), 3);
        assert!(summary.faults.is_empty(), "{:?}", summary.faults);
    }
}

/// The faults of toy 2 with these behaviours.
fn byzantine(behaviours: &[&str]) -> String {
    let fault = |behaviour| format!("[[fault]]\nmember = \"toy 2\"\nbehaviour = \"{behaviour}\"\n");
    behaviours.iter().map(fault).collect()
}

/// Returns whether something of toy 2 was refused for this reason.
fn refused(summary: &Summary, reason: &str) -> bool {
    let mut all = summary.refused.iter();
    all.any(|refused| refused.member == "toy 2" && refused.reason.contains(reason))
}

#[test]
fn wrong_contributions_are_refused_with_a_reason() {
    for (behaviour, reason) in [("nan", "not finite"), ("wrong-shape", "header")] {
        let summary = summary(&byzantine(&[behaviour]));
        assert_eq!(summary.rounds.len(), 3, "{behaviour}");
        assert!(
            refused(&summary, reason),
            "{behaviour}: {:?}",
            summary.refused
        );
        assert!(
            sent(&summary).all(|round| !round.authors.contains(&"toy 2".into())),
            "{behaviour}"
        );
    }
}

#[test]
fn messages_with_a_wrong_key_are_refused_with_a_reason() {
    let summary = summary(&byzantine(&["wrong-key"]));
    assert_eq!(summary.rounds.len(), 3);
    let reason = "the signature is not";
    assert!(refused(&summary, reason), "{:?}", summary.refused);
}

#[test]
fn several_behaviours_of_one_member_are_combined() {
    let summary = summary(&byzantine(&["nan", "wrong-key"]));
    for reason in ["not finite", "the signature is not"] {
        assert!(refused(&summary, reason), "{reason}: {:?}", summary.refused);
    }
}

/// Twenty silos of four kinds that overlap, which are more than members group exactly; `toy 2` and
/// `toy 5` lead with worse coalitions, and all lead once.
fn twenty(faults: &str, options: &str) -> Result<Summary, RunError> {
    let toy = TOY.replace("coalitions = 2", &format!("coalitions = 4\n{options}"));
    let toy = toy.replace("rounds = 3", "rounds = 20");
    let scenario = Scenario::parse("toy.toml", &format!("{toy}{faults}")).unwrap();
    let centre = |silo: u32| {
        let off = |of: u32| f64::from((silo * of) % 17) / 17.0;
        vec![
            f64::from(silo % 2) * 2.0 + 1.4 * off(7),
            f64::from(silo / 2 % 2) * 2.0 + 1.4 * off(5),
        ]
    };
    let centres: Vec<_> = (0..20).map(centre).collect();
    let (study, _) = toy_study(&centres);
    let options = Options {
        references: false,
        ..Options::default()
    };
    run_study(&scenario, &study, options)
}

#[test]
fn worse_coalitions_of_many_silos_are_refused_by_the_next_lead() {
    let calm = twenty("", "").unwrap();
    let lying = ["toy 2", "toy 5"].map(|member| {
        format!("[[fault]]\nmember = \"{member}\"\nbehaviour = \"worse-coalition\"\n")
    });
    let summary = twenty(&lying.concat(), "").unwrap();
    assert_eq!(summary.rounds.len(), 20);
    for member in ["toy 2", "toy 5"] {
        let mut refused = summary.refused.iter();
        let worse = "a better decision exists";
        assert!(
            refused.any(|one| one.member == member && one.reason.contains(worse)),
            "{:?}",
            summary.refused
        );
        let led = |rounds: &Summary| {
            rounds
                .rounds
                .iter()
                .any(|round| round.led.as_ref().unwrap().lead == member)
        };
        assert!(led(&calm) && !led(&summary), "{member}");
    }
    // All others refuse, and nothing else is refused.
    let by_all = |one: &lab::summary::Refused| one.times == 19;
    assert!(summary.refused.iter().all(by_all), "{:?}", summary.refused);
    for (round, calm) in summary.rounds.iter().zip(&calm.rounds) {
        assert_eq!(round.coalitions, calm.coalitions);
        assert!(round.memory["coalitions.gap"].as_f64().unwrap() < 0.05);
    }
}

/// The names of the behaviours that a scenario can have, from the message that refuses another.
fn behaviours() -> Vec<String> {
    let text = format!("{TOY}{}", byzantine(&["another"]));
    let refused = Scenario::parse("toy.toml", &text).unwrap_err().to_string();
    let (_, names) = refused.split_once("here are ").unwrap();
    let names = names.split('`').skip(1).step_by(2);
    names.map(str::to_owned).collect()
}

#[test]
fn rounds_finish_with_one_byzantine_silo_of_any_behaviour() {
    let names = behaviours();
    assert!(names.len() > 20, "{names:?}");
    let play = |strategy, faults: &str, seed| {
        let options = Options {
            threads: 2,
            ..Options::default()
        };
        play_under(strategy, faults, seed, options).result
    };
    // Silos of this study have no labels that could be shuffled.
    for name in names.iter().filter(|name| *name != "shuffled-labels") {
        // CS-RCFL asks no member for its number of rows.
        let strategy = (name == "false-rows").then_some("fedavg");
        let mut acted = false;
        for seed in 3..=10 {
            let calm = play(strategy, "", seed).unwrap();
            let summary = play(strategy, &byzantine(&[name]), seed)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(summary.rounds.len(), 3, "{name}");
            acted |= summary.trace != calm.trace;
        }
        // Nobody catches up here, so that wrong answers are not asked for. A wrong header may be
        // drawn for a kind of message that is not sent, and some only act while they lead, but not with
        // every seed.
        let idle = name.starts_with("sync-");
        assert!(idle || acted, "{name} does nothing");
    }
}

/// Returns what happened in a run, without what differs between the ways to sign: hashes over signatures, and how
/// many were checked.
fn happened(summary: &Summary) -> Value {
    let mut all = serde_json::to_value(summary).unwrap();
    for key in ["trace", "seconds", "reference_seconds", "checks"] {
        assert!(all.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    all
}

#[test]
fn keyed_hashes_instead_of_signatures_give_the_same_behaviour() {
    let names = behaviours();
    let byzantine = names
        .iter()
        .filter(|name| *name != "shuffled-labels")
        .map(|name| byzantine(&[name]));
    let killed =
        "[[fault]]\nkill = \"lead\"\nphase = \"deciding\"\nround = 2\nrestart-after = \"10s\"\n";
    for (seed, faults) in byzantine.chain([String::new(), killed.into()]).enumerate() {
        let run = |cache, signatures| {
            let options = Options {
                cache,
                signatures,
                threads: 2,
                ..Options::default()
            };
            let result = play_with(&faults, seed as u64, options).result;
            result.unwrap_or_else(|error| panic!("{faults}: {error}"))
        };
        let (real, hashes) = (
            run(true, Signatures::Ed25519),
            run(true, Signatures::Simulated),
        );
        assert_eq!(happened(&real), happened(&hashes), "{faults}");
        assert_ne!(real.trace, hashes.trace, "{faults}");
        assert!(hashes.checks.unwrap().simulated_signatures);
        // Where members check each other, they sign by Ed25519 whatever is asked for.
        let alone = run(false, Signatures::Simulated);
        assert_eq!(alone.trace, real.trace, "{faults}");
        assert!(!alone.checks.unwrap().simulated_signatures);
    }
}

#[test]
fn a_silo_catches_up_although_another_forges_its_answers() {
    let restart = "[[fault]]\nkill = \"toy 3\"\nat = \"300ms\"\nrestart-after = \"10s\"\n";
    // The silo that is asked follows from the seed.
    let seeds = [3, 4, 5, 6, 7, 8, 9, 10];
    let calm = seeds.map(|seed| play(restart, 2, seed).result.unwrap().trace);
    let names = behaviours();
    let forging = names.iter().filter(|name| name.starts_with("sync-"));
    for name in forging {
        let mut acted = false;
        for (seed, calm) in seeds.iter().zip(&calm) {
            let result = play(&format!("{restart}{}", byzantine(&[name])), 2, *seed).result;
            let summary = result.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(summary.rounds.len(), 3, "{name}");
            acted |= summary.trace != *calm;
        }
        assert!(acted, "{name} does nothing");
    }
}

/// Rounds in which toy 2 sends a contribution, which it does not while it leads.
fn sent(summary: &Summary) -> impl Iterator<Item = &lab::summary::RoundInfo> {
    summary
        .rounds
        .iter()
        .filter(|round| round.led.as_ref().unwrap().lead != "toy 2")
}

#[test]
fn two_contributions_of_a_round_are_reported_as_evidence_once() {
    let summary = summary(&byzantine(&["double-contribution"]));
    assert_eq!(summary.rounds.len(), 3);
    // It misbehaves in every round; one piece of evidence is enough.
    let [fault] = &summary.faults[..] else {
        panic!("{:?}", summary.faults)
    };
    let first = sent(&summary).next().unwrap().round;
    let charge = format!("two different contributions in round {first}");
    assert_eq!(
        (fault.charge.as_str(), fault.member.as_str()),
        (&*charge, "toy 2")
    );
}

#[test]
fn a_repeated_contribution_is_not_counted() {
    let summary = summary(&byzantine(&["repeated-contribution"]));
    assert_eq!(summary.rounds.len(), 3);
    let counted: Vec<_> = sent(&summary)
        .map(|round| round.authors.contains(&"toy 2".into()))
        .collect();
    assert!(counted[0] && counted.len() > 1, "the first is not repeated");
    assert!(counted[1..].iter().all(|counted| !counted), "{counted:?}");
}

#[test]
fn a_split_network_without_a_quorum_waits_until_the_split_ends() {
    for one_way in [false, true] {
        let summary = summary(&format!(
            "[[fault]]\nsplit = [\"toy 0\", \"toy 2\"]\nat = \"20ms\"\nlasts = \"40s\"\none-way = {one_way}"
        ));
        assert_eq!(summary.rounds.len(), 3);
        // Two of four have no quorum.
        assert!(
            one_way || summary.virtual_seconds > Some(40.0),
            "{:?}",
            summary.virtual_seconds
        );
    }
}

#[test]
fn a_silo_catches_up_after_a_restart_even_without_its_journal() {
    for journal in ["kept", "lost"] {
        let summary = summary(&format!(
            "[[fault]]\nkill = \"toy 3\"\nat = \"300ms\"\nrestart-after = \"10s\"\njournal = \"{journal}\""
        ));
        assert_eq!(summary.rounds.len(), 3, "{journal}");
        let away = summary.virtual_seconds > Some(10.0);
        assert!(
            away && summary
                .curves
                .iter()
                .any(|c| c.silo == "toy 3" && c.round == 3 && c.metric.is_some())
        );
    }
}

#[test]
fn a_federation_without_a_quorum_fails_with_every_silos_state() {
    let kill = |silo: u8| format!("[[fault]]\nkill = \"toy {silo}\"\nat = \"1ms\"\n");
    let error = play(&format!("{}{}", kill(0), kill(1)), 2, 3)
        .result
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("toy 0 is down") && error.contains("toy 2 is in view"),
        "{error}"
    );
}

#[test]
fn rounds_finish_under_loss_and_duplication() {
    let links = "[network]\nloss = 0.2\nduplication = 0.2\njitter = \"200ms\"";
    assert_eq!(summary(links).rounds.len(), 3);
}

#[test]
fn every_verification_level_gives_the_same_models() {
    // The order of entries, and so the hash of an outcome, follows from the federation's id.
    let pairs = |summary: &Summary| {
        let mut pairs = summary.rounds[2].coalitions.clone();
        pairs.sort();
        pairs
    };
    let full = summary("");
    let checked = |level: &str| {
        let summary = summary(&format!("verification = \"{level}\"\n"));
        assert_eq!(pairs(&summary), pairs(&full), "{level}");
        let checks = summary.checks.unwrap();
        (checks.settles, checks.checks)
    };
    let rounds = 3;
    assert_eq!(full.checks.unwrap().settles, 4 * rounds);
    // Two auditors and the lead, which may be one of them. The lead need not check its own decision.
    let (settled, checks) = checked("committee-2");
    assert!((2 * rounds..=3 * rounds).contains(&settled), "{settled}");
    assert!((rounds..=2 * rounds).contains(&checks), "{checks}");
    assert_eq!(checked("inclusion"), (rounds, 0));
}

/// An outcome that only some have computed outlives its lead.
#[test]
fn every_verification_level_replaces_a_lead_that_never_returns() {
    for level in ["committee-2", "committee-4", "inclusion"] {
        for phase in LEAD_PHASES {
            let summary = summary(&format!(
                "verification = \"{level}\"\n[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = 2\n"
            ));
            assert_eq!(summary.rounds.len(), 3, "{level} {phase}");
        }
    }
}

#[test]
fn silos_are_started_only_by_spawn() {
    // Members are made directly only by the bare simulator, in a folder of its own.
    let sources = std::fs::read_dir(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../simulations/src"
    ))
    .unwrap();
    let mut spawns = 0;
    for path in sources
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
    {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = text.replace("ByzantineMember::new(", "");
        assert!(
            !text.contains("Member::new(") && !text.contains("actix"),
            "{}",
            path.display()
        );
        spawns += text.matches(" spawn(config, environment)").count();
    }
    assert_eq!(spawns, 1);
}

/// Federations that end when their models get no better: these four after round 5 of 60.
fn stopping(faults: &str) -> Summary {
    let stop = "name = \"fedavg\"\nstop = { patience = 2, min-delta = 0.001 }";
    let text = TOY
        .replace("rounds = 3", "rounds = 60")
        .replace("name = \"cs-rcfl\"\ncoalitions = 2\nfreeze = 0", stop);
    let scenario = Scenario::parse("toy.toml", &format!("{text}{faults}")).unwrap();
    let centres = [[0.0, 1.0], [0.0, 1.2], [5.0, 5.0], [5.2, 5.0]].map(|c| c.to_vec());
    let options = Options {
        threads: 2,
        references: false,
        ..Options::default()
    };
    run_study(&scenario, &toy_study(&centres).0, options)
        .unwrap_or_else(|error| panic!("{error}\n{faults}"))
}

#[test]
fn a_federation_whose_models_get_no_better_ends_whatever_dies() {
    let calm = stopping("");
    assert_eq!(calm.rounds.len(), 5);
    for round in [4, 5] {
        // FedAvg compares no models, so no lead collects scores.
        for phase in LEAD_PHASES.iter().filter(|phase| **phase != "scoring") {
            for back in ["", "restart-after = \"60s\"", "restart-after = \"20m\""] {
                let fault = format!(
                    "[[fault]]\nkill = \"lead\"\nphase = \"{phase}\"\nround = {round}\n{back}"
                );
                let summary = stopping(&fault);
                assert_ne!(summary.trace, calm.trace, "{fault}: no lead was killed");
                // Without one of the four the mean is another, and the best round with it.
                let rounds = summary.rounds.len();
                assert!((4..=8).contains(&rounds), "{fault}: {rounds} rounds");
            }
        }
    }
    // A member that was away while the others ended takes their models over, and ends too.
    let away = "[[fault]]\nkill = \"toy 1\"\nat = \"1s\"\nrestart-after = \"30m\"";
    let summary = stopping(away);
    assert!((4..=8).contains(&summary.rounds.len()));
    assert!(summary.faults.is_empty(), "{:?}", summary.faults);
}
