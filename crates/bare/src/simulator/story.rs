//! Events of a run, in human-readable sentences.

use protocol::certificate::Verdict;
use protocol::effects::Report;

use super::Simulator;

impl Simulator<'_> {
    /// Tells a sentence about a node, or about all, if anybody listens.
    pub(super) fn tell(&self, node: Option<usize>, sentence: impl FnOnce() -> String) {
        if let Some(story) = &self.options.story {
            story(self.now, node, &sentence());
        }
    }

    /// Tells what a node's member reports, as far as it says how the run goes.
    pub(super) fn tell_report(&self, at: usize, report: &Report) {
        let epoch = self.epoch_of(at);
        let name = |member| epoch.roster.name(member);
        let sentence = match report {
            Report::Entered { view, lead, round } => {
                format!(
                    "enters view {view}, led by {}, in round {round}",
                    name(*lead)
                )
            }
            Report::Leading { phase, round, .. } => format!("leads round {round}: {phase:?}"),
            Report::Nullifying { view, reason } => format!("votes against view {view}: {reason}"),
            Report::Refused { member, reason, .. } => {
                format!("refuses something of {}: {reason}", name(*member))
            }
            Report::Certified(certificate) => {
                let view = certificate.view;
                match certificate.verdict {
                    Verdict::Nullified => format!("knows that view {view} is nullified"),
                    Verdict::Notarised(block) => {
                        format!("knows that {block} of view {view} is notarised")
                    }
                    Verdict::Final(block) => format!("knows that {block} of view {view} is final"),
                    Verdict::Outcome { outcome, .. } => {
                        format!("knows the outcome {outcome} of view {view}")
                    }
                }
            }
            Report::Final { round, .. } => format!("round {round} is final"),
            Report::Amendment {
                approved, needed, ..
            } => format!(
                "knows of an amendment with {} of {needed} approvals",
                approved.len()
            ),
            Report::Fault(evidence) => {
                format!(
                    "has evidence: {} {}",
                    name(evidence.member),
                    evidence.charge()
                )
            }
            Report::Complete { last } => format!("has all rounds, {last} in all"),
            Report::KeyUsedBefore => "learns that it has signed before".into(),
            Report::KeyElsewhere => "learns that another process has its key".into(),
            Report::Outdated(what) => format!("learns that its journal lacks {what}"),
            Report::TakingPart => "takes part again".into(),
            _ => return,
        };
        self.tell(Some(at), || sentence);
    }
}
