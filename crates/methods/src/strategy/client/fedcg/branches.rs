//! The options and the shape of a silo's model with branches, and the model that a row sees.

use super::FedCg;
use super::shape::FedCgShape;
use crate::domains::PropagationError;
use crate::learner::LearnError;
use crate::params::Params;

/// A learner of models that carry branches, graph, student and teacher.
pub(super) struct Branched {
    pub(super) options: FedCg,
    pub(super) shape: FedCgShape,
    /// True if a mixture of a row's branches gives the same mixture of its outputs.
    pub(super) mixes: bool,
}

impl Branched {
    /// `output` is the learner's [`output_layer`](crate::learner::Outputs::output_layer).
    pub(super) fn new(options: &FedCg, shape: FedCgShape, output: Option<String>) -> Self {
        let mixes = match &shape.in_model[..] {
            [only] => output.is_some_and(|name| name == only.name),
            _ => false,
        };
        Self {
            options: options.clone(),
            shape,
            mixes,
        }
    }

    /// Returns whether branches have no effect and never will.
    pub(super) fn is_silent(&self) -> bool {
        self.options.lambda == 0.0 && !self.options.learn_lambda
    }

    /// The model of a row with these shares of the branches, each by layer.
    pub(super) fn effective(
        &self,
        base: &Params,
        lambdas: &[f64],
        shares: &[(f64, Vec<&[f64]>)],
    ) -> Params {
        Params::build(base.layout(), |into| {
            into.copy_from_slice(base.values());
            let layers = self.shape.in_model.iter().zip(lambdas).enumerate();
            for (layer, (own, lambda)) in layers.filter(|(_, (_, lambda))| **lambda != 0.0) {
                for (nth, at) in own.ranges.iter().cloned().flatten().enumerate() {
                    let mixed = shares.iter().map(|(share, made)| share * made[layer][nth]);
                    let mixed = lambda * mixed.sum::<f64>();
                    into[at] = (f64::from(into[at]) + mixed) as f32;
                }
            }
        })
    }
}

/// A silo that gave these rows does not give them again.
pub(super) fn no_rows() -> LearnError {
    LearnError::Failed("the learner does not give single rows of those that it has".into())
}

pub(super) fn unusable(error: PropagationError) -> LearnError {
    LearnError::Failed(format!(
        "the branches of the domains cannot be made: {error}"
    ))
}
