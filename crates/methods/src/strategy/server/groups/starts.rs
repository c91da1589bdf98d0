//! Several random models to start from, the same bits at every member.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::learner::{Learner, mixed_seed};
use crate::params::{Params, Role};
use crate::random::{normal, uniform};

/// `count` initial models of the family, each from a seed of its own; the first is the initial model of
/// `seed`.
///
/// Weights that are the same with every seed would make equal models. Where they are all zero, as in
/// linear models, they are drawn uniformly from `±1/√n` for a tensor of `n` values. Where they vary, as
/// in a model that an earlier federation trained, each gets a normal deviation of a tenth of their
/// root mean square. Biases, buffers and constant weights (scales of norm layers) stay as they are.
pub(super) fn random(learner: &dyn Learner, seed: u64, count: usize) -> Vec<Params> {
    let first = learner.initial(seed);
    let others = (1..count as u64).map(|nth| {
        let seed = mixed_seed(seed, nth);
        let other = learner.initial(seed);
        different(&first, &other, seed)
    });
    std::iter::once(first.clone()).chain(others).collect()
}

/// `other`, with new weights where it has those of `first`.
fn different(first: &Params, other: &Params, seed: u64) -> Params {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let layout = other.layout();
    Params::build(layout, |into| {
        into.copy_from_slice(other.values());
        for (at, tensor) in layout.tensors().iter().enumerate() {
            let range = layout.range(at);
            let same = first.values()[range.clone()] == into[range.clone()];
            if tensor.role != Role::Weight || !same {
                continue;
            }
            let values = &mut into[range];
            let size = values.len() as f64;
            let varies = values.windows(2).any(|two| two[0] != two[1]);
            if varies {
                let squares = values
                    .iter()
                    .map(|&value| f64::from(value) * f64::from(value));
                let deviation = 0.1 * (squares.sum::<f64>() / size).sqrt();
                for value in values {
                    *value += (deviation * normal(&mut random)) as f32;
                }
            } else if values.first() == Some(&0.0) {
                for value in values {
                    *value = ((2.0 * uniform(&mut random) - 1.0) / size.sqrt()) as f32;
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::params::{Layout, TensorSpec};

    #[test]
    fn equal_weights_are_drawn_anew_and_everything_else_stays() {
        let layout = Layout::new(vec![
            TensorSpec::new("bias", [2], Role::Bias),
            TensorSpec::new("count", [2], Role::Buffer),
            TensorSpec::new("drawn", [2], Role::Weight),
            TensorSpec::new("linear", [4], Role::Weight),
            TensorSpec::new("scale", [2], Role::Weight),
            TensorSpec::new("warm", [4], Role::Weight),
        ])
        .unwrap();
        let model = |drawn: [f32; 2]| {
            let [a, b] = drawn;
            let values = [
                0.0, 0.0, 7.0, 8.0, a, b, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 2.0, -2.0, 2.0, -2.0,
            ];
            Params::from_values(&layout, &values)
        };
        let (first, other) = (model([0.1, 0.2]), model([0.3, 0.4]));
        let found = different(&first, &other, 5);
        assert_eq!(different(&first, &other, 5), found);
        assert_ne!(different(&first, &other, 6), found);
        for name in ["bias", "count", "drawn", "scale"] {
            assert_eq!(found.tensor(name), other.tensor(name), "{name}");
        }
        let linear = found.tensor("linear").unwrap();
        let drawn = |value: &f32| *value != 0.0 && value.abs() <= 0.5;
        assert!(linear.iter().all(drawn), "{linear:?}");
        let warm = found.tensor("warm").unwrap();
        let near = warm.iter().zip(other.tensor("warm").unwrap());
        let near = near.map(|(new, old)| (new - old).abs());
        assert!(
            near.clone().all(|apart| apart > 0.0 && apart < 1.0),
            "{warm:?}"
        );
    }
}
