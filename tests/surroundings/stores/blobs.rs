//! The contract of a store of blobs, for every implementation.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

pub(crate) fn an_unknown_blob_is_not_there<P: ReopenableDisk>() {
    let place = P::new();
    assert_eq!(place.blobs().get(&blob(1).0), None);
}

pub(crate) fn a_blob_is_what_was_put<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    let empty = (Hash::of(b""), Bytes::new());
    let large = Bytes::from(vec![5; 3 << 20]);
    let all = [empty, blob(1), blob(2), (Hash::of(&large), large)];
    for (hash, bytes) in &all {
        blobs.put(*hash, bytes.clone()).unwrap();
        assert_eq!(blobs.get(hash).as_ref(), Some(bytes));
    }
    // The order of writes and reads before does not matter.
    for (hash, bytes) in all.iter().rev() {
        assert_eq!(blobs.get(hash).as_ref(), Some(bytes));
    }
}

pub(crate) fn blobs_outlive_the_store<P: ReopenableDisk>() {
    let place = P::new();
    for n in 0..20 {
        place.blobs().put(blob(n).0, blob(n).1).unwrap();
    }
    let blobs = place.blobs();
    for n in (0..20).chain(0..20) {
        assert_eq!(blobs.get(&blob(n).0), Some(blob(n).1));
    }
}

pub(crate) fn several_are_kept_at_once<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    blobs.put(blob(3).0, blob(3).1).unwrap();
    blobs.put_all((0..70).map(blob).collect()).unwrap();
    blobs.put_all(Vec::new()).unwrap();
    for n in 0..70 {
        assert_eq!(blobs.get(&blob(n).0), Some(blob(n).1));
    }
}

pub(crate) fn what_is_not_retained_is_gone<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    blobs.put_all((0..10).map(blob).collect()).unwrap();
    let mut keep: Vec<_> = (0..10).step_by(3).map(|n| blob(n).0).collect();
    // A hash without a blob changes nothing.
    keep.push(blob(99).0);
    keep.sort_unstable();
    blobs.retain(&keep, blobs.mark()).unwrap();
    for blobs in [blobs, place.blobs()] {
        for n in 0..10 {
            let expected = (n % 3 == 0).then(|| blob(n).1);
            assert_eq!(blobs.get(&blob(n).0), expected);
        }
    }
    let blobs = place.blobs();
    blobs.retain(&[], blobs.mark()).unwrap();
    assert_eq!(place.blobs().get(&blob(0).0), None);
}

/// The choice of blobs to keep is made first and carried out later: blobs of the next round arrive meanwhile.
pub(crate) fn what_is_put_after_the_decision_stays<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    blobs.put_all((0..4).map(blob).collect()).unwrap();
    let mark = blobs.mark();
    blobs.put_all(vec![blob(1), blob(7)]).unwrap();
    blobs.retain(&[blob(0).0], mark).unwrap();
    for blobs in [blobs, place.blobs()] {
        let here = [0, 1, 2, 3, 7].map(|n| blobs.get(&blob(n).0).is_some());
        assert_eq!(here, [true, true, false, false, true]);
    }
}

pub(crate) fn a_blob_may_be_put_again<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    for _ in 0..2 {
        blobs.put(blob(1).0, blob(1).1).unwrap();
        blobs.retain(&[], blobs.mark()).unwrap();
        assert_eq!(blobs.get(&blob(1).0), None);
        blobs.put_all(vec![blob(1), blob(1)]).unwrap();
        assert_eq!(blobs.get(&blob(1).0), Some(blob(1).1));
    }
}

pub(crate) fn readers_see_whole_blobs_while_others_write<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|reader| {
                let (blobs, done) = (&blobs, &done);
                scope.spawn(move || {
                    let mut turn = reader;
                    while !done.load(Ordering::Relaxed) {
                        let (hash, bytes) = blob(turn % 40);
                        if let Some(got) = blobs.get(&hash) {
                            assert_eq!(got, bytes);
                        }
                        turn += 1;
                    }
                })
            })
            .collect();
        for n in 0..40 {
            blobs.put(blob(n).0, blob(n).1).unwrap();
            if n % 10 == 9 {
                let mut keep: Vec<_> = (n - 4..=n).map(|n| blob(n).0).collect();
                keep.sort_unstable();
                blobs.retain(&keep, blobs.mark()).unwrap();
            }
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            reader.join().unwrap();
        }
    });
    for n in 35..40 {
        assert_eq!(blobs.get(&blob(n).0), Some(blob(n).1));
    }
}

pub(crate) fn a_blob_that_is_laid_down_is_there_once_it_is_put<P: ReopenableDisk>() {
    let place = P::new();
    let blobs = place.blobs();
    let large = Bytes::from(vec![7; 20 << 20]);
    for bytes in [Bytes::new(), blob(1).1, large] {
        let hash = Hash::of(&bytes);
        let laid = blobs.to_file(bytes.clone());
        assert_eq!((&laid, blobs.get(&hash)), (&bytes, None));
        blobs.put(hash, laid).unwrap();
        assert_eq!(blobs.get(&hash), Some(bytes.clone()));
        assert_eq!(place.blobs().get(&hash), Some(bytes));
    }
}
