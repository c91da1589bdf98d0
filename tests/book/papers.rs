//! The page that lists the parts of the four papers: every row names things that exist, and has a
//! state of a small set.

use crate::pages::{Page, pages, root};

const PAGE: &str = "docs/papers.md";
/// The papers, each a heading of the page.
const PAPERS: [&str; 4] = ["TFL", "FedCG", "HCCT", "CS-RCFL"];
/// States that need no reason.
const STATES: [&str; 2] = ["built", "built and measured"];
/// States with a reason in parentheses.
const STATES_WITH_REASON: [&str; 3] = [
    "built, not run at the paper's size (",
    "built, not run (",
    NOT_BUILT,
];
const NOT_BUILT: &str = "not built (";
/// Folders whose paths are written out from the repository's root.
const FOLDERS: [&str; 7] = [
    "crates/",
    "simulations/",
    "docs/",
    "examples/",
    "tests/",
    "node/",
    "benches/",
];

/// A part of a paper.
struct PaperPart {
    paper: String,
    /// The row's cells: part, what it says, where, state.
    cells: [String; 4],
}

impl PaperPart {
    /// The row, for messages.
    fn name(&self) -> String {
        format!("{PAGE}, {}, row {:?}", self.paper, self.cells[0])
    }

    /// Returns what is wrong with the row, each in a sentence.
    fn faults(&self, reference: &str) -> Vec<String> {
        let [part, says, place, state] = &self.cells;
        let mut faults = Vec::new();
        if part.is_empty() || says.is_empty() || place.is_empty() {
            faults.push("a cell is empty".to_owned());
        }
        if !known(state) {
            faults.push(format!(
                "the state {state:?} is neither of {STATES:?} nor one of {STATES_WITH_REASON:?} with a \
                 reason and a closing parenthesis"
            ));
        }
        if !state.starts_with(NOT_BUILT) && !place.contains(['`', '[']) {
            faults.push(format!(
                "it is built, and {place:?} does not say where: name a file, key, command, test or section"
            ));
        }
        let row = Page {
            name: PAGE.to_owned(),
            text: self.cells.join("\n"),
        };
        faults.extend(row.code().iter().filter_map(|code| dead(code, reference)));
        let named = faults.into_iter();
        named
            .map(|fault| format!("{}: {fault}", self.name()))
            .collect()
    }
}

/// Returns whether a state is one of the small set.
fn known(state: &str) -> bool {
    let with_reason = STATES_WITH_REASON
        .iter()
        .filter_map(|start| state.strip_prefix(start))
        .any(|reason| reason.len() > 1 && reason.ends_with(')'));
    with_reason || STATES.contains(&state)
}

/// Returns the reason for which a text in backticks leads nowhere, if it is a path, a built-in experiment or a key.
fn dead(code: &str, reference: &str) -> Option<String> {
    if FOLDERS.iter().any(|folder| code.starts_with(folder)) && !root().join(code).exists() {
        return Some(format!("`{code}` does not exist"));
    }
    if let Some(rest) = code.strip_prefix("rota compare ") {
        let name = rest.split_whitespace().next().unwrap_or_default();
        let file = format!("simulations/experiments/{name}.toml");
        if !root().join(&file).is_file() {
            return Some(format!("`{code}` names no built-in experiment: no {file}"));
        }
    }
    let (section, rest) = code.strip_prefix('[')?.split_once("] ")?;
    let key = rest.split_whitespace().next().unwrap_or_default();
    if has_key(reference, section, key) {
        return None;
    }
    Some(format!(
        "`{code}`: docs/reference has no key `{key}` in `[{section}]`"
    ))
}

/// Returns whether the pages of the reference list a key below the heading of this section of some file.
fn has_key(reference: &str, section: &str, key: &str) -> bool {
    let (heading, row) = (format!("## `{section}` of"), format!("| `{key}` |"));
    let mut inside = false;
    reference.lines().any(|line| {
        if line.starts_with('#') {
            inside = line.starts_with(&heading);
        }
        inside && line.starts_with(&row)
    })
}

/// The rows of all tables below the headings of papers.
fn parts(text: &str) -> Result<Vec<PaperPart>, String> {
    let mut paper = String::new();
    let mut parts = Vec::new();
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            paper = title.to_owned();
        }
        let row = line
            .strip_prefix('|')
            .filter(|row| !row.starts_with("---") && !row.starts_with(" part of the paper "));
        let Some(row) = row.filter(|_| !paper.is_empty()) else {
            continue;
        };
        let row = row.strip_suffix('|').unwrap_or(row);
        let cells: Vec<String> = row.split('|').map(|cell| cell.trim().to_owned()).collect();
        let cells: [String; 4] = cells.try_into().map_err(|cells: Vec<String>| {
            format!(
                "{PAGE}, {paper}, row {:?}: it has {} cells instead of 4",
                cells[0],
                cells.len()
            )
        })?;
        parts.push(PaperPart {
            paper: paper.clone(),
            cells,
        });
    }
    Ok(parts)
}

#[test]
fn every_part_of_a_paper_states_its_place_and_what_became_of_it() {
    let all = pages();
    let page = all.iter().find(|page| page.name == PAGE);
    let page = page.expect("docs/papers.md lists the parts of the papers");
    let of_reference = all
        .iter()
        .filter(|page| page.name.starts_with("docs/reference/"));
    let reference: String = of_reference.map(|page| page.text.as_str()).collect();
    let parts = parts(&page.text).unwrap_or_else(|fault| panic!("{fault}"));
    for paper in PAPERS {
        assert!(
            parts.iter().any(|part| part.paper == paper),
            "{PAGE} has no row of {paper}: each paper has a heading `## {paper}` and a table below it"
        );
    }
    for part in &parts {
        assert!(
            PAPERS.contains(&part.paper.as_str()),
            "{}: the heading is none of {PAPERS:?}",
            part.name()
        );
    }
    let faults: Vec<_> = parts
        .iter()
        .flat_map(|part| part.faults(&reference))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_wrong_with_a_row_is_named() {
    let reference = "## `strategy` of a scenario\n| `q` | number |\n## `task` of a scenario\n";
    let faults = |row: &str| -> Vec<String> {
        let parts = parts(&format!("## TFL\n|---|\n{row}\n")).unwrap();
        parts[0].faults(reference)
    };
    let right = [
        "| Eq. 7 | a step | `[strategy] q`, `tests/book/papers.rs` | built |",
        "| Table 4 | errors | `rota compare tpt48` | built, not run at the paper's size (small) |",
        "| Fig. 2 | time | — | not built (no curve by time) |",
    ];
    for row in right {
        assert_eq!(faults(row), Vec::<String>::new());
    }
    let wrong = [
        ("| Eq. 7 |  | `[strategy] q` | built |", "a cell is empty"),
        (
            "| Eq. 7 | a step | — | built |",
            "it is built, and \"—\" does not say where",
        ),
        (
            "| Eq. 7 | a step | `q` | nearly |",
            "the state \"nearly\" is neither",
        ),
        (
            "| Eq. 7 | a step | `q` | not built () |",
            "the state \"not built ()\" is neither",
        ),
        (
            "| Eq. 7 | a step | `crates/none.rs` | built |",
            "`crates/none.rs` does not exist",
        ),
        (
            "| Eq. 7 | a step | `rota compare none` | built |",
            "`rota compare none` names no built-in experiment",
        ),
        (
            "| Eq. 7 | a step | `[task] q` | built |",
            "docs/reference has no key `q` in `[task]`",
        ),
    ];
    for (row, why) in wrong {
        let found = faults(row);
        assert_eq!(found.len(), 1, "{row}: {found:?}");
        assert!(found[0].contains(why), "{row}: {found:?}");
        assert!(found[0].contains("TFL, row \"Eq. 7\""), "{found:?}");
    }
    let short = parts("## TFL\n| Eq. 7 | a step |\n").err();
    let why = "docs/papers.md, TFL, row \"Eq. 7\": it has 2 cells instead of 4";
    assert_eq!(short.as_deref(), Some(why));
}
