//! CS-RCFL (Konti et al. 2024): coalitions from a cross-evaluation under robust losses.

use crate::aggregation::Aggregation;
use crate::coalitions::{CoalitionProgram, EXACT_UP_TO, proof};
use crate::learner::{LearnError, Learner, Update};
use crate::params::Params;
use crate::strategy::server::means::{coalition_means, kept};
use crate::strategy::{
    Claim, DecideError, Decision, EquipError, Fitting, Kept, LoadedManifest, Newcomer, Objection,
    Outcome, OwnRadius, Participant, Plan, SettleError, State, Strategy, Watch,
};

/// Train alone, let all members score every model (eq. (10)), form `coalitions` coalitions by the
/// coalition program (eq. (11)), and average each (eq. (6), all models alike). With a number of
/// coalitions that is not given: [`AutoCsRcfl`](crate::strategy::server::groups::cs_rcfl_auto::AutoCsRcfl).
///
/// The paper has one round. With more, members start from their coalition's model, and the
/// coalitions stay as they are after the first `freeze` rounds: there is no cross-evaluation
/// then, every entry belongs to the coalition it started from, and one that has none yet (a
/// newcomer) to the coalition whose start model is nearest to what it contributes.
#[derive(Debug, Clone)]
pub struct CsRcfl {
    /// How a member finds its model in a round.
    pub fit: Fitting,
    /// Number of coalitions, at least 1.
    pub coalitions: usize,
    /// Largest gap to the best grouping that members accept, from 0 to 1; see [`CoalitionProgram::gap`].
    pub gap: f64,
    /// Rounds that form coalitions anew; 0: all.
    pub freeze: u64,
    /// What takes the place of the mean in a coalition.
    pub rule: Aggregation,
}

/// In the state: the gap of the coalitions as they were formed, see [`CoalitionProgram::gap`].
const GAP: &str = "coalitions.gap";

impl CsRcfl {
    fn frozen(&self, round: u64) -> bool {
        self.freeze > 0 && round > self.freeze
    }

    /// The program of a round that forms coalitions.
    fn program(&self, manifest: &LoadedManifest) -> Result<CoalitionProgram, DecideError> {
        let scores = manifest.require_scores()?;
        // With fewer contributions than coalitions asked for, as many as there are: an absent
        // silo must not cost the others their round.
        let coalitions = self.coalitions.min(scores.len());
        Ok(CoalitionProgram::new(scores, coalitions)
            .expect("between one coalition and one per entry can be formed"))
    }

    /// The gap that is proven of a decision. Up to [`EXACT_UP_TO`] entries there is no proof: members
    /// solve the program and accept nothing but the best.
    fn gap(program: &CoalitionProgram, decision: &Decision) -> Result<f64, String> {
        let entries = decision.assignment.len();
        let proof = decision
            .claim
            .as_ref()
            .and_then(|claim| claim.proof.as_ref());
        match (entries <= EXACT_UP_TO, proof) {
            (true, None) => Ok(0.0),
            (true, Some(_)) => Err(format!(
                "expected no proof, because {entries} entries are grouped by every member, found one"
            )),
            (false, None) => Err(format!(
                "expected a proof of how good the grouping of {entries} entries is, found none"
            )),
            (false, Some(proof)) => program.gap(&decision.assignment, proof).ok_or_else(|| {
                format!("the proof does not fit {entries} entries, or does not hold")
            }),
        }
    }
}

impl Strategy for CsRcfl {
    fn name(&self) -> &'static str {
        "cs-rcfl"
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.frozen(round)
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        self.fit.suits(learner)?;
        Ok(radius.suits(learner)?)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            cross_evaluate: !self.frozen(round),
            ..Plan::everyone(state, self.fit.task())
        }
    }

    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        _: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        self.fit.contribute(state, plan, participant, progress)
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        if self.frozen(round) {
            return Ok(Decision::fixed(kept(state, manifest)?));
        }
        let found = self.program(manifest)?.solve_with_proof(round);
        if found.gap > self.gap {
            return Err(DecideError::Unproven {
                gap: found.gap,
                accepted: self.gap,
            });
        }
        Ok(Decision {
            assignment: found.solution.assignment,
            claim: Some(Claim {
                objective: found.solution.objective,
                lower_bound: found.solution.lower_bound,
                candidates: Vec::new(),
                proof: found.proof,
            }),
        })
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if self.frozen(round) {
            return decision
                .must_be_fixed(&kept(state, manifest)?, "every entry keeps its coalition");
        }
        let claim = decision.final_claim()?;
        let program = self.program(manifest)?;
        if !program.is_canonical(&decision.assignment) {
            return Err(Objection::Infeasible(format!(
                "expected a grouping of {} entries into {} coalitions, numbered in the order of \
                 their first entries",
                manifest.entries.len(),
                self.coalitions.min(manifest.entries.len())
            )));
        }
        let actual = program.objective(&decision.assignment);
        if !program.same(claim.objective, actual) {
            return Err(Objection::objective(claim.objective, actual));
        }
        let gap = Self::gap(&program, decision).map_err(Objection::Infeasible)?;
        let confirmed = match &claim.proof {
            Some(proof) => {
                // Where the proof leaves something open, nothing better may be found either.
                let better = (gap > proof::CLOSED)
                    .then(|| program.better(&decision.assignment, round))
                    .flatten();
                if let Some(better) = better {
                    return Err(Objection::NotBest {
                        proposed: actual,
                        found: better.objective,
                    });
                }
                if gap > self.gap {
                    let accepted = self.gap;
                    return Err(Objection::Unproven { gap, accepted });
                }
                program.lower_bound(proof).unwrap_or(f64::NEG_INFINITY)
            }
            None => {
                let audit = program.audit(&decision.assignment);
                if audit.assignment != decision.assignment {
                    return Err(Objection::NotBest {
                        proposed: actual,
                        found: audit.objective,
                    });
                }
                audit.lower_bound
            }
        };
        // A bound above what can be confirmed would claim more than is known.
        let claimed = claim.lower_bound;
        let bounded = claimed <= confirmed || program.same(claimed, confirmed);
        if !bounded || !claimed.is_finite() {
            return Err(Objection::lower_bound(claimed, confirmed));
        }
        Ok(())
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        let (before, coalitions, gap) = if self.frozen(round) {
            (state.models.as_slice(), state.models.len(), None)
        } else {
            manifest.fits(&decision.assignment)?;
            let gap = Self::gap(&self.program(manifest)?, decision);
            let gap = gap.map_err(SettleError::Infeasible)?;
            let coalitions = self.coalitions.min(manifest.entries.len());
            ([].as_slice(), coalitions, Some(gap))
        };
        let models = coalition_means(
            &self.rule,
            manifest,
            &decision.assignment,
            before,
            coalitions,
            |_| 1.0,
        )?;
        let mut after = state.with(models);
        if let Some(gap) = gap {
            after.memory.insert(GAP, Kept::Number(gap));
        }
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: after,
        })
    }

    fn unseen(&self, state: &State, _: u64, newcomer: Newcomer<'_>) -> Result<Params, LearnError> {
        newcomer.best_model(state, Some(newcomer.radius))
    }
}
