//! Gradients of units: the opened sum, divided by the rows that the authors declared, is the mean gradient, and all
//! take one step of gradient descent along it.

use methods::learner::{Optimiser, UnitRows};
use methods::{Params, Task};

use super::SumBasis;
use super::units::{NoisySum, UnitNumbers, units_of};

/// One step along the mean gradient of a model with so many numbers.
pub(super) struct GradientStep(pub(super) usize);

impl UnitNumbers for GradientStep {
    fn count(&self) -> usize {
        self.0
    }

    fn check(&self, of: SumBasis<'_>) -> Result<(), String> {
        units_of(of).map(|_| ())
    }

    fn each(
        &self,
        of: SumBasis<'_>,
        unit: UnitRows,
        add: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, String> {
        let loss = units_of(of)?.unit_gradients(&of.base.start()?, unit, add);
        loss.map_err(|error| error.to_string())
    }

    fn model(&self, of: SumBasis<'_>, sum: &NoisySum<'_>) -> Result<Params, String> {
        let rate = rate(of)?;
        let start = of.base.start()?;
        Ok(Params::build(&of.base.gate.layout, |values| {
            let parts = values.iter_mut().zip(start.values()).zip(sum.total);
            for ((value, start), total) in parts {
                let gradient = *total as f64 * sum.step / sum.rows as f64;
                *value = (f64::from(*start) - rate * gradient) as f32;
            }
        }))
    }
}

/// The learning rate of the round.
fn rate(of: SumBasis<'_>) -> Result<f64, String> {
    match &of.base.plan(of.config).task {
        Task::Train(training) => match training.optimiser {
            Optimiser::Sgd { rate, .. } => Ok(rate),
            Optimiser::Adam { .. } => Err(
                "differentially private rounds take steps of plain gradient descent, and the plan has adam".into(),
            ),
        },
        Task::Summarise | Task::Keep | Task::Answer(_) => {
            Err("differentially private rounds take steps, and the plan of this round has none".into())
        }
    }
}
