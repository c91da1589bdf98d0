//! JSON Schemas of the TOML files, from the types that read them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of a file that is read as `T`: draft 7, which editors of TOML know best.
///
/// TOML has no `null`, so an optional key is one that may be left out. Descriptions are the types'
/// documentation without its links.
pub fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft07().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    schema["title"] = title.into();
    schema
}

/// Leaves out what only Rust or JSON needs.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(table) => {
            // The width of numbers; a key of that name has a table here.
            if table.get("format").is_some_and(Value::is_string) {
                table.remove("format");
            }
            if table.get("default") == Some(&Value::Null) {
                table.remove("default");
            }
            if let Some(Value::String(text)) = table.get_mut("description") {
                *text = without_links(text);
            }
            if let Some(Value::Array(types)) = table.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    table.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(any)) = table.get_mut("anyOf") {
                any.retain(|alternative| alternative["type"] != "null");
                if any.len() == 1 {
                    let only = table.remove("anyOf").unwrap_or_default();
                    table.insert("allOf".into(), only);
                }
            }
            table.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

/// The text with every `[link](target)` and `[link]` of rustdoc as its words alone, in one line.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("[`") {
        let Some(len) = rest[start..].find("`]") else {
            break;
        };
        plain.push_str(&rest[..start]);
        plain.push_str(&rest[start + 1..start + len + 1]);
        rest = &rest[start + len + 2..];
        if let (true, Some(end)) = (rest.starts_with('('), rest.find(')')) {
            rest = &rest[end + 1..];
        }
    }
    plain.push_str(rest);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn links_are_replaced_by_their_text() {
        let text = "See [`A`](super::A), [`B`] and `[c]`;\nor `[d`.";
        assert_eq!(without_links(text), "See `A`, `B` and `[c]`; or `[d`.");
    }

    #[test]
    fn an_optional_key_has_no_null() {
        /// A file.
        #[derive(JsonSchema)]
        #[expect(dead_code, reason = "read by the derived schema only")]
        struct File {
            /// A number.
            number: Option<u8>,
            /// A file.
            inner: Option<Box<File>>,
        }
        let schema = schema_of::<File>("a file");
        assert_eq!(schema["title"], "a file");
        assert_eq!(schema["properties"]["number"]["type"], "integer");
        assert_eq!(schema["required"], Value::Null);
        assert!(!schema.to_string().contains("null"), "{schema}");
    }
}
