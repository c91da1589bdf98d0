//! Everybody alone: what a federation has to beat.

use crate::learner::{Task, Training};
use crate::strategy::server::means::{fits, given, must_be};
use crate::strategy::{
    DecideError, Decision, Objection, Outcome, Plan, SettleError, Sheet, State, Strategy,
};

/// Every silo keeps its own model. The first round numbers them by entry; afterwards a silo keeps
/// its number, so that missing a round loses nothing, and newcomers get the next free ones.
#[derive(Debug, Clone)]
pub struct Local {
    /// What a member does in a round.
    pub training: Training,
}

/// Every entry's number: the one it claims, if it is there and not taken, else a new one.
pub(crate) fn numbers(state: &State, sheet: &Sheet, round: u64) -> Vec<u32> {
    // Before the first round there is one model, which is nobody's own.
    let known = if round == 1 { 0 } else { state.models.len() };
    let mut taken = vec![false; known];
    let mut next = known as u32;
    let number = |claimed: Option<u32>| match claimed {
        Some(own) if taken.get(own as usize) == Some(&false) => {
            taken[own as usize] = true;
            own
        }
        _ => {
            next += 1;
            next - 1
        }
    };
    sheet
        .entries
        .iter()
        .map(|entry| entry.coalition)
        .map(number)
        .collect()
}

impl Strategy for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    /// But in the first, which numbers everybody.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            participants: None,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: false,
            weights: false,
        }
    }

    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        Ok(given(numbers(state, sheet, round)))
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        let expected = self.decide(state, sheet, round)?;
        must_be(
            decision,
            &expected.assignment,
            "every entry keeps its own coalition",
        )
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        fits(sheet, &decision.assignment)?;
        if decision.assignment != numbers(state, sheet, round) {
            return Err(SettleError::Infeasible(
                "every entry keeps its own coalition".into(),
            ));
        }
        let mut models = if round == 1 {
            Vec::new()
        } else {
            state.models.clone()
        };
        for (entry, &own) in sheet.entries.iter().zip(&decision.assignment) {
            match models.get_mut(own as usize) {
                Some(model) => *model = entry.model.clone(),
                // New numbers ascend in bundle order.
                None => models.push(entry.model.clone()),
            }
        }
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: state.with(models),
        })
    }
}
