//! Verification of what others say, without a key: evidence against a member, and the state folder of a
//! node.
//!
//! | file | holds |
//! |---|---|
//! | `evidence` | evidence as a file, and what it proves |
//! | `state` | the journal and blobs of a node, up to the first thing that is wrong |
//! | `words` | what was verified, as text |
//! | `chain` | the final blocks with their signatures and certificates |
//! | `rounds` | rounds computed again from their sheets and models |
//! | `kept` | the secure-aggregation rounds of a state folder, and their sums opened again |

mod chain;
mod evidence;
mod kept;
mod rounds;
mod state;
mod words;

pub use evidence::{
    Accused, EVIDENCE, EvidenceFile, EvidenceFileError, EvidenceProof, TranscriptBlobs,
};
pub(crate) use kept::KeptChain;
pub use kept::{ReopenedRound, ReopenedSum, ReopenedSums, kept_sums};
pub use rounds::NotComputed;
pub use state::{Verified, VerifyError, verify};
