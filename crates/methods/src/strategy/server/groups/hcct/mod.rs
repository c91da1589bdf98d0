//! HCCT (Sun, Kountouris & Zhang 2024): groups of silos whose updates point in one direction.

mod found;
mod newcomer;
mod next;
mod regroup;

use self::found::FoundGroups;
use self::newcomer::LastGroups;
pub use self::regroup::Regroup;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::learner::{LearnError, Task, Update};
use crate::merging::{Alpha, LayerStatistic, MergeTree, Until, Utility, choose_layer};
use crate::params::{Params, layers};
use crate::similarity::{Vectors, gram_f64};
use crate::strategy::options::{MethodSetting, not_negative, require};
use crate::strategy::search::Search;
use crate::strategy::server::means::{coalition_means, kept};
use crate::strategy::{
    Coalitions, DecideError, Decision, Kept, LoadedManifest, ModelEntry, Names, Newcomer,
    Objection, Outcome, Participant, Plan, SettleError, State, Strategy, StrategyError, Watch,
};

/// Where HCCT-E remembers the layer that it compares: its number in the order of [`layers`].
const LAYER: &str = "hcct.layer";

/// Options of HCCT and HCCT-P.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hcct {
    /// Weight α of the number of rows against gradient direction in a silo's utility. A smaller α
    /// leaves more silos alone. Default: a share of 0.5 of a silo's own rows.
    pub alpha: Alpha,
    /// Number of groups at which merging stops, even if the total utility falls until then; 0, the
    /// default, merges for as long as the total utility rises. `"auto"`: as many as do best on held-out
    /// rows, found in two rounds; `alpha`, `freeze`, `grouping` and `regroup` are left out then. It is
    /// what `--strategy` and new agreements write.
    pub groups: Coalitions,
    /// Number of rounds that form groups, after which they stay the same; 0 forms them in every
    /// round, as in the paper. Default 3.
    #[schemars(extend("x-unit" = "rounds"))]
    pub freeze: u64,
    /// When groups are formed, and of which models.
    pub grouping: When,
    /// Which new groups replace the present ones. Default: with `grouping = "trained"` those of higher
    /// utility than the present ones had, with `"paper"` all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regroup: Option<Regroup>,
}

/// Options of HCCT-E.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct HcctE {
    /// Weight α of the number of rows against gradient direction in a silo's utility. A smaller α
    /// leaves more silos alone. Default: a share of 0.5 of a silo's own rows.
    pub alpha: Alpha,
    /// Number of groups at which merging stops, even if the total utility falls until then; 0, the
    /// default, merges for as long as the total utility rises. `"auto"`: as many as do best on held-out
    /// rows, found in two rounds; `alpha`, `freeze`, `grouping` and `regroup` are left out then. It is
    /// what `--strategy` and new agreements write.
    pub groups: Coalitions,
    /// Number of rounds that form groups, after which they stay the same; 0 forms them in every
    /// round, as in the paper. Default 3.
    #[schemars(extend("x-unit" = "rounds"))]
    pub freeze: u64,
    /// When groups are formed, and of which models.
    pub grouping: When,
    /// Which new groups replace the present ones. Default: with `grouping = "trained"` those of higher
    /// utility than the present ones had, with `"paper"` all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regroup: Option<Regroup>,
    /// Statistic that selects the layer by which silos are compared.
    pub statistic: LayerStatistic,
}

impl Default for Hcct {
    fn default() -> Self {
        Self {
            alpha: Alpha::Share(0.5),
            groups: Coalitions::Number(0),
            freeze: 3,
            grouping: When::default(),
            regroup: None,
        }
    }
}

impl Default for HcctE {
    fn default() -> Self {
        let Hcct {
            alpha,
            groups,
            freeze,
            grouping,
            regroup,
        } = Hcct::default();
        Self {
            alpha,
            groups,
            freeze,
            grouping,
            regroup,
            statistic: LayerStatistic::default(),
        }
    }
}

/// When groups are formed, and which models a new group averages, by rows.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// After the training of a round, of the models that it trained: what the members of a group
    /// hold is the mean of what they have just trained.
    #[default]
    Trained,
    /// Before the next round, as in the paper: its members bring the model of the group in which they
    /// trained. Until then they hold that model.
    Paper,
}

impl Hcct {
    pub(crate) fn build(
        &self,
        name: &'static str,
        setting: MethodSetting,
    ) -> Result<Box<dyn Strategy>, StrategyError> {
        if self.groups == Coalitions::AUTO {
            return Ok(Box::new(FoundGroups::new(name, setting, self, None)?));
        }
        match self.alpha {
            Alpha::Own => {}
            Alpha::Share(share) => not_negative("alpha.share", share)?,
            Alpha::Common(alpha) => not_negative("alpha.common", alpha)?,
            Alpha::Each(ref alphas) => {
                let all = alphas.len() == setting.members;
                require(
                    all,
                    "alpha.each",
                    "one number for every member",
                    alphas.len(),
                )?;
                let valid = |&alpha| not_negative("alpha.each", alpha);
                alphas.iter().try_for_each(valid)?;
            }
        }
        Ok(Box::new(Merging {
            name,
            setting,
            options: self.clone(),
            statistic: None,
        }))
    }

    /// Rounds that form the groups, before any that only trains.
    pub(crate) fn forming_rounds(&self) -> u64 {
        forming_rounds(self.groups)
    }
}

/// With a number that is found one round forms groups and another measures them.
fn forming_rounds(groups: Coalitions) -> u64 {
    match groups {
        Coalitions::Number(_) => 1,
        Coalitions::Found(_) => 2,
    }
}

impl HcctE {
    /// As [`Hcct::forming_rounds`].
    pub(crate) fn forming_rounds(&self) -> u64 {
        forming_rounds(self.groups)
    }

    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let options = Hcct {
            alpha: self.alpha.clone(),
            groups: self.groups,
            freeze: self.freeze,
            grouping: self.grouping,
            regroup: self.regroup,
        };
        if self.groups == Coalitions::AUTO {
            let statistic = Some(self.statistic);
            return Ok(Box::new(FoundGroups::new(
                "hcct-e", setting, &options, statistic,
            )?));
        }
        options.build("hcct-e", setting.clone())?;
        Ok(Box::new(Merging {
            name: "hcct-e",
            setting,
            options,
            statistic: Some(self.statistic),
        }))
    }
}

/// Every silo trains from its group's model; `g_k` is what that changed. The silos are then merged
/// into groups by the directions of all `g_k` (Algorithm 2), whichever group they were in.
struct Merging {
    name: &'static str,
    setting: MethodSetting,
    options: Hcct,
    /// HCCT-E: compare one layer, chosen by this in the first round.
    statistic: Option<LayerStatistic>,
}

impl Merging {
    fn frozen(&self, round: u64) -> bool {
        self.options.freeze > 0 && round > self.options.freeze
    }

    /// `start − model` of every entry.
    fn gradients(
        &self,
        state: &State,
        manifest: &LoadedManifest,
    ) -> Result<Vec<Params>, DecideError> {
        let starts = next::starts(state);
        let places = kept(state, manifest)?;
        let each = manifest.entries.iter().zip(places);
        Ok(each
            .map(|(entry, start)| gradient(&starts[start as usize], &entry.model))
            .collect())
    }

    /// The layer to compare: `None` for all of the model.
    fn layer(&self, state: &State, gradients: &[Params]) -> Result<Option<usize>, DecideError> {
        let Some(statistic) = self.statistic else {
            return Ok(None);
        };
        if let Some(known) = state.memory.count(LAYER) {
            return Ok(Some(known as usize));
        }
        let chosen = choose_layer(gradients, statistic).map_err(DecideError::unusable)?;
        let all = layers(gradients[0].layout());
        Ok(all.iter().position(|layer| *layer == chosen))
    }

    /// The values to compare: of one layer, or of all that is trained.
    fn compared(
        &self,
        state: &State,
        gradients: &[Params],
    ) -> Result<Vec<Range<usize>>, DecideError> {
        let layout = gradients[0].layout();
        match self.layer(state, gradients)? {
            Some(layer) => {
                let layer = layers(layout).into_iter().nth(layer);
                let fewer = || DecideError::unusable("the model has fewer layers than it had");
                Ok(layer.ok_or_else(fewer)?.ranges)
            }
            None => Ok(layout.trained_ranges().collect()),
        }
    }

    /// The α of these entries.
    fn alpha(&self, manifest: &LoadedManifest) -> Result<Alpha, DecideError> {
        let Alpha::Each(alphas) = &self.options.alpha else {
            return Ok(self.options.alpha.clone());
        };
        let of = |(entry, one): (usize, &ModelEntry)| {
            let own = one
                .member
                .and_then(|member| alphas.get(usize::from(member)));
            own.copied().ok_or_else(|| DecideError::Unusable {
                entry,
                reason: "it names no member that has an α".into(),
            })
        };
        let each: Result<_, _> = manifest.entries.iter().enumerate().map(of).collect();
        Ok(Alpha::Each(each?))
    }

    fn utility(&self, state: &State, manifest: &LoadedManifest) -> Result<Utility, DecideError> {
        manifest.require_rows()?;
        let gradients = self.gradients(state, manifest)?;
        let compared = self.compared(state, &gradients)?;
        let rows = manifest
            .entries
            .iter()
            .map(|entry| entry.weight.unwrap_or(0));
        utility(
            &gradients,
            &compared,
            &rows.collect::<Vec<_>>(),
            &self.alpha(manifest)?,
        )
    }

    fn case(&self, state: &State, manifest: &LoadedManifest) -> Result<HcctCase, DecideError> {
        let utility = self.utility(state, manifest)?;
        let groups = self.options.groups.number().unwrap_or(0);
        Ok(HcctCase {
            // An absent silo must not cost the others their round.
            groups: (groups > 0).then(|| groups.min(utility.len())),
            utility,
        })
    }
}

/// The silos of a round, to be merged into groups.
struct HcctCase {
    utility: Utility,
    /// Number of groups that is asked for, if any.
    groups: Option<usize>,
}

/// Utility is to be large, objectives small: an objective is the negative of a total utility.
impl Search for HcctCase {
    fn entries(&self) -> usize {
        self.utility.len()
    }

    fn best(&self) -> Result<(Vec<u32>, f64), DecideError> {
        let until = self.groups.map_or(Until::NoGain, Until::Groups);
        let merged = self.utility.merge(until);
        let best = merged.expect("between one group and one per silo").grouping;
        Ok((best.assignment, -best.total))
    }

    fn objective(&self, grouping: &[u32]) -> Result<f64, String> {
        let groups = grouping.iter().max().map_or(0, |&last| last as usize + 1);
        if self.groups.is_some_and(|asked| asked != groups) {
            return Err(self.rule());
        }
        Ok(-self.utility.grouping(grouping).total)
    }

    fn lower_bound(&self) -> f64 {
        -self.utility.most()
    }

    fn same(&self, a: f64, b: f64) -> bool {
        same(a, b)
    }

    fn rule(&self) -> String {
        format!(
            "expected a grouping of {} entries into the agreed number of groups, numbered in the \
             order of their first entries",
            self.entries()
        )
    }
}

/// Returns what a training changed, `start − model`; the learning rate is the same for all and cancels.
fn gradient(start: &Params, model: &Params) -> Params {
    Params::build(model.layout(), |into| {
        let pairs = start.values().iter().zip(model.values());
        for (into, (start, model)) in into.iter_mut().zip(pairs) {
            // A model at the edges of `f32` must not cost the other silos their round.
            *into = (start - model).clamp(f32::MIN, f32::MAX);
        }
    })
}

/// The inner products of these gradients, compared by these values: the same bits at every member.
fn inner_products(gradients: &[Params], compared: &[Range<usize>]) -> Result<Matrix, DecideError> {
    let part = |gradient: &Params| -> Vec<f32> {
        let values = compared
            .iter()
            .flat_map(|range| &gradient.values()[range.clone()]);
        values.copied().collect()
    };
    let parts: Vec<_> = gradients.iter().map(part).collect();
    let parts = Vectors::new(&parts).map_err(DecideError::unusable)?;
    gram_f64(&parts).map_err(DecideError::unusable)
}

/// The utility of groups of silos with these gradients, compared by these values.
fn utility(
    gradients: &[Params],
    compared: &[Range<usize>],
    rows: &[u64],
    alpha: &Alpha,
) -> Result<Utility, DecideError> {
    let gram = inner_products(gradients, compared)?;
    Utility::new(&gram, rows, alpha).map_err(DecideError::unusable)
}

/// Returns whether two utilities are the same but for rounding.
pub(crate) fn same(a: f64, b: f64) -> bool {
    let size = 1.0 + a.abs().max(b.abs());
    size.is_finite() && (a - b).abs() <= 1e-9 * size
}

impl Strategy for Merging {
    fn name(&self) -> &'static str {
        self.name
    }

    fn names(&self) -> Names {
        match self.options.alpha {
            Alpha::Each(_) => Names::Shown,
            Alpha::Own | Alpha::Share(_) | Alpha::Common(_) => Names::Removed,
        }
    }

    fn keeps_numbers(&self, round: u64) -> bool {
        self.frozen(round)
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            weights: true,
            ..Plan::everyone(state, Task::Train(self.setting.training.clone()))
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
        let own = participant.coalition as usize;
        let start = match next::starts(state).get(own) {
            Some(start) => start,
            None => participant.start(state)?,
        };
        let update = participant.carry_out(&plan.task, start, progress)?;
        Ok((participant.coalition, update))
    }

    fn admit(&self, entry: &ModelEntry, _: u64) -> Result<(), String> {
        entry.admit_rows(true)
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
        let new = self.case(state, manifest)?.decide()?;
        if self.replaces(state, manifest, &new) {
            Ok(new)
        } else {
            Ok(Decision::fixed(kept(state, manifest)?))
        }
    }

    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        if self.frozen(round) {
            return None;
        }
        Some(self.utility(state, &manifest()?).ok()?.tree())
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection> {
        if self.frozen(round) {
            return decision.must_be_fixed(&kept(state, manifest)?, regroup::KEEPS);
        }
        let case = self.case(state, manifest)?;
        if decision.claim.is_some() {
            case.check(decision)?;
            return self.may_replace(state, manifest, decision);
        }
        decision.must_be_fixed(&kept(state, manifest)?, regroup::KEEPS)?;
        self.may_keep(state, manifest, &case.decide()?)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        manifest.require_rows()?;
        let rows = |entry: &ModelEntry| entry.weight.unwrap_or(0) as f64;
        let rule = &self.setting.rule;
        let assignment = &decision.assignment;
        if self.frozen(round) || decision.claim.is_none() {
            let own = kept(state, manifest)?;
            if *assignment != own {
                return Err(SettleError::Infeasible(regroup::KEEPS.into()));
            }
            return next::stay(rule, state, manifest, own);
        }
        let mut state = state.clone();
        self.remember(&mut state, manifest, decision);
        if let Some(layer) = self.layer(&state, &self.gradients(&state, manifest)?)? {
            state.memory.insert(LAYER, Kept::Count(layer as u64));
        }
        let alpha = self.alpha(manifest)?;
        LastGroups::of(&state, manifest, assignment, alpha)?.keep(&mut state);
        match self.options.grouping {
            When::Trained => {
                let groups = assignment.iter().max().map_or(0, |&last| last as usize + 1);
                let groups = groups.min(manifest.entries.len());
                let models = coalition_means(rule, manifest, assignment, &[], groups, rows)?;
                Ok(Outcome {
                    assignment: assignment.clone(),
                    state: state.with(models),
                })
            }
            When::Paper => next::go_on(rule, state, manifest, assignment),
        }
    }

    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        self.admit_newcomer(state, round, newcomer)
    }
}
