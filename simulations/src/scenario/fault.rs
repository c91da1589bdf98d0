//! The faults of a scenario as they stand in its file.

use agreement::{FileError, Span, TomlText};
use protocol::message::Phase;
use serde::Deserialize;

use bare::script::{Fault, FaultTime, KillTarget};
use bare::{Behaviour, Moment, StepCut};

/// One fault: a kill (`kill`), a network split (`split`) or a Byzantine member (`behaviour`). The other
/// keys belong to one of these.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RawFault {
    /// Kills a silo as in a power cut: its name, its position from 0, or "lead" for the member that
    /// leads at that moment. Needs `at`; or `phase` and `round`; or, for a silo by name, `commit`
    /// and `cut`.
    kill: Option<String>,
    /// Time of a kill or of the beginning of a network split, after the start.
    at: Option<Span>,
    /// Kill when a lead enters this phase of `round` for the first time.
    phase: Option<RawPhase>,
    /// Round of `phase`.
    #[schemars(range(min = 1))]
    round: Option<u64>,
    /// Kill at this commit of the silo's journal, counted from 1.
    #[schemars(range(min = 1))]
    commit: Option<u64>,
    /// Kill before or after the commit is durable.
    cut: Option<StepCut>,
    /// Time between the kill and the restart; without it the silo never restarts.
    restart_after: Option<Span>,
    /// Whether the silo restarts with its journal and blobs. Kept, unless "lost".
    journal: Option<RawJournal>,
    /// Network split: the silos, by name or by position from 0, that cannot reach the others.
    /// Needs `at` and `lasts`.
    split: Option<Vec<String>>,
    /// Length of the network split.
    lasts: Option<Span>,
    /// Whether the silos that are cut off still receive from the others. Default: false.
    one_way: Option<bool>,
    /// What a Byzantine member does from the beginning. Needs `member`; several faults may name the
    /// same member.
    behaviour: Option<Behaviour>,
    /// The Byzantine member, by name or by position from 0.
    member: Option<String>,
}

/// A moment of a round, as seen by its lead.
#[derive(Debug, Clone, Copy, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RawPhase {
    /// The view has begun; the lead waits until it may open the round.
    Waiting,
    /// The lead collects contributions.
    Collecting,
    /// In secure-aggregation rounds: the lead waits for masked vectors.
    Masking,
    /// The members measure each other's models.
    Scoring,
    /// The members sign for the manifest.
    Including,
    /// The lead computes its decision.
    Deciding,
    /// The members vote on the proposal.
    Voting,
    /// The lead knows that its block is notarised, but not yet that it is final.
    Notarised,
}

impl From<RawPhase> for Moment {
    fn from(phase: RawPhase) -> Self {
        Self::Phase(match phase {
            RawPhase::Waiting => Phase::Waiting,
            RawPhase::Collecting => Phase::Collecting,
            RawPhase::Masking => Phase::Masking,
            RawPhase::Scoring => Phase::Scoring,
            RawPhase::Including => Phase::Including,
            RawPhase::Deciding => Phase::Deciding,
            RawPhase::Voting => Phase::Voting,
            RawPhase::Notarised => return Self::Notarised,
        })
    }
}

/// What is on the disk of a silo that restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum RawJournal {
    /// Everything that was durable.
    Kept,
    /// Nothing.
    Lost,
}

/// The key of a fault that is wrong, and what about it.
type BadKey = (&'static str, String);

impl RawFault {
    /// The `nth` fault of the file, from 0.
    pub(super) fn validate(self, nth: usize, source: TomlText<'_>) -> Result<Fault, FileError> {
        let fault = if let Some(kill) = &self.kill {
            self.as_kill(kill)
        } else if let Some(members) = &self.split {
            self.as_split(members)
        } else if let Some(behaviour) = self.behaviour {
            self.as_byzantine(behaviour)
        } else {
            let empty = "is empty: it needs one of kill, split, behaviour";
            Err(("fault", empty.to_owned()))
        };
        fault.map_err(|(key, what)| source.key_of(&format!("fault.{nth}.{key}"), what))
    }

    fn as_kill(&self, kill: &str) -> Result<Fault, BadKey> {
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
        self.only(&keys, "kill")?;
        let when = match (self.at, self.phase, self.round, self.commit, self.cut) {
            (Some(at), None, None, None, None) => FaultTime::At(at.0),
            (None, Some(phase), Some(round @ 1..), None, None) => FaultTime::Round {
                round,
                moment: phase.into(),
            },
            (None, None, None, Some(nth @ 1..), Some(cut)) if kill != "lead" => {
                FaultTime::Commit { nth, cut }
            }
            _ => {
                let needs = "needs `at`; or `phase` and `round` (from 1); or, for a silo by \
                             name, `commit` (from 1) and `cut`";
                return Err(("kill", needs.to_owned()));
            }
        };
        let who = if kill == "lead" {
            KillTarget::Lead
        } else {
            KillTarget::Silo(kill.to_owned())
        };
        Ok(Fault::Kill {
            who,
            when,
            restart_after: self.restart_after.map(|span| span.0),
            journal_lost: self.journal == Some(RawJournal::Lost),
        })
    }

    fn as_split(&self, members: &[String]) -> Result<Fault, BadKey> {
        self.only(&["split", "at", "lasts", "one-way"], "split")?;
        let (Some(at), Some(lasts)) = (self.at, self.lasts) else {
            let needs = "needs `at` and `lasts`, such as \"10s\" and \"1m\"";
            return Err(("split", needs.to_owned()));
        };
        Ok(Fault::Split {
            members: members.to_vec(),
            at: at.0,
            lasts: lasts.0,
            one_way: self.one_way == Some(true),
        })
    }

    fn as_byzantine(&self, behaviour: Behaviour) -> Result<Fault, BadKey> {
        self.only(&["behaviour", "member"], "behaviour")?;
        let Some(member) = self.member.clone() else {
            let needs = "needs `member`, the Byzantine silo";
            return Err(("behaviour", needs.to_owned()));
        };
        Ok(Fault::Byzantine { member, behaviour })
    }

    /// Returns whether a fault of the kind `of` has no keys but those that go with it.
    ///
    /// # Errors
    /// The first other key.
    fn only(&self, allowed: &[&str], of: &str) -> Result<(), BadKey> {
        let set = [
            ("kill", self.kill.is_some()),
            ("split", self.split.is_some()),
            ("behaviour", self.behaviour.is_some()),
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
        let stray = set.iter().find(|(key, set)| *set && !allowed.contains(key));
        stray.map_or(Ok(()), |(key, _)| {
            let allowed = allowed.join(", ");
            let what = format!("does not go with `{of}`: allowed are {allowed}");
            Err((*key, what))
        })
    }
}
