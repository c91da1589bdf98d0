#![allow(clippy::unwrap_used)]

use std::sync::OnceLock;

use proptest::prelude::*;
use protocol::SecretKey;
use serde_json::Value;

use super::*;

const EXAMPLE: &str = include_str!("../../../../examples/federation.toml");

fn agreement(text: &str) -> Agreement {
    Agreement::parse("f.toml", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The example with some texts replaced.
fn example(edits: &[(&str, &str)]) -> Agreement {
    let mut text = EXAMPLE.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "the example has no {from:?}");
        text = text.replacen(from, to, 1);
    }
    agreement(&text)
}

fn changes(before: &[(&str, &str)], after: &[(&str, &str)]) -> Vec<Changed> {
    example(before).difference(&example(after)).changes
}

/// Returns whether a change of one key protects less, and the other way round.
fn weaker(key: &str, before: &[(&str, &str)], after: &[(&str, &str)]) -> (bool, bool) {
    let found = |before, after| {
        let all = changes(before, after);
        let own = all.iter().find(|change| change.key == key);
        let own = own.unwrap_or_else(|| panic!("{key} does not change: {all:?}"));
        own.weaker.is_some()
    };
    (found(before, after), found(after, before))
}

/// The paths of all keys that a schema describes, tables too. Each definition is followed once on a path.
fn paths(whole: &Value, at: &Value, path: &str, above: &[&str], found: &mut BTreeSet<String>) {
    if let Some(name) = at["$ref"].as_str() {
        let name = name.trim_start_matches("#/definitions/");
        if !above.contains(&name) {
            let above = [above, &[name]].concat();
            paths(whole, &whole["definitions"][name], path, &above, found);
        }
    }
    for kind in ["allOf", "anyOf", "oneOf"] {
        for alternative in at[kind].as_array().into_iter().flatten() {
            paths(whole, alternative, path, above, found);
        }
    }
    let behind = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    for (key, inner) in at["properties"].as_object().into_iter().flatten() {
        found.insert(behind(key));
        paths(whole, inner, &behind(key), above, found);
    }
    let lists = match &at["items"] {
        Value::Array(items) => items.iter().collect(),
        Value::Null => Vec::new(),
        one => vec![one],
    };
    for inner in lists.into_iter().chain(at.get("additionalProperties")) {
        if inner.is_object() {
            paths(whole, inner, &behind("*"), above, found);
        }
    }
}

#[test]
fn every_key_of_an_agreement_has_words() {
    let schema = crate::federation_schema();
    let mut found = BTreeSet::new();
    paths(&schema, &schema, "", &[], &mut found);
    for path in [
        "protocol.blob-limit",
        "member.*.addresses",
        "strategy.training.optimiser.rate",
        "strategy.aggregation.byzantine",
        "strategy.stop.patience",
        "task.table.schema.feature.*.missing",
    ] {
        assert!(found.contains(path), "{path} was not found: {found:#?}");
    }
    let silent: Vec<_> = found
        .iter()
        .filter(|path| keys::known(path).is_none())
        .collect();
    assert!(
        silent.is_empty(),
        "say in `keys.rs` what these keys mean, whether they may change, and when they protect less: \
         {silent:#?}"
    );
}

#[test]
fn a_key_without_a_sentence_shows_its_values_and_may_not_change() {
    let (mut found, path) = (FoundChanges::default(), KeyPath::default());
    let table = |number| Canonical::table([("zeal", Canonical::Whole(number))]);
    found.compare(&path.key("protocol"), Some(&table(1)), Some(&table(2)));
    let change = &found.0[0];
    assert_eq!(change.key, "protocol.zeal");
    assert_eq!(change.before.as_deref(), Some("1"));
    assert_eq!(change.after.as_deref(), Some("2"));
    assert_eq!(change.words, None);
    assert!(change.fixed && change.weaker.is_some());
}

#[test]
fn an_agreement_written_anew_is_no_change() {
    let old = agreement(EXAMPLE);
    let same = agreement(&old.to_toml().unwrap());
    let difference = old.difference(&same);
    assert!(difference.is_empty(), "{difference:?}");
    assert!(!difference.weakens());
    let spelled = example(&[
        ("heartbeat = \"5s\"", "heartbeat = \"5000ms\""),
        ("format = 1 ", ""),
        ("discovery = false", ""),
        ("max-model-norm = 1000.0", "max-model-norm = 1_000"),
    ]);
    assert!(old.difference(&spelled).is_empty());
}

/// Key, a text of the example, and two texts in its place: the second protects less than the first.
const PROTECTS_LESS: &[(&str, &str, &str, &str)] = &[
    (
        "protocol.verification",
        "verification = \"full\"",
        "verification = \"full\"",
        "verification = \"committee-3\"",
    ),
    (
        "protocol.verification",
        "verification = \"full\"",
        "verification = \"full\"",
        "verification = \"inclusion\"",
    ),
    (
        "protocol.verification",
        "verification = \"full\"",
        "verification = \"committee-3\"",
        "verification = \"committee-2\"",
    ),
    (
        "protocol.verification",
        "verification = \"full\"",
        "verification = \"committee-2\"",
        "verification = \"inclusion\"",
    ),
    (
        "protocol.names",
        "names = \"removed\"",
        "names = \"removed\"",
        "names = \"shown\"",
    ),
    (
        "protocol.max-model-norm",
        "max-model-norm = 1000.0",
        "max-model-norm = 10",
        "max-model-norm = 11",
    ),
    (
        "protocol.max-model-norm",
        "max-model-norm = 1000.0",
        "max-model-norm = 10",
        "",
    ),
    (
        "protocol.max-model-norm",
        "max-model-norm = 1000.0",
        "max-model-norm = 10",
        "max-model-norm = inf",
    ),
    (
        "protocol.blob-limit",
        "blob-limit = 392",
        "blob-limit = 392",
        "blob-limit = 393",
    ),
    (
        "protocol.min-contributions",
        "min-contributions = 3",
        "min-contributions = 4",
        "min-contributions = 3",
    ),
    (
        "protocol.keep-rounds",
        "keep-rounds = 3",
        "keep-rounds = 3",
        "keep-rounds = 4",
    ),
    (
        "protocol.discovery",
        "discovery = false",
        "",
        "discovery = true",
    ),
    (
        "protocol.status",
        "discovery = false",
        "status = \"own\"",
        "status = \"members\"",
    ),
    (
        "protocol.rotation",
        "rotation = \"every-round\"",
        "rotation = \"every-round\"",
        "rotation = \"every-2-rounds\"",
    ),
    (
        "protocol.rotation",
        "rotation = \"every-round\"",
        "rotation = \"every-2-rounds\"",
        "rotation = \"every-9-rounds\"",
    ),
    (
        "protocol.rotation",
        "rotation = \"every-round\"",
        "rotation = \"every-9-rounds\"",
        "rotation = \"on-failure\"",
    ),
    (
        "protocol.rotation",
        "rotation = \"every-round\"",
        "rotation = \"reliability\"",
        "rotation = \"fixed\"",
    ),
    (
        "strategy.aggregation.name",
        "aggregation = { name = \"mean\" }",
        "aggregation = { name = \"trimmed-mean\", share = 0.2 }",
        "",
    ),
    (
        "strategy.aggregation.share",
        "aggregation = { name = \"mean\" }",
        "aggregation = { name = \"trimmed-mean\", share = 0.2 }",
        "aggregation = { name = \"trimmed-mean\", share = 0.1 }",
    ),
    ("strategy.gap", "freeze = 1", "gap = 0.1", "gap = 0.2"),
];

#[test]
fn every_rule_of_what_protects_less_holds_in_one_direction() {
    for &(key, from, before, after) in PROTECTS_LESS {
        let found = weaker(key, &[(from, before)], &[(from, after)]);
        assert_eq!(found, (true, false), "{key}: {before:?}, {after:?}");
    }
    // Whether these are right, only the institutions know.
    let key = "8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
    let other = SecretKey::from_bytes(&[9; 32]).public().to_string();
    for (path, from, to) in [
        (
            "member.north.addresses",
            "rota.north.example/udp",
            "elsewhere.example/udp",
        ),
        ("member.north.key", key, &*other),
    ] {
        assert_eq!(weaker(path, &[], &[(from, to)]), (true, true), "{path}");
    }
    let renamed = changes(&[], &[("name = \"north\"", "name = \"far north\"")]);
    let keys: Vec<_> = renamed
        .iter()
        .map(|change| (&*change.key, change.weaker.is_some()))
        .collect();
    assert_eq!(keys, [("member.north.name", true)]);
}

#[test]
fn methods_that_count_rows_protect_less_than_equal_weights() {
    let with = |options: &str| {
        let own = ["coalitions = 2", "freeze = 1", "folds = 5"];
        let edits: Vec<_> = own.iter().map(|own| (*own, "")).collect();
        let named = format!("name = \"fedavg\"\n{options}");
        let rule = "aggregation = { name = \"mean\" }";
        let edits = [&edits[..], &[("name = \"cs-rcfl\"", &*named), (rule, "")]].concat();
        example(&edits)
    };
    let weaker = |before: &str, after: &str| {
        let difference = with(before).difference(&with(after));
        assert_eq!(difference.changes.len(), 1, "{difference:?}");
        difference.weakens()
    };
    let krum = |options: &str| format!("weight = \"equal\"\naggregation = {{ name = {options} }}");
    let (one, two) = (
        krum("\"multi-krum\", byzantine = 1, select = 1"),
        krum("\"multi-krum\", byzantine = 1, select = 2"),
    );
    let (near, far) = (
        krum("\"centred-clipping\", radius = 0.1"),
        krum("\"centred-clipping\", radius = 0.2"),
    );
    let (none, some) = (
        krum("\"krum\", byzantine = 0"),
        krum("\"krum\", byzantine = 1"),
    );
    for (before, after) in [
        ("weight = \"equal\"", ""),
        ("weight = \"equal\"", "weight = \"exact\""),
        (&one, &two),
        (&near, &far),
        (&some, &none),
    ] {
        assert!(weaker(before, after), "{before} to {after}");
        assert!(!weaker(after, before), "{after} to {before}");
    }
}

#[test]
fn members_are_matched_by_name_then_by_key() {
    let old = agreement(EXAMPLE);
    let key = SecretKey::from_bytes(&[9; 32]).public();
    let more = agreement(&old.admitting("new one", key, None, Vec::new()).unwrap());
    let difference = old.difference(&more);
    let come = &difference.changes[0];
    assert_eq!(come.key, "member.\"new one\"");
    assert_eq!(come.before, None);
    assert!(come.after.as_ref().unwrap().contains(&key.to_string()));
    assert_eq!(
        (difference.before.members, difference.after.members),
        (4, 5)
    );
    assert!(!difference.weakens(), "{difference:?}");

    let fewer = agreement(&old.without("south").unwrap());
    let difference = old.difference(&fewer);
    let keys: Vec<_> = difference
        .changes
        .iter()
        .map(|change| &*change.key)
        .collect();
    assert_eq!(keys, ["protocol.min-contributions", "member.south"]);
    // It follows from the number of members, and f falls from 1 to 0.
    assert_eq!(difference.changes[0].weaker, None);
    assert!(difference.lowers_protection() && difference.weakens());

    // North and south exchange their places, and nothing else.
    let mut members: Vec<toml::Value> = Vec::new();
    let mut whole: toml::Table = toml::from_str(EXAMPLE).unwrap();
    members.extend(whole["member"].as_array().unwrap().iter().cloned());
    members.swap(0, 1);
    whole.insert("member".into(), members.clone().into());
    let swapped = agreement(&toml::to_string(&whole).unwrap());
    let changes = old.difference(&swapped).changes;
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0].key, "member");
    let before = "[\"north\", \"south\", \"east\", \"west coast\"]";
    assert_eq!(changes[0].before.as_deref(), Some(before));
    assert!(changes[0].weaker.is_some());

    // They exchange their addresses, then their keys.
    members.swap(0, 1);
    for field in ["addresses", "key"] {
        let mut members = members.clone();
        let (first, rest) = members.split_at_mut(1);
        let (first, second) = (
            first[0].as_table_mut().unwrap(),
            rest[0].as_table_mut().unwrap(),
        );
        let (one, other) = (first.remove(field), second.remove(field));
        first.extend(other.map(|value| (field.to_owned(), value)));
        second.extend(one.map(|value| (field.to_owned(), value)));
        whole.insert("member".into(), members.into());
        let exchanged = agreement(&toml::to_string(&whole).unwrap());
        let changes = old.difference(&exchanged).changes;
        let keys: Vec<_> = changes.iter().map(|change| change.key.clone()).collect();
        let expected = ["north", "south"].map(|name| format!("member.{name}.{field}"));
        assert_eq!(keys, expected);
        assert!(changes.iter().all(|change| change.weaker.is_some()));
    }
}

#[test]
fn a_value_with_an_invisible_character_is_shown_as_an_escape() {
    let old = agreement(EXAMPLE);
    let address = "/dns/a\u{202e}b.example/udp/1/quic-v1";
    let to = "/dns/a\\u202Eb.example/udp/1/quic-v1";
    let new = example(&[("/dns/rota.north.example/udp/4001/quic-v1", to)]);
    assert_eq!(new.addresses[0][0], address);
    let change = &old.difference(&new).changes[0];
    let after = change.after.as_ref().unwrap();
    assert!(after.contains("/dns/a\\U0000202Eb.example"), "{after}");
    assert!(change.hidden);
}

/// A leaf of the file as the difference names it.
fn named_as(whole: &toml::Value, path: &[String]) -> String {
    let (mut at, mut key) = (whole, String::new());
    for part in path {
        at = match at {
            toml::Value::Array(list) => {
                let place: usize = part.parse().unwrap();
                match &list[place] {
                    toml::Value::Table(table) if key == "member" => {
                        key = format!("member.{}", bare(table["name"].as_str().unwrap()));
                    }
                    toml::Value::Table(_) => key += &format!("[{}]", place + 1),
                    // A list of plain values is one value.
                    _ => return key,
                }
                &list[place]
            }
            at => {
                key = match &*key {
                    "" => part.clone(),
                    key => format!("{key}.{part}"),
                };
                &at[part.as_str()]
            }
        };
    }
    key
}

fn leaves(at: &toml::Value, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    let inner: Vec<(String, &toml::Value)> = match at {
        toml::Value::Table(table) => table
            .iter()
            .map(|(key, value)| (key.clone(), value))
            .collect(),
        toml::Value::Array(list) => (0..)
            .zip(list)
            .map(|(at, value): (usize, _)| (at.to_string(), value))
            .collect(),
        _ => return found.push(path.clone()),
    };
    for (part, value) in inner {
        path.push(part);
        leaves(value, path, found);
        path.pop();
    }
}

/// The whole file with another value of one leaf.
fn edited(whole: &toml::Value, path: &[String], number: i32, word: &str) -> toml::Value {
    let mut whole = whole.clone();
    let mut place = &mut whole;
    for part in path {
        place = match place {
            toml::Value::Array(list) => &mut list[part.parse::<usize>().unwrap()],
            place => &mut place[part.as_str()],
        };
    }
    *place = match &*place {
        toml::Value::Integer(old) => (old + i64::from(number)).into(),
        toml::Value::Float(old) => (old + f64::from(number) * 0.125).into(),
        toml::Value::Boolean(old) => (!old).into(),
        _ => word.into(),
    };
    whole
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_one_key_is_found_and_named(
        which in any::<prop::sample::Index>(), number in -3i32..1000, word in prop_oneof![
            "[a-z]{1,9}", Just("shown".to_owned()), Just("fixed".to_owned()), Just("inclusion".to_owned()),
            Just("mse".to_owned()), Just("l1".to_owned()), Just("squared".to_owned()), Just("90s".to_owned()),
            Just("int8".to_owned()), Just("own".to_owned()), "[0-9a-f]{64}",
        ],
    ) {
        let (old, whole, all) = full();
        let path = which.get(all);
        let changed = edited(whole, path, number, &word);
        let text = toml::to_string(&changed).unwrap();
        let Ok(new) = Agreement::parse("changed", &text) else {
            return Ok(());
        };
        let difference = old.difference(&new);
        let key = named_as(whole, path);
        prop_assert_eq!(difference.is_empty(), changed == *whole, "{}", key);
        if changed != *whole {
            let found = difference.changes.iter().any(|change| change.key == key);
            prop_assert!(found, "{}: {:?}", key, difference);
            let words = difference.changes.iter().all(|change| change.words.is_some());
            prop_assert!(words, "{:?}", difference);
        }
    }
}

/// The example with more of the keys that may be left out, as an agreement and as a tree, and the paths
/// of its leaves.
fn full() -> &'static (Agreement, toml::Value, Vec<Vec<String>>) {
    static FULL: OnceLock<(Agreement, toml::Value, Vec<Vec<String>>)> = OnceLock::new();
    FULL.get_or_init(|| {
        let old = example(&[
            (
                "freeze = 1",
                "freeze = 1\ngap = 0.125\nencoding = \"bf16\"\nstop = { patience = 3, min-delta = 0.5 }",
            ),
            (
                "aggregation = { name = \"mean\" }",
                "aggregation = { name = \"trimmed-mean\", share = 0.25 }",
            ),
            (
                "rate = 0.02 }",
                "rate = 0.02, momentum = 0.5 }, decay = { step = { every = 2, factor = 0.5 } }",
            ),
            (
                "discovery = false",
                "discovery = true\nstatus = \"members\"",
            ),
        ]);
        let whole = toml::from_str(&old.to_toml().unwrap()).unwrap();
        let mut found = Vec::new();
        leaves(&whole, &mut Vec::new(), &mut found);
        assert!(found.len() > 60, "{found:?}");
        (old, whole, found)
    })
}
