//! A silo that corrupts every sum with noise: the others find it by halves, and go on without it.

use std::time::Duration;

use protocol::MemberIndex;
use protocol::privacy::{CorrupterSearch, Voids};
use tokio::time::sleep;

use super::blamed::corrupting;
use super::noised::{drawn, near, noised_of};
use super::{TestSilos, kill};
use crate::Notice;
use crate::testing::{Rig, virtually};

const ROUNDS: u64 = 8;
/// The silo that corrupts sums.
const CORRUPTER: u16 = 4;

fn members(some: impl IntoIterator<Item = u16>) -> Vec<MemberIndex> {
    some.into_iter().map(MemberIndex).collect()
}

/// Returns what a silo told of who corrupts sums, and after which round.
fn searched(rig: &Rig) -> Vec<(u64, Voids)> {
    let notices = rig.notices.borrow();
    let searched = notices.iter().filter_map(|(_, notice)| match notice {
        Notice::Searched { round, voids } => Some((*round, voids.clone())),
        _ => None,
    });
    searched.collect()
}

/// The authors of void sums, with the round of each.
fn void(rig: &Rig) -> Vec<(u64, Vec<MemberIndex>)> {
    let notices = rig.notices.borrow();
    let void = notices.iter().filter_map(|(_, notice)| match notice {
        Notice::VoidSum { round, authors, .. } => Some((*round, authors.clone())),
        _ => None,
    });
    void.collect()
}

/// Models that go half the way to the mean of these authors in each round.
fn halfway(rounds: &[&[u16]]) -> Vec<f32> {
    let step = |model: &mut f64, authors: &&[u16]| {
        if !authors.is_empty() {
            let sum: u16 = authors.iter().sum();
            let mean = f64::from(sum) / authors.len() as f64;
            *model += (mean - *model) / 2.0;
        }
        Some(*model as f32)
    };
    rounds.iter().scan(0.0, step).collect()
}

#[test]
fn a_silo_that_spoils_every_noised_sum_is_found_by_halves_and_the_others_go_on() {
    virtually(async {
        let silos = TestSilos::of(noised_of(6, ROUNDS, Some(1), 3));
        let start = |i| match i {
            CORRUPTER => corrupting(&silos, i, None),
            _ => silos.live(i),
        };
        let mut running: Vec<_> = (0..6).map(start).collect();
        for i in 0..6 {
            silos.until(i, ROUNDS).await;
        }
        sleep(Duration::from_secs(60)).await;
        let after = |rounds: u8, search| {
            let rounds = vec![rounds];
            (u64::from(rounds[0]), Voids { rounds, search })
        };
        let found = after(4, CorrupterSearch::Alone(MemberIndex(CORRUPTER)));
        let expected = [
            after(1, CorrupterSearch::Among(members(0..6))),
            after(2, CorrupterSearch::Among(members(3..6))),
            after(3, CorrupterSearch::Among(members(3..5))),
            found.clone(),
        ];
        for (i, rig) in (0..).zip(&silos.rigs) {
            assert_eq!(searched(rig), expected, "{i}");
            // Every sum that was opened had a line of the ledger before; the one that is left out draws no more.
            let rounds = if i == CORRUPTER { 4 } else { ROUNDS };
            assert_eq!(drawn(rig), (1..=rounds).collect::<Vec<_>>(), "{i}");
        }
        let corrupted = [
            (1, members(0..6)),
            (2, members([3, 4, 5])),
            (3, members([0, 3, 4])),
            (4, members([2, 4, 5])),
        ];
        assert_eq!(void(&silos.rigs[0]), corrupted);
        // What the good half of a round says is learned.
        let rest: &[u16] = &[0, 1, 2, 3, 5];
        let good: [&[u16]; 8] = [
            &[],
            &[0, 1, 2],
            &[1, 2, 5],
            &[0, 1, 3],
            rest,
            rest,
            rest,
            rest,
        ];
        let models: Vec<_> = silos.rigs[0].adopted().iter().map(|own| own.2).collect();
        near(&models, &halfway(&good));
        // A silo that starts again says so again.
        kill(&mut running[0]).await;
        let told = searched(&silos.rigs[0]).len();
        running[0] = silos.live(0);
        sleep(Duration::from_secs(60)).await;
        let (_, voids) = found;
        assert_eq!(searched(&silos.rigs[0])[told..], [(ROUNDS, voids)]);
        for silo in &mut running {
            kill(silo).await;
        }
    });
}
