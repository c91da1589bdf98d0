//! The heavy work that a member asks for: requests, and their answers. The protocol knows of models only
//! what stands here.
//!
//! A new kind of work is declared in this file: its request, its answer, its names, and how it is
//! answered when it fails. The compiler then names the places where it is asked for, done, and answered.

mod masked;

use std::fmt;
use std::sync::Arc;

use crate::hash::Hash;
use crate::message::{Entry, EntryFields, MaskedManifest, MaskedVector, PublicKeys, RoundManifest};
use crate::parameters::privacy::Voids;
use crate::roster::MemberIndex;

pub use masked::{FinalMasked, MaskedList};

/// Why work on models gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkError {
    /// A blob could not be fetched now. Trying again may help.
    Unavailable,
    /// The work itself failed, as it would at every member and at any time. Says why.
    Refused(String),
}

/// The part of a plan that the protocol reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The round.
    pub round: u64,
    /// Hash of the plan.
    pub plan: Hash,
    /// The members that take part, ascending; `None` for all. Whom `voids` leaves out takes no part in any case.
    pub participants: Option<Vec<MemberIndex>>,
    /// Whether participants score each other's models (cross-evaluation).
    pub cross_evaluate: bool,
    /// Whether entries carry a weight.
    pub weights: bool,
    /// Exact size of a contributed model, in bytes.
    pub blob_size: u64,
    /// In masked rounds: what the void sums of this epoch have shown so far. Which sums the round has follows from
    /// it, and that a member may be left out of it.
    pub voids: Voids,
}

/// The result of a training.
#[derive(Debug, Clone, PartialEq)]
pub struct Trained {
    /// The fields of the entry.
    pub fields: EntryFields,
    /// Training metrics by name, ascending.
    pub metrics: Vec<(String, f64)>,
}

/// A manifest and a decision on it. Checking the decision and computing the outcome depend on these,
/// and on the state that the round started from, alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// The round.
    pub round: u64,
    /// The manifest.
    pub manifest: Arc<RoundManifest>,
    /// The decision.
    pub decision: Arc<[u8]>,
    id: Hash,
}

impl Case {
    /// A decision on a manifest; `root` is the manifest's [`root`](RoundManifest::root).
    pub fn new(round: u64, root: Hash, manifest: Arc<RoundManifest>, decision: Arc<[u8]>) -> Self {
        let id = Hash::labelled("case", &[&round.to_le_bytes(), &root.0, &decision]);
        Self {
            round,
            manifest,
            decision,
            id,
        }
    }

    /// The hash of round, root and decision, by which results name the case.
    pub fn id(&self) -> Hash {
        self.id
    }
}

/// Something heavy to do, for [`Effect::Work`](crate::Effect::Work).
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    /// Compute the plan of a round from the state before it. → [`Answer::Planned`]
    Plan {
        /// The round.
        round: u64,
        /// Hash of the state: the last outcome, or the parameter set's `start` in the first round.
        state: Hash,
    },
    /// Train as the plan says. → [`Answer::Trained`]
    Train {
        /// The round.
        round: u64,
    },
    /// As lead: fetch a contributed model from its author and check whether it is usable.
    /// → [`Answer::Admitted`]
    Admit {
        /// The round.
        round: u64,
        /// The contribution's fields.
        fields: EntryFields,
        /// The contribution's author.
        from: MemberIndex,
    },
    /// Evaluate the models of these entries on this member's own data. → [`Answer::Evaluated`]
    Evaluate {
        /// The round.
        round: u64,
        /// The entries that are not scored yet.
        entries: Vec<Entry>,
        /// Members that may have their models, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Fetch the models of these entries and keep them until the round is over: a member that signs
    /// for a manifest can give others all of it. → [`Answer::Held`]
    Hold {
        /// The round.
        round: u64,
        /// The entries whose models are not kept yet.
        entries: Vec<Entry>,
        /// Members that may have them, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// As lead: make the decision. → [`Answer::Decided`]
    Decide {
        /// The round.
        round: u64,
        /// The manifest to decide on.
        manifest: Arc<RoundManifest>,
        /// Members that may have its models, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Check whether a decision is acceptable. → [`Answer::Checked`]
    Check {
        /// The manifest and the decision.
        case: Case,
        /// Members that may have the models, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Compute the outcome and keep it. → [`Answer::Settled`]
    Settle {
        /// The manifest and the decision.
        case: Case,
        /// Members that may have the models, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Fetch an outcome with its models and keep it, without computing it: a member that votes for it
    /// can give it to others. → [`Answer::Kept`]
    Keep {
        /// The round.
        round: u64,
        /// Hash of the outcome.
        outcome: Hash,
        /// Members that may have it, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Adopt final outcomes: model, personal state, strategy state and round number, in one
    /// transaction with a [`Record::Applied`](crate::Record::Applied). → [`Answer::Applied`]
    Apply {
        /// The rounds that became final, oldest first. Only the last outcome is adopted; a member
        /// that was away passes over earlier ones.
        rounds: Vec<FinalRound>,
        /// Members that may have the last outcome, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Train as the plan says, draw a secret for masks, and keep vector and secret durably until a
    /// round as late as this is adopted. Done once for an epoch and round: again, it gives the same
    /// keys. → [`Answer::Prepared`]
    Prepare {
        /// The round.
        round: u64,
    },
    /// As lead: check whether public keys can be used. → [`Answer::KeysChecked`]
    CheckKeys {
        /// The round.
        round: u64,
        /// The keys.
        keys: PublicKeys,
        /// Owner of the keys.
        from: MemberIndex,
    },
    /// Mask this member's vector for a list, and keep it with its transcript. It depends on the secret
    /// and the list alone. → [`Answer::Masked`]
    Mask {
        /// The list, of which this member is an author.
        list: Arc<MaskedList>,
    },
    /// Fetch the vectors and transcripts of a manifest, check the transcripts, and keep everything
    /// durably, list and manifest included, until the outcome is adopted. → [`Answer::Verified`]
    Verify {
        /// The list.
        list: Arc<MaskedList>,
        /// Vectors for this list. A lead has single ones checked as manifests of one entry.
        manifest: Arc<MaskedManifest>,
        /// Members that may have the blobs, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Unlock this member's shares of the masks of a final round, and prove them. → [`Answer::Unmasked`]
    Unmask {
        /// The round.
        of: Arc<FinalMasked>,
        /// Members that may have list and transcripts, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
    /// Check the unmaskings, open the sums, compute the outcome and keep it. → [`Answer::Combined`]
    Combine {
        /// The round.
        of: Arc<FinalMasked>,
        /// Members with their shares and proofs.
        unmaskings: Vec<(MemberIndex, Vec<u8>)>,
        /// Members that may have list, vectors and transcripts, to be asked in this order.
        holders: Vec<MemberIndex>,
    },
}

/// The result of heavy work, for [`Input::Done`](crate::Input::Done).
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Answer to [`Request::Plan`].
    Planned(Planned),
    /// Answer to [`Request::Train`].
    Trained {
        /// The round.
        round: u64,
        /// The contribution, or why there is none this round.
        result: Result<Trained, String>,
    },
    /// Answer to [`Request::Admit`].
    Admitted {
        /// The round.
        round: u64,
        /// The contribution's author.
        from: MemberIndex,
        /// The contribution's fields.
        fields: EntryFields,
        /// Whether the model is usable.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Evaluate`].
    Evaluated {
        /// The round.
        round: u64,
        /// Hash of each model and its loss.
        result: Result<Vec<(Hash, f64)>, WorkError>,
    },
    /// Answer to [`Request::Hold`].
    Held {
        /// The round.
        round: u64,
        /// The blobs asked for.
        blobs: Vec<Hash>,
        /// Whether all of them are kept here now.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Decide`].
    Decided {
        /// The manifest's root.
        manifest: Hash,
        /// The decision.
        result: Result<Vec<u8>, WorkError>,
    },
    /// Answer to [`Request::Check`].
    Checked {
        /// [`Case::id`].
        case: Hash,
        /// Whether the decision is acceptable.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Settle`].
    Settled {
        /// [`Case::id`].
        case: Hash,
        /// Hash of the outcome.
        result: Result<Hash, WorkError>,
    },
    /// Answer to [`Request::Keep`].
    Kept {
        /// The round.
        round: u64,
        /// Hash of the outcome.
        outcome: Hash,
        /// Whether the outcome is here with all of its models, which have the agreed layout.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Apply`].
    Applied {
        /// The last round applied.
        round: u64,
        /// Whether the members' strategy ends the federation with it, before the last round of the
        /// parameter set.
        ends: bool,
        /// Whether the outcome was adopted. [`WorkError::Unavailable`] is tried again after a heartbeat.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Prepare`].
    Prepared {
        /// The round.
        round: u64,
        /// The public keys, or why there is no contribution this round.
        result: Result<PublicKeys, String>,
    },
    /// Answer to [`Request::CheckKeys`].
    KeysChecked {
        /// The round.
        round: u64,
        /// Owner of the keys.
        from: MemberIndex,
        /// Whether they can be used.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Mask`].
    Masked {
        /// Root of the list.
        list: Hash,
        /// The masked vector; [`WorkError::Refused`] if the list cannot be used, or vector or secret
        /// are lost.
        result: Result<MaskedVector, WorkError>,
    },
    /// Answer to [`Request::Verify`].
    Verified {
        /// Root of the manifest.
        manifest: Hash,
        /// Whether all of it is here and right.
        result: Result<(), WorkError>,
    },
    /// Answer to [`Request::Unmask`].
    Unmasked {
        /// The block.
        block: Hash,
        /// The shares and the proof.
        result: Result<Vec<u8>, WorkError>,
    },
    /// Answer to [`Request::Combine`].
    Combined {
        /// The block.
        block: Hash,
        /// Members whose proofs do not hold. They are not asked for again.
        unproven: Vec<MemberIndex>,
        /// Hash of the outcome; [`WorkError::Unavailable`] if too many proofs do not hold, or something
        /// could not be fetched.
        result: Result<Hash, WorkError>,
    },
}

/// A learning round that became final.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalRound {
    /// The round.
    pub round: u64,
    /// Hash of its block, by which the journal recognises an adoption.
    pub block: Hash,
    /// Hash of its outcome.
    pub outcome: Hash,
    /// Position of this member's entry in the manifest; `None` if it is not in it, or not known.
    pub position: Option<usize>,
}

/// Passes on the kinds of work to a macro: for each its request, its answer, its name in JSON and in
/// traces, and what people read.
#[doc(hidden)]
#[macro_export]
macro_rules! work_kinds {
    ($defines:ident) => {
        $defines! {
            /// Training.
            Train, Trained: "train", "training";
            /// Measuring the losses of contributed models on the member's own rows.
            Evaluate, Evaluated: "evaluate", "evaluating models on its own rows";
            /// As lead: choosing the decision.
            Decide, Decided: "decide", "deciding";
            /// Checking the lead's decision.
            Check, Checked: "check", "checking the decision";
            /// Computing the outcome of a decision.
            Settle, Settled: "settle", "computing the outcome";
            /// Adopting a final outcome, and fetching it where it is not here.
            Apply, Applied: "apply", "adopting the outcome";
            /// As lead: fetching and checking contributed models.
            Admit, Admitted: "admit", "checking contributed models";
            /// Fetching the models of a manifest.
            Hold, Held: "hold", "fetching the round's models";
            /// Fetching an outcome that others check.
            Keep, Kept: "keep", "fetching the outcome";
            /// Computing the plan of a round.
            Plan, Planned: "plan", "planning";
            /// Opening the sums of a final masked round.
            Combine, Combined: "combine", "opening the sums";
            /// Unlocking shares of the masks of a final round.
            Unmask, Unmasked: "unmask", "unlocking shares of masks";
            /// Training for a masked round.
            Prepare, Prepared: "prepare", "training for a secure-aggregation round";
            /// Masking a vector.
            Mask, Masked: "mask", "masking its vector";
            /// Fetching and checking masked vectors.
            Verify, Verified: "verify", "checking masked vectors";
            /// As lead: checking public keys.
            CheckKeys, KeysChecked: "check-keys", "checking public keys";
        }
    };
}

macro_rules! define_kinds {
    ($($(#[$doc:meta])* $request:ident, $answer:ident: $name:literal, $text:literal;)*) => {
        /// A kind of work, the most important first.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum WorkKind {
            $($(#[$doc])* $request,)*
        }

        impl WorkKind {
            /// The name in JSON.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$request => $name,)*
                }
            }
        }

        impl fmt::Display for WorkKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$request => $text,)*
                })
            }
        }

        impl Request {
            /// The kind of this work.
            pub fn kind(&self) -> WorkKind {
                match self {
                    $(Self::$request { .. } => WorkKind::$request,)*
                }
            }
        }

        impl Answer {
            /// The kind of the work that this answers.
            pub fn kind(&self) -> WorkKind {
                match self {
                    $(Self::$answer { .. } => WorkKind::$request,)*
                }
            }
        }
    };
}

work_kinds!(define_kinds);

impl Request {
    /// The round that this work belongs to.
    pub fn round(&self) -> u64 {
        match self {
            Self::Plan { round, .. }
            | Self::Train { round }
            | Self::Admit { round, .. }
            | Self::Evaluate { round, .. }
            | Self::Hold { round, .. }
            | Self::Keep { round, .. }
            | Self::Decide { round, .. }
            | Self::Prepare { round }
            | Self::CheckKeys { round, .. } => *round,
            Self::Mask { list } | Self::Verify { list, .. } => list.round,
            Self::Unmask { of, .. } | Self::Combine { of, .. } => of.round.round,
            Self::Check { case, .. } | Self::Settle { case, .. } => case.round,
            Self::Apply { rounds, .. } => rounds.last().map_or(0, |last| last.round),
        }
    }

    /// The answer that this work failed; `None` for a plan, which every member can compute.
    pub fn failed(&self, error: WorkError) -> Option<Answer> {
        let round = self.round();
        Some(match self {
            Self::Plan { .. } => return None,
            Self::Train { .. } => Answer::Trained {
                round,
                result: Err(sentence(error)),
            },
            Self::Admit { fields, from, .. } => Answer::Admitted {
                round,
                from: *from,
                fields: fields.clone(),
                result: Err(error),
            },
            Self::Evaluate { .. } => Answer::Evaluated {
                round,
                result: Err(error),
            },
            Self::Hold { entries, .. } => Answer::Held {
                round,
                blobs: entries.iter().map(|entry| entry.fields.blob).collect(),
                result: Err(error),
            },
            Self::Decide { manifest, .. } => Answer::Decided {
                manifest: manifest.root(),
                result: Err(error),
            },
            Self::Check { case, .. } => Answer::Checked {
                case: case.id(),
                result: Err(error),
            },
            Self::Settle { case, .. } => Answer::Settled {
                case: case.id(),
                result: Err(error),
            },
            Self::Apply { .. } => Answer::Applied {
                round,
                ends: false,
                result: Err(error),
            },
            Self::Keep { outcome, .. } => Answer::Kept {
                round,
                outcome: *outcome,
                result: Err(error),
            },
            Self::Prepare { .. } => Answer::Prepared {
                round,
                result: Err(sentence(error)),
            },
            Self::CheckKeys { from, .. } => Answer::KeysChecked {
                round,
                from: *from,
                result: Err(error),
            },
            Self::Mask { list } => Answer::Masked {
                list: list.root,
                result: Err(error),
            },
            Self::Verify { manifest, .. } => Answer::Verified {
                manifest: manifest.root(),
                result: Err(error),
            },
            Self::Unmask { of, .. } => Answer::Unmasked {
                block: of.block,
                result: Err(error),
            },
            Self::Combine { of, .. } => Answer::Combined {
                block: of.block,
                unproven: Vec::new(),
                result: Err(error),
            },
        })
    }
}

/// Why a training failed.
fn sentence(error: WorkError) -> String {
    match error {
        WorkError::Unavailable => "a blob that it needs is not available now".into(),
        WorkError::Refused(reason) => reason,
    }
}
