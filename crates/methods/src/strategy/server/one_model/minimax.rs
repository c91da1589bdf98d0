//! What TFL, DRFA and AFL have in common: one model for the worst mixture of members,
//! `min_θ max_λ Σ λ_k·f_k(θ) − q·D(λ‖p)`.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Task, Training, Update};
use crate::params::{Layout, Params, weighted_mean};
use crate::strategy::server::one_model::client_sampling::ClientSampling;
use crate::strategy::server::one_model::members::{MemberContribution, redistributed, restricted};
use crate::strategy::server::one_model::topology_prior::TopologyPrior;
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::{
    AssignAndAggregate, DecideError, EquipError, Kept, LoadedManifest, ModelEntry, Names,
    Participant, Plan, SettleError, State, Watch, draws,
};
use crate::topology::{Ascent, AscentError, Sample, Weights, sampled_losses, uniform};

/// Silos report the loss of the model that they start from.
const REPORT: ReportMetrics = ReportMetrics(&["loss"]);

/// One model for all; λ climbs towards the members that lose most.
///
/// A loss is that of the round's start model. Where all members train, λ climbs first and then
/// weighs what was trained from that same model: as in the paper, where the losses are measured in
/// an exchange of their own at the end of the round before. Where members are drawn, the draw comes
/// before the losses, so that λ is one round older than in the paper.
pub(crate) struct Minimax {
    pub(crate) name: &'static str,
    pub(crate) training: Training,
    /// Number of members.
    pub(crate) members: usize,
    pub(crate) sampling: ClientSampling,
    pub(crate) ascent: Ascent,
    /// What the ascent's rate is multiplied by from round to round.
    pub(crate) decay: f64,
    /// Where the prior comes from; uniform without.
    pub(crate) learned_prior: Option<TopologyPrior>,
}

/// What the state keeps of the weights of members.
struct Mixture {
    weights: Weights,
    /// p; uniform where it is not learned.
    prior: Vec<f64>,
}

impl Minimax {
    /// Name of something in the state.
    fn key(&self, what: &str) -> String {
        format!("{}.{what}", self.name)
    }

    /// The distributions that the state keeps; uniform before the first round.
    fn mixture(&self, state: &State) -> Mixture {
        let known = |what| {
            let known = state.memory.distribution(&self.key(what), self.members);
            known.map_or_else(|| uniform(self.members), <[f64]>::to_vec)
        };
        Mixture {
            weights: Weights {
                lambda: known("lambda"),
                // Without a topology the two are the same.
                without_topology: match self.learned_prior {
                    Some(_) => known("lambda-uniform"),
                    None => known("lambda"),
                },
            },
            prior: known("prior"),
        }
    }

    /// Keeps the distributions in the state, with what a report shows of them.
    fn keep(&self, state: &mut State, mixture: Mixture) {
        let Mixture { weights, prior } = mixture;
        let diagnostics = weights.diagnostics();
        let mut put = |what: &str, value| state.memory.insert(self.key(what), value);
        put("effective", Kept::Number(diagnostics.effective_clients));
        put("lambda", Kept::Numbers(weights.lambda));
        if self.learned_prior.is_some() {
            put("lambda-uniform", Kept::Numbers(weights.without_topology));
            put("tv", Kept::Number(diagnostics.topology_effect));
            put("prior", Kept::Numbers(prior));
        }
    }

    /// Returns who trains, by the weights of the state.
    fn trains(&self, state: &State, round: u64) -> Sample {
        let lambda = self.mixture(state).weights.lambda;
        self.sampling.trains(&lambda, state, round)
    }

    /// The member and what it reports, or in one sentence why the entry is unusable.
    fn read(&self, entry: &ModelEntry) -> Result<MemberContribution, String> {
        let member = entry.member.map(usize::from);
        let member = member.ok_or("it names no member, and this strategy needs names")?;
        if member >= self.members {
            let members = self.members;
            return Err(format!(
                "it names member {member}, expected one below {members}"
            ));
        }
        let (model, report) = REPORT.split(entry);
        match report[..] {
            [loss] if loss.is_finite() => Ok(MemberContribution {
                member,
                model,
                loss,
            }),
            _ => Err("it lacks the loss of the start model, a finite number".into()),
        }
    }

    /// All of them, by member, ascending.
    fn contributions(
        &self,
        manifest: &LoadedManifest,
    ) -> Result<Vec<MemberContribution>, DecideError> {
        manifest.not_empty()?;
        let mut all = Vec::with_capacity(manifest.entries.len());
        let mut seen = vec![false; self.members];
        for (entry, one) in manifest.entries.iter().enumerate() {
            let unusable = |reason| DecideError::Unusable { entry, reason };
            let one = self.read(one).map_err(unusable)?;
            if std::mem::replace(&mut seen[one.member], true) {
                return Err(unusable("another entry is of the same member".into()));
            }
            all.push(one);
        }
        all.sort_by_key(|one| one.member);
        Ok(all)
    }

    /// The weights after the losses of a round.
    ///
    /// Absent members keep their λ; one step redistributes the total of those present. Under losses
    /// of a sample the step is over all members, as in DRFA; no step is taken if no member of the
    /// sample reported a loss.
    fn climb(
        &self,
        weights: Weights,
        prior: &[f64],
        reported: &[(usize, f64)],
        sampled: bool,
        round: u64,
    ) -> Result<Weights, AscentError> {
        let decay = libm::pow(self.decay, (round - 1) as f64);
        let ascent = Ascent {
            rate: self.ascent.rate * decay,
            ..self.ascent
        };
        if reported.is_empty() {
            return Ok(weights);
        }
        if sampled {
            let losses = sampled_losses(self.members, reported);
            let losses = losses.expect("members are in their range, and each reports once");
            return weights.step(&ascent, prior, &losses);
        }
        let (present, losses): (Vec<usize>, Vec<f64>) = reported.iter().copied().unzip();
        if present.len() == self.members {
            return weights.step(&ascent, prior, &losses);
        }
        let among = Weights {
            lambda: restricted(&weights.lambda, &present),
            without_topology: restricted(&weights.without_topology, &present),
        };
        let next = among.step(&ascent, &restricted(prior, &present), &losses)?;
        Ok(Weights {
            lambda: redistributed(weights.lambda, &present, &next.lambda),
            without_topology: redistributed(
                weights.without_topology,
                &present,
                &next.without_topology,
            ),
        })
    }
}

/// The mean of the models of those who were to train and did, by the weights of `drawn` among
/// them: all alike if none of them has any, and `before` if there are none.
fn mean(
    drawn: &Sample,
    all: &[MemberContribution],
    before: &Params,
) -> Result<Params, SettleError> {
    let share = |member| {
        let at = drawn.clients.binary_search(&member).ok()?;
        Some(drawn.shares[at])
    };
    let trained = all.iter().map(|one| Some((&one.model, share(one.member)?)));
    let mut models: Vec<(&Params, f64)> = trained.flatten().collect();
    if models.is_empty() {
        return Ok(before.clone());
    }
    let most = models.iter().map(|(_, share)| *share).fold(0.0, f64::max);
    for (_, share) in &mut models {
        // Of the largest, so that equal weights are exactly 1, as in a plain mean.
        *share = if most > 0.0 { *share / most } else { 1.0 };
    }
    Ok(weighted_mean(&models)?)
}

impl AssignAndAggregate for Minimax {
    fn name(&self) -> &'static str {
        self.name
    }

    fn names(&self) -> Names {
        Names::Shown
    }

    fn draws_members(&self) -> bool {
        !self.sampling.is_full_every_round()
    }

    fn training(&self) -> &Training {
        &self.training
    }

    fn initial_state(&self, learner: &dyn Learner, seed: u64) -> State {
        let state = State::genesis(learner.initial(seed));
        if AssignAndAggregate::draws_members(self) {
            draws::seeded(state, seed)
        } else {
            state
        }
    }

    fn participants(&self, state: &State, round: u64) -> Option<Vec<u16>> {
        let reporting = self.sampling.reports(self.members, state, round)?;
        let mut all = [reporting, self.trains(state, round).clients].concat();
        all.sort_unstable();
        all.dedup();
        Some(all.into_iter().map(|member| member as u16).collect())
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        if let Some(prior) = &self.learned_prior {
            prior.suits(&learner.layout())?;
        }
        REPORT.equip(learner)
    }

    /// Members that were not drawn measure the model and contribute it as it is.
    fn contribute(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        participant: Participant<'_>,
        progress: &mut Watch<'_>,
    ) -> Result<(u32, Update), LearnError> {
        let none = || LearnError::Failed("there is no model to start from".into());
        let start = state.models.first().ok_or_else(none)?;
        let drawn = self.trains(state, round);
        let task = if drawn.clients.contains(&participant.member.into()) {
            &plan.task
        } else {
            &Task::Keep
        };
        Ok((0, participant.carry_out(task, start, progress)?))
    }

    fn contribution(&self, model: &Arc<Layout>) -> Arc<Layout> {
        REPORT.contribution(model)
    }

    fn admit(&self, entry: &ModelEntry, _: u64) -> Result<(), String> {
        self.read(entry).map(drop)
    }

    fn assign(
        &self,
        _: &State,
        manifest: &LoadedManifest,
        _: u64,
    ) -> Result<Vec<u32>, DecideError> {
        Ok(vec![0; self.contributions(manifest)?.len()])
    }

    fn aggregate(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        _: &[u32],
        round: u64,
    ) -> Result<State, SettleError> {
        let all = self.contributions(manifest)?;
        let impossible = |error: &dyn ToString| SettleError::Infeasible(error.to_string());
        let start = state.models.first();
        let start = start.ok_or_else(|| impossible(&"there is no model to start from"))?;

        let reporting = self.sampling.reports(self.members, state, round);
        let counts = |one: &&MemberContribution| match &reporting {
            None => true,
            Some(drawn) => drawn.contains(&one.member),
        };
        let losses = all.iter().filter(counts).map(|one| (one.member, one.loss));
        let losses: Vec<_> = losses.collect();
        let climb = |weights, prior: &[f64]| {
            let climbed = self.climb(weights, prior, &losses, reporting.is_some(), round);
            climbed.map_err(|error| impossible(&error))
        };

        let Mixture {
            mut weights,
            mut prior,
        } = self.mixture(state);
        let mut after = state.clone();
        let all_train = self.sampling.is_full_every_round();
        // No weights have made the initial model: its losses do not move them.
        if all_train && round > 1 {
            weights = climb(weights, &prior)?;
        }
        let drawn = self.sampling.trains(&weights.lambda, state, round);
        after.models = vec![mean(&drawn, &all, start)?];
        if let Some(learned) = &self.learned_prior {
            let learned = learned.round(&mut after, start, &all, &drawn, &prior, round);
            prior = learned.map_err(|error| impossible(&error))?;
        }
        if !all_train {
            weights = climb(weights, &prior)?;
        }
        self.keep(&mut after, Mixture { weights, prior });
        Ok(after)
    }
}
