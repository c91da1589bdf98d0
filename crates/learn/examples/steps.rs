//! Training steps per second of the model families on this machine, the best of five epochs:
//! `cargo run --release -p learn --example steps`.

use learn::TaskStudy;
use std::ops::ControlFlow;
use std::time::Instant;

use methods::learner::{Optimiser, Training};
use task::TaskConfig;

/// Name, `[task.table.model]`, rows, columns, rows per step.
const MODELS: [(&str, &str, usize, usize, u32); 5] = [
    ("logistic, 13 columns", "model = 'logistic'", 2_000, 13, 16),
    ("mlp 64-32", "model.mlp.hidden = [32]", 2_000, 64, 32),
    (
        "mlp 784-512-512",
        "model.mlp.hidden = [512, 512]",
        640,
        784,
        32,
    ),
    (
        "cnn of FedAvg, 28×28",
        "model.network = { image = [1, 28, 28], layers = 'fedavg-cnn' }",
        96,
        784,
        32,
    ),
    (
        "resnet-18, 32×32",
        "model.network = { image = [3, 32, 32], layers = 'resnet18-small' }",
        16,
        3_072,
        8,
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join("rota-steps");
    std::fs::create_dir_all(&folder)?;
    for (name, model, rows, columns, batch) in MODELS {
        let mut text: String = (0..columns).map(|column| format!("x{column},")).collect();
        text += "y\n";
        for row in 0..rows {
            let label = row % 2;
            for column in 0..columns {
                // A fixed pattern with a signal in it.
                let noise = (row * 7_919 + column * 104_729) % 1_000;
                text += &format!("{:.3},", noise as f64 / 1_000.0 + 0.3 * label as f64);
            }
            text += ["a\n", "b\n"][label];
        }
        std::fs::write(folder.join("rows.csv"), text)?;
        let mut config: TaskConfig = toml::from_str(&format!(
            "[table]\n{model}\nsplit = {{ test = 0.1 }}\n\
             [table.data.rows]\nfiles = [{{ path = 'rows.csv' }}]\n[table.data.rows.columns]\ntarget = 'y'\nclasses = ['a', 'b']"
        ))?;
        config.resolve(&folder);
        let study = config.study(None, None, 1)?;
        let learner = &study.silos[0].learner;
        let training = Training {
            epochs: 1,
            batch,
            optimiser: Optimiser::Sgd {
                rate: 0.01,
                momentum: 0.0,
                weight_decay: 0.0,
            },
            decay: None,
        };
        let steps = training.steps(learner.samples());
        let (mut model, personal) = (learner.initial(1), learner.initial_personal(1));
        let mut best = f64::INFINITY;
        for seed in 0..5 {
            let from = Instant::now();
            model = learner
                .train(&model, &personal, &training, seed, &mut |_| {
                    ControlFlow::Continue(())
                })?
                .shared;
            best = best.min(from.elapsed().as_secs_f64());
        }
        println!("{name:24} {:12.1} steps/s", steps as f64 / best);
    }
    Ok(())
}
