//! The walls inside a member: its methods are few, and no file reaches many of its fields. What there
//! is of each kind of message or of work is declared once.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::rust_files;

/// Most methods of `Member` itself. What a rule does belongs to a struct that borrows what the rule
/// depends on.
const METHODS: usize = 68;
/// Most fields of `Member` and its sides that one file may reach.
const FIELDS: usize = 10;
/// The sides of a member: field and folder of each, and the struct with its fields.
const SIDES: [(&str, &str); 3] = [
    ("consensus", "Consensus"),
    ("rounds", "Rounds"),
    ("governance", "Governance"),
];

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/protocol/src/member")
}

/// The files of the state machine with their texts, without its tests.
pub(crate) fn files() -> BTreeMap<PathBuf, String> {
    let tests = folder().join("tests");
    let files = rust_files(&folder()).into_iter();
    let files = files.filter(|file| !file.starts_with(&tests));
    let read = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a file of this repository can be read");
        let code = text.lines().filter(|line| !line.trim().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        (file, code)
    };
    files.map(read).collect()
}

/// The names of the fields of a member, those of its sides for the side.
fn all_fields(files: &BTreeMap<PathBuf, String>) -> BTreeSet<String> {
    let mut all = fields(&files[&folder().join("mod.rs")], "pub struct Member {");
    for (side, definition) in SIDES {
        assert!(all.remove(side), "{side} is a field of a member");
        let text = &files[&folder().join(side).join("mod.rs")];
        all.extend(fields(text, &format!("struct {definition} {{")));
    }
    // It never changes.
    all.remove("kind");
    all
}

/// The names of the fields of a struct that is defined in this text.
fn fields(text: &str, definition: &str) -> BTreeSet<String> {
    let (_, rest) = text
        .split_once(definition)
        .expect("the struct is defined there");
    let (body, _) = rest.split_once("\n}").expect("the definition ends");
    let names = body.lines().filter_map(|line| line.trim().split_once(": "));
    names
        .map(|(name, _)| name.rsplit(' ').next().unwrap_or_default().to_owned())
        .collect()
}

/// The methods in all `impl Member` blocks of a text.
fn methods(text: &str) -> usize {
    let blocks = text.split("\nimpl Member {").skip(1);
    let bodies = blocks.filter_map(|block| block.split("\n}").next());
    let is_method = |line: &&str| {
        let line = line.strip_prefix("    ").unwrap_or_default();
        let line = match (line.split_once(") "), line.strip_prefix("pub ")) {
            (Some((visibility, rest)), _) if visibility.starts_with("pub(") => rest,
            (_, Some(rest)) => rest,
            _ => line,
        };
        line.starts_with("fn ") || line.starts_with("const fn ")
    };
    bodies
        .map(|body| body.lines().filter(is_method).count())
        .sum()
}

/// The fields of these names that a text reaches by `self.`.
fn reached(text: &str, fields: &BTreeSet<String>) -> BTreeSet<String> {
    // A chain of calls may stand on several lines.
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let mut found = BTreeSet::new();
    for (at, receiver) in dense.match_indices("self.") {
        let rest = &dense[at + receiver.len()..];
        let of_name = |c: char| c.is_alphanumeric() || c == '_';
        let of_side = |(side, _): &(&str, &str)| rest.strip_prefix(side)?.strip_prefix('.');
        let rest = SIDES.iter().find_map(of_side).unwrap_or(rest);
        let end = rest.find(|c| !of_name(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        if fields.contains(name) && !rest.starts_with('(') {
            found.insert(name.to_owned());
        }
    }
    found
}

#[test]
fn a_member_has_few_methods_of_its_own() {
    let count: usize = files().values().map(|text| methods(text)).sum();
    assert!(
        count > 10,
        "this test finds the methods of a member: {count}"
    );
    assert!(
        count <= METHODS,
        "`Member` has {count} methods, at most {METHODS} are allowed: give a rule a struct that borrows \
         what it depends on, as `Judging` does"
    );
}

#[test]
fn no_file_reaches_more_than_ten_fields_of_a_member() {
    let files = files();
    let fields = all_fields(&files);
    assert!(fields.contains("chain") && fields.contains("round") && fields.contains("out"));
    for (file, text) in &files {
        let reached = reached(text, &fields);
        assert!(
            reached.len() <= FIELDS,
            "{} reaches {} fields of `Member`, at most {FIELDS} are allowed: {reached:?}",
            file.display(),
            reached.len()
        );
    }
}

/// Consensus agrees on blocks and knows only what `BlockPayload` says of their content. What a block, a view or a
/// heartbeat means for the other sides stands in `steps`, and so does everything that is a method of the member.
#[test]
fn consensus_names_neither_rounds_nor_governance() {
    let consensus = folder().join("consensus");
    let files = files().into_iter();
    let files: Vec<_> = files
        .filter(|(file, _)| file.starts_with(&consensus))
        .collect();
    assert!(files.len() > 10, "the files of consensus are found");
    for (file, text) in files {
        let named = named(&text);
        assert!(named.is_empty(), "{} names {named:?}", file.display());
    }
}

/// Words in a text that consensus must not name: the other sides, and the member as a whole.
fn named(text: &str) -> BTreeSet<&str> {
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let paths = [
        "rounds::",
        "governance::",
        "steps::",
        ".rounds.",
        ".governance.",
    ];
    let paths = paths.into_iter().filter(|path| dense.contains(path));
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    paths.chain(words.find(|word| *word == "Member")).collect()
}

/// The files in these folders that list the kinds of something: they name most of the variants of one of
/// these enums. Tests are left out.
fn lists(defined_in: &str, enums: &[&str], folders: &[&str]) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let definition = fs::read_to_string(root.join(defined_in)).expect("the file is there");
    let variants = |name: &&str| {
        let (_, rest) = definition
            .split_once(&format!("pub enum {name} {{"))
            .expect("the enum is defined there");
        let (body, _) = rest.split_once("\n}").expect("the definition ends");
        let lines = body.lines().filter_map(|line| line.strip_prefix("    "));
        let lines = lines.filter(|line| line.starts_with(char::is_uppercase));
        let variants: Vec<_> = lines
            .map(|line| line.split([' ', '(', ',']).next().unwrap_or_default())
            .map(|variant| format!("{name}::{variant}"))
            .collect();
        assert!(variants.len() > 5, "{name} has variants");
        variants
    };
    let variants: Vec<_> = enums.iter().map(variants).collect();
    let files = folders.iter().flat_map(|of| rust_files(&root.join(of)));
    let mut found = Vec::new();
    for file in files {
        let path = file.strip_prefix(root).unwrap_or(&file);
        let path = path.to_string_lossy().replace('\\', "/");
        if path.contains("/tests") || path == defined_in {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a file of this repository can be read");
        let lists = |variants: &Vec<String>| {
            let named = variants.iter().filter(|variant| text.contains(*variant));
            2 * named.count() > variants.len()
        };
        if variants.iter().any(lists) {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn a_new_kind_of_work_touches_four_places() {
    let folders = ["crates/bare/src", "crates/protocol/src", "crates/silo/src"];
    let listed = lists(
        "crates/protocol/src/work/mod.rs",
        &["Request", "Answer"],
        &folders,
    );
    let expected = [
        "crates/bare/src/work.rs",
        "crates/protocol/src/member/answers.rs",
        "crates/silo/src/actors/worker/mod.rs",
    ];
    assert_eq!(
        listed, expected,
        "beside its declaration a kind of work is listed where its answer is taken, where it is done, \
         and where the simulator does it"
    );
}

#[test]
fn a_new_kind_of_message_is_declared_once_and_handled_once() {
    let folders = ["crates/protocol/src", "crates/silo/src"];
    let listed = lists("crates/protocol/src/message/mod.rs", &["Body"], &folders);
    let expected = [
        "crates/protocol/src/envelope/mod.rs",
        "crates/protocol/src/member/receive.rs",
        "crates/protocol/src/message/kind.rs",
    ];
    assert_eq!(
        listed, expected,
        "what depends on the kind alone belongs to its declaration in `message/kind.rs`; the envelope verifies the \
         signatures inside of a message"
    );
}

#[test]
fn methods_and_fields_are_counted_as_they_stand() {
    let text = "struct A;\n\nimpl Member {\n    /// One.\n    pub(in crate::x) fn one(&self) {\n        \
                self.chain\n            .tip(self.view());\n    }\n\n    fn two(&mut self) {\n        \
                self.lead = self.out.x;\n    }\n}\n\nimpl Other {\n    fn three() {}\n}\n";
    assert_eq!(methods(text), 2);
    let names = ["chain", "view", "lead", "out", "x"];
    let names = names.map(str::to_owned).into();
    let found: Vec<_> = reached(text, &names).into_iter().collect();
    assert_eq!(found, ["chain", "lead", "out"]);
    let text = "self.consensus.chain.x(); self.rounds\n    .round;";
    let names = ["chain", "round", "rounds"].map(str::to_owned).into();
    let found: Vec<_> = reached(text, &names).into_iter().collect();
    assert_eq!(found, ["chain", "round"]);
    let text =
        "use crate::member::rounds::Rounds;\nimpl Member {}\nself\n.governance\n.x; MemberIndex";
    let found: Vec<_> = named(text).into_iter().collect();
    assert_eq!(found, [".governance.", "Member", "rounds::"]);
    let definition =
        "pub struct Member {\n    chain: Chain,\n    pub(in crate::member) over: bool,\n}\n";
    let found: Vec<_> = fields(definition, "pub struct Member {")
        .into_iter()
        .collect();
    assert_eq!(found, ["chain", "over"]);
}
