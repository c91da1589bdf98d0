//! The command line of models that are taken out of a node.

use std::path::PathBuf;

use crate::model::{Choice, Which};
use clap::{Args, Subcommand, ValueEnum};

/// The subcommands of `rota model`.
#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    /// List the models that a node's state holds, with their metrics on its held-out rows
    List {
        /// The node's configuration
        #[arg(long, value_name = "FILE", default_value = "silo.toml")]
        config: PathBuf,
        /// Print one JSON document instead of text
        #[arg(long)]
        json: bool,
    },
    /// Print the card of a model: what it is, how good it is, what goes in and comes out
    Show(ShowModel),
    /// Write a model with its card, as safetensors or ONNX
    Export(ExportModel),
    /// Predict the rows of a file: one line for each
    Predict(PredictRows),
}

/// Which model of a node.
#[derive(Debug, Args)]
pub struct ModelSelection {
    /// The model
    #[arg(long, value_enum, value_name = "MODEL", default_value_t)]
    pub which: WhichModel,
    /// Number of a coalition, as `rota model list` prints it; its model is meant
    #[arg(long, value_name = "N", conflicts_with = "which")]
    pub coalition: Option<u32>,
    /// Round after which the model was adopted [default: the last]
    #[arg(long, value_name = "N")]
    pub round: Option<u64>,
}

/// Models of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum WhichModel {
    /// The one that the institution serves; before it has chosen, that of its coalition
    #[default]
    Served,
    /// That of its coalition
    Coalition,
    /// The mean of all coalitions' models
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
        }
    }
}

/// Options of `rota model show`.
#[derive(Debug, Args)]
pub struct ShowModel {
    /// The node's configuration, of which the model is unless --model names one
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// An exported model, instead of one of a node
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "which", "coalition", "round"])]
    pub model: Option<PathBuf>,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// Print the card as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Options of `rota model export`.
///
/// Beside the model, its card is written twice: as JSON (`.card.json`) and as Markdown (`.card.md`).
/// Scaling and what stands for missing values go with the model, so it takes rows as they are.
#[derive(Debug, Args)]
pub struct ExportModel {
    /// The node's configuration
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// File to write; a name that ends with .onnx makes it ONNX
    #[arg(long, value_name = "FILE", default_value = "model.safetensors")]
    pub out: PathBuf,
    /// Also write this TOML file with `format` and `names` of the node's rows, for `rota model predict --model`
    /// with --names, where rows are written as they are at the institution
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
    /// The tensors by name, with the card in the metadata
    Safetensors,
    /// A graph that other programs run, of opset 17
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
///
/// Columns are found by name, and local names and codes are translated, as in training; the column to
/// predict may be missing. Every row gets one line, in the order of the file. One that the schema leaves
/// out of the training has no prediction, and its note says why. Anything else that does not fit the
/// schema is refused, or with --skip-bad-rows skipped row by row. With --model it needs neither the node's
/// key nor its state, so any user of the machine can run it.
#[derive(Debug, Args)]
pub struct PredictRows {
    /// File of rows: CSV, .csv.gz or .parquet
    pub rows: PathBuf,
    /// The node's configuration, of which the model is unless --model names one
    #[arg(long, value_name = "FILE", default_value = "silo.toml")]
    pub config: PathBuf,
    /// An exported model (.safetensors, or its .card.json), instead of one of a node
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "which", "coalition", "round"])]
    pub model: Option<PathBuf>,
    /// Which model.
    #[command(flatten)]
    pub chosen: ModelSelection,
    /// With --model: a TOML file with `format` and `names` of the rows, as in [data.rows] of a
    /// silo.toml [default: the schema's own names, in a CSV file with commas]
    #[arg(long, value_name = "FILE", requires = "model")]
    pub names: Option<PathBuf>,
    /// Write the rows that fit, where others hold a value that does not, such as an unknown level; these get
    /// a note with their line and what is wrong, standard error names them, and the exit code is 4
    #[arg(long)]
    pub skip_bad_rows: bool,
    /// Of two classes, the least probability of the second for which it is predicted: a number from 0 to 1, or
    /// `own` for the one in the card, chosen on the institution's own validation rows [default: 0.5]
    #[arg(long, value_name = "P", value_parser = threshold)]
    pub threshold: Option<ThresholdAt>,
    /// Column of the rows to copy to the predictions, such as a number of the patient; may be repeated
    #[arg(long, value_name = "COLUMN")]
    pub keep: Vec<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "predictions.csv")]
    pub out: PathBuf,
    /// Overwrite the file if it exists
    #[arg(long)]
    pub force: bool,
}
