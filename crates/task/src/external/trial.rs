//! Outputs of a program for a made-up batch: two programs whose tensors have the same names and shapes may
//! still mean something else by them.

use std::sync::Arc;

use methods::{Layout, Params, Role};
use serde::{Deserialize, Serialize};

use crate::random::{stream, uniform};

/// Largest difference of two outputs, as a share of the largest one: devices add in different orders.
const APART: f32 = 1e-2;
/// Most outputs that are compared.
pub const OUTPUTS: usize = 16;

/// What a program computes for a made-up batch with made-up values of the tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Trial {
    /// The dimensions of the batch, one tensor after another.
    pub inputs: Vec<usize>,
    /// The first outputs, 16 at most.
    pub outputs: Vec<f32>,
}

/// Result of the comparison of two trials.
pub enum Compared {
    /// The trials agree.
    Alike,
    /// The batches had other dimensions, so that nothing can be said.
    Incomparable,
    /// A clause: what differs.
    Apart(String),
}

impl Trial {
    /// Compares with what another program computes.
    pub fn compare(&self, found: &Self) -> Compared {
        let says_something = self.says_something() && found.says_something();
        if self.inputs != found.inputs || !says_something {
            return Compared::Incomparable;
        }
        let largest = self.outputs.iter().chain(&found.outputs);
        let largest = largest.fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let pairs = || self.outputs.iter().zip(&found.outputs);
        let near = |(one, other): (&f32, &f32)| (one - other).abs() <= APART * largest;
        if self.outputs.len() == found.outputs.len() && pairs().all(near) {
            return Compared::Alike;
        }
        let few = |outputs: &[f32]| {
            let few = outputs.iter().take(4).map(|value| format!("{value:.4}"));
            few.collect::<Vec<_>>().join(", ")
        };
        Compared::Apart(format!(
            "for a made-up batch and made-up values of the agreed tensors its outputs begin with {}, and \
             those of the proposer's program with {}",
            few(&found.outputs),
            few(&self.outputs)
        ))
    }

    /// Returns whether there are outputs, and all are finite: a program may find that it can make up no batch.
    pub fn says_something(&self) -> bool {
        !self.outputs.is_empty() && self.outputs.iter().all(|value| value.is_finite())
    }
}

/// Values of the tensors under which two tensors of one shape that are exchanged show in the outputs:
/// the weights of a model before its training are often too small for that. Buffers stay as they are
/// described, because a variance must not become negative.
pub fn made_up(layout: &Arc<Layout>, described: &Params) -> Params {
    let mut random = stream(0, "made-up weights");
    Params::build(layout, |values| {
        values.copy_from_slice(described.values());
        for (index, spec) in layout.tensors().iter().enumerate() {
            let inputs: usize = spec.shape.iter().skip(1).product();
            let (keep, bound) = match (spec.role, spec.shape.len()) {
                (Role::Buffer, _) => continue,
                (_, 0 | 1) => (1.0, 0.5),
                _ => (0.0, 2.5 / (inputs.max(1) as f64).sqrt()),
            };
            for value in &mut values[layout.range(index)] {
                let drawn = (2.0 * uniform(&mut random) - 1.0) * bound;
                *value = (f64::from(*value) * keep + drawn) as f32;
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use methods::TensorSpec;

    fn trial(inputs: &[usize], outputs: &[f32]) -> Trial {
        Trial {
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
        }
    }

    #[test]
    fn outputs_that_differ_by_rounding_agree_and_others_do_not() {
        let one = trial(&[2, 3], &[1.0, -20.0, 0.0]);
        let near = trial(&[2, 3], &[1.001, -20.002, 0.001]);
        assert!(matches!(one.compare(&near), Compared::Alike));
        let Compared::Apart(why) = one.compare(&trial(&[2, 3], &[1.5, -20.0, 0.0])) else {
            panic!("they differ");
        };
        assert!(why.contains("begin with 1.5000, -20.0000"), "{why}");
        let fewer = trial(&[2, 3], &[1.0, -20.0]);
        assert!(matches!(one.compare(&fewer), Compared::Apart(_)));
    }

    #[test]
    fn batches_of_other_dimensions_say_nothing() {
        let one = trial(&[2, 3], &[1.0]);
        let other = trial(&[2, 4], &[5.0]);
        assert!(matches!(one.compare(&other), Compared::Incomparable));
        for none in [&[f32::NAN][..], &[]] {
            let none = trial(&[2, 3], none);
            assert!(matches!(one.compare(&none), Compared::Incomparable));
            assert!(!none.says_something());
        }
    }

    #[test]
    fn made_up_weights_differ_from_each_other_and_buffers_stay() {
        let spec = |name: &str, shape: &[usize], role| TensorSpec::new(name, shape.to_vec(), role);
        let layout = Layout::new(vec![
            spec("k", &[4, 4], Role::Weight),
            spec("q", &[4, 4], Role::Weight),
            spec("scale", &[4], Role::Bias),
            spec("variance", &[4], Role::Buffer),
        ])
        .unwrap();
        let described = Params::build(&layout, |values| values.fill(1.0));
        let made = made_up(&layout, &described);
        assert_ne!(made.tensor("k"), made.tensor("q"));
        assert_eq!(made.tensor("variance").unwrap(), [1.0; 4]);
        assert!(
            made.tensor("scale")
                .unwrap()
                .iter()
                .all(|value| (0.5..=1.5).contains(value))
        );
        assert_eq!(made, made_up(&layout, &described));
    }
}
