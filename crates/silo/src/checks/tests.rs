#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use protocol::SecretKey;
use protocol::identity::{Signature, VerifyingKey};

use super::*;

/// Votes of `n` members for one thing.
fn votes(n: u8) -> Vec<(VerifyingKey, Vec<u8>, Signature)> {
    let vote = |i: u8| {
        let key = SecretKey::from_bytes(&[i; 32]);
        let message = [vec![i], b"a vote".repeat(20)].concat();
        let signature = key.sign(&message);
        (
            VerifyingKey::new(&key.public()).unwrap(),
            message,
            signature,
        )
    };
    (0..n).map(vote).collect()
}

fn claims(votes: &[(VerifyingKey, Vec<u8>, Signature)]) -> Vec<Claim<'_>> {
    votes
        .iter()
        .map(|(key, message, signature)| Claim {
            key,
            message,
            signature: *signature,
        })
        .collect()
}

#[test]
fn the_memo_changes_counts_and_not_answers() {
    let mut votes = votes(9);
    votes[8].2 = votes[7].2;
    let claims = claims(&votes);
    let answers = |checks: &Checks| {
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.extend(claims[..5].iter().map(|claim| checks.verify(claim)));
            answers.push(checks.verify_all(&claims[2..8]));
            answers.push(checks.verify_all(&claims[6..]));
            answers.push(checks.verify(&claims[8]));
        }
        answers
    };
    let (with, without) = (Checks::new(true), Checks::new(false));
    assert_eq!(answers(&with), answers(&without));
    // Every time: 5 + 6 + 3 + 1. With the memo the eight that hold once; the one that does not is
    // checked again each time, and pulls nothing else into its batch.
    assert_eq!(without.totals().signatures, 3 * 15);
    assert_eq!(with.totals().signatures, 8 + 3 * 2);
}

#[test]
fn what_holds_in_a_batch_is_still_checked_strictly() {
    let votes = votes(2);
    let claims = claims(&votes);
    let checks = Checks::new(true);
    assert!(checks.verify_all(&claims));
    let keys: Vec<_> = claims.iter().map(key).collect();
    assert!(
        keys.iter()
            .all(|key| checks.held.holds(key, false) && !checks.held.holds(key, true))
    );
    assert!(checks.verify(&claims[0]));
    assert!(checks.held.holds(&keys[0], true));
}

#[test]
fn a_blob_is_hashed_where_it_lies_once() {
    let blob = Bytes::from(vec![7; 1000]);
    for (memo, expected) in [(true, 2000), (false, 3000)] {
        let checks = Checks::new(memo);
        let hashes = [checks.hash(&blob), checks.hash(&blob.clone())];
        // The same bytes elsewhere are not the same place.
        assert_eq!(hashes, [checks.hash(&Bytes::from(vec![7; 1000])); 2]);
        assert_eq!(checks.totals().bytes_hashed, expected);
    }
}

#[test]
fn silos_that_ask_at_once_compute_once() {
    let checks = Checks::new(true);
    let runs = AtomicU64::new(0);
    let key = Hash::of(b"a case");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let once = checks.check(key, 1);
                let result = once.do_it(|| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    Err("no".into())
                });
                assert_eq!(result, Err("no".to_owned()));
            });
        }
    });
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    // The round before the last one adopted is still remembered, older ones are not.
    checks.advance(2);
    assert!(checks.check(key, 1).result().is_some());
    checks.advance(3);
    assert!(checks.check(key, 1).result().is_none());
}

#[test]
fn who_waits_for_work_that_panics_hears_of_it() {
    let once = Checks::new(true).settle(Hash::of(b"a case"), 1);
    once.take();
    assert!(once.taken());
    let waiting = std::thread::spawn({
        let once = once.clone();
        move || once.wait()
    });
    let done = once.do_it(|| panic!("a defect"));
    let (why, heard) = (done.unwrap_err(), waiting.join().unwrap().unwrap_err());
    assert_eq!((why.as_str(), &heard), ("the work on it panicked", &why));
}
