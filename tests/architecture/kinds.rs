//! A kind of round has a folder of its own. Beside it, few files of a member know it.

use std::collections::BTreeMap;

use super::walls::{files, folder};

/// The files outside of `rounds/masked` that name something of masked rounds, and what for. A kind of round that
/// differs from the others as much touches the same places, and its messages and work: see `walls`.
const PLACES: [(&str, &str); 12] = [
    ("answers.rs", "who takes the answers to its work"),
    (
        "consensus/chain.rs",
        "outcomes that are certified after the block",
    ),
    ("consensus/judge.rs", "the place of its block"),
    ("governance/ending.rs", "consent to another circle"),
    (
        "governance/recovery.rs",
        "a round whose outcome nobody certifies",
    ),
    ("receive.rs", "who takes its messages"),
    ("rounds/judging.rs", "checks that are tried again"),
    ("rounds/lead/gathered.rs", "the stages of its lead"),
    (
        "rounds/mod.rs",
        "the choice of the kind, and what outlives a round",
    ),
    ("rounds/own.rs", "what follows from a contribution"),
    ("rounds/round.rs", "what the round keeps of it"),
    ("steps/certificates.rs", "what its final blocks mean"),
];

/// The files of a member that a pattern is found in, by their paths below its folder.
fn naming(pattern: impl Fn(&str) -> bool) -> Vec<String> {
    let files: BTreeMap<_, _> = files();
    let named = files.into_iter().filter(|(_, text)| pattern(text));
    let path = |file: std::path::PathBuf| {
        let path = file.strip_prefix(folder()).unwrap_or(&file);
        path.to_string_lossy().replace('\\', "/")
    };
    named.map(|(file, _)| path(file)).collect()
}

#[test]
fn a_kind_of_round_is_known_in_its_folder_and_twelve_files() {
    let mut named = naming(|text| text.to_lowercase().contains("mask"));
    named.retain(|file| !file.starts_with("rounds/masked/"));
    named.sort();
    let expected = PLACES.map(|(file, _)| file);
    assert_eq!(
        named, expected,
        "what a kind of round does in its own way belongs to its folder, as a method of `RoundKind`"
    );
}

#[test]
fn the_kind_of_round_is_chosen_in_one_place() {
    let agreed = ["privacy.masked()", "config.masked()", "privacy.noise()"];
    let dense = |text: &str| text.split_whitespace().collect::<String>();
    let mut named = naming(|text| agreed.iter().any(|of| dense(text).contains(of)));
    named.retain(|file| !file.starts_with("rounds/masked/"));
    assert_eq!(named, ["rounds/mod.rs"]);
}
