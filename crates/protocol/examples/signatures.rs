//! Cost of signatures on this machine: `cargo run --release -p protocol --example signatures`.

#![allow(clippy::disallowed_types, reason = "it measures wall-clock time")]
use std::time::Instant;

use protocol::SecretKey;
use protocol::identity::{SignatureClaim, Strict, Verifier, VerifyingKey};

fn main() {
    let keys: Vec<_> = (0..100u8)
        .map(|i| SecretKey::from_bytes(&[i; 32]))
        .collect();
    let public: Vec<_> = keys
        .iter()
        .map(|key| VerifyingKey::new(&key.public()).expect("a key of its own making is usable"))
        .collect();
    let messages: Vec<Vec<u8>> = (0..100u8).map(|i| vec![i; 150]).collect();
    let signatures: Vec<_> = keys
        .iter()
        .zip(&messages)
        .map(|(key, m)| key.sign(m))
        .collect();
    let claims: Vec<_> = public
        .iter()
        .zip(&messages)
        .zip(&signatures)
        .map(|((key, message), &signature)| SignatureClaim {
            key,
            message,
            signature,
        })
        .collect();
    let time = |name: &str, per: usize, mut work: Box<dyn FnMut() -> bool + '_>| {
        let mut runs: Vec<f64> = (0..51)
            .map(|_| {
                let start = Instant::now();
                assert!(work(), "honest signatures verify");
                start.elapsed().as_secs_f64() * 1e6 / per as f64
            })
            .collect();
        runs.sort_by(f64::total_cmp);
        println!(
            "{name:<24} {:>7.1} µs a signature (median of {})",
            runs[25],
            runs.len()
        );
    };
    time(
        "sign",
        1,
        Box::new(|| keys[0].sign(&messages[0]) == signatures[0]),
    );
    time("one, strict", 1, Box::new(|| Strict.verify(&claims[0])));
    for size in [3, 14, 20, 67, 100] {
        let name = format!("batch of {size}");
        time(&name, size, Box::new(|| Strict.verify_all(&claims[..size])));
    }
}
