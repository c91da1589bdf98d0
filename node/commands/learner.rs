//! `rota learner`: looks at programs that train models in place of Rota.

use std::io::{self, Write};

use formatting::numbers;
use learn::external::{Described, MOST_HELD};
use task::external::{Held, Initial, TensorConfig, TensorRole};

use super::NodeCommandError;
use crate::cli::{DescribeLearner, LearnerCommand};

/// Runs a subcommand.
pub(crate) fn run(learner: &LearnerCommand) -> Result<(), NodeCommandError> {
    match learner {
        LearnerCommand::Describe(options) => describe(options),
    }
}

/// Prints the task of a program.
fn describe(options: &DescribeLearner) -> Result<(), NodeCommandError> {
    let described = Described::ask(&options.config(), &options.silo);
    let described = described.map_err(|error| NodeCommandError::Failed(error.to_string()))?;
    let mut out = io::stdout().lock();
    remarks(&mut out, &described, &options.silo)?;
    writeln!(out, "[task.external]")?;
    keys(&mut out, &described)?;
    writeln!(out, "tensors = [")?;
    for tensor in &described.tensors {
        writeln!(out, "    {},", in_toml(tensor))?;
    }
    Ok(writeln!(out, "]")?)
}

/// Prints what the program has at this silo, as comments.
fn remarks(out: &mut impl Write, described: &Described, silo: &str) -> io::Result<()> {
    let [train, validation, test] = described.rows;
    let plural = |count: usize, what: &str| numbers::plural(count, what);
    writeln!(
        out,
        "# {} in {}; at {:?} {train} training, {validation} validation and {test} test rows;",
        plural(
            described
                .tensors
                .iter()
                .map(|tensor| tensor.shape.iter().product::<usize>())
                .sum(),
            "number"
        ),
        plural(described.tensors.len(), "tensor"),
        silo,
    )?;
    writeln!(
        out,
        "# {} in its personal state; strategies {} modify its gradients; it gives {} row by row.",
        plural(described.personal, "number"),
        if described.gradients { "can" } else { "cannot" },
        if described.outputs {
            "outputs"
        } else {
            "nothing"
        },
    )?;
    if !described.metrics.is_empty() {
        writeln!(
            out,
            "# It measures {}{}: `metric` is one of these, and \"loss\" where it is not said.",
            described.metrics.join(", "),
            if described.outputs {
                ", and Rota more of its outputs"
            } else {
                ""
            },
        )?;
    }
    Ok(())
}

/// Prints the keys of the task before its tensors.
fn keys(out: &mut impl Write, described: &Described) -> io::Result<()> {
    if let Some(digest) = &described.frozen {
        writeln!(
            out,
            "# Tensors that are not trained and never travel: the same at every member."
        )?;
        writeln!(out, "frozen = {digest:?}")?;
        if !described.held.is_empty() && described.held.len() <= MOST_HELD {
            let each = described.held.iter();
            let each: Vec<String> = each
                .map(|(name, digest)| format!("{name:?} = {digest:?}"))
                .collect();
            writeln!(out, "held = {{ {} }}", each.join(", "))?;
        }
    }
    if described.gives_start {
        writeln!(
            out,
            "# All start from the values that the proposer's program holds, whatever `initial` says."
        )?;
        writeln!(out, "start = \"proposer\"")?;
    }
    if !described.columns.is_empty() {
        writeln!(out, "columns = {:?}", described.columns)?;
    }
    if !described.classes.is_empty() {
        writeln!(out, "classes = {:?}", described.classes)?;
    }
    Ok(())
}

/// A tensor as an inline table.
fn in_toml(tensor: &TensorConfig) -> String {
    let role = match tensor.role {
        TensorRole::Weight => "weight",
        TensorRole::Bias => "bias",
        TensorRole::Buffer => "buffer",
    };
    let initial = match &tensor.initial {
        Initial::Constant(0.0) => String::new(),
        Initial::Constant(value) => format!(", initial = {value:?}"),
        Initial::Drawn(drawn) => format!(", initial = {{ uniform = {:?} }}", drawn.uniform),
        Initial::Held(Held::Program) => ", initial = \"program\"".into(),
    };
    format!(
        "{{ name = {:?}, shape = {:?}, role = {role:?}{initial} }}",
        tensor.name, tensor.shape
    )
}
