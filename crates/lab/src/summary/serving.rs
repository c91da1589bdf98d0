//! Choice of the models that silos serve, made when all have compared.

use std::sync::Arc;

use methods::Learner;
use methods::serving::{ComparedModels, Served, Together};

use super::measured::{HeldOutResults, measured};
use super::results::ModelKind;
use super::silo_result::SiloResult;
use super::{ChosenAlone, ServedInfo};
use simulations::RunError;
use simulations::pool::Threads;

/// A silo that has compared what it could serve, and has not chosen.
pub(super) struct ComparedSilo {
    pub(super) result: SiloResult,
    /// `None` where it has nothing to compare.
    pub(super) compared: Option<ComparedModels>,
    /// The silo without a strategy.
    pub(super) plain: Arc<dyn Learner>,
    /// The silo as the strategy equips it.
    pub(super) equipped: Arc<dyn Learner>,
}

/// Lets the members choose [together](Together) and the unseen silos alone, and measures what they serve by the
/// metric with this key.
pub(super) fn serve(
    silos: Vec<ComparedSilo>,
    key: &'static str,
    threads: &Arc<Threads>,
) -> Result<Vec<SiloResult>, RunError> {
    let members = silos.iter().filter(|one| one.result.member.is_some());
    let compared = members.filter_map(|one| one.compared.as_ref());
    let together = Arc::new(Together::of(compared));
    let jobs = silos.into_iter().map(|silo| {
        let together = together.clone();
        move || silo.serve(&together, key)
    });
    threads.all(jobs).map_err(RunError::Setup)
}

impl ComparedSilo {
    fn serve(self, together: &Together, key: &str) -> SiloResult {
        let mut result = self.result;
        let Some(compared) = self.compared else {
            return result;
        };
        // A silo that learns only is not measured.
        let tests = result.rows.test > 0;
        let measure = |served: &Served| {
            let learner = if served.candidate.is_own() {
                &self.plain
            } else {
                &self.equipped
            };
            tests.then(|| measured(learner, &served.model))
        };
        let metric = |one: &Option<Result<HeldOutResults, String>>| {
            let results = one.as_ref()?.as_ref().ok()?;
            results.metrics.get(key).copied()
        };
        let alone = compared.clone().alone();
        let served = match result.member {
            Some(_) => together.serve(compared),
            None => alone.clone(),
        };
        let results = measure(&served);
        let alone = ChosenAlone {
            candidate: alone.candidate,
            metric: if alone.candidate == served.candidate {
                metric(&results)
            } else {
                metric(&measure(&alone))
            },
        };
        result.served = Some(ServedInfo {
            candidate: served.candidate,
            on: served.on,
            metric: metric(&results),
            measured: served.measured,
            alone,
        });
        result
            .models
            .extend(results.map(|one| (ModelKind::Served, one)));
        result
    }
}
