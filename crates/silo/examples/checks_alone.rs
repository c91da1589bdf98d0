//! Work that the members of the built-in scenario `null` cannot leave out when each checks everything: every
//! member hashes the models of all, computes their mean and hashes that, in every round: as many bytes as
//! `rota simulate null --json --check every-member` counts. Prints the seconds on all cores:
//! `cargo run --release -p silo --example checks_alone`.

#![allow(clippy::disallowed_types, reason = "it measures wall-clock time")]

use std::sync::Arc;
use std::time::Instant;

use methods::params::weighted_mean;
use methods::{Layout, Params, Role, TensorSpec};
use protocol::Hash;
use silo::threads::Threads;

const SILOS: usize = 20;
const ROUNDS: usize = 10;
const PARAMETERS: usize = 1_000_000;

fn main() {
    let layout = Layout::new(vec![TensorSpec::new("weight", [PARAMETERS], Role::Weight)])
        .expect("one name cannot be twice");
    let models = (0..SILOS).map(|silo| Params::build(&layout, |values| values.fill(silo as f32)));
    let models: Arc<Vec<Params>> = Arc::new(models.collect());
    let threads = Threads::all_cores();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let members = (0..SILOS).map(|_| {
            let models = models.clone();
            move || {
                for model in models.iter() {
                    std::hint::black_box(Hash::of(&model.document()));
                }
                let weighted: Vec<_> = models.iter().map(|model| (model, 1.0)).collect();
                let mean = weighted_mean(&weighted).expect("the models have one layout");
                std::hint::black_box(Hash::of(&mean.document()));
            }
        });
        threads.all(members).expect("no job panics");
    }
    println!("{:.3}", start.elapsed().as_secs_f64());
}
