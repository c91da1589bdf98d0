//! The page of an agreement, mode by mode.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixture::{EXAMPLE, North};
use crate::status::{self, Status, fixture};

fn page(change: impl Fn(&str) -> String, rows: Option<usize>) -> String {
    let agreement = Agreement::parse("federation.toml", &change(EXAMPLE)).unwrap();
    let own = OwnSide {
        training_rows: rows,
        ..OwnSide::default()
    };
    disclosure(&agreement, &own).join("\n")
}

#[test]
fn the_page_follows_strategy_names_scale_and_size() {
    let same = |text: &str| text.to_owned();
    let page_of_example = page(same, Some(42));
    for said in [
        "in the first round, the number of training rows, and sum and squared deviations",
        "without a name; the lead of the round knows",
        "the loss of every member's model on its rows",
        "is trained on 42 rows: it cannot hold all",
        "mean and spread of every column",
    ] {
        assert!(page_of_example.contains(said), "{said}: {page_of_example}");
    }
    assert!(page(same, Some(3)).contains("so it can hold single rows"));
    let shown = page(
        |text| text.replace("names = \"removed\"", "names = \"shown\""),
        None,
    );
    assert!(shown.contains("with this institution's name"), "{shown}");
    let plain = page(
        |text| {
            let text = text.replace("name = \"cs-rcfl\"", "name = \"fedavg\"");
            let own = ["coalitions = 2", "freeze = 1", "folds = 5"];
            let text = own.iter().fold(text, |text, line| text.replace(line, ""));
            text.replace("standardise = \"federation\"", "standardise = \"silo\"")
        },
        None,
    );
    assert!(!plain.contains("in the first round"), "{plain}");
    assert!(
        !plain.contains("the loss of every member's model"),
        "{plain}"
    );
    assert!(
        plain.contains("the number of rows that it was trained on"),
        "{plain}"
    );
    let personal = page(
        |text| text.replace("personal = []", "personal = [\"intercept\"]"),
        None,
    );
    assert!(
        personal.contains("the personal parts of the model: intercept"),
        "{personal}"
    );
}

/// The page of this text for an institution whose ledger has this room.
fn of(text: &str, room: Option<LedgerRoom>) -> Vec<String> {
    let agreement = North::read(text);
    let own = OwnSide {
        room,
        ..OwnSide::of_founder(&agreement)
    };
    disclosure(&agreement, &own)
}

/// Returns what a founder says in short, and what its officer reads.
fn in_short(text: &str) -> [Vec<String>; 2] {
    let agreement = North::read(text);
    let spending = OwnSide::of_founder(&agreement).spending.unwrap();
    [brief(&agreement, &spending), officer(&agreement, &spending)]
}

/// The example with noise, the sums of three authors or more, of whom one may pool.
fn noised(more: &str) -> String {
    North::noised(&format!(
        "epsilon = 1.0\nmin-authors = 3\ncolluders = 1\n{more}"
    ))
}

/// The example with a linear model that is solved from one differentially private sum.
fn once(more: &str) -> String {
    let keys = "mechanism = \"sufficient-statistics\"\nmax-row-norm = 2.0\nmax-target = 1.0\n";
    noised(&format!("{keys}{more}"))
        .replace("loss = \"absolute\"", "loss = \"squared\"")
        .replacen("rounds = 6", "rounds = 1", 1)
}

/// The text of two groups of the example's members.
fn two_groups() -> String {
    let group = |names: [&str; 3]| {
        let names = names.map(|name| format!("\"{name}\" = 1\n")).concat();
        format!("[[privacy.group]]\n{names}")
    };
    let groups = [
        group(["north", "south", "gone"]),
        group(["east", "west coast", "left"]),
    ];
    North::masked(&groups.concat())
}

fn has(page: &[String], said: &[&str]) {
    for said in said {
        let found = page.iter().any(|line| line.contains(said));
        assert!(found, "{said}:\n{}", page.join("\n"));
    }
}

fn has_not(page: &[String], said: &[&str]) {
    for said in said {
        let found = page.iter().any(|line| line.contains(said));
        assert!(!found, "{said}:\n{}", page.join("\n"));
    }
}

#[test]
fn the_page_states_whether_it_is_searched_who_corrupts_sums() {
    let searched = North::noised("epsilon = 1.0\nmin-authors = 2\ncolluders = 1\n");
    let two = "two sums, each of half of those that are ready";
    let three = "after three such rounds they end";
    has(&of(&searched, None), &[two]);
    has_not(&of(&searched, None), &[three]);
    has(&of(&noised(""), None), &[three]);
    has_not(&of(&noised(""), None), &[two]);
}

#[test]
fn every_sentence_is_stated_with_noise() {
    let page = of(&noised(""), None);
    // Two parts of the noise stay unknown: 3 − 1.
    has(
        &page,
        &[
            "in each of 6 rounds, one gradient of ",
            "the sum over its training rows, that of each row clipped to norm 1, with noise of its own, masked: to \
             every member it looks like random numbers, with this institution's name",
            "one sum a round of all institutions that are ready, of at least 3 institutions, once a quorum has \
             agreed",
            "It sends no loss, no metric, and no number of rows but the agreed one",
            "all 6 rounds together: epsilon 1.0000 and epsilon_alone 1.4652, both at delta 1e-5, for one row",
            "more than e^epsilon times as likely, except with probability about delta",
            "if all others collude, e^epsilon_alone times",
            "epsilon assumes that at most 1 member is curious and no two members collude. Nobody can check this assumption; \
             epsilon_alone holds without it",
            "a patient treated in two institutions counts twice",
            "a patient with several rows here counts once for each row",
            "the agreed numbers of rows (`rows` in [[member]]), and who takes part when, are public",
            "settings that were tuned on private rows",
            "which is not counted",
            "other federations that learn from the same rows add to it",
            "whoever gets the global model learns no more than the members",
            "on this machine's disk: the clipped gradients with their noise and the secret of the round under way",
            "Old pages of a disk, backups and snapshots keep what was deleted",
            masked::EXPERIMENTAL,
            "When it stops:",
            "after the 6 rounds that are agreed on, or before, when a limit of the institution's ledger",
            "whichever comes first",
            "from then on this node contributes nothing, but still votes",
            "Whether it is worth it:",
            "here 4 institutions with 480 rows in all",
            "only if that model is still better than one that this institution trains alone",
            "`rota advise` simulates such a federation with its noise on public or synthetic rows",
        ],
    );
    has_not(
        &page,
        &[
            "they give no bound on",
            "whoever receives a model sees all of it",
            "the ledger here",
        ],
    );
    let of_persons = noised("privacy-unit = { person = \"patient\" }").replacen(
        "split = { ",
        "split = { group = \"patient\", ",
        1,
    );
    let page = of(&of_persons, None);
    has(
        &page,
        &["for one person with all rows that have the same value in the column patient"],
    );
    has_not(&page, &["counts once for each row"]);
}

#[test]
fn a_model_solved_at_once_is_stated_with_the_bound_of_one_round() {
    let page = of(&once(""), None);
    has(
        &page,
        &[
            "in the only round, one list of ",
            "the sums over its training rows of the products of every two columns, and of every column with the \
             target, \
             each row shortened to norm 2 with a 1 for the intercept, each target brought within ±1, with noise",
            "one sum of all institutions that are ready, of at least 3 institutions, once a quorum has agreed on \
             exactly \
             these authors: every member, which solves the model from it",
            "the only round: epsilon 1.0000 and epsilon_alone 1.4652, both at delta 1e-5, for one row",
            "the sums of products with their noise and the secret of the round under way",
            "after the only round that is agreed on, or before",
        ],
    );
    has_not(&page, &["gradient", "a round of all", "1 rounds"]);
    has(
        &in_short(&once(""))[1],
        &["more than 2.8 (e^1.0000) times as likely, except with probability about 1 in 100,000"],
    );
    for page in statuses(&once("")) {
        has(
            &page,
            &[
                "and when, and one sum, with noise, of at least 3 institutions",
                "the only round: epsilon 1.0000 and epsilon_alone 1.4652",
                "if one institution is down, the round continues without it",
            ],
        );
    }
    let room = |fits| of(&once(""), Some(LedgerRoom { left: 1, fits }));
    has(
        &room(1),
        &["the ledger here has room for the round to come"],
    );
    has(
        &room(0),
        &["the ledger here has no room for the round to come"],
    );
    let persons = once("privacy-unit = { person = \"patient\" }").replacen(
        "split = { ",
        "split = { group = \"patient\", ",
        1,
    );
    has(
        &of(&persons, None),
        &["what all rows of a person add clipped to norm 4.47"],
    );
}

#[test]
fn what_the_own_ledger_has_room_for_is_stated() {
    let page = |left, fits| of(&noised(""), Some(LedgerRoom { left, fits }));
    has(
        &page(6, 2),
        &["the ledger here has room for 2 of the 6 rounds to come"],
    );
    has(
        &page(6, 6),
        &["the ledger here has room for all of the 6 rounds to come"],
    );
    // It is about noise: other modes have no such room.
    has_not(
        &of(&North::masked(""), None),
        &["When it stops", "Whether it is worth it"],
    );
}

const OFFICER: &str = "For the data protection officer:";

/// The paragraph for the officer.
fn officer_of(page: &[String]) -> Vec<&str> {
    let after = page.iter().skip_while(|line| *line != OFFICER).skip(1);
    after.map(|line| line.trim()).collect()
}

#[test]
fn the_paragraph_for_the_officer_has_the_federations_numbers() {
    let begin = "What leaves us in a round looks like random numbers to everybody. Only the sum over at least";
    let checked = "institutions is opened, and every member checks that before it helps.";
    let end = [
        "Who takes part, when, and with what weight, is known to all members.",
        "This is not a legal finding of anonymity. It does not cover what the results disclose about patients like \
         ours in general, nor our own copies and staff.",
    ];
    let expected = [
        format!("{begin} 3 {checked}"),
        "With or without one row, nothing that is published becomes more than 2.8 (e^1.0000) times as likely, \
         except with probability about 1 in 100,000, as long as at most 1 institution is curious and no two institutions \
         collude. If more do, masks hide nothing, and the factor is at most 4.4 (e^1.4652): epsilon is 1.0000, and \
         epsilon_alone is 1.4652."
            .into(),
        "A patient treated in two institutions counts twice.".into(),
        end[0].into(),
        end[1].into(),
    ];
    assert_eq!(officer_of(&of(&noised(""), None)), expected);
    // The officer also reads that no ledger counts, where a person wrote so.
    let agreement = North::read(&noised(""));
    let mut spending = OwnSide::of_founder(&agreement).spending.unwrap();
    spending.uncounted = true;
    has(
        &officer(&agreement, &spending),
        &["No ledger counts what we disclose: epsilon is that of this federation alone"],
    );
    // Without noise; of two groups the smaller one counts.
    for (text, fewest) in [(North::masked(""), 4), (two_groups(), 3)] {
        let expected = [
            format!("{begin} {fewest} {checked}"),
            "There is no noise, and so no bound on what all published results together tell about one patient. If \
             all other institutions of our group collude, they know our update."
                .into(),
            end[0].into(),
            end[1].into(),
        ];
        assert_eq!(officer_of(&of(&text, None)), expected);
    }
    let clear = of(EXAMPLE, None);
    let expected = [
        "What leaves us in a round is a model that was trained on our rows, and every member sees it.",
        "There is no noise, and so no bound on what all published results together tell about one patient.",
        "Who takes part, and when, is known to all members.",
        end[1],
    ];
    assert_eq!(officer_of(&clear), expected);
    has(
        &clear,
        &["nothing is added to hide single rows (no noise, no encrypted sums)"],
    );
}

/// Returns what a node says of itself under this agreement, as text and as a page.
fn statuses(text: &str) -> [Vec<String>; 2] {
    let status = Status {
        learned: in_short(text)[0].clone(),
        ..fixture::status()
    };
    let said = [status::text::text(&status), status::page::page(&status)];
    said.map(|said| said.lines().map(str::to_owned).collect())
}

#[test]
fn a_status_states_in_short_what_one_or_two_groups_disclose() {
    let of_sums = [
        "every member learns who takes part, and when, but no single institution's model",
        "sums hide the updates of institutions that are always there, and give no bound on what is learned about a \
         patient",
        masked::EXPERIMENTAL,
    ];
    for page in statuses(&North::masked("")) {
        has(&page, &["Disclosed to others"]);
        has(&page, &of_sums);
        has(
            &page,
            &[
                "every member learns one sum per round: that of east, north, south, west coast",
                "if one institution of east, north, south, west coast is down, their sum is not opened, and this \
                 group waits",
            ],
        );
    }
    for page in statuses(&two_groups()) {
        has(&page, &of_sums);
        for group in ["gone, north, south", "east, left, west coast"] {
            has(
                &page,
                &[
                    &format!("every member learns one sum per round: that of {group}"),
                    &format!("if one institution of {group} is down, their sum is not opened"),
                ],
            );
        }
    }
    for page in statuses(&noised("")) {
        has(
            &page,
            &[
                "every member learns who takes part, and when, and one sum a round, with noise, of at least 3 \
                 institutions",
                "all 6 rounds together: epsilon 1.0000 and epsilon_alone 1.4652, both at delta 1e-5, for one row",
                "if one institution is down, rounds continue without it, as long as at least 3 institutions are \
                 ready",
                masked::EXPERIMENTAL,
            ],
        );
        has_not(&page, &["no bound on what is learned about a patient"]);
    }
    for page in statuses(EXAMPLE) {
        has_not(&page, &["Disclosed to others"]);
    }
}

#[test]
fn no_text_has_epsilon_without_epsilon_alone_beside_it() {
    let room = |fits| Some(LedgerRoom { left: 6, fits });
    let mut named = 0;
    for page in [
        of(&noised(""), None),
        of(&noised(""), room(2)),
        of(&noised(""), room(6)),
        of(&once(""), None),
        of(&North::masked(""), None),
        of(&two_groups(), None),
        of(EXAMPLE, None),
        crate::federation::words(&North::read(&noised(""))),
        in_short(&noised("")).concat(),
        in_short(&once("")).concat(),
    ] {
        for line in page.iter().filter(|line| line.contains("epsilon")) {
            named += 1;
            assert!(line.contains("epsilon_alone"), "{line}");
            let without = line.replace("epsilon_alone", "");
            assert!(without.contains("epsilon"), "{line}");
        }
    }
    assert!(named >= 12, "{named}");
}

#[test]
fn the_agreement_as_text_has_the_same_page() {
    for text in [noised(""), once(""), North::masked(""), EXAMPLE.to_owned()] {
        let agreement = North::read(&text);
        let words = crate::federation::words(&agreement);
        let page = disclosure(&agreement, &OwnSide::default());
        assert!(words.windows(page.len()).any(|part| part == page));
    }
}

#[test]
fn every_page_states_that_no_bound_holds_for_an_unkeyed_split() {
    let agreement = North::read(&noised("").replacen(", keyed = true", "", 1));
    let page = disclosure(&agreement, &OwnSide::default());
    let [brief, officer] = in_short(&noised("").replacen(", keyed = true", "", 1));
    for said in [page, officer, brief] {
        has(
            &said,
            &["these numbers do not hold", "write `keyed = true`"],
        );
    }
    has_not(&of(&noised(""), None), &["do not hold"]);
}
