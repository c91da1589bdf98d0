//! Why a node takes no part at the moment: said when that begins or changes, again once a minute, and
//! when it is over.

use std::time::{Duration, Instant};

use protocol::{Epoch, Report};
use silo::{Missing, Notice};

/// How often the same is said again.
const AGAIN: Duration = Duration::from_secs(60);

/// What keeps a node from taking part.
#[derive(Debug)]
pub(super) struct Waiting {
    members: usize,
    quorum: usize,
    /// It does not know what it has signed.
    listening: Option<Listening>,
    /// The round whose blobs it fetches again.
    fetching: Option<u64>,
    /// What was said last, and when.
    said: Option<(String, Instant)>,
}

/// What a node that only listens waits for.
#[derive(Debug, Clone, Copy, Default)]
struct Listening {
    /// Others that have answered.
    answers: usize,
    /// The view that must become final, once enough have.
    until: Option<u64>,
}

/// What is to be said now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// It waits, for this.
    Waits(String),
    /// It takes part again.
    Back,
}

impl Waiting {
    /// Nothing is in the way.
    pub(super) fn new(epoch: &Epoch) -> Self {
        Self {
            members: epoch.roster.len(),
            quorum: epoch.roster.quorum(),
            listening: None,
            fetching: None,
            said: None,
        }
    }

    /// What the silo says.
    pub(super) fn hear(&mut self, notice: &Notice) {
        match notice {
            Notice::Listening | Notice::Protocol(Report::KeyUsedBefore) => {
                self.listening = Some(Listening::default());
            }
            Notice::Protocol(Report::Listening { answers, until, .. }) => {
                let (answers, until) = (*answers, *until);
                self.listening = Some(Listening { answers, until });
            }
            Notice::Missing(Missing::Outcome { round, .. }) => self.fetching = Some(*round),
            Notice::Recovered { .. } | Notice::Adopted { .. } => self.fetching = None,
            // A member that has all rounds has nothing to sign any more.
            Notice::Protocol(Report::TakingPart | Report::Complete) => self.listening = None,
            _ => {}
        }
    }

    /// What is to be said, with that many members to be reached.
    pub(super) fn word(&mut self, reachable: usize, now: Instant) -> Option<Word> {
        let Some(why) = self.why() else {
            return self.said.take().map(|_| Word::Back);
        };
        let due = |(said, at): &(String, Instant)| *said != why || now >= *at + AGAIN;
        if !self.said.as_ref().is_none_or(due) {
            return None;
        }
        self.said = Some((why.clone(), now));
        let others = self.members - 1;
        Some(Word::Waits(format!(
            "{why}; {reachable} of {others} other members can be reached now"
        )))
    }

    fn why(&self) -> Option<String> {
        let Self {
            members, quorum, ..
        } = *self;
        if self.listening.is_some() && quorum >= members {
            return Some(format!(
                "only listening: the journal was lost, and before this node votes again {quorum} \
                 other members would have to answer, of which a federation of {members} has {}: \
                 it cannot take part in this federation again",
                members - 1
            ));
        }
        if let Some(Listening { answers, until }) = self.listening {
            let after = match until {
                Some(view) => format!("a block of view {view} or later is final"),
                None => format!("{quorum} other members have answered ({answers} have)"),
            };
            return Some(format!(
                "only listening: the journal was lost, and this node neither votes nor contributes \
                 until {after}"
            ));
        }
        self.fetching.map(|round| {
            format!(
                "taking no part: blobs of round {round} are gone or damaged, and are fetched from \
                 the other members"
            )
        })
    }
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
            fetching: None,
            said: None,
        }
    }

    fn text(word: Option<Word>) -> String {
        match word {
            Some(Word::Waits(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn it_is_said_at_once_again_after_a_minute_when_it_changes_and_when_it_is_over() {
        let (mut waiting, start) = (waiting(4, 3), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(waiting.word(3, at(0)), None);
        let (round, standing) = (3, 2);
        waiting.hear(&Notice::Missing(Missing::Outcome { round, standing }));
        let said = text(waiting.word(1, at(0)));
        assert!(
            said.contains("round 3") && said.ends_with("1 of 3 other members can be reached now")
        );
        assert_eq!(waiting.word(2, at(59)), None);
        assert!(text(waiting.word(2, at(60))).contains("2 of 3"));
        assert_eq!(waiting.word(2, at(61)), None);
        waiting.hear(&Notice::Listening);
        assert!(text(waiting.word(2, at(61))).contains("3 other members have answered"));
        waiting.hear(&Notice::Recovered { round });
        assert_eq!(waiting.word(2, at(62)), None);
        let (answers, needed, until) = (3, 3, Some(8));
        waiting.hear(&Notice::Protocol(Report::Listening {
            answers,
            needed,
            until,
        }));
        assert!(
            text(waiting.word(2, at(62))).contains("until a block of view 8 or later is final")
        );
        waiting.hear(&Notice::Protocol(Report::TakingPart));
        assert_eq!(waiting.word(2, at(63)), Some(Word::Back));
        assert_eq!(waiting.word(2, at(64)), None);
    }

    #[test]
    fn where_too_few_others_exist_it_says_that_waiting_is_in_vain() {
        for (members, quorum) in [(1, 1), (2, 2)] {
            let mut waiting = waiting(members, quorum);
            waiting.hear(&Notice::Listening);
            let said = text(waiting.word(0, Instant::now()));
            assert!(said.contains("cannot take part"), "{said}");
        }
    }
}
