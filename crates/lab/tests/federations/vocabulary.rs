//! The tables of faults in docs/reliability.md say what is true: every fault is played in bare worlds
//! and in simulations.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use bare::Faults;
use lab::run_study;
use simulations::scenario::faults;
use simulations::toy::toy_study;
use simulations::{Behaviour, Options, Scenario};

/// The cells of the rows of the table with this header.
fn table(header: &str) -> Vec<Vec<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reliability.md");
    let text = std::fs::read_to_string(file).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with(header))
        .skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |line: &str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells
            .map(|cell| cell.trim().trim_matches('`').to_owned())
            .collect()
    };
    rows.map(cells).collect()
}

/// `[[fault]]` with these keys, which are separated by commas as in an inline table.
fn written(keys: &str) -> String {
    format!("fault = [{{ {keys} }}]\n")
}

#[test]
fn every_fault_of_the_table_is_played_bare_and_in_simulations() {
    let rows = table("| fault | `[[fault]]` |");
    assert!(rows.len() >= 8, "{rows:?}");
    for row in rows {
        let text = written(&row[1]);
        assert!(row[2] == "yes" && row[3] == "yes", "{row:?}");
        let mut options = bare::BareOptions::new(4, Faults::none());
        options.script = faults("faults.toml", &text).unwrap();
        let ended = bare::run(1, &options).unwrap_or_else(|failure| panic!("{text}: {failure}"));
        assert!(ended.faults > 1, "{text}: {ended:?}");
        simulated(&text);
    }
}

/// Plays a fault in a simulation of four silos, in which every property holds after every event and the
/// outcomes are computed again in the end. All rounds become final.
fn simulated(fault: &str) {
    let scenario = format!(
        "name = 'toy'\nseed = 3\nrounds = 3\ntask = {{ constant = {{ parameters = 1 }} }}\n{fault}\n\
         [strategy]\nname = 'fedavg'\n\
         training = {{ epochs = 5, batch = 0, optimiser = {{ name = 'sgd', rate = 0.5 }} }}\n"
    );
    let scenario = Scenario::parse("toy.toml", &scenario).unwrap();
    let (study, _) = toy_study(&[vec![0.0], vec![1.0], vec![2.0], vec![5.0]]);
    let options = Options {
        audit: true,
        ..Options::default()
    };
    let summary = run_study(&scenario, &study, options);
    let summary = summary.unwrap_or_else(|error| panic!("{fault}: {error}"));
    assert_eq!(summary.rounds.len(), 3, "{fault}");
}

/// The name that a behaviour has in TOML, if a scenario can name it.
fn name(behaviour: Behaviour) -> String {
    let mut name = String::new();
    for letter in format!("{behaviour:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

#[test]
fn every_misdeed_of_the_table_is_in_its_place() {
    let rows = table("| misdeed | behaviour |");
    assert!(rows.len() >= 16, "{rows:?}");
    for row in rows {
        let behaviour = &row[1];
        let drawn = Behaviour::DRAWN.iter().any(|one| name(*one) == *behaviour);
        assert_eq!(drawn, row[2] == "yes", "bare worlds: {row:?}");
        let keys = format!("member = \"3\", behaviour = \"{behaviour}\"");
        let read = faults("faults.toml", &written(&keys)).is_ok();
        assert_eq!(read, row[3] == "yes", "scenarios: {row:?}");
        if read {
            simulated(&written(&keys));
        }
    }
}
