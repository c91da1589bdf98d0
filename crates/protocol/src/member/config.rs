//! What a member is started with: its identity, its past, and in tests a rule to break.

use std::sync::Arc;

use bytes::Bytes;

use crate::effects::Record;
use crate::envelope;
use crate::format::Formats;
use crate::hash::Hash;
use crate::identity::SecretKey;
use crate::message::{Amendment, Body, Message};
use crate::parameters::Epoch;
use crate::roster::MemberIndex;
use crate::rotation::Setting as _;

/// What a member knows of its past when it starts.
#[derive(Debug, Clone)]
pub enum Start {
    /// The member has never taken part in this federation.
    New,
    /// The member restarts with all records of its journal, oldest first. If none shows that it took part
    /// in the epoch, it asks others what its key has signed, as a new one does (R5).
    Kept(Vec<Record>),
    /// The member restarts without its journal: it may have voted and cannot know for what (R5).
    Lost,
}

/// Whether an institution's node can and may follow an amendment: a pure function of the amendment and
/// of what the node has. Asked before a member approves or proposes it, or votes for it.
#[derive(Clone)]
pub struct Examine(Arc<Examiner>);

type Examiner = dyn Fn(&Amendment) -> Result<(), String> + Send + Sync;

impl Examine {
    /// The answer of `function`, whose error is a sentence for people.
    pub fn new(
        function: impl Fn(&Amendment) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(function))
    }

    /// Asks.
    pub(in crate::member) fn ask(&self, amendment: &Amendment) -> Result<(), String> {
        (self.0)(amendment)
    }
}

/// Follows every amendment.
impl Default for Examine {
    fn default() -> Self {
        Self::new(|_| Ok(()))
    }
}

impl std::fmt::Debug for Examine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Examine")
    }
}

/// The identity of a member.
#[derive(Clone)]
pub struct Config {
    /// Roster and parameter set in force.
    pub epoch: Arc<Epoch>,
    /// This member's position in the roster.
    pub me: MemberIndex,
    /// This member's signing key.
    pub key: SecretKey,
    /// 32 random bytes, drawn anew at every start. The nonces of SyncRequests follow from them, so
    /// no member can have an answer ready. Nothing else does.
    pub seed: [u8; 32],
    /// The id of a recovery that declares this member lost and that its institution follows all the same.
    pub follow: Option<Hash>,
    /// Whether this institution's node can and may follow an amendment.
    pub examine: Examine,
    /// Why this member cannot take part in rounds under the agreement in force: it then plans, trains
    /// and adopts nothing, and votes on changes of the agreement only, so that it can be put right.
    pub bystander: Option<String>,
    /// Whether this member contributes and scores nothing until [`Input::Resume`](crate::Input::Resume),
    /// because its institution has not signed the agreement in force. It votes as ever.
    pub paused: bool,
    /// The last adopted round, if the members' strategy ended the federation with it.
    pub ended: Option<u64>,
    /// The formats that this member's program speaks.
    pub formats: Formats,
}

/// Without what only the member knows.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Config")
            .field("epoch", &self.epoch.id)
            .field("me", &self.me)
            .field("bystander", &self.bystander)
            .field("paused", &self.paused)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// A member of this epoch; see the fields.
    pub fn new(epoch: Arc<Epoch>, me: MemberIndex, key: SecretKey, seed: [u8; 32]) -> Self {
        Self {
            epoch,
            me,
            key,
            seed,
            follow: None,
            examine: Examine::default(),
            bystander: None,
            paused: false,
            ended: None,
            formats: Formats::SPOKEN,
        }
    }

    /// The nonce of this member's contribution to a round. Nobody else can compute it.
    pub fn nonce(&self, round: u64) -> [u8; 32] {
        let seed = self.epoch.seed();
        self.key.derive("nonce", &[&seed.0, &round.to_le_bytes()])
    }

    /// The nth number for one use.
    pub(in crate::member) fn draw(&self, label: &str, nth: u64) -> u64 {
        let Hash(drawn) = Hash::labelled(label, &[&self.seed, &nth.to_le_bytes()]);
        let (first, _) = drawn.split_first_chunk().expect("32 bytes hold 8");
        u64::from_le_bytes(*first)
    }

    /// The other members, ascending.
    pub(in crate::member) fn others(&self) -> Vec<MemberIndex> {
        let members = self.epoch.roster.members();
        members.filter(|&member| member != self.me).collect()
    }

    /// The members that may have models of a round: the lead first, then all others.
    pub(in crate::member) fn holders(&self, lead: MemberIndex) -> Vec<MemberIndex> {
        let mut holders = self.others();
        holders.sort_by_key(|&member| member != lead);
        holders
    }

    /// Signs a message.
    pub(in crate::member) fn sign(&self, round: u64, view: u64, body: Body) -> (Message, Bytes) {
        envelope::sign(&self.epoch, &self.key, round, view, self.me, body)
    }
}
