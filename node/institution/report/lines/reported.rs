//! The lines about what the protocol reports.

use protocol::certificate::Verdict;
use protocol::evidence::Evidence;
use protocol::message::Message;
use protocol::{Forgotten, MemberIndex, Report, Time};

use super::super::{no_part, usage};
use super::{Finality, News};
use crate::events::{NodeEvent, UnkeptReceipt, phase_name};
use crate::verify::EvidenceFile;

/// Views whose leads are remembered.
const LEADS: usize = 64;

impl News {
    /// Prints a report of the protocol, if it is for the operator.
    pub(super) fn report(&mut self, at: Time, report: &Report) {
        match report {
            Report::Entered { view, lead, round } => self.entered(at, *view, *lead, *round),
            Report::Leading { view, round, phase } => {
                let event = NodeEvent::Leading {
                    view: *view,
                    round: *round,
                    phase: phase_name(*phase).into(),
                };
                self.print(at, event, String::new());
            }
            Report::Nullifying { view, reason } => {
                // For people it is in the log.
                let event = NodeEvent::Nullifying {
                    view: *view,
                    reason: reason.to_string(),
                };
                self.print(at, event, String::new());
            }
            Report::Certified(certificate) => {
                self.certified(at, certificate.view, &certificate.verdict);
            }
            Report::Refused {
                member,
                round,
                reason,
            } => self.warn(at, *member, *round, &reason.to_string()),
            Report::Final {
                round,
                view,
                lead,
                block,
                authors,
            } => {
                let last = Finality {
                    round: *round,
                    view: *view,
                    lead: *lead,
                    block: *block,
                    authors: authors.len(),
                };
                self.became_final(at, last, authors);
            }
            Report::HeavyEntry {
                round,
                rows,
                total,
                member,
            } => {
                let of = (*rows, *total);
                let (event, line) = self.weights.heavy(*round, of, *member);
                let line = line.map(|line| format!("warning: {line}"));
                self.print(at, event, line.unwrap_or_default());
            }
            Report::TrainingFailed { round, reason } => {
                self.training_failed(at, *round, &reason.to_string());
            }
            Report::Late { round, ready, over } => {
                let (event, line) = self.late.missed(&self.epoch, *round, *ready, *over);
                self.print(at, event, line);
            }
            Report::ReceiptUnkept {
                round,
                receipt,
                signed,
            } => self.receipt_unkept(at, *round, receipt, *signed),
            Report::Nothing { member, round } => self.nothing(at, *member, *round),
            Report::Complete { last } => self.complete(at, *last),
            Report::MemberComplete { member } => {
                let member = self.named(*member);
                self.print(at, NodeEvent::MemberFinished { member }, String::new());
            }
            Report::KeyUsedBefore => self.key_used_before(at),
            Report::KeyElsewhere => {
                let line = no_part::DOUBLED;
                let event = NodeEvent::KeyElsewhere { why: line.into() };
                self.print(at, event, format!("warning: {line}"));
            }
            Report::Outdated(what) => self.outdated(at, *what),
            Report::Fault(evidence) => self.fault(at, evidence),
            _ => self.masked_report(at, report),
        }
    }

    /// Prints that this member entered a view, and that the one before was nullified.
    fn entered(&mut self, at: Time, view: u64, lead: MemberIndex, round: u64) {
        self.round = round;
        self.leads.insert(view, lead);
        while self.leads.len() > LEADS {
            self.leads.pop_first();
        }
        if let Some(view) = self.nullified.take() {
            self.replaced(at, view);
        }
        let event = NodeEvent::View {
            view,
            lead: self.named(lead),
            round,
        };
        self.print(at, event, String::new());
    }

    /// Prints that a view has a certificate that is not yet final.
    fn certified(&mut self, at: Time, view: u64, verdict: &Verdict) {
        match verdict {
            // The next lead is known with the next view, which follows at once.
            Verdict::Nullified => {
                if self.leads.keys().next_back() == Some(&view) {
                    self.nullified = Some(view)
                } else {
                    self.replaced(at, view)
                }
            }
            Verdict::Notarised(_) => {
                self.print(at, NodeEvent::Notarised { view }, String::new());
            }
            Verdict::Final(_) | Verdict::Outcome { .. } => {}
        }
    }

    /// Prints that a view ended without a block.
    fn replaced(&mut self, at: Time, view: u64) {
        let lead = |view| self.leads.get(&view).map(|&lead| self.name(lead));
        let (old, new) = (lead(view), lead(view + 1));
        let event = NodeEvent::Nullified {
            view,
            lead: old.map(str::to_owned),
        };
        let line = match (old, new) {
            (Some(old), Some(new)) => format!(
                "round {:>4}   view {view:>4}   lead {old} was replaced before the round was final; {new} leads now",
                self.round,
            ),
            // This member was never in that view.
            _ => String::new(),
        };
        self.print(at, event, line);
    }

    /// Prints that a round is final, with the members whose models are in it.
    fn became_final(&mut self, at: Time, last: Finality, authors: &[MemberIndex]) {
        if authors.contains(&self.health.me()) {
            self.late.in_time();
        }
        let event = NodeEvent::Final {
            round: last.round,
            view: last.view,
            lead: self.named(last.lead),
            block: format!("{:#}", last.block),
            authors: authors.len(),
            contributors: authors.iter().map(|by| self.named(*by)).collect(),
            left_out: self
                .epoch
                .roster
                .members()
                .filter(|member| !authors.contains(member))
                .map(|member| self.named(member))
                .collect(),
            cpu_seconds: usage::cpu_seconds(),
        };
        self.print(at, event, String::new());
        self.finals.push(last);
    }

    /// Prints that this institution's training failed.
    fn training_failed(&self, at: Time, round: u64, reason: &str) {
        let line =
            format!("warning: this institution contributes nothing to round {round}: {reason}");
        let event = NodeEvent::TrainingFailed {
            round,
            reason: reason.into(),
        };
        self.print(at, event, line);
    }

    /// Prints that a member has nothing to contribute to a round.
    fn nothing(&self, at: Time, member: MemberIndex, round: u64) {
        let member = self.named(member);
        let line = format!("{member} contributes nothing to round {round}, so nobody waits for it");
        self.print(at, NodeEvent::Nothing { member, round }, line);
    }

    /// Prints that the last round is final.
    fn complete(&self, at: Time, last: u64) {
        let line = match self.epoch.protocol.rounds {
            rounds if rounds == last => format!("all {rounds} rounds are done"),
            rounds if !self.may_stop => {
                format!("all is done with round {last}: the others of {rounds} were not needed")
            }
            rounds => format!(
                "early stopping after round {last} of {rounds}: the models no longer improve on the members' \
                 validation rows"
            ),
        };
        // The contributions may be fewer than what was agreed on at the start.
        let (learned, officer) = self.health.disclosed();
        let said = NodeEvent::Privacy {
            learned,
            officer,
            noised: self.epoch.protocol.privacy.is_noised(),
        };
        self.print(at, said, String::new());
        self.print(at, NodeEvent::Finished { rounds: last }, line);
    }

    /// Warns that the key has signed things of which the journal knows nothing.
    fn key_used_before(&self, at: Time) {
        let line = "this institution's key has signed things in this federation, and its \
                    journal was empty: its state was lost, or another process uses the key";
        let event = NodeEvent::KeyUsedBefore { why: line.into() };
        self.print(at, event, format!("warning: {line}"));
    }

    /// Warns that the journal is an older copy.
    fn outdated(&self, at: Time, what: Forgotten) {
        let line = no_part::outdated(what);
        let event = NodeEvent::JournalOutdated {
            kind: format!("{:?}", what.kind).to_lowercase(),
            round: what.round,
            view: what.view,
            why: line.clone(),
        };
        self.print(at, event, format!("warning: {line}"));
    }

    /// Keeps the receipt of a lead that left this institution's model out, and says what happened.
    fn receipt_unkept(&self, at: Time, round: u64, receipt: &Message, signed: bool) {
        let lead = self.named(receipt.sender);
        let file = EvidenceFile::of_receipt(&self.lineage, &self.epoch, receipt);
        let kept = file.keep(&self.state);
        let kept = kept.map_err(|why| tracing::warn!("the receipt is not kept: {why}"));
        let kept = kept.ok().map(|path| path.display().to_string());
        let line = left_out(round, &lead, signed, kept.as_deref());
        let event = NodeEvent::ReceiptUnkept(UnkeptReceipt {
            round,
            lead,
            view: receipt.view,
            signed,
            evidence: kept,
        });
        self.print(at, event, line);
    }

    /// Keeps the evidence against a member that broke the rules, and prints where it is.
    fn fault(&self, at: Time, evidence: &Evidence) {
        let file = EvidenceFile::of(&self.lineage, &self.epoch, evidence);
        self.broke(at, evidence.member, file);
    }

    /// Keeps evidence against a member, and says so.
    pub(super) fn broke(&self, at: Time, member: MemberIndex, file: EvidenceFile) {
        let member = self.named(member);
        let kept = file.keep(&self.state);
        let charge = file.charge;
        let kept = kept.map_err(|why| tracing::warn!("evidence is not kept: {why}"));
        let kept = kept.ok().map(|path| path.display().to_string());
        let proof = match &kept {
            Some(path) => format!("; the proof is in {path}, for `rota verify`"),
            None => String::new(),
        };
        let line = format!("{member} broke the rules: {charge}{proof}");
        let event = NodeEvent::Fault {
            member,
            charge,
            evidence: kept,
        };
        self.print(at, event, line);
    }
}

/// Returns what people read where a lead left out what it had signed to have.
fn left_out(round: u64, lead: &str, signed: bool, kept: Option<&str>) -> String {
    let own = match signed {
        true => {
            "This node had signed for the round, too, so its signature did not reach the lead in time, or the lead \
             left the model out on purpose"
        }
        false => {
            "This node had not signed for the round yet, because it did not have all models in time, or the lead left \
             the model out on purpose"
        }
    };
    let kept = match kept {
        Some(file) => format!(". The receipt is in {file}, for `rota verify`"),
        None => String::new(),
    };
    format!(
        "warning: round {round} ended without this institution's model, and not because it was late: {lead}, which led \
         it, had signed a receipt for it. {own}{kept}"
    )
}

#[cfg(test)]
mod tests {
    use super::left_out;

    #[test]
    fn who_was_left_out_against_a_receipt_is_not_called_late() {
        let said = left_out(5, "south", true, Some("state/evidence/a.json"));
        for part in [
            "round 5 ended without this institution's model, and not because it was late: south",
            "had signed a receipt",
            "This node had signed for the round, too",
            "state/evidence/a.json, for `rota verify`",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let said = left_out(5, "south", false, None);
        assert!(said.contains("had not signed for the round yet") && !said.contains("evidence"));
    }
}
