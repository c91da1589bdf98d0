//! The kinds of messages on their pages: every kind has a row in a table of messages and one in the table of headers.

use std::collections::BTreeMap;

use rota::protocol::message::Kind;

use super::pages::root;

/// Cells of the rows of the first table with this heading of its first column, the names in the first cell apart.
fn rows(page: &str, heading: &str) -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let begin = format!("| {heading} |");
    let lines = text.lines().skip_while(|line| !line.starts_with(&begin));
    let table = lines.skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells = line.trim_matches('|').split('|');
        let cells: Vec<String> = cells.map(|cell| cell.trim().to_owned()).collect();
        let names: Vec<String> = cells[0].split(", ").map(str::to_owned).collect();
        let named = move |name| (name, cells[1..].to_vec());
        names.into_iter().map(named).collect::<Vec<_>>()
    };
    table.flat_map(row).collect()
}

#[test]
fn every_kind_of_message_is_in_the_tables_of_messages() {
    let pages = ["messages", "secure-aggregation"];
    let listed = pages.map(|page| rows(&format!("docs/protocol/{page}.md"), "message"));
    let mut listed: Vec<String> = listed.concat().into_iter().map(|(name, _)| name).collect();
    let mut kinds = Kind::ALL.map(|kind| format!("{kind:?}")).to_vec();
    listed.sort_unstable();
    kinds.sort_unstable();
    assert_eq!(listed, kinds);
}

#[test]
fn the_table_of_headers_says_what_a_header_may_hold() {
    let cell = |holds| if holds { "yes" } else { "–" }.to_owned();
    let expected = Kind::ALL.map(|kind| {
        let scope = kind.scope();
        let cells = vec![cell(scope.round), cell(scope.view)];
        (format!("{kind:?}"), cells)
    });
    let found: BTreeMap<_, _> = rows("docs/protocol/messages.md", "kind")
        .into_iter()
        .collect();
    assert_eq!(found, BTreeMap::from(expected));
}
