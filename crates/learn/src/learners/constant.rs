//! A learner with null training, to measure the cost of everything else.

use std::sync::Arc;

use methods::{
    Capabilities, Layout, LearnError, Learner, Metrics, Params, Progress, Role, Split, TensorSpec,
    Training, Update, Watch,
};
use multiversion::multiversion;

use super::fits;
use crate::random::{stream, uniform};

/// A model of `parameters` numbers that start at 0; training adds one constant, uniform in ±0.01
/// and drawn from the seed, to all of them. The loss of a model is the mean absolute value of its
/// numbers, that of a training the size of the constant.
pub struct ConstantLearner {
    layout: Arc<Layout>,
}

impl ConstantLearner {
    /// A learner whose model has one tensor `values` `[parameters]`.
    pub fn new(parameters: usize) -> Self {
        let values = TensorSpec::new("values", [parameters], Role::Weight);
        let layout = Layout::new(vec![values]).expect("one tensor of a size that memory can hold");
        Self { layout }
    }

    fn loss(&self, model: &Params) -> f64 {
        sum_of_sizes(model.values()) / self.layout.len().max(1) as f64
    }
}

/// `Σ |xᵢ|` in eight partial sums, so that a million numbers take a fraction of a millisecond.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn sum_of_sizes(values: &[f32]) -> f64 {
    let mut sums = [0f64; 8];
    let mut blocks = values.chunks_exact(8);
    for eight in &mut blocks {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += f64::from(value.abs());
        }
    }
    for (sum, value) in sums.iter_mut().zip(blocks.remainder()) {
        *sum += f64::from(value.abs());
    }
    sums.iter().sum()
}

impl Learner for ConstantLearner {
    fn layout(&self) -> Arc<Layout> {
        self.layout.clone()
    }

    fn initial(&self, _seed: u64) -> Params {
        Params::zeros(&self.layout)
    }

    fn train(
        &self,
        start: &Params,
        _personal: &Params,
        _training: &Training,
        seed: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        let constant = (0.02 * uniform(&mut stream(seed, "constant")) - 0.01) as f32;
        let shared = start.map(|value| value + constant);
        let loss = f64::from(constant.abs());
        if progress(Progress {
            step: 1,
            steps: 1,
            loss,
        })
        .is_break()
        {
            return Err(LearnError::Stopped);
        }
        let metrics = Metrics {
            samples: 1,
            values: [("loss".to_owned(), loss)].into(),
        };
        Ok(Update {
            shared,
            personal: Params::empty(),
            samples: 1,
            metrics,
        })
    }

    fn evaluate(
        &self,
        model: &Params,
        _personal: &Params,
        _split: Split,
    ) -> Result<Metrics, LearnError> {
        fits(&self.layout, model)?;
        let values = [("loss".to_owned(), self.loss(model))].into();
        Ok(Metrics { samples: 1, values })
    }

    fn samples(&self) -> u64 {
        1
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities::NONE
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use methods::learner::Optimiser;
    use std::ops::ControlFlow;

    #[test]
    fn one_constant_by_seed_is_added_to_all() {
        let learner = ConstantLearner::new(1000);
        let optimiser = Optimiser::Sgd {
            rate: 1.0,
            momentum: 0.0,
            weight_decay: 0.0,
        };
        let training = Training {
            epochs: 1,
            batch: 0,
            optimiser,
            decay: None,
        };
        let go = |seed| {
            let start = learner.initial(0);
            let keep_going = &mut |_| ControlFlow::Continue(());
            learner
                .train(&start, &Params::empty(), &training, seed, keep_going)
                .unwrap()
                .shared
        };
        let one = go(learner.seed(1, 1));
        assert_eq!(one, go(learner.seed(1, 1)));
        let first = one.values()[0];
        assert!(first != 0.0 && first.abs() <= 0.01);
        assert!(one.values().iter().all(|&value| value == first));
        assert_ne!(one, go(learner.seed(2, 1)));
        assert_ne!(one, go(learner.seed(1, 2)));
        let loss = learner
            .evaluate(&one, &Params::empty(), Split::Test)
            .unwrap()
            .values["loss"];
        assert!((loss - f64::from(first.abs())).abs() < 1e-12);
    }
}
