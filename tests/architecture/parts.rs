//! The parts of an institution's node stand in one order: none names a part after it.

use std::path::Path;

use crate::modules::{self, ModuleGraph};

/// The folders of `node/institution/`; each may name those before it.
const PARTS: [&str; 6] = ["config", "report", "agreement", "serve", "start", "run"];

/// The place in this order of the part that a module belongs to, if it belongs to one.
fn place(module: &[String]) -> Option<usize> {
    match module {
        [first, part, ..] if first == "institution" => PARTS.iter().position(|one| one == part),
        _ => None,
    }
}

/// Returns which module names one of a later part.
fn later(graph: &ModuleGraph) -> Vec<String> {
    let mut found = Vec::new();
    for (module, named) in graph {
        for other in named.iter().filter(|other| place(other) > place(module)) {
            if place(module).is_some() {
                found.push(format!("{} names {}", module.join("::"), other.join("::")));
            }
        }
    }
    found
}

#[test]
fn no_part_of_a_node_names_a_part_after_it() {
    let graph = modules::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("node"));
    for (part, name) in PARTS.iter().enumerate() {
        let modules = graph.keys().filter(|module| place(module) == Some(part));
        assert!(modules.count() > 1, "{name} has no modules");
    }
    let inside = |module: &&modules::Module| module.len() > 2 && module[0] == "institution";
    let unlisted: Vec<_> = graph
        .keys()
        .filter(inside)
        .filter(|module| place(module).is_none())
        .collect();
    assert!(unlisted.is_empty(), "folders without a place: {unlisted:?}");
    assert_eq!(later(&graph), Vec::<String>::new());
}

#[test]
fn a_part_that_names_a_later_one_is_found() {
    let graph = modules::parse(&[
        ("crate", "mod institution;"),
        ("institution", "mod config; mod run; fn shared() {}"),
        ("institution::config", "use super::run::Run;"),
        (
            "institution::run",
            "use super::{config, shared}; pub struct Run;",
        ),
    ]);
    assert_eq!(
        later(&graph),
        ["institution::config names institution::run"]
    );
}
