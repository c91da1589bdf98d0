//! What a member is started with: its identity, its past, and in tests a rule to break.

use std::sync::Arc;

use crate::charter::Epoch;
use crate::effects::Record;
use crate::format::Formats;
use crate::hash::Hash;
use crate::identity::SecretKey;
#[cfg(feature = "mutations")]
use crate::mutation;
use crate::mutation::Mutation;
use crate::roster::MemberIndex;

use super::Member;

/// What a member knows of its past when it starts.
#[derive(Debug, Clone)]
pub enum Start {
    /// It has never taken part in this federation.
    New,
    /// It restarts with all records of its journal, oldest first.
    Kept(Vec<Record>),
    /// It restarts without its journal: it may have voted and cannot know for what (R5).
    Lost,
}

/// The identity of a member.
#[derive(Debug, Clone)]
pub struct Config {
    /// Roster and charter in force.
    pub epoch: Arc<Epoch>,
    /// This member's position in the roster.
    pub me: MemberIndex,
    /// This member's signing key.
    pub key: SecretKey,
    /// 32 random bytes, drawn anew at every start. The nonces of SyncRequests follow from them, so
    /// no member can have an answer ready.
    pub seed: [u8; 32],
    /// The beginning of the id (64 hexadecimal digits) of a recovery that declares this member lost and
    /// that its institution follows all the same.
    pub follow: Option<String>,
    /// The last adopted round, if the members' strategy ended the federation with it.
    pub ended: Option<u64>,
    /// The formats that this member's program speaks.
    pub formats: Formats,
    #[cfg(feature = "mutations")]
    pub(super) mutation: Option<Mutation>,
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
            ended: None,
            formats: Formats::SPOKEN,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }

    /// The nth number for one use.
    pub(super) fn draw(&self, label: &str, nth: u64) -> u64 {
        let Hash(drawn) = Hash::labelled(label, &[&self.seed, &nth.to_le_bytes()]);
        let (first, _) = drawn.split_first_chunk().expect("32 bytes hold 8");
        u64::from_le_bytes(*first)
    }

    /// The same member with one rule broken.
    #[cfg(feature = "mutations")]
    pub fn breaking(self, rule: Mutation) -> Self {
        Self {
            mutation: Some(rule),
            ..self
        }
    }
}

impl Member {
    /// Whether a rule is broken on purpose, at this member or everywhere.
    #[cfg(feature = "mutations")]
    pub(super) fn broken(&self, rule: Mutation) -> bool {
        self.config.mutation == Some(rule) || mutation::broken(rule)
    }

    #[cfg(not(feature = "mutations"))]
    pub(super) fn broken(&self, _: Mutation) -> bool {
        false
    }

    /// An error, unless the rule that it comes from is broken on purpose.
    pub(super) fn unless<E>(&self, rule: Mutation, error: E) -> Result<(), E> {
        match self.broken(rule) {
            true => Ok(()),
            false => Err(error),
        }
    }
}
