//! Images per second that a model is trained on: the side of Rota in `benches/vs_pytorch/run.py`, which
//! writes the task and its rows.
//!
//!     cargo run --release -p learn --example throughput -- TASK.toml DEVICE BATCH EPOCHS REPEATS
//!
//! Prints one JSON document: the model's weights, the images per second of the fastest repeat, by the
//! clock and by the processor time of this thread, and the loss of the last.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use learn::{DeviceChoice, TaskStudy};
use methods::Role;
use methods::learner::{Optimiser, Training};
use task::TaskConfig;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [task, device, batch, epochs, repeats] = arguments.as_slice() else {
        return Err("expected TASK.toml DEVICE BATCH EPOCHS REPEATS".into());
    };
    let mut config: TaskConfig = toml::from_str(&std::fs::read_to_string(task)?)?;
    config.resolve(Path::new(task).parent().unwrap_or(Path::new("")));
    let device = DeviceChoice {
        name: device.parse()?,
        ..DeviceChoice::default()
    };
    let study = config.study(Some(1), None, 1)?.on(&device.open()?);
    let learner = &study.silos[0].learner;
    let training = Training {
        epochs: epochs.parse()?,
        batch: batch.parse()?,
        optimiser: Optimiser::Sgd {
            rate: 0.01,
            momentum: 0.0,
            weight_decay: 0.0,
        },
        decay: None,
    };
    let images = (learner.samples() * u64::from(training.epochs)) as f64;
    let (mut model, personal) = (learner.initial(1), learner.initial_personal(1));
    let (mut by_clock, mut by_processor, mut loss) = (0f64, 0f64, f64::NAN);
    // The first is not counted: memory is not there yet.
    for seed in 0..=repeats.parse::<u64>()? {
        let (from, worked) = (Instant::now(), processor_time());
        let mut watch = |at: methods::Progress| {
            loss = at.loss;
            ControlFlow::Continue(())
        };
        let update = learner.train(&model, &personal, &training, seed, &mut watch)?;
        if seed > 0 {
            by_clock = by_clock.max(images / from.elapsed().as_secs_f64());
            by_processor = by_processor.max(images / (processor_time() - worked));
        }
        model = update.shared;
    }
    let trained = model.layout().tensors().iter();
    let weights: usize = trained
        .filter(|tensor| tensor.role != Role::Buffer)
        .map(|tensor| tensor.len())
        .sum();
    let document = serde_json::json!({
        "weights": weights,
        "clock": by_clock,
        "processor": by_processor,
        "loss": loss,
    });
    println!("{document}");
    Ok(())
}

/// Seconds that this thread has computed, which other programs on the machine change little; NaN where
/// the system does not say.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|text| text.parse().ok());
    nanoseconds.map_or(f64::NAN, |nanoseconds: f64| nanoseconds * 1e-9)
}
