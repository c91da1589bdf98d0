//! Validated input of an aggregation: finite models of one layout, with usable weights.

use std::cmp::Ordering;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rayon::prelude::*;

use super::AggregationError;
use crate::params::{Layout, Params};

/// Allowed total weight: products of weights and values neither overflow nor underflow.
const TOTAL: RangeInclusive<f64> = 1e-100..=1e100;

/// At least one model, all of one layout and finite, each with a weight above 0.
pub(super) struct Models<'a> {
    models: Vec<&'a Params>,
    weights: Vec<f64>,
}

impl<'a> Models<'a> {
    /// Validates models and weights; leaves out models of weight 0, which count as absent.
    pub(super) fn new(weighted: &[(&'a Params, f64)]) -> Result<Self, AggregationError> {
        let (first, _) = weighted.first().ok_or(AggregationError::Empty)?;
        if weighted
            .iter()
            .any(|(model, _)| model.layout() != first.layout())
        {
            return Err(AggregationError::Layout);
        }
        let total: f64 = weighted.iter().map(|(_, weight)| weight).sum();
        let usable = weighted.iter().all(|(_, weight)| *weight >= 0.0);
        if !usable || !TOTAL.contains(&total) {
            return Err(AggregationError::Weights);
        }
        if let Some(model) = weighted
            .par_iter()
            .position_first(|(model, _)| !is_finite(model))
        {
            return Err(AggregationError::NotFinite { model });
        }
        let present = weighted.iter().filter(|(_, weight)| *weight > 0.0);
        let (models, weights) = present.copied().unzip();
        Ok(Self { models, weights })
    }

    /// Other models of the same layout, with the weights of these.
    pub(super) fn with_weights_of<'b>(&self, models: &'b [Params]) -> Models<'b> {
        Models {
            models: models.iter().collect(),
            weights: self.weights.clone(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.models.len()
    }

    pub(super) fn layout(&self) -> &Arc<Layout> {
        self.models[0].layout()
    }

    pub(super) fn models(&self) -> &[&'a Params] {
        &self.models
    }

    pub(super) fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// Sum of the weights.
    pub(super) fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    pub(super) fn are_equally_weighted(&self) -> bool {
        self.weights.iter().all(|weight| *weight == self.weights[0])
    }

    /// Models with their weights multiplied by factors ≥ 0, as arguments of a mean.
    pub(super) fn scaled(&self, factors: &[f64]) -> Vec<(&'a Params, f64)> {
        let weights = self
            .weights
            .iter()
            .zip(factors)
            .map(|(w, factor)| w * factor);
        self.models.iter().copied().zip(weights).collect()
    }

    /// The models with the given numbers and their weights, as arguments of a mean.
    pub(super) fn chosen(&self, numbers: &[usize]) -> Vec<(&'a Params, f64)> {
        let pair = |&number: &usize| (self.models[number], self.weights[number]);
        numbers.iter().map(pair).collect()
    }

    /// `len` values of every model from `start` on.
    pub(super) fn rows(&self, start: usize, len: usize) -> Vec<&'a [f32]> {
        let part = |model: &&'a Params| &model.values()[start..start + len];
        self.models.iter().map(part).collect()
    }

    /// Compares two models by their values in order: breaks ties between equally good models
    /// without regard to their positions.
    pub(super) fn by_values(&self, a: usize, b: usize) -> Ordering {
        let pairs = self.models[a].values().iter().zip(self.models[b].values());
        pairs
            .map(|(a, b)| a.total_cmp(b))
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

/// Returns whether all values of a model are finite.
pub(super) fn is_finite(model: &Params) -> bool {
    if model.is_known_finite() {
        return true;
    }
    // No early exit within a chunk: it would prevent vectorisation.
    let part = |part: &[f32]| part.iter().fold(true, |all, value| all & value.is_finite());
    model.values().chunks(1 << 12).all(part)
}
