//! Faults by script: what a scenario may do to a federation.

use std::time::Duration;

use agreement::{FileError, Source, Span};
use protocol::message::Phase;
use serde::Deserialize;

use crate::disk::Cut;
use crate::tamper::Misbehaviour;

/// Whom a fault hits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Whoever leads then.
    Lead,
    /// A silo, by name or by its place from 0.
    Silo(String),
}

/// A moment of a round, as seen by its lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// The lead came to this phase.
    Phase(Phase),
    /// The lead knows that its block is notarised, and not yet that it is final.
    Notarised,
}

/// When a fault happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long after the start.
    At(Duration),
    /// At a moment of a round, the first time that any lead comes to it.
    Round {
        /// The round, from 1.
        round: u64,
        /// The moment.
        moment: Moment,
    },
    /// In the middle of a step, at a commit of the silo's journal.
    Commit {
        /// Which, from 1.
        nth: u64,
        /// Before or after it is durable.
        cut: Cut,
    },
}

/// One scripted fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// A silo stops like in a power cut.
    Kill {
        /// Which.
        who: Who,
        /// When.
        when: When,
        /// After which span it comes back; never if `None`.
        restart_after: Option<Duration>,
        /// Whether it comes back without its journal and blobs.
        journal_lost: bool,
    },
    /// Some silos are cut off from the others.
    Partition {
        /// They.
        members: Vec<String>,
        /// When, after the start.
        at: Duration,
        /// For how long.
        lasts: Duration,
        /// Whether they still hear the others.
        one_way: bool,
    },
    /// A silo misbehaves from the beginning.
    Byzantine {
        /// Which, by name or by its place from 0.
        member: String,
        /// How.
        sends: Misbehaviour,
    },
}

/// A fault as written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawFault {
    restart_after: Option<Span>,
    one_way: Option<bool>,
    kill: Option<String>,
    at: Option<Span>,
    phase: Option<RawPhase>,
    round: Option<u64>,
    commit: Option<u64>,
    cut: Option<Cut>,
    journal: Option<RawJournal>,
    partition: Option<Vec<String>>,
    lasts: Option<Span>,
    member: Option<String>,
    sends: Option<Misbehaviour>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawPhase {
    Waiting,
    Collecting,
    Scoring,
    Including,
    Deciding,
    Voting,
    Notarised,
}

impl From<RawPhase> for Moment {
    fn from(phase: RawPhase) -> Self {
        Self::Phase(match phase {
            RawPhase::Waiting => Phase::Waiting,
            RawPhase::Collecting => Phase::Collecting,
            RawPhase::Scoring => Phase::Scoring,
            RawPhase::Including => Phase::Including,
            RawPhase::Deciding => Phase::Deciding,
            RawPhase::Voting => Phase::Voting,
            RawPhase::Notarised => return Self::Notarised,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawJournal {
    Kept,
    Lost,
}

impl RawFault {
    /// The `nth` fault of the file, from 0.
    pub(super) fn validate(self, nth: usize, source: Source<'_>) -> Result<Fault, FileError> {
        let error = |key: &str, what: &str| source.key_of(&format!("fault.{nth}.{key}"), what);
        let set = [
            ("kill", self.kill.is_some()),
            ("partition", self.partition.is_some()),
            ("sends", self.sends.is_some()),
            ("restart-after", self.restart_after.is_some()),
            ("journal", self.journal.is_some()),
            ("phase", self.phase.is_some()),
            ("round", self.round.is_some()),
            ("commit", self.commit.is_some()),
            ("cut", self.cut.is_some()),
            ("at", self.at.is_some()),
            ("lasts", self.lasts.is_some()),
            ("one-way", self.one_way.is_some()),
            ("member", self.member.is_some()),
        ];
        let only = |allowed: &[&str], of: &str| {
            let stray = set.iter().find(|(key, set)| *set && !allowed.contains(key));
            stray.map_or(Ok(()), |(key, _)| {
                let allowed = allowed.join(", ");
                Err(error(
                    key,
                    &format!("does not go with `{of}`: allowed are {allowed}"),
                ))
            })
        };
        if let Some(kill) = self.kill {
            let keys = [
                "kill",
                "at",
                "phase",
                "round",
                "commit",
                "cut",
                "restart-after",
                "journal",
            ];
            only(&keys, "kill")?;
            let when = match (self.at, self.phase, self.round, self.commit, self.cut) {
                (Some(at), None, None, None, None) => When::At(at.0),
                (None, Some(phase), Some(round @ 1..), None, None) => When::Round {
                    round,
                    moment: phase.into(),
                },
                (None, None, None, Some(nth @ 1..), Some(cut)) if kill != "lead" => {
                    When::Commit { nth, cut }
                }
                _ => {
                    let needs = "needs `at`; or `phase` and `round` (from 1); or, for a silo by \
                                 name, `commit` (from 1) and `cut`";
                    return Err(error("kill", needs));
                }
            };
            let journal_lost = self.journal == Some(RawJournal::Lost);
            let who = if kill == "lead" {
                Who::Lead
            } else {
                Who::Silo(kill)
            };
            let restart_after = self.restart_after.map(|span| span.0);
            return Ok(Fault::Kill {
                who,
                when,
                restart_after,
                journal_lost,
            });
        }
        if let Some(members) = self.partition {
            only(&["partition", "at", "lasts", "one-way"], "partition")?;
            let (Some(at), Some(lasts)) = (self.at, self.lasts) else {
                return Err(error(
                    "partition",
                    "needs `at` and `lasts`, such as \"10s\" and \"1m\"",
                ));
            };
            let one_way = self.one_way == Some(true);
            return Ok(Fault::Partition {
                members,
                at: at.0,
                lasts: lasts.0,
                one_way,
            });
        }
        if let Some(sends) = self.sends {
            only(&["sends", "member"], "sends")?;
            let Some(member) = self.member else {
                return Err(error("sends", "needs `member`, the silo that misbehaves"));
            };
            return Ok(Fault::Byzantine { member, sends });
        }
        Err(error(
            "fault",
            "says nothing: it needs one of kill, partition, sends",
        ))
    }
}
