//! Attacks on federations with noise: what they find stays below what the noise allows.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use lab::absence;
use lab::attack::{MembershipAttack, MembershipOptions, membership};
use simulations::{Options, Scenario};
use tempfile::TempDir;

use crate::skipped;

/// The scenarios of `examples/privacy` with their tables; `None` without the public data.
fn examples() -> Option<(TempDir, PathBuf)> {
    let Some(data) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        skipped::skipped("needs public tables, and ROTA_DATA is not set");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let prepare = root.join("examples/privacy/prepare");
    let mut prepare_tables = Command::new("sh");
    prepare_tables.arg(prepare).arg(&data).arg(folder.path());
    assert!(prepare_tables.status().unwrap().success());
    Some((folder, data))
}

/// A scenario of the folder at this ε.
fn at(folder: &TempDir, name: &str, epsilon: f64) -> Scenario {
    let path = folder.path().join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let text = text.replace("epsilon = 1.0", &format!("epsilon = {epsilon:?}"));
    std::fs::write(&path, text).unwrap();
    let scenario = Scenario::load(path.to_str().unwrap()).unwrap();
    let back = std::fs::read_to_string(&path).unwrap();
    let back = back.replace(&format!("epsilon = {epsilon:?}"), "epsilon = 1.0");
    std::fs::write(&path, back).unwrap();
    scenario
}

/// Without noise the cosine is nearly 1 (`masked::sums_of_different_authors_reveal_an_update_and_others_do_not`).
#[test]
fn with_noise_the_absence_of_a_hospital_hardly_shows_its_update() {
    let Some((folder, data)) = examples() else {
        return;
    };
    let options = Options {
        data: Some(data),
        ..Options::default()
    };
    let found = |epsilon| {
        let scenario = at(&folder, "heart.toml", epsilon);
        let found = absence::noised(&scenario, &options, 20).unwrap();
        println!("{}", found.lines().join("\n"));
        found
    };
    let (loose, tight) = (found(4.0), found(1.0));
    assert_eq!((loose.numbers, loose.silos.len()), (14, 4));
    assert!((loose.chance - 0.22).abs() < 0.005);
    assert!(loose.cosine.high <= 0.45, "{loose:?}");
    assert!(tight.cosine.high <= 0.35, "{tight:?}");
    // The attack finds something where there is little noise.
    assert!(loose.cosine.low > loose.chance, "{loose:?}");
}

#[test]
fn absence_needs_noise_and_two_rounds() {
    let text = "name = \"all\"
        rounds = 3
        silos = 4
        [task.table]
        data = { synthetic = { target = \"logistic\", groups = 1, features = 3, scale = 1.0, rows = [60, 90] } }
        model = \"logistic\"
        [privacy]
        mode = \"differential-privacy\"
        epsilon = 1.0
        min-authors = 3
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 0.1 } }";
    let why = |from: &str, to: &str| {
        let scenario = Scenario::parse("all.toml", &text.replace(from, to)).unwrap();
        let found = absence::noised(&scenario, &Options::default(), 6);
        found
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    assert_eq!(why("", ""), "");
    assert!(why("rounds = 3", "rounds = 1").contains("two rounds at least"));
    let clear = text.replace(
        "mode = \"differential-privacy\"\n        epsilon = 1.0\n        min-authors = 3",
        "mode = \"clear\"",
    );
    let clear = Scenario::parse("all.toml", &clear).unwrap();
    let found = absence::noised(&clear, &Options::default(), 6);
    assert!(found.unwrap_err().to_string().contains("have no noise"));
}

/// No area is above what the noise allows by more than its interval.
fn stay_below_the_bound(size: MembershipOptions, federations: &[(&str, &[f64])]) {
    let Some((folder, data)) = examples() else {
        return;
    };
    let options = Options {
        data: Some(data),
        ..Options::default()
    };
    for (name, epsilons) in federations {
        for epsilon in *epsilons {
            let began = std::time::Instant::now();
            let scenario = at(&folder, name, *epsilon);
            let found = membership(&scenario, &options, size).unwrap();
            println!("{}\n{:?}", found.lines().join("\n"), began.elapsed());
            let bound = found.bound.as_ref().unwrap().auc;
            assert!(bound > 0.5 && bound < 0.75);
            assert!(found.rows > 200 && found.tests.len() == 4);
            for test in &found.tests {
                assert!(
                    test.auc.low <= bound,
                    "{name}, {epsilon}: {test:?}, {bound}"
                );
                // An interval that holds everything would tell nothing.
                assert!(
                    test.auc.high - test.auc.low < 0.1,
                    "{name}, {epsilon}: {test:?}"
                );
            }
        }
    }
}

#[test]
fn no_attack_on_membership_is_better_than_the_noise_allows() {
    let size = MembershipOptions {
        shadows: 24,
        targets: 4,
    };
    let all: &[f64] = &[1.0, 2.0, 4.0];
    stay_below_the_bound(
        size,
        &[
            ("heart.toml", all),
            ("breast-cancer.toml", all),
            ("digits.toml", all),
        ],
    );
}

/// `just attacks`: the figures of docs/attacks.md.
#[test]
#[ignore = "takes minutes"]
fn no_attack_with_64_shadows_is_better_than_the_noise_allows() {
    let all: &[f64] = &[0.5, 1.0, 2.0, 4.0];
    stay_below_the_bound(
        MembershipOptions::default(),
        &[
            ("heart.toml", all),
            ("breast-cancer.toml", all),
            ("digits.toml", all),
        ],
    );
}

/// A perceptron with more weights than rows and labels that are partly chance.
fn by_heart(epochs: u32) -> MembershipAttack {
    let text = format!(
        "name = \"heart\"
        seed = 2
        rounds = 3
        silos = 4
        [task.table]
        data = {{ synthetic = {{ target = \"logistic\", groups = 1, features = 20, scale = 0.3, rows = [30, 30] }} }}
        standardise = \"none\"
        model = {{ mlp = {{ hidden = [32] }} }}
        [strategy]
        name = \"fedavg\"
        training = {{ epochs = {epochs}, batch = 8, optimiser = {{ name = \"sgd\", rate = 0.3 }} }}"
    );
    let scenario = Scenario::parse("heart.toml", &text).unwrap();
    let size = MembershipOptions {
        shadows: 24,
        targets: 6,
    };
    membership(&scenario, &Options::default(), size).unwrap()
}

#[test]
fn the_attack_finds_members_of_a_model_that_learned_by_heart() {
    let found = by_heart(30);
    println!("{}", found.lines().join("\n"));
    assert!(found.bound.is_none());
    assert!(
        found
            .lines()
            .join("\n")
            .contains("without noise there is no bound")
    );
    let ratio = &found.tests[0];
    assert!(ratio.auc.low > 0.6, "{ratio:?}");
}

/// Four silos of 24 patients with three visits each, in files of a folder.
fn visits(folder: &Path, epsilon: f64) -> Scenario {
    let mut files = Vec::new();
    for silo in 0..4 {
        let rows = (0..72).map(|row| {
            let (patient, age) = (row / 3, (37 * row + 11 * silo) % 89);
            let ill = u8::from((age + 13 * patient) % 5 > 2);
            format!(
                "{patient},0.{age:02},0.{:02},{ill}\n",
                (53 * row + silo) % 97
            )
        });
        let file = folder.join(format!("{silo}.csv"));
        let text = rows.collect::<String>();
        std::fs::write(&file, format!("patient,age,dose,ill\n{text}")).unwrap();
        files.push(format!("{{ path = {file:?} }}"));
    }
    let files = files.join(", ");
    let text = format!(
        "name = \"visits\"
        rounds = 4
        seed = 3
        [task.table]
        data = {{ rows = {{ files = [{files}], columns = {{ target = \"ill\", positive = \"= 1\", drop = [\"patient\"] }} }} }}
        standardise = \"none\"
        split = {{ validation = 0.0, test = 0.2, group = \"patient\", keyed = true }}
        model = \"logistic\"
        [privacy]
        mode = \"differential-privacy\"
        privacy-unit = {{ person = \"patient\" }}
        epsilon = {epsilon:?}
        min-authors = 3
        [strategy]
        name = \"fedavg\"
        weight = \"equal\"
        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = 0.1 }} }}"
    );
    Scenario::parse("visits.toml", &text).unwrap()
}

/// With hardly any noise one who knows all others tells every person: its rows are in or out together, and the
/// score of a person rests on the same rows as its gradient.
#[test]
fn persons_are_attacked_with_all_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let size = MembershipOptions {
        shadows: 16,
        targets: 64,
    };
    let found = |epsilon| {
        let scenario = visits(folder.path(), epsilon);
        let found = membership(&scenario, &Options::default(), size).unwrap();
        println!("{}", found.lines().join("\n"));
        // Of 96 patients the hash holds 15 out.
        assert_eq!((found.rows, &found.unit[..]), (81, "person"));
        found
    };
    let informed = |found: &MembershipAttack| {
        let mut tests = found.tests.iter();
        let informed = tests.find(|test| test.name.contains("opened sums"));
        informed.unwrap().auc
    };
    let faint = found(200.0);
    assert!(informed(&faint).low > 0.95, "{faint:?}");
    let lines = faint.lines().join("\n");
    for said in [
        "which of 81 persons they were trained on",
        "each with about half of the persons",
        "the rows of a person one by one",
    ] {
        assert!(lines.contains(said), "{said}: {lines}");
    }
    let loud = found(1.0);
    let bound = loud.bound.as_ref().unwrap().auc;
    assert!(bound < 0.6, "{loud:?}");
    for test in &loud.tests {
        assert!(test.auc.low <= bound, "{test:?}, {bound}");
        // An interval that holds everything would tell nothing.
        assert!(test.auc.high - test.auc.low < 0.1, "{test:?}");
    }
}
