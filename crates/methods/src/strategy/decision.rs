//! The lead's decision, and why a member may refuse it.

use serde::{Deserialize, Serialize};

use crate::coalitions::proof::Proof;

/// The lead's choice of who learns with whom.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// Coalition of every entry, in the order of the contribution list. Where a round forms coalitions, they are
    /// numbered 0.. in the order of their first entry, and none is empty. Where coalitions are
    /// carried over from earlier rounds they keep their numbers (the indices of
    /// [`State::models`](crate::State::models)), and one may have no entry.
    pub assignment: Vec<u32>,
    /// Claim of the lead about its choice; `None` where the strategy leaves nothing to choose.
    pub claim: Option<Claim>,
}

/// Claim of a lead about an assignment that it chose.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Value of the strategy's objective at the assignment; smaller is better.
    pub objective: f64,
    /// A proven lower bound of the objective over all assignments.
    pub lower_bound: f64,
    /// Further assignments of the entries, of which a later round chooses one; empty where the
    /// strategy has none.
    pub candidates: Vec<Vec<u32>>,
    /// Proof of the lower bound, where members do not solve the program themselves.
    pub proof: Option<Proof>,
}

impl Decision {
    /// The decision of a round that leaves nothing to choose.
    pub fn fixed(assignment: Vec<u32>) -> Self {
        Self {
            assignment,
            claim: None,
        }
    }

    /// Returns whether this is the [fixed](Self::fixed) decision with this assignment; `rule` is the sentence
    /// that says what the assignment has to be.
    ///
    /// # Errors
    /// [`Objection::Infeasible`] if it is not.
    pub fn must_be_fixed(&self, expected: &[u32], rule: &str) -> Result<(), Objection> {
        if self.assignment != expected {
            return Err(Objection::Infeasible(rule.into()));
        }
        match self.claim {
            None => Ok(()),
            Some(_) => {
                let why = "it claims an objective, and this round leaves nothing to choose";
                Err(Objection::Infeasible(why.into()))
            }
        }
    }

    /// The claim of this decision, in a round that leaves no candidates to a later one.
    pub(crate) fn final_claim(&self) -> Result<&Claim, Objection> {
        let claim = self.claimed()?;
        if claim.candidates.is_empty() {
            return Ok(claim);
        }
        let why = "it lists candidate assignments, and no later round chooses among them";
        Err(Objection::Infeasible(why.into()))
    }

    /// The claim of this decision, in a round that leaves a choice.
    pub(crate) fn claimed(&self) -> Result<&Claim, Objection> {
        let none = || Objection::Infeasible("it claims no objective and no lower bound".into());
        self.claim.as_ref().ok_or_else(none)
    }
}

/// Reason for which the lead could not decide.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecideError {
    /// No entry at all.
    #[error("no contributions: there is nothing to decide")]
    NoEntries,
    /// The plan asked for scores and the manifest has none.
    #[error("the strategy decides from a cross-evaluation, and the manifest has no scores")]
    NoScores,
    /// The score matrix belongs to another contribution list.
    #[error("the manifest has {entries} contributions and scores of {scored}")]
    Scores {
        /// Contributions at hand.
        entries: usize,
        /// Contributions scored.
        scored: usize,
    },
    /// The plan asked for numbers of rows and an entry has none.
    #[error("entry {entry} lacks its number of training rows")]
    NoWeight {
        /// Position in the contribution list.
        entry: usize,
    },
    /// No decision of which enough is proven.
    #[error(
        "the best grouping that was found is proven to be within {:.2} % of the best one, and members \
         accept {:.2} %: its `gap` has to be raised, or the number of coalitions changed",
        100.0 * .gap, 100.0 * .accepted
    )]
    Unproven {
        /// Relative gap.
        gap: f64,
        /// The largest that members accept.
        accepted: f64,
    },
    /// An entry that [`Strategy::admit`](crate::Strategy::admit) would have refused.
    #[error("entry {entry}: {reason}")]
    Unusable {
        /// Position in the contribution list.
        entry: usize,
        /// Description of the fault.
        reason: String,
    },
}

impl DecideError {
    /// The entries, all together, cannot be used.
    pub(crate) fn unusable(error: impl ToString) -> Self {
        Self::Unusable {
            entry: 0,
            reason: error.to_string(),
        }
    }
}

/// Reason for which a member does not accept a decision.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Objection {
    /// The manifest itself admits no decision.
    #[error(transparent)]
    Manifest(#[from] DecideError),
    /// The decision is not a numbered grouping of the entries, or breaks the strategy's rules.
    #[error("the decision breaks the strategy's rules: {0}")]
    Infeasible(String),
    /// The claimed objective or bound is not that of the assignment.
    #[error("claimed {what} {claimed}, recomputed {recomputed}: the decision is refused")]
    Misstated {
        /// The claim that is wrong: `"objective"` or `"lower bound"`.
        what: &'static str,
        /// As the lead claims.
        claimed: f64,
        /// As recomputed.
        recomputed: f64,
    },
    /// A better decision may exist.
    #[error(
        "the decision is proven to be within {:.4} % of the best one, and {:.4} % are accepted",
        100.0 * .gap, 100.0 * .accepted
    )]
    Unproven {
        /// Relative gap.
        gap: f64,
        /// The largest that is accepted.
        accepted: f64,
    },
    /// A better decision was found.
    #[error("a better decision exists: objective {found} instead of {proposed}")]
    NotBest {
        /// Objective of the proposal.
        proposed: f64,
        /// Objective of what the checker found.
        found: f64,
    },
}

impl Objection {
    /// An objective that is not what was recomputed.
    pub(crate) fn objective(claimed: f64, recomputed: f64) -> Self {
        Self::Misstated {
            what: "objective",
            claimed,
            recomputed,
        }
    }

    /// A lower bound that is not what was recomputed.
    pub(crate) fn lower_bound(claimed: f64, recomputed: f64) -> Self {
        Self::Misstated {
            what: "lower bound",
            claimed,
            recomputed,
        }
    }
}
