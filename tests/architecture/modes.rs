//! Places over which a kind of round is spread: the list of all that a further one touches. The compiler finds them,
//! because each matches every kind by name; the list says what is to be written there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Places that a further mode of rounds touches, by what depends on the mode there.
const MODES: [(&str, &str); 27] = [
    (
        "crates/agreement/src/continues.rs",
        "what members saw in the federation that is continued",
    ),
    (
        "crates/agreement/src/difference/mod.rs",
        "which changes show more than before",
    ),
    (
        "crates/agreement/src/file.rs",
        "the name of the mode in files",
    ),
    (
        "crates/agreement/src/held_out.rs",
        "whether held-out rows break a bound",
    ),
    (
        "crates/agreement/src/privacy/delta.rs",
        "whether there is a δ to doubt",
    ),
    (
        "crates/agreement/src/privacy/noise.rs",
        "what all agreed rounds cost",
    ),
    (
        "crates/agreement/src/question/mod.rs",
        "whether questions can be answered, and who sees what",
    ),
    (
        "crates/agreement/src/serving/mod.rs",
        "whether members can decide together what they serve",
    ),
    (
        "crates/bare/src/genesis.rs",
        "the fewest contributions of a federation that learns nothing",
    ),
    ("crates/bare/src/invariants/mod.rs", "which properties hold"),
    (
        "crates/bare/src/simulator/masked.rs",
        "where nodes draw noise",
    ),
    (
        "crates/lab/src/attack/canary/mod.rs",
        "whether there is a bound to audit",
    ),
    (
        "crates/lab/src/attack/membership/mod.rs",
        "whether rows or persons are protected",
    ),
    (
        "crates/lab/src/attack/membership/shadows.rs",
        "what a shadow federation may leave out",
    ),
    (
        "crates/lab/src/demo/mod.rs",
        "whether an institution needs a ledger",
    ),
    (
        "crates/ledger/src/contribution.rs",
        "what a contribution costs",
    ),
    (
        "crates/protocol/src/parameters/mod.rs",
        "whether entries have names",
    ),
    (
        "crates/protocol/src/parameters/privacy/mode.rs",
        "the modes themselves, and which of them have noise",
    ),
    ("crates/silo/src/rounds/sums/mod.rs", "what is summed"),
    ("node/check/rehearsal.rs", "whether members rehearse masks"),
    (
        "node/commands/counted.rs",
        "whether a ledger is wanted before signing",
    ),
    (
        "node/federation/disclosure/mod.rs",
        "what is told in all texts (`ToldOfMode`)",
    ),
    (
        "node/institution/run/connection.rs",
        "whether members can be asked for a rehearsal",
    ),
    ("node/policy/refusals.rs", "what a policy refuses"),
    (
        "simulations/src/direct/mod.rs",
        "how a round runs without messages",
    ),
    (
        "simulations/src/federate.rs",
        "whether a federation needs messages",
    ),
    (
        "simulations/src/federation.rs",
        "the fewest contributions of a simulated federation",
    ),
];

/// Places that ask of a mode yes or no: whether anything is masked (`privacy.masked()`), or has noise
/// (`privacy.is_noised()`). A further mode compiles there, and has to be looked at: what is decided by the answer.
const ASKED: [(&str, &str); 25] = [
    ("crates/agreement/src/agreement.rs", "how rows are read"),
    (
        "crates/agreement/src/difference/mod.rs",
        "whether more rounds spend more of a bound",
    ),
    (
        "crates/agreement/src/examine/mod.rs",
        "whether groups may change",
    ),
    (
        "crates/agreement/src/policy/mod.rs",
        "whether a newcomer may collude",
    ),
    ("crates/agreement/src/privacy/mod.rs", "the table of a file"),
    ("crates/agreement/src/summed.rs", "groups of earlier sums"),
    ("crates/bare/src/genesis.rs", "whether rows are declared"),
    (
        "crates/bare/src/simulator/epochs.rs",
        "what a change of groups shows",
    ),
    ("crates/bare/src/voids.rs", "sums that were void"),
    (
        "crates/silo/src/rounds/masked/combine.rs",
        "the group of a sum",
    ),
    (
        "crates/silo/src/site.rs",
        "whether a contribution spends of a bound",
    ),
    ("node/chain/links.rs", "why a round has no sum"),
    ("node/chain/mod.rs", "words for void sums"),
    ("node/commands/amend/mod.rs", "what a change waits for"),
    ("node/commands/amend/show.rs", "what a question waits for"),
    (
        "node/commands/counted.rs",
        "whether a contribution is counted",
    ),
    (
        "node/commands/ledger/reconcile.rs",
        "whether a line of a ledger is needed",
    ),
    ("node/corrupters.rs", "who is left out of sums"),
    (
        "node/federation/rows.rs",
        "whether more rows than declared are told",
    ),
    (
        "node/institution/report/lines/reported.rs",
        "whether numbers of rows are covered by a bound",
    ),
    (
        "node/institution/run/connection.rs",
        "what a member tells of its node",
    ),
    (
        "node/institution/run/part.rs",
        "whether other rows have to be signed for",
    ),
    (
        "node/institution/start/role.rs",
        "which models are candidates to serve",
    ),
    ("node/policy/mod.rs", "whether nothing counts what is told"),
    (
        "node/policy/refusals.rs",
        "whether a ledger and declared rows are wanted",
    ),
];

/// Places that a further summand of differentially private rounds touches.
const SUMMANDS: [(&str, &str); 10] = [
    (
        "crates/agreement/src/privacy/noise.rs",
        "the keys of a release",
    ),
    (
        "crates/agreement/src/privacy/noised/mod.rs",
        "what does not go with it",
    ),
    (
        "crates/agreement/src/question/mod.rs",
        "whether questions can be asked beside it",
    ),
    (
        "crates/protocol/src/parameters/privacy/noise.rs",
        "the release, its numbers and their ranges",
    ),
    (
        "crates/silo/src/rounds/sums/answers.rs",
        "what single rows say to a question",
    ),
    (
        "crates/silo/src/rounds/sums/gradients.rs",
        "an example: the numbers of a unit, and the step along their sum",
    ),
    (
        "crates/silo/src/rounds/sums/noised/mod.rs",
        "which numbers a release has",
    ),
    (
        "crates/silo/src/rounds/sums/products/mod.rs",
        "an example: the numbers of a unit, and the model solved from their sum",
    ),
    (
        "crates/silo/src/rounds/sums/units.rs",
        "what all of them have in common",
    ),
    (
        "node/federation/disclosure/noised.rs",
        "what is told about a release",
    ),
];

/// The code of a file, without comments and without its tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a file of this repository can be read");
    let text = text
        .split("#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The files of the product, without those of tests, that have one of these words.
fn with(words: &[&str]) -> BTreeSet<String> {
    holding(&|code| words.iter().any(|word| code.contains(word)))
}

/// The files of the product, without those of tests, whose code is so.
fn holding(is_so: &dyn Fn(&str) -> bool) -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = ["node", "crates", "simulations"];
    let files = places
        .iter()
        .flat_map(|place| crate::rust_files(&root.join(place)));
    let product = files.filter(|file| {
        let mut parts = file
            .components()
            .filter_map(|part| part.as_os_str().to_str());
        !parts.any(|part| ["tests", "tests.rs", "testing", "mutants"].contains(&part))
    });
    let found = product.filter(|file| is_so(&code(file)));
    let relative = |file: std::path::PathBuf| {
        let file = file.strip_prefix(root).expect("it is in the repository");
        file.to_str().expect("paths are ASCII").to_owned()
    };
    found.map(relative).collect()
}

fn listed(places: &[(&str, &str)]) -> BTreeSet<String> {
    places.iter().map(|(file, _)| (*file).to_owned()).collect()
}

#[test]
fn every_place_that_a_further_mode_touches_is_listed() {
    assert_eq!(with(&["RoundMode::"]), listed(&MODES));
}

#[test]
fn every_place_that_a_further_summand_touches_is_listed() {
    let words = [
        "Release::Once",
        "UnitNumbers for",
        "trait UnitNumbers",
        "pub enum Release {",
    ];
    assert_eq!(with(&words), listed(&SUMMANDS));
}

#[test]
fn every_place_that_asks_a_mode_yes_or_no_is_listed() {
    let asks = ["privacy.masked()", "privacy.is_noised()"];
    let mut found = holding(&|code| {
        let dense: String = code.split_whitespace().collect();
        asks.iter().any(|ask| dense.contains(ask))
    });
    found.retain(|file| !file.starts_with("crates/protocol/"));
    assert_eq!(found, listed(&ASKED));
}

/// A choice that is no match by name is found by nobody.
#[test]
fn no_mode_is_asked_for_by_its_parts() {
    let asked = with(&["masked().is_some", "masked().is_none"]);
    let of_protocol = |file: &String| file.starts_with("crates/protocol/");
    let asked: Vec<_> = asked
        .into_iter()
        .filter(|file| !of_protocol(file))
        .collect();
    let blocks = ["crates/silo/src/needed.rs"];
    assert_eq!(asked, blocks, "the only one looks at blocks, not at modes");
}
