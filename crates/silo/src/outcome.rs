//! Outcomes of rounds as content-addressed documents.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use methods::strategy::Memory;
use methods::{Decision, Learner, Params, State, Strategy};
use protocol::message::RoundManifest;
use protocol::privacy::{CorrupterSearch, Voids};
use protocol::{Hash, MemberIndex, codec};
use serde::{Deserialize, Serialize};

/// Newest version of the encoding of outcome documents that this program writes and reads: that of masked
/// rounds after which it is searched who corrupts their sums. Documents of other secure-aggregation rounds are written in
/// version 2, and those of rounds in clear in version 1.
pub const FORMAT: u32 = 3;

const MASKED: u32 = 2;
const CLEAR: u32 = 1;

/// Why a blob is no outcome document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// A later version of the program wrote it.
    #[error(
        "outcome document format {0}, this program reads format {FORMAT}: use the program that \
         wrote it, or a newer one"
    )]
    Newer(u32),
    /// The blob is damaged, or something else.
    #[error("the blob is not an outcome document: {0}")]
    Malformed(String),
}

/// The agreed outcome of a round, with models by hash. Members vote on the hash of its blob: the version
/// as four bytes, little endian, then the canonical encoding of this struct; after a secure-aggregation round
/// version 2, and the encoding of [`MaskedNote`] behind it; where a search has begun version 3, and that
/// of [`CorrupterSearch`] behind them. The bytes are pinned by `crates/silo/golden/outcome.hex`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The round; 0 for the state before the first.
    pub round: u64,
    /// Hashes of the models that it was computed from, in the order of the manifest. By them a member
    /// that was away finds its own entry.
    pub entries: Vec<Hash>,
    /// Coalition of every entry, in the order of the manifest.
    pub assignment: Vec<u32>,
    /// Hashes of the models' documents, by coalition.
    pub models: Vec<Hash>,
    /// Numbers that the strategy keeps between rounds.
    pub memory: Memory,
    /// Hashes of the documents of further models that the strategy keeps, by name.
    pub tables: BTreeMap<String, Vec<Hash>>,
    /// What is known of the sums of a secure-aggregation round; `None` after any other.
    #[serde(skip)]
    pub masked: Option<MaskedNote>,
}

/// What all members know of the sums of a secure-aggregation round, besides the models.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedNote {
    /// Id of the epoch: `void` and `search` hold in it only.
    pub epoch: Hash,
    /// The authors of the manifest, ascending; `entries` are the hashes of their masked vectors.
    pub authors: Vec<MemberIndex>,
    /// For each author whether its sum told nothing, so that its vector is not in the outcome.
    pub left_out: Vec<bool>,
    /// The sums that were opened.
    pub sums: Vec<SumNote>,
    /// For each group of the parameter set in how many rounds of this epoch its sums told nothing. A later sum that
    /// tells something takes none of them back. Earlier programs counted only those since the last good sum:
    /// in their documents the number may be lower.
    pub void: Vec<u8>,
    /// Why the models stay as they were, if they do.
    pub nothing: Option<Nothing>,
    /// Who may have corrupted the sums of this epoch. Earlier programs searched nobody.
    #[serde(skip)]
    pub search: CorrupterSearch,
}

/// One opened sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SumNote {
    /// Position of its group in the parameter set.
    pub group: u16,
    /// Why it tells nothing, if it does not.
    pub void: Option<VoidSum>,
}

/// Why a sum tells nothing. A text would differ between versions of the program, and with it the hash of
/// the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum VoidSum {
    /// The masks of an author do not cancel.
    Streams,
    /// A number is larger than honest authors can make it.
    Reach,
    /// The vector of an author has another length.
    Length,
}

impl fmt::Display for VoidSum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "the masks of an author do not cancel",
            Self::Reach => "a number is larger than honest authors can make it",
            Self::Length => "the vector of an author has another length",
        })
    }
}

/// Why the models stay as they were after a secure-aggregation round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Nothing {
    /// No sum tells anything.
    Void,
    /// The strategy refuses the mean.
    Refused,
}

impl MaskedNote {
    /// Returns what the void sums of its epoch have shown.
    pub fn voids(&self) -> Voids {
        Voids {
            rounds: self.void.clone(),
            search: self.search.clone(),
        }
    }

    /// The authors of void sums.
    pub fn corrupted(&self) -> impl Iterator<Item = MemberIndex> + '_ {
        let authors = self.authors.iter().zip(&self.left_out);
        authors.filter_map(|(by, left_out)| left_out.then_some(*by))
    }
}

impl Document {
    /// The blob of this document.
    pub fn encode(&self) -> Bytes {
        let search = self.masked.as_ref().map(|masked| &masked.search);
        let search = search.filter(|search| **search != CorrupterSearch::Idle);
        let format = match (&self.masked, search) {
            (_, Some(_)) => FORMAT,
            (Some(_), None) => MASKED,
            (None, None) => CLEAR,
        };
        let mut blob = format.to_le_bytes().to_vec();
        blob.extend(codec::encode(self));
        blob.extend(self.masked.iter().flat_map(codec::encode));
        blob.extend(search.into_iter().flat_map(codec::encode));
        blob.into()
    }

    /// Reads a blob.
    ///
    /// # Errors
    /// [`DocumentError`]: a newer format, or not a document with at least one model.
    pub fn read(blob: &[u8]) -> Result<Self, DocumentError> {
        let malformed = |why: String| DocumentError::Malformed(why);
        let Some((format, document)) = blob.split_first_chunk() else {
            return Err(malformed(format!("{} bytes are too few", blob.len())));
        };
        let masked = |(of, note, search): (Self, MaskedNote, CorrupterSearch)| Self {
            masked: Some(MaskedNote { search, ..note }),
            ..of
        };
        let read = match u32::from_le_bytes(*format) {
            CLEAR => codec::decode(document, codec::LIMIT),
            MASKED => codec::decode(document, codec::LIMIT)
                .map(|(of, note)| masked((of, note, CorrupterSearch::Idle))),
            FORMAT => codec::decode(document, codec::LIMIT).map(masked),
            newer if newer > FORMAT => return Err(DocumentError::Newer(newer)),
            other => return Err(malformed(format!("there is no format {other}"))),
        };
        let document: Self = read.map_err(|error| malformed(error.to_string()))?;
        if document.models.is_empty() {
            return Err(malformed("it names no model".into()));
        }
        Ok(document)
    }

    /// Hashes of all models, in the order that `Settled::assemble` expects.
    pub fn all_models(&self) -> impl Iterator<Item = Hash> + '_ {
        let tables = self.tables.values().flatten();
        self.models.iter().chain(tables).copied()
    }
}

/// Begins the blob of a manifest.
const MANIFEST: &[u8] = b"rota sheet 1\n";

/// The manifest that an outcome was computed from, as a blob: it is kept as long as the models of its
/// round, so that the round can be computed again.
pub fn manifest_blob(manifest: &RoundManifest) -> Bytes {
    let mut blob = MANIFEST.to_vec();
    blob.extend(codec::encode(manifest));
    blob.into()
}

/// Reads a blob that [`manifest_blob`] made; `None` for any other.
pub fn read_manifest(blob: &[u8]) -> Option<RoundManifest> {
    codec::decode(blob.strip_prefix(MANIFEST)?, codec::LIMIT).ok()
}

/// An outcome with its document and state.
#[derive(Debug, Clone)]
pub struct Settled {
    /// Hash of the outcome's document.
    pub hash: Hash,
    pub(crate) blob: Bytes,
    /// The outcome's document.
    pub document: Document,
    /// The state after the outcome.
    pub state: Arc<State>,
    /// Hashes of entries, document, models and manifest, ascending.
    pub names: Vec<Hash>,
    /// What it was computed from besides models, as blobs: the manifest; after a secure-aggregation round the
    /// unmaskings. `None` where it was not computed here.
    manifest: Option<(Hash, Bytes)>,
}

impl Settled {
    pub(crate) fn new(round: u64, entries: Vec<Hash>, assignment: Vec<u32>, state: State) -> Self {
        Self::of_round(round, entries, assignment, state, None)
    }

    /// The outcome of a secure-aggregation round.
    pub(crate) fn masked(
        round: u64,
        entries: Vec<Hash>,
        assignment: Vec<u32>,
        state: State,
        note: MaskedNote,
    ) -> Self {
        Self::of_round(round, entries, assignment, state, Some(note))
    }

    fn of_round(
        round: u64,
        entries: Vec<Hash>,
        assignment: Vec<u32>,
        state: State,
        masked: Option<MaskedNote>,
    ) -> Self {
        let document = Document {
            masked,
            round,
            entries,
            assignment,
            models: hashes(&state.models),
            memory: state.memory.clone(),
            tables: state
                .tables
                .iter()
                .map(|(name, table)| (name.clone(), hashes(table)))
                .collect(),
        };
        Self::of(document.encode(), document, state)
    }

    /// Builds an outcome from its document and [all its models](Document::all_models), in order.
    pub(crate) fn assemble(blob: Bytes, document: Document, mut models: Vec<Params>) -> Self {
        let mut rest = models.split_off(document.models.len()).into_iter();
        let tables = document.tables.iter().map(|(name, table)| {
            let table = rest.by_ref().take(table.len()).collect();
            (name.clone(), table)
        });
        let state = State {
            models,
            tables: tables.collect(),
            memory: document.memory.clone(),
        };
        Self::of(blob, document, state)
    }

    fn of(blob: Bytes, document: Document, state: State) -> Self {
        let state = Arc::new(state);
        let hash = Hash::of(&blob);
        let mut names = [&document.entries[..], &[hash]].concat();
        names.extend(document.all_models());
        names.sort_unstable();
        names.dedup();
        Self {
            hash,
            blob,
            document,
            state,
            names,
            manifest: None,
        }
    }

    /// This outcome with its models read from other copies of their documents, which `copy` gives.
    pub(crate) fn read_from(self, copy: impl Fn(&Hash, Bytes) -> Bytes) -> Self {
        Self {
            state: Arc::new(read_from(State::clone(&self.state), copy)),
            ..self
        }
    }

    /// This outcome with its models read from the blobs that a store has `kept`, into which it was put.
    pub(crate) fn read_from_store(
        self: Arc<Self>,
        kept: impl Fn(&Hash, Bytes) -> Bytes,
    ) -> Arc<Self> {
        let own = |model: &Params| {
            let own = model.document();
            own.as_ptr() == kept(&Hash(model.hash()), own).as_ptr()
        };
        let tables = self.state.tables.values().flatten();
        // Nothing is copied where the store keeps these very bytes.
        if self.state.models.iter().chain(tables).all(own) {
            self
        } else {
            Arc::new(Self::clone(&self).read_from(kept))
        }
    }

    /// This outcome with the manifest that it was computed from.
    pub(crate) fn with_manifest(mut self, manifest: &RoundManifest) -> Self {
        let blob = manifest_blob(manifest);
        self.add(&[], blob);
        self
    }

    /// The same with the blobs of its secure-aggregation round, which are `here` already, and with the unmaskings that
    /// it was opened with.
    pub(crate) fn with_masked(mut self, here: &[Hash], unmaskings: Bytes) -> Self {
        self.add(here, unmaskings);
        self
    }

    /// Names blobs that are kept with the outcome, and one more that is not stored yet.
    fn add(&mut self, here: &[Hash], blob: Bytes) {
        let hash = Hash::of(&blob);
        self.names.extend(here);
        self.names.push(hash);
        self.names.sort_unstable();
        self.names.dedup();
        self.manifest = Some((hash, blob));
    }

    /// Document, models and manifest, each as its hash and blob.
    pub(crate) fn blobs(&self) -> impl Iterator<Item = (Hash, Bytes)> + '_ {
        let tables = self.state.tables.values().flatten();
        let models = self.state.models.iter().chain(tables);
        let models = self.document.all_models().zip(models);
        std::iter::once((self.hash, self.blob.clone()))
            .chain(models.map(|(hash, model)| (hash, model.document())))
            .chain(self.manifest.clone())
    }
}

/// The state with its models read from other copies of their documents, which `copy` gives; it is asked
/// once for equal models.
pub(crate) fn read_from(mut state: State, copy: impl Fn(&Hash, Bytes) -> Bytes) -> State {
    let mut all = BTreeMap::new();
    let tables = state.tables.values_mut().flatten();
    for model in state.models.iter_mut().chain(tables) {
        let hash = Hash(model.hash());
        let bytes: &Bytes = all
            .entry(hash)
            .or_insert_with(|| copy(&hash, model.document()));
        *model = model.read_from(bytes.clone());
    }
    state
}

fn hashes(models: &[Params]) -> Vec<Hash> {
    models.iter().map(|model| Hash(model.hash())).collect()
}

/// The outcome of a round without contributions: the state stays as it is.
pub(crate) fn unchanged(round: u64, state: &Arc<State>) -> Settled {
    Settled::new(round, Vec::new(), Vec::new(), State::clone(state))
}

/// Reads the encoded decision of a lead.
pub(crate) fn decision(bytes: &[u8]) -> Result<Decision, String> {
    let decision = codec::decode(bytes, codec::LIMIT);
    decision.map_err(|error| format!("the decision cannot be read: {error}"))
}

/// The state before the first round, and its hash, which a parameter set names as its `start`. A function
/// of the parameter set's strategy, of the model family as the strategy equips it, and of the seed of the
/// initial model.
pub fn genesis_outcome(strategy: &dyn Strategy, learner: &dyn Learner, seed: u64) -> (Hash, State) {
    let genesis = genesis(strategy, learner, seed);
    (genesis.hash, State::clone(&genesis.state))
}

/// The state before the first round as an outcome.
pub fn genesis(strategy: &dyn Strategy, learner: &dyn Learner, seed: u64) -> Settled {
    let state = strategy.initial_state(learner, seed);
    Settled::new(0, Vec::new(), Vec::new(), state)
}
