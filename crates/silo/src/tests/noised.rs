//! Rounds with noise, among silos whose optimum is known.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use protocol::parameters::{Noise, Real, Release, Unit};
use protocol::privacy::{Masked, Privacy, Sums};
use protocol::roster::quorum;
use protocol::{Epoch, MemberIndex, Record, Report};

use super::masked::{ROUNDS, SiloFault, adopted_by, expected, secrets};
use crate::testing::{Rig, epoch_declaring};
use crate::{JournalRecord, Notice};

/// Four silos with hardly any noise, and sums of so many authors at least.
pub(super) fn noised(rows: Option<u64>, fewest: u16) -> Arc<Epoch> {
    noised_of(4, ROUNDS, rows, fewest)
}

/// The same with so many silos and rounds.
pub(super) fn noised_of(n: u16, rounds: u64, rows: Option<u64>, fewest: u16) -> Arc<Epoch> {
    epoch_declaring(n, rounds, rows, |protocol| {
        protocol.min_contributions = quorum(n.into()) as u16;
        protocol.privacy = Privacy::Masked(Masked {
            colluders: 1,
            shows: Vec::new(),
            smallest_sum: fewest,
            sums: Sums::Noised(Noise {
                release: Release::Steps,
                unit: Unit::Row,
                clip: Real::new(8.0),
                z: Real::new(1.0 / 128.0),
                delta: Real::new(1e-5),
            }),
        });
    })
}

/// Noise of four silos, each with σ = 6 steps of 1/128: half of their mean is .012 in a round, and within five
/// deviations always.
pub(super) fn near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < 0.1, "{found}, {expected}");
    }
}

const ALL: [(u16, u64); 4] = [(0, 1), (1, 1), (2, 1), (3, 1)];

/// Returns what a silo drew noise for, and how often it noted that it contributes, as its journal has it.
fn noted(rig: &Rig) -> (Vec<(u64, [u8; 32])>, Vec<u64>) {
    let records = rig.journal.transactions().concat();
    let drawn = |record: &JournalRecord| match record {
        JournalRecord::Prepared { round, blob, .. } => Some((*round, *blob)),
        _ => None,
    };
    let contributed = |record: &JournalRecord| match record {
        JournalRecord::Protocol(Record::Contributed(message)) => Some(message.round),
        _ => None,
    };
    (
        records.iter().filter_map(drawn).collect(),
        records.iter().filter_map(contributed).collect(),
    )
}

/// The rounds for which a silo drew noise.
pub(super) fn drawn(rig: &Rig) -> Vec<u64> {
    noted(rig).0.into_iter().map(|(round, _)| round).collect()
}

#[test]
fn noised_rounds_are_steps_along_the_mean_gradient_of_all() {
    let (models, rigs) = adopted_by(noised(Some(1), 3), SiloFault::None);
    near(&models, &expected(&ALL));
    // There is noise.
    assert_ne!(models, expected(&ALL));
    for rig in &rigs {
        assert_eq!(drawn(rig), (1..=ROUNDS).collect::<Vec<_>>());
        assert_eq!(secrets(rig), 0);
    }
}

#[test]
fn a_silo_that_is_killed_at_any_moment_draws_its_noise_once() {
    for (who, millis) in (0..40).map(|at| (at % 4, 40 + 77 * u64::from(at))) {
        let (after, back) = (Duration::from_millis(millis), Duration::from_millis(20));
        let fault = SiloFault::Killed { who, after, back };
        let (models, rigs) = adopted_by(noised(Some(1), 4), fault);
        near(&models, &expected(&ALL));
        for rig in &rigs {
            // A round of an author that was away goes on without it.
            let rounds = drawn(rig);
            let once: BTreeSet<_> = rounds.iter().copied().collect();
            let noted = noted(rig);
            assert_eq!(once.len(), rounds.len(), "{who} at {millis} ms: {noted:?}");
            assert_eq!(secrets(rig), 0, "{who} at {millis} ms");
        }
    }
}

#[test]
fn rounds_go_on_without_a_silo_that_is_away() {
    let (after, back) = (Duration::from_millis(100), Duration::from_secs(300));
    let fault = SiloFault::Killed {
        who: 3,
        after,
        back,
    };
    let (models, _) = adopted_by(noised(Some(1), 3), fault);
    near(&models, &expected(&ALL[..3]));
}

#[test]
fn with_fewer_ready_than_agreed_the_round_waits() {
    let (after, back) = (Duration::from_millis(100), Duration::from_secs(300));
    let fault = SiloFault::Killed {
        who: 3,
        after,
        back,
    };
    let (models, rigs) = adopted_by(noised(Some(1), 4), fault);
    near(&models, &expected(&ALL));
    let waits = |notice: &Notice| {
        matches!(notice, Notice::Protocol(Report::GroupsIncomplete { members, .. })
            if *members == [MemberIndex(3)])
    };
    let told = |rig: &Rig| rig.notices.borrow().iter().any(|(_, notice)| waits(notice));
    assert!(rigs.iter().any(told));
}
