//! Rounds in which the lead searches for a grouping: what it claims, and what members compare.

use super::{Claim, DecideError, Decision, Objection};
use crate::coalitions::canonical;

/// The search for the grouping of one round's entries. Every member can carry it out again; a lead
/// may have found something better than a member does, never something worse.
///
/// A method answers four questions, and has the decision of a lead and the check of a member for it.
pub(crate) trait Search {
    /// Number of entries that are grouped.
    fn entries(&self) -> usize;

    /// The grouping that the search finds, and its objective. Smaller is better.
    ///
    /// # Errors
    /// [`DecideError`] where the entries cannot be grouped.
    fn best(&self) -> Result<(Vec<u32>, f64), DecideError>;

    /// The objective of a grouping, numbered in the order of first entries.
    ///
    /// # Errors
    /// In words, what a grouping has to be, where this one may not be proposed.
    fn objective(&self, grouping: &[u32]) -> Result<f64, String>;

    /// No grouping has a smaller objective than this.
    fn lower_bound(&self) -> f64;

    /// Returns whether two objectives are the same but for rounding.
    fn same(&self, a: f64, b: f64) -> bool;

    /// Returns what a grouping is to be, for a member that refuses one.
    fn rule(&self) -> String;

    /// The decision of a lead that has searched.
    ///
    /// # Errors
    /// Those of [`best`](Self::best).
    fn decide(&self) -> Result<Decision, DecideError> {
        let (assignment, objective) = self.best()?;
        Ok(Decision {
            assignment,
            claim: Some(Claim {
                objective,
                lower_bound: self.lower_bound(),
                candidates: Vec::new(),
                proof: None,
            }),
        })
    }

    /// Returns whether a member accepts the decision of a lead that has searched.
    ///
    /// # Errors
    /// [`Objection`]: no grouping of these entries, a claim that is not true, or a grouping that is
    /// worse than the one that the member finds.
    fn check(&self, decision: &Decision) -> Result<(), Objection> {
        let claim = decision.final_claim()?;
        let grouping = &decision.assignment;
        if grouping.len() != self.entries() || canonical(grouping) != *grouping {
            return Err(Objection::Infeasible(self.rule()));
        }
        let actual = self.objective(grouping).map_err(Objection::Infeasible)?;
        if !self.same(claim.objective, actual) {
            return Err(Objection::objective(claim.objective, actual));
        }
        let least = self.lower_bound();
        if !self.same(claim.lower_bound, least) {
            return Err(Objection::lower_bound(claim.lower_bound, least));
        }
        // Where two groupings are worth the same but for rounding, the lead's choice stands.
        let (_, found) = self.best()?;
        if actual > found && !self.same(actual, found) {
            return Err(Objection::NotBest {
                proposed: actual,
                found,
            });
        }
        Ok(())
    }
}
