//! The contract of a journal, for every implementation.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

pub(crate) fn a_new_journal_is_empty<P: ReopenableDisk>() {
    assert_eq!(P::new().journal().load(), Ok(vec![]));
}

pub(crate) fn records_come_back_in_their_order<P: ReopenableDisk>() {
    let place = P::new();
    let mut journal = place.journal();
    // More records than fit in a page, and not in the order of their bytes.
    let all: Vec<_> = (0..300).rev().map(record).collect();
    for few in all.chunks(50) {
        journal.commit(few.to_vec()).unwrap();
    }
    assert_eq!(journal.load().unwrap(), all);
    assert_eq!(journal.load().unwrap(), all, "reading changes nothing");
}

pub(crate) fn records_outlive_the_journal<P: ReopenableDisk>() {
    let place = P::new();
    for n in 0..5 {
        let mut journal = place.journal();
        let before: Vec<_> = (0..n).map(record).collect();
        assert_eq!(journal.load().unwrap(), before);
        journal.commit(vec![record(n)]).unwrap();
    }
}

pub(crate) fn a_refused_transaction_leaves_nothing<P: ReopenableDisk>() {
    let place = P::new();
    let mut journal = place.journal();
    journal.commit(vec![adopted(1, 1), applied(1)]).unwrap();
    let before = journal.load().unwrap();
    let refused = journal.commit(vec![record(5), adopted(2, 1), applied(2)]);
    assert!(refused.unwrap_err().why.contains("adopted"));
    assert_eq!(journal.load().unwrap(), before);
    // It can be used as before.
    journal.commit(vec![record(6)]).unwrap();
    drop(journal);
    assert_eq!(
        place.journal().load().unwrap(),
        [before, vec![record(6)]].concat()
    );
}

pub(crate) fn an_outcome_is_adopted_once<P: ReopenableDisk>() {
    let place = P::new();
    for block in 1..4 {
        place
            .journal()
            .commit(vec![adopted(block, block), applied(block)])
            .unwrap();
        for known in 1..=block {
            let again = vec![adopted(9, known)];
            assert!(place.journal().commit(again.clone()).is_err());
        }
    }
    let twice = vec![adopted(9, 9), adopted(9, 9)];
    assert!(place.journal().commit(twice.clone()).is_err());
    assert!(place.journal().replace(0, twice).is_err());
}

pub(crate) fn a_loss_begins_anew<P: ReopenableDisk>() {
    let place = P::new();
    let mut journal = place.journal();
    journal.commit(vec![adopted(1, 1)]).unwrap();
    journal
        .commit(vec![JournalRecord::Lost, adopted(1, 1)])
        .unwrap();
    assert!(journal.commit(vec![adopted(1, 1)]).is_err());
    journal.replace(0, vec![JournalRecord::Lost]).unwrap();
    journal.commit(vec![adopted(1, 1)]).unwrap();
}

pub(crate) fn replacing_leaves_nothing_else<P: ReopenableDisk>() {
    let place = P::new();
    let mut journal = place.journal();
    journal.commit((0..200).map(record).collect()).unwrap();
    journal.replace(0, vec![record(7), record(3)]).unwrap();
    assert_eq!(journal.load().unwrap(), [record(7), record(3)]);
    journal.commit(vec![record(1)]).unwrap();
    drop(journal);
    let mut journal = place.journal();
    assert_eq!(journal.load().unwrap(), [record(7), record(3), record(1)]);
    journal.replace(0, vec![]).unwrap();
    drop(journal);
    assert_eq!(place.journal().load(), Ok(vec![]));
}

pub(crate) fn replacing_the_end_leaves_what_is_before_it<P: ReopenableDisk>() {
    let place = P::new();
    let mut journal = place.journal();
    journal.commit((0..200).map(record).collect()).unwrap();
    let start: Vec<_> = (0..150).map(record).collect();
    journal
        .replace(150, vec![record(7), adopted(1, 1)])
        .unwrap();
    let all = [start.clone(), vec![record(7), adopted(1, 1)]].concat();
    assert_eq!(journal.load().unwrap(), all);
    // The rounds that the end adopts count, and no more once it is replaced.
    assert!(journal.commit(vec![adopted(1, 1)]).is_err());
    assert!(journal.replace(152, vec![adopted(1, 1)]).is_err());
    journal.replace(151, vec![adopted(1, 1)]).unwrap();
    drop(journal);
    let mut journal = place.journal();
    assert_eq!(
        journal.load().unwrap(),
        [start.clone(), vec![record(7), adopted(1, 1)]].concat()
    );
    journal.replace(150, vec![]).unwrap();
    journal.commit(vec![adopted(1, 1)]).unwrap();
    // There is nothing to keep beyond the last record.
    assert!(journal.replace(152, vec![record(1)]).is_err());
    drop(journal);
    let all = [start, vec![adopted(1, 1)]].concat();
    assert_eq!(place.journal().load().unwrap(), all);
}

/// An operation on a journal.
#[derive(Debug, Clone)]
enum Deed {
    Commit(Vec<JournalRecord>),
    /// Replaces the records from this part of 256 of them on.
    Replace(u8, Vec<JournalRecord>),
    Reopen,
}

pub(crate) fn any_history_reads_like_a_list<P: ReopenableDisk>() {
    let record = prop_oneof![
        4 => any::<u64>().prop_map(self::record),
        2 => any::<u64>().prop_map(applied),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(round, block)| adopted(round, block)),
        1 => Just(JournalRecord::Lost),
    ];
    let records = prop::collection::vec(record, 0..20);
    let deed = prop_oneof![
        6 => records.clone().prop_map(Deed::Commit),
        2 => (any::<u8>(), records).prop_map(|(part, records)| Deed::Replace(part, records)),
        2 => Just(Deed::Reopen),
    ];
    let check = |deeds: Vec<Deed>| {
        let place = P::new();
        let mut journal = Some(place.journal());
        let mut list: Vec<JournalRecord> = Vec::new();
        for deed in deeds {
            let open = journal.as_mut().unwrap();
            match deed {
                Deed::Commit(records) => {
                    list.extend(records.clone());
                    open.commit(records).unwrap();
                }
                Deed::Replace(part, records) => {
                    let from = list.len() * usize::from(part) / 256;
                    list.truncate(from);
                    list.extend(records.clone());
                    open.replace(from as u64, records).unwrap();
                }
                Deed::Reopen => {
                    journal = None;
                    journal.get_or_insert_with(|| place.journal());
                }
            }
            prop_assert_eq!(&journal.as_mut().unwrap().load().unwrap(), &list);
        }
        Ok(())
    };
    let config = Config {
        cases: 16,
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&prop::collection::vec(deed, 0..12), check)
        .unwrap();
}
