//! Exact fits of a silo's own rows, and robust ones with the same ridge.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::alone::Alone;
use super::super::folds::loss;
use super::super::rule::{TriedWay, Way, least, least_on_others};
use super::{FIT_ROWS, Fitted};
use crate::learner::{Capability, ExactFit, Job, Learner, Work};
use crate::params::Params;
use crate::robust::{LinearModel, Ridge};

/// Radii of robust fits.
const RADII: [f64; 2] = [0.03, 0.1];

/// Fits of a silo, and of the silo without each of its folds, each with the ridge that its own training rows make
/// plausible ([`choose_ridge`](crate::robust::ridge::choose_ridge)).
pub(super) struct ExactFits<'a> {
    learner: &'a dyn Learner,
    alone: &'a Alone,
    without: &'a [Arc<dyn Learner>],
    /// The ridge of all rows, and without each fold.
    ridge: f64,
    ridges: Vec<f64>,
    /// Rows of all folds.
    rows: f64,
    /// Fits so far.
    pub(super) count: u64,
}

impl<'a> ExactFits<'a> {
    /// `None` where the model has no exact fits, or for too many rows.
    pub(super) fn new(
        learner: &'a dyn Learner,
        alone: &'a Alone,
        without: &'a [Arc<dyn Learner>],
    ) -> Option<Self> {
        if !learner.has(Capability::ExactFits) || learner.samples() > FIT_ROWS {
            return None;
        }
        let ridges = without.iter().map(|one| ridge(&**one, alone));
        Some(Self {
            ridges: ridges.collect::<Option<_>>()?,
            ridge: ridge(learner, alone)?,
            learner,
            alone,
            without,
            rows: learner.samples() as f64,
            count: 0,
        })
    }

    /// The fit by plain loss; `None` where the solver finds none.
    pub(super) fn plain(&mut self) -> Option<Fitted> {
        let TriedWay { way, losses } = self.tried(0.0)?;
        let model = self.make(self.learner, way)?;
        Some(Fitted { way, model, losses })
    }

    /// The best robust fit; `None` where the model has none.
    pub(super) fn robust(&mut self, rows: &[f64]) -> Option<Fitted> {
        let tried = RADII.into_iter().filter_map(|radius| self.tried(radius));
        let tried: Vec<TriedWay> = tried.collect();
        let way = least(&tried, rows)?.way;
        Some(Fitted {
            model: self.make(self.learner, way)?,
            way,
            losses: least_on_others(&tried, rows),
        })
    }

    /// Fits without each fold, measured on that fold.
    fn tried(&mut self, radius: f64) -> Option<TriedWay> {
        let way = |ridge| Way::Fit { radius, ridge };
        let each = self.without.iter().zip(self.ridges.clone());
        let losses = each.map(|(one, ridge)| {
            let model = self.make(&**one, way(ridge))?;
            loss(&**one, &model, self.rows).ok()
        });
        let losses = losses.collect::<Option<_>>()?;
        Some(TriedWay {
            way: way(self.ridge),
            losses,
        })
    }

    /// The model of a fit; `None` for a training, or where there is none.
    fn make(&mut self, learner: &dyn Learner, way: Way) -> Option<(Params, Params)> {
        let Way::Fit { radius, ridge } = way else {
            return None;
        };
        let plain = ExactFit {
            ridge: Ridge::Fixed(ridge),
            around_start: false,
        };
        let work = if radius > 0.0 {
            Work::RobustFit { radius, ridge }
        } else {
            Work::ExactFit(&plain)
        };
        if !learner.has(work.needs()?) {
            return None;
        }
        self.count += 1;
        let personal = learner.initial_personal(self.alone.initial);
        let job = Job::without_draws(&self.alone.start, &personal, work);
        let update = job.run(learner, &mut |_| ControlFlow::Continue(())).ok()?;
        Some((update.shared, update.personal))
    }
}

/// The strength of the ridge that the training rows make plausible; `None` without such rows.
fn ridge(learner: &dyn Learner, alone: &Alone) -> Option<f64> {
    let personal = learner.initial_personal(alone.initial);
    let linear = learner.linear_rows().ok()?;
    let rows = linear.linear_rows(&alone.start, &personal).ok()?;
    let centre = LinearModel {
        weights: vec![0.0; rows.features()],
        intercept: 0.0,
    };
    let strength = Ridge::default().strength(&rows, linear.linear_loss(), &centre);
    strength.ok()
}
