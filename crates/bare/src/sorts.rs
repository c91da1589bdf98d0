//! Sorts of federations to sweep over, and a digest of what happens in them.

use protocol::Hash;
use protocol::roster::quorum;

use super::{BareOptions, Byzantine, Deaths, Faults, Plans, RunFailure, run};

/// Federations that have something in common; which one is drawn from a seed.
#[derive(Debug, Clone, Copy)]
pub struct Sort {
    /// Common property of the federations: the number of members, or a word.
    pub name: &'static str,
    /// The federation of a seed.
    pub world: fn(u64) -> BareOptions,
    /// Divisor of the number of seeds, at least 1: fewer seeds of federations that take long.
    pub every: u64,
}

impl Sort {
    /// All sorts. Sizes differ in what they tolerate, so that each is a sort of its own.
    pub const ALL: [Self; 12] = [
        Self::new("1", 1, |seed| BareOptions::open_world(1, seed)),
        Self::new("2", 1, |seed| BareOptions::open_world(2, seed)),
        Self::new("3", 1, |seed| BareOptions::open_world(3, seed)),
        Self::new("4", 1, |seed| BareOptions::open_world(4, seed)),
        Self::new("7", 1, |seed| BareOptions::open_world(7, seed)),
        Self::new("10", 1, |seed| BareOptions::open_world(10, seed)),
        Self::new("50", 20, |seed| BareOptions::open_world(50, seed)),
        Self::new("masked", 1, BareOptions::masked_world),
        Self::new("noised", 1, noised),
        Self::new("people", 1, people),
        Self::new("recovery", 1, recovery),
        Self::new("subset", 1, subset),
    ];

    const fn new(name: &'static str, every: u64, world: fn(u64) -> BareOptions) -> Self {
        Self { name, every, world }
    }

    /// Hash over all events of the federation of a seed.
    ///
    /// # Errors
    /// [`RunFailure`]: it fails.
    pub fn trace(&self, seed: u64) -> Result<Hash, Box<RunFailure>> {
        run(seed, &(self.world)(seed)).map(|ended| ended.trace)
    }
}

/// One hash of many traces, in their order. Equal ones mean that every member sent the same frames at the
/// same times, down to the signatures, and stopped at the same moments: whatever changed between two
/// programs, these federations do not show it.
pub fn combine(traces: &[Hash]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    traces.iter().for_each(|trace| {
        hasher.update(&trace.0);
    });
    Hash(*hasher.finalize().as_bytes())
}

impl BareOptions {
    /// Rounds in clear under every fault and two changes of the agreement. Fewer than four members
    /// tolerate no Byzantine one, and cannot get back a member that lost its journal. In every fifth
    /// federation the Byzantine members are twins.
    pub fn open_world(members: usize, seed: u64) -> Self {
        let faults = match members {
            0..4 => Faults::without_byzantine(),
            _ if seed % 5 == 4 => Faults {
                byzantine: Byzantine::Twins,
                ..Faults::all()
            },
            _ => Faults::all(),
        };
        Self {
            changes: 2,
            ..Self::new(members, faults)
        }
    }

    /// Rounds whose sums have noise, of a quorum of authors at least.
    pub(crate) fn noised(members: usize, faults: Faults) -> Self {
        Self {
            fewest_authors: Some(quorum(members) as u16),
            ..Self::new(members, faults)
        }
    }
}

/// One of these sizes.
fn size(sizes: &[usize], seed: u64) -> usize {
    sizes[seed as usize % sizes.len()]
}

/// Sums with noise of a quorum at least; with changes of the agreement in every third federation.
fn noised(seed: u64) -> BareOptions {
    let members = size(&[4, 7, 4, 10], seed);
    let changes = u32::from(seed.is_multiple_of(3));
    let faults = match changes {
        0 => Faults::all(),
        _ => Faults::without_byzantine(),
    };
    BareOptions {
        changes,
        ..BareOptions::noised(members, faults)
    }
}

/// People who err about changes of the agreement.
fn people(seed: u64) -> BareOptions {
    BareOptions {
        errors: true,
        ..BareOptions::open_world(size(&[3, 4, 7], seed), seed)
    }
}

/// So many members are gone for good that the others have to go on without a quorum.
fn recovery(seed: u64) -> BareOptions {
    let faults = Faults {
        deaths: Deaths::None,
        ..Faults::without_byzantine()
    };
    BareOptions {
        rounds: 6,
        recoveries: true,
        errors: seed.is_multiple_of(2),
        ..BareOptions::new(size(&[2, 3, 4, 5, 7], seed), faults)
    }
}

/// Plans that name a part of the members.
fn subset(seed: u64) -> BareOptions {
    let members = size(&[3, 4], seed);
    let faults = match members {
        3 => Faults::without_byzantine(),
        _ => Faults::all(),
    };
    BareOptions {
        plans: Plans::Subset,
        ..BareOptions::new(members, faults)
    }
}
