//! Predicts rows with a model and its card.

use methods::Params;

use super::card::{Card, CardColumn, Output};
use super::error::ExportError;
use super::fit::FittedFamily;
use crate::data::Rows;
use crate::models::{Loss, Model};
use task::survival::Baseline;

/// Predicts rows with a model and its card.
pub struct Predictor {
    card: Card,
    fitted: FittedFamily,
    baseline: Option<Baseline>,
}

impl Predictor {
    /// The predictor of a model.
    ///
    /// # Errors
    /// [`ExportError`]: tensors other than those that the card describes.
    pub fn new(card: Card, model: &Params) -> Result<Self, ExportError> {
        let task = &card.task;
        let fitted = FittedFamily::new(&task.schema, &task.model, task.standardise, model)?;
        let (expected, found) = (task.schema.encoded().len(), card.columns.len());
        if expected == found {
            Ok(Self {
                card,
                fitted,
                baseline: None,
            })
        } else {
            Err(ExportError::Columns { expected, found })
        }
    }

    /// This predictor with the baseline of an institution, with which risk scores become probabilities.
    #[must_use]
    pub fn with_baseline(self, baseline: Option<Baseline>) -> Self {
        Self { baseline, ..self }
    }

    /// The baseline of the institution that predicts, where it is known.
    pub(super) fn baseline(&self) -> Option<&Baseline> {
        self.baseline.as_ref()
    }

    /// The card.
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The model.
    pub fn params(&self) -> &Params {
        &self.fitted.params
    }

    /// The predictions for rows of as many numbers as the card has columns, NaN for a missing one:
    /// for every row the numbers in the target's unit, the probabilities of all classes, those
    /// of all pixels, or a risk score.
    ///
    /// # Panics
    /// If a row has another number of columns.
    pub fn predict(&self, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let width = self.card.columns.len();
        let mut features = Vec::with_capacity(rows.len() * width);
        for row in rows {
            assert_eq!(row.len(), width, "one value per column");
            let columns = self.card.columns.iter().zip(row);
            features.extend(columns.map(|(column, &value)| scaled(column, value)));
        }
        let rows = Rows::new(width, features, vec![0.0; rows.len()]);
        if rows.is_empty() {
            return Vec::new();
        }
        let outputs = self.fitted.family.outputs(&self.fitted.params, &rows);
        let each = outputs.chunks_exact(outputs.len() / rows.len());
        each.map(|output| self.in_units(output)).collect()
    }

    fn in_units(&self, output: &[f64]) -> Vec<f64> {
        let sigmoid = |value: f64| 1.0 / (1.0 + (-value).exp());
        match (self.fitted.loss, &self.card.output) {
            (
                Loss::Regression(_),
                Output::Numbers {
                    deviation, mean, ..
                },
            ) => {
                let number = |value: &f64| value * deviation + mean;
                output.iter().map(number).collect()
            }
            (Loss::Logistic, _) => vec![sigmoid(-output[0]), sigmoid(output[0])],
            (Loss::Softmax, _) => {
                let top = output.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let parts: Vec<f64> = output.iter().map(|value| (value - top).exp()).collect();
                let all: f64 = parts.iter().sum();
                parts.into_iter().map(|part| part / all).collect()
            }
            (Loss::Cox, _) => output.to_vec(),
            (Loss::Dice { .. } | Loss::Regression(_), _) => {
                output.iter().map(|value| sigmoid(*value)).collect()
            }
        }
    }

    pub(super) fn family(&self) -> (&dyn Model, Loss) {
        (&*self.fitted.family, self.fitted.loss)
    }
}

/// A number as the model takes it: the same bits as in the federation.
fn scaled(column: &CardColumn, value: f64) -> f32 {
    let value = if value.is_nan() { column.fill } else { value };
    ((value - column.mean) / column.deviation) as f32
}
