//! CS-RCFL (Konti et al. 2024): coalitions from a cross-evaluation under robust losses.

use crate::aggregation::Aggregation;
use crate::coalitions::Program;
use crate::learner::{LearnError, Learner, Task, Training};
use crate::params::Params;
use crate::strategy::server::means::{coalition_means, given, kept, must_be, no_candidates};
use crate::strategy::{
    DecideError, Decision, EquipError, Newcomer, Objection, Outcome, OwnRadius, Plan, Scores,
    SettleError, Sheet, State, Strategy, least_loss,
};

/// Train alone, let everybody score every model (eq. (10)), form `coalitions` coalitions by the
/// coalition program (eq. (11)), and average each (eq. (6), all models alike). With a number of
/// coalitions that is not given: [`AutoCsRcfl`](crate::strategy::server::groups::cs_rcfl_auto::AutoCsRcfl).
///
/// The paper has one round. With more, members start from their coalition's model, and the
/// coalitions stay as they are after the first `freeze` rounds: there is no cross-evaluation
/// then, every entry belongs to the coalition it started from, and one that has none yet (a
/// newcomer) to the coalition whose start model is nearest to what it contributes.
#[derive(Debug, Clone)]
pub struct CsRcfl {
    /// What a member does in a round.
    pub training: Training,
    /// Number of coalitions, at least 1.
    pub coalitions: usize,
    /// Rounds that form coalitions anew; 0: all.
    pub freeze: u64,
    /// What takes the place of the mean in a coalition.
    pub rule: Aggregation,
}

impl CsRcfl {
    fn frozen(&self, round: u64) -> bool {
        self.freeze > 0 && round > self.freeze
    }

    /// The program of a round that forms coalitions.
    fn program(&self, sheet: &Sheet) -> Result<Program, DecideError> {
        let scores = scores_of(sheet)?;
        // With fewer contributions than coalitions asked for, as many as there are: a silo that is
        // away must not cost the others their round.
        let coalitions = self.coalitions.min(scores.len());
        Ok(Program::new(scores, coalitions)
            .expect("between one coalition and one per entry can be formed"))
    }
}

/// The scores of a sheet, one row and one column for every entry; at least one.
pub(crate) fn scores_of(sheet: &Sheet) -> Result<&Scores, DecideError> {
    let entries = sheet.entries.len();
    if entries == 0 {
        return Err(DecideError::NoEntries);
    }
    let scores = sheet.scores.as_ref().ok_or(DecideError::NoScores)?;
    if scores.len() != entries {
        return Err(DecideError::Scores {
            entries,
            scored: scores.len(),
        });
    }
    Ok(scores)
}

impl Strategy for CsRcfl {
    fn name(&self) -> &'static str {
        "cs-rcfl"
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.frozen(round)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        Ok(radius.suits(learner)?)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: !self.frozen(round),
            weights: false,
        }
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        if self.frozen(round) {
            return Ok(given(kept(state, sheet)?));
        }
        let solution = self.program(sheet)?.solve(round);
        Ok(Decision {
            assignment: solution.assignment,
            objective: solution.objective,
            lower_bound: solution.lower_bound,
            ..Decision::default()
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
            return must_be(
                decision,
                &kept(state, sheet)?,
                "every entry keeps its coalition",
            );
        }
        no_candidates(decision)?;
        let program = self.program(sheet)?;
        if !program.is_canonical(&decision.assignment) {
            return Err(Objection::Infeasible(format!(
                "{} entries have to be divided into {} coalitions, numbered in the order \
                 of their first entries",
                sheet.entries.len(),
                self.coalitions.min(sheet.entries.len())
            )));
        }
        let (stated, actual) = (decision.objective, program.objective(&decision.assignment));
        if !program.same(stated, actual) {
            return Err(Objection::Misstated { stated, actual });
        }
        let audit = program.audit(&decision.assignment);
        if audit.assignment != decision.assignment {
            return Err(Objection::NotBest {
                proposed: actual,
                found: audit.objective,
            });
        }
        // A bound above what can be confirmed would claim more than is known.
        let (stated, actual) = (decision.lower_bound, audit.lower_bound);
        let bounded = stated <= actual || program.same(stated, actual);
        if !bounded || !stated.is_finite() {
            return Err(Objection::Misstated { stated, actual });
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
        let (before, coalitions) = if self.frozen(round) {
            (state.models.as_slice(), state.models.len())
        } else {
            let entries = sheet.entries.len();
            ([].as_slice(), self.coalitions.min(entries))
        };
        let models = coalition_means(
            &self.rule,
            sheet,
            &decision.assignment,
            before,
            coalitions,
            |_| 1.0,
        )?;
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(models),
        })
    }

    fn unseen(&self, state: &State, _: u64, newcomer: Newcomer<'_>) -> Result<Params, LearnError> {
        let Newcomer {
            learner,
            personal,
            radius,
            ..
        } = newcomer;
        let best = least_loss(&state.models, learner, personal, Some(radius));
        Ok(state.models[best].clone())
    }
}
