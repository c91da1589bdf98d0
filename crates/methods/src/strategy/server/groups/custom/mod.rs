//! A strategy of one's own: a rule outside of this program gives coefficients, and every member computes the
//! models from them.
//!
//! The rule sees what it needs of a round and returns whole numbers: to which group every entry belongs, and for
//! every group how much of each start model and of each entry its model has. It never returns models. So what a
//! lead decides can be read and computed again by everybody, whatever language the rule is written in.

mod coefficients;
mod combined;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::Matrix;
use crate::learner::{LearnError, Learner, Task, Training, Update};
use crate::params::{Layout, Params};
use crate::strategy::options::{MethodSetting, require};
use crate::strategy::server::means::kept;
use crate::strategy::wrappers::report::ReportMetrics;
use crate::strategy::wrappers::self_reported::{self, SelfReport};
use crate::strategy::{
    Claim, DecideError, Decision, EquipError, Kept, LoadedManifest, ModelEntry, Names, Objection,
    Outcome, OwnRadius, Participant, Plan, Scored, Scores, SettleError, State, Strategy,
    StrategyError,
};

pub use coefficients::GroupCoefficients;
use combined::combined;

/// Where the models that a rule keeps are remembered.
const KEPT: &str = "custom.kept";
/// Where the numbers that a rule keeps are remembered.
const NUMBERS: &str = "custom.numbers";
/// The rule that needs no process of its own: the mean of all entries.
const MEAN: &str = "mean";

/// Options of a strategy of one's own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Custom {
    /// The rule, by the name under which the process that runs the federation knows it, as `rota.simulate` of
    /// Python does; default `"mean"`, the mean of all members' models.
    pub rule: String,
    /// What the rule sees of a round: `"rows"`, the numbers of training rows; `"numbers:NAME"`, a number that silos
    /// report with their trainings, such as `"numbers:steps"`; `"gram"`, the inner products of the changes; `"scores"`,
    /// the losses of all models on the rows of all members; `"updates"`, the models; `"state"`, what it kept in
    /// the round before; `"names"`, whose entry is which. Default `["rows"]`.
    pub needs: Vec<String>,
}

impl Default for Custom {
    fn default() -> Self {
        Self {
            rule: MEAN.into(),
            needs: vec!["rows".into()],
        }
    }
}

/// What a rule sees of a round.
pub struct SeenRound<'a> {
    /// The round, from 1.
    pub round: u64,
    /// The models that silos started from, by group.
    pub starts: &'a [Params],
    /// The models that the rule kept.
    pub kept: &'a [Params],
    /// The contributed models, in the order of the entries.
    pub entries: Vec<Params>,
    /// The group that every entry started from.
    pub groups: Vec<u32>,
    /// Training rows of every entry, where they are needed.
    pub rows: Option<Vec<u64>>,
    /// The numbers that silos reported, by name and entry.
    pub reported: BTreeMap<String, Vec<f64>>,
    /// Inner products of the changes of all entries in what is trained, where they are needed.
    pub gram: Option<Matrix>,
    /// Losses of all models on all members' rows, where they are needed: rows are whose data.
    pub scores: Option<&'a Scores>,
    /// True if the rule looks at the models themselves.
    pub with_models: bool,
    /// Position of the member of every entry, where names are needed.
    pub members: Option<Vec<u16>>,
    /// The numbers that the rule kept.
    pub numbers: &'a [f64],
}

/// A rule that settles rounds.
pub trait CustomRule: Send + Sync {
    /// The coefficients of a round.
    ///
    /// # Errors
    /// In words, why it gives none.
    fn settle(&self, seen: &SeenRound<'_>) -> Result<GroupCoefficients, String>;
}

static RULES: LazyLock<Mutex<BTreeMap<String, Arc<dyn CustomRule>>>> =
    LazyLock::new(Mutex::default);

/// Makes a rule known in this process by a name, which strategies say.
pub fn provide_rule(name: impl Into<String>, rule: Arc<dyn CustomRule>) {
    let mut rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
    rules.insert(name.into(), rule);
}

/// The mean, weighed by rows where these are known.
struct MeanRule;

impl CustomRule for MeanRule {
    fn settle(&self, seen: &SeenRound<'_>) -> Result<GroupCoefficients, String> {
        let entries = seen.entries.len();
        let of = |entry: usize| seen.rows.as_ref().map_or(1, |rows| rows[entry] as i64);
        let before = seen.starts.len() + seen.kept.len();
        let group = std::iter::repeat_n(0, before).chain((0..entries).map(of));
        Ok(GroupCoefficients {
            assignment: vec![0; entries],
            groups: vec![group.collect()],
            kept: Vec::new(),
            numbers: Vec::new(),
        })
    }
}

impl Custom {
    pub(crate) fn build(&self, setting: MethodSetting) -> Result<Box<dyn Strategy>, StrategyError> {
        let known = ["rows", "gram", "scores", "updates", "state", "names"];
        let mut reported: Vec<&str> = Vec::new();
        for need in &self.needs {
            match need.strip_prefix("numbers:") {
                Some(name) if !name.is_empty() && !name.contains('.') => reported.push(name),
                _ => require(
                    known.contains(&need.as_str()),
                    "needs",
                    "\"rows\", \"numbers:NAME\", \"gram\", \"scores\", \"updates\", \"state\" or \"names\"",
                    format!("{need:?}"),
                )?,
            }
        }
        reported.sort_unstable();
        reported.dedup();
        // Names of reports are constants of a program everywhere else.
        let reported: Vec<&'static str> = reported
            .into_iter()
            .map(|name| &*Box::leak(Box::<str>::from(name)))
            .collect();
        let rules = RULES.lock().unwrap_or_else(PoisonError::into_inner);
        let rule = match &*self.rule {
            MEAN => Some(Arc::new(MeanRule) as Arc<dyn CustomRule>),
            name => rules.get(name).cloned(),
        };
        Ok(Box::new(ByRule {
            options: self.clone(),
            training: setting.training,
            report: ReportedNumbers(ReportMetrics(Box::leak(reported.into_boxed_slice()))),
            rule,
        }))
    }

    fn needs(&self, what: &str) -> bool {
        self.needs.iter().any(|need| need == what)
    }
}

/// The strategy of a rule.
struct ByRule {
    options: Custom,
    training: Training,
    report: ReportedNumbers,
    /// `None` where this process does not know it.
    rule: Option<Arc<dyn CustomRule>>,
}

/// The numbers that a silo reports, of those that its training gives.
#[derive(Clone, Copy)]
struct ReportedNumbers(ReportMetrics);

impl SelfReport for ReportedNumbers {
    fn report(&self) -> ReportMetrics {
        self.0
    }

    fn kept(&self) -> &'static [&'static str] {
        &[]
    }

    fn measure(
        &self,
        _: &dyn Learner,
        _: &Params,
        _: &Params,
        reached: &Update,
        _: &mut [f32],
    ) -> Result<Vec<f64>, LearnError> {
        self.0
            .0
            .iter()
            .map(|name| reached.metrics.get(name))
            .collect()
    }
}

impl ByRule {
    fn reports(&self) -> bool {
        !self.report.0.0.is_empty()
    }

    /// The model of an entry, and what was reported with it.
    fn split(&self, entry: &ModelEntry) -> (Params, Vec<f64>) {
        if self.reports() {
            self.report.0.split(entry)
        } else {
            (entry.model.clone(), Vec::new())
        }
    }

    /// The models that the rule kept, and its numbers.
    fn remembered<'a>(&self, state: &'a State) -> (&'a [Params], &'a [f64]) {
        let kept = state.tables.get(KEPT).map_or(&[][..], Vec::as_slice);
        let numbers = match state.memory.get(NUMBERS) {
            Some(Kept::Numbers(numbers)) => numbers.as_slice(),
            _ => &[],
        };
        (kept, numbers)
    }

    fn seen<'a>(
        &self,
        state: &'a State,
        manifest: &'a LoadedManifest,
        round: u64,
    ) -> Result<SeenRound<'a>, DecideError> {
        let options = &self.options;
        let (entries, reports): (Vec<_>, Vec<_>) = manifest
            .entries
            .iter()
            .map(|entry| self.split(entry))
            .unzip();
        let groups = kept(state, &models_only(manifest, &entries))?;
        let rows = options.needs("rows").then(|| {
            manifest.require_rows()?;
            Ok(manifest
                .entries
                .iter()
                .filter_map(|entry| entry.weight)
                .collect())
        });
        let scores = options.needs("scores").then(|| manifest.require_scores());
        let named = options.needs("names");
        let members = named.then(|| {
            manifest
                .entries
                .iter()
                .map(|entry| entry.member.unwrap_or(0))
        });
        let (kept, numbers) = self.remembered(state);
        Ok(SeenRound {
            round,
            starts: &state.models,
            kept,
            gram: options
                .needs("gram")
                .then(|| gram(&state.models, &entries, &groups)),
            entries,
            groups,
            rows: rows.transpose()?,
            reported: (0..)
                .zip(self.report.0.0)
                .map(|(at, name)| {
                    (
                        (*name).to_owned(),
                        reports.iter().map(|all| all[at]).collect(),
                    )
                })
                .collect(),
            scores: scores.transpose()?,
            with_models: options.needs("updates"),
            members: members.map(Iterator::collect),
            numbers,
        })
    }

    /// The coefficients of a decision, if they fit the round.
    fn settling(
        &self,
        state: &State,
        entries: usize,
        decision: &Decision,
    ) -> Result<GroupCoefficients, String> {
        let claim = decision.claim.as_ref().ok_or("it has no coefficients")?;
        if claim.objective != 0.0 || claim.lower_bound != 0.0 || claim.proof.is_some() {
            return Err("it claims an objective, and coefficients have none".into());
        }
        let settling = GroupCoefficients::decoded(&decision.assignment, &claim.candidates)?;
        let before = state.models.len() + self.remembered(state).0.len();
        settling.check(before, entries)?;
        Ok(settling)
    }
}

/// The manifest without what was reported.
fn models_only(manifest: &LoadedManifest, models: &[Params]) -> LoadedManifest {
    let entries = manifest.entries.iter().zip(models);
    LoadedManifest {
        entries: entries
            .map(|(entry, model)| ModelEntry {
                model: model.clone(),
                ..entry.clone()
            })
            .collect(),
        scores: None,
    }
}

/// Inner products of what every entry changed in the trained tensors of the model that it started from.
fn gram(starts: &[Params], entries: &[Params], groups: &[u32]) -> Matrix {
    let change = |(entry, group): (&Params, &u32)| -> Vec<f64> {
        let start = &starts[*group as usize];
        let places = entry.layout().trained_ranges().flatten();
        let (ends, begins) = (entry.values(), start.values());
        places
            .map(|at| f64::from(ends[at]) - f64::from(begins[at]))
            .collect()
    };
    let changes: Vec<_> = entries.iter().zip(groups).map(change).collect();
    let product = |a: usize, b: usize| -> f64 {
        let both = changes[a.min(b)].iter().zip(&changes[a.max(b)]);
        both.map(|(a, b)| a * b).sum()
    };
    Matrix::from_fn(changes.len(), changes.len(), product)
}

impl Strategy for ByRule {
    fn name(&self) -> &'static str {
        "custom"
    }

    fn names(&self) -> Names {
        if self.options.needs("names") {
            Names::Shown
        } else {
            Names::Removed
        }
    }

    fn equip(&self, learner: Arc<dyn Learner>) -> Result<Arc<dyn Learner>, EquipError> {
        if self.rule.is_none() {
            return Err(EquipError::Unsupported(format!(
                "the rule {:?} of the strategy custom is not known in this process: rota.simulate and rota.compare of \
                 Python provide it (`strategy=` an object of rota.Strategy), and nodes do not run rules of others yet",
                self.options.rule
            )));
        }
        if self.reports() {
            self_reported::equip(self.report, learner)
        } else {
            Ok(learner)
        }
    }

    fn can_take_part(&self, learner: &dyn Learner, radius: &OwnRadius) -> Result<(), EquipError> {
        if self.options.needs("scores") {
            radius.suits(learner)?;
        }
        Ok(())
    }

    fn plan(&self, state: &State, _: u64) -> Plan {
        Plan {
            cross_evaluate: self.options.needs("scores"),
            weights: self.options.needs("rows"),
            ..Plan::everyone(state, Task::Train(self.training.clone()))
        }
    }

    fn score(
        &self,
        _: &State,
        _: &Plan,
        _: u64,
        participant: Participant<'_>,
        scored: Scored<'_>,
    ) -> Result<f64, LearnError> {
        if !self.reports() {
            return participant.robust_loss(scored);
        }
        let model = self.report.0.model(scored.model);
        participant.robust_loss(Scored {
            model: &model,
            ..scored
        })
    }

    fn expects(
        &self,
        _: &State,
        model: &Arc<Layout>,
        _: Option<&Arc<Layout>>,
        _: u64,
    ) -> Arc<Layout> {
        if self.reports() {
            self.report.0.contribution(model)
        } else {
            model.clone()
        }
    }

    fn layouts(&self, model: &Arc<Layout>, summary: Option<&Arc<Layout>>) -> Vec<Arc<Layout>> {
        let _ = summary;
        let of = if self.reports() {
            self.report.0.contribution(model)
        } else {
            model.clone()
        };
        vec![of]
    }

    fn admit(&self, entry: &ModelEntry, _: u64) -> Result<(), String> {
        entry.admit_rows(self.options.needs("rows"))
    }

    fn decide(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        round: u64,
    ) -> Result<Decision, DecideError> {
        manifest.not_empty()?;
        let seen = self.seen(state, manifest, round)?;
        let unusable =
            |why: String| DecideError::unusable(format!("the rule {:?}: {why}", self.options.rule));
        let rule = self
            .rule
            .as_ref()
            .ok_or_else(|| unusable("it is not known in this process".into()))?;
        let settling = rule.settle(&seen).map_err(unusable)?;
        let before = state.models.len() + seen.kept.len();
        settling
            .check(before, manifest.entries.len())
            .map_err(unusable)?;
        Ok(Decision {
            claim: Some(Claim {
                candidates: settling.encoded(),
                ..Claim::default()
            }),
            assignment: settling.assignment,
        })
    }

    fn check(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        _: u64,
    ) -> Result<(), Objection> {
        manifest.not_empty()?;
        let settling = self.settling(state, manifest.entries.len(), decision);
        settling.map(drop).map_err(Objection::Infeasible)
    }

    fn settle(
        &self,
        state: &State,
        manifest: &LoadedManifest,
        decision: &Decision,
        _: u64,
    ) -> Result<Outcome, SettleError> {
        manifest.fits(&decision.assignment)?;
        let settling = self.settling(state, manifest.entries.len(), decision);
        let settling = settling.map_err(SettleError::Infeasible)?;
        let entries: Vec<_> = manifest
            .entries
            .iter()
            .map(|entry| self.split(entry).0)
            .collect();
        let (kept, _) = self.remembered(state);
        let before: Vec<&Params> = state.models.iter().chain(kept).collect();
        let all = |rows: &[Vec<i64>]| -> Result<Vec<Params>, SettleError> {
            rows.iter()
                .map(|row| combined(&before, &entries, row))
                .collect()
        };
        let mut next = state.with(all(&settling.groups)?);
        next.tables.insert(KEPT.into(), all(&settling.kept)?);
        next.memory.insert(NUMBERS, Kept::Numbers(settling.numbers));
        Ok(Outcome {
            assignment: settling.assignment,
            state: next,
        })
    }
}

#[cfg(test)]
mod tests;
