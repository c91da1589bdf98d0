//! The glossary leads from the words that people search for to those of Rota.

use crate::pages::{Page, pages, resolve};

/// Terms for which people search who know federated learning or distributed systems.
const SEARCHED: [&str; 20] = [
    "secure aggregation",
    "differential privacy",
    "DP-SGD",
    "accountant",
    "BFT",
    "view change",
    "equivocation",
    "liveness",
    "safety",
    "gossip",
    "personalised FL",
    "clustered FL",
    "cross-silo",
    "non-IID",
    "dropout",
    "straggler",
    "poisoning",
    "robust aggregation",
    "split learning",
    "vertical FL",
];

/// The rows of the tables below a heading, each with its cells.
fn rows(page: &Page, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = page.text.split_once(heading).expect(heading);
    let below = below.split("\n## ").next().unwrap_or_default();
    let rows = below.lines().filter(|line| line.starts_with("| **"));
    let cells = |line: &str| {
        let inside = line.trim_matches('|').split(" | ");
        inside
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    rows.map(cells).collect()
}

/// The parts of a text between two marks.
fn marked(text: &str, mark: &str) -> Vec<String> {
    let parts = text.split(mark).skip(1).step_by(2);
    parts.map(str::to_lowercase).collect()
}

/// Every entry names one of Rota's words (in italics, and an entry itself) or a key, or that there is
/// nothing of the kind; and it links to a page that is there.
#[test]
fn the_glossary_leads_from_every_word_that_is_searched_to_ours() {
    let glossary = pages()
        .into_iter()
        .find(|page| page.name == "docs/glossary.md");
    let glossary = glossary.expect("docs/glossary.md");
    let all = rows(&glossary, "## All words");
    let words: Vec<String> = all
        .iter()
        .flat_map(|cells| marked(&cells[0], "**"))
        .collect();
    let of_the_field = rows(&glossary, "## The field's words");
    let mut wrong = Vec::new();
    for searched in SEARCHED {
        let named =
            |cells: &&Vec<String>| marked(&cells[0], "**").contains(&searched.to_lowercase());
        let Some([_, here, see]) = of_the_field.iter().find(named).map(Vec::as_slice) else {
            wrong.push(format!("{searched}: has no entry of three cells"));
            continue;
        };
        let ours = marked(here, "*");
        let known = |word: &String| {
            words
                .iter()
                .any(|entry| entry == word || word.strip_suffix('s') == Some(entry.as_str()))
        };
        if let Some(unknown) = ours.iter().find(|word| !known(word)) {
            wrong.push(format!(
                "{searched}: *{unknown}* is no word of the glossary"
            ));
        }
        let told = !ours.is_empty()
            || here.contains('`')
            || here.starts_with("Not offered")
            || here.starts_with("The properties ");
        if !told {
            wrong.push(format!("{searched}: does not say what it is called here"));
        }
        let links = crate::pages::links(see);
        if links.is_empty() {
            wrong.push(format!("{searched}: links to no page"));
        }
        for link in links {
            if let Err(why) = resolve(&glossary, &link) {
                wrong.push(format!("{searched}: {link}: {why}"));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/glossary.md:\n{}", wrong.join("\n"));
}
