//! Seconds and bytes of boosted trees at ten sites of 1,000 rows and 50 columns, in one process:
//!
//! ```text
//! cargo run --release -p questions --example trees [-- TREES]
//! ```
#![expect(clippy::disallowed_types, reason = "it measures time")]

use std::time::Instant;

use questions::kinds::trees::Trees;
use questions::table::RowTable;
use questions::{AgreedColumns, FederatedQuestion, Kind, Outcome, ask};

const SITES: usize = 10;
const ROWS: usize = 1_000;
const COLUMNS: usize = 50;

fn main() {
    let trees = std::env::args().nth(1).and_then(|count| count.parse().ok());
    let trees = trees.unwrap_or(20);
    let names: Vec<String> = (0..COLUMNS).map(|at| format!("x{at}")).collect();
    let question = question(&names, trees);
    let mut state = 1;
    let sites: Vec<RowTable> = (0..SITES).map(|_| site(&names, &mut state)).collect();
    let start = Instant::now();
    let asked = ask(&question, &sites, |_, _, _| Ok(())).expect("the question is well written");
    let seconds = start.elapsed().as_secs_f64();
    let Ok(Outcome::Trees(found)) = asked.end else {
        panic!("the rows grow trees: {:?}", asked.end);
    };
    // Under masks: refusals and checks are 20 words more.
    let sent = asked
        .rounds
        .iter()
        .map(|round| 8 * (round.layout.len() + 20));
    let sent: usize = sent.sum();
    let count = found.trees.len() as f64;
    let [first, last] = [&found.losses[0], &found.losses[found.trees.len()]];
    println!(
        "{SITES} sites, {ROWS} rows each, {COLUMNS} columns: {count} trees in {} rounds, log loss {:.4} to {:.4}",
        asked.rounds.len(),
        first.trained,
        last.trained
    );
    println!(
        "a tree: {:.3} s at all sites one after the other and for the sums, {:.0} bytes sent by each site",
        seconds / count,
        sent as f64 / count
    );
}

fn question(names: &[String], trees: usize) -> FederatedQuestion {
    let kind = Trees {
        outcome: "y = 1".to_owned(),
        columns: names.to_vec(),
        trees,
        depth: 3,
        rate: 0.1,
        lambda: 1.0,
        min_rows: 20,
        min_hessian: 1e-3,
        bins: 32,
        edges: Default::default(),
        held_out: 0.0,
    };
    let ranges = names.iter().map(|name| (name.clone(), [0.0, 1.0]));
    let agreed = AgreedColumns {
        ranges: ranges.collect(),
        ..AgreedColumns::default()
    };
    FederatedQuestion::new(Kind::Trees(kind), agreed)
}

/// Uniform columns, and an outcome that depends on the first ones.
fn site(names: &[String], state: &mut u64) -> RowTable {
    let mut draw = || {
        // Knuth's generator.
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (*state >> 40) as f64 / (1u64 << 24) as f64
    };
    let columns: Vec<Vec<f64>> = names
        .iter()
        .map(|_| (0..ROWS).map(|_| draw()).collect())
        .collect();
    let outcome: Vec<f64> = (0..ROWS)
        .map(|row| {
            let risk = 0.5 * columns[0][row] + 0.4 * columns[1][row] * columns[2][row];
            f64::from(u8::from(draw() < risk))
        })
        .collect();
    let table = RowTable::new(ROWS).with("y", &outcome);
    let named = names.iter().zip(&columns);
    named.fold(table, |table, (name, column)| table.with(name, column))
}
