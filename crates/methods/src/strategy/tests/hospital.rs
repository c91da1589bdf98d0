//! A learner on rows: linear models with absolute loss, fitted exactly.

use super::*;
use crate::learner::{
    Capabilities, ExactFit, Job, LearnError, Learner, Metrics, Progress, RobustFits, RobustLosses,
    RowAccess, Split, Training, Update, Work,
};
use crate::robust::RadiusGrid;
use crate::robust::fit as fit_of;
use crate::robust::ridge::PlainLoss;
use crate::robust::synthetic::Hospitals;
use crate::robust::{
    FitConfig, Folds, LinearModel, Norm, RowLoss, Samples, TransportCost, fit,
    robust_loss as robust_loss_of,
};

pub(super) const FIT: FitConfig = FitConfig {
    loss: RowLoss::Absolute,
    cost: TransportCost {
        norm: Norm::L2,
        label_cost: 1.0,
    },
    ridge: 0.0,
    intercept: false,
};

/// Rows of a hospital, and those that it holds out.
#[derive(Clone)]
pub(super) struct TestHospital {
    pub(super) rows: Samples,
    out: Option<Samples>,
}

/// Some hospitals; number `i` is of kind `i mod kinds`.
pub(super) fn hospitals(hospitals: usize, kinds: usize, rows: usize) -> Vec<TestHospital> {
    let hospitals = Hospitals {
        hospitals,
        coalitions: kinds,
        features: 4,
        rows: (rows, rows),
        ..Hospitals::default()
    };
    let drawn = hospitals.draw(5).unwrap();
    let hospital = |one: crate::robust::synthetic::Hospital| TestHospital {
        rows: one.rows,
        out: None,
    };
    drawn.into_iter().map(hospital).collect()
}

impl TestHospital {
    /// With these rows.
    pub(super) fn of(rows: &Samples) -> Self {
        Self {
            rows: rows.clone(),
            out: None,
        }
    }

    pub(super) fn linear(model: &Params) -> LinearModel {
        LinearModel {
            weights: model.values().iter().map(|&w| w.into()).collect(),
            intercept: 0.0,
        }
    }

    fn fitted(&self, radius: f64, ridge: f64) -> Params {
        let config = FitConfig { ridge, ..FIT };
        let model = fit(&self.rows, radius, &config).unwrap().model;
        let weights: Vec<f32> = model.weights.iter().map(|&w| w as f32).collect();
        Params::from_values(&self.layout(), &weights)
    }

    /// Without an intercept, which the model has not: one that is fitted and dropped costs accuracy.
    fn exact(&self, start: &Params, fit: &ExactFit) -> Params {
        let centre = if fit.around_start {
            Self::linear(start)
        } else {
            Self::linear(&Params::zeros(&self.layout()))
        };
        let loss = PlainLoss::Absolute;
        let ridge = fit.ridge.strength(&self.rows, loss, &centre).unwrap();
        let left = self
            .rows
            .iter()
            .map(|(x, y)| y - centre.output(x))
            .collect();
        let left = self.rows.with_targets(left).unwrap();
        let step = fit_of(&left, 0.0, &FitConfig { ridge, ..FIT })
            .unwrap()
            .model;
        let pairs = centre.weights.iter().zip(&step.weights);
        let weights: Vec<f32> = pairs.map(|(centre, step)| (centre + step) as f32).collect();
        Params::from_values(&self.layout(), &weights)
    }
}

impl Learner for TestHospital {
    fn layout(&self) -> Arc<Layout> {
        let weight = TensorSpec::new("weight", [self.rows.features()], Role::Weight);
        Layout::new(vec![weight]).unwrap()
    }

    fn initial(&self, _: u64) -> Params {
        Params::zeros(&self.layout())
    }

    fn train(
        &self,
        _: &Params,
        personal: &Params,
        _: &Training,
        _: u64,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let at = Progress {
            step: 1,
            steps: 1,
            loss: 0.0,
        };
        assert!(progress(at).is_continue());
        let samples = self.samples();
        Ok(Update {
            shared: self.fitted(0.0, 0.0),
            ..Update::kept(personal, personal, samples)
        })
    }

    fn learn(&self, job: Job<'_>, progress: &mut Watch<'_>) -> Result<Update, LearnError> {
        let shared = match job.work {
            Work::Train { training, .. } => {
                return self.train(job.start, job.personal, training, job.seed, progress);
            }
            Work::RobustFit { radius, ridge } => self.fitted(radius, ridge),
            Work::ExactFit(fit) => self.exact(job.start, fit),
            Work::Keep => job.start.clone(),
        };
        Ok(Update::kept(&shared, job.personal, self.samples()))
    }

    fn evaluate(&self, model: &Params, own: &Params, split: Split) -> Result<Metrics, LearnError> {
        let loss = self.robust_loss(model, own, 0.0, split)?;
        Ok(Metrics {
            samples: self.samples(),
            values: [("loss".to_owned(), loss)].into(),
        })
    }

    fn samples(&self) -> u64 {
        self.rows.len() as u64
    }

    fn capabilities(&self) -> Capabilities<'_> {
        Capabilities {
            robust: Some(self),
            robust_fits: Some(self),
            exact_fits: true,
            row_access: Some(self),
            ..Capabilities::NONE
        }
    }
}

impl RobustLosses for TestHospital {
    fn robust_loss(
        &self,
        model: &Params,
        _: &Params,
        radius: f64,
        split: Split,
    ) -> Result<f64, LearnError> {
        let rows = match split {
            Split::Validation => self.out.as_ref().unwrap(),
            Split::Train | Split::Test => &self.rows,
        };
        let robust = robust_loss_of(rows, &Self::linear(model), radius, FIT.loss, FIT.cost);
        Ok(robust.unwrap().loss)
    }
}

impl RobustFits for TestHospital {
    /// The first of the grid.
    fn cross_validated_radius(
        &self,
        _: &Params,
        _: &Params,
        search: &RadiusGrid,
    ) -> Result<f64, LearnError> {
        Ok(search.grid[0])
    }
}

impl RowAccess for TestHospital {
    fn holding_out(&self, fold: usize, folds: usize, seed: u64) -> Option<Arc<dyn Learner>> {
        let folds = Folds::new(&self.rows, FIT.loss, folds, seed).ok()?;
        let (rows, out) = folds.splits(&self.rows).swap_remove(fold);
        Some(Arc::new(Self {
            rows,
            out: Some(out),
        }))
    }

    /// A fit takes all rows at once.
    fn batches(&self, _: &Training, _: u64) -> Result<Vec<Vec<u32>>, LearnError> {
        Ok(vec![(0..self.rows.len() as u32).collect()])
    }

    /// No test asks for single rows.
    fn only(&self, _: Split, _: &[u32]) -> Option<Arc<dyn Learner>> {
        None
    }
}
