//! Runs a federation around a model of your own: implement `Learner` for your silos, and run them.
//!
//! `cargo run --release --example own_learner`

use std::{error::Error, sync::Arc};

use rota::lab::run_study;
use rota::learn::{RowCounts, Study, StudySilo};
use rota::methods::*;
use rota::simulations::{Options, Scenario};
use rota::task::{metrics::Metric, metrics::MetricName};

/// A weather station: its model is one number, the usual temperature.
struct Station(Vec<f32>);

impl Learner for Station {
    fn layout(&self) -> Arc<Layout> {
        let usual = TensorSpec::new("usual", [1], Role::Weight);
        Layout::new(vec![usual]).expect("one tensor has no equal names")
    }
    fn initial(&self, _seed: u64) -> Params {
        Params::zeros(&self.layout())
    }
    fn train(
        &self,
        _start: &Params,
        personal: &Params,
        _training: &Training,
        _seed: u64,
        _progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let mean = self.0.iter().sum::<f32>() / self.0.len() as f32;
        let shared = Params::from_values(&self.layout(), &[mean]);
        Ok(Update {
            metrics: self.evaluate(&shared, personal, Split::Train)?,
            ..Update::kept(&shared, personal, self.samples())
        })
    }
    fn evaluate(&self, model: &Params, _: &Params, _: Split) -> Result<Metrics, LearnError> {
        let off = |day: &f32| f64::from((day - model.values()[0]).abs());
        let loss = self.0.iter().map(off).sum::<f64>() / self.0.len() as f64;
        Ok(Metrics {
            samples: self.samples(),
            values: [("loss".into(), loss)].into(),
        })
    }
    fn samples(&self) -> u64 {
        self.0.len() as u64
    }
    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

const SCENARIO: &str = r#"
name = "weather"
rounds = 1
task.constant.parameters = 1   # the stations below take its place
strategy = { name = "cs-rcfl", coalitions = 2, training = { epochs = 1, batch = 0, optimiser = { name = "sgd", rate = 0.1 } } }
"#;

fn main() -> Result<(), Box<dyn Error>> {
    let stations = [
        ("Oslo", 4.),
        ("Rome", 16.),
        ("Riga", 6.),
        ("Bari", 17.),
        ("Turku", 5.),
    ];
    let silo = |(name, usual): (&str, f32)| StudySilo {
        name: name.into(),
        preparation: None,
        group: None,
        table: None,
        learner: Arc::new(Station(
            (0..9).map(|day| usual + (day % 3) as f32).collect(),
        )),
        rows: RowCounts {
            train: 9,
            validation: 0,
            test: 9,
        },
    };
    let metric = Metric {
        name: MetricName::Loss,
        unit: "degrees off".into(),
    };
    let study = Study {
        notes: Vec::new(),
        proposed: None,
        subgroups: Vec::new(),
        classes: Vec::new(),
        silos: stations.map(silo).into(),
        metric,
        pooled: None,
    };
    let summary = run_study(
        &Scenario::parse("weather", SCENARIO)?,
        &study,
        Options::default(),
    )?;
    println!("{:#?}", summary.rounds[0].coalitions);
    Ok(())
}
