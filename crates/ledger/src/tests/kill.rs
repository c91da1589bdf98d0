//! A process that is killed while it writes.

use super::processes::{child, limits, said};
use super::*;
use crate::Ledger;

#[test]
fn no_line_of_a_returned_call_is_lost_when_a_process_is_killed() {
    let fresh = Fresh::new();
    let mut killed = 0;
    for federation in 1..=12 {
        let mut child = child(&fresh.file(), federation);
        let mut rounds = said(&mut child);
        // The child goes on to write while it is killed.
        let durable = rounds.by_ref().take(1 + usize::from(federation % 2)).last();
        child.kill().unwrap();
        let durable = rounds.last().or(durable);
        child.wait().unwrap();
        let read = fresh.ledger(limits()).read().unwrap();
        let Some(durable) = durable else {
            // The ledger was spent before.
            assert!(
                read.with(&noised(99, 1, 20.0).cost, delta())
                    .1
                    .epsilon()
                    .value()
                    > 1.0
            );
            continue;
        };
        killed += 1;
        for round in 1..=durable {
            assert!(
                read.at(&place(federation, round)).is_some(),
                "{federation} {round}"
            );
        }
        // What the killed process was about to say costs nothing twice.
        let before = read.lines.len();
        fresh
            .ledger(limits())
            .record(&noised(federation, durable, 20.0))
            .unwrap();
        assert_eq!(fresh.ledger(limits()).read().unwrap().lines.len(), before);
    }
    assert!(killed >= 3, "{killed}");
}
