//! The id of a federation: pinned for the example, equal for files with equal meaning, and different
//! for every change of meaning.

use std::fs;
use std::path::Path;

use agreement::Agreement;
use protocol::parameters::Genesis;
use toml::Value;

const EXAMPLE: &str = include_str!("../../../examples/federation.toml");

fn agreement(text: &str) -> Agreement {
    Agreement::parse("federation.toml", text).expect("the agreement is right")
}

fn id(text: &str) -> String {
    format!("{:#}", agreement(text).epoch.federation)
}

fn error(text: &str) -> String {
    let error = Agreement::parse("f.toml", text).err();
    error.expect("the agreement is wrong").to_string()
}

/// The bytes as hexadecimal digits, 32 bytes a line.
fn lines(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| data_encoding::HEXLOWER.encode(bytes) + "\n";
    bytes.chunks(32).map(line).collect()
}

#[test]
fn the_id_of_the_example_and_the_bytes_that_it_hashes_equal_the_golden_file() {
    let epoch = agreement(EXAMPLE).epoch;
    let genesis = Genesis {
        silos: epoch.roster.silos().to_vec(),
        protocol: epoch.protocol.clone(),
    };
    let now = format!(
        "{:#}\n{}",
        epoch.federation,
        lines(&genesis.encode(epoch.format))
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/federation-id.hex");
    if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
        return fs::write(file, now).expect("a file of this repository can be written");
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        kept == now,
        "the id of examples/federation.toml, or the bytes that it is the hash of, differ from those \
         of {}. Every federation gets another id by that. If it is meant, raise \
         `protocol::parameters::FORMAT`, run the test again with ROTA_GOLDEN=write, which writes the \
         file anew, and say so in the changelog.",
        file.display()
    );
}

#[test]
fn the_same_meaning_written_differently_has_the_same_id() {
    let value: Value = toml::from_str(EXAMPLE).expect("the example is TOML");
    // No comments, all keys sorted, no inline tables.
    let sorted = toml::to_string(&value).expect("it was TOML");
    assert_ne!(sorted, EXAMPLE);
    assert_eq!(id(&sorted), id(EXAMPLE));
    let ours = agreement(EXAMPLE).to_toml().expect("it can be written");
    assert_eq!(id(&ours), id(EXAMPLE));
    for (one, other) in [
        ("heartbeat = \"5s\"", "heartbeat = \"5000ms\""),
        ("format = 1 ", ""),
        ("discovery = false", ""),
        ("rotation = \"every-round\"", ""),
        ("personal = []", ""),
        ("max-model-norm = 1000.0", "max-model-norm = 1_000"),
        ("freeze = 1", ""),
        ("discovery = false", "discovery = false\nstatus = \"own\""),
    ] {
        let line = EXAMPLE.lines().find(|line| line.starts_with(one));
        let line = line.unwrap_or_else(|| panic!("the example has no line {one}"));
        assert_eq!(id(&EXAMPLE.replacen(line, other, 1)), id(EXAMPLE), "{one}");
    }
}

/// Other values for a leaf of the file. Some may be invalid there.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(number) => vec![(number + 1).into(), (number - 1).into()],
        Value::Float(number) => vec![(number * 0.5 + 0.0137).into()],
        Value::Boolean(truth) => vec![(!truth).into()],
        Value::String(text) => {
            let changed = match text.strip_prefix(|c: char| c.is_ascii_digit()) {
                Some(rest) => format!("1{rest}"),
                None => format!("{text}x"),
            };
            let words = [
                "l1",
                "mse",
                "shown",
                "squared",
                "member",
                "drop",
                "coordinate-median",
            ];
            let keys = [text.replacen('a', "b", 1), changed];
            words
                .into_iter()
                .map(String::from)
                .chain(keys)
                .map(Value::String)
                .collect()
        }
        _ => Vec::new(),
    }
}

/// Calls `seen` with a copy of the whole file for every other value of every leaf.
fn change(whole: &Value, path: &mut Vec<String>, seen: &mut dyn FnMut(&str, &Value)) {
    let mut at = whole;
    for part in path.iter() {
        at = match at {
            Value::Array(items) => &items[part.parse::<usize>().expect("a position")],
            at => &at[part.as_str()],
        };
    }
    let inner: Vec<String> = match at {
        Value::Table(table) => table.keys().cloned().collect(),
        Value::Array(items) => (0..items.len()).map(|at| at.to_string()).collect(),
        _ => Vec::new(),
    };
    for part in inner {
        path.push(part);
        change(whole, path, seen);
        path.pop();
    }
    for other in others(at).into_iter().filter(|other| other != at) {
        let mut changed = whole.clone();
        let mut place = &mut changed;
        for part in path.iter() {
            place = match place {
                Value::Array(items) => &mut items[part.parse::<usize>().expect("a position")],
                place => &mut place[part.as_str()],
            };
        }
        *place = other;
        seen(&path.join("."), &changed);
    }
}

#[test]
fn every_change_of_meaning_has_another_id() {
    let whole: Value = toml::from_str(EXAMPLE).expect("the example is TOML");
    let own = id(EXAMPLE);
    let mut changed = std::collections::BTreeSet::new();
    change(&whole, &mut Vec::new(), &mut |path, other| {
        let text = toml::to_string(other).expect("it was TOML");
        if let Ok(read) = Agreement::parse("changed", &text) {
            let other = format!("{:#}", read.epoch.federation);
            // Where a member is reached may change.
            if path.contains(".addresses.") {
                assert_eq!(other, own, "{path}")
            } else {
                assert_ne!(other, own, "{path}")
            }
            changed.insert(path.to_owned());
        }
    });
    for path in [
        "name",
        "seed",
        "start",
        "rounds",
        "protocol.heartbeat",
        "protocol.max-model-norm",
        "protocol.names",
        "protocol.keep-rounds",
        "protocol.discovery",
        "task.table.split.test",
        "task.table.metric",
        "task.table.domains.0",
        "task.table.schema.target.unit",
        "strategy.coalitions",
        "strategy.training.optimiser.rate",
        "member.0.name",
        "member.0.addresses.0",
    ] {
        assert!(
            changed.contains(path),
            "no other value was tried at {path}: {changed:?}"
        );
    }
}

#[test]
fn declared_rows_and_the_largest_weight_are_part_of_the_id_and_written_as_they_were_read() {
    let declared = EXAMPLE.replacen("[[member]]\n", "[[member]]\nrows = 120\n", 1);
    let norm = "max-model-norm = 1000.0";
    let bounded = EXAMPLE.replacen(norm, &format!("{norm}\nmax-weight = 0.4"), 1);
    let other = declared.replacen("rows = 120", "rows = 121", 1);
    let all = [EXAMPLE, &declared, &other, &bounded].map(id);
    let different: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len());
    let shown = EXAMPLE.replacen("discovery = false", "status = \"members\"", 1);
    assert_ne!(id(&shown), id(EXAMPLE));
    assert_eq!(agreement(&shown).status, agreement::StatusFor::Members);
    for text in [&declared, &bounded, &shown] {
        let read = agreement(text);
        let written = read.to_toml().expect("it can be written");
        assert_eq!(id(&written), id(text));
        assert_eq!(agreement(&written).max_weight, read.max_weight);
    }
    assert_eq!(agreement(&declared).epoch.roster.silos()[0].rows, Some(120));
    assert_eq!(agreement(&bounded).max_weight, Some(0.4));
}

#[test]
fn a_newer_format_is_refused_before_anything_else_is_read() {
    let newer = EXAMPLE.replacen("format = 1", "format = 4", 1);
    let newer = newer.replacen("straggler-timeout = 12", "zeal = 12", 1);
    let line = 1 + newer
        .lines()
        .position(|line| line.starts_with("format"))
        .expect("it is there");
    assert_eq!(
        error(&newer),
        format!(
            "f.toml, line {line}: `format` is 4, but this program reads formats up to 3: use a \
             newer version of Rota"
        )
    );
    let none = EXAMPLE.replacen("format = 1", "format = 0", 1);
    assert!(error(&none).contains("`format` is 0, it must be between 1 and 3"));
}

#[test]
fn errors_name_the_key_and_what_is_allowed() {
    let wrong = |right: &str, wrong: &str| {
        assert!(EXAMPLE.contains(right), "{right}");
        error(&EXAMPLE.replacen(right, wrong, 1))
    };
    assert!(
        wrong("heartbeat = \"5s\"", "heartbeat = \"10500us\"")
            .contains("`heartbeat` must be whole")
    );
    assert!(
        wrong("max-model-norm = 1000.0", "max-model-norm = 0")
            .contains("`max-model-norm` must be above 0")
    );
    let norm = "max-model-norm = 1000.0";
    for share in ["0.0", "1.5", "nan"] {
        let said = wrong(norm, &format!("max-weight = {share}"));
        let expected = "`max-weight` must be above 0 and at most 1";
        assert!(said.contains(expected), "{said}");
    }
    for rows in ["0", "9007199254740993"] {
        let said = wrong("[[member]]\n", &format!("[[member]]\nrows = {rows}\n"));
        let expected =
            format!("member 1 declares {rows} training rows, they must be between 1 and");
        assert!(said.contains(&expected) && said.contains("line "), "{said}");
    }
    assert!(wrong("start = \"", "start = \"g").contains("`start` must be 64 hexadecimal"));
    let coalitions = wrong("coalitions = 2", "coalitions = 9");
    assert!(
        coalitions.contains("`coalitions` is wrong: cannot form 9 coalitions of 4 members"),
        "{coalitions}"
    );
    let rate = wrong("rate = 0.02", "rate = -1.0");
    assert!(rate.contains("`training.optimiser.rate` must be"), "{rate}");
}
