//! What members send in masked rounds, and the lists that leads make of it.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::codec;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::parameters::Epoch;
use crate::parameters::privacy::Sum;
use crate::roster::MemberIndex;

/// The contribution of a member to a masked round: two public keys in place of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Hash of the plan that was carried out.
    pub plan: Hash,
    /// The public keys.
    pub public: PublicKeys,
}

/// The public keys of a member for one round. They follow from a secret that only it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PublicKeys {
    /// The key with which others agree on the stream of a pair (A).
    #[serde(with = "codec::bytes")]
    pub exchange: [u8; 32],
    /// The key for which others lock shares (B).
    #[serde(with = "codec::bytes")]
    pub share: [u8; 32],
}

impl Keys {
    /// The id by which the lead's receipt names this contribution of a member to a round.
    pub fn id(&self, federation: &Hash, round: u64, member: MemberIndex) -> Hash {
        let (round, member) = (round.to_le_bytes(), member.0.to_le_bytes());
        Hash::labelled(
            "keys",
            &[&federation.0, &round, &member, &codec::encode(self)],
        )
    }
}

/// A member that is ready, with the keys that it has signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// The member.
    pub member: MemberIndex,
    /// Keys of the member.
    pub keys: Keys,
    /// Signature of the member over [`Body::Keys`](super::Body::Keys).
    pub signature: Signature,
}

/// The members that are ready for a masked round, with their signed keys, so that no lead can put keys
/// of its own into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// Strictly ascending by member.
    pub ready: Vec<Ready>,
}

impl KeyList {
    /// The members that are ready.
    pub fn members(&self) -> Vec<MemberIndex> {
        self.ready.iter().map(|ready| ready.member).collect()
    }

    /// The hash that masks are bound to: of the [document](ListDocument) of this list.
    pub fn root(&self, epoch: &Epoch, round: u64, plan: &Hash, state: &Hash, sums: &[Sum]) -> Hash {
        ListDocument {
            federation: epoch.federation,
            epoch: epoch.id,
            round,
            plan: *plan,
            state: *state,
            keys: self.clone(),
            sums: sums.to_vec(),
        }
        .root()
    }
}

/// Begins the blob of a list.
const LIST: &[u8] = b"rota masked list 1\n";

/// Everything that masks are bound to. As a blob it is kept by every member that votes for the round, and
/// a member that lacks it fetches it by its hash, the root of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDocument {
    /// Id of the federation.
    pub federation: Hash,
    /// Id of the epoch.
    pub epoch: Hash,
    /// The round.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Hash of the state that the round starts from.
    pub state: Hash,
    /// The members that are ready.
    pub keys: KeyList,
    /// The sums that are opened: the decision, which follows from agreement, state and ready members.
    pub sums: Vec<Sum>,
}

impl ListDocument {
    /// The bytes that members keep and fetch.
    pub fn blob(&self) -> Bytes {
        labelled(LIST, self)
    }

    /// Reads a blob that [`ListDocument::blob`] made; `None` for any other.
    pub fn read(blob: &[u8]) -> Option<Self> {
        codec::decode(blob.strip_prefix(LIST)?, codec::LIMIT).ok()
    }

    /// Hash of the blob.
    pub fn root(&self) -> Hash {
        Hash::of(&self.blob())
    }
}

/// A blob that begins with what it is.
fn labelled(label: &[u8], content: &impl Serialize) -> Bytes {
    let mut blob = label.to_vec();
    blob.extend(codec::encode(content));
    blob.into()
}

/// Bytes that members fetch from each other by their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Blob {
    /// Hash of the bytes.
    pub hash: Hash,
    /// Number of the bytes.
    pub size: u64,
}

/// A vector that was masked for a list, and the proof that its mask can be taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedVector {
    /// Root of the list.
    pub list: Hash,
    /// The masked vector.
    pub vector: Blob,
    /// The locked shares of its mask, with the proof that they fit together.
    pub transcript: Blob,
}

impl MaskedVector {
    /// The entry that this becomes in a manifest.
    pub fn entry(&self, member: MemberIndex) -> MaskedEntry {
        MaskedEntry {
            member,
            vector: self.vector,
            transcript: self.transcript,
        }
    }
}

/// A masked vector in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedEntry {
    /// Author of the vector.
    pub member: MemberIndex,
    /// The masked vector.
    pub vector: Blob,
    /// The locked shares of its mask.
    pub transcript: Blob,
}

/// The vectors of all authors of the sums of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedManifest {
    /// Root of the list.
    pub list: Hash,
    /// Strictly ascending by member.
    pub entries: Vec<MaskedEntry>,
}

/// Begins the blob of a masked manifest.
const MANIFEST: &[u8] = b"rota masked sheet 1\n";

impl MaskedManifest {
    /// The bytes that every member that votes for the round keeps, and that others fetch.
    pub fn blob(&self) -> Bytes {
        labelled(MANIFEST, self)
    }

    /// Reads a blob that [`MaskedManifest::blob`] made; `None` for any other.
    pub fn read(blob: &[u8]) -> Option<Self> {
        codec::decode(blob.strip_prefix(MANIFEST)?, codec::LIMIT).ok()
    }

    /// The hash that inclusions are signatures over: that of the blob.
    pub fn root(&self) -> Hash {
        Hash::of(&self.blob())
    }

    /// The authors.
    pub fn authors(&self) -> impl Iterator<Item = MemberIndex> {
        self.entries.iter().map(|entry| entry.member)
    }
}

/// A masked round as all members agree on it. Its outcome follows once its sums are opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaskedRound {
    /// The round, from 1.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// Hash of the state that it starts from: the certified outcome of the round before, or the
    /// parameter set's `start`.
    pub state: Hash,
    /// Root of the list.
    pub list: Hash,
    /// The members that are ready, ascending. Any t of them can open the sums.
    pub ready: Vec<MemberIndex>,
    /// Root of the manifest.
    pub manifest: Hash,
    /// Signatures over the manifest by its authors, ascending by member.
    #[serde(with = "codec::shared")]
    pub inclusions: Arc<[(MemberIndex, Signature)]>,
}

/// A ready member's shares of the masks of a final round, and the proof that they are the right ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmasking {
    /// Hash of the final block.
    pub block: Hash,
    /// The shares in the order of the authors, and the proof.
    pub opening: Vec<u8>,
}
