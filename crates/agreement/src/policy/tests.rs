//! What an institution follows without a new signature.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use protocol::SecretKey;
use toml::{Table, Value};

use super::costs::{COSTS, KeyCost, SilentCost};
use super::*;
use crate::keys::{self, Weakens};
use crate::privacy::tests::text;

/// In clear, masked, with noise in steps and with noise at once: edits of the example.
const CLEAR: &[(&str, &str)] = &[("protocol.status", "\"members\"")];
const PLAIN: &str = "{ name = \"fedavg\", weight = \"equal\", training = { epochs = 1, batch = 0, optimiser = { \
                     name = \"sgd\", rate = 0.5 } } }";
const MASKED: &[(&str, &str)] = &[
    ("privacy.mode", "\"secure-aggregation\""),
    ("strategy", PLAIN),
    ("task.table.standardise", "\"silo\""),
    ("protocol.max-model-norm", ""),
];
const NOISED: &[(&str, &str)] = &[
    ("privacy.mode", "\"differential-privacy\""),
    ("privacy.noise-multiplier", "20.0"),
    ("privacy.min-authors", "3"),
    ("strategy", PLAIN),
    ("task.table.standardise", "\"none\""),
    ("task.table.split.group", "\"patient\""),
    ("protocol.max-model-norm", ""),
];
const ONCE: &[(&str, &str)] = &[
    ("rounds", "1"),
    ("privacy.mode", "\"differential-privacy\""),
    ("privacy.noise-multiplier", "20.0"),
    ("privacy.min-authors", "3"),
    ("privacy.mechanism", "\"sufficient-statistics\""),
    ("privacy.max-row-norm", "2.0"),
    ("privacy.max-target", "1.0"),
    ("privacy.ridge", "0.1"),
    ("strategy", PLAIN),
    ("task.table.model", "{ linear = { loss = \"squared\" } }"),
    ("task.table.standardise", "\"none\""),
    ("protocol.max-model-norm", ""),
];

/// The example with these edits and so many members, as the commands write it.
fn base(edits: &[(&str, &str)], members: u8) -> Agreement {
    let rows = edits == NOISED || edits == ONCE;
    let mut file: Table = toml::from_str(&text(edits)).unwrap();
    let silos = file["member"].as_array_mut().unwrap();
    for more in silos.len() as u8..members {
        let mut silo = silos[1].as_table().unwrap().clone();
        let key = SecretKey::from_bytes(&[100 + more; 32]).public();
        silo.insert("name".into(), format!("member {more}").into());
        silo.insert("key".into(), key.to_string().into());
        silos.push(silo.into());
    }
    let least = silos.len() as i64 - (silos.len() as i64 - 1) / 3;
    for silo in silos.iter_mut().filter(|_| rows) {
        let silo = silo.as_table_mut().unwrap();
        silo.insert("rows".into(), Value::Integer(250));
    }
    if edits != CLEAR {
        let protocol = file["protocol"].as_table_mut().unwrap();
        protocol.insert("min-contributions".into(), Value::Integer(least));
        protocol.remove("view-timeout");
    }
    let text = toml::to_string(&file).unwrap();
    read(&text.replace("missing = \"mean\"", "missing = \"drop\""))
}

/// The agreement of a text, as the commands write it.
fn read(text: &str) -> Agreement {
    let parsed = |text: &str| {
        let read = Agreement::parse("f.toml", text);
        read.unwrap_or_else(|error| panic!("{error}\n{text}"))
    };
    parsed(&parsed(text).to_toml().unwrap())
}

/// An agreement with these keys of its text edited: a path and its value, or nothing to remove it.
fn edited(old: &Agreement, edits: &[(&str, &str)]) -> Agreement {
    let mut file: Table = toml::from_str(&old.to_toml().unwrap()).unwrap();
    for (path, value) in edits {
        let (tables, key) = path.rsplit_once('.').unwrap_or(("", path));
        let mut table = &mut file;
        for part in tables.split('.').filter(|part| !part.is_empty()) {
            table = match part {
                "member" => table["member"].as_array_mut().unwrap()[0]
                    .as_table_mut()
                    .unwrap(),
                part => table.get_mut(part).unwrap().as_table_mut().unwrap(),
            };
        }
        match *value {
            "" => drop(table.remove(key)),
            value => {
                let mut one: Table = toml::from_str(&format!("x = {value}")).unwrap();
                table.insert(key.into(), one.remove("x").unwrap());
            }
        }
    }
    read(&toml::to_string(&file).unwrap())
}

/// One change: the row of its key, the kind of agreement and its members, the edits, and whether an institution
/// follows it in silence.
type TriedChange = (
    &'static str,
    &'static [(&'static str, &'static str)],
    u8,
    &'static [(&'static str, &'static str)],
    bool,
);

/// At least one change of every key that may change.
#[rustfmt::skip]
const CASES: &[TriedChange] = &[
    ("format", &[("format", "2")], 4, &[("format", "3")], false),
    ("name", CLEAR, 4, &[("name", "\"other\"")], false),
    ("rounds", CLEAR, 4, &[("rounds", "2000")], true),
    ("rounds", CLEAR, 4, &[("rounds", "3")], true),
    ("rounds", MASKED, 4, &[("rounds", "2000")], true),
    ("rounds", NOISED, 4, &[("rounds", "7")], false),
    ("rounds", NOISED, 4, &[("rounds", "2000")], false),
    ("rounds", NOISED, 4, &[("rounds", "5")], true),
    ("question", CLEAR, 4, &[("rounds", "50"), ("question", "[{ reason = \"who\", kind = \"describe\", columns = [\"age\"], ranges = { age = [0, 120] } }]")], false),
    ("member.*.name", CLEAR, 4, &[("member.name", "\"other\"")], false),
    ("member.*.rows", CLEAR, 4, &[("member.rows", "90")], false),
    ("member.*.rows", NOISED, 4, &[("member.rows", "251")], false),
    ("member.*.rows", NOISED, 4, &[("member.rows", "249")], false),
    ("member.*.addresses", CLEAR, 4, &[("member.addresses", "[\"/ip4/192.0.2.7/tcp/4001\"]")], true),
    ("member.*.addresses", NOISED, 4, &[("member.addresses", "[\"/ip4/192.0.2.7/tcp/4001\"]")], true),
    ("protocol.heartbeat", CLEAR, 4, &[("protocol.heartbeat", "\"10s\"")], false),
    ("protocol.straggler-timeout", CLEAR, 4, &[("protocol.straggler-timeout", "13")], false),
    ("protocol.view-timeout", CLEAR, 4, &[("protocol.view-timeout", "77")], false),
    ("protocol.min-contributions", CLEAR, 4, &[("protocol.min-contributions", "4")], false),
    ("protocol.keep-rounds", CLEAR, 4, &[("protocol.keep-rounds", "9")], false),
    ("protocol.blob-limit", CLEAR, 4, &[("protocol.blob-limit", "1000")], false),
    ("protocol.discovery", CLEAR, 4, &[("protocol.discovery", "true")], false),
    ("protocol.max-model-norm", CLEAR, 4, &[("protocol.max-model-norm", "1e30")], false),
    ("protocol.max-weight", CLEAR, 4, &[("protocol.max-weight", "0.5")], false),
    ("protocol.rotation", CLEAR, 4, &[("protocol.rotation", "\"fixed\"")], false),
    ("protocol.verification", CLEAR, 4, &[("protocol.verification", "\"inclusion\"")], false),
    ("protocol.names", CLEAR, 4, &[("protocol.names", "\"shown\"")], false),
    ("protocol.status", CLEAR, 4, &[("protocol.status", "")], false),
    ("privacy.mode", NOISED, 4, &[("privacy", "")], false),
    ("privacy.mode", NOISED, 4, &[("privacy", "{ mode = \"secure-aggregation\" }")], false),
    ("privacy.mode", MASKED, 4, &[("privacy", "")], false),
    ("privacy.colluders", NOISED, 7, &[("privacy.colluders", "1")], false),
    ("privacy.colluders", MASKED, 7, &[("privacy.colluders", "1")], false),
    ("privacy.min-sum-size", MASKED, 7, &[("privacy.min-sum-size", "4")], false),
    ("privacy.group", MASKED, 4, &[("privacy.group", "[{ north = 2, south = 1, east = 1, \"west coast\" = 1 }]")], false),
    ("privacy.shows", MASKED, 4, &[("privacy.shows", "[\"north\"]")], false),
    ("privacy.min-authors", NOISED, 4, &[("privacy.min-authors", "2")], false),
    ("privacy.min-authors", NOISED, 7, &[("privacy.min-authors", "4")], false),
    ("privacy.mechanism", ONCE, 4, &[("privacy.mechanism", "\"gradients\""), ("privacy.max-row-norm", ""), ("privacy.max-target", ""), ("privacy.ridge", "")], false),
    ("privacy.privacy-unit", NOISED, 4, &[("privacy.privacy-unit", "{ person = \"patient\" }")], false),
    ("privacy.clipping-norm", NOISED, 4, &[("privacy.clipping-norm", "9.0")], false),
    ("privacy.max-row-norm", ONCE, 4, &[("privacy.max-row-norm", "3.0")], false),
    ("privacy.max-target", ONCE, 4, &[("privacy.max-target", "2.0")], false),
    ("privacy.ridge", ONCE, 4, &[("privacy.ridge", "0.2")], false),
    ("privacy.noise-multiplier", NOISED, 4, &[("privacy.noise-multiplier", "10.0")], false),
    ("privacy.epsilon", NOISED, 4, &[("privacy.noise-multiplier", ""), ("privacy.epsilon", "20.0")], false),
    ("privacy.delta", NOISED, 4, &[("privacy.delta", "1e-4")], false),
    ("strategy.aggregation.name", CLEAR, 4, &[("strategy.aggregation", "{ name = \"coordinate-median\" }")], false),
    ("strategy.encoding", CLEAR, 4, &[("strategy.encoding", "\"bf16\"")], false),
    ("strategy.participation", CLEAR, 4, &[("strategy.name", "\"fedavg\""), ("strategy.coalitions", ""), ("strategy.freeze", ""), ("strategy.folds", ""), ("strategy.gap", ""), ("strategy.participation", "3")], false),
    ("strategy.stop", CLEAR, 4, &[("strategy.stop", "{ patience = 3 }")], false),
    ("strategy.training.epochs", CLEAR, 4, &[("strategy.training.epochs", "77")], true),
    ("strategy.training.epochs", MASKED, 4, &[("strategy.training.epochs", "77")], true),
    ("strategy.training.batch", CLEAR, 4, &[("strategy.training.batch", "16")], false),
    ("strategy.training.optimiser", CLEAR, 4, &[("strategy.training.optimiser.rate", "0.5")], false),
    ("strategy.training.decay", CLEAR, 4, &[("strategy.training.decay", "{ exponential = 0.9 }")], false),
];

#[test]
fn what_weakens_or_spends_more_or_is_of_no_kind_is_never_followed_in_silence() {
    for (key, kind, members, edits, silent) in CASES {
        let old = base(kind, *members);
        // Before a lowered number there is a larger one.
        let old = match *key {
            "privacy.colluders" => edited(&old, &[(key, "2")]),
            _ => old,
        };
        let new = edited(&old, edits);
        assert!(!old.difference(&new).is_empty(), "{key}: {edits:?}");
        let why = old.needs_signature(&new, &Routine::ALL);
        assert_eq!(why.is_none(), *silent, "{key}: {edits:?}: {why:?}");
        // Every kind is followed where the policy names it, and only there.
        if *silent {
            let of = |row: &&KeyCost| row.path == *key;
            let row = COSTS.iter().copied().flatten().find(of).unwrap();
            let own = row.kind.unwrap();
            let others: Vec<_> = Routine::ALL.into_iter().filter(|one| *one != own).collect();
            assert!(old.needs_signature(&new, &[own]).is_none(), "{key}");
            assert!(old.needs_signature(&new, &others).is_some(), "{key}");
        }
        // One that costs something beside one that costs nothing.
        if !silent && *kind == CLEAR {
            let both = edited(&new, &[("rounds", "9")]);
            assert!(old.needs_signature(&both, &Routine::ALL).is_some(), "{key}");
        }
    }
}

#[test]
fn every_key_that_may_change_is_tried_and_is_classified_as_it_is_in_words() {
    let tried: BTreeSet<&str> = CASES.iter().map(|case| case.0).collect();
    // Members that come and go, and other keys, have tests of their own.
    let apart = ["member.*", "member.*.key"];
    for row in COSTS.iter().copied().flatten() {
        let words = keys::known(row.path).unwrap_or_else(|| panic!("{} has no words", row.path));
        let table = row.cost == SilentCost::Table;
        assert!(
            table || (row.cost == SilentCost::Fixed) == words.fixed,
            "{}",
            row.path
        );
        let never = matches!(words.weakens, Weakens::Never);
        match row.cost {
            SilentCost::Fixed | SilentCost::Table | SilentCost::Spends => {}
            SilentCost::Harmless => assert!(never, "{}", row.path),
            SilentCost::Weakens | SilentCost::Excepted => assert!(!never, "{}", row.path),
        }
        let changes = !matches!(row.cost, SilentCost::Fixed | SilentCost::Table);
        if changes && !apart.contains(&row.path) {
            assert!(tried.contains(row.path), "no change of {}", row.path);
        }
    }
}

#[test]
fn why_a_signature_is_needed_names_the_key_with_both_values() {
    let old = base(NOISED, 4);
    let why = |edits: &[(&str, &str)]| {
        let new = edited(&old, edits);
        old.needs_signature(&new, &Routine::ALL).unwrap()
    };
    assert_eq!(
        why(&[("rounds", "2000")]),
        "`rounds` changes from 6 to 2000: every further round discloses more about each patient: ε and ε_alone of \
         all rounds rise"
    );
    assert_eq!(
        why(&[("privacy.clipping-norm", "9.0")]),
        "its [policy] does not accept in silence that `privacy.clipping-norm` changes"
    );
}

/// An agreement with one member more.
fn with_another(old: &Agreement) -> Agreement {
    let key = SecretKey::from_bytes(&[200; 32]).public();
    read(&old.admitting("new", key, Some(250), Vec::new()).unwrap())
}

#[test]
fn members_come_in_silence_in_clear_only_and_go_while_as_many_may_break_the_rules() {
    for (kind, comes) in [(CLEAR, true), (MASKED, false), (NOISED, false)] {
        let four = base(kind, 4);
        let five = with_another(&four);
        let why = four.needs_signature(&five, &Routine::ALL);
        assert_eq!(why.is_none(), comes, "{kind:?}: {why:?}");
        assert!(comes || why.unwrap().contains("\"new\" comes in"));
        assert!(five.needs_signature(&four, &[Routine::Members]).is_none());
        let others = [Routine::Rounds, Routine::Addresses, Routine::Epochs];
        assert!(five.needs_signature(&four, &others).is_some());
    }
    let four = base(CLEAR, 4);
    let three = read(&four.without("west coast").unwrap());
    let why = four.needs_signature(&three, &Routine::ALL).unwrap();
    assert!(
        why.starts_with("fewer members may break the rules"),
        "{why}"
    );
    assert!(three.needs_signature(&four, &Routine::ALL).is_none());
    // Somebody comes, and beside it the sums may have fewer authors.
    let five = with_another(&base(NOISED, 4));
    let weaker = edited(&five, &[("privacy.min-authors", "2")]);
    assert!(weaker.needs_signature(&five, &Routine::ALL).is_some());
}

#[test]
fn who_comes_goes_or_is_declared_lost_changes_neither_epsilon_of_the_agreed_rounds() {
    let both = |agreement: &Agreement| {
        let bound = crate::bound(&agreement.epoch.protocol).unwrap();
        (bound.epsilon().to_string(), bound.alone().to_string())
    };
    let four = base(NOISED, 4);
    let five = with_another(&four);
    assert_eq!(both(&five), both(&four));
    let recovered = five.without_all(&["east".into()]).unwrap();
    assert_eq!(both(&recovered), both(&four));
}

#[test]
fn another_order_of_members_and_another_key_are_signed_for() {
    let four = base(CLEAR, 4);
    let key = SecretKey::from_bytes(&[9; 32]).public();
    let rekeyed = read(&four.rekeyed("north", key).unwrap());
    let why = four.needs_signature(&rekeyed, &Routine::ALL).unwrap();
    assert!(why.starts_with("`member.north.key` changes from"), "{why}");
    let mut file: Table = toml::from_str(&four.to_toml().unwrap()).unwrap();
    file["member"].as_array_mut().unwrap().swap(0, 1);
    let swapped = read(&toml::to_string(&file).unwrap());
    assert!(four.needs_signature(&swapped, &Routine::ALL).is_some());
    assert!(four.needs_signature(&four, &[]).is_none());
}
