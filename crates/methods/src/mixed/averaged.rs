//! Estimates of several models, averaged by how well each is expected to predict.

use super::{MixedProgress, Prior};

/// Estimates of several models as one: μ, T and s² averaged with [weights](model_weights).
///
/// To take the model of least criterion alone is to take, where criteria are near, one by chance. A site's fit around
/// averaged estimates is near the average of its fits around each, and needs one prior in place of several.
#[derive(Debug, Clone, PartialEq)]
pub struct AveragedEstimates {
    /// The common coefficients μ, the intercept first.
    pub mean: Vec<f64>,
    /// The variance T of every coefficient, ≥ 0.
    pub strengths: Vec<f64>,
    /// The variance s² of the noise, above 0; 1 for classes.
    pub noise: f64,
}

impl AveragedEstimates {
    /// The averages over these models.
    ///
    /// # Panics
    /// If there is no model, or the models are of different numbers of coefficients.
    pub fn of(models: &[MixedProgress]) -> Self {
        let weights = model_weights(models);
        let width = models.first().expect("at least one model").width();
        assert!(models.iter().all(|model| model.width() == width));
        let average = |of: &dyn Fn(&MixedProgress) -> f64| {
            let each = models.iter().zip(&weights);
            each.map(|(model, weight)| weight * of(model)).sum::<f64>()
        };
        Self {
            mean: (0..width).map(|at| average(&|m| m.mean[at])).collect(),
            strengths: (0..width).map(|at| average(&|m| m.strengths[at])).collect(),
            noise: average(&|model| model.noise),
        }
    }

    /// The prior of a site.
    pub fn prior(&self) -> Prior<'_> {
        Prior {
            mean: &self.mean,
            strengths: &self.strengths,
            noise: self.noise,
        }
    }
}

/// Weights of models by their [criterion](MixedProgress::criterion) c, in proportion to `e^(−c/2)`, of sum 1 (Akaike's
/// weights; Buckland, Burnham & Augustin 1997). A model without a finite criterion has none, unless all are such.
pub fn model_weights(models: &[MixedProgress]) -> Vec<f64> {
    let criteria: Vec<f64> = models.iter().map(MixedProgress::criterion).collect();
    let least = criteria.iter().copied().fold(f64::INFINITY, f64::min);
    if !least.is_finite() {
        return vec![1.0 / models.len() as f64; models.len()];
    }
    let weight = |criterion: &f64| libm::exp(-0.5 * (criterion - least));
    let each: Vec<f64> = criteria.iter().map(weight).collect();
    // The least has 1.
    let sum: f64 = each.iter().sum();
    each.iter().map(|weight| weight / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mixed::{MixedSettings, Varying};

    /// A model of two coefficients with this log likelihood of new rows.
    fn model(varying: Varying, predictive: f64, value: f64) -> MixedProgress {
        MixedProgress {
            predictive,
            mean: vec![value, 2.0 * value],
            strengths: vec![value, 0.0],
            noise: value,
            ..MixedProgress::start(varying, 2, &MixedSettings::default())
        }
    }

    #[test]
    fn models_weigh_by_what_they_are_expected_to_predict() {
        // Criteria 20, 20 + 2 ln 3 and infinity: weights 3 : 1 : 0.
        let models = [
            model(Varying::Nothing, -10.0, 1.0),
            model(Varying::Intercept, -9.0 - libm::log(3.0), 5.0),
            model(Varying::Slopes, f64::NEG_INFINITY, 100.0),
        ];
        let weights = model_weights(&models);
        for (weight, expected) in weights.iter().zip([0.75, 0.25, 0.0]) {
            assert!((weight - expected).abs() < 1e-13, "{weights:?}");
        }
        let averaged = AveragedEstimates::of(&models);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(averaged.mean[0], 2.0) && near(averaged.mean[1], 4.0));
        assert!(near(averaged.strengths[0], 2.0) && averaged.strengths[1] == 0.0);
        assert!(near(averaged.noise, 2.0));
        assert_eq!(averaged.prior().mean, averaged.mean);
    }

    #[test]
    fn one_model_keeps_its_bits_and_no_criterion_weighs_alike() {
        let one = model(Varying::Slopes, -7.3, 0.1);
        let averaged = AveragedEstimates::of(std::slice::from_ref(&one));
        let expected = (&one.mean, &one.strengths, one.noise);
        let found = (&averaged.mean, &averaged.strengths, averaged.noise);
        assert_eq!(found, expected);
        let none = model(Varying::Nothing, f64::NEG_INFINITY, 1.0);
        assert_eq!(model_weights(&[none.clone(), none]), [0.5, 0.5]);
    }
}
