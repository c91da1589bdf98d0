//! FedCollab (Bao et al. 2023): coalitions by how much data silos have and how far apart their data
//! are, estimated by a cross-evaluation.

mod gap;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering;
use crate::learner::{LearnError, Learner, Update};
use crate::params::Layout;
use crate::robust::Ridge;
use crate::strategy::options::{MethodSetting, at_least_one, is_default, not_negative, require};
use crate::strategy::search::Search;
use crate::strategy::server::groups::hcct::same;
use crate::strategy::server::means::{coalition_means, kept};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    DecideError, Decision, EquipError, FitRule, Fitting, LoadedManifest, ModelEntry, Objection,
    Outcome, OwnRadius, Participant, Plan, Scored, Scores, SettleError, State, Strategy,
    StrategyError, Watch,
};

/// Options of FedCollab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedCollab {
    /// Weight of a silo's model in the mean of its coalition.
    pub weight: WeightRule,
    /// Factor C of the penalty on few rows in the bound that coalitions minimise: a number, in units
    /// of the loss times the square root of rows, which has to be tuned; or `"gap"`, the default,
    /// which takes it from how much more the silos' local models lose on held-out rows than on those
    /// that they were trained on. A larger C makes larger coalitions.
    pub c: Penalty,
    /// Number of folds of the cross-validation with `c = "gap"`; not used otherwise. Default 5.
    #[schemars(range(min = 2), extend("x-unit" = "folds"))]
    pub folds: usize,
    /// Number of descents of the search, each of which goes through the silos in another order; the
    /// best result counts. Default 100, as in the authors' code.
    #[schemars(range(min = 1), extend("x-unit" = "descents"))]
    pub orders: u32,
    /// Number of times that coalitions are formed, after which they stay the same; 0 forms them in
    /// every round. Default 1.
    #[schemars(extend("x-unit" = "rounds"))]
    pub freeze: u64,
    /// How silos find their models. Default `"trained"`.
    #[serde(skip_serializing_if = "is_default")]
    pub fit: FitRule,
    /// Strength of the ridge of exact fits: a number, or `{ folds, grid }` to choose it by
    /// cross-validation at every silo. Not used otherwise. Default: 5 folds, 0.0001 to 10.
    #[serde(skip_serializing_if = "is_default")]
    pub ridge: Ridge,
}

/// The factor C of FedCollab.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "a number of at least 0, or \"gap\"")]
pub enum Penalty {
    /// This number, at least 0.
    Number(f64),
    /// From the silos' own gaps.
    Learned(Learned),
}

/// The value of [`Penalty::Learned`] in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Learned {
    /// `"gap"`.
    Gap,
}

impl Default for FedCollab {
    fn default() -> Self {
        Self {
            weight: WeightRule::default(),
            c: Penalty::Learned(Learned::Gap),
            folds: 5,
            orders: clustering::FedCollabBound::default().orders,
            freeze: 1,
            fit: FitRule::default(),
            ridge: Ridge::default(),
        }
    }
}

impl FedCollab {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        if let Penalty::Number(c) = self.c {
            not_negative("c", c)?;
        }
        require(self.folds >= 2, "folds", "at least 2", self.folds)?;
        at_least_one("orders", self.orders.into())?;
        let fit = Fitting::new(self.fit, &self.ridge, true, setting.training.clone())?;
        Ok(Box::new(Collaborating {
            fit,
            setting,
            by_rows: self.weight == WeightRule::Exact,
            freeze: self.freeze,
            c: match self.c {
                Penalty::Number(c) => Some(c),
                Penalty::Learned(Learned::Gap) => None,
            },
            folds: self.folds,
            orders: self.orders,
        }))
    }
}

struct Collaborating {
    fit: Fitting,
    setting: MethodSetting,
    by_rows: bool,
    freeze: u64,
    /// `None`: from the gaps.
    c: Option<f64>,
    folds: usize,
    orders: u32,
}

/// What the coalitions of a round are formed from.
struct FedCollabCase {
    rows: Vec<u64>,
    divergences: Matrix,
    rule: clustering::FedCollabBound,
    round: u64,
}

/// Returns how far apart data are, from what their silos' models lose on each other's: symmetric, 0 on the
/// diagonal, `½·max(0, (L_ij − L_ii) + (L_ji − L_jj))`. What local models lose is on held-out rows where
/// their `gaps` are known, as what others lose is.
fn divergences(losses: &Scores, gaps: &[f64]) -> Matrix {
    let excess = |i: usize, j: usize| losses.at(i, j) - losses.at(i, i) - gaps[i];
    Matrix::from_fn(losses.len(), losses.len(), |i, j| {
        // The lower number first, so that both halves get the same bits.
        let (i, j) = (i.min(j), i.max(j));
        ((excess(i, j) + excess(j, i)) / 2.0).max(0.0)
    })
}

impl Collaborating {
    fn frozen(&self, round: u64) -> bool {
        self.freeze > 0 && round > self.freeze
    }

    fn kept(&self, state: &State, manifest: &LoadedManifest) -> Result<Vec<u32>, DecideError> {
        match self.c {
            None => kept(state, &gap::without(manifest)),
            Some(_) => kept(state, manifest),
        }
    }

    fn case(&self, manifest: &LoadedManifest, round: u64) -> Result<FedCollabCase, DecideError> {
        manifest.require_rows()?;
        let scores = manifest.require_scores()?;
        let rows = manifest
            .entries
            .iter()
            .map(|entry| entry.weight.unwrap_or(0));
        let rows: Vec<u64> = rows.collect();
        let gaps: Vec<f64> = match self.c {
            Some(_) => vec![0.0; rows.len()],
            None => manifest.entries.iter().map(gap::of).collect(),
        };
        let orders = self.orders;
        let c = self.c.unwrap_or_else(|| gap::penalty(&gaps, &rows));
        Ok(FedCollabCase {
            divergences: divergences(scores, &gaps),
            rows,
            rule: clustering::FedCollabBound { c, orders },
            round,
        })
    }
}

impl Search for FedCollabCase {
    fn entries(&self) -> usize {
        self.rows.len()
    }

    /// A function of the case and the round.
    fn best(&self) -> Result<(Vec<u32>, f64), DecideError> {
        let found = self.rule.solve(&self.rows, &self.divergences, self.round);
        let found = found.map_err(DecideError::unusable)?;
        Ok((found.assignment, found.error))
    }

    fn objective(&self, grouping: &[u32]) -> Result<f64, String> {
        let error = self.rule.error(&self.rows, &self.divergences, grouping);
        error.map_err(|error| error.to_string())
    }

    /// The error of one coalition of all members without divergence: no grouping has a smaller mean
    /// error.
    fn lower_bound(&self) -> f64 {
        let rows = self.rows.iter().map(|&rows| rows as f64);
        self.rule.c / rows.sum::<f64>().sqrt()
    }

    fn same(&self, a: f64, b: f64) -> bool {
        same(a, b)
    }

    fn rule(&self) -> String {
        format!(
            "expected a grouping of {} entries into coalitions, numbered in the order of their \
             first entries",
            self.entries()
        )
    }
}

impl Strategy for Collaborating {
    fn name(&self) -> &'static str {
        "fedcollab"
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.frozen(round)
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        match self.c {
            Some(_) => Ok(learner),
            None => gap::equip(learner),
        }
    }

    fn can_take_part(&self, learner: &dyn Learner, _: &OwnRadius) -> Result<(), EquipError> {
        Ok(self.fit.suits(learner)?)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            cross_evaluate: !self.frozen(round),
            weights: self.by_rows || !self.frozen(round),
            ..Plan::everyone(state, self.fit.task())
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let start = participant.start(state)?;
        let fit = self.fit.of(&plan.task, participant.learner);
        let update = fit.update(participant, start, progress)?;
        let update = match self.c {
            None if !self.frozen(round) => {
                gap::measured(participant, start, update, &fit, self.folds)?
            }
            _ => update,
        };
        Ok((participant.coalition, update))
    }

    fn score(
        &self,
        _: &State,
        _: &Plan,
        _: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        let model = match self.c {
            None => gap::bare(scored.model),
            Some(_) => scored.model.clone(),
        };
        let model = &model;
        participant.robust_loss(Scored { model, ..scored })
    }

    fn expects(
        &self,
        _: &State,
        model: &Arc<Layout>,
        _: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        match self.c {
            None if !self.frozen(round) => gap::contribution(model),
            _ => model.clone(),
        }
    }

    fn layouts(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        let mut all = vec![model.clone()];
        all.extend(self.c.is_none().then(|| gap::contribution(model)));
        all
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        if self.c.is_none() {
            gap::admit(entry)?;
        }
        entry.admit_rows(self.by_rows || !self.frozen(round))
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        if self.frozen(round) {
            return Ok(Decision::fixed(self.kept(state, manifest)?));
        }
        self.case(manifest, round)?.decide()
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if self.frozen(round) {
            return decision.must_be_fixed(
                &self.kept(state, manifest)?,
                "every entry keeps its coalition",
            );
        }
        self.case(manifest, round)?.check(decision)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        if self.by_rows {
            manifest.require_rows()?;
        }
        let bare;
        let manifest = match self.c {
            None => {
                bare = gap::without(manifest);
                &bare
            }
            Some(_) => manifest,
        };
        let assignment = &decision.assignment;
        let (before, coalitions) = if self.frozen(round) {
            (state.models.as_slice(), state.models.len())
        } else {
            let last = assignment.iter().max().map_or(0, |&last| last as usize + 1);
            ([].as_slice(), last.min(manifest.entries.len()))
        };
        let weight = |entry: &ModelEntry| entry.share(self.by_rows);
        let rule = &self.setting.rule;
        let models = coalition_means(rule, manifest, assignment, before, coalitions, weight)?;
        Ok(Outcome {
            assignment: assignment.clone(),
            state: state.with(models),
        })
    }
}
