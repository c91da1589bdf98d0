//! Keys, members and agreements of tests.
#![allow(clippy::unwrap_used)]

use protocol::charter::{Charter, Genesis, Privacy, Rotation, Verification};
use protocol::roster::Silo;
use protocol::{Epoch, Hash, SecretKey};

/// The key of this number.
pub(crate) fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes(&[number; 32])
}

/// `n` members, `silo 0` and on, with the keys from number `first` on.
pub(crate) fn silos(n: u8, first: u8) -> Vec<Silo> {
    let silo = |member: u8| Silo {
        name: format!("silo {member}"),
        key: key(first + member).public(),
        rows: None,
    };
    (0..n).map(silo).collect()
}

/// A charter with beats of a second and a patience of 4, under which every member of four contributes.
pub(crate) fn charter() -> Charter {
    Charter {
        name: "test".into(),
        work: Vec::new(),
        start: Hash([0; 32]),
        rounds: 1,
        beat_ms: 1000,
        patience: 4,
        view_timeout: 20,
        min_contributions: 4,
        rotation: Rotation::EveryRound,
        verification: Verification::Full,
        privacy: Privacy::Clear,
        blob_limit: 1,
        keep_rounds: 1,
        discovery: false,
    }
}

/// The first epoch of these members.
pub(crate) fn epoch(silos: Vec<Silo>, charter: Charter) -> Epoch {
    Epoch::first(&Genesis { silos, charter }).unwrap()
}
