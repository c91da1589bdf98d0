//! Robust losses and fits of a silo with rows, for the model families that have them.

use methods::learner::{Capability, Job, MissingCapability, RobustFits, RobustLosses};
use methods::robust::network::{self, LayersError};
use methods::robust::radius::{RadiusSearch, choose_radius};
use methods::robust::{self, FitConfig, RadiusGrid, RobustLoss, TransportCost};
use methods::{LearnError, Matrix, Params, Split, Update};

use super::{TableLearner, fits};
use crate::models::{Loss, RegressionLoss};

impl TableLearner {
    /// Returns whether a robust loss is known: for absolute loss of one number and for classes, of linear
    /// models and of dense layers.
    pub(super) fn has_robust_losses(&self) -> bool {
        let (linear, widths) = (self.model.linear().is_some(), self.model.widths());
        match self.loss {
            // The bound for layers is for rows with one number to predict.
            Loss::Regression(RegressionLoss::Absolute) => {
                linear || widths.is_some_and(|widths| widths.last() == Some(&1))
            }
            Loss::Logistic => linear || widths.is_some(),
            Loss::Softmax => widths.is_some(),
            // What one row more would do to the risk sets of others has no known bound.
            Loss::Regression(RegressionLoss::Squared) | Loss::Dice { .. } | Loss::Cox => false,
        }
    }

    /// Returns whether a robust fit is known: for linear models with absolute loss and logistic models.
    pub(super) fn has_robust_fits(&self) -> bool {
        let known = matches!(
            self.loss,
            Loss::Regression(RegressionLoss::Absolute) | Loss::Logistic
        );
        known && self.model.linear().is_some()
    }

    /// The worst-case loss within `radius`: exact for a linear output, an upper bound for layers.
    fn worst(
        &self,
        model: &Params,
        outputs: &[f64],
        targets: &[f32],
        radius: f64,
    ) -> Result<RobustLoss, LearnError> {
        let TransportCost { norm, label_cost } = self.transport_cost;
        let each = outputs.iter().zip(targets);
        let residuals = || -> Vec<f64> { each.clone().map(|(f, &y)| f64::from(y) - f).collect() };
        let margins = || -> Vec<f64> {
            let margin = |(f, &y): (&f64, &f32)| if y > 0.5 { *f } else { -f };
            each.clone().map(margin).collect()
        };
        let layers = || {
            let layers = self.model.layers(model);
            layers.expect("robust losses are a capability of dense layers and linear models only")
        };
        let slope = |slope: Result<f64, LayersError>| slope.map_err(|error| failed(&error));
        let linear = self.model.linear().map(|linear| linear.slope(model));
        let robust = match (self.loss, linear) {
            (Loss::Regression(RegressionLoss::Absolute), Some(theta)) => {
                robust::linear(&residuals(), &theta, radius, norm)
            }
            (Loss::Regression(RegressionLoss::Absolute), None) => {
                let slope = slope(network::slope(&layers(), norm))?;
                network::absolute(&residuals(), slope, radius, norm)
            }
            (Loss::Logistic, Some(theta)) => {
                robust::logistic(&margins(), &theta, radius, self.transport_cost)
            }
            (Loss::Logistic, None) => {
                let slope = slope(network::slope(&layers(), norm))?;
                network::logistic(&margins(), slope, radius, label_cost)
            }
            (Loss::Softmax, _) => {
                let slope = slope(network::slope_between(&layers(), norm))?;
                let labels: Vec<usize> = targets.iter().map(|&class| class as usize).collect();
                network::cross_entropy(outputs, &labels, slope, radius, label_cost)
            }
            (Loss::Regression(RegressionLoss::Squared) | Loss::Dice { .. } | Loss::Cox, _) => {
                unreachable!("no robust loss is known, and `capabilities` names none")
            }
        };
        robust.map_err(|error| failed(&error))
    }

    /// The training rows, as `model` scales them; classes as −1 and 1.
    pub(super) fn samples_on(&self, model: &Params) -> Result<robust::Samples, LearnError> {
        let rows = self.scaled(model, self.part(Split::Train)?);
        let features = Matrix::from_fn(rows.len(), rows.width(), |row, column| {
            f64::from(rows.features(row)[column])
        });
        let targets: Vec<f64> = rows.targets().iter().map(|&y| f64::from(y)).collect();
        let rows = match self.loss {
            Loss::Logistic => robust::Samples::labelled(features, &targets),
            _ => robust::Samples::new(features, targets),
        };
        let rows = rows.map_err(|error| failed(&error))?;
        Ok(rows.with_groups(self.train.groups()))
    }

    /// The training rows, as `model` scales them, and the settings of a robust fit to them.
    pub(super) fn to_fit(
        &self,
        model: &Params,
        ridge: f64,
    ) -> Result<(robust::Samples, FitConfig), LearnError> {
        let rows = self.samples_on(model)?;
        let loss = match self.loss {
            Loss::Regression(RegressionLoss::Absolute) => robust::RowLoss::Absolute,
            Loss::Logistic => robust::RowLoss::Logistic,
            Loss::Regression(RegressionLoss::Squared)
            | Loss::Softmax
            | Loss::Dice { .. }
            | Loss::Cox => {
                unreachable!("no robust fit is known, and `capabilities` names none")
            }
        };
        let config = FitConfig {
            loss,
            cost: self.transport_cost,
            ridge,
            intercept: true,
        };
        Ok((rows, config))
    }
}

pub(super) fn failed(error: &dyn std::fmt::Display) -> LearnError {
    LearnError::Failed(error.to_string())
}

impl RobustLosses for TableLearner {
    fn robust_loss(
        &self,
        model: &Params,
        _personal: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        fits(&self.layout, model)?;
        let rows = self.scaled(model, self.part(split)?);
        let outputs = self.model.outputs(model, &rows);
        if radius == 0.0 {
            let mut slopes = vec![0.0; outputs.len()];
            return Ok(self.loss.mean(&outputs, rows.targets(), &mut slopes));
        }
        let robust = self.worst(model, &outputs, rows.targets(), radius)?;
        Ok(robust.loss)
    }
}

impl TableLearner {
    /// The model of least robust loss on the training rows, see [`Work::RobustFit`].
    ///
    /// [`Work::RobustFit`]: methods::learner::Work::RobustFit
    pub(super) fn robust_fit(
        &self,
        job: Job<'_>,
        radius: f64,
        ridge: f64,
    ) -> Result<Update, LearnError> {
        let start = job.start;
        fits(&self.layout, start)?;
        let Some(linear) = self.model.linear().filter(|_| self.has_robust_fits()) else {
            return Err(MissingCapability(Capability::RobustFits).into());
        };
        let (rows, config) = self.to_fit(start, ridge)?;
        let fit = robust::fit(&rows, radius, &config)
            .map_err(|error| LearnError::Failed(format!("the robust fit: {error}")))?;
        let fitted = linear.tensors_of(&fit.model);
        let fitted = self.params(|into| into.copy_from_slice(start.values()), fitted);
        Ok(Update {
            personal: job.personal.clone(),
            ..self.update(fitted, [("loss".into(), fit.robust.empirical)].into())
        })
    }
}

impl RobustFits for TableLearner {
    fn cross_validated_radius(
        &self,
        model: &Params,
        _personal: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        fits(&self.layout, model)?;
        let (rows, config) = self.to_fit(model, 0.0)?;
        let search = RadiusSearch {
            radii: search.grid.clone(),
            folds: search.folds.min(rows.together().len()),
            // The order of the rows is not known to others.
            seed: 0,
            one_standard_error: search.one_standard_error,
        };
        let chosen = choose_radius(&rows, &config, &search);
        chosen
            .map(|chosen| chosen.radius)
            .map_err(|error| LearnError::Failed(format!("the radius: {error}")))
    }
}
