//! Agreements on a model that is solved at once.
#![allow(clippy::unwrap_used)]

use protocol::parameters::{Real, Release};

use crate::agreement::Agreement;
use crate::privacy::noised::tests::{TRAINING, noise_of, noised, strategy};

const SQUARED: &str = "{ linear = { loss = \"squared\" } }";

/// An agreement on a linear model that is solved at once, with these edits.
fn once(edits: &[(&str, &str)]) -> String {
    let base = [
        ("rounds", "1"),
        ("task.table.model", SQUARED),
        ("privacy.mechanism", "\"sufficient-statistics\""),
        ("privacy.max-row-norm", "2.0"),
        ("privacy.max-target", "1.0"),
        ("privacy.epsilon", "1.0"),
    ];
    noised(&[&base[..], edits].concat())
}

fn read(edits: &[(&str, &str)]) -> Agreement {
    let text = once(edits);
    Agreement::parse("f.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_bound_is_that_of_one_round_and_the_clipping_follows_from_both_norms() {
    let agreement = read(&[("privacy.ridge", "0.25")]);
    let noise = noise_of(&agreement);
    let release = Release::Once {
        rows_norm: Real::new(2.0),
        targets_within: Real::new(1.0),
        ridge: Some(Real::new(0.25)),
    };
    assert_eq!(noise.release, release);
    // √(R⁴ + R²Y²)
    assert!((noise.clip.value() - 20.0_f64.sqrt()).abs() < 1e-12);
    // 1/μ for ε = 1 of one round, and a little more; μ is 0.268051.
    assert!(
        (noise.z.value() * 0.268_051 - 1.0001).abs() < 1e-5,
        "{noise:?}"
    );
    let bound = crate::bound(&agreement.epoch.protocol).unwrap();
    assert_eq!(
        bound.to_string(),
        "epsilon 1.0000 (1.4652 if all others collude), delta 1e-5"
    );
}

#[test]
fn an_agreement_is_written_with_the_keys_that_it_was_read_from() {
    for edit in [("privacy.ridge", "0.25"), ("privacy.ridge", "")] {
        let agreement = read(&[edit]);
        let written = agreement.to_toml().unwrap();
        for key in [
            "mechanism = \"sufficient-statistics\"",
            "max-row-norm = 2.0",
            "max-target = 1.0",
        ] {
            assert!(written.contains(key), "{key}: {written}");
        }
        assert_eq!(written.contains("ridge"), !edit.1.is_empty(), "{written}");
        let again = Agreement::parse("again", &written).unwrap();
        assert_eq!(again.epoch.id, agreement.epoch.id);
    }
    let (with, without) = (read(&[("privacy.ridge", "0.25")]), read(&[]));
    assert_ne!(with.epoch.id, without.epoch.id);
}

/// Keys with other values, why they are refused, and what to choose.
type RefusedCase<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn what_does_not_go_with_it_is_refused_with_why_and_what_to_choose() {
    let fedadam = strategy("fedadam", "", TRAINING);
    let momentum = strategy("fedavg", "momentum = 0.9, ", TRAINING);
    let personal = strategy("fedavg", "personal = [\"bias\"], ", TRAINING);
    let program = "{ external = { tensors = [{ name = \"w\", shape = [2], role = \"weight\" }] } }";
    let cases: &[RefusedCase<'_>] = &[
        (
            &[("rounds", "2")],
            "`rounds` is 2, and must be 1",
            "mechanism = \"gradients\"",
        ),
        (
            &[("task.table.model", "{ mlp = { hidden = [4] } }")],
            "`model` cannot be solved at once",
            "Choose \"logistic\" or `linear = { loss = \"squared\" }`, or `mechanism = \"gradients\"`",
        ),
        (
            &[(
                "task.table.model",
                "{ network = { layers = [{ dense = 4 }, \"relu\"] } }",
            )],
            "`model` cannot be solved at once",
            "Choose \"logistic\" or",
        ),
        (
            &[("task.table.model", "{ linear = { loss = \"absolute\" } }")],
            "must have `loss = \"squared\"`",
            "mechanism = \"gradients\"",
        ),
        (
            &[("task", program)],
            "a program of one's own",
            "mode = \"secure-aggregation\"",
        ),
        (
            &[("strategy", &fedadam)],
            "no steps that it could change",
            "choose fedavg",
        ),
        (
            &[("strategy", &momentum)],
            "no steps that it could change",
            "without `momentum`",
        ),
        (
            &[("strategy", &personal)],
            "`personal` must be left out",
            "own rows",
        ),
        (
            &[("task.table.standardise", "\"silo\"")],
            "must be \"ranges\" or \"none\"",
            "agreed ranges",
        ),
        (
            &[("privacy.clipping-norm", "1.0")],
            "`clipping-norm` is for gradients",
            "remove the key",
        ),
        (
            &[("privacy.max-row-norm", "")],
            "`max-row-norm` is missing",
            "`max-row-norm = 2.0`",
        ),
        (
            &[("privacy.max-row-norm", "1.0")],
            "`max-row-norm` is wrong",
            "above 1",
        ),
        (
            &[("privacy.max-target", "")],
            "`max-target` is missing",
            "`max-target = 1.0`",
        ),
        (
            &[("privacy.max-target", "0.0")],
            "`max-target` is wrong",
            "between 1e-20 and 1e20",
        ),
        (
            &[("privacy.ridge", "0.0")],
            "ridge is 0",
            "between 1e-100 and 1e100",
        ),
        (
            &[
                ("privacy.mechanism", "\"gradients\""),
                ("privacy.max-target", ""),
            ],
            "`max-row-norm` is for models that are solved at once",
            "mechanism = \"sufficient-statistics\"",
        ),
    ];
    for (edits, said, choose) in cases {
        let text = once(edits);
        let why = Agreement::parse("f.toml", &text).err();
        let why = why
            .unwrap_or_else(|| panic!("{edits:?} was accepted"))
            .to_string();
        assert!(
            why.contains(said) && why.contains(choose),
            "{edits:?}: {why}"
        );
    }
}

#[test]
fn how_silos_would_train_does_not_matter() {
    let training = "{ epochs = 3, batch = 8, optimiser = { name = \"adam\", rate = 0.5 } }";
    read(&[("strategy", &strategy("fedavg", "", training))]);
}
