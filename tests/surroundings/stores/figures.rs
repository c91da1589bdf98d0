//! Measures the speed of this disk:
//! `cargo test -p rota --test surroundings -- --ignored --nocapture stores::figures`.

use std::time::{Duration, Instant};

use super::*;

/// The median and the slowest of the times of `count` turns.
fn times(count: u64, mut turn: impl FnMut(u64)) -> (Duration, Duration, Duration) {
    let began = Instant::now();
    let mut times: Vec<_> = (0..count)
        .map(|n| {
            let since = Instant::now();
            turn(n);
            since.elapsed()
        })
        .collect();
    let all = began.elapsed();
    times.sort_unstable();
    (times[times.len() / 2], times[times.len() - 1], all)
}

fn tell(what: &str, count: u64, (median, slowest, all): (Duration, Duration, Duration)) {
    let rate = count as f64 / all.as_secs_f64();
    println!("{what}: median {median:.0?}, slowest {slowest:.0?}, {rate:.0} a second");
}

#[test]
#[ignore = "measures"]
fn figures() {
    // In the folder $ROTA_STORES, or in that of temporary files.
    let place = match std::env::var_os("ROTA_STORES") {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    };
    let mut journal = DiskJournal::open(place.path(), &owner()).unwrap();
    let vote = record(1);
    println!("a vote: {} bytes", protocol::codec::encode(&vote).len());
    let took = times(1000, |_| journal.commit(vec![vote.clone()]).unwrap());
    tell("commit of one vote", 1000, took);
    let took = times(200, |_| journal.commit(vec![vote.clone(); 20]).unwrap());
    tell("commit of 20", 200, took);
    drop(journal);
    let since = Instant::now();
    let mut journal = DiskJournal::open(place.path(), &owner()).unwrap();
    let opened = since.elapsed();
    let records = journal.load().unwrap().len();
    println!(
        "opening {records} records: {opened:.0?}, loading them {:.0?}",
        since.elapsed() - opened
    );
    let size = std::fs::metadata(place.path().join("journal.redb"))
        .unwrap()
        .len();
    println!("the file: {size} bytes");

    for (name, size) in [("40 kB", 40_000), ("1 MiB", 1 << 20)] {
        let blob = |n: u64| {
            let mut bytes = vec![3; size];
            bytes[..8].copy_from_slice(&n.to_le_bytes());
            (Hash::of(&bytes), Bytes::from(bytes))
        };
        let sheet = |n: u64| (20 * n..20 * n + 20).map(blob).collect::<Vec<_>>();
        let blobs = DiskBlobs::open(place.path(), 64 << 20).unwrap();
        let turns: Vec<_> = (0..10).map(sheet).collect();
        let took = times(5, |n| blobs.put_all(turns[2 * n as usize].clone()).unwrap());
        tell(&format!("20 blobs of {name} at once"), 5, took);
        let took = times(5, |n| {
            let one_by_one = turns[2 * n as usize + 1].iter().cloned();
            one_by_one.for_each(|(hash, blob)| blobs.put(hash, blob).unwrap());
        });
        tell(&format!("20 blobs of {name} one by one"), 5, took);
        drop(blobs);
        let blobs = DiskBlobs::open(place.path(), 64 << 20).unwrap();
        let hashes: Vec<_> = turns[0].iter().map(|(hash, _)| *hash).collect();
        let took = times(20, |n| drop(blobs.get(&hashes[n as usize]).unwrap()));
        tell(&format!("first get of {name}, hashed"), 20, took);
        let took = times(20, |n| drop(blobs.get(&hashes[n as usize]).unwrap()));
        tell(&format!("get of {name} from memory"), 20, took);
    }
}
