#![allow(clippy::unwrap_used)]

mod graphs;
mod outside;
mod predictions;
mod survival;
mod trees;

use crate::of_task::TaskStudy;
use methods::Params;

use super::*;
use crate::data::Preparation;
use crate::random::{stream, uniform};
use crate::schema::Schema;
use task::TableTask;
use task::TaskConfig;

/// A clinic's schema: numbers, a category, a missing-value rule of each kind.
const CLINIC: &str = r#"
only = ["age >= 18"]
target = { name = "outcome", classes = ["home", "died"] }
[[feature]]
name = "age"
type = "integer"
[[feature]]
name = "pulse"
missing = "median"
[[feature]]
name = "weight"
missing = "drop"
[[feature]]
name = "ward"
type = "category"
levels = ["general", "intensive", "children"]
missing = "indicator"
"#;

/// A task with this schema, model and scaling.
fn task(schema: &str, model: &str, standardise: &str) -> TableTask {
    let text = format!("model = {model}\nstandardise = \"{standardise}\"\n");
    let mut task: TableTask = toml::from_str(&text).unwrap();
    let schema: Schema = toml::from_str(schema).unwrap();
    schema.check().unwrap();
    task.schema = Some(schema);
    task
}

fn origin() -> Origin {
    Origin {
        which: "coalition".into(),
        about: "The model of coalition 1 of 2 after round 3".into(),
        federation: "clinics".into(),
        id: "ab".repeat(32),
        members: 3,
        strategy: "cs-rcfl".into(),
        round: 3,
        rounds: 3,
        coalition: Some(Coalition {
            number: 1,
            of: 2,
            contributions: 2,
        }),
        block: "cd".repeat(32),
        outcome: "ef".repeat(32),
        certificate: "01".repeat(32),
        silo: "north".into(),
        continues: None,
    }
}

/// A random model of a task, as after a few rounds, with a preparation that is not the identity.
fn model(task: &TableTask, seed: u64) -> (Preparation, Params) {
    let names = ["north".to_owned()];
    let study = task.stand_ins(&names, seed).unwrap();
    let initial = study.silos[0].learner.initial(seed);
    let mut rng = stream(seed, "test");
    let mut next = || 2.0 * uniform(&mut rng) - 1.0;
    let columns = task.schema.as_ref().unwrap().encoded().len();
    let mut preparation = Preparation::none(columns);
    preparation
        .fills
        .iter_mut()
        .for_each(|fill| *fill = 3.0 * next());
    if TaskConfig::Table(Box::new(task.clone())).common_scale() {
        // The scale is in the model.
    } else if task.scaling() == crate::data::Standardise::Silo {
        preparation
            .means
            .iter_mut()
            .for_each(|mean| *mean = 5.0 * next());
        let deviations = preparation.deviations.iter_mut();
        deviations.for_each(|deviation| *deviation = 2.0 + next());
        (preparation.target_mean, preparation.target_deviation) = (40.0, 7.0);
    }
    let layout = initial.layout().clone();
    let model = Params::build(&layout, |into| {
        into.copy_from_slice(initial.values());
        for (at, tensor) in layout.tensors().iter().enumerate() {
            let values = &mut into[layout.range(at)];
            let positive = ["scale.deviation", ".variance"];
            let positive = positive.iter().any(|end| tensor.name.ends_with(end));
            for value in values {
                // Norms and statistics other than those of the start, and some noise everywhere.
                *value = if positive {
                    1.0 + 0.5 * next() as f32
                } else {
                    *value + 0.1 * next() as f32
                };
            }
        }
    });
    (preparation, model)
}

fn card(task: &TableTask, seed: u64) -> (Card, Params) {
    let (preparation, model) = model(task, seed);
    let card = Card::new(CardParts {
        task,
        preparation: &preparation,
        model: &model,
        origin: origin(),
        created: "2026-11-22T12:00:00Z".into(),
    });
    (card.unwrap(), model)
}

/// Random rows, with a missing number here and there.
fn rows(columns: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut rng = stream(seed, "rows");
    let mut number = || match uniform(&mut rng) {
        gap if gap < 0.05 => f64::NAN,
        value => 6.0 * value - 3.0,
    };
    (0..count)
        .map(|_| (0..columns).map(|_| number()).collect())
        .collect()
}

/// A folder of this test.
fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("rota-export-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
