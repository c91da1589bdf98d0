//! Rosters and parameter sets of federations that learn nothing: for the bare simulator, for a network
//! alone, and for tests of the invariants.

use std::time::Duration;

use protocol::SecretKey;
use protocol::parameters::{
    Epoch, Genesis, Privacy, ProtocolParameters, Rotation, RoundMode, Verification,
};
use protocol::roster::Silo;

/// The heartbeat of a federation that learns nothing.
pub const HEARTBEAT: Duration = Duration::from_secs(1);
/// The patience of a federation that learns nothing, in heartbeats.
pub const PATIENCE: u32 = 6;
/// The size of a model in such a federation, in bytes.
pub const MODEL_BYTES: u64 = 8;

/// The view timeout of a federation that learns nothing, in heartbeats, with `f` faulty members.
pub fn view_timeout(f: usize) -> u32 {
    2 * PATIENCE + 8 * (f as u32 + 4)
}

/// The epoch of members with these keys, this number of rounds and this rotation, in which every member
/// checks every round.
///
/// # Panics
/// If two keys are equal, there are no keys or more than a roster can hold, or there are no rounds.
pub fn epoch(keys: &[SecretKey], rounds: u64, rotation: Rotation) -> Epoch {
    epoch_with(keys, rounds, rotation, Verification::Full)
}

/// The epoch of members as [`epoch`] gives it, with any level of verification.
///
/// # Panics
/// As [`epoch`].
pub fn epoch_with(
    keys: &[SecretKey],
    rounds: u64,
    rotation: Rotation,
    verification: Verification,
) -> Epoch {
    epoch_of(keys, rounds, rotation, verification, Privacy::Clear)
}

/// The epoch of members as [`epoch`] gives it, with any level of verification and any privacy. A masked
/// round needs a quorum of contributions.
///
/// # Panics
/// As [`epoch`]; and if rounds cannot be masked like this.
pub fn epoch_of(
    keys: &[SecretKey],
    rounds: u64,
    rotation: Rotation,
    verification: Verification,
    privacy: Privacy,
) -> Epoch {
    // Sums with noise are divided by the declared rows.
    let rows = privacy.is_noised().then_some(1);
    let silo = |(at, key): (usize, &SecretKey)| Silo {
        name: format!("silo {at}"),
        key: key.public(),
        rows,
    };
    let f = protocol::roster::faulty(keys.len());
    let protocol = ProtocolParameters {
        rounds,
        heartbeat_ms: HEARTBEAT.as_millis() as u64,
        patience: PATIENCE,
        view_timeout: view_timeout(f),
        min_contributions: match privacy.mode() {
            RoundMode::Masked(_) | RoundMode::Noised(..) => {
                protocol::roster::quorum(keys.len()) as u16
            }
            RoundMode::Clear | RoundMode::Named => (2 * f + 1) as u16,
        },
        rotation,
        verification,
        privacy,
        blob_limit: 1 << 20,
        keep_rounds: 3,
        ..ProtocolParameters::small("bare")
    };
    let silos = keys.iter().enumerate().map(silo).collect();
    Epoch::first(&Genesis { silos, protocol }).expect("different keys, and numbers in range")
}
