//! Networks from TOML to what they learn, on small made-up images in CSV files.

use std::fmt::Write;
use task::TaskConfig;
use task::metrics::MetricName;

use super::*;
use crate::random::{stream, uniform};

/// A folder with one file `rows.csv`, removed at the end.
struct RowsFolder(PathBuf);

impl RowsFolder {
    /// Columns `p1`, `p2`, … for pixels, then the targets; a row is `row(uniform)`.
    fn with(
        name: &str,
        rows: usize,
        targets: &[String],
        row: impl Fn(&mut dyn FnMut() -> f64) -> (Vec<f64>, Vec<String>),
    ) -> Self {
        let mut rng = stream(17, name);
        let mut draw = || uniform(&mut rng);
        let mut text = String::new();
        for _ in 0..rows {
            let (pixels, values) = row(&mut draw);
            if text.is_empty() {
                (1..=pixels.len()).for_each(|at| write!(text, "p{at},").unwrap());
                text.push_str(&targets.join(","));
            }
            text.push('\n');
            pixels.iter().for_each(|p| write!(text, "{p},").unwrap());
            text.push_str(&values.join(","));
        }
        let folder = std::env::temp_dir().join(format!("learn-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("rows.csv"), text).unwrap();
        Self(folder)
    }
}

impl Drop for RowsFolder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

/// The task of this text, which names files of this folder.
fn within(text: &str, folder: &RowsFolder) -> TaskConfig {
    let mut task = config(text);
    task.resolve(&folder.0);
    task
}

/// The test metric of the only silo before and after a training, and the metric's name.
fn learned(folder: &RowsFolder, text: &str, epochs: u32, rate: f64) -> (f64, f64, MetricName) {
    let study = within(text, folder).study(None, None, 3).unwrap();
    let learner = &study.silos[0].learner;
    let task = Task::Train(Training {
        epochs,
        batch: 16,
        optimiser: Optimiser::Adam {
            rate,
            weight_decay: 0.0,
        },
        decay: None,
    });
    let (start, none) = (learner.initial(1), Params::empty());
    let go_on = &mut |_| ControlFlow::Continue(());
    let update = learner.carry_out(&start, &none, &task, 1, go_on).unwrap();
    let measure = |model| {
        let metrics = learner.evaluate(model, &none, Split::Test).unwrap();
        metrics.values[study.metric.name.key()]
    };
    (measure(&start), measure(&update.shared), study.metric.name)
}

#[test]
fn a_small_cnn_tells_rows_from_columns() {
    let target = ["bar".to_owned()];
    let folder = RowsFolder::with("bars", 160, &target, |draw| {
        let (down, at) = (draw() < 0.5, (6.0 * draw()) as usize);
        let pixels = (0..36).map(|pixel| {
            let bright = if down {
                pixel % 6 == at
            } else {
                pixel / 6 == at
            };
            f64::from(bright) + 0.4 * draw()
        });
        let pixels = pixels.collect();
        (pixels, vec![if down { "column" } else { "row" }.to_owned()])
    });
    let text = "[task.table]\nmetric = 'accuracy'\n\
        [task.table.model.network]\nimage = [1, 6, 6]\n\
        layers = [{ conv = { channels = 6, kernel = 3 } }, 'norm', 'relu', { max-pool = { size = 2 } }]\n\
        [task.table.data.rows]\nfiles = [{ path = 'rows.csv' }]\n[task.table.data.rows.columns]\ntarget = 'bar'\nclasses = ['row', 'column']";
    let (before, after, _) = learned(&folder, text, 12, 0.01);
    assert!(before < 0.8 && after > 0.95, "{before} {after}");
}

#[test]
fn a_small_unet_finds_the_object() {
    let mask: Vec<String> = (1..=64).map(|at| format!("m{at}")).collect();
    let folder = RowsFolder::with("objects", 80, &mask, |draw| {
        let [top, left] = [0, 0].map(|_| (5.0 * draw()) as usize);
        let inside = |pixel: usize| {
            (top..top + 4).contains(&(pixel / 8)) && (left..left + 4).contains(&(pixel % 8))
        };
        let pixels = (0..64).map(|pixel| f64::from(inside(pixel)) + draw());
        let mask = (0..64).map(|pixel| u8::from(inside(pixel)).to_string());
        (pixels.collect(), mask.collect())
    });
    let text = format!(
        "[task.table]\nmodel.network = {{ image = [1, 8, 8], norm = {{ group = 2 }}, layers = [\
        {{ conv = {{ channels = 4, kernel = 3 }} }}, 'norm', 'relu', \
        {{ skip = [{{ max-pool = {{ size = 2 }} }}, {{ conv = {{ channels = 8, kernel = 3 }} }}, 'norm', 'relu', {{ up-conv = 4 }}] }}, \
        {{ conv = {{ channels = 4, kernel = 3 }} }}, 'norm', 'relu'] }}\n\
        [task.table.data.rows]\nfiles = [{{ path = 'rows.csv' }}]\n[task.table.data.rows.columns]\ntarget = {{ mask = {mask:?} }}"
    );
    let (before, after, metric) = learned(&folder, &text, 15, 0.02);
    assert_eq!(metric, MetricName::Dice);
    assert!(metric.higher_is_better());
    assert!(before < 0.6 && after > 0.85, "{before} {after}");
}

#[test]
fn six_numbers_are_learned_at_once() {
    let six: Vec<String> = (1..=6).map(|at| format!("month {at}")).collect();
    let folder = RowsFolder::with("months", 120, &six, |draw| {
        let level = 20.0 * draw();
        let series: Vec<f64> = (0..12).map(|month| level + f64::from(month)).collect();
        let after = series[6..].iter().map(f64::to_string);
        (series[..6].to_vec(), after.collect())
    });
    let data = format!(
        "[task.table.data.rows]\nfiles = [{{ path = 'rows.csv' }}]\n[task.table.data.rows.columns]\nunit = '°F'\ntarget = {six:?}"
    );
    for model in [
        "model.network = { layers = 'tpt48', width = 0.03 }",
        "model.mlp.hidden = [16]",
    ] {
        let text = format!("[task.table]\n{model}\nmetric = 'mse'\nstandardise = 'silo'\n{data}");
        let study = within(&text, &folder).study(None, None, 3).unwrap();
        assert_eq!(study.metric.unit, "(°F)²");
        let (before, after, _) = learned(&folder, &text, 40, 0.01);
        assert!(after < 0.1 * before, "{model}: {before} {after}");
    }
    let with = |table: &str| {
        let task = within(&format!("[task.table]\n{table}\n{data}"), &folder);
        task.study(None, None, 3).err().unwrap().to_string()
    };
    assert_eq!(
        with("model.linear = {}"),
        "a linear model predicts one number, but the target has several: use an mlp or a network"
    );
    assert!(with("model.network = { layers = [] }\nmetric = 'dice'").contains("choose one of"));
}

#[test]
fn networks_state_what_does_not_go_together() {
    let diabetes = "[task.table]\ndata = 'diabetes'\nstandardise = 'silo'\n";
    assert_eq!(
        fails(&format!("{diabetes}model.network.layers = 'leaf-femnist'")),
        "network: the rows have 10 features, but an image of 1×28×28 has 784 values: set `image` \
         to what the columns hold, as [channels, height, width]"
    );
    let text =
        format!("{diabetes}model.network = {{ layers = [{{ dense = 4 }}], loss = 'absolute' }}");
    let study = config(&text).study(None, None, 0).unwrap();
    let layout = study.silos[0].learner.layout();
    assert_eq!(
        layout.describe(),
        "layer00.dense.bias [4], layer00.dense.weight [4, 10], layer01.dense.bias [1], layer01.dense.weight [1, 4]"
    );
    let task = config(&text);
    let text = toml::to_string(&TestScenario { task: task.clone() }).unwrap();
    assert_eq!(config(&text), task);
}
