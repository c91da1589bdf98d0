//! The strategies on the pages of methods: all have a page, and the pages that count them count right.

use rota::methods::strategy::STRATEGIES;

use super::pages::root;

fn page(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap()
}

/// A number below a hundred in words.
fn in_words(number: usize) -> String {
    const TENS: [&str; 10] = [
        "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
    ];
    const ONES: [&str; 10] = [
        "", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    ];
    match (TENS[number / 10], ONES[number % 10]) {
        (tens, "") => tens.to_owned(),
        (tens, ones) => format!("{tens}-{ones}"),
    }
}

#[test]
fn every_strategy_leads_to_a_page_and_is_counted() {
    let methods = page("docs/methods.md");
    for info in STRATEGIES {
        let row = format!("\n| [{}](methods/", info.name);
        assert!(
            methods.contains(&row),
            "docs/methods.md has no row of {}",
            info.name
        );
    }
    let (count, text) = (STRATEGIES.len(), in_words(STRATEGIES.len()));
    assert!(
        methods.contains(&format!("There are {text},")),
        "{count}: docs/methods.md"
    );
    let others = page("docs/coming-from.md");
    assert!(
        others.contains(&format!("| {count} strategies,")),
        "{count}: docs/coming-from.md"
    );
}
