//! What a silo finds that was stopped between an adoption and the removal of what it needs no more.

use bytes::Bytes;
use protocol::Hash;

use crate::restore::load;
use crate::testing::{MemoryBlobs, MemoryJournal, epoch};
use crate::{Adopted, Blobs, Journal, JournalRecord};

fn prepared(round: u64, blob: Hash) -> JournalRecord {
    JournalRecord::Prepared {
        round,
        blob: blob.0,
        personal: [2; 32],
    }
}

fn adopted(round: u64) -> [JournalRecord; 2] {
    let adopted = Adopted {
        round,
        block: [round as u8; 32],
        outcome: [0; 32],
        coalition: 0,
        personal: [2; 32],
        blobs: Vec::new(),
    };
    let applied = protocol::Record::Applied { round };
    [
        JournalRecord::Adopted(adopted),
        JournalRecord::Protocol(applied),
    ]
}

#[test]
fn the_secret_of_an_adopted_round_is_gone_after_a_stop_and_that_of_a_void_one_or_the_next_stays() {
    let (mut journal, blobs) = (MemoryJournal::default(), MemoryBlobs::default());
    let names = [1_u8, 2, 3].map(|round| {
        let blob = Bytes::from(vec![round; 40]);
        let name = Hash::of(&blob);
        blobs.put(name, blob).unwrap();
        name
    });
    let [good, void, next] = names;
    // The sum of the second round was void: its secret stands behind its adoption, too.
    let rounds = [
        vec![prepared(1, good)],
        adopted(1).to_vec(),
        vec![prepared(2, void)],
        adopted(2).to_vec(),
        vec![prepared(2, void), prepared(3, next)],
    ];
    journal.commit(rounds.concat()).unwrap();
    let protocol = &epoch(4, 9).protocol;
    for _ in 0..2 {
        let kept = load(protocol, false, &mut journal, &blobs).unwrap();
        let here = names.map(|name| blobs.get(&name).is_some());
        assert_eq!(here, [false, true, true]);
        assert!(!kept.contains(&prepared(1, good)) && kept.contains(&prepared(3, next)));
    }
}
