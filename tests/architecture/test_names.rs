//! Names of tests that fit on a line of a test runner and of a page that cites them.

use std::fs;
use std::path::Path;

/// Characters that the name of a test may have.
const MOST: usize = 60;

/// Returns true for the attribute of a test: `test` itself or that of a crate, such as `tokio::test(…)`.
fn marks_a_test(attribute: &str) -> bool {
    let path = attribute.split(['(', ']']).next().unwrap_or_default();
    path.trim().rsplit("::").next() == Some("test")
}

/// The word of an identifier that a text begins with.
fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$');
    &text[..end.unwrap_or(text.len())]
}

/// The names of the tests in a text, in their order. Where a macro is given the names of its tests,
/// any word of the file may be one of them.
fn tests_in(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, _) in text.match_indices("#[") {
        let rest = &text[at + 2..];
        let before = text[..at].rsplit('\n').next().unwrap_or_default();
        if before.contains("//") || !marks_a_test(rest) {
            continue;
        }
        let function = rest.split_once("fn ").map(|(_, function)| word(function));
        match function {
            Some(name) if name.starts_with('$') => {
                names.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_'));
            }
            Some(name) => names.push(name),
            None => {}
        }
    }
    names
}

#[test]
fn no_test_has_a_name_of_more_than_60_characters() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut count, mut long) = (0, Vec::new());
    for place in ["tests", "node", "crates", "simulations", "examples"] {
        for file in crate::rust_files(&root.join(place)) {
            let text = fs::read_to_string(&file).expect("a file of this repository can be read");
            let names = tests_in(&text);
            count += names.len();
            let names = names.into_iter().filter(|name| name.len() > MOST);
            long.extend(names.map(|name| format!("{}: {name}", file.display())));
        }
    }
    assert!(count > 3000, "only {count} tests were found");
    long.sort();
    long.dedup();
    assert!(
        long.is_empty(),
        "say it in {MOST} characters, or make two tests of it:\n{}",
        long.join("\n")
    );
}

#[test]
fn tests_are_found_by_attribute_also_under_others_and_in_macros() {
    let text = "
        #[test]
        fn plain() {}
        #[tokio::test(flavor = \"multi_thread\")]
        #[ignore = \"slow\"]
        async fn timed() {}
        proptest! {
            /// Of two numbers.
            #[test]
            fn drawn(x in 0..2) {}
        }
        #[cfg(test)]
        fn none() {}
        // #[test] in a comment
        fn neither() {}
    ";
    assert_eq!(tests_in(text), ["plain", "timed", "drawn"]);
    let text = "macro_rules! all { ($name:ident) => {
        #[test]
        fn $name() {}
    } }
    all! { of_a_macro }";
    assert!(tests_in(text).contains(&"of_a_macro"));
}
