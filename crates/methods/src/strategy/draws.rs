//! The seed from which the members of a round are drawn. It is agreed before the first round and kept in
//! the state: who is drawn depends on it, on the round and on positions in the roster, never on the bits
//! of a model, which may differ between processors.

use super::{Kept, State};
use crate::learner::mixed_seed;

/// Name of the seed in the state.
pub const SAMPLING_SEED: &str = "sampling.seed";

/// A state that knows the seed of all draws.
pub(crate) fn seeded(mut state: State, seed: u64) -> State {
    state.memory.insert(SAMPLING_SEED, Kept::Count(seed));
    state
}

/// Keeps the seed of `before` in the state after a round.
pub(crate) fn keep(before: &State, after: &mut State) {
    if let Some(seed) = before.memory.count(SAMPLING_SEED) {
        after.memory.insert(SAMPLING_SEED, Kept::Count(seed));
    }
}

/// The seed of one draw of a round.
pub(crate) fn seed(state: &State, round: u64, draw: u64) -> u64 {
    let agreed = state.memory.count(SAMPLING_SEED).unwrap_or(0);
    mixed_seed(mixed_seed(agreed, round), draw)
}
