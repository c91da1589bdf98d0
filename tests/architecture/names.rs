//! Type names that say which one they are: whoever searches for one finds one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Words before the name of a type in its definition.
const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// The type that a line defines, if it is at the top level of its file.
fn defined(line: &str) -> Option<&str> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    let mut words = line.split_whitespace();
    let kind = words.by_ref().find(|word| !word.starts_with("pub"))?;
    let name = words.next().filter(|_| KINDS.contains(&kind))?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
    Some(&name[..end.unwrap_or(name.len())]).filter(|name| !name.is_empty())
}

/// Of more than two thousand names eight stood twice when this was written, none more often. Which of two
/// is meant has to be seen from the folder then.
#[test]
fn hardly_a_type_name_stands_twice() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for place in ["tests", "node", "crates", "simulations", "examples"] {
        for file in crate::rust_files(&root.join(place)) {
            let text = fs::read_to_string(&file).expect("a file of this repository can be read");
            for name in text.lines().filter_map(defined) {
                let place = file.display().to_string();
                names.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(names.len() > 1000, "the names are found");
    names.retain(|_, places| places.len() > 1);
    let often: Vec<_> = names
        .iter()
        .filter(|(_, places)| places.len() > 2)
        .collect();
    assert!(often.is_empty(), "{often:#?}");
    assert!(names.len() <= 20, "{names:#?}");
}

#[test]
fn a_definition_is_distinguished_from_its_uses() {
    assert_eq!(defined("pub(crate) struct Shape {"), Some("Shape"));
    assert_eq!(defined("pub trait Learner: Send {"), Some("Learner"));
    assert_eq!(defined("type Sums<'a> = &'a [f64];"), Some("Sums"));
    assert_eq!(defined("    struct Inner;"), None);
    assert_eq!(defined("use crate::Shape;"), None);
}
