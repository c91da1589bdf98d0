//! Local training: every silo keeps its local model. The baseline that a federation has to beat.

use serde::{Deserialize, Serialize};

use crate::learner::{LearnError, Learner, Training, Update};
use crate::params::Params;
use crate::robust::Ridge;
use crate::strategy::options::{MethodSetting, is_default};
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, FitRule, Fitting, LoadedManifest, OwnRadius,
    Participant, Plan, SettleError, State, Strategy, StrategyError, Watch,
};

/// Options of local training.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LocalOptions {
    /// Fit of the silos' models. An exact fit does not depend on its start, so more rounds change
    /// nothing.
    #[serde(skip_serializing_if = "is_default")]
    pub fit: FitRule,
    /// Strength of the ridge of exact fits: a number, or `{ folds, grid }` to choose it by
    /// cross-validation at every silo. Not used otherwise. Default: 5 folds, 0.0001 to 10.
    #[serde(skip_serializing_if = "is_default")]
    pub ridge: Ridge,
}

impl LocalOptions {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let fit = Fitting::new(self.fit, &self.ridge, false, setting.training)?;
        Ok(Box::new(Local {
            fit,
            members: setting.members,
        }))
    }
}

/// Every silo keeps its local model. The first round numbers them by entry; afterwards a silo keeps
/// its number, so that missing a round loses nothing, and newcomers get the next free ones.
#[derive(Debug, Clone)]
pub struct Local {
    /// Fit of a member's model in a round.
    pub fit: Fitting,
    /// Members of the federation, at least 1: no more models than that are kept.
    pub members: usize,
}

impl Local {
    pub(crate) fn new(setting: MethodSetting) -> Self {
        Self {
            fit: Fitting::Trained(setting.training),
            members: setting.members,
        }
    }
}

/// Every entry's number: the one it claims, if there is a model of that number and no entry before
/// claims it, else a new one.
///
/// A member that claims the number of another makes the other take a new one. So that the list of
/// models does not grow with every such claim, it has at most one for every member (at most
/// `members`, or as many as there are entries); beyond, an entry takes the lowest number that no
/// entry of this manifest has. As long as no member claims the number of another, numbers never
/// run out.
pub(crate) fn numbers(
    state: &State,
    manifest: &LoadedManifest,
    members: usize,
    round: u64,
) -> Vec<u32> {
    // The one model before the first round belongs to no member.
    let known = if round == 1 { 0 } else { state.models.len() };
    let most = members.max(manifest.entries.len());
    let mut taken = vec![false; known];
    let claimed: Vec<Option<u32>> = manifest
        .entries
        .iter()
        .map(|entry| {
            let own = entry.coalition?;
            let free = taken.get_mut(own as usize).filter(|taken| !**taken)?;
            *free = true;
            Some(own)
        })
        .collect();
    let number = |claimed: Option<u32>| {
        claimed.unwrap_or_else(|| {
            let number = if taken.len() < most {
                taken.len()
            } else {
                // There are as many numbers as members, so that one has no entry.
                taken.iter().position(|taken| !taken).unwrap_or(taken.len())
            };
            match taken.get_mut(number) {
                Some(taken) => *taken = true,
                None => taken.push(true),
            }
            number as u32
        })
    };
    claimed.into_iter().map(number).collect()
}

/// The models after a round that gives every entry this model under its number.
pub(crate) fn replaced(
    before: Vec<Params>,
    assignment: &[u32],
    models: impl IntoIterator<Item = Params>,
) -> Vec<Params> {
    let mut after = before;
    for (&own, next) in assignment.iter().zip(models) {
        match after.get_mut(own as usize) {
            Some(model) => *model = next,
            // New numbers ascend in the order of the contribution list.
            None => after.push(next),
        }
    }
    after
}

impl AssignAndAggregate for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn training(&self) -> &Training {
        self.fit.training()
    }

    fn can_take_part(&self, learner: &dyn Learner, _: &OwnRadius) -> Result<(), EquipError> {
        Ok(self.fit.suits(learner)?)
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

    /// In every round but the first, which numbers all members.
    fn keeps_numbers(&self, round: u64) -> bool {
        round > 1
    }

    fn assign(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Vec<u32>, DecideError> {
        Ok(numbers(state, manifest, self.members, round))
    }

    fn rule(&self) -> &'static str {
        OWN_COALITION
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        assignment: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        if assignment != numbers(state, manifest, self.members, round) {
            return Err(SettleError::Infeasible(OWN_COALITION.into()));
        }
        let before = match round {
            1 => Vec::new(),
            _ => state.models.clone(),
        };
        let models = manifest.entries.iter().map(|entry| entry.model.clone());
        Ok(state.with(replaced(before, assignment, models)))
    }
}

/// The rule of methods in which every member has a model of its own.
pub(crate) const OWN_COALITION: &str = "every entry keeps its own coalition";
