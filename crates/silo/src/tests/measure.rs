//! Measurements, by hand: `cargo test --release -p silo measure -- --ignored --nocapture`.

use std::time::Duration;

use protocol::MemberIndex;
use protocol::identity::{SignatureClaim, Verifier, VerifyingKey};
use tokio::time::{Instant, sleep};

use crate::testing::*;
use crate::{Checks, spawn};

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = std::time::Instant::now();
    let result = work();
    println!("{what}: {:?}", start.elapsed());
    result
}

#[test]
#[ignore = "a measurement"]
fn a_certificate_of_67() {
    let signed: Vec<_> = (0..67)
        .map(|i| {
            let message = [i as u8; 140];
            (
                VerifyingKey::new(&key(i).public()).unwrap(),
                message,
                key(i).sign(&message),
            )
        })
        .collect();
    let claims: Vec<_> = signed
        .iter()
        .map(|(key, message, signature)| SignatureClaim {
            key,
            message,
            signature: *signature,
        })
        .collect();
    for cache in [false, true] {
        let checks = Checks::new(cache);
        println!("cache {cache}");
        timed("  first batch of 67", || {
            assert!(checks.verify_all(&claims))
        });
        timed("  100 batches of 67", || {
            assert!((0..100).all(|_| checks.verify_all(&claims)));
        });
        timed("  67 one by one", || {
            assert!(claims.iter().all(|claim| checks.verify(claim)))
        });
    }
}

#[test]
#[ignore = "a measurement"]
fn a_hundred_silos() {
    for cache in [true, false] {
        let rounds = 3;
        let start = std::time::Instant::now();
        let (received, totals) = virtually(async {
            let (epoch, hub, checks) = (epoch(100, rounds), Hub::default(), Checks::new(cache));
            let origin = Instant::now();
            let mut silos = Vec::new();
            for i in 0..100 {
                let rig = Rig {
                    origin,
                    ..Rig::new(checks.clone())
                };
                let (environment, ends) = rig.environment();
                hub.join(MemberIndex(i), ends);
                silos.push((spawn(config(&epoch, i), environment).unwrap(), rig));
            }
            while silos
                .iter()
                .any(|(_, rig)| rig.adopted().len() < rounds as usize)
            {
                sleep(Duration::from_secs(1)).await;
            }
            println!("{:?} of virtual time", origin.elapsed());
            let received: u64 = silos.iter().map(|(silo, _)| silo.counts().received).sum();
            (received, checks.totals())
        });
        let spent = start.elapsed();
        println!("cache {cache}: {rounds} rounds in {spent:?}, {received} frames received");
        println!("  {:?} a frame; {totals:?}", spent / received as u32);
    }
}
