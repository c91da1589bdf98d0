//! A line of the audit log as a sentence.

use super::audited_network::ALL;
use super::line::{AuditEvent, AuditLine};
use formatting::numbers::{bytes, plain};

/// Texts for the kinds of messages, by the names that lines give them.
const KINDS: [(&str, &str); 28] = [
    ("Contribution", "the contribution of its model"),
    ("Receipt", "a receipt for a contribution"),
    ("ContributionList", "the list of contributions"),
    ("Scores", "its scores of the others' models"),
    ("Manifest", "the manifest of contributions and scores"),
    (
        "Inclusion",
        "the confirmation that its contribution is in the manifest",
    ),
    ("Proposal", "the proposal of an outcome"),
    ("Notarize", "its first vote for a proposal"),
    ("Finalize", "its final vote for a proposal"),
    ("Nullify", "its vote to replace the lead"),
    ("Progress", "its progress as lead"),
    ("SyncRequest", "the request for what it has missed"),
    ("SyncResponse", "an answer about what was missed"),
    ("Certificate", "a certificate of votes"),
    ("Evidence", "evidence against a member"),
    ("Complete", "the message that it holds the last round"),
    ("Amendment", "the text of a change of the agreement"),
    (
        "Approval",
        "its approval of a change of the agreement, or its withdrawal",
    ),
    ("Passage", "proof of a change of the agreement"),
    (
        "Standing",
        "what it knows, for continuing without lost members",
    ),
    (
        "Confirmation",
        "its confirmation of continuing without lost members",
    ),
    (
        "Abstain",
        "the message that it contributes nothing to the round",
    ),
    ("Keys", "its keys for the masks of a round"),
    ("KeyList", "the list of members that are ready to mask"),
    ("MaskedVector", "the hash of its masked model"),
    ("MaskedManifest", "the list of masked models"),
    (
        "Unmasking",
        "its shares, with which the sum of a final round is opened",
    ),
    (
        "Outcome",
        "its vote for the outcome of a secure-aggregation round",
    ),
];

/// Names of kinds in logs of earlier programs, and those of today.
const FORMER: [(&str, &str); 4] = [
    ("Bundle", "ContributionList"),
    ("Sheet", "Manifest"),
    ("Nothing", "Abstain"),
    ("MaskedSheet", "MaskedManifest"),
];

impl AuditLine {
    /// The line as a sentence without a full stop, with its time.
    pub fn sentence(&self) -> String {
        let receiver = |to: &str| match to {
            ALL => "all other members".to_owned(),
            to => plain(to),
        };
        let said = match &self.event {
            AuditEvent::Message {
                to,
                kind,
                round,
                view,
                bytes: size,
                hash,
            } => {
                let former = FORMER.iter().find(|(former, _)| former == kind);
                let today = former.map_or(kind.as_str(), |(_, today)| today);
                let known = KINDS.iter().find(|(name, _)| *name == today);
                let what = known.map_or_else(
                    || format!("a message of the kind {}", plain(kind)),
                    |(_, words)| (*words).to_owned(),
                );
                let of = match (round, view) {
                    (Some(round), Some(view)) => format!(", round {round}, view {view}"),
                    (Some(round), None) => format!(", round {round}"),
                    (None, Some(view)) => format!(", view {view}"),
                    (None, None) => String::new(),
                };
                let (to, size) = (receiver(to), bytes(*size));
                format!("sent {what} to {to}{of} ({size}, {hash:.8})")
            }
            AuditEvent::Blob {
                to,
                bytes: size,
                hash,
            } => format!(
                "gave {} the model, outcome or manifest {hash:.8}, which it had asked for ({})",
                receiver(to),
                bytes(*size)
            ),
            AuditEvent::Request { to, hash } => {
                format!(
                    "asked {} for the model, outcome or manifest {hash:.8}",
                    receiver(to)
                )
            }
            AuditEvent::Started { program } => {
                format!("the node started, version {}", plain(program))
            }
            AuditEvent::Restored { made } => format!(
                "the log was put back from a backup of {}: what was sent from then until the node stopped is not \
                 in it",
                plain(made)
            ),
            AuditEvent::Missing { lines } => {
                format!("{lines} lines before this one were gone when the node started")
            }
            AuditEvent::Changed { signed } => format!(
                "line {signed} was another one than the silo had signed when the node started"
            ),
            AuditEvent::Lost { lines } => {
                format!("{lines} lines before this one could not be written to the disk")
            }
            AuditEvent::Removed { last, .. } => format!(
                "the oldest file, with the lines up to {last}, was removed: the log had its full size"
            ),
        };
        format!("{}  {said}", plain(&self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(event: AuditEvent) -> String {
        let line = AuditLine {
            line: 7,
            at: "2026-03-01T10:00:00.250Z".into(),
            event,
            before: String::new(),
        };
        line.sentence()
    }

    /// Kinds are numbered from 1; lines name them as they are called in the code.
    #[test]
    fn every_kind_of_message_has_words() {
        let kinds = (1..=u8::MAX).map_while(protocol::message::Kind::from_number);
        let names: Vec<String> = kinds.map(|kind| format!("{kind:?}")).collect();
        let known: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, known);
    }

    #[test]
    fn a_line_is_a_sentence_with_receiver_round_size_and_short_hash() {
        let hash = "0123456789abcdef".repeat(4);
        let sent = said(AuditEvent::Message {
            to: "south".into(),
            kind: "Contribution".into(),
            round: Some(3),
            view: Some(4),
            bytes: 1234,
            hash: hash.clone(),
        });
        assert_eq!(
            sent,
            "2026-03-01T10:00:00.250Z  sent the contribution of its model to south, round 3, view 4 \
             (1.2 kB, 01234567)"
        );
        let gave = said(AuditEvent::Blob {
            to: "south".into(),
            bytes: 10,
            hash: hash.clone(),
        });
        assert!(gave.ends_with(
            "gave south the model, outcome or manifest 01234567, which it had asked for (10 B)"
        ));
        let to = ALL.to_owned();
        let asked = said(AuditEvent::Request { to, hash });
        assert!(asked.contains("asked all other members for"), "{asked}");
        // Names and kinds in a file that somebody changed do not write to the terminal.
        let odd = said(AuditEvent::Started {
            program: "\u{1b}[2J".into(),
        });
        assert!(!odd.contains('\u{1b}'), "{odd}");
    }
}
