//! A silo of eight that claims absurd rows: what it does to the others' models, and what bounds it.
#![allow(clippy::unwrap_used)]

use simulations::{Options, Scenario};

use crate::{Summary, run};

/// Eight hospitals that average their models by rows; the first reverses its updates and claims
/// 9·10¹⁵ rows if `lies`.
fn scenario(protocol: &str, lies: bool) -> Result<Scenario, String> {
    let lie = |behaviour| format!("[[fault]]\nmember = \"0\"\nbehaviour = \"{behaviour}\"\n");
    let faults = if lies {
        lie("sign-flip") + &lie("false-rows")
    } else {
        String::new()
    };
    let text = format!(
        "name = \"rows\"
        seed = 3
        rounds = 5
        silos = 8
        [task.table]
        data = \"diabetes\"
        standardise = \"silo\"
        model = {{ linear = {{ loss = \"absolute\" }} }}
        [protocol]
        {protocol}
        [strategy]
        name = \"fedavg\"
        training = {{ epochs = 5, batch = 8, optimiser = {{ name = \"sgd\", rate = 0.02 }} }}
        {faults}"
    );
    Scenario::parse("rows.toml", &text).map_err(|error| error.to_string())
}

fn play(protocol: &str, lies: bool) -> Summary {
    run(&scenario(protocol, lies).unwrap(), Options::default()).unwrap()
}

/// The mean error of the seven honest silos with the federation's model.
fn error(summary: &Summary) -> f64 {
    let honest = summary.silos.iter().skip(1);
    honest.map(|silo| silo.coalition.unwrap()).sum::<f64>() / 7.0
}

fn note(summary: &Summary) -> Option<&str> {
    let mut notes = summary.notes.iter();
    notes.find_map(|note| note.contains("half of the total weight").then_some(&**note))
}

#[test]
fn declared_rows_and_max_weight_keep_a_learner_with_absurd_rows_from_setting_the_model() {
    let honest = play("", false);
    assert_eq!(note(&honest), None);
    let free = play("", true);
    let declared = play("rows-declared = true", true);
    let capped = play("max-weight = 0.15", true);
    let [honest_error, free_error, declared_error, capped_error] =
        [&honest, &free, &declared, &capped].map(error);
    let said = format!("{honest_error} {free_error} {declared_error} {capped_error}");
    assert!(free_error > 3.0 * honest_error, "{said}");
    assert!(declared_error < 1.5 * honest_error, "{said}");
    assert!(capped_error < 1.5 * honest_error, "{said}");
    // The report names whose it is, and what follows.
    let name = &free.silos[0].name;
    let expected = format!(
        "in 5 rounds between 1 and 5 one contribution has more than half of the total weight, up to \
         99.9 %: {name}; it alone almost determines the model"
    );
    assert_eq!(note(&free), Some(&*expected));
    assert_eq!(note(&declared), None);
    let capped = note(&capped).unwrap();
    assert!(
        capped.ends_with("; `max-weight` limits it to 15.0 %"),
        "{capped}"
    );
}

#[test]
fn declared_rows_change_nothing_for_honest_silos() {
    let (free, declared) = (play("", false), play("rows-declared = true", false));
    // They are part of the agreement, so the order of leads and of entries is another one.
    for (one, other) in free.silos.iter().zip(&declared.silos) {
        let (one, other) = (one.coalition.unwrap(), other.coalition.unwrap());
        assert!((one - other).abs() < 1e-3 * one, "{one} {other}");
    }
    assert!(declared.refused.is_empty());
}

#[test]
fn a_largest_weight_of_nobody_or_more_than_all_is_refused() {
    for wrong in ["0.0", "-0.5", "1.01", "nan", "inf"] {
        let error = scenario(&format!("max-weight = {wrong}"), false).err();
        let error = error.unwrap_or_default();
        let expected = "`max-weight` must be above 0 and at most 1";
        assert!(error.ends_with(expected), "{wrong}: {error}");
    }
    assert!(scenario("max-weight = 1.0", false).is_ok());
}
