//! What TFL, DRFA and AFL have in common: one model that is made for the worst mixture of members,
//! `min_θ max_λ Σ λ_k·f_k(θ) − q·D(λ‖p)`.

use std::sync::Arc;

use crate::learner::{LearnError, Learner, Task, Training};
use crate::params::{Layout, Params, weighted_mean};
use crate::strategy::server::means::{fits, given, must_be};
use crate::strategy::server::one_model::client_sampling::Turnout;
use crate::strategy::server::one_model::tfl::Learning;
use crate::strategy::wrappers::report::Reported;
use crate::strategy::{
    DecideError, Decision, Entry, EquipError, Names, Objection, Outcome, Place, Plan, SettleError,
    Sheet, Start, State, Strategy,
};
use crate::topology::{Ascent, AscentError, Sample, Weights, sampled_losses, uniform};

/// Silos say how large the loss of the model is that they start from.
const REPORT: Reported = Reported(&["loss"]);

/// One model for all; λ climbs towards the members that lose most.
///
/// A loss is that of the round's start model. Where everybody trains, λ climbs first and then
/// weighs what was trained from that same model: as in the paper, where the losses are measured in
/// an exchange of their own at the end of the round before. Where members are drawn, the draw comes
/// before the losses, so that λ is one round older than in the paper.
pub(crate) struct Minimax {
    pub(crate) name: &'static str,
    pub(crate) training: Training,
    /// Number of members.
    pub(crate) members: usize,
    pub(crate) turnout: Turnout,
    pub(crate) ascent: Ascent,
    /// What the ascent's rate is multiplied by from round to round.
    pub(crate) decay: f64,
    /// Where the prior comes from; uniform without.
    pub(crate) learning: Option<Learning>,
}

/// A contribution, read.
pub(crate) struct Contribution {
    pub(crate) member: usize,
    pub(crate) model: Params,
    loss: f64,
}

impl Minimax {
    /// Name of something in the state.
    fn key(&self, what: &str) -> String {
        format!("{}.{what}", self.name)
    }

    /// One number per member; `None` before the first round.
    fn remembered(&self, state: &State, what: &str) -> Option<Vec<f64>> {
        let values = state.memory.get(&self.key(what))?;
        (values.len() == self.members).then(|| values.clone())
    }

    fn prior(&self, state: &State) -> Vec<f64> {
        let known = self.remembered(state, "prior");
        known.unwrap_or_else(|| uniform(self.members))
    }

    fn weights(&self, state: &State) -> Weights {
        let known = |what| {
            let known = self.remembered(state, what);
            known.unwrap_or_else(|| uniform(self.members))
        };
        Weights {
            lambda: known("lambda"),
            // Without a topology the two are the same.
            without_topology: match self.learning {
                Some(_) => known("lambda-uniform"),
                None => known("lambda"),
            },
        }
    }

    /// Who trains, by the weights of the state.
    fn trains(&self, state: &State, round: u64) -> Option<Sample> {
        let start = state.models.first()?;
        let lambda = self.weights(state).lambda;
        Some(self.turnout.trains(&lambda, start, round))
    }

    /// The member and what it reports, or in one sentence why the entry is unusable.
    fn read(&self, entry: &Entry) -> Result<Contribution, String> {
        let member = entry.member.map(usize::from);
        let member = member.ok_or("it does not say whose it is, and this strategy needs names")?;
        if member >= self.members {
            let members = self.members;
            return Err(format!("it is of member {member}, of {members} from 0"));
        }
        let (model, report) = REPORT.read(entry);
        match report[..] {
            [loss] if loss.is_finite() => Ok(Contribution {
                member,
                model,
                loss,
            }),
            _ => Err("it lacks the loss of the start model, a finite number".into()),
        }
    }

    /// All of them, by member, ascending.
    fn contributions(&self, sheet: &Sheet) -> Result<Vec<Contribution>, DecideError> {
        if sheet.entries.is_empty() {
            return Err(DecideError::NoEntries);
        }
        let mut all = Vec::with_capacity(sheet.entries.len());
        let mut seen = vec![false; self.members];
        for (entry, one) in sheet.entries.iter().enumerate() {
            let unusable = |reason| DecideError::Unusable { entry, reason };
            let one = self.read(one).map_err(unusable)?;
            if std::mem::replace(&mut seen[one.member], true) {
                return Err(unusable("another one is of the same member".into()));
            }
            all.push(one);
        }
        all.sort_by_key(|one| one.member);
        Ok(all)
    }

    /// The weights after the losses of a round.
    ///
    /// Who is away keeps its λ exactly: the others divide anew, by one step among themselves, what
    /// they have together. Under losses of a sample the step is over all, as in DRFA; if nobody of
    /// the sample is there, none is taken.
    fn climb(
        &self,
        weights: Weights,
        prior: &[f64],
        told: &[(usize, f64)],
        sampled: bool,
        round: u64,
    ) -> Result<Weights, AscentError> {
        let decay = libm::pow(self.decay, (round - 1) as f64);
        let ascent = Ascent {
            rate: self.ascent.rate * decay,
            ..self.ascent
        };
        if told.is_empty() {
            return Ok(weights);
        }
        if sampled {
            let losses = sampled_losses(self.members, told);
            let losses = losses.expect("members are in their range, and nobody tells twice");
            return weights.step(&ascent, prior, &losses);
        }
        let (present, losses): (Vec<usize>, Vec<f64>) = told.iter().copied().unzip();
        if present.len() == self.members {
            return weights.step(&ascent, prior, &losses);
        }
        let among = Weights {
            lambda: shared(&weights.lambda, &present),
            without_topology: shared(&weights.without_topology, &present),
        };
        let next = among.step(&ascent, &shared(prior, &present), &losses)?;
        Ok(Weights {
            lambda: among_all(weights.lambda, &present, &next.lambda),
            without_topology: among_all(weights.without_topology, &present, &next.without_topology),
        })
    }

    /// What is to be remembered of weights, prior and graph.
    fn remember(&self, state: &mut State, weights: &Weights, prior: Vec<f64>) {
        let diagnostics = weights.diagnostics();
        let mut put = |what: &str, values| drop(state.memory.insert(self.key(what), values));
        put("lambda", weights.lambda.clone());
        put("effective", vec![diagnostics.effective_clients]);
        if self.learning.is_some() {
            put("lambda-uniform", weights.without_topology.clone());
            put("tv", vec![diagnostics.topology_effect]);
            put("prior", prior);
        }
    }
}

/// The part of a distribution that these members have, as one over them; uniform if they have
/// nothing.
fn shared(all: &[f64], present: &[usize]) -> Vec<f64> {
    let total: f64 = present.iter().map(|&member| all[member]).sum();
    if total > 0.0 {
        present.iter().map(|&member| all[member] / total).collect()
    } else {
        uniform(present.len())
    }
}

/// The distribution in which these members share anew, by `among`, what they have together.
pub(crate) fn among_all(mut all: Vec<f64>, present: &[usize], among: &[f64]) -> Vec<f64> {
    let total: f64 = present.iter().map(|&member| all[member]).sum();
    for (&member, share) in present.iter().zip(among) {
        all[member] = total * share;
    }
    all
}

/// The mean of the models of those who were to train and did, by the weights of `drawn` among
/// them: all alike if none of them has any, and `before` if there are none.
fn mean(drawn: &Sample, all: &[Contribution], before: &Params) -> Result<Params, SettleError> {
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

impl Strategy for Minimax {
    fn name(&self) -> &'static str {
        self.name
    }

    fn names(&self) -> Names {
        Names::Shown
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        if let Some(learning) = &self.learning {
            learning.suits(&learner.layout())?;
        }
        REPORT.equip(learner)
    }

    fn plan(&self, state: &State, round: u64) -> Plan {
        let start = state.models.first();
        let told = start.and_then(|start| self.turnout.tells(self.members, start, round));
        let participants = told.zip(self.trains(state, round)).map(|(told, drawn)| {
            let mut all = [told, drawn.clients].concat();
            all.sort_unstable();
            all.dedup();
            all.into_iter().map(|member| member as u16).collect()
        });
        Plan {
            participants,
            starts: state.models.iter().map(|model| model.hash()).collect(),
            task: Task::Train(self.training.clone()),
            cross_evaluate: false,
            weights: false,
        }
    }

    fn start(
        &self,
        state: &State,
        plan: &Plan,
        round: u64,
        place: Place<'_>,
    ) -> Result<Start, LearnError> {
        let none = || LearnError::Failed("there is no model to start from".into());
        let model = state.models.first().ok_or_else(none)?;
        let drawn = self.trains(state, round).ok_or_else(none)?;
        let trains = drawn.clients.contains(&place.member.into());
        Ok(Start {
            model: model.clone(),
            coalition: 0,
            task: match trains {
                true => plan.task.clone(),
                false => Task::Keep,
            },
        })
    }

    fn expects(&self, model: &Arc<Layout>, _: Option<&Arc<Layout>>, _: u64) -> Arc<Layout> {
        REPORT.contribution(model)
    }

    fn admit(&self, entry: &Entry, _: u64) -> Result<(), String> {
        self.read(entry).map(drop)
    }

    fn decide(&self, _: &State, sheet: &Sheet, _: u64) -> Result<Decision, DecideError> {
        let all = self.contributions(sheet)?;
        Ok(given(vec![0; all.len()]))
    }

    fn check(
        &self,
        _: &State,
        sheet: &Sheet,
        decision: &Decision,
        _: u64,
    ) -> Result<(), Objection> {
        let all = self.contributions(sheet)?;
        must_be(
            decision,
            &vec![0; all.len()],
            "everybody belongs to coalition 0",
        )
    }

    fn settle(
        &self,
        state: &State,
        sheet: &Sheet,
        decision: &Decision,
        round: u64,
    ) -> Result<Outcome, SettleError> {
        fits(sheet, &decision.assignment)?;
        let all = self.contributions(sheet)?;
        let impossible = |error: &dyn ToString| SettleError::Infeasible(error.to_string());
        let start = state.models.first();
        let start = start.ok_or_else(|| impossible(&"there is no model to start from"))?;

        let tells = self.turnout.tells(self.members, start, round);
        let counts = |one: &&Contribution| match &tells {
            None => true,
            Some(drawn) => drawn.contains(&one.member),
        };
        let told = all.iter().filter(counts).map(|one| (one.member, one.loss));
        let told: Vec<_> = told.collect();
        let climb = |weights, prior: &[f64]| {
            let climbed = self.climb(weights, prior, &told, tells.is_some(), round);
            climbed.map_err(|error| impossible(&error))
        };

        let (mut weights, mut prior) = (self.weights(state), self.prior(state));
        let mut after = state.clone();
        let everybody = self.turnout.is_everybody();
        // No weights have made the initial model: its losses do not move them.
        if everybody && round > 1 {
            weights = climb(weights, &prior)?;
        }
        let drawn = self.turnout.trains(&weights.lambda, start, round);
        after.models = vec![mean(&drawn, &all, start)?];
        if let Some(learning) = &self.learning {
            let learned = learning.round(&mut after, start, &all, &drawn, &prior, round);
            prior = learned.map_err(|error| impossible(&error))?;
        }
        if !everybody {
            weights = climb(weights, &prior)?;
        }
        self.remember(&mut after, &weights, prior);
        Ok(Outcome {
            assignment: decision.assignment.clone(),
            state: after,
        })
    }
}
