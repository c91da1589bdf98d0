//! `rota model`: lists, shows and exports the models of a node, and predicts with one.

mod list;
mod losses;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::clock;
use crate::equipment::Equipment;
use crate::institution::{Data, Institution, SetupError, present, signed_profile};
use crate::model::{self, Choice, HeldRounds, ModelError};
use formatting::numbers;
use learn::export::{self, BadRows, Card, HeldOut, Output, OutsideRows, Predictor};
use methods::Params;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use task::data::Format;
use task::schema::LocalNames;
use task::{TaskConfig, data::DataError};

use super::{NodeCommandError, quietly, vacant, wrapped};
use crate::cli::{
    ExportModel, ModelCommand, ModelFormat, ModelSelection, PredictRows, ShowModel, ThresholdAt,
};

pub use losses::{OwnLosses, own_losses};

/// Runs a subcommand.
pub fn run(command: &ModelCommand) -> Result<(), NodeCommandError> {
    match command {
        ModelCommand::List { node, json } => list::list(node, *json),
        ModelCommand::Show(options) => show(options),
        ModelCommand::Export(options) => export(options),
        ModelCommand::Predict(options) => predict(options),
    }
}

/// Most skipped rows that standard error names; the predictions name all.
const SAID: usize = 20;

/// A node's configuration and what its state holds.
pub(super) struct NodeModels {
    pub(super) institution: Institution,
    pub(super) equipment: Equipment,
    pub(super) held: HeldRounds,
}

impl NodeModels {
    /// Reads them. Where the silo's rows cannot be read, its models can be had, but not be measured;
    /// then standard error says so.
    pub(super) fn load(config: &Path) -> Result<Self, NodeCommandError> {
        let institution = present(config)?;
        let held = quietly(|| HeldRounds::read(&institution.state, &institution.agreement))?;
        let start = institution.start().map_err(ModelError::from)?;
        let equipment = match institution.measuring(start.as_ref()) {
            Ok(equipment) => equipment,
            Err(why) => {
                let stand_in =
                    Equipment::of_family(&institution.agreement, institution.me, start.as_ref());
                let stand_in = stand_in.map_err(|_| ModelError::Data(why_again(&why)))?;
                let _ = crate::logging::say(&format!(
                    "note: the models cannot be measured here: {}",
                    numbers::message(&why.to_string())
                ));
                stand_in
            }
        };
        Ok(Self {
            institution,
            equipment,
            held,
        })
    }

    pub(super) fn choose(&self, choice: Choice) -> Result<model::ChosenModel, NodeCommandError> {
        let node = &self.institution;
        let (held, equipment) = (&self.held, &self.equipment);
        let chosen = model::choose(
            &node.state,
            held,
            &node.agreement,
            node.me,
            equipment,
            choice,
        );
        Ok(chosen?)
    }

    fn card(&self, chosen: &ModelSelection) -> Result<(Card, Params), NodeCommandError> {
        self.card_of(chosen.choice())
    }

    /// A model with its card.
    pub(super) fn card_of(&self, choice: Choice) -> Result<(Card, Params), NodeCommandError> {
        let found = self.choose(choice)?;
        let node = &self.institution;
        let card = found.card(&node.state, &node.agreement, &self.equipment, now())?;
        Ok((card, found.model))
    }
}

/// An error in words, once more.
fn why_again(error: &DataError) -> DataError {
    DataError::Config(error.to_string())
}

/// The time in UTC, as RFC 3339 has it.
fn now() -> String {
    clock::to_second(SystemTime::now())
}

fn show(options: &ShowModel) -> Result<(), NodeCommandError> {
    let card = match &options.model {
        Some(file) => exported(file)?.0,
        None => {
            NodeModels::load(&options.node.file()?)?
                .card(&options.chosen)?
                .0
        }
    };
    if options.json {
        let document = serde_json::to_value(&card).map_err(io::Error::from)?;
        return print_json(&document);
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for line in export::markdown(&card, &[]).lines() {
        writeln!(out, "{}", numbers::plain(line))?;
    }
    Ok(out.flush()?)
}

fn export(options: &ExportModel) -> Result<(), NodeCommandError> {
    let ExportModel {
        node,
        chosen,
        out,
        names,
        format,
        force,
    } = options;
    let is_onnx = out
        .extension()
        .is_some_and(|end| end.eq_ignore_ascii_case("onnx"));
    let format = match (format, is_onnx) {
        (Some(format), _) => *format,
        (None, true) => ModelFormat::Onnx,
        (None, false) => ModelFormat::Safetensors,
    };
    let files = [
        out.clone(),
        out.with_extension("card.json"),
        out.with_extension("card.md"),
    ];
    for file in files.iter().chain(names) {
        vacant(file, *force)?;
    }
    let node = NodeModels::load(&node.file()?)?;
    if let Some(file) = names {
        let own = RowsNames::of(&node.institution.data);
        let text =
            toml::to_string(&own).map_err(|why| NodeCommandError::Failed(why.to_string()))?;
        write(file, text.as_bytes())?;
    }
    if let TaskConfig::External(_) = node.institution.agreement.task {
        return export_plain(&node, chosen, out, format);
    }
    let (card, model) = node.card(chosen)?;
    let bytes = match format {
        ModelFormat::Safetensors => export::safetensors(&card, &model),
        ModelFormat::Onnx => export::onnx(&card, &model).map_err(ModelError::from)?,
    };
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let json = serde_json::to_string_pretty(&card).map_err(io::Error::from)?;
    let [_, json_file, page] = &files;
    write(out, &bytes)?;
    write(json_file, format!("{json}\n").as_bytes())?;
    write(
        page,
        export::markdown(&card, &[name.into_owned()]).as_bytes(),
    )?;
    let mut console = BufWriter::new(io::stdout().lock());
    writeln!(
        console,
        "written: {}, and its card {} and {}",
        out.display(),
        json_file.display(),
        page.display()
    )?;
    writeln!(console, "{}", numbers::plain(&card.origin.about))?;
    if let Some(why) = card.held_out.as_ref().and_then(HeldOut::unmeasured) {
        writeln!(console, "{why}")?;
    }
    if let Some(held_out) = &card.held_out
        && let Some(value) = held_out.metrics.get(&held_out.metric)
    {
        let value = numbers::value(*value, numbers::decimals(*value).min(4));
        let unit = numbers::plain(&held_out.unit);
        writeln!(
            console,
            "{} {value}{}{unit} on {} held-out rows at {}",
            held_out.metric,
            if unit.is_empty() { "" } else { " " },
            held_out.rows,
            card.origin.silo
        )?;
    }
    Ok(console.flush()?)
}

/// Writes a model that only the members' programs know: its tensors alone, without a card.
fn export_plain(
    node: &NodeModels,
    chosen: &ModelSelection,
    out: &Path,
    format: ModelFormat,
) -> Result<(), NodeCommandError> {
    if format == ModelFormat::Onnx {
        return Err(NodeCommandError::Failed(
            "only the members' programs know what this model computes: export it as safetensors"
                .into(),
        ));
    }
    let found = node.choose(chosen.choice())?;
    write(out, &found.model.document())?;
    let mut console = BufWriter::new(io::stdout().lock());
    writeln!(
        console,
        "written: {}, the tensors alone: what goes in and comes out is known to the members' programs",
        out.display()
    )?;
    writeln!(console, "{}", numbers::plain(&found.origin.about))?;
    Ok(console.flush()?)
}

/// `format` and `names` of rows, as in `[data.rows]` of a node.toml.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct RowsNames {
    format: Format,
    names: LocalNames,
}

impl RowsNames {
    fn of(data: &Data) -> Self {
        match data {
            Data::Rows(rows) => Self {
                format: rows.format.clone(),
                names: rows.names.clone(),
            },
            Data::Share { .. } | Data::Program => Self::default(),
        }
    }
}

fn predict(options: &PredictRows) -> Result<(), NodeCommandError> {
    let out = &options.out;
    vacant(out, options.force)?;
    let (mut own, mut baseline) = (None, None);
    let (card, model, names) = match &options.model {
        Some(file) => {
            let names = options.names.as_deref().map(rows_names).transpose()?;
            let (card, model) = exported(file)?;
            (card, model, names.unwrap_or_default())
        }
        None => {
            let node = NodeModels::load(&options.node.file()?)?;
            let (card, model) = node.card(&options.chosen)?;
            own = signed_profile(&node.institution.state);
            baseline = match &card.output {
                Output::Survival { at, .. } if !at.is_empty() => node.equipment.baseline(&model),
                _ => None,
            };
            (card, model, RowsNames::of(&node.institution.data))
        }
    };
    let threshold = options
        .threshold
        .map(|at| threshold(at, &card))
        .transpose()?;
    let predictor = Predictor::new(card, &model).map_err(ModelError::from)?;
    let survival = survival_lines(
        &predictor.card().output,
        baseline.as_ref().map(|own| own.1),
        options.model.is_some(),
    );
    let predictor = predictor.with_baseline(baseline.map(|own| own.0));
    let bad = if options.skip_bad_rows {
        BadRows::Skip
    } else {
        BadRows::Refuse
    };
    let RowsNames { format, names } = &names;
    let rows = predictor.read(&options.rows, format, names, &options.keep, bad);
    let rows = rows.map_err(ModelError::from)?;
    let outside = outside_lines(&predictor.outside(&rows, own.as_ref()));
    if options.refuse_outside && !outside.is_empty() {
        let lines = outside.join("\n");
        return Err(NodeCommandError::Failed(format!(
            "{lines}\nNothing was written (--refuse-outside)"
        )));
    }
    let predicted = predictor.answer(&rows, threshold);
    let mut bytes = Vec::new();
    predicted.write(&mut bytes)?;
    write(out, &bytes)?;
    let mut console = BufWriter::new(io::stdout().lock());
    let without = match predicted.without {
        0 => String::new(),
        count => format!(", {count} of them without a prediction: see the column `note`"),
    };
    writeln!(
        console,
        "written: {}, {}{without}",
        out.display(),
        numbers::plural(predicted.rows.len(), "row")
    )?;
    for note in rows.notes().iter().chain(&outside).chain(&survival) {
        writeln!(console, "note: {}", numbers::plain(note))?;
    }
    let card = predictor.card();
    if let Some(value) = threshold {
        let own = card.threshold.as_ref();
        let own = own.filter(|_| options.threshold == Some(ThresholdAt::Own));
        let said = match own {
            Some(own) => own.in_words(&card.origin.silo),
            None => format!("the threshold is {value}, as it was given"),
        };
        writeln!(console, "{}", wrapped(&format!("classes: {said}")))?;
    }
    writeln!(
        console,
        "by: {}, of the federation {}",
        numbers::plain(&card.origin.about),
        numbers::plain(&card.origin.federation)
    )?;
    console.flush()?;
    let skipped = &predicted.skipped;
    for why in skipped.iter().take(SAID) {
        let _ = crate::logging::say(&format!("skipped: {}", numbers::message(why)));
    }
    match skipped.len() {
        0 => Ok(()),
        count => Err(NodeCommandError::Skipped {
            rows: count,
            out: out.clone(),
        }),
    }
}

/// Returns what is said of the probabilities to be without an event: why there are none, or which are beyond the last
/// time `until` which a training row is observed. `exported` is true for a model from a file.
fn survival_lines(output: &Output, until: Option<f64>, exported: bool) -> Vec<String> {
    let Output::Survival { at, unit, .. } = output else {
        return Vec::new();
    };
    if at.is_empty() {
        return Vec::new();
    }
    let Some(until) = until else {
        let why = match exported {
            true => {
                "they take the baseline hazard of an institution, which stays there: predict at its node, without --model"
            }
            false => {
                "they take the baseline hazard of this node's training rows, which cannot be read or have no event"
            }
        };
        return vec![format!("no probabilities of survival: {why}")];
    };
    let beyond = at.iter().filter(|at| **at > until);
    let lines = beyond.map(|at| {
        format!(
            "survival at {at} is beyond the last time at which a training row is observed here, {until} ({unit}): it is \
             that of {until}"
        )
    });
    lines.collect()
}

/// Returns what is said of values far outside of those that a model was trained on.
fn outside_lines(found: &OutsideRows) -> Vec<String> {
    let mut lines = found.columns.clone();
    if found.rows > 0 {
        lines.push(format!(
            "{} with a value far outside of what the model was trained on: what it predicts there means little",
            numbers::plural(found.rows, "row")
        ));
    }
    lines
}

/// The threshold of an option, for a model with this card.
fn threshold(at: ThresholdAt, card: &Card) -> Result<f64, NodeCommandError> {
    let two = matches!(&card.output, Output::Classes { classes, .. } if classes.len() == 2);
    if !two {
        let why = "--threshold is for models that tell two classes apart, and this is none";
        return Err(NodeCommandError::Usage(why.into()));
    }
    match (at, &card.threshold) {
        (ThresholdAt::At(value), _) => Ok(value),
        (ThresholdAt::Own, Some(own)) => Ok(own.value),
        (ThresholdAt::Own, None) => Err(NodeCommandError::Usage(format!(
            "the card of the model has no threshold: {} had fewer than ten validation rows of a class when it \
             was exported (an agreement without `validation` in `split` keeps none), or could not read its \
             rows; give a number in place of `own`",
            numbers::plain(&card.origin.silo)
        ))),
    }
}

fn rows_names(file: &Path) -> Result<RowsNames, NodeCommandError> {
    let text = agreement::read_configuration(file).map_err(SetupError::from)?;
    let name = file.display().to_string();
    let source = agreement::TomlText {
        file: &name,
        text: &text,
    };
    let read: Result<RowsNames, _> = toml::from_str(&text);
    let read = read.map_err(|error| agreement::ConfigError::At(source.toml(&error)));
    Ok(read.map_err(SetupError::from)?)
}

/// An exported model; a card stands for the safetensors file beside it.
pub(super) fn exported(file: &Path) -> Result<(Card, Params), NodeCommandError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let tensors: PathBuf = match name.strip_suffix(".card.json") {
        Some(stem) => file.with_file_name(format!("{stem}.safetensors")),
        None => file.to_owned(),
    };
    Ok(export::read(&tensors).map_err(ModelError::from)?)
}

fn print_json(document: &Value) -> Result<(), NodeCommandError> {
    let text = serde_json::to_string_pretty(document).map_err(io::Error::from)?;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "{}", numbers::escaped(&text))?;
    Ok(out.flush()?)
}

/// Writes a file.
///
/// # Errors
/// [`NodeCommandError::Write`].
pub fn write(file: &Path, bytes: &[u8]) -> Result<(), NodeCommandError> {
    fs::write(file, bytes).map_err(|reason| NodeCommandError::Write {
        path: file.into(),
        reason,
    })
}
