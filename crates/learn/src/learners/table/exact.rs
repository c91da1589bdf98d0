//! Exact fits of a silo with rows: linear models of least plain loss with a ridge.

use methods::learner::{ExactFit, ExactFits};
use methods::robust::LinearModel;
use methods::robust::ridge::{PlainLoss, ridge_fit};
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
            Loss::Softmax | Loss::Dice { .. } => return None,
        };
        self.model.linear().map(|_| loss)
    }
}

impl ExactFits for TableLearner {
    fn exact_fit(
        &self,
        start: &Params,
        personal: &Params,
        fit: &ExactFit,
    ) -> Result<Update, LearnError> {
        fits(&self.layout, start)?;
        let known = "exact fits are a capability of linear models only";
        let (loss, linear) = (
            self.exact_loss().expect(known),
            self.model.linear().expect(known),
        );
        let rows = self.samples_on(start)?;
        let centre = match fit.around_start {
            true => linear.model_of(start),
            false => LinearModel {
                weights: vec![0.0; rows.features()],
                intercept: 0.0,
            },
        };
        let strength = fit.ridge.strength(&rows, loss, &centre);
        let fitted = strength.and_then(|ridge| ridge_fit(&rows, loss, &centre, ridge));
        let fitted = fitted.map_err(|error| failed(&format!("the exact fit: {error}")))?;
        let value = loss.mean(&rows, &fitted);
        let fitted = linear.tensors_of(&fitted);
        let fitted = self.params(|into| into.copy_from_slice(start.values()), fitted);
        Ok(Update {
            personal: personal.clone(),
            ..self.update(fitted, [("loss".into(), value)].into())
        })
    }
}
