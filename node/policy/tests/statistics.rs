//! Sums of statistics of a strategy, and of comparisons, and what a policy lets them open.

use super::*;

#[test]
fn sums_of_statistics_open_no_more_than_questions_may() {
    let agreed = |unknowns: &str| {
        let text = North::masked("").replace(
            "name = \"fedavg\"\nweight = \"equal\"",
            &format!("name = \"hierarchical\"\nexponent = 0\nunknowns-per-number = {unknowns}"),
        );
        North::read(&text)
    };
    let default = policy(Path::new("/house"), "");
    assert_eq!(keys(&default, &agreed("3.0")), [""; 0]);
    assert_eq!(keys(&default, &agreed("2.5")), ["questions"]);
    let why = refusals(&default, &agreed("2.5")).concat();
    assert!(
        why.contains("for every 2.5 unknowns") && why.contains("requires 3 for each"),
        "{why}"
    );
    let lower = policy(
        Path::new("/house"),
        "questions = { unknowns-per-number = 2.0 }",
    );
    assert_eq!(keys(&lower, &agreed("2.5")), [""; 0]);
    // Without masks the number says nothing.
    let clear = North::agreement(&[(
        "name = \"cs-rcfl\"\ncoalitions = 2\nfreeze = 1\nfolds = 5",
        "name = \"hierarchical\"\nunknowns-per-number = 0.5",
    )]);
    assert_eq!(keys(&default, &clear), [""; 0]);
}

#[test]
fn sums_of_comparisons_open_no_more_than_questions_may() {
    let first = "[[member]]\nname = \"north\"";
    let serving = format!("[serving]\ntogether = true\n\n{first}");
    let mut text = North::masked("colluders = 1")
        .replace("domains = [0, 0, 1, 1]", "")
        .replace("rounds = 6 ", "rounds = 40 ")
        .replace("blob-limit = 392", "blob-limit = 4000")
        .replace(first, &serving);
    for number in 20..24 {
        let key = key(number).public();
        text += &format!("\n[[member]]\nname = \"more {number}\"\nkey = \"{key}\"\n");
    }
    let agreed = North::read(&text);
    let default = policy(Path::new("/house"), "");
    assert_eq!(keys(&default, &agreed), [""; 0]);
    let more = policy(
        Path::new("/house"),
        "questions = { unknowns-per-number = 3.5 }",
    );
    assert_eq!(keys(&more, &agreed), ["questions"]);
    let why = refusals(&more, &agreed).concat();
    assert!(
        why.contains("the others have 3.0 unknowns") && why.contains("requires 3.5"),
        "{why}"
    );
}
