//! A lead that follows the protocol and decides worse than it could.

use std::sync::Arc;

use methods::coalitions::{Program, canonical};
use methods::learner::Update;
use methods::strategy::{
    Claim, DecideError, Decision, EquipError, ModelEntry, Names, Newcomer, Objection, Outcome,
    OwnRadius, Participant, Plan, Scored, SettleError, Sheet, State, Watch,
};
use methods::{Layout, LearnError, Learner, Params, Scores, Strategy};

/// Local optima that are looked at.
const STARTS: u64 = 64;

/// The strategy of a lead that groups silos worse than it could, wherever a strategy groups them by
/// the coalition program. The grouping that it proposes is one that no move and no swap of silos
/// improves, if there is one; its objective is true, the proof is one that holds, and the outcome
/// follows from it. So only who knows how good a grouping can be may refuse it.
pub(crate) struct WorseCoalitions(pub(crate) Arc<dyn Strategy>);

/// A grouping that is worse than this one, with as many coalitions.
fn worse(scores: &Scores, grouping: &[u32]) -> Option<(Vec<u32>, f64)> {
    let coalitions = grouping.iter().max().map_or(0, |&last| last as usize + 1);
    let program = Program::new(scores, coalitions).ok()?;
    let honest = program.objective(grouping);
    let optima = (0..STARTS).map(|seed| program.local_optimum(seed));
    let priced = optima.map(|found| (program.objective(&found), found));
    let worst = priced.max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.filter(|(value, _)| *value > honest && !program.same(*value, honest));
    let (value, found) = worst.or_else(|| swapped(&program, grouping))?;
    (value > honest).then_some((found, value))
}

/// The worst grouping that a swap of two entries makes.
fn swapped(program: &Program, grouping: &[u32]) -> Option<(f64, Vec<u32>)> {
    let n = grouping.len();
    let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let swaps = pairs.map(|(i, j)| {
        let mut other = grouping.to_vec();
        other.swap(i, j);
        let other = canonical(&other);
        (program.objective(&other), other)
    });
    swaps.max_by(|a, b| a.0.total_cmp(&b.0))
}

impl WorseCoalitions {
    fn change(honest: &Decision, scores: &Scores) -> Option<Decision> {
        let claim = honest.claim.as_ref()?;
        if claim.candidates.is_empty() {
            let (assignment, objective) = worse(scores, &honest.assignment)?;
            return Some(Decision {
                assignment,
                claim: Some(Claim {
                    objective,
                    ..claim.clone()
                }),
            });
        }
        // Of several groupings the first that can be made worse.
        let mut candidates = claim.candidates.clone();
        let mut found = candidates.iter_mut().filter_map(|candidate| {
            let (other, objective) = worse(scores, candidate)?;
            let coalitions = candidate.iter().max().map_or(0, |&last| last as usize + 1);
            let before = Program::new(scores, coalitions).ok()?.objective(candidate);
            *candidate = other;
            Some(objective - before)
        });
        let rise = found.next()?;
        drop(found);
        Some(Decision {
            claim: Some(Claim {
                objective: claim.objective + rise / candidates.len() as f64,
                candidates,
                ..claim.clone()
            }),
            ..honest.clone()
        })
    }
}

impl Strategy for WorseCoalitions {
    fn decide(&self, state: &State, sheet: &Sheet, round: u64) -> Result<Decision, DecideError> {
        let honest = self.0.decide(state, sheet, round)?;
        let scores = sheet.scores.as_ref();
        let other = scores.and_then(|scores| Self::change(&honest, scores));
        Ok(other.unwrap_or(honest))
    }

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn names(&self) -> Names {
        self.0.names()
    }

    fn draws_members(&self) -> bool {
        self.0.draws_members()
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.0.equip(learner)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.0.can_take_part(learner, radius)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        self.0.initial_state(learner, seed)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        self.0.plan(state, round)
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        self.0.contribute(state, plan, round, participant, progress)
    }

    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        self.0.score(state, plan, round, participant, scored)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.0.keeps_numbers(round)
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        self.0.expects(state, model, summary, round)
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        self.0.layouts(model, summary)
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.0.admit(entry, round)
    }

    fn check(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        self.0.check(state, sheet, decision, round)
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        self.0.settle(state, sheet, decision, round)
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        self.0.unseen(state, round, newcomer)
    }
}
