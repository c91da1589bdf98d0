//! What a call returns, and what the file has then.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use privacy::accountant::Accountant;
use protocol::parameters::{self, Masked, Noise, Privacy, Real, Release, Sums};

use super::*;
use crate::{CostError, Ledger, LedgerError, Limit};

#[test]
fn the_text_of_a_ledger_is_as_ever() {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    ledger.record(&noised(1, 1, 20.0)).unwrap();
    ledger.record(&clear(2, 1)).unwrap();
    let text = String::from_utf8(fresh.bytes()).unwrap();
    assert_eq!(text, include_str!("golden.ledger"));
}

#[test]
fn the_same_commitment_costs_nothing_again_and_a_second_one_is_refused() {
    let fresh = Fresh::new();
    let first = fresh.ledger(no_limit());
    let bound = first.record(&noised(1, 1, 20.0)).unwrap();
    let before = fresh.bytes();
    // Also by a process that starts anew.
    for ledger in [&first, &fresh.ledger(no_limit())] {
        assert_eq!(ledger.record(&noised(1, 1, 20.0)).unwrap(), bound);
    }
    let mut other = noised(1, 1, 20.0);
    other.commitment = Hash::of(b"drawn again");
    let why = first.record(&other).unwrap_err();
    assert!(matches!(why, LedgerError::Second { .. }), "{why}");
    assert_eq!(fresh.bytes(), before);
    // Another epoch, or another federation, is another place.
    let mut epoch = other.clone();
    epoch.place.epoch = 1;
    first.record(&epoch).unwrap();
    other.place.federation = Hash([2; 32]);
    first.record(&other).unwrap();
    assert_eq!(first.read().unwrap().lines.len(), 3);
}

#[test]
fn all_federations_of_a_source_are_added_up() {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    let mut accountant = Accountant::new();
    for (federation, round, z) in [(1, 1, 10.0), (2, 1, 20.0), (1, 2, 10.0), (3, 9, 33.3)] {
        let contribution = noised(federation, round, z);
        contribution.cost.spend(&mut accountant, 1);
        let bound = ledger.record(&contribution).unwrap();
        assert_eq!(bound, accountant.bound(delta()));
        assert!(bound.alone() > bound.epsilon());
    }
    let read = fresh.ledger(no_limit()).read().unwrap();
    assert_eq!(read.accountant, accountant);
    let last = read.lines.last().unwrap();
    let bound = accountant.bound(delta());
    assert_eq!(last.epsilon, bound.epsilon().to_string());
    assert_eq!(last.epsilon_alone, bound.alone().to_string());
}

#[test]
fn a_round_beyond_a_limit_is_refused_and_has_no_line() {
    let spent = noised(1, 1, 20.0);
    let mut accountant = Accountant::new();
    spent.cost.spend(&mut accountant, 1);
    let bound = accountant.bound(delta());
    let (epsilon, alone) = (bound.epsilon().value(), bound.alone().value());
    let limits = |epsilon, alone| Limits {
        epsilon,
        alone,
        ..no_limit()
    };
    for enough in [
        limits(Some(epsilon), None),
        limits(None, Some(alone)),
        limits(Some(epsilon), Some(alone)),
    ] {
        let fresh = Fresh::new();
        let ledger = fresh.ledger(enough);
        ledger.record(&spent).unwrap();
        let before = fresh.bytes();
        let why = ledger.record(&noised(1, 2, 20.0)).unwrap_err();
        assert!(matches!(why, LedgerError::Spent { .. }), "{why}");
        assert_eq!(fresh.bytes(), before);
        // What was spent already may still be said again.
        ledger.record(&spent).unwrap();
    }
    let below = |limit: f64| limit * (1.0 - 1e-12);
    for (less, key) in [
        (limits(Some(below(epsilon)), None), "epsilon = "),
        (limits(None, Some(below(alone))), "epsilon-all-collude = "),
    ] {
        let why = Fresh::new().ledger(less).record(&spent).unwrap_err();
        let LedgerError::Spent { limit, .. } = &why else {
            panic!("{why}");
        };
        assert_eq!(matches!(limit, Limit::Epsilon(_)), key == "epsilon = ");
        let said = why.to_string();
        assert!(
            said.contains(key) && said.contains("if all others collude"),
            "{said}"
        );
    }
}

#[test]
fn a_round_without_noise_is_a_line_without_a_bound_which_a_limit_refuses() {
    let fresh = Fresh::new();
    let limited = Limits {
        epsilon: Some(1e9),
        ..no_limit()
    };
    let why = fresh.ledger(limited).record(&clear(1, 1)).unwrap_err();
    assert!(why.to_string().contains("epsilon no bound"), "{why}");
    assert!(fresh.ledger(no_limit()).read().unwrap().lines.is_empty());
    let bound = fresh.ledger(no_limit()).record(&clear(1, 1)).unwrap();
    assert!(!bound.epsilon().is_bound());
    // Noise does not bring the bound back.
    let later = fresh.ledger(no_limit()).record(&noised(1, 2, 1e5)).unwrap();
    assert!(!later.epsilon().is_bound());
    let read = fresh.ledger(no_limit()).read().unwrap();
    assert_eq!((read.without_noise(), read.lines.len()), (1, 2));
    assert_eq!(read.lines[1].epsilon, "no bound");
}

#[test]
fn another_unit_is_refused() {
    let fresh = Fresh::new();
    let mut contribution = noised(1, 1, 20.0);
    if let Cost::Noised { unit, .. } = &mut contribution.cost {
        *unit = SourceUnit::Person("patient".into());
    }
    let why = fresh.ledger(no_limit()).record(&contribution).unwrap_err();
    let said = why.to_string();
    assert!(said.contains("counts the unit row"), "{said}");
    assert!(said.contains("protects the unit person:patient"), "{said}");
    assert!(fresh.ledger(no_limit()).read().unwrap().lines.is_empty());
}

#[test]
fn a_ledger_is_made_once_and_one_that_is_missing_is_not_made() {
    let fresh = Fresh::new();
    fresh
        .ledger(no_limit())
        .record(&noised(1, 1, 20.0))
        .unwrap();
    let before = fresh.bytes();
    let source = Source {
        name: "again".into(),
        unit: SourceUnit::Row,
    };
    let why = LedgerFile::create(&fresh.file(), &source, &[8; 16]).unwrap_err();
    assert!(matches!(why, LedgerError::Exists { .. }), "{why}");
    assert_eq!(fresh.bytes(), before);
    let others = fs::read_dir(fresh.folder.path()).unwrap().count();
    assert_eq!(others, 1);
    fs::remove_file(fresh.file()).unwrap();
    let ledger = fresh.ledger(no_limit());
    for refused in [
        ledger.record(&noised(1, 1, 20.0)).map(drop),
        ledger.expect(&[place(1, 1)]),
        ledger.read().map(drop),
    ] {
        let why = refused.unwrap_err();
        assert!(matches!(why, LedgerError::Missing { .. }), "{why}");
    }
    assert!(!fresh.file().exists());
}

#[test]
fn an_older_copy_is_noticed_while_a_process_runs_and_by_who_knows_of_a_contribution() {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    ledger.record(&noised(1, 1, 20.0)).unwrap();
    let older = fresh.bytes();
    ledger.record(&noised(1, 2, 20.0)).unwrap();
    ledger.expect(&[place(1, 2)]).unwrap();
    fresh.put(&older);
    let why = ledger.record(&noised(1, 3, 20.0)).unwrap_err();
    assert!(matches!(why, LedgerError::RolledBack { .. }), "{why}");
    // A process that starts anew knows nothing of it, but others do.
    let anew = fresh.ledger(no_limit());
    anew.expect(&[place(1, 1)]).unwrap();
    let why = anew.expect(&[place(1, 2)]).unwrap_err();
    assert!(matches!(why, LedgerError::Lacks { .. }), "{why}");
    assert_eq!(fresh.bytes(), older);
}

/// Folder and ledger are put back together: 30 lines were made, 13 are left, and the others know of all.
#[test]
fn what_others_know_of_is_added_where_it_has_no_line_and_costs_what_it_did() {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    let made: Vec<_> = (1..=30).map(|round| noised(1, round, 20.0)).collect();
    made[..13].iter().for_each(|of| {
        ledger.record(of).unwrap();
    });
    let older = fresh.bytes();
    made[13..].iter().for_each(|of| {
        ledger.record(of).unwrap();
    });
    let bound = ledger.read().unwrap().bound(delta());
    fresh.put(&older);
    // What was told was told, whatever the limits are.
    let spent = Limits {
        epsilon: Some(0.1),
        ..no_limit()
    };
    let anew = fresh.ledger(spent);
    assert!(anew.read().unwrap().bound(delta()).epsilon() < bound.epsilon());
    let known: Vec<_> = made.iter().map(|of| (of.place, of.cost.clone())).collect();
    let added = anew.reconcile(&known).unwrap();
    let rounds: Vec<_> = added.iter().map(|line| line.round).collect();
    assert_eq!(rounds, (14..=30).collect::<Vec<_>>());
    // A process that starts anew reads the same, and finds nothing to add.
    let anew = fresh.ledger(no_limit());
    let read = anew.read().unwrap();
    assert_eq!((read.lines.len(), read.reconciled()), (30, 17));
    assert_eq!(read.bound(delta()), bound);
    assert_eq!(read.lines[13..], added);
    anew.expect(&known.iter().map(|(place, _)| *place).collect::<Vec<_>>())
        .unwrap();
    assert_eq!(anew.reconcile(&known).unwrap(), []);
    // The next round counts on; one that only others know of is not done again.
    let why = anew.record(&made[20]).unwrap_err();
    assert!(matches!(why, LedgerError::Second { .. }), "{why}");
    anew.record(&noised(1, 31, 20.0)).unwrap();
    let mut person = known[0].clone();
    person.0.round = 32;
    if let Cost::Noised { unit, .. } = &mut person.1 {
        *unit = SourceUnit::Person("id".into());
    }
    let why = anew.reconcile(&[person]).unwrap_err();
    assert!(matches!(why, LedgerError::OtherUnit { .. }), "{why}");
}

#[test]
fn a_new_ledger_in_place_of_the_old_one_is_noticed() {
    let fresh = Fresh::new();
    let ledger = fresh.ledger(no_limit());
    ledger.read().unwrap();
    fs::remove_file(fresh.file()).unwrap();
    let source = Source {
        name: "patients".into(),
        unit: SourceUnit::Row,
    };
    LedgerFile::create(&fresh.file(), &source, &[9; 16]).unwrap();
    let why = ledger.record(&noised(1, 1, 20.0)).unwrap_err();
    assert!(matches!(why, LedgerError::RolledBack { .. }), "{why}");
}

#[test]
fn a_unit_is_read_as_it_is_written_and_nothing_else_is_one() {
    for unit in [SourceUnit::Row, SourceUnit::Person("a:b c".into())] {
        assert_eq!(unit.to_string().parse(), Ok(unit));
    }
    for other in ["", "rows", "person", "person:", "person: ", "Row"] {
        assert!(other.parse::<SourceUnit>().is_err(), "{other}");
    }
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(Fresh::new().file())
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_contribution_costs_what_the_agreement_says_of_noise() {
    let privacy = |fewest| {
        Privacy::Masked(Masked {
            colluders: 3,
            shows: Vec::new(),
            smallest_sum: fewest,
            sums: Sums::Noised(Noise {
                release: Release::Steps,
                unit: parameters::Unit::Person("patient".into()),
                clip: Real::new(1.0),
                z: Real::new(20.0),
                delta: Real::new(1e-5),
            }),
        })
    };
    let expected = Cost::Noised {
        z: Multiplier::new(20.0).unwrap(),
        authors: Authors::new(7, 3).unwrap(),
        unit: SourceUnit::Person("patient".into()),
    };
    assert_eq!(Cost::of(&privacy(7)).unwrap(), expected);
    assert!(matches!(Cost::of(&privacy(3)), Err(CostError::Authors(_))));
    assert_eq!(Cost::of(&Privacy::Clear).unwrap(), Cost::NoBound);
    // The ledger counts rows.
    let of_persons = Contribution {
        cost: expected,
        ..noised(1, 1, 20.0)
    };
    let fresh = Fresh::new();
    let why = fresh.ledger(no_limit()).record(&of_persons).unwrap_err();
    assert!(matches!(why, LedgerError::OtherUnit { .. }), "{why}");
    assert!(fresh.ledger(no_limit()).read().unwrap().lines.is_empty());
}

#[test]
fn a_ledger_that_another_process_keeps_locked_is_waited_for_a_moment_only_by_a_node() {
    let fresh = Fresh::new();
    let other = File::open(fresh.file()).unwrap();
    other.lock().unwrap();
    let ledger = fresh.ledger(no_limit()).briefly();
    let began = Instant::now();
    let refused = [
        ledger.read().map(drop).unwrap_err(),
        ledger.record(&noised(1, 1, 1.0)).map(drop).unwrap_err(),
        ledger.expect(&[place(1, 1)]).unwrap_err(),
        ledger.reconcile(&[]).map(drop).unwrap_err(),
    ];
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    for why in refused {
        assert!(matches!(why, LedgerError::InUse { .. }), "{why}");
        assert!(
            why.to_string().contains("is locked by another process"),
            "{why}"
        );
    }
    drop(other);
    assert_eq!(ledger.read().unwrap().lines.len(), 0);
    ledger.record(&noised(1, 1, 1.0)).unwrap();
}
