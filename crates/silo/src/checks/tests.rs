#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use methods::params::{Encoding, Gate};
use methods::{Layout, Role, TensorSpec};
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

fn claims(votes: &[(VerifyingKey, Vec<u8>, Signature)]) -> Vec<SignatureClaim<'_>> {
    votes
        .iter()
        .map(|(key, message, signature)| SignatureClaim {
            key,
            message,
            signature: *signature,
        })
        .collect()
}

#[test]
fn the_cache_changes_counts_and_not_answers() {
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
    // Every time: 5 + 6 + 3 + 1. With the cache the eight valid ones once; the invalid one is
    // checked again each time, and alone.
    assert_eq!(without.totals().signatures, 3 * 15);
    assert_eq!(with.totals().signatures, 8 + 3 * 2);
}

#[test]
fn a_signature_valid_in_a_batch_is_still_verified_strictly() {
    let votes = votes(2);
    let claims = claims(&votes);
    let checks = Checks::new(true);
    assert!(checks.verify_all(&claims));
    let keys: Vec<_> = claims.iter().map(key).collect();
    assert!(
        keys.iter()
            .all(|key| checks.valid.is_valid(key, false) && !checks.valid.is_valid(key, true))
    );
    assert!(checks.verify(&claims[0]));
    assert!(checks.valid.is_valid(&keys[0], true));
}

#[test]
fn a_blob_at_one_address_is_hashed_once() {
    let blob = Bytes::from(vec![7; 1000]);
    for (cached, expected) in [(true, 2000), (false, 3000)] {
        let checks = Checks::new(cached);
        let hashes = [checks.hash(&blob), checks.hash(&blob.clone())];
        // The same bytes at another address are hashed again.
        assert_eq!(hashes, [checks.hash(&Bytes::from(vec![7; 1000])); 2]);
        assert_eq!(checks.totals().bytes_hashed, expected);
    }
}

#[test]
fn concurrent_requests_compute_once() {
    let checks = Checks::new(true);
    let runs = AtomicU64::new(0);
    let key = Hash::of(b"a case");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let shared = checks.check(key, 1);
                let result = shared.compute(|| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    Err("no".into())
                });
                assert_eq!(result, Err("no".to_owned()));
            });
        }
    });
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    // The round before the last adopted one is still cached, older ones are not.
    checks.advance(2);
    assert!(checks.check(key, 1).result().is_some());
    checks.advance(3);
    assert!(checks.check(key, 1).result().is_none());
}

#[test]
fn waiting_for_a_computation_that_panics_returns_an_error() {
    let shared = Checks::new(true).settle(Hash::of(b"a case"), 1);
    shared.claim();
    assert!(shared.is_claimed());
    let waiting = std::thread::spawn({
        let shared = shared.clone();
        move || shared.wait()
    });
    let done = shared.compute(|| panic!("a defect"));
    let (why, heard) = (done.unwrap_err(), waiting.join().unwrap().unwrap_err());
    assert_eq!((why.as_str(), &heard), ("its computation panicked", &why));
}

/// The hashed part of a model decides with the gate, and never lets more pass than the gate alone.
#[test]
fn a_gate_that_knows_the_hashes_refuses_what_it_refuses_alone() {
    let weight = TensorSpec::new("w", [20_000], Role::Weight);
    let layout = Layout::new(vec![weight]).unwrap();
    let gate = Gate {
        layout: layout.clone(),
        norm: 1e3,
    };
    let with = |value: f32| {
        let mut values = vec![0.5; 20_000];
        values[19_999] = value;
        Params::from_values(&layout, &values).document()
    };
    for cached in [true, false] {
        let checks = Checks::new(cached);
        for (value, passes) in [(-3.0, true), (900.0, true), (1e4, false), (f32::NAN, false)] {
            let document = with(value);
            let hash = checks.hash(&document);
            let largest = checks.largest(&hash);
            assert!(largest.is_some(), "hashing has looked at the values");
            let told = gate.admit_encoded(Encoding::F32, document.clone(), &[], largest);
            let alone = gate.admit(document);
            assert_eq!(told.is_ok(), passes, "{value}");
            // As text, in which NaN is itself.
            assert_eq!(format!("{told:?}"), format!("{alone:?}"));
        }
        let small = Bytes::from(vec![7; 1000]);
        assert_eq!(checks.largest(&checks.hash(&small)), None);
        let hash = checks.hash(&with(-3.0));
        checks.advance(9);
        assert_eq!(checks.largest(&hash), None, "the round is long over");
    }
}
