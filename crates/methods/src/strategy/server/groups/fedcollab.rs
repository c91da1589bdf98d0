//! FedCollab (Bao et al. 2023): coalitions by how much data silos have and how far apart their data
//! are, estimated by a cross-evaluation.

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::clustering;
use crate::coalitions::canonical;
use crate::learner::Task;
use crate::strategy::options::{Setting, at_least_one, not_negative};
use crate::strategy::server::groups::hcct::same;
use crate::strategy::server::means::{coalition_means, kept};
use crate::strategy::server::one_model::fedavg::WeightRule;
use crate::strategy::{
    Claim, DecideError, Decision, ModelEntry, Objection, Outcome, Plan, Scores, SettleError, Sheet,
    State, Strategy, StrategyError,
};

/// Options of FedCollab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FedCollab {
    /// Weight of a silo's model in the mean of its coalition.
    pub weight: WeightRule,
    /// Factor C of the penalty on few rows in the bound that coalitions minimise, in units of the
    /// loss times the square root of rows. A larger C makes larger coalitions. Default 1; it has to
    /// be tuned.
    #[schemars(range(min = 0))]
    pub c: f64,
    /// Number of descents of the search, each of which goes through the silos in another order; the
    /// best result counts. Default 100, as in the authors' code.
    #[schemars(range(min = 1), extend("x-unit" = "descents"))]
    pub orders: u32,
    /// Number of times that coalitions are formed, after which they stay the same; 0 forms them in
    /// every round. Default 1.
    #[schemars(extend("x-unit" = "rounds"))]
    pub freeze: u64,
}

impl Default for FedCollab {
    fn default() -> Self {
        let clustering::FedCollab { c, orders } = clustering::FedCollab::default();
        Self {
            weight: WeightRule::default(),
            c,
            orders,
            freeze: 1,
        }
    }
}

impl FedCollab {
    pub(crate) fn build(&self, setting: Setting) -> Result<Box<dyn Strategy>, StrategyError> {
        not_negative("c", self.c)?;
        at_least_one("orders", self.orders.into())?;
        Ok(Box::new(Collaborating {
            setting,
            by_rows: self.weight == WeightRule::Exact,
            freeze: self.freeze,
            rule: clustering::FedCollab {
                c: self.c,
                orders: self.orders,
            },
        }))
    }
}

struct Collaborating {
    setting: Setting,
    by_rows: bool,
    freeze: u64,
    rule: clustering::FedCollab,
}

/// What the coalitions of a round are formed from.
struct Case {
    rows: Vec<u64>,
    divergences: Matrix,
}

/// How far apart data are, from what their silos' models lose on each other's: symmetric, 0 on the
/// diagonal, `½·max(0, (L_ij − L_ii) + (L_ji − L_jj))`.
fn divergences(losses: &Scores) -> Matrix {
    let excess = |i, j| losses.at(i, j) - losses.at(i, i);
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

    fn case(&self, sheet: &Sheet) -> Result<Case, DecideError> {
        sheet.require_rows()?;
        let scores = sheet.require_scores()?;
        let rows = sheet.entries.iter().map(|entry| entry.weight.unwrap_or(0));
        Ok(Case {
            rows: rows.collect(),
            divergences: divergences(scores),
        })
    }

    /// The error of one coalition of all members without divergence: no grouping has a smaller mean
    /// error.
    fn least(&self, case: &Case) -> f64 {
        let rows = case.rows.iter().map(|&rows| rows as f64);
        self.rule.c / rows.sum::<f64>().sqrt()
    }

    /// The grouping that the search finds: a function of the case and the round.
    fn search(&self, case: &Case, round: u64) -> Result<(Vec<u32>, f64), DecideError> {
        let Case { rows, divergences } = case;
        let found = self.rule.solve(rows, divergences, round);
        let found = found.map_err(DecideError::unusable)?;
        Ok((found.assignment, found.error))
    }
}

impl Strategy for Collaborating {
    fn name(&self) -> &'static str {
        "fedcollab"
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.frozen(round)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            cross_evaluate: !self.frozen(round),
            weights: self.by_rows || !self.frozen(round),
            ..Plan::everyone(state, Task::Train(self.setting.training.clone()))
        }
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        entry.admit_rows(self.by_rows || !self.frozen(round))
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        if self.frozen(round) {
            return Ok(Decision::fixed(kept(state, sheet)?));
        }
        let case = self.case(sheet)?;
        let (assignment, objective) = self.search(&case, round)?;
        Ok(Decision {
            assignment,
            claim: Some(Claim {
                objective,
                lower_bound: self.least(&case),
                candidates: Vec::new(),
            }),
        })
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if self.frozen(round) {
            return decision.must_be_fixed(&kept(state, sheet)?, "every entry keeps its coalition");
        }
        let claim = decision.final_claim()?;
        let case = self.case(sheet)?;
        let (assignment, entries) = (&decision.assignment, sheet.entries.len());
        if assignment.len() != entries || canonical(assignment) != *assignment {
            return Err(Objection::Infeasible(format!(
                "expected a grouping of {entries} entries into coalitions, numbered in the order \
                 of their first entries"
            )));
        }
        let error = self.rule.error(&case.rows, &case.divergences, assignment);
        let actual = error.map_err(|error| Objection::Infeasible(error.to_string()))?;
        if !same(claim.objective, actual) {
            return Err(Objection::objective(claim.objective, actual));
        }
        let least = self.least(&case);
        if !same(claim.lower_bound, least) {
            return Err(Objection::lower_bound(claim.lower_bound, least));
        }
        let (_, found) = self.search(&case, round)?;
        if actual > found && !same(actual, found) {
            return Err(Objection::NotBest {
                proposed: actual,
                found,
            });
        }
        Ok(())
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        if self.by_rows {
            sheet.require_rows()?;
        }
        let assignment = &decision.assignment;
        let (before, coalitions) = if self.frozen(round) {
            (state.models.as_slice(), state.models.len())
        } else {
            let last = assignment.iter().max().map_or(0, |&last| last as usize + 1);
            ([].as_slice(), last.min(sheet.entries.len()))
        };
        let weight = |entry: &ModelEntry| entry.share(self.by_rows);
        let rule = &self.setting.rule;
        let models = coalition_means(rule, sheet, assignment, before, coalitions, weight)?;
        Ok(Outcome {
            assignment: assignment.clone(),
            state: state.with(models),
        })
    }
}
