//! A node whose learner is Rust code of the institution, among nodes with programs.

use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;

use rota::methods::learner::{Capabilities, Split, Watch};
use rota::methods::{
    Layout, LearnError, Learner, Metrics, Params, Role, TensorSpec, Training, Update,
};
use rota::node::institution::{NodeOptions, OutputLines, run_with};

use super::federations::{demo, rota_run, start};

/// The line `y = weight·x + bias` through the rows of the silo, fitted by gradient descent.
struct FittedLine {
    rows: Vec<(f32, f32)>,
    bias: &'static str,
}

impl FittedLine {
    fn of(&self, model: &Params) -> (f32, f32) {
        let tensor = |name| model.tensor(name).unwrap()[0];
        (tensor("weight"), tensor(self.bias))
    }
}

impl Learner for FittedLine {
    fn layout(&self) -> Arc<Layout> {
        let weight = TensorSpec::new("weight", [1, 1], Role::Weight);
        let bias = TensorSpec::new(self.bias, [1], Role::Bias);
        Layout::new(vec![weight, bias]).unwrap()
    }

    // The agreement says where the model starts, not the learner.
    fn initial(&self, _: u64) -> Params {
        Params::build(&self.layout(), |values| values.fill(f32::NAN))
    }

    fn train(
        &self,
        start: &Params,
        personal: &Params,
        _: &Training,
        _: u64,
        _: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (mut weight, mut bias) = self.of(start);
        let rows = self.rows.len() as f32;
        let (mut by_weight, mut by_bias) = (0.0, 0.0);
        for &(x, y) in &self.rows {
            let off = 2.0 * (weight * x + bias - y) / rows;
            (by_weight, by_bias) = (by_weight + off * x, by_bias + off);
        }
        (weight, bias) = (weight - 0.2 * by_weight, bias - 0.2 * by_bias);
        // The layout is in the order of names.
        let shared = Params::from_values(&self.layout(), &[bias, weight]);
        Ok(Update {
            metrics: self.evaluate(&shared, personal, Split::Train)?,
            ..Update::kept(&shared, personal, self.samples())
        })
    }

    fn evaluate(&self, model: &Params, _: &Params, split: Split) -> Result<Metrics, LearnError> {
        if split == Split::Validation {
            return Err(LearnError::NoRows("validation"));
        }
        let (weight, bias) = self.of(model);
        let square = |&(x, y): &(f32, f32)| f64::from(weight * x + bias - y).powi(2);
        let loss = self.rows.iter().map(square).sum::<f64>() / self.rows.len() as f64;
        Ok(Metrics {
            samples: self.samples(),
            values: [("loss".into(), loss)].into(),
        })
    }

    fn samples(&self) -> u64 {
        self.rows.len() as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

/// Runs the node of this configuration, as an institution's own program does.
pub(crate) fn node(config: &str) {
    let bias = if config.contains("another") {
        "offset"
    } else {
        "bias"
    };
    let x = |row: u8| f32::from(row) / 8.0 - 1.0;
    let rows = (0..12).map(|row| (x(row), 2.0 * x(row) + 1.0)).collect();
    let (output, writer) = OutputLines::start(true);
    let options = NodeOptions {
        until_done: true,
        ..NodeOptions::default()
    };
    let learner = Arc::new(FittedLine { rows, bias });
    let ended = run_with(Path::new(config), learner, &options, &output);
    drop(output);
    writer.join().unwrap();
    if let Err(error) = ended {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Returns what a node printed until its good end.
fn end(node: Child) -> String {
    let output = node.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{error}");
    String::from_utf8(output.stdout).unwrap()
}

fn own(config: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--node").arg(config);
    command
}

/// Returns what the node says before it ends with an error.
fn refused(config: &Path) -> String {
    let output = start(own(config)).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

pub(crate) fn a_node_learns_with_rust_code_of_its_own() {
    let configs = demo("own", "well", "name = 'fedavg'");
    let (first, others) = configs.split_first().unwrap();
    let why = refused(first);
    assert!(why.contains("this node has a learner of its own"), "{why}");
    // Without the program, Rota cannot train, and the institution's own node can.
    let whole = fs::read_to_string(first).unwrap();
    let of_program = [
        "[learner]",
        "command =",
        "programs =",
        "timeout =",
        "processes =",
    ];
    let without: String = whole
        .split_inclusive('\n')
        .filter(|line| !of_program.iter().any(|start| line.starts_with(start)))
        .collect();
    fs::write(first, &without).unwrap();
    let mut check = Command::new(env!("CARGO_BIN_EXE_rota"));
    check.args(["check", "--config"]).arg(first);
    let check = check.output().unwrap();
    let said = [check.stdout, check.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("`learner` is missing"), "{said}");
    let another = first.with_file_name("another.toml");
    fs::write(&another, &without).unwrap();
    let why = refused(&another);
    assert!(
        why.contains("another model than the agreed one: \"bias\""),
        "{why}"
    );

    let mut nodes: Vec<_> = others
        .iter()
        .map(|config| start(rota_run(config)))
        .collect();
    nodes.push(start(own(first)));
    let outputs: Vec<_> = nodes.into_iter().map(end).collect();
    for output in &outputs {
        assert!(output.matches("\"adopted\"").count() >= 4, "{output}");
        assert!(!output.contains("training-failed"), "{output}");
    }
    // It trained on its own rows.
    let own = outputs.last().unwrap();
    let trained = |line: &str| {
        let line = serde_json::from_str::<serde_json::Value>(line);
        line.is_ok_and(|line| line["event"] == "adopted" && line["loss"].is_number())
    };
    assert!(own.lines().any(trained), "{own}");
}
