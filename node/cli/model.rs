//! The command line of models that are taken out of a node.

use std::path::PathBuf;

use super::NodePlace;
use crate::model::{Choice, Which};
use clap::{Args, Subcommand, ValueEnum};

/// The subcommands of `rota model`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models in a node's state, with metrics on its held-out rows
    List {
        /// The node.
        #[command(flatten)]
        node: NodePlace,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print the card of a model: origin, metrics, inputs and outputs
    Show(ShowModel),
    /// Write a model with its card, as safetensors or ONNX
    ///
    /// Beside the model, its card is written twice: as JSON (`.card.json`) and as Markdown (`.card.md`).
    /// Scaling and replacements of missing values are part of the model, so it takes raw rows.
    Export(ExportModel),
    /// Predict the rows of a file, a line for each
    ///
    /// Columns are found by name, and local names and codes are translated, as in training; the column to
    /// predict may be missing. Every row gets one line, in the order of the file. One that the schema leaves
    /// out of the training has no prediction, and its note says why. Anything else that does not fit the
    /// schema is refused, or with --skip-bad-rows skipped row by row. With --model it needs neither the
    /// node's key nor its state, so any user of the machine can run it.
    Predict(PredictRows),
}

/// Which model of a node.
#[derive(Debug, Args)]
pub struct ModelSelection {
    /// Model of the node
    #[arg(long, value_enum, value_name = "MODEL", default_value_t)]
    pub which: WhichModel,
    /// Coalition whose model is meant, by its number in `rota model list`
    #[arg(long, value_name = "N", conflicts_with = "which")]
    pub coalition: Option<u32>,
    /// Round after which the model was adopted [default: the last]
    #[arg(long, value_name = "N")]
    pub round: Option<u64>,
    /// Take the model of the node's coalition where the served one is damaged, or not chosen yet
    #[arg(long, conflicts_with_all = ["which", "coalition"])]
    pub instead: bool,
}

/// Models of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum WhichModel {
    /// Served model, or that of the node's coalition before one was chosen
    #[default]
    Served,
    /// Model of the node's coalition
    Coalition,
    /// Mean of the models of all coalitions
    Global,
}

impl ModelSelection {
    /// The choice.
    pub fn choice(&self) -> Choice {
        let which = match (self.coalition, self.which) {
            (Some(number), _) => Which::Coalition(Some(number)),
            (None, WhichModel::Served) => Which::Served,
            (None, WhichModel::Coalition) => Which::Coalition(None),
            (None, WhichModel::Global) => Which::Global,
        };
        Choice {
            which,
            round: self.round,
            instead: self.instead,
        }
    }
}

/// Options of `rota model show`.
#[derive(Debug, Args)]
pub struct ShowModel {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Exported model, in place of one of a node
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "which", "coalition", "round", "instead"])]
    pub model: Option<PathBuf>,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// Print the card as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota model export`.
#[derive(Debug, Args)]
pub struct ExportModel {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// File to write; a name that ends with .onnx makes it ONNX
    #[arg(long, value_name = "FILE", default_value = "model.safetensors")]
    pub out: PathBuf,
    /// Also write this TOML file with `format` and `names` of the node's rows, for --names of `rota model
    /// predict --model`
    #[arg(long, value_name = "FILE")]
    pub names: Option<PathBuf>,
    /// Format of the file [default: by its name]
    #[arg(long, value_enum, value_name = "NAME")]
    pub format: Option<ModelFormat>,
    /// Overwrite files that exist
    #[arg(long)]
    pub force: bool,
}

/// Formats of exported models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModelFormat {
    /// Tensors by name, with the card in the metadata
    Safetensors,
    /// Graph of opset 17 for other runtimes
    Onnx,
}

/// The probability from which the second of two classes is predicted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ThresholdAt {
    /// The one in the model's card.
    Own,
    /// This one.
    At(f64),
}

fn threshold(text: &str) -> Result<ThresholdAt, String> {
    if text == "own" {
        return Ok(ThresholdAt::Own);
    }
    let number = text.parse().ok();
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    let number = number.map(ThresholdAt::At);
    number.ok_or_else(|| "expected a number from 0 to 1, or `own`".to_owned())
}

/// Options of `rota model predict`.
#[derive(Debug, Args)]
pub struct PredictRows {
    /// File of rows: CSV, .csv.gz, .xlsx, .ods or .parquet
    pub rows: PathBuf,
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// Exported model (.safetensors, or its .card.json), in place of one of a node
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "which", "coalition", "round", "instead"])]
    pub model: Option<PathBuf>,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// With --model: TOML file with `format` and `names` of the rows, as in [data.rows] of a node.toml
    /// [default: the schema's own names, in a CSV file with commas]
    #[arg(long, value_name = "FILE", requires = "model")]
    pub names: Option<PathBuf>,
    /// Predict the rows that fit, and note line and error of each that does not, such as one with an
    /// unknown level; exits with 4 if there are any
    #[arg(long)]
    pub skip_bad_rows: bool,
    /// Write nothing where a row holds a value far outside of those that the model was trained on, such as one in
    /// another unit, instead of a note
    #[arg(long)]
    pub refuse_outside: bool,
    /// Least probability from which the second of two classes is predicted, from 0 to 1, or `own` for the
    /// one in the card, chosen on the institution's own validation rows [default: 0.5]
    #[arg(long, value_name = "P", value_parser = threshold)]
    pub threshold: Option<ThresholdAt>,
    /// Column to copy to the predictions, such as a patient's number; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub keep: Vec<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "predictions.csv")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}
