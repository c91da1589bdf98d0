//! Groups in the number that does best on held-out rows (`groups = "auto"`).
//!
//! No fixed α suits every federation: whether silos gain by merging depends on how far their true
//! models are apart, and on the rows and features they have, and directions alone do not say that. So the
//! merge tree says only which groups are worth a try, and losses on rows that a model has not
//! seen say how many. As in CS-RCFL with `coalitions = "auto"`, that takes two rounds.

use std::sync::Arc;

use super::{Hcct, Merging, When, inner_products};
use crate::learner::{LearnError, Learner, Update};
use crate::merging::{Alpha, LayerStatistic, MergeTree, Utility, differences};
use crate::params::Layout;
use crate::robust::Ridge;
use crate::strategy::options::{MethodSetting, require};
use crate::strategy::server::groups::cs_rcfl_auto::{AutoCsRcfl, AutoPhase, grid};
use crate::strategy::{
    Claim, DecideError, Decision, EquipError, FitRule, Fitting, LoadedManifest, ModelEntry,
    Objection, Outcome, OwnRadius, Participant, Plan, SettleError, State, Strategy, StrategyError,
    Watch,
};

/// Folds of cross-fitting, as with CS-RCFL by default.
const FOLDS: usize = 5;

/// Rule for the candidates that every member checks.
const RULE: &str =
    "the candidates have to be the merge tree of this round, cut at every number of groups";

/// HCCT that finds the number of groups.
pub(super) struct FoundGroups {
    merging: Merging,
    /// The rounds, but for how candidates are formed.
    rounds: AutoCsRcfl,
}

impl FoundGroups {
    /// From options with `groups = "auto"`, which takes no others.
    pub(super) fn new(
        name: &'static str,
        setting: MethodSetting,
        options: &Hcct,
        statistic: Option<LayerStatistic>,
    ) -> Result<Self, StrategyError> {
        let unused = "left out with groups = \"auto\", which does not use it";
        let Hcct {
            alpha,
            freeze,
            grouping,
            regroup,
            ..
        } = Hcct::default();
        require(
            options.alpha == alpha,
            "alpha",
            unused,
            format!("{:?}", options.alpha),
        )?;
        require(options.freeze == freeze, "freeze", unused, options.freeze)?;
        let trained = options.grouping == grouping;
        require(trained, "grouping", unused, format!("{:?}", When::Paper))?;
        let regroups = format!("{:?}", options.regroup);
        require(options.regroup == regroup, "regroup", unused, regroups)?;
        let fit = |around_start| {
            let (how, ridge) = (FitRule::ExactIfPossible, Ridge::default());
            Fitting::new(how, &ridge, around_start, setting.training.clone())
        };
        Ok(Self {
            rounds: AutoCsRcfl {
                fit: fit(true)?,
                alone: fit(false)?,
                warm_up: None,
                folds: FOLDS,
                freeze: 1,
                rule: setting.rule.clone(),
                by_rows: true,
            },
            merging: Merging {
                name,
                setting,
                options: options.clone(),
                statistic,
            },
        })
    }

    fn forms(&self, state: &State, round: u64) -> bool {
        self.rounds.phase(state, round) == AutoPhase::Form
    }

    /// The merges by what distinguishes the directions of the silos, each of which counts alike. With
    /// equal rows every merge gains the same by more data, so that α does not change their order.
    fn tree(&self, state: &State, manifest: &LoadedManifest) -> Result<MergeTree, DecideError> {
        manifest.require_rows()?;
        let gradients = self.merging.gradients(state, manifest)?;
        let compared = self.merging.compared(state, &gradients)?;
        let gram = inner_products(&gradients, &compared)?;
        let gram = differences(&gram).map_err(DecideError::unusable)?;
        let utility = Utility::new(&gram, &vec![1; gradients.len()], &Alpha::Own);
        Ok(utility.map_err(DecideError::unusable)?.tree())
    }

    /// The decision of a round that forms candidates. It has the same bits at every member, since inner
    /// products and merges have.
    fn formed(&self, state: &State, manifest: &LoadedManifest) -> Result<Decision, DecideError> {
        let tree = self.tree(state, manifest)?;
        let entries = manifest.entries.len();
        let objective = -tree.most();
        let cut = |groups: usize| tree.cut(groups);
        Ok(Decision {
            assignment: (0..entries as u32).collect(),
            claim: Some(Claim {
                objective,
                lower_bound: objective,
                candidates: grid(entries).into_iter().map(cut).collect(),
                proof: None,
            }),
        })
    }
}

impl Strategy for FoundGroups {
    fn name(&self) -> &'static str {
        self.merging.name
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        self.rounds.equip(learner)
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        self.rounds.initial_state(learner, seed)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        Plan {
            cross_evaluate: false,
            ..self.rounds.plan(state, round)
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
        let coalition = participant.coalition;
        let keeps = self.rounds.phase(state, round) == AutoPhase::Keep;
        if keeps && !self.rounds.fits_alone(state, round, coalition) {
            // Groups that are fixed train as HCCT's do. The mean of exact fits is not the fit to all rows.
            let start = participant.start(state)?;
            let update = participant.carry_out(&plan.task, start, progress)?;
            return Ok((coalition, update));
        }
        // Losses are plain, whatever radius the silo has for other methods.
        let radius = &OwnRadius::default();
        let participant = Participant {
            radius,
            ..participant
        };
        self.rounds
            .contribute(state, plan, round, participant, progress)
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.rounds.keeps_numbers(round)
    }

    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        self.rounds.expects(state, model, summary, round)
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        self.rounds.layouts(model, summary)
    }

    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        self.rounds.admit(entry, round)
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        match self.forms(state, round) {
            true => self.formed(state, manifest),
            false => self.rounds.decide(state, manifest, round),
        }
    }

    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        let manifest = self.forms(state, round).then(manifest)??;
        self.tree(state, &manifest).ok()
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if !self.forms(state, round) {
            return self.rounds.check(state, manifest, decision, round);
        }
        match *decision == self.formed(state, manifest)? {
            true => Ok(()),
            false => Err(Objection::Infeasible(RULE.into())),
        }
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        if !self.forms(state, round) {
            return self.rounds.settle(state, manifest, decision, round);
        }
        match *decision == self.formed(state, manifest)? {
            true => Ok(self.rounds.leave(state, manifest, decision)),
            false => Err(SettleError::Infeasible(RULE.into())),
        }
    }
}
