//! A finished federation as the reports show it: the lists of its summary, joined by silo and view.

use std::collections::BTreeMap;

use lab::summary::{
    ClassResults, FaultInfo, Gain, Harmed, Interval, LeftOut, MeanGain, MetricInfo, ModelKind,
    ModelMean, Refused, SecondMetric, Settings, Summary, TrainingFailed, Tuning, Unusable,
};
use methods::serving::Candidate;
use simulations::Mesh;

/// A finished federation, ready for a report.
#[derive(Debug, Clone)]
pub struct Story {
    /// The scenario's name.
    pub scenario: String,
    /// Its description, one sentence.
    pub description: String,
    /// The strategy's name.
    pub strategy: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The metric on held-out rows.
    pub metric: MetricInfo,
    /// A second metric, where there is one.
    pub second_metric: Option<MetricInfo>,
    /// Task, strategy and program.
    pub settings: Settings,
    /// Whether the federation's models are of use.
    pub usable: bool,
    /// Models that are of no use at a silo.
    pub unusable: Vec<Unusable>,
    /// Trainings that failed.
    pub training_failed: Vec<TrainingFailed>,
    /// How much better models are on average over the members.
    pub gains: Vec<MeanGain>,
    /// Means over the members of every model that was measured.
    pub means: Vec<ModelMean>,
    /// Members that the model they serve harms.
    pub harmed: Option<Harmed>,
    /// How models trained alone were tuned.
    pub tuning: Option<Tuning>,
    /// What was noticed about the data, one sentence each, without a full stop.
    pub notes: Vec<String>,
    /// Every member, in roster order.
    pub silos: Vec<Silo>,
    /// Silos outside the federation, which get a model in the end.
    pub outside: Vec<Silo>,
    /// Every final round, in order.
    pub rounds: Vec<Round>,
    /// Every view, in order.
    pub views: Vec<View>,
    /// Members that a lead went on without.
    pub left_out: Vec<LeftOut>,
    /// Messages that were refused.
    pub refused: Vec<Refused>,
    /// Broken rules, proven by signed evidence.
    pub faults: Vec<FaultInfo>,
    /// Bytes of signed messages, and of models with outcome documents.
    pub sent: (u64, u64),
    /// What carried the bytes.
    pub mesh: Mesh,
    /// Seconds of virtual time; none over real sockets.
    pub virtual_seconds: Option<f64>,
    /// Wall-clock seconds of the federation.
    pub seconds: f64,
    /// Properties that held after every event, by number and name.
    pub invariants: Vec<&'static str>,
    /// Further lines: a name and a text each.
    pub facts: Vec<(&'static str, String)>,
}

/// A silo with its results.
#[derive(Debug, Clone)]
pub struct Silo {
    /// Its name.
    pub name: String,
    /// Training rows.
    pub samples: u64,
    /// Held-out rows, on which its models are measured.
    pub held_out: u64,
    /// Held-out metric of its own model.
    pub local: Option<f64>,
    /// Held-out metric of one model for all.
    pub global: Option<f64>,
    /// Held-out metric of the model that it adopted.
    pub coalition: Option<f64>,
    /// Its last coalition.
    pub coalition_index: Option<usize>,
    /// Held-out metric of one model trained on the rows of all members together.
    pub pooled: Option<f64>,
    /// Held-out metric of FedAvg with equal weights.
    pub global_equal: Option<f64>,
    /// Held-out metric of FedAvg with an intercept of its own for every silo.
    pub own_intercept: Option<f64>,
    /// Held-out metric of a constant prediction.
    pub constant: Option<f64>,
    /// The model that it serves, with its held-out metric.
    pub served: Option<(Candidate, Option<f64>)>,
    /// The second metric of its models.
    pub second: SecondMetric,
    /// How much better its models are than each other.
    pub gains: Vec<Gain>,
    /// Its models that are of no use, with the reasons.
    pub unusable: Vec<(ModelKind, String)>,
    /// Results of its classifiers.
    pub classes: Option<ClassResults>,
    /// By round.
    pub curve: Vec<Point>,
    /// Bytes of signed messages, and of models with outcome documents.
    pub sent: (u64, u64),
}

/// One point of a silo's curves.
#[derive(Debug, Clone, Copy)]
pub struct Point {
    /// The round.
    pub round: u64,
    /// Mean training loss of the last local epoch.
    pub loss: Option<f64>,
    /// Held-out metric of the model adopted with the round.
    pub metric: Option<f64>,
}

/// A final round.
#[derive(Debug, Clone)]
pub struct Round {
    /// The round, from 1.
    pub round: u64,
    /// The view of its block.
    pub view: u64,
    /// Whether it agreed on a common scale in place of training.
    pub scale: bool,
    /// Names by coalition.
    pub coalitions: Vec<Vec<String>>,
    /// Silos whose contributions are in it.
    pub contributions: usize,
}

/// An attempt by one lead.
#[derive(Debug, Clone)]
pub struct View {
    /// The view, from 1.
    pub view: u64,
    /// Its lead.
    pub lead: String,
    /// The round it worked on.
    pub round: u64,
    /// When it began, in seconds on the federation's clock.
    pub from: f64,
    /// When it ended, in seconds on the federation's clock.
    pub to: f64,
    /// `final`, `empty`, `nullified` or `open`, as in the summary.
    pub result: &'static str,
    /// The reason that most votes against it give.
    pub reason: Option<String>,
}

impl Silo {
    /// How much better `model` is than `over` here; `None` where there are too few held-out rows to
    /// tell.
    pub fn gain(&self, model: ModelKind, over: ModelKind) -> Option<Interval> {
        let found = |model, over| {
            let mut gains = self.gains.iter();
            gains.find(|gain| (gain.model, gain.over) == (model, over))
        };
        let turned = |gain: &Gain| Interval {
            by: -gain.interval.by,
            low: -gain.interval.high,
            high: -gain.interval.low,
        };
        let direct = found(model, over).map(|gain| gain.interval);
        direct.or_else(|| found(over, model).map(turned))
    }

    /// Why a model is of no use here, if it is.
    pub fn no_use(&self, model: ModelKind) -> Option<&str> {
        let mut all = self.unusable.iter();
        let found = all.find(|(kind, _)| *kind == model);
        found.map(|(_, reason)| reason.as_str())
    }
}

impl Story {
    /// Joins a summary; `description` is the scenario's.
    pub fn of(summary: &Summary, description: &str) -> Story {
        let mut curves = BTreeMap::<&str, Vec<Point>>::new();
        for point in &summary.curves {
            let (loss, metric) = (point.loss, point.metric);
            let points = curves.entry(&point.silo).or_default();
            points.push(Point {
                round: point.round,
                loss,
                metric,
            });
        }
        let sent: BTreeMap<&str, (u64, u64)> = summary
            .traffic
            .iter()
            .map(|traffic| {
                (
                    traffic.silo.as_str(),
                    (traffic.sent.messages, traffic.sent.blobs),
                )
            })
            .collect();
        let (outside, silos): (Vec<_>, Vec<_>) = summary
            .silos
            .iter()
            .map(|silo| {
                let joined = Silo {
                    name: silo.name.clone(),
                    samples: silo.samples as u64,
                    held_out: silo.test_samples as u64,
                    local: silo.local,
                    global: silo.global,
                    coalition: silo.coalition,
                    coalition_index: silo.coalition_index.map(|index| index as usize),
                    pooled: silo.pooled,
                    global_equal: silo.global_equal,
                    own_intercept: silo.own_intercept,
                    constant: silo.constant,
                    served: silo
                        .served
                        .as_ref()
                        .map(|served| (served.candidate, served.metric)),
                    second: silo.second,
                    gains: silo.gains.clone(),
                    unusable: summary
                        .unusable
                        .iter()
                        .filter(|one| one.silo == silo.name)
                        .map(|one| (one.model, one.reason.clone()))
                        .collect(),
                    classes: silo.classes.clone(),
                    curve: curves.remove(silo.name.as_str()).unwrap_or_default(),
                    sent: sent.get(silo.name.as_str()).copied().unwrap_or_default(),
                };
                (silo.outside, joined)
            })
            .partition(|(outside, _)| *outside);
        let only = |silos: Vec<(bool, Silo)>| silos.into_iter().map(|(_, silo)| silo).collect();
        Story {
            outside: only(outside),
            silos: only(silos),
            scenario: summary.scenario.clone(),
            description: description.to_owned(),
            strategy: summary.strategy.clone(),
            seed: summary.seed,
            metric: summary.metric.clone(),
            second_metric: summary.second_metric.clone(),
            settings: summary.settings.clone(),
            usable: summary.usable,
            unusable: summary.unusable.clone(),
            training_failed: summary.training_failed.clone(),
            gains: summary.gains.clone(),
            means: summary.means.clone(),
            harmed: summary.harmed.clone(),
            tuning: summary.tuning,
            notes: summary.notes.clone(),
            rounds: summary
                .rounds
                .iter()
                .map(|round| Round {
                    round: round.round,
                    view: round.view,
                    scale: round.kind == "summarise",
                    coalitions: round.coalitions.clone(),
                    contributions: round.authors.len(),
                })
                .collect(),
            views: summary
                .timeline
                .iter()
                .map(|view| View {
                    view: view.view,
                    lead: view.lead.clone(),
                    round: view.round,
                    from: view.from,
                    to: view.to,
                    result: view.result,
                    reason: reason(summary, view.view),
                })
                .collect(),
            left_out: summary.left_out.clone(),
            refused: summary.refused.clone(),
            faults: summary.faults.clone(),
            sent: (summary.bytes_messages, summary.bytes_blobs),
            mesh: summary.mesh,
            virtual_seconds: summary.virtual_seconds,
            seconds: summary.seconds,
            invariants: summary.invariants.clone(),
            facts: super::facts::of(summary),
        }
    }

    /// How much better `model` is than `over` on average.
    pub fn gain(&self, model: ModelKind, over: ModelKind) -> Option<&MeanGain> {
        let mut gains = self.gains.iter();
        gains.find(|gain| (gain.model, gain.over) == (model, over))
    }

    /// The learning rate of local training.
    pub fn rate(&self) -> Option<f64> {
        self.settings.strategy["training"]["optimiser"]["rate"].as_f64()
    }

    /// Seconds on the federation's clock, virtual or real.
    pub fn lasted(&self) -> f64 {
        self.virtual_seconds.unwrap_or(self.seconds)
    }

    /// The coalitions of the last round, each with its index and the names of its members; empty
    /// ones are left out.
    pub fn last_coalitions(&self) -> Vec<(usize, &[String])> {
        self.rounds
            .last()
            .into_iter()
            .flat_map(|round| round.coalitions.iter().map(Vec::as_slice).enumerate())
            .filter(|(_, members)| !members.is_empty())
            .collect()
    }

    /// The views that were voted down, each with the view after it.
    pub fn hand_overs(&self) -> impl Iterator<Item = (&View, Option<&View>)> {
        let views = self.views.iter().enumerate();
        views
            .filter(|(_, view)| view.result == "nullified")
            .map(|(index, view)| (view, self.views.get(index + 1)))
    }
}

/// The reason that most votes against a view give; of equally frequent ones the first.
fn reason(summary: &Summary, view: u64) -> Option<String> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for vote in summary.nullified.iter().filter(|vote| vote.view == view) {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == vote.reason)
        {
            Some((_, times)) => *times += 1,
            None => reasons.push((&vote.reason, 1)),
        }
    }
    let most = reasons.iter().rev().max_by_key(|(_, times)| *times);
    most.map(|(reason, _)| (*reason).to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture;

    #[test]
    fn the_reason_of_a_view_is_the_most_frequent_one() {
        let mut summary = fixture::summary(4, 1, 3);
        let vote = summary.nullified[0].clone();
        let because = |reason: &str| {
            let mut vote = vote.clone();
            vote.reason = reason.into();
            vote
        };
        summary.nullified = vec![because("late"), because("silent"), because("silent")];
        let view = Story::of(&summary, "").views[1].clone();
        assert_eq!(
            (view.result, view.reason.as_deref()),
            ("nullified", Some("silent"))
        );
        summary.nullified = vec![because("late"), because("silent")];
        assert_eq!(
            Story::of(&summary, "").views[1].reason.as_deref(),
            Some("late")
        );
        summary.nullified.clear();
        assert_eq!(Story::of(&summary, "").views[1].reason, None);
    }

    #[test]
    fn curves_and_traffic_are_joined_to_their_silos() {
        let story = Story::of(&fixture::summary(3, 1, 4), "about");
        assert_eq!(story.description, "about");
        assert!(story.silos.iter().all(|silo| silo.curve.len() == 4));
        assert_eq!(story.silos[2].sent, (40_000 + 1_800, 9_000 + 8_000));
        let (lost, next) = story.hand_overs().next().unwrap();
        assert_eq!((lost.view, lost.round, next.unwrap().round), (2, 2, 2));
    }
}
