//! Exact fits of a silo with rows: linear models of least plain loss with a ridge.

use methods::learner::{Capability, ExactFit, Job, LinearRows, MissingCapability};
use methods::robust::ridge::{PlainLoss, ridge_fit};
use methods::robust::{LinearModel, Samples};
use methods::{LearnError, Params, Update};

use super::robust::failed;
use super::{TableLearner, fits};
use crate::models::{Loss, RegressionLoss};

impl TableLearner {
    /// The loss of exact fits, where they are known: for linear and logistic models.
    pub(super) fn exact_loss(&self) -> Option<PlainLoss> {
        let loss = match self.loss {
            Loss::Regression(RegressionLoss::Absolute) => PlainLoss::Absolute,
            Loss::Regression(RegressionLoss::Squared) => PlainLoss::Squared,
            Loss::Logistic => PlainLoss::Logistic,
            Loss::Softmax | Loss::Dice { .. } | Loss::Cox => return None,
        };
        self.model.linear().map(|_| loss)
    }

    /// The model of least plain loss on the training rows plus the ridge, see [`Work::ExactFit`].
    ///
    /// [`Work::ExactFit`]: methods::learner::Work::ExactFit
    pub(super) fn exact_fit(&self, job: Job<'_>, fit: &ExactFit) -> Result<Update, LearnError> {
        let start = job.start;
        fits(&self.layout, start)?;
        let (Some(loss), Some(linear)) = (self.exact_loss(), self.model.linear()) else {
            return Err(MissingCapability(Capability::ExactFits).into());
        };
        let rows = self.samples_on(start)?;
        let centre = if fit.around_start {
            linear.model_of(start)
        } else {
            LinearModel {
                weights: vec![0.0; rows.features()],
                intercept: 0.0,
            }
        };
        let strength = fit.ridge.strength(&rows, loss, &centre);
        let fitted = strength.and_then(|ridge| ridge_fit(&rows, loss, &centre, ridge));
        let fitted = fitted.map_err(|error| failed(&format!("the exact fit: {error}")))?;
        let value = loss.mean(&rows, &fitted);
        let fitted = linear.tensors_of(&fitted);
        let fitted = self.params(|into| into.copy_from_slice(start.values()), fitted);
        Ok(Update {
            personal: job.personal.clone(),
            ..self.update(fitted, [("loss".into(), value)].into())
        })
    }
}

impl LinearRows for TableLearner {
    fn linear_rows(&self, model: &Params, _personal: &Params) -> Result<Samples, LearnError> {
        fits(&self.layout, model)?;
        self.samples_on(model)
    }

    fn linear_loss(&self) -> PlainLoss {
        let loss = self.exact_loss();
        loss.expect("rows of linear models are a capability of linear models only")
    }
}
