//! Signatures of the members of a federation in one process.

#![allow(clippy::unwrap_used)]

use serde_json::Value;

use super::cli::{NULL, json, refused, scenario};

#[test]
fn the_same_seed_gives_the_same_trace_whoever_checks() {
    let file = scenario("same", NULL);
    let run = |more: &[&str]| json(&[&[file.as_str(), "--no-references"], more].concat());
    let first = run(&[]);
    assert_eq!(first["trace"], run(&[])["trace"]);
    let every = run(&["--check", "every-member"]);
    // Members that check each other sign by Ed25519.
    let signed = run(&["--signatures", "ed25519"]);
    assert_eq!(signed["trace"], every["trace"]);
    assert_ne!(signed["trace"], first["trace"]);
    assert_eq!(signed["rounds"], first["rounds"]);
    let hashes = |summary: &Value| summary["checks"]["simulated_signatures"].clone();
    assert_eq!([hashes(&first), hashes(&signed)], [true, false]);
    let (code, error) = refused(&[
        &file,
        "--check",
        "every-member",
        "--signatures",
        "simulated",
    ]);
    assert!(code == 2 && error.contains("leave it out"), "{error}");
    // Nor where messages go over sockets.
    let (code, error) = refused(&[&file, "--mesh", "loopback", "--signatures", "simulated"]);
    assert!(code == 2 && error.contains("leave it out"), "{error}");
    assert_eq!(every["checks"]["cache"], false);
    assert_eq!(run(&["--memo"])["checks"]["cache"], true);
    assert_ne!(first["trace"], run(&["--seed", "2"])["trace"]);
}
