//! `rota solve robust-loss`: the worst-case loss of a linear model near the data.

use std::io::{self, Write};
use std::path::Path;

use formatting::numbers;
use methods::robust::{TransportCost, linear, logistic};
use report::terminal::wrapped;
use serde::Serialize;

use super::table::{NumberTable, TableError};
use super::{SolveAnswer, SolveError};
use crate::cli::{LossKind, SolveRobustLoss};

/// Largest number of columns named in an error.
const COLUMNS: usize = 30;

/// The result: the robust loss and the mean loss.
#[derive(Debug, Serialize)]
pub(super) struct Worst {
    loss: f64,
    empirical_loss: f64,
    lambda: f64,
    #[serde(skip)]
    kind: &'static str,
    #[serde(skip)]
    rows: String,
    #[serde(skip)]
    radius: f64,
}

/// Reads data and model, and computes the robust loss.
pub(super) fn solve(asked: &SolveRobustLoss) -> Result<Worst, SolveError> {
    if asked.loss == LossKind::Absolute && asked.label_cost.is_some() {
        return Err(SolveError::LabelCost);
    }
    let (names, data) = NumberTable::read_named(&asked.data)?;
    let target = target(&data, &names, &asked.target)?;
    let mut features = names;
    features.remove(target);
    let theta = theta(&asked.model, &data, &features)?;
    let (radius, norm) = (asked.radius, asked.norm.into());
    let predictions = data.rows().iter().map(|row| {
        let features = row
            .iter()
            .enumerate()
            .filter(|(column, _)| *column != target);
        let products = features.zip(&theta).map(|((_, x), weight)| x * weight);
        (row[target], products.sum::<f64>())
    });
    let (worst, kind) = match asked.loss {
        LossKind::Absolute => {
            let residuals: Vec<f64> = predictions.map(|(y, prediction)| y - prediction).collect();
            (linear(&residuals, &theta, radius, norm)?, "absolute")
        }
        LossKind::Logistic => {
            let labels = labels(&data, target)?;
            let margins: Vec<f64> = predictions
                .zip(labels)
                .map(|((_, prediction), label)| label * prediction)
                .collect();
            let label_cost = asked.label_cost.unwrap_or(1.0);
            let cost = TransportCost { norm, label_cost };
            (logistic(&margins, &theta, radius, cost)?, "logistic")
        }
    };
    Ok(Worst {
        loss: worst.loss,
        empirical_loss: worst.empirical,
        lambda: worst.lambda,
        kind,
        rows: data.height(),
        radius,
    })
}

/// The position of the column to predict.
fn target(data: &NumberTable, names: &[String], column: &str) -> Result<usize, TableError> {
    let found = names.iter().position(|name| name == column);
    found.ok_or_else(|| TableError::NoColumn {
        file: data.file().to_owned(),
        column: numbers::plain(column),
        columns: numbers::names(names, COLUMNS),
    })
}

/// The model, one weight for every feature.
fn theta(model: &Path, data: &NumberTable, features: &[String]) -> Result<Vec<f64>, SolveError> {
    let model = NumberTable::read(model)?;
    let [theta] = model.rows() else {
        return Err(SolveError::ModelRows {
            file: model.file().to_owned(),
            rows: model.height(),
        });
    };
    if theta.len() == features.len() {
        return Ok(theta.clone());
    }
    let hint = if theta.len() == features.len() + 1 {
        "; models have no intercept here: fit one without"
    } else {
        ""
    };
    Err(SolveError::ModelSize {
        file: model.file().to_owned(),
        got: numbers::plural(theta.len(), "number"),
        data: data.file().to_owned(),
        features: format!(
            "{} ({})",
            numbers::plural(features.len(), "feature column"),
            numbers::names(features, COLUMNS)
        ),
        hint,
    })
}

/// The labels as −1 and 1.
fn labels(data: &NumberTable, target: usize) -> Result<Vec<f64>, TableError> {
    let mut lower: Option<(f64, u64)> = None;
    let label = |(row, values): (usize, &Vec<f64>)| {
        let label = values[target];
        if label == 1.0 {
            return Ok(label);
        }
        if label != 0.0 && label != -1.0 {
            let what = format!("label {label}: expected -1 and 1, or 0 and 1");
            return Err(data.wrong(row, target, what));
        }
        let (other, line) = *lower.get_or_insert((label, data.line(row)));
        if other != label {
            let what = format!(
                "label {label}, but row {line} has {other}: use either -1 and 1 or 0 and 1"
            );
            return Err(data.wrong(row, target, what));
        }
        Ok(-1.0)
    };
    data.rows().iter().enumerate().map(label).collect()
}

impl SolveAnswer for Worst {
    fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self {
            loss,
            empirical_loss,
            lambda,
            kind,
            rows,
            radius,
        } = self;
        wrapped(
            out,
            0,
            &format!(
                "The worst-case {kind} loss of the model within distance {radius} of the {rows} is \
                 {loss:.6}; on the rows themselves it is {empirical_loss:.6}."
            ),
        )?;
        wrapped(
            out,
            0,
            &format!("It increases by {lambda:.6} per unit of radius (lambda)."),
        )
    }
}
