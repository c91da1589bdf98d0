//! A finished federation as the reports show it: its summary, with the lists joined by silo.

use std::collections::BTreeMap;
use std::ops::Deref;

use lab::summary::{Gain, Interval, MeanGain, ModelKind, SiloInfo, Summary, ViewLead};
use methods::serving::Candidate;

/// A finished federation: its summary, and what the lists of the summary say of every silo, joined.
#[derive(Debug, Clone)]
pub struct Story {
    /// The summary.
    pub summary: Summary,
    /// The scenario's description, one sentence.
    pub description: String,
    /// Every member, in roster order.
    pub silos: Vec<SiloStory>,
    /// Unseen silos, which get a model in the end.
    pub outside: Vec<SiloStory>,
    /// Further lines: a name and a text each.
    pub facts: Vec<(&'static str, String)>,
}

/// A silo with its results.
#[derive(Debug, Clone)]
pub struct SiloStory {
    /// The silo in the summary's list.
    pub info: SiloInfo,
    /// Models that are of no use here, with the reasons.
    pub unusable: Vec<(ModelKind, String)>,
    /// The silo's curves, by round.
    pub curve: Vec<SiloPoint>,
    /// Bytes of signed messages, and of models with outcome documents, that it sent.
    pub sent: (u64, u64),
}

impl Deref for Story {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

/// Tests change a summary.
#[cfg(test)]
impl std::ops::DerefMut for Story {
    fn deref_mut(&mut self) -> &mut Summary {
        &mut self.summary
    }
}

#[cfg(test)]
impl std::ops::DerefMut for SiloStory {
    fn deref_mut(&mut self) -> &mut SiloInfo {
        &mut self.info
    }
}

impl Deref for SiloStory {
    type Target = SiloInfo;

    fn deref(&self) -> &SiloInfo {
        &self.info
    }
}

/// One point of a silo's curves.
#[derive(Debug, Clone, Copy)]
pub struct SiloPoint {
    /// The round.
    pub round: u64,
    /// Mean training loss of the last local epoch.
    pub loss: Option<f64>,
    /// Held-out metric of the model adopted with the round.
    pub metric: Option<f64>,
}

impl SiloStory {
    /// Training rows.
    pub fn rows(&self) -> u64 {
        self.samples as u64
    }

    /// Held-out rows, on which its models are measured.
    pub fn held_out(&self) -> u64 {
        self.test_samples as u64
    }

    /// The last coalition of the silo.
    pub fn in_coalition(&self) -> Option<usize> {
        self.coalition_index.map(|index| index as usize)
    }

    /// The model that it serves, with its held-out metric.
    pub fn serves(&self) -> Option<(Candidate, Option<f64>)> {
        let served = self.served.as_ref()?;
        Some((served.candidate, served.metric))
    }

    /// Returns how much better `model` is than `over` here; `None` where there are too few held-out rows to
    /// tell.
    pub fn gain(&self, model: ModelKind, over: ModelKind) -> Option<Interval> {
        let found = |model, over| {
            let mut gains = self.gains.iter();
            let gain = gains.find(|gain| (gain.model, gain.over) == (model, over));
            gain.map(|gain| gain.interval)
        };
        found(model, over).or_else(|| found(over, model).map(Interval::turned))
    }

    /// Returns the reason for which a model is of no use here, if it is of none.
    pub fn no_use(&self, model: ModelKind) -> Option<&str> {
        let mut all = self.unusable.iter();
        let found = all.find(|(kind, _)| *kind == model);
        found.map(|(_, reason)| reason.as_str())
    }
}

impl Story {
    /// Joins a summary; `description` is the scenario's.
    pub fn of(summary: &Summary, description: &str) -> Story {
        let mut curves = BTreeMap::<&str, Vec<SiloPoint>>::new();
        for point in &summary.curves {
            let (loss, metric) = (point.loss, point.metric);
            let points = curves.entry(&point.silo).or_default();
            points.push(SiloPoint {
                round: point.round,
                loss,
                metric,
            });
        }
        let sent = |name: &str| {
            let mut all = summary.traffic.iter();
            let found = all.find(|traffic| traffic.silo == name);
            found.map_or((0, 0), |traffic| {
                (traffic.sent.messages, traffic.sent.blobs)
            })
        };
        // A gain over a model that could not be tuned, where others could, may be none over a tuned one.
        let counts = |info: &SiloInfo, gain: &Gain| {
            let local = [gain.model, gain.over].contains(&ModelKind::Local);
            !local || summary.tuning.is_none() || info.local_tuned.is_some()
        };
        let counted = |info: &SiloInfo| {
            let gains = info.gains.iter().filter(|gain| counts(info, gain));
            let gains = gains.copied().collect();
            SiloInfo {
                gains,
                ..info.clone()
            }
        };
        let silo = |info: &SiloInfo| SiloStory {
            unusable: summary
                .unusable
                .iter()
                .filter(|one| one.silo == info.name)
                .map(|one| (one.model, one.reason.clone()))
                .collect(),
            curve: curves.remove(info.name.as_str()).unwrap_or_default(),
            sent: sent(&info.name),
            info: counted(info),
        };
        let (outside, silos) = summary
            .silos
            .iter()
            .map(silo)
            .partition(|silo| silo.info.outside);
        Story {
            outside,
            silos,
            description: description.to_owned(),
            facts: super::facts::of(summary),
            summary: summary.clone(),
        }
    }

    /// Members with a model of their own that is not tuned, because rows or persons are too few to divide, or
    /// not here: it is trained as the federation trains.
    pub fn untuned(&self) -> Vec<String> {
        let silos = self.silos.iter();
        let untuned = silos.filter(|silo| silo.local.is_some() && silo.local_tuned.is_none());
        untuned.map(|silo| silo.name.clone()).collect()
    }

    /// Returns what held-out rows are counted in: persons, where the rows of a person are drawn together.
    pub fn units(&self) -> &'static str {
        let mut silos = self.silos.iter().chain(&self.outside);
        let grouped = |silo: &SiloStory| {
            let units = silo.test_units;
            units.is_some_and(|units| units != silo.test_samples)
        };
        if silos.any(grouped) {
            "persons"
        } else {
            "rows"
        }
    }

    /// Coalitions and members of the last round, where nearly every member is a coalition of its own.
    pub fn apart(&self) -> Option<(usize, usize)> {
        let all = self.last_coalitions();
        let members = all.iter().map(|(_, members)| members.len()).sum();
        lab::compare::are_apart(all.len(), members).then_some((all.len(), members))
    }

    /// Returns how much better `model` is than `over` on average.
    pub fn gain(&self, model: ModelKind, over: ModelKind) -> Option<&MeanGain> {
        let mut gains = self.gains.iter();
        gains.find(|gain| (gain.model, gain.over) == (model, over))
    }

    /// The reason that most votes against a view give, if it was voted down.
    pub fn reason(&self, view: u64) -> Option<&str> {
        reason(&self.summary, view)
    }

    /// The learning rate of local training.
    pub fn rate(&self) -> Option<f64> {
        self.settings.strategy["training"]["optimiser"]["rate"].as_f64()
    }

    /// Bytes of signed messages, and of models with outcome documents, that all sent; none without
    /// messages.
    pub fn sent(&self) -> Option<(u64, u64)> {
        self.bytes_messages.zip(self.bytes_blobs)
    }

    /// Returns whether nobody sent anything: there are no leads, views and messages to tell of.
    pub fn is_direct(&self) -> bool {
        self.mesh == simulations::Mesh::DIRECT
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

    /// Returns whether the round of a view became final in an earlier one: after the last round a view begins for none.
    pub(crate) fn is_final_before(&self, view: &ViewLead) -> bool {
        let mut rounds = self.rounds.iter();
        rounds
            .any(|round| round.round >= view.round && round.view().is_some_and(|of| of < view.view))
    }

    /// The views that were voted down, each with the view after it.
    pub fn hand_overs(&self) -> impl Iterator<Item = (&ViewLead, Option<&ViewLead>)> {
        let views = self.timeline.iter().enumerate();
        views
            .filter(|(_, view)| view.result == "nullified")
            .map(|(index, view)| (view, self.timeline.get(index + 1)))
    }
}

/// The reason that most votes against a view give; of equally frequent ones the first.
fn reason(summary: &Summary, view: u64) -> Option<&str> {
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
    most.map(|(reason, _)| *reason)
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
        let story = Story::of(&summary, "");
        let view = story.timeline[1].clone();
        assert_eq!(
            (view.result, story.reason(view.view)),
            ("nullified", Some("silent"))
        );
        summary.nullified = vec![because("late"), because("silent")];
        assert_eq!(Story::of(&summary, "").reason(2), Some("late"));
        summary.nullified.clear();
        assert_eq!(Story::of(&summary, "").reason(2), None);
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
