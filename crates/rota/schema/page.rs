//! The reference page: every key of the schemas as Markdown tables.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use serde_json::{Map, Value};

const HEAD: &str = "\
<!-- Made from the JSON Schemas by `ROTA_GOLDEN=write cargo test --test book -- reference::`. -->

# Every key

The keys of the three TOML files that Rota reads. Tables that several files share are listed once. \
`rota schema scenario`, `rota schema federation` and `rota schema silo` print the same as JSON \
Schemas, with which editors complete and check the files: a file whose first line is \
`#:schema ./scenario.schema.json` is checked against the schema in that file by Taplo and the \
editors that use it.

Lists of tables are written `[[key]]`. A span of time is a number with a unit, such as `\"5s\"`, \
`\"40ms\"` or `\"1h 30m\"`. A key without a default may be left out, unless it says *required*.
";

/// The page for these files, by title and schema.
pub(super) fn reference(documents: &[(&str, Value)]) -> String {
    let mut page = ReferencePage {
        text: HEAD.to_owned(),
        ..ReferencePage::default()
    };
    for (title, schema) in documents {
        page.document(title, schema);
    }
    page.text
}

#[derive(Default)]
struct ReferencePage {
    text: String,
    /// Anchors of the sections, by the definition of their table.
    known: BTreeMap<String, String>,
    /// Definitions that are being described. One that contains itself is not described again.
    open: Vec<String>,
}

/// A table that still needs its section.
struct Section {
    path: String,
    anchor: String,
    heading: String,
    schema: Value,
}

/// One file: its definitions, and the sections to come.
struct File<'a> {
    title: &'a str,
    root: &'a Value,
    sections: VecDeque<Section>,
}

impl ReferencePage {
    fn document(&mut self, title: &str, schema: &Value) {
        let heading = match title {
            "scenario" => "Scenario".to_owned(),
            title => format!("`{title}`"),
        };
        let _ = write!(self.text, "\n## {heading}\n\n{}\n", description(schema));
        let mut file = File {
            title,
            root: schema,
            sections: VecDeque::new(),
        };
        self.keys(&mut file, "", schema, &[]);
        while let Some(section) = file.sections.pop_front() {
            let _ = write!(self.text, "\n### {}\n", section.heading);
            self.section(&mut file, &section);
        }
    }

    /// A table's section: its keys, or every alternative that it may be.
    fn section(&mut self, file: &mut File<'_>, section: &Section) {
        let about = description(&section.schema);
        if !about.is_empty() {
            let _ = write!(self.text, "\n{about}\n");
        }
        let alternatives = alternatives(&section.schema);
        let named: Vec<_> = alternatives
            .iter()
            .filter_map(|schema| Some((tag(schema)?, schema)))
            .collect();
        if named.is_empty() {
            return self.keys(file, &section.path, &section.schema, &[]);
        }
        let names: Vec<_> = named.iter().map(|(name, _)| format!("`{name}`")).collect();
        let _ = write!(
            self.text,
            "\n`name` is one of {}. The other keys depend on it.\n",
            names.join(", ")
        );
        // Keys that all alternatives have alike are listed once.
        let first = named[0].1;
        let common: Vec<String> = properties(first)
            .filter(|(key, value)| {
                let alike = |(_, other): &(String, &Value)| other["properties"][key] == **value;
                *key != "name" && named.len() > 1 && named.iter().all(alike)
            })
            .map(|(key, _)| key.clone())
            .collect();
        if !common.is_empty() {
            let mut shared = first.clone();
            if let Some(keys) = shared["properties"].as_object_mut() {
                keys.retain(|key, _| common.contains(key));
            }
            let _ = write!(self.text, "\nWith every name:\n");
            self.keys(file, &section.path, &shared, &[]);
        }
        let mut hidden: Vec<&str> = common.iter().map(String::as_str).collect();
        hidden.push("name");
        for (name, schema) in named {
            let about = description(schema);
            let _ = write!(self.text, "\n**`name = \"{name}\"`**");
            if !about.is_empty() {
                let _ = write!(self.text, " {about}");
            }
            self.text.push('\n');
            if properties(schema).any(|(key, _)| !hidden.contains(&key.as_str())) {
                self.keys(file, &section.path, schema, &hidden);
            }
        }
    }

    /// A Markdown table of the keys of a table, required ones first.
    fn keys(&mut self, file: &mut File<'_>, path: &str, schema: &Value, hidden: &[&str]) {
        self.text.push_str(
            "\n| key | type | unit | default | range | meaning |\n|---|---|---|---|---|---|\n",
        );
        let required = |key: &str| {
            let keys = schema["required"].as_array();
            keys.is_some_and(|keys| keys.iter().any(|name| name == key))
        };
        let mut keys: Vec<_> = properties(schema)
            .filter(|(key, _)| !hidden.contains(&key.as_str()))
            .collect();
        keys.sort_by_key(|(key, _)| (!required(key), (*key).clone()));
        for (key, value) in keys {
            let inner = match path {
                "" => key.clone(),
                path => format!("{path}.{key}"),
            };
            let kind = self.kind(file, &inner, value);
            let default = match (&value["default"], required(key)) {
                (Value::Null, true) => "*required*".to_owned(),
                (Value::Null, false) => String::new(),
                (value, _) => format!("`{}`", toml(value)),
            };
            let (resolved, _) = resolve(file.root, value);
            let unit = value["x-unit"].as_str().unwrap_or_default();
            let range = range(&resolved);
            let about = meaning(file.root, value);
            let cells = [&format!("`{key}`"), &kind, unit, &default, &range, &about];
            let cells = cells.map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(self.text, "| {} |", cells.join(" | "));
        }
    }

    /// The type of a value in words; tables get a section of their own, to which it links.
    fn kind(&mut self, file: &mut File<'_>, path: &str, schema: &Value) -> String {
        if let Some(words) = schema["x-type"].as_str() {
            return words.to_owned();
        }
        let (schema, name) = resolve(file.root, schema);
        if let Some(words) = schema["x-type"].as_str() {
            return words.to_owned();
        }
        if let Some(only) = schema.get("const") {
            return format!("`{}`", toml(only));
        }
        if name.as_ref().is_some_and(|name| self.open.contains(name)) {
            return "the same, nested".into();
        }
        let depth = self.open.len();
        self.open.extend(name.clone());
        let words = self.composed(file, path, &schema, name);
        self.open.truncate(depth);
        words
    }

    /// The type of a value that is neither a reference nor a constant.
    fn composed(
        &mut self,
        file: &mut File<'_>,
        path: &str,
        schema: &Value,
        name: Option<String>,
    ) -> String {
        let choices = alternatives(schema);
        if choices.iter().any(|choice| tag(choice).is_some()) {
            return self.link(file, path, schema, name);
        }
        if !choices.is_empty() {
            let mut words: Vec<String> = Vec::new();
            for choice in choices {
                let word = match sole_key(choice) {
                    Some((key, inner)) => {
                        let kind = self.kind(file, &format!("{path}.{key}"), inner);
                        format!("`{{ {key} = … }}` with {kind}")
                    }
                    None => self.kind(file, path, choice),
                };
                if !words.contains(&word) {
                    words.push(word);
                }
            }
            return words.join(" or ");
        }
        match schema["type"].as_str() {
            Some("object") if schema["properties"].is_object() => {
                self.link(file, path, schema, name)
            }
            Some("object") => {
                let inner = self.kind(file, path, &schema["additionalProperties"]);
                format!("table with any keys, each: {inner}")
            }
            Some("array") => {
                let inner = self.kind(file, path, &schema["items"]);
                match (schema["minItems"].as_u64(), schema["maxItems"].as_u64()) {
                    (Some(least), Some(most)) if least == most => format!("{most} × {inner}"),
                    _ => format!("list of {inner}"),
                }
            }
            Some("integer") => "whole number".into(),
            Some("number") => "number".into(),
            Some("boolean") => "`true` or `false`".into(),
            Some("string") if schema["maxLength"] == 1 => "one character".into(),
            Some("string") => match schema["enum"].as_array() {
                Some(values) => {
                    let values = values.iter().map(|value| format!("`{}`", toml(value)));
                    values.collect::<Vec<_>>().join(" or ")
                }
                None => "text".into(),
            },
            _ => "any value".into(),
        }
    }

    /// A link to the section of a table, which is added where there is none yet.
    fn link(
        &mut self,
        file: &mut File<'_>,
        path: &str,
        schema: &Value,
        name: Option<String>,
    ) -> String {
        let known = name.map(|name| format!("{name} {schema}"));
        if let Some(anchor) = known.as_ref().and_then(|known| self.known.get(known)) {
            return format!("[table](#{anchor})");
        }
        let heading = format!(
            "`{path}` of {}",
            match file.title {
                "scenario" => "a scenario".to_owned(),
                title => format!("`{title}`"),
            }
        );
        let anchor = slug(&heading);
        if let Some(known) = known {
            self.known.insert(known, anchor.clone());
        }
        let there = file.sections.iter().any(|section| section.anchor == anchor);
        let (anchor, heading) = if there {
            // Another table at the same path: the alternatives of a key.

            let same = |section: &&Section| section.anchor.starts_with(&anchor);
            let nth = file.sections.iter().filter(same).count() + 1;
            (
                format!("{anchor}-form-{nth}"),
                format!("{heading}, form {nth}"),
            )
        } else {
            (anchor, heading)
        };
        let link = format!("[table](#{})", slug(&heading));
        file.sections.push_back(Section {
            path: path.to_owned(),
            anchor,
            heading,
            schema: schema.clone(),
        });
        link
    }
}

/// The schema that a reference leads to, and the name of its definition.
fn resolve(root: &Value, schema: &Value) -> (Value, Option<String>) {
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

fn description(schema: &Value) -> &str {
    schema["description"].as_str().unwrap_or_default()
}

/// The description of a key, followed by those of its alternatives.
fn meaning(root: &Value, schema: &Value) -> String {
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

fn alternatives(schema: &Value) -> &[Value] {
    let either = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    either.map_or(&[], Vec::as_slice)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// The value of the key `name` in an alternative, if it is fixed.
fn tag(schema: &Value) -> Option<String> {
    let name = schema["properties"]["name"]["const"].as_str();
    name.map(str::to_owned)
}

/// The key of a table that has exactly one, which is required.
fn sole_key(schema: &Value) -> Option<(&String, &Value)> {
    let mut keys = properties(schema);
    let only = keys.next().filter(|_| keys.next().is_none());
    only.filter(|_| schema["required"].is_array())
}

/// The bounds of a value.
fn range(schema: &Value) -> String {
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
fn toml(value: &Value) -> String {
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
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' => Some('-'),
        c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
        _ => None,
    });
    kept.collect()
}
