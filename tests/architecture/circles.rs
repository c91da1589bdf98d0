//! No module names a module that names it, directly or over others. A child may name the modules above
//! it, which have what its family shares.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::modules::{self, Module, ModuleGraph};

/// Every crate and the folder of its root.
const CRATES: [(&str, &str); 16] = [
    ("agreement", "crates/agreement/src"),
    ("protocol", "crates/protocol/src"),
    ("methods", "crates/methods/src"),
    ("privacy", "crates/privacy/src"),
    ("questions", "crates/questions/src"),
    ("ledger", "crates/ledger/src"),
    ("task", "crates/task/src"),
    ("learn", "crates/learn/src"),
    ("mesh", "crates/mesh/src"),
    ("silo", "crates/silo/src"),
    ("simulations", "simulations/src"),
    ("formatting", "crates/formatting/src"),
    ("node", "node"),
    ("lab", "crates/lab/src"),
    ("report", "crates/report/src"),
    ("rota", "crates/rota"),
];

/// Known circles, each by its crate and one of its modules. Remove a circle from this list when it is
/// resolved; do not add any.
const KNOWN: &[(&str, &str)] = &[];

/// The circles of a graph, each as its modules in order. Arrows from a module to those above it are
/// ignored, those to modules below it and to other families count.
fn circles(graph: &ModuleGraph) -> Vec<Vec<Module>> {
    let arrows = |module: &Module| {
        let named = graph.get(module).into_iter().flatten();
        let module = module.clone();
        named.filter(move |other| !module.starts_with(other))
    };
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = graph
        .keys()
        .map(|start| {
            let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(module) = open.pop() {
                open.extend(arrows(module).filter(|&next| reached.insert(next)));
            }
            (start, reached)
        })
        .collect();
    let mut circles = BTreeSet::new();
    for (module, others) in &reached {
        if others.contains(module) {
            let back = |other: &&&Module| reached[**other].contains(module);
            circles.insert(
                others
                    .iter()
                    .filter(back)
                    .map(|&other| other.clone())
                    .collect(),
            );
        }
    }
    circles.into_iter().collect()
}

fn name(module: &Module) -> String {
    if module.is_empty() {
        "(root)".into()
    } else {
        module.join("::")
    }
}

fn describe(krate: &str, circle: &[Module]) -> String {
    let modules: Vec<_> = circle.iter().map(name).collect();
    format!("{krate}: {}", modules.join(", "))
}

/// Lists which module of a circle names which other.
fn arrows(graph: &ModuleGraph, circle: &[Module]) -> String {
    let mut text = String::new();
    for module in circle {
        let named = |other: &&Module| graph[module].contains(*other) && !module.starts_with(other);
        for other in circle.iter().filter(named) {
            text += &format!("\n    {} names {}", name(module), name(other));
        }
    }
    text
}

#[test]
fn no_modules_form_a_circle_except_parent_and_child() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut fresh, mut known) = (Vec::new(), BTreeSet::new());
    for (krate, folder) in CRATES {
        let graph = modules::read(&root.join(folder));
        assert!(graph.len() > 2, "{folder}: only {} modules", graph.len());
        for circle in circles(&graph) {
            let listed = |(of, module): &&(&str, &str)| {
                *of == krate && circle.iter().any(|one| name(one) == *module)
            };
            match KNOWN.iter().find(listed) {
                Some(listed) => {
                    known.insert(listed);
                }
                None => fresh.push(describe(krate, &circle) + &arrows(&graph, &circle)),
            }
        }
    }
    assert!(
        fresh.is_empty(),
        "{} module circles, move what both sides need into a module of its own:\n{}",
        fresh.len(),
        fresh.join("\n")
    );
    let gone: Vec<_> = KNOWN
        .iter()
        .filter(|listed| !known.contains(listed))
        .collect();
    assert!(
        gone.is_empty(),
        "these circles do not exist any more, remove them from KNOWN: {gone:?}"
    );
}

fn found(files: &[(&str, &str)]) -> Vec<String> {
    let circles = circles(&modules::parse(files));
    circles
        .iter()
        .map(|circle| describe("made up", circle))
        .collect()
}

#[test]
fn a_circle_of_three_modules_is_found() {
    let files = [
        ("crate", "mod a; mod b; mod c; mod d;"),
        ("a", "use crate::b::B; pub struct A(B);"),
        ("b", "pub struct B(super::c::C);"),
        ("c", "use super::{d, a::{self, A}}; pub struct C(Box<A>);"),
        ("d", "use crate::a::A; pub struct D(A);"),
    ];
    // `d` names `a` and is named by `c`: it belongs to the circle.
    assert_eq!(found(&files), ["made up: a, b, c, d"]);
    let files = [
        files[0],
        files[1],
        files[2],
        ("c", "pub struct C;"),
        files[4],
    ];
    assert!(found(&files).is_empty());
}

#[test]
fn a_circle_through_a_re_export_is_found() {
    let files = [
        ("crate", "pub mod links; mod scenario;"),
        ("links", "mod model; pub use model::Model as Links;"),
        ("links::model", "pub struct Model(crate::scenario::Span);"),
        (
            "scenario",
            "use crate::links::Links; pub struct Span; fn f(_: Links) {}",
        ),
    ];
    assert_eq!(found(&files), ["made up: links::model, scenario"]);
    let files = [
        ("crate", "mod links; pub use links::*; mod scenario;"),
        ("links", "pub struct Links(crate::scenario::Span);"),
        ("scenario", "pub struct Span; fn f(_: crate::Links) {}"),
    ];
    assert_eq!(found(&files), ["made up: links, scenario"]);
}

#[test]
fn a_circle_through_an_imported_module_is_found() {
    let files = [
        ("crate", "mod a; mod b; mod c;"),
        ("a", "use crate::b; fn f() { b::deep::g(); }"),
        ("b", "pub mod deep;"),
        ("b::deep", "pub fn g() { crate::a::f(); }"),
    ];
    assert_eq!(found(&files), ["made up: a, b::deep"]);
}

#[test]
fn a_parent_and_its_children_are_not_a_circle() {
    let files = [
        ("crate", "mod parent; use parent::Parent;"),
        (
            "parent",
            "mod child; use child::Child; pub struct Parent(Child);",
        ),
        (
            "parent::child",
            "use super::Parent; pub struct Child(Box<Parent>, crate::Root);",
        ),
    ];
    assert!(found(&files).is_empty());
}

#[test]
fn comments_strings_tests_and_visibilities_are_not_arrows() {
    let files = [
        ("crate", "mod a; mod b;"),
        (
            "a",
            "use crate::b::B; pub(in crate::b) struct A<'a>(&'a B);",
        ),
        (
            "b",
            r##"// crate::a::A
            /* crate::a */ const C: &str = "crate::a::A"; const D: char = '"'; const E: char = '\'';
            const R: &str = r#" " crate::a "#;
            #[cfg(test)] mod tests { use crate::a::A; fn f() { { crate::a::g() } } }
            #[cfg(test)] use crate::a::A;
            pub struct B;"##,
        ),
    ];
    assert!(found(&files).is_empty());
    let files = [
        files[0],
        files[1],
        ("b", "const D: char = '\"'; pub struct B(crate::a::A);"),
    ];
    assert_eq!(found(&files), ["made up: a, b"]);
}
