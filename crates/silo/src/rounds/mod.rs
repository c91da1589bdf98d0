//! A round as functions of their arguments: what a silo contributes, how it scores the models of others,
//! how a decision is made, checked and settled, and what a silo keeps of the outcome.
//!
//! The worker of a silo runs them in its [`Pool`](crate::Pool), between the messages of the protocol. A
//! simulation without messages calls them one after the other, so that both learn the same, to the bit.

mod adopt;
mod agree;
mod base;
mod contribute;
mod masked;
mod score;
mod sums;

pub use adopt::adopt;
pub use agree::{check, decide, settle};
pub use base::{LastTraining, OwnState, Personal, RoundBase};
pub use contribute::{Contributed, contribute};
pub use score::score;

pub(crate) use agree::unchanged;
pub use masked::{
    NoiseDraws, NoisedPart, NoisedShare, NotVoid, OpenSum, VoidRound, noised_outcome, noised_part,
    noised_share, read_unmaskings, unit_vectors, vector_bytes, wrong_transcript,
};

pub(crate) use base::{outcome_gate, with_model};
pub(crate) use masked::{
    Combined, MaskedVectorBytes, OpeningRound, check_keys, check_transcripts, combine, mask,
    open_sums, public, read_list, ready, shape, transcript_bytes,
};
#[cfg(test)]
pub(crate) use sums::SecretIntegers;
pub(crate) use sums::{
    PreparedInput, PreparedRound, PreparedSummand, SumBasis, check_start, check_summand, summand,
};
pub use sums::{authors_pseudonym, disclosed_secret};

use methods::strategy::Participant;

use crate::config::SiloConfig;

/// Returns what a strategy needs to know of a silo in a round.
fn participant<'a>(
    config: &'a SiloConfig,
    round: u64,
    coalition: u32,
    personal: &'a Personal,
) -> Participant<'a> {
    let learner = &*config.learner;
    Participant {
        member: config.member.me.0,
        coalition,
        learner,
        personal: &personal.params,
        radius: &config.radius,
        seed: learner.seed(config.seed, round),
    }
}
