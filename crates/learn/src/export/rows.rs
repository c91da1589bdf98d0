//! Rows of a file to predict: read by the schema as training rows are, but one answer for each.

use std::io::{self, Write};
use std::path::Path;

use super::card::Output;
use super::error::ExportError;
use super::predictor::Predictor;
use crate::data::{
    DataError, Format, missing_notes, notation_notes, number_columns, open, read_columns,
};
use crate::schema::{FileLayout, LocalNames, ReadRow};

/// Treatment of rows with a cell that does not fit the schema, such as an unknown level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BadRows {
    /// The file is refused, as it is in training.
    #[default]
    Refuse,
    /// The row has no prediction, and its note says where it is and what is wrong.
    Skip,
}

/// The rows of a file, ready to be predicted.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsToPredict {
    /// Names of the columns that are copied to the predictions.
    keep: Vec<String>,
    rows: Vec<RowToPredict>,
    /// Notes on cells that are left out, or read otherwise than they stand in the file.
    notes: Vec<String>,
}

impl RowsToPredict {
    /// Returns what is left out, or read otherwise than it stands in the file; sentences without a full stop.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The numbers of the rows that are predicted.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &[f64]> {
        let numbers = self.rows.iter().map(|row| row.numbers.as_deref().ok());
        numbers.flatten()
    }
}

#[derive(Debug, Clone, PartialEq)]
struct RowToPredict {
    /// The cells to copy.
    kept: Vec<String>,
    /// Numbers of the row, or why it is not predicted.
    numbers: Result<Vec<f64>, String>,
    /// True if the row does not fit the schema.
    bad: bool,
}

/// Predictions, one for every row of the file, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Predicted {
    /// Names of the columns.
    pub header: Vec<String>,
    /// The cells of every row.
    pub rows: Vec<Vec<String>>,
    /// Rows that have no prediction; the last cell of each says why.
    pub without: usize,
    /// Rows without a prediction that do not fit the schema and were skipped: the line and what is wrong.
    pub skipped: Vec<String>,
}

impl Predictor {
    /// Reads a file of rows: CSV, a spreadsheet or Parquet. The column to predict may be missing;
    /// columns in `keep` may be any.
    ///
    /// A row that the schema leaves out of the training (`only`, and `missing = "drop"`) has no
    /// prediction. What else does not fit is refused, as it is in training; with [`BadRows::Skip`] only where
    /// it is not the cell of one row, such as a column that is missing, or a line with too few cells, after
    /// which nobody knows what the lines mean.
    ///
    /// # Errors
    /// [`ExportError::Data`] with file, row and column.
    pub fn read(
        &self,
        path: &Path,
        format: &Format,
        names: &LocalNames,
        keep: &[String],
        bad: BadRows,
    ) -> Result<RowsToPredict, ExportError> {
        format.check()?;
        let file = open(path.to_owned(), format)?;
        let schema = &self.card().task.schema;
        let also: Vec<&str> = keep.iter().map(String::as_str).collect();
        let layout = FileLayout::new(schema, names, format, &file, false, &also)?;
        let places = keep.iter().map(|column| file.place(column));
        let places = places.collect::<Result<Vec<usize>, DataError>>()?;
        let rows = file.rows.iter().map(|row| {
            let cell = |place: &usize| row.cells.get(*place).unwrap_or_default().to_owned();
            let mut does_not_fit = false;
            let numbers = match layout.read(&row) {
                Ok(ReadRow::Used(numbers, _)) => Ok(numbers),
                Ok(ReadRow::Incomplete(column)) => Err(format!(
                    "{column} is missing: the schema leaves such rows out"
                )),
                Ok(ReadRow::Excluded(condition)) => {
                    Err(format!("the schema is for rows with {condition}"))
                }
                Ok(ReadRow::NoTarget) => unreachable!("the column to predict is not read"),
                Err(DataError::Cell {
                    at,
                    column,
                    text,
                    expected,
                    ..
                }) if bad == BadRows::Skip => {
                    does_not_fit = true;
                    Err(format!(
                        "{at}: column {column:?} holds {text:?}, but {expected}"
                    ))
                }
                Err(other) => return Err(other),
            };
            let kept = places.iter().map(cell).collect();
            Ok(RowToPredict {
                kept,
                numbers,
                bad: does_not_fit,
            })
        });
        let rows = rows.collect::<Result<_, DataError>>()?;
        let target = schema.target.name.iter().map(|name| names.column(name));
        let target: Vec<&str> = target.collect();
        let numbers = number_columns(schema, names).into_iter();
        let numbers: Vec<&str> = numbers.filter(|name| !target.contains(name)).collect();
        let read = read_columns(schema, names).into_iter();
        let read: Vec<&str> = read.filter(|name| !target.contains(name)).collect();
        let mut notes = file.notes.clone();
        notes.extend(layout.absent().iter().cloned());
        notes.extend(notation_notes(&file, &numbers, format, layout.marks())?);
        notes.extend(missing_notes(&file, &read, format, layout.marks()));
        Ok(RowsToPredict {
            keep: keep.to_vec(),
            rows,
            notes,
        })
    }

    /// The predictions for these rows, one for each: the copied columns, what is predicted, and a
    /// last column `note` that says why a row has no prediction.
    ///
    /// For classes the predicted class and then the probability of each; numbers in the target's unit; for a
    /// mask the probability of each pixel; for a time to an event the risk score, and with a
    /// [baseline](Self::with_baseline) the probabilities to be without the event at the agreed times. The predicted class is the one of the largest probability; of two
    /// classes with a `threshold` the second if its probability is at least that, else the first.
    pub fn answer(&self, rows: &RowsToPredict, threshold: Option<f64>) -> Predicted {
        let output = &self.card().output;
        let (named, each): (Vec<String>, usize) = match output {
            Output::Numbers { names, .. } => {
                let named = names.iter().map(|name| format!("predicted_{name}"));
                (named.collect(), names.len())
            }
            Output::Classes { name, classes } => {
                let probabilities = classes.iter().map(|class| format!("probability_{class}"));
                let label = std::iter::once(format!("predicted_{name}"));
                (label.chain(probabilities).collect(), classes.len() + 1)
            }
            Output::Mask { names } => {
                let named = names.iter().map(|name| format!("probability_{name}"));
                (named.collect(), names.len())
            }
            Output::Survival { event, at, .. } => {
                let at = at.iter().filter(|_| self.baseline().is_some());
                let survival = at.map(|at| format!("survival_{at}"));
                let named: Vec<String> = std::iter::once(format!("risk_{event}"))
                    .chain(survival)
                    .collect();
                let each = named.len();
                (named, each)
            }
        };
        let numbers = rows.rows.iter().filter_map(|row| row.numbers.clone().ok());
        let numbers: Vec<Vec<f64>> = numbers.collect();
        let mut predicted = self.predict(&numbers).into_iter();
        let mut without = 0;
        let cells = rows.rows.iter().map(|row| {
            let mut cells = row.kept.clone();
            match &row.numbers {
                Ok(_) => {
                    let values = predicted.next().expect("a prediction for every row");
                    if let Output::Classes { classes, .. } = output {
                        let class = match (threshold, values.len()) {
                            (Some(threshold), 2) => usize::from(values[1] >= threshold),
                            _ => largest(&values),
                        };
                        cells.push(classes[class].clone());
                    }
                    cells.extend(values.iter().map(|value| text(*value, output)));
                    if let (Output::Survival { at, .. }, Some(baseline)) = (output, self.baseline())
                    {
                        let survival = at.iter().map(|at| baseline.survival(values[0], *at));
                        cells.extend(survival.map(|value| text(value, output)));
                    }
                    cells.push(String::new());
                }
                Err(why) => {
                    without += 1;
                    cells.extend(vec![String::new(); each]);
                    cells.push(why.clone());
                }
            }
            cells
        });
        let cells = cells.collect();
        let mut header = rows.keep.clone();
        header.extend(named);
        header.push("note".into());
        let bad = rows.rows.iter().filter(|row| row.bad);
        let skipped = bad.filter_map(|row| row.numbers.clone().err());
        Predicted {
            header,
            rows: cells,
            without,
            skipped: skipped.collect(),
        }
    }
}

/// A predicted number. The model computes in single precision: more digits would mean nothing.
fn text(value: f64, output: &Output) -> String {
    let single = (value as f32).to_string();
    let Output::Numbers {
        mean, deviation, ..
    } = *output
    else {
        return single;
    };
    // It computes in deviations from the mean, which has digits of its own where it is far from 0.
    let step = 1e-6 * deviation;
    if mean == 0.0 || value.abs() * f64::from(f32::EPSILON) <= step {
        return single;
    }
    let digits = (-step.log10()).ceil().clamp(0.0, 17.0) as usize;
    format!("{value:.digits$}")
}

impl Predicted {
    /// Writes them as CSV, with a header.
    ///
    /// # Errors
    /// Errors of the writer.
    pub fn write(&self, out: impl Write) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(out);
        writer.write_record(&self.header)?;
        for row in &self.rows {
            writer.write_record(row)?;
        }
        writer.flush()
    }
}

/// The position of the largest probability, the first of equals.
fn largest(values: &[f64]) -> usize {
    let better = |best: usize, at: usize| if values[at] > values[best] { at } else { best };
    (0..values.len()).fold(0, better)
}
