#![allow(clippy::unwrap_used)]

mod bits;
mod breakdown;

mod known;
mod properties;
mod validation;

use std::sync::Arc;

use super::*;
use crate::params::{Layout, Role, TensorSpec};

/// One tensor of weights.
fn flat(len: usize) -> Arc<Layout> {
    Layout::new(vec![TensorSpec::new("w", [len], Role::Weight)]).unwrap()
}

/// A model of one tensor.
fn model(values: &[f32]) -> Params {
    Params::from_values(&flat(values.len()), values)
}

/// Models of one tensor each.
fn models<R: AsRef<[f32]>>(rows: &[R]) -> Vec<Params> {
    rows.iter().map(|row| model(row.as_ref())).collect()
}

fn equally(models: &[Params]) -> Vec<(&Params, f64)> {
    models.iter().map(|model| (model, 1.0)).collect()
}

fn weighted<'a>(models: &'a [Params], weights: &[f64]) -> Vec<(&'a Params, f64)> {
    models.iter().zip(weights.iter().copied()).collect()
}

/// Combines models of equal weight by a rule that needs no reference.
fn combine(rule: &Aggregation, models: &[Params]) -> Params {
    rule.combine(&equally(models), ReferenceModels::default())
        .unwrap()
}

fn bits(model: &Params) -> Vec<u32> {
    model.values().iter().map(|value| value.to_bits()).collect()
}

fn distance(a: &[f32], b: &[f32]) -> f64 {
    let squares = a
        .iter()
        .zip(b)
        .map(|(a, b)| f64::from(a - b) * f64::from(a - b));
    squares.sum::<f64>().sqrt()
}

/// A rule from its name in files, with its defaults.
fn named(name: &str) -> Aggregation {
    serde_json::from_str(&format!("{{\"name\": \"{name}\"}}")).unwrap()
}

fn mixed(byzantine: usize, then: Aggregation) -> Aggregation {
    Aggregation::NearestNeighbourMixing {
        byzantine,
        then: Box::new(then),
    }
}

/// Every rule that needs no reference, ready for `byzantine` arbitrary models of `count`.
fn robust(byzantine: usize, count: usize) -> Vec<Aggregation> {
    let share = byzantine as f64 / count as f64;
    let single = [
        Aggregation::CoordinateMedian,
        Aggregation::TrimmedMean { share },
        named("geometric-median"),
        Aggregation::Krum { byzantine },
        Aggregation::MultiKrum {
            byzantine,
            select: None,
        },
        named("centred-clipping"),
    ];
    let after_mixing = single.iter().cloned().map(|then| mixed(byzantine, then));
    single.iter().cloned().chain(after_mixing).collect()
}
