//! The pages of the reference: every key of the schemas as Markdown tables.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use serde_json::Value;

use super::read::{
    alternatives, description, meaning, properties, range, resolve, slug, sole_key, tag, toml,
};

const MADE: &str = "<!-- Made from the JSON Schemas by `ROTA_GOLDEN=write cargo test --test book -- reference::`. -->\n";

const HEAD: &str = "
# Every key

The keys of the TOML files that Rota reads. Tables that several files share are listed once. \
`rota schema scenario`, `rota schema experiment`, `rota schema federation` and `rota schema node` \
print the same as JSON Schemas, with which editors complete and check the files: a file whose first \
line is `#:schema ./scenario.schema.json` is checked against the schema in that file by Taplo and \
the editors that use it.

Lists of tables are written `[[key]]`. A span of time is a number with a unit, such as `\"5s\"`, \
`\"40ms\"` or `\"1h 30m\"`. A key without a default may be left out, unless it says *required*.

| page | keys |
|---|---|
";

/// Large tables of a scenario with a page of their own: key, heading, what it is.
const OWN_PAGES: [(&str, &str, &str); 2] = [
    (
        "strategy",
        "Strategy",
        "The table `[strategy]` of a scenario and of `federation.toml`: the method, its options, and \
         local training.",
    ),
    (
        "task",
        "Task",
        "The table `[task]` of a scenario and of `federation.toml`: data, columns and model.",
    ),
];

/// The pages for these files, by title and schema, each with its path below the book: first the one
/// that leads to the others.
pub(super) fn reference(documents: &[(&str, Value)]) -> Vec<(String, String)> {
    let mut reference = ReferencePages::default();
    for (title, schema) in documents {
        reference.open_page(file_name(title), &heading(title), description(schema));
        if *title == SCENARIO {
            for (name, heading, about) in OWN_PAGES {
                reference.open_page(name, heading, about);
            }
        }
    }
    for (title, schema) in documents {
        reference.document(title, schema);
    }
    reference.finished()
}

/// Title of the document whose tables may have pages of their own.
const SCENARIO: &str = "scenario";

/// Name of a document's page, without its ending.
fn file_name(title: &str) -> &str {
    title.strip_suffix(".toml").unwrap_or(title)
}

fn heading(title: &str) -> String {
    match title {
        "scenario" => "Scenario".to_owned(),
        "experiment" => "Experiment".to_owned(),
        title => format!("`{title}`"),
    }
}

/// A page that is being written.
struct KeysPage {
    /// File name without its ending.
    name: String,
    heading: String,
    about: String,
    text: String,
}

#[derive(Default)]
struct ReferencePages {
    pages: Vec<KeysPage>,
    /// Position of the page that is being written.
    page: usize,
    /// Pages and anchors of the sections, by the definition of their table.
    known: BTreeMap<String, (usize, String)>,
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

impl ReferencePages {
    fn open_page(&mut self, name: &str, heading: &str, about: &str) {
        self.pages.push(KeysPage {
            name: name.to_owned(),
            heading: heading.to_owned(),
            about: about.to_owned(),
            text: format!("{MADE}\n# {heading}\n\n{about}\n"),
        });
    }

    /// The page that leads to the others, and these.
    fn finished(self) -> Vec<(String, String)> {
        let mut first = format!("{MADE}{HEAD}");
        for page in &self.pages {
            let (name, heading) = (&page.name, &page.heading);
            let _ = writeln!(
                first,
                "| [{heading}](reference/{name}.md) | {} |",
                page.about
            );
        }
        let others = self.pages.into_iter();
        let others = others.map(|page| (format!("reference/{}.md", page.name), page.text));
        [("reference.md".to_owned(), first)]
            .into_iter()
            .chain(others)
            .collect()
    }

    /// Position of the page that describes a table: `path` is empty for the document itself.
    fn page_of(&self, title: &str, path: &str) -> usize {
        let first = path.split('.').next().unwrap_or_default();
        let own = title == SCENARIO && OWN_PAGES.iter().any(|(key, ..)| *key == first);
        let name = if own { first } else { file_name(title) };
        let at = self.pages.iter().position(|page| page.name == name);
        at.unwrap_or(self.page)
    }

    /// Text of the page that is being written.
    fn text(&mut self) -> &mut String {
        &mut self.pages[self.page].text
    }

    fn document(&mut self, title: &str, schema: &Value) {
        self.page = self.page_of(title, "");
        let mut file = File {
            title,
            root: schema,
            sections: VecDeque::new(),
        };
        self.keys(&mut file, "", schema, &[]);
        while let Some(section) = file.sections.pop_front() {
            self.page = self.page_of(title, &section.path);
            let _ = write!(self.text(), "\n## {}\n", section.heading);
            self.section(&mut file, &section);
        }
    }

    /// A table's section: its keys, or every alternative that it may be.
    fn section(&mut self, file: &mut File<'_>, section: &Section) {
        let about = description(&section.schema);
        if !about.is_empty() {
            let _ = write!(self.text(), "\n{about}\n");
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
            self.text(),
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
            let _ = write!(self.text(), "\nWith every name:\n");
            self.keys(file, &section.path, &shared, &[]);
        }
        let mut hidden: Vec<&str> = common.iter().map(String::as_str).collect();
        hidden.push("name");
        for (name, schema) in named {
            let about = description(schema);
            let _ = write!(self.text(), "\n**`name = \"{name}\"`**");
            if !about.is_empty() {
                let _ = write!(self.text(), " {about}");
            }
            self.text().push('\n');
            if properties(schema).any(|(key, _)| !hidden.contains(&key.as_str())) {
                self.keys(file, &section.path, schema, &hidden);
            }
        }
    }

    /// A Markdown table of the keys of a table, required ones first.
    fn keys(&mut self, file: &mut File<'_>, path: &str, schema: &Value, hidden: &[&str]) {
        self.text().push_str(
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
            let _ = writeln!(self.text(), "| {} |", cells.join(" | "));
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
        if let Some((page, anchor)) = known.as_ref().and_then(|known| self.known.get(known)) {
            return self.link_to(*page, anchor);
        }
        let heading = match file.title {
            "scenario" => format!("`{path}` of a scenario"),
            "experiment" => format!("`{path}` of an experiment"),
            title => format!("`{path}` of `{title}`"),
        };
        let anchor = slug(&heading);
        let page = self.page_of(file.title, path);
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
        if let Some(known) = known {
            self.known.insert(known, (page, anchor.clone()));
        }
        let link = self.link_to(page, &anchor);
        file.sections.push_back(Section {
            path: path.to_owned(),
            anchor,
            heading,
            schema: schema.clone(),
        });
        link
    }

    /// A link from the page that is being written to a section.
    fn link_to(&self, page: usize, anchor: &str) -> String {
        if page == self.page {
            format!("[table](#{anchor})")
        } else {
            format!("[table]({}.md#{anchor})", self.pages[page].name)
        }
    }
}
