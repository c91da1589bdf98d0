//! The parameter set: what the members of a federation agreed on, and the ids that follow from it.

pub mod privacy;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::codec::{self, CodecError};
use crate::format::Formats;
use crate::hash::Hash;
use crate::identity::PublicKey;
use crate::name::{self, NameError};
use crate::roster::{MemberIndex, Roster, RosterError, Silo, faulty, quorum};
use crate::rotation::{Cycles, Setting, Turns};
use crate::verification;

pub use crate::rotation::Rotation;
pub use crate::verification::Verification;
pub use privacy::{Group, Masked, Noise, Privacy, Real, Release, RoundMode, Sums, Unit};

/// The format of agreements and messages that a new federation begins with, unless its rounds need a
/// newer one. A change of the fields below, of their order, of the layout of [`ProtocolParameters::work`], or of
/// any message takes the next number.
pub const FORMAT: u32 = Formats::FIRST as u32;

/// What the members agreed on. Spans are in milliseconds or in heartbeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProtocolParameters {
    /// The federation's name, for people; valid for [`name::check`].
    pub name: String,
    /// Task, model, data preparation and strategy, in a canonical encoding of the crates above.
    /// Part of the agreement and of its hash; the protocol does not look into it.
    pub work: Vec<u8>,
    /// Hash of the state that the first round starts from.
    pub start: Hash,
    /// Learning rounds, at least 1.
    pub rounds: u64,
    /// The one constant of time, in milliseconds. All timers are multiples of it or of measured
    /// round trips.
    pub heartbeat_ms: u64,
    /// Beats that a round waits for a slow participant before going on without it.
    pub patience: u32,
    /// Beats after which members vote to nullify a view, even if its lead sends progress. At least twice the
    /// patience and half a heartbeat for each of f + 4 phases; members wait longer on slow links.
    pub view_timeout: u32,
    /// Fewest contributions that a round may have.
    pub min_contributions: u16,
    /// Who leads when.
    pub rotation: Rotation,
    /// What a member checks before it votes.
    pub verification: Verification,
    /// What members see of each other's contributions.
    pub privacy: Privacy,
    /// Largest size of a contributed blob, in bytes.
    pub blob_limit: u64,
    /// Number of final rounds whose blobs a member keeps, so that others can fetch them.
    pub keep_rounds: u32,
    /// Whether members on one local network may find each other by multicast DNS, which makes them
    /// visible to every machine on it.
    pub discovery: bool,
}

/// Why a parameter set is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParametersError {
    /// The roster is not usable.
    #[error(transparent)]
    Roster(#[from] RosterError),
    /// The federation's name is not usable.
    #[error("the federation's name {0}")]
    Name(NameError),
    /// A number out of range.
    #[error("protocol: {key} is {value}, it must be {allowed}")]
    Range {
        /// The field, as `federation.toml` names it.
        key: &'static str,
        /// Value of the field.
        value: u64,
        /// The allowed range, in words.
        allowed: String,
    },
    /// Masked rounds of fewer than four members, which tolerate no colluder.
    #[error("secure-aggregation rounds need at least 4 members, there are {members}")]
    TooFewToMask {
        /// Members in the roster.
        members: usize,
    },
    /// Masked rounds that not all members check.
    #[error(
        "the charter's verification is {0}: in secure-aggregation rounds it must be full, because every member has to \
         check a list before it helps to open its sums"
    )]
    MaskedUnverified(Verification),
    /// A group that does not protect its authors.
    #[error(
        "the group {group:?} must name at least {fewest} members in ascending order, each with a weight of \
         at least 1 and at most half of the sum"
    )]
    Group {
        /// Members of the group.
        group: String,
        /// The fewest that a group may have.
        fewest: usize,
    },
    /// Institutions whose updates become visible, out of order, or where noise covers them.
    #[error(
        "the institutions whose updates become visible must be named once and in ascending order, and only \
         in secure-aggregation rounds without noise"
    )]
    Shows,
    /// Noised sums of members of whom one has not said how many rows it has at most.
    #[error(
        "{0} declares no `rows`: in differentially private rounds every member does, because sums are divided by the \
         agreed numbers of rows"
    )]
    UndeclaredRows(String),
    /// A number of the noise out of range.
    #[error("protocol: {key} is {number:?}, it must be {allowed}")]
    Noise {
        /// The field, as `federation.toml` names it.
        key: &'static str,
        /// Value of the field.
        number: Real,
        /// The allowed range, in words.
        allowed: &'static str,
    },
    /// A member of two groups: its vector would be in two sums.
    #[error("{0} is in two groups, a member may be in one")]
    TwoGroups(String),
    /// Masked rounds in a format that does not have their messages.
    #[error("secure-aggregation rounds need message format {needed}, the agreement has format {0}", needed = Formats::MASKED)]
    MaskedFormat(u8),
}

/// The roster and the parameter set that a federation began with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Genesis {
    /// The first members.
    pub silos: Vec<Silo>,
    /// The first parameter set.
    pub protocol: ProtocolParameters,
}

/// The last final round before an epoch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The round; 0 for none.
    pub round: u64,
    /// Hash of its block; the id of the first epoch for round 0.
    pub block: Hash,
    /// Hash of its outcome; the parameter set's `start` for round 0.
    pub outcome: Hash,
}

/// A roster and a parameter set in force, and everything that follows from them.
#[derive(Debug, Clone)]
pub struct Epoch {
    /// The federation's id: the hash of its genesis. Never changes.
    pub federation: Hash,
    /// The epoch's id: the hash of the genesis, or of the block that began it. Parent of its first
    /// block.
    pub id: Hash,
    /// How many epochs came before it.
    pub number: u64,
    /// The last final round before it.
    pub began: Checkpoint,
    /// Format of its messages.
    pub format: u8,
    /// The members.
    pub roster: Roster,
    /// The agreement.
    pub protocol: ProtocolParameters,
    cycles: Cycles,
}

impl Genesis {
    /// The bytes that the ids of the federation and of its first epoch are hashes of: its format, the
    /// members' names and keys, and the parameter set, in the canonical encoding. The members' declared
    /// rows follow, if any member declares some.
    pub fn encode(&self, format: u8) -> Vec<u8> {
        let members = self.silos.iter().map(|silo| (&silo.name, silo.key));
        let members: Vec<_> = members.collect();
        let mut bytes = codec::encode(&(u32::from(format), members, &self.protocol));
        let rows: Vec<_> = self.silos.iter().map(|silo| silo.rows).collect();
        if rows.iter().any(Option::is_some) {
            bytes.extend(codec::encode(&rows));
        }
        bytes
    }

    /// The format and the genesis that [`encode`](Self::encode) gave these bytes for.
    ///
    /// # Errors
    /// [`CodecError`]: bytes that it gives for none.
    pub fn decode(bytes: &[u8]) -> Result<(u32, Self), CodecError> {
        type Plain = (u32, Vec<(String, PublicKey)>, ProtocolParameters);
        let (plain, rows) = match codec::decode::<Plain>(bytes, codec::LIMIT) {
            Ok(plain) => (plain, Vec::new()),
            Err(_) => codec::decode::<(Plain, Vec<Option<u64>>)>(bytes, codec::LIMIT)?,
        };
        let (format, members, protocol) = plain;
        let declared = rows.iter().any(Option::is_some) && rows.len() == members.len();
        if !rows.is_empty() && !declared {
            return Err(CodecError::NotCanonical);
        }
        let rows = rows.into_iter().chain(std::iter::repeat(None));
        let silo = |((name, key), rows)| Silo { name, key, rows };
        let silos = members.into_iter().zip(rows).map(silo).collect();
        Ok((format, Self { silos, protocol }))
    }
}

impl Epoch {
    /// The first epoch of a new federation, in the format that new federations begin with, or a newer
    /// one if its rounds need that.
    ///
    /// # Errors
    /// [`ParametersError`]: an unusable roster, or a number out of range (which, and what is allowed).
    pub fn first(genesis: &Genesis) -> Result<Self, ParametersError> {
        Self::first_in(
            Formats::FIRST.max(genesis.protocol.privacy.since()),
            genesis,
        )
    }

    /// The first epoch of a federation that began with this format.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    pub fn first_in(format: u8, genesis: &Genesis) -> Result<Self, ParametersError> {
        let roster = Roster::new(genesis.silos.clone())?;
        Self::of(format, genesis, roster)
    }

    /// The first epoch of a federation that is simulated: one of more than
    /// [`MOST_MEMBERS`](crate::roster::MOST_MEMBERS) can be simulated without votes.
    ///
    /// # Errors
    /// As [`first`](Self::first).
    pub fn simulated(genesis: &Genesis) -> Result<Self, ParametersError> {
        let roster = Roster::simulated(genesis.silos.clone())?;
        let format = Formats::FIRST.max(genesis.protocol.privacy.since());
        Self::of(format, genesis, roster)
    }

    fn of(format: u8, genesis: &Genesis, roster: Roster) -> Result<Self, ParametersError> {
        genesis.protocol.validate(format, &roster)?;
        if let Some(masked) = genesis.protocol.privacy.masked() {
            masked.validate_first(roster.len())?;
        }
        let bytes = genesis.encode(format);
        let id = Hash::labelled("rota epoch", &[&bytes]);
        Ok(Self {
            federation: Hash::labelled("rota genesis", &[&bytes]),
            id,
            number: 0,
            began: Checkpoint {
                round: 0,
                block: id,
                outcome: genesis.protocol.start,
            },
            format,
            roster,
            protocol: genesis.protocol.clone(),
            cycles: Cycles::default(),
        })
    }

    /// The epoch after this one, which `block` began.
    pub(crate) fn followed_by(
        &self,
        block: Hash,
        began: Checkpoint,
        format: u8,
        roster: Roster,
        protocol: ProtocolParameters,
    ) -> Self {
        Self {
            federation: self.federation,
            id: block,
            number: self.number + 1,
            began,
            format,
            roster,
            protocol,
            cycles: Cycles::default(),
        }
    }

    /// Who leads which view before the first final round. [`Turns::advance`] follows the final
    /// rounds.
    pub fn turns(&self) -> Turns {
        Turns::first(self)
    }

    /// The lead of a view as long as no round is final. Under `every-round` and `fixed` it is the
    /// lead of that view for ever; under the others [`turns`](Self::turns) tells.
    pub fn lead(&self, view: u64) -> MemberIndex {
        match self.protocol.rotation {
            Rotation::EveryRound => self.lead_by_view(view),
            _ => self.turns().lead(self, view),
        }
    }

    /// The members that check the round of a view, ascending; `last` is the hash of the last final
    /// learning block, or this epoch's id. See [`verification::auditors`].
    pub fn auditors(&self, last: &Hash, view: u64) -> Vec<MemberIndex> {
        verification::auditors(self.protocol.verification, self.roster.len(), last, view)
    }

    /// One heartbeat.
    pub fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.protocol.heartbeat_ms)
    }

    /// The fewest entries that a round may have whose plan names this many members. Of them, as many may
    /// be missing as the parameter set's `min_contributions` allows of all. So a round of a plan that names few
    /// members may have none, and then leaves the models as they are.
    pub fn fewest(&self, participants: usize) -> usize {
        let missing = self.roster.len() - usize::from(self.protocol.min_contributions);
        participants.saturating_sub(missing)
    }

    /// How long a round waits for slow participants.
    pub fn patience(&self) -> Duration {
        self.heartbeat() * self.protocol.patience
    }
}

impl Setting for Epoch {
    fn rotation(&self) -> Rotation {
        self.protocol.rotation
    }

    fn seed(&self) -> &Hash {
        // The first epoch's has always been the federation's id.
        match self.number {
            0 => &self.federation,
            _ => &self.id,
        }
    }

    fn members(&self) -> usize {
        self.roster.len()
    }

    fn lead_by_view(&self, view: u64) -> MemberIndex {
        self.cycles.lead(self.seed(), self.roster.len(), view)
    }
}

impl ProtocolParameters {
    /// A parameter set of three rounds with small blobs, a heartbeat of a second, and clear contributions that all
    /// check: to try the protocol out, with other values for what matters there.
    pub fn small(name: &str) -> Self {
        Self {
            name: name.into(),
            work: Vec::new(),
            start: Hash::of(b"start"),
            rounds: 3,
            heartbeat_ms: 1000,
            patience: 20,
            view_timeout: 100,
            min_contributions: 3,
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            privacy: Privacy::Clear,
            blob_limit: 100,
            keep_rounds: 2,
            discovery: false,
        }
    }

    /// This parameter set of `before` members for `after` members. The fewest contributions of a round
    /// change: where there are fewer members, as many as before may be missing; where there are
    /// more, as few as before are enough, if the rule for their number allows it. A view timeout that
    /// is too short for more members becomes as long as it has to be. A noised sum needs its authors whoever
    /// leaves, so no round may have fewer as long as there are enough members.
    pub fn for_members(&self, before: usize, after: usize) -> Self {
        let gone = before.saturating_sub(after) as u16;
        let noised = self
            .privacy
            .masked()
            .filter(|masked| masked.noise().is_some());
        let authors = noised.map_or(0, Masked::fewest_authors).min(after);
        let fewest = self.fewest_contributions(after).max(authors) as u16;
        let kept = self.min_contributions.saturating_sub(gone);
        Self {
            min_contributions: kept.max(fewest),
            view_timeout: self
                .view_timeout
                .max(self.shortest_view_timeout(after) as u32),
            ..self.clone()
        }
    }

    /// Whether entries are tied to members from round to round by a name.
    pub fn shows_names(&self) -> bool {
        match self.privacy.mode() {
            RoundMode::Named => true,
            RoundMode::Clear | RoundMode::Masked(_) | RoundMode::Noised(..) => false,
        }
    }

    /// The fewest contributions that it may ask for, in a federation of so many members: 2f + 1, or all
    /// where that is less; in masked rounds a quorum.
    fn fewest_contributions(&self, members: usize) -> usize {
        match self.privacy {
            Privacy::Masked(_) => quorum(members),
            Privacy::Clear | Privacy::ClearWithNames => (2 * faulty(members) + 1).min(members),
        }
    }

    /// Twice the patience and half a heartbeat for each of f + 4 phases, in heartbeats.
    fn shortest_view_timeout(&self, members: usize) -> u64 {
        let faulty = faulty(members) as u64;
        2 * u64::from(self.patience) + (faulty + 4).div_ceil(2)
    }

    /// Whether members can be bound by this parameter set in messages of that format.
    ///
    /// # Errors
    /// [`ParametersError`]: the first number that is out of range, or why rounds cannot be masked.
    pub(crate) fn validate(&self, format: u8, roster: &Roster) -> Result<(), ParametersError> {
        self.validate_numbers(roster)?;
        let Some(masked) = self.privacy.masked() else {
            return Ok(());
        };
        if format < Formats::MASKED {
            return Err(ParametersError::MaskedFormat(format));
        }
        masked.validate(self, roster)
    }

    fn validate_numbers(&self, roster: &Roster) -> Result<(), ParametersError> {
        let range = |key, value, ok: bool, allowed: String| {
            if ok {
                Ok(())
            } else {
                Err(ParametersError::Range {
                    key,
                    value,
                    allowed,
                })
            }
        };
        name::check(&self.name).map_err(ParametersError::Name)?;
        range("rounds", self.rounds, self.rounds >= 1, "at least 1".into())?;
        range(
            "heartbeat",
            self.heartbeat_ms,
            (10..=600_000).contains(&self.heartbeat_ms),
            "between 10 and 600000 milliseconds".into(),
        )?;
        range(
            "straggler-timeout",
            self.patience.into(),
            self.patience >= 1,
            "at least 1 beat".into(),
        )?;
        let fewest = self.fewest_contributions(roster.len()) as u64;
        range(
            "min-contributions",
            self.min_contributions.into(),
            (fewest..=roster.len() as u64).contains(&self.min_contributions.into()),
            format!("between {fewest} and {} with {0} members", roster.len()),
        )?;
        // view timeout ≥ 2·patience + (f+4)·D with the shortest D, half a heartbeat.
        let shortest = self.shortest_view_timeout(roster.len());
        range(
            "view-timeout",
            self.view_timeout.into(),
            u64::from(self.view_timeout) >= shortest,
            format!(
                "at least {shortest} beats: twice the patience and half a beat for f + 4 phases"
            ),
        )?;
        if let Rotation::EveryRounds(rounds) = self.rotation {
            let (key, allowed) = ("rotation = every-K-rounds", "at least 2: 1 is every-round");
            range(key, rounds.into(), rounds >= 2, allowed.into())?;
        }
        if self.verification == Verification::Committee(0) {
            let (key, allowed) = ("verification = committee-C", "at least 1 member".into());
            range(key, 0, false, allowed)?;
        }
        range(
            "blob-limit",
            self.blob_limit,
            self.blob_limit >= 1,
            "at least 1 byte".into(),
        )?;
        range(
            "keep-rounds",
            self.keep_rounds.into(),
            self.keep_rounds >= 1,
            "at least 1 round".into(),
        )
    }
}
