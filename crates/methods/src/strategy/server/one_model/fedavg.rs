//! FedAvg (McMahan et al. 2017): one model for everybody.

use serde::{Deserialize, Serialize};

use crate::aggregation::Aggregation;
use crate::learner::{Task, Training};
use crate::strategy::server::means::{
    Basis, admit_rows, coalition_means, given, must_be, require_rows, weight,
};
use crate::strategy::{
    DecideError, Decision, Entry, Objection, Outcome, Plan, SettleError, Sheet, State, Strategy,
};

/// How models weigh in a mean.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum WeightRule {
    /// By training rows. A number of rows may tell who a nameless contribution is from.
    #[default]
    Exact,
    /// All alike.
    Equal,
}

/// `θ ← Σ n_k θ_k / Σ n_k` over all contributions of a round, trained locally from `θ`.
#[derive(Debug, Clone)]
pub struct FedAvg {
    /// What a member does in a round.
    pub training: Training,
    /// Whether models weigh by training rows, as in the paper; else all alike. An exact number of
    /// rows may tell who a nameless contribution is from.
    pub weighted: bool,
    /// What takes the place of the mean.
    pub rule: Aggregation,
}

impl FedAvg {
    /// With models that weigh by this rule.
    pub fn new(training: Training, weight: WeightRule) -> Self {
        Self {
            training,
            weighted: weight == WeightRule::Exact,
            rule: Aggregation::Mean,
        }
    }

    pub(crate) fn on(Basis { training, rule }: Basis, weight: WeightRule) -> Self {
        Self {
            rule,
            ..Self::new(training, weight)
        }
    }

    fn require_weights(&self, sheet: &Sheet) -> Result<(), DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        match self.weighted {
            true => require_rows(sheet),
            false => Ok(()),
        }
    }
}

impl Strategy for FedAvg {
    fn name(&self) -> &'static str {
        "fedavg"
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: false,
            weights: self.weighted,
        }
    }

    fn admit(&self, entry: &Entry, _: u64) -> Result<(), String> {
        admit_rows(entry, self.weighted)
    }

    fn decide(&self, _: &State, sheet: &Sheet, _: u64) -> Result<Decision, DecideError> {
        self.require_weights(sheet)?;
        Ok(given(vec![0; sheet.entries.len()]))
    }

    fn check(
        &self,
        _: &State,
        sheet: &Sheet,
        decision: &Decision,
        _: u64,
    ) -> Result<(), Objection> {
        self.require_weights(sheet)?;
        must_be(
            decision,
            &vec![0; sheet.entries.len()],
            "everybody belongs to coalition 0",
        )
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        _: u64,
    ) -> Result<Outcome, SettleError> {
        self.require_weights(sheet)?;
        let weight = |entry: &Entry| weight(entry, self.weighted);
        let models = coalition_means(&self.rule, sheet, &decision.assignment, &[], 1, weight)?;
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(models),
        })
    }
}
