//! Files that a killed process or a broken disk left.

use std::ops::Range;

use super::*;
use crate::Ledger;

/// Position of the number of lines.
const COUNT: Range<usize> = 10..30;

/// A ledger of three lines, before and after the third.
fn three() -> (Fresh, Vec<u8>, Vec<u8>) {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    ledger.record(&noised(1, 1, 20.0)).unwrap();
    ledger.record(&noised(2, 1, 30.0)).unwrap();
    let before = fresh.bytes();
    ledger.record(&noised(1, 2, 20.0)).unwrap();
    let after = fresh.bytes();
    (fresh, before, after)
}

#[test]
fn a_process_killed_at_any_byte_of_a_line_loses_nothing() {
    let (fresh, before, after) = three();
    let whole = after.len();
    for written in before.len()..=whole {
        // The number of lines follows the line.
        let mut found = after[..written].to_vec();
        found[COUNT].copy_from_slice(&before[COUNT]);
        fresh.put(&found);
        let ledger = fresh.ledger(no_limit());
        let counts = if written == whole { 3 } else { 2 };
        assert_eq!(ledger.read().unwrap().lines.len(), counts, "{written}");
        // Reading repairs nothing.
        assert_eq!(fresh.bytes(), found);
        ledger.record(&noised(1, 2, 20.0)).unwrap();
        assert_eq!(fresh.bytes(), after, "{written} bytes were written");
    }
}

#[test]
fn blocks_of_a_line_written_out_of_order_are_no_line() {
    let (fresh, before, after) = three();
    let mut found = after.clone();
    found[COUNT].copy_from_slice(&before[COUNT]);
    // Its beginning is still empty.
    found[before.len()..before.len() + 40].fill(0);
    fresh.put(&found);
    let ledger = fresh.ledger(no_limit());
    assert_eq!(ledger.read().unwrap().lines.len(), 2);
    ledger.record(&noised(1, 2, 20.0)).unwrap();
    assert_eq!(fresh.bytes(), after);
}

#[test]
fn a_whole_line_not_yet_counted_costs_and_is_counted_later() {
    let (fresh, before, after) = three();
    let mut found = after.clone();
    found[COUNT].copy_from_slice(&before[COUNT]);
    fresh.put(&found);
    let ledger = fresh.ledger(no_limit());
    let bound = ledger.read().unwrap().bound(delta());
    fresh.put(&after);
    assert_eq!(ledger.read().unwrap().bound(delta()), bound);
    fresh.put(&found);
    fresh
        .ledger(no_limit())
        .record(&noised(3, 1, 20.0))
        .unwrap();
    assert_eq!(fresh.ledger(no_limit()).read().unwrap().lines.len(), 4);
    assert!(
        fresh
            .bytes()
            .starts_with(br#"{"lines":"00000000000000000004""#)
    );
}

#[test]
fn a_file_that_was_cut_anywhere_is_refused() {
    let (fresh, _, after) = three();
    for left in 0..after.len() {
        fresh.put(&after[..left]);
        let ledger = fresh.ledger(no_limit());
        assert!(ledger.read().is_err(), "{left} bytes are left");
        assert!(ledger.record(&noised(9, 9, 20.0)).is_err(), "{left}");
        assert_eq!(fresh.bytes(), &after[..left]);
    }
}

#[test]
fn a_bit_that_changed_anywhere_is_refused_or_changes_no_line() {
    let (fresh, _, after) = three();
    let (lines, cost) = {
        let read = fresh.ledger(no_limit()).read().unwrap();
        (read.lines, read.accountant)
    };
    let mut read_anyway = 0;
    for (at, bit) in (0..after.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut changed = after.clone();
        changed[at] ^= 1 << bit;
        fresh.put(&changed);
        if let Ok(read) = fresh.ledger(no_limit()).read() {
            assert!(read.lines == lines && read.accountant == cost, "{at} {bit}");
            assert!(COUNT.contains(&at), "byte {at}");
            read_anyway += 1;
        }
    }
    // A number of lines that became smaller leaves them all in place.
    assert!(read_anyway < 8, "{read_anyway}");
}

#[test]
fn a_line_taken_out_or_moved_is_refused() {
    let (fresh, _, after) = three();
    let text = String::from_utf8(after).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for kept in [
        [0, 2, 3].as_slice(),
        &[0, 1, 3],
        &[0, 2, 1, 3],
        &[0, 1, 1, 2, 3],
    ] {
        let other: String = kept.iter().map(|line| lines[*line]).collect();
        fresh.put(other.as_bytes());
        assert!(fresh.ledger(no_limit()).read().is_err(), "{kept:?}");
    }
}
