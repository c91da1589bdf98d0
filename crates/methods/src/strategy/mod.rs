//! A strategy is one federated learning method, written as pure functions of what all members
//! know, so that any member can lead any round and every member can check the result.
//!
//! This folder holds the contract: [`Strategy`] and what passes through it, from the [`Plan`] of
//! a round over the [`LoadedManifest`] of contributions and the lead's [`Decision`] to the [`Outcome`].
//! The methods are in folders of their own:
//!
//! - `server`: methods that differ in what is computed from the contributions. `one_model` makes
//!   one model for all members, `groups` several models and who belongs to which.
//! - `client`: methods that differ in what a silo does with its own data.
//! - `wrappers`: changes that are put around any strategy, or around any learner.
//! - `catalogue`: the list of all methods, their options, and how they are built from a file.

mod assign_and_aggregate;
mod catalogue;
mod client;
mod decision;
mod draws;
mod equip_error;
mod fitting;
mod manifest;
mod max_weight;
mod memory;
mod newcomer;
mod options;
mod outcome;
mod participant;
mod plan;
mod search;
mod server;
mod state;
mod statistics;
pub(crate) mod wrappers;

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::learner::{LearnError, Learner, Update};
use crate::merging::MergeTree;
use crate::params::{Layout, Params};

pub use assign_and_aggregate::AssignAndAggregate;
pub use catalogue::config::StrategyConfig;
pub use catalogue::methods::{Method, STRATEGIES, drafted_options};
pub use catalogue::sees::{NoisedUse, StrategyView};
pub use catalogue::{StrategyInfo, StrategyOptions, build, described};
pub use client::apfl::Apfl;
pub use client::ditto::Ditto;
pub use client::fedala::FedAla;
pub use client::fedcg::{
    AdjacencyStart, Assignment, Branches, FedCg, Graphs, LayerKind, Mixing, Neighbours, findings,
};
pub use client::feddyn::FedDyn;
pub use client::fedprox::FedProx;
pub use client::fedrep::FedRep;
pub use client::fedsr::FedSr;
pub use client::pfedme::PFedMe;
pub use client::robust_local::RobustLocal;
pub use client::scaffold::Scaffold;
pub use decision::{Claim, DecideError, Decision, Objection};
pub use draws::SAMPLING_SEED;
pub use equip_error::EquipError;
pub use fitting::{FitRule, Fitting};
pub use manifest::{LoadedManifest, ModelEntry, Scores, ScoresError};
pub use max_weight::capped;
pub use memory::{Edges, Kept, Memory};
pub use newcomer::{Newcomer, least_loss};
pub use options::StrategyError;
pub use outcome::{Outcome, SettleError};
pub use participant::{OwnRadius, Participant, Scored, Watch};
pub use plan::{Names, Plan};
pub use server::groups::cfl::Cfl;
pub use server::groups::cs_rcfl::CsRcfl;
pub use server::groups::cs_rcfl_auto::{AutoCsRcfl, MOST};
pub use server::groups::cs_rcfl_options::{Auto, Coalitions, CsRcflOptions};
pub use server::groups::custom::{Custom, CustomRule, GroupCoefficients, SeenRound, provide_rule};
pub use server::groups::fedcollab::{FedCollab, Learned, Penalty};
pub use server::groups::fesem::Fesem;
pub use server::groups::flsc::Flsc;
pub use server::groups::hcct::{Hcct, HcctE, Regroup, When};
pub use server::groups::ifca::Ifca;
pub use server::groups::local::{Local, LocalOptions};
pub use server::groups::multi_model::{First, InitialModels};
pub use server::groups::pfedgraph::{PFedGraph, Since};
pub use server::one_model::afl::Afl;
pub use server::one_model::client_sampling::{Losses, Participants};
pub use server::one_model::drfa::Drfa;
pub use server::one_model::fedavg::{Averaging, FedAvg, FedAvgOptions, WeightRule};
pub use server::one_model::fedfa::{FedFa, Information};
pub use server::one_model::fednova::FedNova;
pub use server::one_model::fedopt::FedOpt;
pub use server::one_model::hierarchical::Hierarchical;
pub use server::one_model::maxfl::{Appeal, MaxFl};
pub use server::one_model::superquantile::Superquantile;
pub use server::one_model::tfl::Tfl;
pub use state::State;
pub use statistics::{StatisticsAccount, statistics_in_vain};
pub use wrappers::altered_decisions::with_altered_decisions;
pub use wrappers::asking::{
    AnswerWords, LARGEST_WORD, LAST_QUESTION, QuestionRounds, QuestionState, QuestionsFirst,
    REFUSAL_RULES, answer_size, asked_in_vain,
};
pub use wrappers::participation::Participation;
pub use wrappers::personal_layers::{INTERCEPT, LAST_LAYER, NORM_LAYERS};
pub use wrappers::standardise::{
    DEVIATION, MEAN, REST, SCALE, SUM_REST, Standardised, split_double,
};
pub use wrappers::stopping::{Measure, Stop};
pub use wrappers::warm_start::{WarmStartError, shared_part, warm_started};

/// One method: what members train, who learns with whom, and which models all members adopt.
pub trait Strategy: Send + Sync {
    /// The name people use on the command line.
    fn name(&self) -> &'static str;

    /// The strategy inside, where this one adds to another: all that has a default is then that one's, but for
    /// what this one defines itself. None by default.
    fn inner(&self) -> Option<&dyn Strategy> {
        None
    }

    /// Returns whether its state is keyed by member.
    fn names(&self) -> Names {
        self.inner().map_or(Names::Removed, |inner| inner.names())
    }

    /// Returns whether plans may name some of the members only. Which, follows from the state, so it cannot be
    /// read off the chain.
    fn draws_members(&self) -> bool {
        self.inner().is_some_and(|inner| inner.draws_members())
    }

    /// Returns what a silo learns with under this strategy: its own learner, with all that the method needs
    /// at the silo behind the same contract (a changed objective, control variates, personal
    /// layers). Everything that meets models of the federation uses the equipped learner: the
    /// initial model, training, evaluation. By default as it is.
    ///
    /// # Errors
    /// [`EquipError`] if the strategy cannot work with a model of this layout, or the learner lacks
    /// a capability that it needs.
    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        match self.inner() {
            Some(inner) => inner.equip(learner),
            None => Ok(learner),
        }
    }

    /// Refuses a silo that cannot take part with this [equipped](Self::equip) learner, though it
    /// could use the federation's models: where silos measure losses within their robustness
    /// radius, or need to know the domain of their rows. By default every silo can.
    ///
    /// # Errors
    /// [`EquipError`]: what the silo lacks.
    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        match self.inner() {
            Some(inner) => inner.can_take_part(learner, radius),
            None => Ok(()),
        }
    }

    /// The state before the first round: the same bits at every member. By default one coalition, with
    /// the initial model of the [equipped](Self::equip) learner.
    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        match self.inner() {
            Some(inner) => inner.initial_state(learner, seed),
            None => State::genesis(learner.initial(seed)),
        }
    }

    /// Returns what round `round` (from 1) asks of the members.
    fn plan(&self, state: &State, round: u64) -> Plan;

    /// A silo's part in a round: what it contributes, and the coalition that its entry names. By
    /// default it carries out the task of the plan from its own coalition's model.
    ///
    /// # Errors
    /// [`LearnError`] if its learner cannot.
    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        if let Some(inner) = self.inner() {
            return inner.contribute(state, plan, round, participant, progress);
        }
        let update = participant.carry_out(&plan.task, participant.start(state)?, progress)?;
        Ok((participant.coalition, update))
    }

    /// The self-reported loss of an entry's model on a silo's data, where the plan
    /// [cross-evaluates](Plan::cross_evaluate). By default the robust loss within its radius.
    ///
    /// # Errors
    /// [`LearnError`] if its learner cannot compute it.
    fn score(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        match self.inner() {
            Some(inner) => inner.score(state, plan, round, participant, scored),
            None => participant.robust_loss(scored),
        }
    }

    /// Returns whether the outcome of a round numbers its coalitions as the state before did, so that a
    /// silo without an entry in it stays where it was.
    fn keeps_numbers(&self, round: u64) -> bool {
        self.inner().is_some_and(|inner| inner.keeps_numbers(round))
    }

    /// Layout of the contributions of a round, given the state before it and the model's layout; one
    /// of [`layouts`](Self::layouts).
    fn expects(
        &self,
        state: &State,
        model: &Arc<Layout>,
        summary: Option<&Arc<Layout>>,
        round: u64,
    ) -> Arc<Layout> {
        match self.inner() {
            Some(inner) => inner.expects(state, model, summary, round),
            None => model.clone(),
        }
    }

    /// All layouts that contributions of any round can have: a parameter set has to allow the largest of
    /// them. By default the model's.
    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        match self.inner() {
            Some(inner) => inner.layouts(model, summary),
            None => vec![model.clone()],
        }
    }

    /// Returns whether a contribution that passed the [`Gate`](crate::params::Gate) may enter the contribution list
    /// of a round. A lead asks before it gives a receipt, so that one unusable contribution is
    /// refused by itself and does not cost all members the round.
    ///
    /// # Errors
    /// In one sentence, what is wrong with it.
    fn admit(&self, entry: &ModelEntry, round: u64) -> Result<(), String> {
        match self.inner() {
            Some(inner) => inner.admit(entry, round),
            None => Ok(()),
        }
    }

    /// The same, of a round that the state before it tells from others, and not its number alone. By default
    /// [`admit`](Self::admit).
    ///
    /// # Errors
    /// In one sentence, what is wrong with it.
    fn admit_after(&self, state: &State, entry: &ModelEntry, round: u64) -> Result<(), String> {
        let _ = state;
        self.admit(entry, round)
    }

    /// The lead's choice. May use any effort; need not be the same on every machine.
    ///
    /// # Errors
    /// [`DecideError`] if the manifest admits no decision.
    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError>;

    /// The merges that lead to groups of the entries of a manifest, for those who look at a run; no round needs
    /// them. `None` where entries are not merged, or no groups are formed in this round: then `manifest` is not
    /// asked for, because making it takes reading all models.
    fn merge_tree(
        &self,
        state: &State,
        manifest: &dyn Fn() -> Option<LoadedManifest>,
        round: u64,
    ) -> Option<MergeTree> {
        self.inner()?.merge_tree(state, manifest, round)
    }

    /// Returns whether a member accepts a decision: feasible, with a true claim, and nothing better found.
    /// Tolerant of last bits.
    ///
    /// # Errors
    /// [`Objection`]: the reason for refusing it.
    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<(), Objection>;

    /// The outcome of a decision: a fixed order of operations, the same bits everywhere.
    ///
    /// # Errors
    /// [`SettleError`] if decision and manifest do not fit each other.
    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError>;

    /// The norm by which one row changes the sum of the next round at most, where a question is asked in it and silos
    /// add noise; `None` in every other round.
    fn row_norm(&self, state: &State) -> Option<f64> {
        let _ = state;
        None
    }

    /// The account of the numbers that sums open, where silos contribute integers that add up ([`AnswerWords`]) and no
    /// models; `None` for all other strategies. `rounds` are the next one and all after it.
    fn statistics(&self, state: &State, rounds: RangeInclusive<u64>) -> Option<StatisticsAccount> {
        self.inner()?.statistics(state, rounds)
    }

    /// The state after a round that told nothing: without contributions, or with sums that are void. By default as it
    /// was before the round.
    fn nothing_told(&self, state: &State, round: u64) -> State {
        match self.inner() {
            Some(inner) => inner.nothing_told(state, round),
            None => state.clone(),
        }
    }

    /// Returns whether no round that learns follows on this state, though the federation may not
    /// [end](Self::ends) with it: members may have something to answer yet. By default where it ends.
    fn has_learned(&self, state: &State) -> bool {
        let inner = || self.inner().is_some_and(|inner| inner.has_learned(state));
        self.ends(state) || inner()
    }

    /// Returns whether the federation ends with this state, before the last round of its parameter set. By default
    /// it does not.
    fn ends(&self, state: &State) -> bool {
        self.inner().is_some_and(|inner| inner.ends(state))
    }

    /// The model for a silo that took no part, given the last state and the number of the round
    /// after it: by default the one with the least loss on its own training rows.
    ///
    /// # Errors
    /// [`LearnError`] if it trains for that and cannot.
    fn unseen(
        &self,
        state: &State,
        round: u64,
        newcomer: Newcomer<'_>,
    ) -> Result<Params, LearnError> {
        match self.inner() {
            Some(inner) => inner.unseen(state, round, newcomer),
            None => newcomer.best_model(state, None),
        }
    }
}

/// Layout of what [`Task::Summarise`](crate::Task::Summarise) contributes, where the learner has
/// something to summarise.
pub fn summary_layout(learner: &dyn Learner) -> Option<Arc<Layout>> {
    let summaries = learner.summaries().ok()?;
    Some(summaries.summary_layout())
}

/// Returns what a silo that takes part learns with under a strategy: [`Strategy::equip`] and
/// [`Strategy::can_take_part`].
///
/// # Errors
/// [`EquipError`]: whatever would fail in a round otherwise.
pub fn equip(
    strategy: &dyn Strategy,
    learner: Arc<dyn Learner>,
    radius: &OwnRadius,
) -> Result<Arc<dyn Learner>, EquipError> {
    let learner = strategy.equip(learner)?;
    strategy.can_take_part(&*learner, radius)?;
    Ok(learner)
}

/// The most bytes that a silo contributes to a round: what a parameter set has to allow.
pub fn largest_contribution(strategy: &dyn Strategy, learner: &dyn Learner) -> u64 {
    let (model, summary) = (learner.layout(), summary_layout(learner));
    let layouts = strategy.layouts(&model, summary.as_ref());
    let sizes = layouts
        .iter()
        .chain([&model])
        .map(|layout| layout.document_len());
    sizes.max().unwrap_or(0) as u64
}

#[cfg(test)]
mod tests;
