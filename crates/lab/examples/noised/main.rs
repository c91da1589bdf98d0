//! Benefit of a federation with noise on three public tables, in Markdown:
//!
//!     cargo build --workspace --example noised
//!     ROTA_DATA=data target/debug/examples/noised
//!     ROTA_DATA=data target/debug/examples/noised 5
//!
//! With a number, over so many splits of the rows in place of 20. Beside the settings that all federations
//! get, which depend on no row, stand the best ones of a grid: those with the least loss on the test rows of the
//! same splits, which nobody has beforehand. The difference is what choosing without looking loses.

mod hospitals;
mod rows;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lab::compare::{
    Choices, CompareOptions, Comparison, ComparisonRow, Experiment, MakeRows, compare,
};
use lab::summary::NO_BOUND;

/// The bounds that are looked at.
const EPSILONS: [f64; 5] = [0.5, 1.0, 2.0, 4.0, 20.0];
/// Splits of the rows.
const SPLITS: usize = 20;
/// The grid: rounds, norms to which gradients are clipped, and the largest step, which is rate · norm.
const ROUNDS: [u32; 3] = [10, 20, 40];
const CLIPS: [f64; 4] = [0.1, 0.2, 0.5, 1.0];
const STEPS: [f64; 5] = [0.5, 1.0, 2.0, 4.0, 8.0];

fn main() -> Result<(), Box<dyn Error>> {
    let splits = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => SPLITS,
    };
    let folder = std::env::var_os("ROTA_DATA").ok_or("set ROTA_DATA to the folder of data sets")?;
    let folder = PathBuf::from(folder);
    for (name, rows) in [
        (
            "breast cancer, 10 silos of 38 training rows",
            rows::breast_cancer(&folder)?,
        ),
        ("heart, 4 hospitals", rows::four_hospitals(&folder)?),
        (
            "length of stay, 20 hospitals",
            hospitals::twenty_hospitals(&folder)?,
        ),
    ] {
        table(name, &rows, splits)?;
    }
    Ok(())
}

/// A scenario of which the rows are given.
fn scenario() -> String {
    "name = \"noised\"
    seed = 0
    rounds = 40
    [task.table]
    data = \"heart\"
    model = \"logistic\"
    standardise = \"none\"
    metric = \"log-loss\"
    split = { validation = 0.0, keyed = true }
    [strategy]
    name = \"fedavg\"
    weight = \"equal\"
    training = { epochs = 1, batch = 0, optimiser = { name = \"sgd\", rate = 5.0 } }
    "
    .into()
}

fn measured(
    text: &str,
    epsilons: &[f64],
    rows: &Arc<MakeRows>,
    splits: usize,
) -> Result<Comparison, Box<dyn Error>> {
    let choices = Choices {
        seeds: Some(splits),
        epsilons: epsilons.to_vec(),
        ..Choices::default()
    };
    let experiment = Experiment::parse("noised.toml", text, Path::new(""), &choices)?;
    let options = CompareOptions {
        rows: Some(rows.clone()),
        ..CompareOptions::default()
    };
    Ok(compare(&experiment, options)?)
}

/// Every point of the grid at every ε, as an experiment.
fn grid() -> (String, Vec<(f64, String)>) {
    let mut text = "name = \"grid\"
    tune = { validation = 0.0 }
    served = false
    [scenario]
    seed = 0
    rounds = 40
    [scenario.task.table]
    data = \"heart\"
    model = \"logistic\"
    standardise = \"none\"
    metric = \"log-loss\"
    split = { validation = 0.0, keyed = true }
    "
    .to_owned();
    let mut points = Vec::new();
    for epsilon in EPSILONS {
        for rounds in ROUNDS {
            for clip in CLIPS {
                for step in STEPS {
                    let label = format!("{rounds} rounds, C {clip}, rate {}", step / clip);
                    let label = format!("{epsilon}: {label}");
                    text += &format!(
                        "[[strategy]]
                        label = \"{label}\"
                        name = \"fedavg\"
                        weight = \"equal\"
                        training = {{ epochs = 1, batch = 0, optimiser = {{ name = \"sgd\", rate = {:?} }} }}
                        set = {{ rounds = {rounds}, privacy = {{ mode = \"differential-privacy\", epsilon = {epsilon:?}, \
                        clipping-norm = {clip:?} }} }}
                        ",
                        step / clip
                    );
                    points.push((epsilon, label));
                }
            }
        }
    }
    (text, points)
}

fn mean(row: &ComparisonRow) -> Option<(f64, f64)> {
    let scope = row.metrics.first()?.inside.as_ref()?;
    scope.silos.map(|silos| (silos.mean, silos.sd))
}

fn cells(row: &ComparisonRow) -> String {
    let (mean, sd) = mean(row).unwrap_or((f64::NAN, f64::NAN));
    format!("{mean:.3} ± {sd:.3}")
}

/// Returns how much better it is than a reference, with its interval.
fn over(row: &ComparisonRow, reference: &str) -> String {
    let against = row.against.iter().find(|one| one.over == reference);
    let interval = against.and_then(|one| one.inside.as_ref()?.per_silo);
    interval.map_or_else(String::new, |one| {
        format!("{:+.3} [{:+.3}, {:+.3}]", one.by, one.low, one.high)
    })
}

fn table(name: &str, rows: &Arc<MakeRows>, splits: usize) -> Result<(), Box<dyn Error>> {
    let comparison = measured(&scenario(), &EPSILONS, rows, splits)?;
    let (text, points) = grid();
    let tried = measured(&text, &[], rows, splits)?;
    let find = |of: &'_ Comparison, label: &str| -> Option<ComparisonRow> {
        let rows = of.variants[0].strategies.iter();
        rows.into_iter().find(|row| row.label == label).cloned()
    };
    println!("\n{name}: log loss, {splits} splits\n");
    println!(
        "| | log loss | better than the own fit (95 %) | best of the grid | settings of it | \
         seconds | bytes |"
    );
    println!("|---|---|---|---|---|---|---|");
    let cost = |row: &ComparisonRow| {
        let bytes = row.to_end.as_ref().map_or(0.0, |end| end.bytes.mean);
        format!("{:.4} | {:.0}", row.seconds.0, bytes)
    };
    for label in ["own-fit", "without noise"] {
        let row = find(&comparison, label).ok_or("a row is missing")?;
        let (value, gain) = (cells(&row), over(&row, "own-fit"));
        println!("| {label} | {value} | {gain} | | | {} |", cost(&row));
    }
    for epsilon in EPSILONS {
        let row = find(&comparison, &format!("steps, epsilon {epsilon}"));
        let row = row.ok_or("a row is missing")?;
        let bounds = row.noise.as_ref().ok_or("there is no noise")?;
        let alone = bounds.epsilon_alone;
        let alone = alone.map_or_else(|| NO_BOUND.into(), |alone| format!("{alone:.2}"));
        let of_grid = points.iter().filter(|(of, _)| *of == epsilon);
        let of_grid = of_grid.filter_map(|(_, label)| find(&tried, label));
        let best = of_grid.min_by(|a, b| {
            let value = |row| mean(row).map_or(f64::INFINITY, |(mean, _)| mean);
            value(a).total_cmp(&value(b))
        });
        let best = best.ok_or("the grid is empty")?;
        let settings = best.label.split(": ").nth(1).unwrap_or_default().to_owned();
        println!(
            "| steps, ε {epsilon} (ε_alone {alone}) | {} | {} | {} | {settings} | {} |",
            cells(&row),
            over(&row, "own-fit"),
            cells(&best),
            cost(&row)
        );
        let (own, shrunken) = (", own intercept", ", shrunken");
        for (release, adapted) in [
            ("steps", own),
            ("steps", shrunken),
            ("once", ""),
            ("once", own),
            ("once", shrunken),
        ] {
            let label = format!("{release}, epsilon {epsilon}{adapted}");
            let row = find(&comparison, &label).ok_or("a row is missing")?;
            println!(
                "| {release}, ε {epsilon}{adapted} | {} | {} | | | {} |",
                cells(&row),
                over(&row, "own-fit"),
                cost(&row)
            );
        }
    }
    println!(
        "\n{:.1} seconds for all of it",
        comparison.seconds + tried.seconds
    );
    Ok(())
}
