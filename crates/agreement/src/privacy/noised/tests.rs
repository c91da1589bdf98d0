//! Agreements with noise: what follows from their keys, and what is refused before the first round.
#![allow(clippy::unwrap_used)]

use methods::strategy::STRATEGIES;
use protocol::parameters::{Masked, Noise, Privacy, Real, Release, RoundMode, Sums, Unit};

use crate::agreement::Agreement;
use crate::privacy::tests::text;

/// The strategies of differentially private rounds.
const STEPS: [&str; 4] = ["fedavg", "fedadam", "fedyogi", "fedadagrad"];

pub(super) const TRAINING: &str =
    "{ epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.5 } }";

pub(super) fn strategy(name: &str, more: &str, training: &str) -> String {
    let weight = match name {
        _ if STEPS.contains(&name) => "weight = \"equal\", ",
        _ => "",
    };
    format!("{{ name = \"{name}\", {weight}{more}training = {training} }}")
}

/// A noised agreement of the example's four institutions with these edits: a path and its value, or nothing
/// to remove the key.
pub(super) fn noised(edits: &[(&str, &str)]) -> String {
    let fedavg = strategy("fedavg", "", TRAINING);
    let base = [
        ("privacy.mode", "\"differential-privacy\""),
        ("privacy.epsilon", "2.0"),
        ("strategy", &*fedavg),
        ("task.table.standardise", "\"none\""),
        ("protocol.max-model-norm", ""),
    ];
    let text = text(&[&base[..], edits].concat());
    // Every institution declares its rows.
    let mut file: toml::Table = toml::from_str(&text).unwrap();
    for silo in file["member"].as_array_mut().unwrap() {
        let silo = silo.as_table_mut().unwrap();
        silo.insert("rows".into(), toml::Value::Integer(250));
    }
    fill(&mut file, "drop");
    toml::to_string(&file).unwrap()
}

/// What becomes of missing values in all columns, if the task has a schema.
fn fill(file: &mut toml::Table, rule: &str) {
    let table = file["task"].get_mut("table");
    let features = table.and_then(|table| table["schema"]["feature"].as_array_mut());
    for feature in features.into_iter().flatten() {
        let feature = feature.as_table_mut().unwrap();
        feature.insert("missing".into(), toml::Value::String(rule.into()));
    }
}

fn read(edits: &[(&str, &str)]) -> Agreement {
    let text = noised(edits);
    Agreement::parse("f.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn why(edits: &[(&str, &str)]) -> String {
    match Agreement::parse("f.toml", &noised(edits)) {
        Ok(_) => panic!("{edits:?} was accepted"),
        Err(why) => why.to_string(),
    }
}

pub(super) fn noise_of(agreement: &Agreement) -> Noise {
    match agreement.epoch.protocol.privacy.mode() {
        RoundMode::Noised(_, noise) => noise.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_noised_agreement_has_the_noise_of_its_epsilon_and_is_written_with_z() {
    let agreement = read(&[("rounds", "40"), ("privacy.epsilon", "1.0")]);
    let protocol = &agreement.epoch.protocol;
    let noise = noise_of(&agreement);
    // As `privacy::accountant` has it for 40 rounds.
    assert!((noise.z.value() - 23.60).abs() < 0.01, "{noise:?}");
    let expected = Privacy::Masked(Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: protocol.min_contributions,
        sums: Sums::Noised(Noise {
            release: Release::Steps,
            unit: Unit::Row,
            clip: Real::new(1.0),
            z: noise.z,
            delta: Real::new(1e-5),
        }),
    });
    assert_eq!(protocol.privacy, expected);
    let written = agreement.to_toml().unwrap();
    assert!(
        written.contains("mode = \"differential-privacy\""),
        "{written}"
    );
    assert!(!written.contains("epsilon"), "{written}");
    let again = Agreement::parse("again", &written).unwrap();
    assert_eq!(again.epoch.id, agreement.epoch.id);
}

#[test]
fn what_all_rounds_bound_keeps_to_epsilon_and_has_epsilon_alone_beside_it() {
    let agreement = read(&[("rounds", "40"), ("privacy.epsilon", "1.0")]);
    let bound = crate::bound(&agreement.epoch.protocol).unwrap();
    // Two parts of the noise are unknown: three authors, of whom one colludes.
    assert_eq!(
        bound.to_string(),
        "epsilon 1.0000 (1.4652 if all others collude), delta 1e-5"
    );
    let clear = Agreement::parse("f.toml", &text(&[])).unwrap();
    assert_eq!(crate::bound(&clear.epoch.protocol), None);
}

#[test]
fn z_c_and_authors_are_read_as_they_are_written() {
    let agreement = read(&[
        ("privacy.epsilon", ""),
        ("privacy.noise-multiplier", "20.5"),
        ("privacy.clipping-norm", "0.1"),
        ("privacy.delta", "0.000001"),
        ("privacy.min-authors", "2"),
    ]);
    let noise = noise_of(&agreement);
    let numbers = [noise.clip, noise.z, noise.delta].map(Real::value);
    assert_eq!(numbers, [0.1, 20.5, 1e-6]);
    let masked = agreement.epoch.protocol.privacy.masked().unwrap();
    assert_eq!(masked.smallest_sum, 2);
    let again = Agreement::parse("again", &agreement.to_toml().unwrap()).unwrap();
    assert_eq!(again.epoch.id, agreement.epoch.id);
}

#[test]
fn every_strategy_but_steps_is_refused_with_what_to_choose() {
    for info in STRATEGIES {
        let edit = ("strategy", &*strategy(info.name, "", TRAINING));
        if STEPS.contains(&info.name) {
            read(&[edit]);
        } else {
            let why = why(&[edit]);
            let named = format!("`name` is \"{}\", which cannot be used", info.name);
            assert!(why.contains(&named), "{why}");
            assert!(why.contains("choose fedavg for plain steps"), "{why}");
        }
    }
}

/// Whatever would break the bound.
#[test]
fn what_breaks_the_bound_is_refused_with_why_and_what_to_choose() {
    let network = "{ network = { layers = [{ dense = 4 }, \"norm\", \"relu\"] } }";
    let training = |epochs: u32, batch: u32, optimiser: &str| {
        let text = format!("{{ epochs = {epochs}, batch = {batch}, optimiser = {optimiser} }}");
        strategy("fedavg", "", &text)
    };
    let sgd = "{ name = \"sgd\", rate = 0.5 }";
    let momentum = "{ name = \"sgd\", rate = 0.5, momentum = 0.9 }";
    let adam = "{ name = \"adam\", rate = 0.5 }";
    let [two_epochs, batches, kept, state] = [
        training(2, 0, sgd),
        training(1, 8, sgd),
        training(1, 0, momentum),
        training(1, 0, adam),
    ];
    let with = |more: &str| strategy("fedavg", more, TRAINING);
    let exact = with("").replace("equal", "exact");
    let (personal, trained) = (
        with("personal = [\"bias\"], "),
        with("trained = [\"bias\"], "),
    );
    let program = "{ external = { tensors = [{ name = \"w\", shape = [2], role = \"weight\" }] } }";
    let cases: &[(&[(&str, &str)], &str)] = &[
        (
            &[("task.table.standardise", "\"silo\"")],
            "must be \"ranges\" or \"none\"",
        ),
        (
            &[("task.table.standardise", "\"federation\"")],
            "must be \"ranges\" or \"none\"",
        ),
        (
            &[("task.table.model", network)],
            "batch normalisation would mix them",
        ),
        (&[("task", program)], "a program of one's own"),
        (
            &[("task", "{ constant = { parameters = 3 } }")],
            "has no rows",
        ),
        (&[("strategy", &two_epochs)], "`epochs = 1` and `batch = 0`"),
        (&[("strategy", &batches)], "`epochs = 1` and `batch = 0`"),
        (
            &[("strategy", &kept)],
            "neither `momentum` nor `weight-decay`",
        ),
        (&[("strategy", &state)], "must have the optimiser \"sgd\""),
        (&[("strategy", &personal)], "`personal` must be left out"),
        (&[("strategy", &trained)], "`trained` must be left out"),
        (&[("strategy", &exact)], "`weight` must be \"equal\""),
        (
            &[("strategy.encoding", "\"bf16\"")],
            "`encoding` must be \"f32\"",
        ),
        (
            &[("strategy.participation", "3")],
            "`participation` must be left out",
        ),
        (
            &[("strategy.stop", "{ patience = 3 }")],
            "`stop` must be left out",
        ),
        (
            &[("strategy.aggregation", "{ name = \"coordinate-median\" }")],
            "only sums",
        ),
        (
            &[("protocol.names", "\"shown\"")],
            "`names` must be \"removed\"",
        ),
        (
            &[("privacy.privacy-unit", "{ person = \"patient\" }")],
            "must name the same one",
        ),
        (
            &[("privacy.min-sum-size", "3")],
            "for secure-aggregation rounds without noise only",
        ),
        (
            &[("privacy.group", "[{ north = 1, south = 1, east = 1 }]")],
            "for secure-aggregation rounds without noise only",
        ),
        (
            &[("privacy.noise-multiplier", "20.0")],
            "`epsilon` says it too",
        ),
        (&[("privacy.epsilon", "")], "`epsilon = 1.0`"),
        (&[("privacy.epsilon", "0.0")], "epsilon of 0"),
        (&[("privacy.delta", "0.5")], "delta of 0.5"),
        (&[("privacy.clipping-norm", "0.0")], "clipping-norm is 0"),
        (&[("privacy.min-authors", "1")], "min-authors is 1"),
        (&[("privacy.min-authors", "4")], "min-authors is 4"),
    ];
    for (edits, said) in cases {
        let why = why(edits);
        assert!(why.contains(said), "{edits:?}: {why}");
    }
}

#[test]
fn values_that_are_filled_in_from_own_rows_are_refused() {
    let text = noised(&[]);
    for rule in ["mean", "median", "indicator"] {
        let mut file: toml::Table = toml::from_str(&text).unwrap();
        fill(&mut file, rule);
        let text = toml::to_string(&file).unwrap();
        let why = Agreement::parse("f.toml", &text).err().unwrap().to_string();
        assert!(why.contains("fills missing values"), "{rule}: {why}");
    }
}

#[test]
fn institutions_that_declare_no_rows_are_refused() {
    let text = noised(&[]).replacen("rows = 250", "", 1);
    let why = Agreement::parse("f.toml", &text).err().unwrap().to_string();
    assert!(why.contains("declares no `rows`"), "{why}");
}

#[test]
fn less_noise_is_marked_among_the_changes() {
    let changes = |before: &Agreement, after: &Agreement| {
        let changes = before.difference(after).changes;
        let of = |change: crate::Changed| (change.key, change.weaker.is_some());
        changes.into_iter().map(of).collect::<Vec<_>>()
    };
    let with = |z: &str| read(&[("privacy.epsilon", ""), ("privacy.noise-multiplier", z)]);
    let (less, more) = (with("10.0"), with("20.0"));
    assert_eq!(
        changes(&more, &less),
        [("privacy.noise-multiplier".to_owned(), true)]
    );
    assert_eq!(
        changes(&less, &more),
        [("privacy.noise-multiplier".to_owned(), false)]
    );
}

#[test]
fn more_rounds_with_noise_are_marked_as_telling_more() {
    let rounds = |rounds: &str| {
        read(&[
            ("privacy.epsilon", ""),
            ("privacy.noise-multiplier", "20.0"),
            ("rounds", rounds),
        ])
    };
    let weaker = |from: &str, to: &str| {
        let difference = rounds(from).difference(&rounds(to));
        let change = difference
            .changes
            .iter()
            .find(|change| change.key == "rounds");
        change.unwrap().weaker.is_some()
    };
    assert!(weaker("6", "7"));
    assert!(!weaker("7", "6"));
}

#[test]
fn the_bound_holds_for_no_split_that_one_row_more_deals_anew() {
    let fault = |split: &str| read(&[("task.table.split", split)]).split_fault();
    for (split, write) in [
        ("{ test = 0.3 }", "write `keyed = true`"),
        ("{ group = \"patient\" }", "write `keyed = true`"),
        (
            "{ column = \"part\", validation = 0.2 }",
            "write `keyed = true`",
        ),
        ("{ time = \"day\" }", "write `test-from`"),
        (
            "{ time = \"day\", test-from = \"2024-05-31\", group = \"patient\" }",
            "protect whole groups",
        ),
    ] {
        // It is read, as a journal may hold it.
        let (key, what) = fault(split).unwrap_or_else(|| panic!("{split}"));
        assert_eq!(key, "task.table.split");
        assert!(what.contains(write), "{split}: {what}");
    }
    for split in [
        "{ keyed = true }",
        "{ keyed = true, group = \"patient\" }",
        "{ keyed = true, column = \"part\", validation = 0.2 }",
        "{ column = \"part\" }",
        "{ time = \"day\", test-from = \"2024-05-31\" }",
    ] {
        assert_eq!(fault(split), None, "{split}");
    }
    // Without noise every split may be agreed on.
    let clear = Agreement::parse("f.toml", &text(&[])).unwrap();
    assert_eq!(clear.split_fault(), None);
}

#[test]
fn no_amendment_adds_noise_to_such_a_split_and_one_that_has_it_goes_on() {
    let (clear, noised) = (text(&[]), noised(&[]));
    let amended = |from: &str, to: &str| {
        let from = Agreement::parse("f.toml", from).unwrap();
        let amended = from.amended("f.toml", to, |_, _| None);
        amended
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    // The schema and the scale are another question.
    let masked = noised
        .replace("differential-privacy", "secure-aggregation")
        .replace("epsilon = 2.0\n", "");
    let said = amended(&masked, &noised);
    assert!(
        said.contains("epsilon does not hold") && said.contains("rota federation continue"),
        "{said}"
    );
    let more = noised.replace("rounds = 6\n", "rounds = 5\n");
    assert_ne!(more, noised);
    assert_eq!(amended(&noised, &more), "");
    assert!(!clear.contains("keyed"));
}

#[test]
fn new_keys_of_a_split_leave_the_ids_of_other_agreements_alone() {
    let id = |split: &str| read(&[("task.table.split", split)]).epoch.federation;
    let base = id("{ validation = 0.0, test = 0.3 }");
    assert_eq!(id("{ validation = 0.0, test = 0.3, keyed = false }"), base);
    assert_ne!(id("{ validation = 0.0, test = 0.3, keyed = true }"), base);
}

#[test]
fn a_delta_is_held_against_the_rows_that_all_members_declare() {
    use crate::privacy::DeltaDoubt;

    // Four institutions with 250 rows each.
    let of = |delta: &str| read(&[("privacy.delta", delta)]).epoch;
    let doubt = |delta: &str| DeltaDoubt::of(&of(delta));
    for small in ["0.00001", "0.0001"] {
        assert_eq!(doubt(small), None, "{small}");
    }
    let warned = doubt("0.00011").unwrap();
    assert!(!warned.is_refused());
    assert!(!doubt("0.001").unwrap().is_refused());
    let said = warned.to_string();
    let above = "`delta` of [privacy] is 1.1e-4, which is above 1 / (10 · 1000)";
    assert!(
        said.starts_with(above) && said.ends_with("Choose at most 1e-4"),
        "{said}"
    );
    // Agreements with a larger one are read, because they may be in force.
    let refused = doubt("0.1").unwrap();
    assert!(refused.is_refused());
    let said = refused.to_string();
    assert!(said.contains("is 1e-1, which is above 1 / 1000"), "{said}");
    // It does not come in by a change, but stays where it is.
    assert!(!refused.may_follow(&of("0.00001")) && !refused.may_follow(&of("0.05")));
    assert!(refused.may_follow(&of("0.1")) && warned.may_follow(&of("0.00001")));
    let clear = Agreement::parse("f.toml", &text(&[])).unwrap();
    assert_eq!(DeltaDoubt::of(&clear.epoch), None);
}
