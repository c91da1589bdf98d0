//! The lines about secure-aggregation rounds.

use protocol::message::Message;
use protocol::privacy::{Circle, CorrupterSearch};
use protocol::{Hash, Report, Time};
use silo::Notice;

use super::News;
use crate::corrupters;
use crate::events::NodeEvent;
use crate::federation::told;
use crate::verify::EvidenceFile;

impl News {
    /// Prints a report of a secure-aggregation round; any other is not for the operator.
    pub(super) fn masked_report(&mut self, at: Time, report: &Report) {
        match report {
            Report::GroupsIncomplete { round, members } => {
                let missing: Vec<_> = members.iter().map(|by| self.named(*by)).collect();
                let line = if missing.is_empty() {
                    format!(
                        "warning: round {round} waits: too few institutions are ready, or sums were void in too \
                         many rounds, and the agreement has to change"
                    )
                } else {
                    let why = told(&self.epoch.protocol.privacy).waits(&missing.join(", "));
                    format!("warning: round {round} waits: {why}. No agreed round is lost")
                };
                let round = *round;
                self.print(at, NodeEvent::GroupsIncomplete { round, missing }, line);
            }
            Report::WrongVector { vector } => self.wrong_vector(at, vector),
            Report::OtherCircle { before, now } => self.other_sum(at, before, now),
            Report::OtherOutcome {
                round,
                computed,
                certified,
            } => self.other_outcome(at, *round, (*computed, *certified)),
            _ => {}
        }
    }

    /// Keeps the evidence of a wrong transcript. Where the vector is wrong in another way, its author was named
    /// when it was refused, and nothing proves it to others.
    fn wrong_vector(&mut self, at: Time, vector: &Message) {
        let mut wrong = self.wrong.iter();
        let found = wrong.find_map(|(list, transcript)| {
            EvidenceFile::of_transcript(&self.lineage, &self.epoch, vector, (list, transcript))
        });
        if let Some(file) = found {
            self.broke(at, vector.sender, file);
        }
    }

    fn other_sum(&mut self, at: Time, before: &Circle, now: &Circle) {
        let (before, now) = (names(before), names(now));
        let line = format!(
            "warning: this institution takes no part in a sum of {now}: it has taken part in sums of {before}, and \
             the difference of two such sums could be the model of a single institution"
        );
        self.print(at, NodeEvent::OtherSum { before, now }, line);
    }

    fn other_outcome(&mut self, at: Time, round: u64, (computed, certified): (Hash, Hash)) {
        let line = format!(
            "warning: this machine computed another result of round {round} than a quorum of the others: it \
             adopts theirs. Compare versions with `rota version`"
        );
        let event = NodeEvent::OtherOutcome {
            round,
            computed: format!("{computed:#}"),
            certified: format!("{certified:#}"),
        };
        self.print(at, event, line);
    }

    /// Prints a notice about the own vector or an opened sum; any other is printed elsewhere.
    pub(super) fn masked_notice(&mut self, at: Time, notice: &Notice) {
        match notice {
            &Notice::Clipped { round, coordinates } => {
                let line = format!(
                    "warning: {coordinates} numbers of this institution's model moved by more than 8 in round \
                     {round} and were clipped: train with a smaller learning rate"
                );
                self.print(at, NodeEvent::Clipped { round, coordinates }, line);
            }
            Notice::VoidSum {
                round,
                authors,
                why,
            } => {
                let (round, authors) = (*round, corrupters::names(authors, &self.epoch));
                let line = format!(
                    "warning: the sum of {authors} is void in round {round}: {why}. Their models are left out of \
                     the round"
                );
                let why = why.to_string();
                let event = NodeEvent::VoidSum {
                    round,
                    authors,
                    why,
                };
                self.print(at, event, line);
            }
            Notice::Searched { round, voids } => {
                let Some(said) = corrupters::said(voids, &self.epoch, Some(self.health.me()))
                else {
                    return;
                };
                let suspects = match &voids.search {
                    CorrupterSearch::Among(suspects) => &suspects[..],
                    CorrupterSearch::Alone(member) => std::slice::from_ref(member),
                    CorrupterSearch::Idle | CorrupterSearch::Several => &[],
                };
                let suspects = suspects.iter().map(|by| self.named(*by)).collect();
                let round = *round;
                let event = NodeEvent::Searched { round, suspects };
                self.print(at, event, format!("warning: {said}"));
            }
            _ => {}
        }
    }
}

fn names(circle: &Circle) -> String {
    let names = circle.0.iter().map(|(name, weight)| match weight {
        1 => name.clone(),
        weight => format!("{name} (weight {weight})"),
    });
    names.collect::<Vec<_>>().join(", ")
}
