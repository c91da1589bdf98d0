//! One model for everybody, in which silos weigh by what they say of themselves.

use std::sync::Arc;

use crate::aggregation::weights::WeightsError;
use crate::learner::{Learner, Task, Training};
use crate::params::{Layout, Params, weighted_mean};
use crate::strategy::server::means::{admit_rows, fits, given, must_be, weight};
use crate::strategy::wrappers::report::Reported;
use crate::strategy::{
    DecideError, Decision, Entry, EquipError, Objection, Outcome, Plan, SettleError, Sheet, State,
    Strategy,
};

/// What is known of one contribution besides the model.
pub(crate) struct Told {
    /// What the silo said, in the order of the names.
    pub(crate) said: Vec<f64>,
    /// How it counts among equals: by rows, or 1.
    pub(crate) share: f64,
}

/// How silos weigh.
pub(crate) trait Weighing: Send + Sync {
    /// What silos say.
    fn said(&self) -> Reported;

    /// What silos learn with, so that they say it.
    fn equip(&self, inner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.said().equip(inner)
    }

    /// Whether contributions say on how many rows they were trained.
    fn by_rows(&self) -> bool {
        false
    }

    /// In one sentence, what is wrong with what one silo said.
    fn sane(&self, said: &[f64], round: u64) -> Result<(), String> {
        let _ = (said, round);
        Ok(())
    }

    /// A number for every contribution, of which there is at least one.
    fn weights(&self, told: &[Told], round: u64) -> Result<Vec<f64>, WeightsError>;

    /// The next model: by default the mean with these weights.
    fn combine(&self, start: &Params, models: &[(&Params, f64)]) -> Result<Params, SettleError> {
        let _ = start;
        Ok(weighted_mean(models)?)
    }
}

/// A strategy of one model.
pub(crate) struct Weighed<W> {
    pub(crate) name: &'static str,
    pub(crate) training: Training,
    pub(crate) by: W,
}

impl<W: Weighing> Weighed<W> {
    /// A contribution, read.
    fn read(&self, entry: &Entry, round: u64) -> Result<Told, String> {
        let by_rows = self.by.by_rows();
        admit_rows(entry, by_rows)?;
        let share = weight(entry, by_rows);
        let said = self.by.said().said(entry);
        if said.len() != self.by.said().0.len() {
            let names = self.by.said().0.join(", ");
            return Err(format!("the contribution does not say its {names}"));
        }
        self.by.sane(&said, round)?;
        Ok(Told { said, share })
    }

    fn weigh(&self, sheet: &Sheet, round: u64) -> Result<Vec<f64>, DecideError> {
        let mut told = Vec::with_capacity(sheet.entries.len());
        for (entry, contribution) in sheet.entries.iter().enumerate() {
            let read = self.read(contribution, round);
            told.push(read.map_err(|reason| DecideError::Unusable { entry, reason })?);
        }
        let weights = match told.is_empty() {
            true => return Err(DecideError::NoEntries),
            false => self.by.weights(&told, round),
        };
        let unusable = |error: WeightsError| DecideError::Unusable {
            entry: 0,
            reason: error.to_string(),
        };
        weights.map_err(unusable)
    }
}

impl<W: Weighing> Strategy for Weighed<W> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.by.equip(learner)
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: false,
            weights: self.by.by_rows(),
        }
    }

    fn expects(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>, _: u64) -> Arc<Layout> {
        self.by.said().contribution(model)
    }

    fn admit(&self, entry: &Entry, round: u64) -> Result<(), String> {
        self.read(entry, round).map(drop)
    }

    fn decide(&self, _: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        self.weigh(sheet, round)?;
        Ok(given(vec![0; sheet.entries.len()]))
    }

    fn check(
        &self,
        _: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.weigh(sheet, round)?;
        let all = vec![0; sheet.entries.len()];
        must_be(decision, &all, "everybody belongs to coalition 0")
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        fits(sheet, &decision.assignment)?;
        let ([start], true) = (
            &state.models[..],
            decision.assignment.iter().all(|&own| own == 0),
        ) else {
            return Err(SettleError::Infeasible("there is one model for all".into()));
        };
        let weights = self.weigh(sheet, round)?;
        let model = |entry| self.by.said().read(entry).0;
        let models: Vec<_> = sheet.entries.iter().map(model).collect();
        let models: Vec<_> = models.iter().zip(weights).collect();
        let model = self.by.combine(start, &models)?;
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(vec![model]),
        })
    }
}
