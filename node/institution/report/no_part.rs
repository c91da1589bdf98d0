//! Reports why a node takes no part at the moment: when that begins or changes, once a minute while
//! it lasts, and when it is over.

use std::time::{Duration, Instant};

use protocol::{Epoch, Forgotten, Report};
use silo::{Missing, Notice};

/// Time after which the same reason is reported again.
const AGAIN: Duration = Duration::from_secs(60);

/// Reasons that keep a node from taking part.
#[derive(Debug)]
pub(in crate::institution) struct Waiting {
    members: usize,
    quorum: usize,
    /// The journal was lost, so that the node does not know what it has signed.
    listening: Option<ListeningWait>,
    /// Message that the journal lacks, which is an older copy.
    outdated: Option<Forgotten>,
    /// True if another process uses the key.
    doubled: bool,
    /// The round whose blobs it fetches from other members.
    fetching: Option<u64>,
    /// Reason for which the node cannot take part under the agreement in force.
    bystander: Option<String>,
    /// Reason for which the institution does not contribute.
    paused: Option<String>,
    /// The reason that was reported last, and when.
    reported: Option<(String, Instant)>,
}

/// Progress of a node that only listens.
#[derive(Debug, Clone, Copy, Default)]
struct ListeningWait {
    /// Members that have answered.
    answers: usize,
    /// The view that must become final, once enough have.
    until: Option<u64>,
}

/// Change that is to be reported now.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::institution) enum WaitingChange {
    /// The node takes no part, for this reason.
    Waits(String),
    /// The node takes part again.
    Back,
}

impl Waiting {
    /// For a node that takes part.
    pub(in crate::institution) fn new(epoch: &Epoch) -> Self {
        Self {
            members: epoch.roster.len(),
            quorum: epoch.roster.quorum(),
            listening: None,
            outdated: None,
            doubled: false,
            fetching: None,
            bystander: None,
            paused: None,
            reported: None,
        }
    }

    /// Adds the reasons why this node cannot take part under the agreement in force (`bystander`), or does
    /// not contribute (`paused`).
    pub(in crate::institution) fn with(
        self,
        bystander: Option<String>,
        paused: Option<String>,
    ) -> Self {
        Self {
            bystander,
            paused,
            ..self
        }
    }

    /// The institution contributes again.
    pub(in crate::institution) fn resume(&mut self) {
        self.paused = None;
    }

    /// Takes note of what the silo reports.
    pub(in crate::institution) fn observe(&mut self, notice: &Notice) {
        match notice {
            Notice::Listening | Notice::Protocol(Report::KeyUsedBefore) => {
                self.listening = Some(ListeningWait::default());
            }
            Notice::Protocol(Report::Listening { answers, until, .. }) => {
                let (answers, until) = (*answers, *until);
                self.listening = Some(ListeningWait { answers, until });
            }
            Notice::Protocol(Report::KeyElsewhere) => self.doubled = true,
            Notice::Protocol(Report::Outdated(what)) => self.outdated = Some(*what),
            Notice::Missing(Missing::Outcome { round, .. }) => self.fetching = Some(*round),
            Notice::Recovered { .. } | Notice::Adopted { .. } => self.fetching = None,
            // A member that has all rounds has nothing to sign any more.
            Notice::Protocol(Report::TakingPart | Report::Complete { .. }) => {
                (self.listening, self.outdated, self.doubled) = (None, None, false);
            }
            _ => {}
        }
    }

    /// Returns what is to be reported now, where `reachable` other members can be reached.
    pub(in crate::institution) fn change(
        &mut self,
        reachable: usize,
        now: Instant,
    ) -> Option<WaitingChange> {
        let Some(reason) = self.reason() else {
            return self.reported.take().map(|_| WaitingChange::Back);
        };
        let due = |(reason_before, at): &(String, Instant)| {
            *reason_before != reason || now >= *at + AGAIN
        };
        if !self.reported.as_ref().is_none_or(due) {
            return None;
        }
        self.reported = Some((reason.clone(), now));
        let others = self.members - 1;
        Some(WaitingChange::Waits(format!(
            "{reason}; {reachable} of {others} other members can be reached now"
        )))
    }

    /// Returns the reason for which the node takes no part; `None` while it does.
    pub(in crate::institution) fn reason(&self) -> Option<String> {
        let Self {
            members, quorum, ..
        } = *self;
        if let Some(why) = &self.bystander {
            return Some(format!(
                "this node only listens and votes on changes, because it cannot take part under the agreement in \
                 force: {why}. A change of the agreement can correct that (`rota federation change`)"
            ));
        }
        if let Some(what) = self.outdated {
            return Some(format!("only listening: {}", outdated(what)));
        }
        if self.doubled {
            return Some(format!("only listening: {DOUBLED}"));
        }
        if self.listening.is_some() && quorum >= members {
            return Some(format!(
                "only listening: the journal was lost, and before this node votes again {quorum} \
                 other members would have to answer, of which a federation of {members} has {}: \
                 it cannot take part in this federation again",
                members - 1
            ));
        }
        if let Some(ListeningWait { answers, until }) = self.listening {
            let after = match until {
                Some(view) => format!("a block of view {view} or later is final"),
                None => format!("{quorum} other members have answered ({answers} have)"),
            };
            return Some(format!(
                "only listening: the journal was lost, so this node neither votes nor contributes until {after}"
            ));
        }
        let fetching = self.fetching.map(|round| {
            format!(
                "taking no part: files of round {round} are missing or damaged, and are being fetched from the \
                 other members"
            )
        });
        fetching.or_else(|| self.paused.clone())
    }
}

/// Explains to people that another process uses the key, and what to do.
pub(super) const DOUBLED: &str = "another process uses this institution's key at the same time, and \
     this node signs nothing more until it is started again; find and stop the other one first, and if \
     nobody of this institution has started it, the key was stolen: ask another member to propose \
     `rota federation rekey` with a new key";

/// Explains to people that the journal lacks something that was signed, and what to do.
pub(super) fn outdated(what: Forgotten) -> String {
    format!(
        "the journal is an older copy, because it lacks {what}, and this node signs nothing more under \
         the agreement in force; put the newest journal back and start the node again, or, if there is \
         none, start it once with --journal-lost, or get a new key (`rota federation rekey`); if \
         another process uses the key, stop that one first"
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn waiting(members: usize, quorum: usize) -> Waiting {
        Waiting {
            members,
            quorum,
            listening: None,
            outdated: None,
            doubled: false,
            fetching: None,
            bystander: None,
            paused: None,
            reported: None,
        }
    }

    #[test]
    fn a_paused_or_unable_node_states_so_until_that_ended() {
        let start = Instant::now();
        let mut waiting = waiting(4, 3).with(None, Some("contributions are paused".into()));
        assert!(text(waiting.change(3, start)).starts_with("contributions are paused; 3 of 3"));
        waiting.resume();
        assert_eq!(waiting.change(3, start), Some(WaitingChange::Back));
        let mut waiting = self::waiting(4, 3).with(Some("too large".into()), None);
        waiting.observe(&Notice::Protocol(Report::Complete { last: 3 }));
        waiting.resume();
        let said = text(waiting.change(3, start));
        for part in ["votes on changes", "too large", "`rota federation change`"] {
            assert!(said.contains(part), "{said}");
        }
    }

    fn text(change: Option<WaitingChange>) -> String {
        match change {
            Some(WaitingChange::Waits(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_reason_is_reported_at_once_each_minute_on_change_and_end() {
        let (mut waiting, start) = (waiting(4, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(waiting.change(3, at(0)), None);
        let (round, standing) = (3, 2);
        waiting.observe(&Notice::Missing(Missing::Outcome { round, standing }));
        let said = text(waiting.change(1, at(0)));
        assert!(
            said.contains("round 3") && said.ends_with("1 of 3 other members can be reached now")
        );
        assert_eq!(waiting.change(2, at(59)), None);
        assert!(text(waiting.change(2, at(60))).contains("2 of 3"));
        assert_eq!(waiting.change(2, at(61)), None);
        waiting.observe(&Notice::Listening);
        assert!(text(waiting.change(2, at(61))).contains("3 other members have answered"));
        waiting.observe(&Notice::Recovered { round });
        assert_eq!(waiting.change(2, at(62)), None);
        let (answers, needed, until) = (3, 3, Some(8));
        waiting.observe(&Notice::Protocol(Report::Listening {
            answers,
            needed,
            until,
        }));
        assert!(
            text(waiting.change(2, at(62))).contains("until a block of view 8 or later is final")
        );
        waiting.observe(&Notice::Protocol(Report::TakingPart));
        assert_eq!(waiting.change(2, at(63)), Some(WaitingChange::Back));
        assert_eq!(waiting.change(2, at(64)), None);
    }

    #[test]
    fn an_outdated_journal_is_reported_with_its_gap_and_a_remedy() {
        let (mut waiting, start) = (waiting(4, 3), Instant::now());
        let what = Forgotten {
            kind: protocol::message::Kind::Finalize,
            round: 0,
            view: 12,
        };
        waiting.observe(&Notice::Protocol(Report::Outdated(what)));
        let said = text(waiting.change(3, start));
        for part in ["its Finalize vote of view 12", "put the newest", "rekey"] {
            assert!(said.contains(part), "{said}");
        }
        // Nothing else counts while it lasts.
        waiting.observe(&Notice::Listening);
        assert_eq!(waiting.change(3, start), None);
        waiting.observe(&Notice::Protocol(Report::Complete { last: 3 }));
        assert_eq!(waiting.change(3, start), Some(WaitingChange::Back));
    }

    #[test]
    fn a_federation_too_small_for_enough_answers_is_reported_lost() {
        for (members, quorum) in [(1, 1), (2, 2)] {
            let mut waiting = waiting(members, quorum);
            waiting.observe(&Notice::Listening);
            let said = text(waiting.change(0, Instant::now()));
            assert!(said.contains("cannot take part"), "{said}");
        }
    }
}
