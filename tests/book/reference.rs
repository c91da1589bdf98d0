//! The schemas of the TOML files, the pages of the reference, and the complete examples.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use rota::agreement::Agreement;
use rota::node::institution::Institution;
use rota::protocol::SecretKey;
use rota::schema::{SchemaDocument, reference};
use rota::simulations::Scenario;
use rota::simulations::scenario::BUILT_IN;
use serde_json::Value;

fn root() -> PathBuf {
    env!("CARGO_MANIFEST_DIR").into()
}

fn example(name: &str) -> String {
    fs::read_to_string(root().join("examples").join(name))
        .expect("the example is in the repository")
}

/// The TOML text as JSON.
fn parsed(text: &str) -> Value {
    let value: toml::Value = toml::from_str(text).expect("the text is TOML");
    serde_json::to_value(value).expect("these files have no dates and no NaN")
}

/// The first violation of a schema by a value, with its path. Supports the keywords that the
/// project's schemas use, and no others.
fn fault(root: &Value, schema: &Value, value: &Value, path: &str) -> Option<String> {
    if let Some(target) = schema["$ref"].as_str() {
        let pointer = target
            .strip_prefix('#')
            .expect("a reference into the same schema");
        let target = root.pointer(pointer).expect("a definition that exists");
        return fault(root, target, value, path);
    }
    let wrong = |what: String| Some(format!("{path}: {what}"));
    let all = schema["allOf"].as_array().into_iter().flatten();
    if let Some(first) = all
        .filter_map(|inner| fault(root, inner, value, path))
        .next()
    {
        return Some(first);
    }
    for key in ["anyOf", "oneOf"] {
        let Some(any) = schema[key].as_array() else {
            continue;
        };
        let faults: Vec<_> = any
            .iter()
            .map(|inner| fault(root, inner, value, path))
            .collect();
        let fitting = faults.iter().filter(|fault| fault.is_none()).count();
        if fitting == 0 || (key == "oneOf" && fitting > 1) {
            return wrong(format!("fits {fitting} alternatives: {faults:?}"));
        }
    }
    if let Some(only) = schema.get("const")
        && only != value
    {
        return wrong(format!("is {value}, not {only}"));
    }
    if let Some(any) = schema["enum"].as_array()
        && !any.contains(value)
    {
        return wrong(format!("is {value}, not one of {any:?}"));
    }
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        _ => true,
    };
    if !fits {
        return wrong(format!("is {value}, not of type {}", schema["type"]));
    }
    if let Some(number) = value.as_f64() {
        let bound = |key: &str| schema[key].as_f64();
        let outside = bound("minimum").is_some_and(|least| number < least)
            || bound("maximum").is_some_and(|most| number > most)
            || bound("exclusiveMinimum").is_some_and(|least| number <= least)
            || bound("exclusiveMaximum").is_some_and(|most| number >= most);
        if outside {
            return wrong(format!("{number} is out of range"));
        }
    }
    if let Some(items) = value.as_array() {
        let len = items.len() as u64;
        if schema["minItems"].as_u64().is_some_and(|least| len < least)
            || schema["maxItems"].as_u64().is_some_and(|most| len > most)
        {
            return wrong(format!("has {len} items"));
        }
        let inner = &schema["items"];
        let mut faults = items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| fault(root, inner, item, &format!("{path}.{at}")));
        return faults.next();
    }
    let table = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten();
    for key in required.filter_map(Value::as_str) {
        if !table.contains_key(key) {
            return wrong(format!("`{key}` is missing"));
        }
    }
    for (key, value) in table {
        let known = schema["properties"].get(key);
        let inner = match (known, &schema["additionalProperties"]) {
            (Some(inner), _) => inner,
            (None, Value::Bool(false)) => return wrong(format!("`{key}` is no key of the schema")),
            (None, other) => other,
        };
        if let Some(first) = fault(root, inner, value, &format!("{path}.{key}")) {
            return Some(first);
        }
    }
    None
}

fn check(document: SchemaDocument, name: &str, text: &str) {
    let schema = document.schema();
    let found = fault(&schema, &schema, &parsed(text), name);
    assert_eq!(
        found, None,
        "the schema refuses {name}, which the program reads"
    );
}

/// Returns whether the schema refuses the text, as the program does.
fn refuses(document: SchemaDocument, text: &str) -> bool {
    let schema = document.schema();
    fault(&schema, &schema, &parsed(text), "changed").is_some()
}

#[test]
fn the_schemas_accept_every_built_in_scenario_and_example() {
    for (name, text) in BUILT_IN {
        check(SchemaDocument::Scenario, name, text);
    }
    check(
        SchemaDocument::Scenario,
        "scenario.toml",
        &example("scenario.toml"),
    );
    let own = example("own-data/scenario.toml");
    check(SchemaDocument::Scenario, "own-data/scenario.toml", &own);
    check(
        SchemaDocument::Federation,
        "federation.toml",
        &example("federation.toml"),
    );
    check(SchemaDocument::Silo, "node.toml", &example("node.toml"));
}

#[test]
fn the_schema_accepts_every_strategy_with_its_defaults() {
    let schema = SchemaDocument::Scenario.schema();
    let scenario = Scenario::load("diabetes").expect("it is built in");
    for strategy in rota::methods::strategy::STRATEGIES {
        let switched = scenario
            .strategy
            .switch(strategy.name)
            .expect("it is listed");
        let mut written = serde_json::to_value(&switched).expect("options are plain values");
        remove_nulls(&mut written);
        let found = fault(
            &schema,
            &schema["properties"]["strategy"],
            &written,
            strategy.name,
        );
        assert_eq!(found, None, "{written}");
    }
}

/// TOML has no null: an option that is not set is left out.
fn remove_nulls(value: &mut Value) {
    if let Value::Object(table) = value {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(remove_nulls);
    }
}

#[test]
fn the_schemas_refuse_unknown_keys_wrong_types_and_values_out_of_range() {
    let scenario = example("scenario.toml");
    for (right, wrong) in [
        ("rounds = 4", "round = 4"),
        ("rounds = 4", "rounds = \"four\""),
        ("rounds = 4", "rounds = 0"),
        ("format = 1", "format = 2"),
        ("batch = 8", "batches = 8"),
        ("epochs = ", "epochs = 0 # "),
        ("momentum = 0.0", "momentum = 1.0"),
        ("name = \"cs-rcfl\"", "name = \"magic\""),
        ("phase = \"collecting\"", "phase = \"resting\""),
        (
            "name = \"cs-rcfl\"",
            "name = \"cs-rcfl\"\nstandardise = true",
        ),
        (
            "name = \"cs-rcfl\"",
            "name = \"cs-rcfl\"\nstandardise = false",
        ),
    ] {
        assert!(scenario.contains(right), "{right}");
        let changed = scenario.replacen(right, wrong, 1);
        assert!(refuses(SchemaDocument::Scenario, &changed), "{wrong}");
        assert!(Scenario::parse("changed", &changed).is_err(), "{wrong}");
    }
    let federation = example("federation.toml").replacen("keep-rounds = 3", "kept-rounds = 3", 1);
    assert!(refuses(SchemaDocument::Federation, &federation));
    let silo = example("node.toml").replacen("state = ", "folder = ", 1);
    assert!(refuses(SchemaDocument::Silo, &silo));
}

/// Every key at the top of a file and in its own tables, from its schema.
fn keys(document: SchemaDocument) -> Vec<String> {
    let schema = document.schema();
    let empty = serde_json::Map::new();
    let of = |schema: &Value| -> Vec<(String, Value)> {
        let keys = schema["properties"].as_object().unwrap_or(&empty);
        keys.iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let mut all = Vec::new();
    for (key, value) in of(&schema) {
        all.push(key);
        let mut inner = &value;
        loop {
            let one = inner["allOf"].as_array().and_then(|all| all.first());
            let target = inner["$ref"]
                .as_str()
                .and_then(|path| path.strip_prefix('#'));
            match (target, one, inner.get("items")) {
                (Some(pointer), _, _) => inner = schema.pointer(pointer).expect("a definition"),
                (None, Some(one), _) => inner = one,
                (None, None, Some(items)) => inner = items,
                (None, None, None) => break,
            }
        }
        all.extend(of(inner).into_iter().map(|(key, _)| key));
    }
    all
}

#[test]
fn the_examples_have_every_key() {
    for (document, name) in [
        (SchemaDocument::Scenario, "scenario.toml"),
        (SchemaDocument::Federation, "federation.toml"),
        (SchemaDocument::Silo, "node.toml"),
    ] {
        let text = example(name);
        let keys = keys(document);
        assert!(keys.len() > 12, "{keys:?}");
        for key in keys {
            let here = |line: &str| {
                let line = line.trim_start_matches("# ");
                let mut names = line.split(['[', '.', ']']);
                let heads = line.starts_with('[') && names.any(|name| name == key);
                line.starts_with(&format!("{key} =")) || heads
            };
            assert!(
                text.lines().any(here),
                "examples/{name} does not show the key `{key}`"
            );
        }
    }
}

#[test]
fn the_example_scenario_is_read() {
    let scenario = Scenario::parse("scenario.toml", &example("scenario.toml"));
    let scenario = scenario.expect("the example is right");
    assert_eq!(scenario.faults.len(), 3);
    assert_eq!(scenario.outside, ["west coast"]);
}

#[test]
fn the_node_examples_are_read_and_give_the_agreed_initial_model() {
    let agreement = Agreement::parse("federation.toml", &example("federation.toml"));
    let agreement = agreement.expect("the example is right");
    let folder = tempfile::tempdir().expect("a folder for a test");
    let here = |name: &str| folder.path().join(name);
    for name in ["node.toml", "federation.toml"] {
        fs::write(here(name), example(name)).expect("a file in a new folder");
    }
    fs::create_dir(here("own-data")).expect("a folder in a new folder");
    fs::write(here("own-data/north.csv"), example("own-data/north.csv")).expect("a new file");
    let key = SecretKey::from_bytes(&[1; 32]);
    rota::node::identity::write(&here("identity.key"), &key).expect("a key in a new folder");
    let institution = Institution::load(&here("node.toml")).expect("the example is right");
    assert_eq!(institution.me.0, 0);
    assert_eq!(
        institution.agreement.epoch.federation,
        agreement.epoch.federation
    );
    let learner = institution
        .equipment(None)
        .expect("the rows fit the task")
        .equipped;
    let (start, _) = rota::silo::genesis_outcome(&*agreement.strategy, &*learner, agreement.seed);
    assert_eq!(
        start, agreement.epoch.protocol.start,
        "`start` in the example must be {start:#}"
    );
}

/// Compares a text with a file of the repository, or writes it with `ROTA_GOLDEN=write`.
fn golden(file: &Path, text: &str) {
    if std::env::var("ROTA_GOLDEN").is_ok_and(|value| value == "write") {
        return fs::write(file, text).expect("a file of this repository can be written");
    }
    let kept = fs::read_to_string(file).unwrap_or_default();
    let differing = kept
        .lines()
        .zip(text.lines())
        .find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "{} differs from the types, first at {differing:?}. If the types are right, run the \
         test again with ROTA_GOLDEN=write and commit the file.",
        file.display()
    );
}

#[test]
fn the_pages_of_the_reference_match_the_types() {
    let pages = reference();
    assert!(pages.len() > SchemaDocument::ALL.len());
    let docs = root().join("docs");
    for (name, text) in &pages {
        golden(&docs.join(name), text);
    }
    let folder = fs::read_dir(docs.join("reference")).expect("the folder of the pages");
    for file in folder {
        let name = file.expect("a readable folder").file_name();
        let name = format!("reference/{}", name.to_string_lossy());
        assert!(
            pages.iter().any(|(page, _)| *page == name),
            "docs/{name} is made from no type: delete it"
        );
    }
}

/// That they lead to a heading is checked for all pages of the book; here, that it is the only one.
#[test]
fn every_heading_of_the_reference_has_an_anchor_of_its_own() {
    let slug = |heading: &str| -> String {
        let lower = heading.trim_start_matches(['#', ' ']).to_lowercase();
        let kept = lower
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    for (name, text) in reference() {
        let mut anchors = BTreeSet::new();
        for heading in text.lines().filter(|line| line.starts_with('#')) {
            assert!(anchors.insert(slug(heading)), "docs/{name}: {heading}");
        }
    }
}
