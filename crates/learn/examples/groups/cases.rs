//! Silos with rows: generated ones whose true groups are known, and a real study.

use learn::TaskStudy;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use methods::Learner;
use methods::robust::synthetic::{Hospitals, Targets};
use task::TaskConfig;

use super::planted::{HELD_OUT, KINDS, PlantedKind};

/// Silos, and what is known of them.
pub(crate) struct ExampleCase {
    /// Learners of the silos.
    pub(crate) silos: Vec<Arc<dyn Learner>>,
    /// The true group of every silo, where it is known.
    pub(crate) truth: Option<Vec<u32>>,
    /// The metric that is quoted.
    pub(crate) metric: &'static str,
    /// True if a first round agrees on a common scale.
    pub(crate) standardise: bool,
}

/// All cases by name.
pub(crate) const NAMES: [&str; 8] = [
    "linear",
    "logistic",
    "diabetes",
    "digits",
    "digits-iid",
    "digits-own",
    "digits-scaled",
    "digits-40",
];

/// The case of that name.
pub(crate) fn case(name: &str, seed: u64) -> Result<ExampleCase, Box<dyn Error>> {
    match name {
        "linear" => hospitals(Targets::Numbers { noise: 0.5 }, seed),
        "logistic" => hospitals(Targets::Labels { threshold: 0.5 }, seed),
        "diabetes" => diabetes(seed),
        "digits" => digits(9, &[0, 1, 2], "none", seed),
        "digits-iid" => digits(9, &[0], "none", seed),
        "digits-own" => digits(6, &[0, 1, 2, 3, 4, 5], "none", seed),
        "digits-scaled" => digits(9, &[0, 1, 2], "silo", seed),
        "digits-40" => digits(40, &[0, 1, 2], "none", seed),
        other => match KINDS.iter().find(|kind| kind.name == other) {
            Some(kind) => planted(kind, seed),
            None => Err(format!("no case {other:?}: expected one of {NAMES:?}").into()),
        },
    }
}

/// CS-RCFL's synthetic experiment: 20 hospitals, 4 true models; half of the rows are held out.
fn hospitals(targets: Targets, seed: u64) -> Result<ExampleCase, Box<dyn Error>> {
    let config = Hospitals {
        targets,
        rows: (200, 400),
        ..Hospitals::default()
    };
    let drawn = config.draw(seed)?;
    let number = matches!(targets, Targets::Numbers { .. });
    let tables = drawn.iter().map(|hospital| {
        let rows = hospital.rows.iter();
        rows.map(|(x, y)| (x.to_vec(), y.to_string())).collect()
    });
    let (model, target, metric) = if number {
        (
            "model = { linear = { loss = 'absolute' } }\nstandardise = 'none'",
            "",
            "mae",
        )
    } else {
        (
            "model = 'logistic'\nstandardise = 'none'",
            "classes = ['-1', '1']",
            "log-loss",
        )
    };
    Ok(ExampleCase {
        silos: silos(&tables.collect::<Vec<_>>(), model, target, 0.5, seed)?,
        truth: Some(drawn.iter().map(|one| one.coalition as u32).collect()),
        metric,
        standardise: false,
    })
}

/// Silos whose true models are known.
fn planted(kind: &PlantedKind, seed: u64) -> Result<ExampleCase, Box<dyn Error>> {
    let (tables, truth) = kind.draw(seed);
    let (model, target, metric) = match kind.classes {
        true => ("'logistic'", "classes = ['0', '1']", "log-loss"),
        false => ("{ linear = { loss = 'squared' } }", "", "mse"),
    };
    let model = format!("model = {model}\nstandardise = 'none'");
    Ok(ExampleCase {
        silos: silos(&tables, &model, target, HELD_OUT, seed)?,
        truth: Some(truth),
        metric,
        standardise: false,
    })
}

/// The diabetes study in 8 groups of patients.
fn diabetes(seed: u64) -> Result<ExampleCase, Box<dyn Error>> {
    let task: TaskConfig = toml::from_str(
        "[table]\ndata = 'diabetes'\nstandardise = 'federation'\n\
         split = { validation = 0.0, test = 0.3 }\nmodel = { linear = { loss = 'absolute' } }",
    )?;
    let study = task.study(Some(8), None, seed)?;
    Ok(ExampleCase {
        silos: study
            .silos
            .into_iter()
            .map(|silo| silo.learner as _)
            .collect(),
        truth: None,
        metric: "mae",
        standardise: true,
    })
}

/// Handwritten digits (8 × 8 pixels) of three kinds: as they are, on their side, and in negative;
/// from the fourth on with the pixels in another order each. 60 rows to train on at every silo, and
/// 60 held out, as far as the 1,797 rows go.
fn digits(
    count: usize,
    kinds: &[usize],
    standardise: &str,
    seed: u64,
) -> Result<ExampleCase, Box<dyn Error>> {
    let rows = read_digits()?;
    let order = shuffled(rows.len(), seed);
    let each = (rows.len() / count).min(120);
    let kind = |silo: usize| kinds[silo % kinds.len()];
    let table = |silo: usize| {
        let own = &order[silo * each..(silo + 1) * each];
        let row = |&at: &usize| {
            let (x, label) = &rows[at];
            (shown(x, kind(silo)), label.to_string())
        };
        own.iter().map(row).collect()
    };
    let tables: Vec<Vec<(Vec<f64>, String)>> = (0..count).map(table).collect();
    let classes = "classes = ['0','1','2','3','4','5','6','7','8','9']";
    Ok(ExampleCase {
        silos: silos(
            &tables,
            &format!("model.mlp.hidden = [32]\nstandardise = '{standardise}'"),
            classes,
            0.5,
            seed,
        )?,
        truth: Some((0..count).map(|silo| kind(silo) as u32).collect()),
        metric: "accuracy",
        standardise: false,
    })
}

/// A digit as silos of that kind see it.
fn shown(x: &[f64], kind: usize) -> Vec<f64> {
    match kind {
        0 => x.to_vec(),
        1 => (0..64).map(|at| x[(7 - at % 8) * 8 + at / 8]).collect(),
        2 => x.iter().map(|value| 1.0 - value).collect(),
        other => {
            let places = shuffled(64, other as u64);
            places.into_iter().map(|at| x[at]).collect()
        }
    }
}

/// A permutation, drawn by the seed.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let key = |at: &usize| methods::learner::mixed_seed(seed, *at as u64);
    order.sort_by_key(key);
    order
}

/// Pixels and the digit that they show.
type Digit = (Vec<f64>, u8);

/// All rows of `digits8_bench` under `ROTA_DATA`.
fn read_digits() -> Result<Vec<Digit>, Box<dyn Error>> {
    let folder = std::env::var("ROTA_DATA").map_err(|_| "ROTA_DATA is not set: no digits")?;
    let folder = Path::new(&folder).join("digits8_bench");
    let pixels = fs::read(folder.join("digits_20_X.f32"))?;
    let labels = fs::read(folder.join("digits_20_y.u8"))?;
    let value = |four: &[u8]| f32::from_le_bytes([four[0], four[1], four[2], four[3]]);
    let rows = pixels.chunks_exact(4 * 64).map(|row| -> Vec<f64> {
        row.chunks_exact(4)
            .map(|four| f64::from(value(four)))
            .collect()
    });
    Ok(rows.zip(labels).collect())
}

/// A learner for every table of features with a target, by way of files, as a user would.
fn silos(
    tables: &[Vec<(Vec<f64>, String)>],
    model: &str,
    target: &str,
    test: f64,
    seed: u64,
) -> Result<Vec<Arc<dyn Learner>>, Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("rota-groups-{}-{seed}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let mut names: Vec<PathBuf> = Vec::new();
    for (silo, table) in tables.iter().enumerate() {
        let mut text: String = (0..table[0].0.len()).map(|at| format!("x{at},")).collect();
        text += "y\n";
        for (x, y) in table {
            for value in x {
                write!(text, "{value},")?;
            }
            writeln!(text, "{y}")?;
        }
        let name = PathBuf::from(format!("{silo}.csv"));
        fs::write(folder.join(&name), text)?;
        names.push(name);
    }
    let files: Vec<_> = names
        .iter()
        .map(|name| format!("{{ path = '{}' }}", name.display()))
        .collect();
    let mut task: TaskConfig = toml::from_str(&format!(
        "[table]\n{model}\nsplit = {{ validation = 0.0, test = {test} }}\n\
         [table.data.rows]\nfiles = [{}]\n[table.data.rows.columns]\ntarget = 'y'\n{target}",
        files.join(", ")
    ))?;
    task.resolve(&folder);
    let study = task.study(None, None, seed)?;
    fs::remove_dir_all(&folder)?;
    Ok(study
        .silos
        .into_iter()
        .map(|silo| silo.learner as _)
        .collect())
}
