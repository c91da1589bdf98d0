//! The node of an institution whose training is Rust code of its own: implement `Learner` for your
//! rows, and run the node with it. Everything else, from keys to `rota status`, stays as it is.
//!
//! `cargo run --release --example own_node -- node.toml days.txt`

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use rota::methods::*;
use rota::node::institution::{NodeOptions, OutputLines, run_with};

/// A weather station, with the temperatures of its days. Its model is one number, the usual
/// temperature; every fourth day is held out.
struct Station(Vec<f32>);

impl Station {
    fn days(&self, held_out: bool) -> impl Iterator<Item = f32> + Clone {
        let days = self.0.iter().enumerate();
        days.filter(move |(nth, _)| (nth % 4 == 3) == held_out)
            .map(|(_, &day)| day)
    }
}

impl Learner for Station {
    // Names, shapes and roles as in [task.external] of the agreement.
    fn layout(&self) -> Arc<Layout> {
        let usual = TensorSpec::new("usual", [1], Role::Weight);
        Layout::new(vec![usual]).expect("one tensor has no equal names")
    }
    fn initial(&self, _seed: u64) -> Params {
        Params::zeros(&self.layout())
    }
    fn train(
        &self,
        start: &Params,
        personal: &Params,
        training: &Training,
        _seed: u64,
        _progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (mut usual, days) = (start.values()[0], self.samples() as f32);
        for _ in 0..training.epochs {
            let slope: f32 = self.days(false).map(|day| 2.0 * (usual - day)).sum();
            usual -= 0.2 * slope / days;
        }
        let shared = Params::from_values(&self.layout(), &[usual]);
        Ok(Update {
            metrics: self.evaluate(&shared, personal, Split::Train)?,
            ..Update::kept(&shared, personal, self.samples())
        })
    }
    fn evaluate(&self, model: &Params, _: &Params, split: Split) -> Result<Metrics, LearnError> {
        if split == Split::Validation {
            return Err(LearnError::NoRows("validation"));
        }
        let days = self.days(split == Split::Test);
        let count = days.clone().count();
        let squares: f64 = days
            .map(|day| f64::from(day - model.values()[0]).powi(2))
            .sum();
        Ok(Metrics {
            samples: count as u64,
            values: [("loss".into(), squares / count as f64)].into(),
        })
    }
    fn samples(&self) -> u64 {
        self.days(false).count() as u64
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [config, days] = arguments.as_slice() else {
        return Err("usage: own_node SILO.TOML DAYS.TXT, a temperature in every line".into());
    };
    let days = std::fs::read_to_string(days)?;
    let days = days.lines().map(str::parse).collect::<Result<_, _>>()?;
    let (output, writer) = OutputLines::start(false);
    let options = NodeOptions {
        until_done: true,
        ..NodeOptions::default()
    };
    let station = Arc::new(Station(days));
    let ended = run_with(Path::new(config), station, &options, &output);
    drop(output);
    // All lines are written before an error is.
    let _ = writer.join();
    Ok(ended?)
}
