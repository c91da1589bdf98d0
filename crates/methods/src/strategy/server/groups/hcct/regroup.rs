//! Which new groups replace the present ones.
//!
//! Silos whose models hardly change any more move in directions that are mostly noise, by which groups
//! that were right fall apart. Their utility shows it: directions that agree raise it, those that are
//! noise leave it near that of silos alone. So groups stay unless new ones are of higher utility than the
//! present ones had when they were formed.

use serde::{Deserialize, Serialize};

use super::{Merging, When, same};
use crate::strategy::{Decision, Kept, LoadedManifest, Objection, State};

/// The mean utility of a silo in the present groups, when they were formed, in
/// [`State::memory`](crate::strategy::State::memory).
const UTILITY: &str = "hcct.utility";

/// What entries do in a round without new groups.
pub(super) const KEEPS: &str = "every entry keeps its group";

/// Which new groups replace the present ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Regroup {
    /// Those whose mean utility is higher than that of the present ones was when they were formed.
    Better,
    /// All, as in the paper.
    Always,
}

impl Merging {
    fn regroup(&self) -> Regroup {
        let by_form = match self.options.grouping {
            When::Trained => Regroup::Better,
            When::Paper => Regroup::Always,
        };
        self.options.regroup.unwrap_or(by_form)
    }

    /// The mean utility in the present groups and in those of a decision; `None` where new groups replace
    /// the present ones in any case.
    fn utilities(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        new: &Decision,
    ) -> Option<(f64, f64)> {
        let before = match self.regroup() {
            Regroup::Better => state.memory.number(UTILITY)?,
            Regroup::Always => return None,
        };
        Some((before, mean_utility(manifest, new)?))
    }

    /// Returns whether the new groups of a decision replace the present ones.
    pub(super) fn replaces(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        new: &Decision,
    ) -> bool {
        let utilities = self.utilities(state, manifest, new);
        utilities.is_none_or(|(before, now)| now > before && !same(before, now))
    }

    /// Refuses new groups that are of lower utility than the present ones had. Where the two are the same but
    /// for rounding, the lead's choice stands.
    pub(super) fn may_replace(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        new: &Decision,
    ) -> Result<(), Objection> {
        match self.utilities(state, manifest, new) {
            Some((before, now)) if now < before && !same(before, now) => {
                Err(Objection::Infeasible(format!(
                    "its groups have a mean utility of {now}, and the present ones had {before}: {KEEPS}"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses that groups stay although `new` ones, which this member found, are of higher utility.
    pub(super) fn may_keep(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        new: &Decision,
    ) -> Result<(), Objection> {
        if self.replaces(state, manifest, new) {
            Err(Objection::Infeasible(
                "it keeps the present groups, and new ones have a higher utility".into(),
            ))
        } else {
            Ok(())
        }
    }

    /// Remembers the utility of new groups, as the lead claims it and members have checked.
    pub(super) fn remember(&self, state: &mut State, manifest: &LoadedManifest, new: &Decision) {
        if self.regroup() == Regroup::Better
            && let Some(utility) = mean_utility(manifest, new)
        {
            state.memory.insert(UTILITY, Kept::Number(utility));
        }
    }
}

/// The mean utility of an entry in the groups of a decision. The mean, because not all silos take part in
/// every round.
fn mean_utility(manifest: &LoadedManifest, new: &Decision) -> Option<f64> {
    let claim = new.claim.as_ref()?;
    Some(-claim.objective / manifest.entries.len().max(1) as f64)
}
