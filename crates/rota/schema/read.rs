//! Reader of a JSON Schema for the pages of the reference.

use serde_json::{Map, Value};

/// The schema that a reference leads to, and the name of its definition.
pub(super) fn resolve(root: &Value, schema: &Value) -> (Value, Option<String>) {
    let mut name = None;
    let mut found = schema;
    loop {
        let one = found["allOf"].as_array().filter(|all| all.len() == 1);
        let next = match (found["$ref"].as_str(), one) {
            (Some(path), _) => {
                name = path.rsplit('/').next().map(str::to_owned);
                path.strip_prefix('#').and_then(|path| root.pointer(path))
            }
            (None, Some(all)) => all.first(),
            (None, None) => None,
        };
        match next {
            Some(next) => found = next,
            None => return (found.clone(), name),
        }
    }
}

pub(super) fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The description of a key, followed by those of its alternatives.
pub(super) fn meaning(root: &Value, schema: &Value) -> String {
    let (resolved, _) = resolve(root, schema);
    let about = match description(schema) {
        "" => description(&resolved),
        about => about,
    };
    let written = |choice: &Value| match (choice["const"].is_string(), sole_key(choice)) {
        (true, _) => Some(format!("`{}`", toml(&choice["const"]))),
        (false, Some((key, _))) => Some(format!("`{{ {key} = … }}`")),
        (false, None) => None,
    };
    let words: Vec<_> = alternatives(&resolved)
        .iter()
        .filter(|choice| !description(choice).is_empty())
        .filter_map(|choice| Some(format!("{}: {}", written(choice)?, description(choice))))
        .collect();
    if words.is_empty() {
        about.to_owned()
    } else {
        format!("{about} {}", words.join(" "))
    }
}

pub(super) fn alternatives(schema: &Value) -> &[Value] {
    let either = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    either.map_or(&[], Vec::as_slice)
}

pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The value of the key `name` in an alternative, if it is fixed.
pub(super) fn tag(schema: &Value) -> Option<String> {
    let name = schema["properties"]["name"]["const"].as_str();
    name.map(str::to_owned)
}

/// The key of a table that has exactly one, which is required.
pub(super) fn sole_key(schema: &Value) -> Option<(&String, &Value)> {
    let mut keys = properties(schema);
    let only = keys.next().filter(|_| keys.next().is_none());
    only.filter(|_| schema["required"].is_array())
}

/// The bounds of a value.
pub(super) fn range(schema: &Value) -> String {
    let number = |key: &str| schema.get(key).map(toml);
    let mut parts = Vec::new();
    match (number("minimum"), number("maximum")) {
        (Some(least), Some(most)) => parts.push(format!("{least} to {most}")),
        (Some(least), None) => parts.push(format!("at least {least}")),
        (None, Some(most)) => parts.push(format!("at most {most}")),
        (None, None) => {}
    }
    parts.extend(number("exclusiveMinimum").map(|least| format!("above {least}")));
    parts.extend(number("exclusiveMaximum").map(|most| format!("below {most}")));
    parts.join(", ")
}

/// A value as TOML writes it in one line.
pub(super) fn toml(value: &Value) -> String {
    let table = |table: &Map<String, Value>| {
        let pairs = table
            .iter()
            .map(|(key, value)| format!("{key} = {}", toml(value)));
        pairs.collect::<Vec<_>>().join(", ")
    };
    match value {
        Value::Array(items) => {
            format!(
                "[{}]",
                items.iter().map(toml).collect::<Vec<_>>().join(", ")
            )
        }
        Value::Object(keys) if keys.is_empty() => "{}".into(),
        Value::Object(keys) => format!("{{ {} }}", table(keys)),
        value => value.to_string(),
    }
}

/// The anchor of a heading, as mdBook and GitHub make it.
pub(super) fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}
