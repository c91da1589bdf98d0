//! Compares ways of grouping silos, on generated silos whose groups are known and on real rows:
//! `cargo run --release -p learn --example groups -- TABLE [SEEDS]`, with `ROTA_DATA` set for the
//! digits. Without arguments it lists the tables. `-- planted [SEEDS] [FIRST SEED]` sets HCCT beside
//! others on sixteen kinds of silos.

mod cases;
mod federation;
mod planted;
mod tables;
mod verdicts;

use std::error::Error;
use std::ops::RangeInclusive;

use methods::strategy::StrategyConfig;
use serde_json::{Value, json};

use self::cases::case;
use self::federation::{ExampleFederation, same_groups};
use self::tables::{MethodTable, TABLES};

/// Result of one run.
struct ExampleRun {
    last: f64,
    best: f64,
    groups: usize,
    found: Option<bool>,
    changes: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_default();
    if name == "try" {
        return attempt();
    }
    let seeds: u64 = arguments.next().map_or(Ok(5), |seeds| seeds.parse())?;
    let first: u64 = arguments.next().map_or(Ok(1), |first| first.parse())?;
    let all = &(first..=first + seeds.max(1) - 1);
    let Some(table) = TABLES.iter().find(|table| table.name == name) else {
        let names: Vec<_> = TABLES.iter().map(|table| table.name).collect();
        return Err(format!("no table {name:?}: give one of {}", names.join(", ")).into());
    };
    if table.name == "planted" {
        return verdicts::planted(table, all);
    }
    println!(
        "{}: {} rounds, seeds {} to {}; mean ± deviation over the seeds",
        table.name,
        table.rounds,
        all.start(),
        all.end()
    );
    for case in table.cases {
        println!("\n{case}");
        println!(
            "{:44} {:>15} {:>7} {:>7} {:>6} {:>8}",
            "", "last", "best", "groups", "found", "changes"
        );
        let first = runs(table, case, table.methods[0].1, all)?;
        for (at, (label, method)) in table.methods.iter().enumerate() {
            let own;
            let all = match at {
                0 => &first,
                _ => {
                    own = runs(table, case, method, all)?;
                    &own
                }
            };
            print(label, all);
        }
    }
    Ok(())
}

/// Any strategies on one case, with the rounds and the training of a table:
/// `try TABLE CASE SEEDS STRATEGY…`, each as JSON.
fn attempt() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let [name, case, seeds, methods @ ..] = &arguments[..] else {
        return Err("expected: try TABLE CASE SEEDS STRATEGY…".into());
    };
    let table = TABLES.iter().find(|table| table.name == name);
    let table = table.ok_or("no table of that name")?;
    println!("{case}");
    for method in methods {
        print(method, &runs(table, case, method, &(1..=seeds.parse()?))?);
    }
    Ok(())
}

/// One method on one case, a run for every seed.
fn runs(
    table: &MethodTable,
    name: &str,
    method: &str,
    seeds: &RangeInclusive<u64>,
) -> Result<Vec<ExampleRun>, Box<dyn Error>> {
    let all: Vec<u64> = seeds.clone().collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = all.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts: Vec<_> = all
            .chunks(each)
            .map(|seeds| {
                let some = || -> Result<Vec<ExampleRun>, String> {
                    let one = |&seed: &u64| run(table, name, method, seed);
                    seeds
                        .iter()
                        .map(one)
                        .collect::<Result<_, _>>()
                        .map_err(|e| e.to_string())
                };
                scope.spawn(some)
            })
            .collect();
        let mut runs = Vec::new();
        for part in parts {
            runs.extend(part.join().map_err(|_| "a run panicked")??);
        }
        Ok(runs)
    })
}

fn run(
    table: &MethodTable,
    name: &str,
    method: &str,
    seed: u64,
) -> Result<ExampleRun, Box<dyn Error>> {
    let case = case(name, seed)?;
    let mut method: Value = serde_json::from_str(method)?;
    let own =
        |method: &mut Value, key: &str| method.as_object_mut().and_then(|all| all.remove(key));
    let radius = own(&mut method, "radius").and_then(|radius| radius.as_f64());
    let rounds = own(&mut method, "rounds").and_then(|rounds| rounds.as_u64());
    let rounds = rounds.unwrap_or(table.rounds);
    method["training"] = match own(&mut method, "epochs") {
        Some(epochs) => json!({ "epochs": epochs, "batch": 16, "optimiser": optimiser(table) }),
        None => json!({ "epochs": table.epochs, "batch": 16, "optimiser": optimiser(table) }),
    };
    let mut config: StrategyConfig = serde_json::from_value(method)?;
    config.standardise = case.standardise;
    let mut federation = ExampleFederation::new(&config, &case.silos, radius.unwrap_or(0.0), seed)?;
    let down = case.metric != "accuracy";
    let mut best = f64::NAN;
    for round in 1..=rounds + u64::from(case.standardise) {
        federation.round()?;
        if round > 1 {
            let now = federation.measure(case.metric)?;
            best = if down { best.min(now) } else { best.max(now) };
        }
    }
    let coalitions = &federation.coalitions;
    let mut groups = coalitions.clone();
    groups.sort_unstable();
    groups.dedup();
    Ok(ExampleRun {
        last: federation.measure(case.metric)?,
        best,
        groups: groups.len(),
        found: case
            .truth
            .as_ref()
            .map(|truth| same_groups(truth, coalitions)),
        changes: federation.changes,
    })
}

fn optimiser(table: &MethodTable) -> Value {
    json!({ "name": "sgd", "rate": table.rate, "momentum": 0.9 })
}

fn print(label: &str, runs: &[ExampleRun]) {
    let mean =
        |of: &dyn Fn(&ExampleRun) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let last = mean(&|run| run.last);
    let variance =
        mean(&|run| (run.last - last).powi(2)) * runs.len() as f64 / (runs.len().max(2) - 1) as f64;
    let found = match runs[0].found {
        Some(_) => format!(
            "{}/{}",
            runs.iter().filter(|run| run.found == Some(true)).count(),
            runs.len()
        ),
        None => String::new(),
    };
    println!(
        "{label:44} {last:8.3} ±{:5.3} {:7.3} {:7.1} {found:>6} {:8.1}",
        variance.sqrt(),
        mean(&|run| run.best),
        mean(&|run| run.groups as f64),
        mean(&|run| run.changes as f64),
    );
}
