//! MaxFL as HCCT compares itself with it (Sun et al. 2024): every round a silo joins the common
//! model, or goes on alone.

use std::sync::Arc;

use crate::aggregation::weights::{WeightsError, maxfl_joins};
use crate::learner::{Capability, Job, LearnError, Learner, Split, Update, Watch, Work};
use crate::params::{Attached, Layout, Params, Role, TensorSpec, squared_distance, weighted_mean};
use crate::strategy::server::one_model::self_weighted::{SelfReported, Weighing};
use crate::strategy::wrappers::learner_wrapper::{LearnerWrapper, WrappedLearner};
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::wrappers::standardise::without_scale;
use crate::strategy::{EquipError, SettleError};

/// Names under which silos keep the model of their first training, their own, and whether they
/// were alone in the last round and have trained at all.
const KEPT: [&str; 3] = ["maxfl.prior", "maxfl.own", "maxfl.silo"];

/// Silo `k` joins iff `F_k(w) < ‖w_k − w‖²`, with `w_k` where its first training led. Those who
/// join train the global model, which is their mean by rows; the others train their own, and
/// contribute the common one as it was.
#[derive(Clone, Copy)]
pub(crate) struct Joins;

impl Weighing for Joins {
    fn report(&self) -> ReportMetrics {
        ReportMetrics(&["joined"])
    }

    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        let trained = inner.layout().trained();
        let flag = |name: &str| TensorSpec::new(name, [1], Role::Buffer);
        let flags = Layout::new(vec![flag("alone"), flag("trained")])?;
        let rest = inner.initial_personal(0).layout().clone();
        let [prior, own, silo] = KEPT;
        let whole = without_scale(&inner.layout());
        let kept = [(prior, &trained), (own, &whole), (silo, &flags)];
        let by = JoiningLearner {
            contribution: self.report().attached(&inner.layout())?,
            personal: Attached::new(&rest, &kept)?,
        };
        Ok(WrappedLearner::equip(inner, by)?)
    }

    fn by_rows(&self) -> bool {
        true
    }

    fn validate(&self, values: &[f64], _: u64) -> Result<(), String> {
        match values[0] {
            0.0 | 1.0 => Ok(()),
            joined => Err(format!("joined is 0 or 1, not {joined}")),
        }
    }

    fn weights(&self, reported: &[SelfReported], _: u64) -> Result<Vec<f64>, WeightsError> {
        Ok(reported
            .iter()
            .map(|one| one.values[0] * one.share)
            .collect())
    }

    fn combine(&self, start: &Params, models: &[(&Params, f64)]) -> Result<Params, SettleError> {
        if models.iter().all(|(_, weight)| *weight == 0.0) {
            return Ok(start.clone());
        }
        Ok(weighted_mean(models)?)
    }
}

/// A learner that joins or goes on alone.
struct JoiningLearner {
    contribution: Attached,
    personal: Attached,
}

/// Personal state of a silo.
struct SiloModels {
    prior: Params,
    own: Params,
    alone: bool,
    trained: bool,
}

impl JoiningLearner {
    fn read(&self, personal: &Params) -> (Params, SiloModels) {
        let (rest, kept) = self.personal.split(personal);
        let flags = kept[2].values();
        let kept = SiloModels {
            prior: kept[0].clone(),
            own: kept[1].clone(),
            alone: flags[0] == 1.0,
            trained: flags[1] == 1.0,
        };
        (rest, kept)
    }

    fn write(&self, rest: &Params, kept: &SiloModels) -> Params {
        let flags = [kept.alone, kept.trained].map(|flag| f32::from(u8::from(flag)));
        let flags = Params::from_values(self.personal.part(2), &flags);
        self.personal.join(rest, &[&kept.prior, &kept.own, &flags])
    }

    /// The trained tensors of a model.
    fn weights(&self, model: &Params) -> Params {
        Params::gather(self.personal.part(0), &[model]).expect("tensors of this model")
    }

    /// The silo's local model, on the scale that the federation agreed on.
    fn own(&self, model: &Params, kept: &SiloModels) -> Params {
        let own = Params::gather(model.layout(), &[&kept.own, model]);
        own.expect("tensors of this model")
    }

    fn contributed(&self, model: &Params, joined: bool) -> Params {
        let joined = f32::from(u8::from(joined));
        let joined = Params::from_values(self.contribution.part(0), &[joined]);
        self.contribution.join(model, &[&joined])
    }

    fn joins(
        &self,
        inner: &dyn Learner,
        start: &Params,
        rest: &Params,
        kept: &SiloModels,
    ) -> Result<bool, LearnError> {
        let metrics = inner.evaluate(start, rest, Split::Train)?;
        let loss = metrics.get("loss")?;
        let distance = squared_distance(&kept.prior, &self.weights(start));
        let distance = distance.expect("tensors of this model");
        let joins = maxfl_joins(&[loss], &[distance]);
        joins.map_or_else(
            |error| Err(LearnError::Failed(error.to_string())),
            |joins| Ok(joins[0]),
        )
    }
}

impl LearnerWrapper for JoiningLearner {
    fn needs(&self) -> &'static [Capability] {
        &[]
    }

    fn uses_up(&self) -> &'static [Capability] {
        &[]
    }

    fn initial_personal(&self, inner: &dyn Learner, seed: u64) -> Params {
        let kept = SiloModels {
            prior: Params::zeros(self.personal.part(0)),
            own: Params::zeros(self.personal.part(1)),
            alone: false,
            trained: false,
        };
        self.write(&inner.initial_personal(seed), &kept)
    }

    fn inside(&self, model: &Params, personal: &Params) -> (Params, Params) {
        (model.clone(), self.read(personal).0)
    }

    fn used(&self, model: &Params, personal: &Params) -> (Params, Params) {
        let (rest, kept) = self.read(personal);
        if kept.alone {
            (self.own(model, &kept), rest)
        } else {
            (model.clone(), rest)
        }
    }

    fn learn(
        &self,
        inner: &dyn Learner,
        job: Job<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<Update, LearnError> {
        let (rest, mut kept) = self.read(job.personal);
        if let Work::Keep = job.work {
            let inside = Job {
                personal: &rest,
                ..job
            };
            let update = inside.run(inner, progress)?;
            return Ok(Update {
                shared: self.contributed(&update.shared, false),
                personal: self.write(&update.personal, &kept),
                ..update
            });
        }
        let joins = !kept.trained || self.joins(inner, job.start, &rest, &kept)?;
        let from = if kept.alone && !joins {
            self.own(job.start, &kept)
        } else {
            // Who leaves begins from the model that all had in common.
            job.start.clone()
        };
        let inside = Job {
            start: &from,
            personal: &rest,
            ..job
        };
        let update = inside.run(inner, progress)?;
        let own = Params::gather(self.personal.part(1), &[&update.shared]);
        kept.own = own.expect("tensors of this model");
        if !kept.trained {
            kept.prior = self.weights(&update.shared);
        }
        (kept.alone, kept.trained) = (!joins, true);
        let model = if joins { &update.shared } else { job.start };
        Ok(Update {
            shared: self.contributed(model, joins),
            personal: self.write(&update.personal, &kept),
            ..update
        })
    }
}
