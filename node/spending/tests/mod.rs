//! Whatever happens to a federation, every page and the ledger say the same.
#![allow(clippy::unwrap_used)]

mod institution;

use agreement::Agreement;
use protocol::MemberIndex;

use crate::fixture::{North, key};
use institution::PlayedInstitution;

/// An agreement on so many rounds with this noise.
fn noised(rounds: u64, z: &str) -> String {
    let text = North::noised(&format!(
        "noise-multiplier = {z}\nmin-authors = 3\ncolluders = 1\n"
    ));
    shortened(&text, rounds)
}

/// The same without noise: with masks, or in clear.
fn without_noise(rounds: u64, masked: bool) -> String {
    let text = noised(rounds, "20.0");
    let (head, rest) = text.split_once("\n[privacy]\n").unwrap();
    let (_, members) = rest.split_once("[[member]]").unwrap();
    let table = if masked {
        "\n[privacy]\nmode = \"secure-aggregation\"\n\n"
    } else {
        "\n"
    };
    format!("{head}{table}[[member]]{members}")
}

/// Rounds, and no list of domains, which has to fit the number of members.
fn shortened(text: &str, rounds: u64) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("domains"));
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replacen("rounds = 6 ", &format!("rounds = {rounds} "), 1)
}

#[test]
fn a_federation_that_nothing_happens_to_has_the_agreed_rounds() {
    let mut played = PlayedInstitution::of(&noised(3, "20.0"));
    let first = played.agree("all 3 rounds together");
    for _ in 1..=3 {
        played.round(true);
        assert_eq!(played.agree("all 3 rounds together"), first);
    }
    assert_eq!(played.last_line(), first);
}

#[test]
fn more_rounds_with_other_noise_add_to_earlier_privacy_loss() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    for _ in 1..=4 {
        played.round(true);
    }
    // The fifth is under way when the change comes into force, and done again.
    played.prepare();
    let before = played.agree("all 8 rounds together");
    let proposed = played.proposed(&noised(8, "10.0"));
    played.change(&noised(8, "10.0"));
    let said = "5 contributions so far (5 of them before the last change of the agreement) and the 4 rounds to come \
                together";
    let now = played.agree(said);
    assert_eq!(proposed, now);
    assert!(now.0.parse::<f64>().unwrap() > before.0.parse::<f64>().unwrap());
    played.has("the 4 rounds to come alone: epsilon ");
    for _ in 5..=8 {
        played.round(true);
        played.agree("together");
    }
    assert_eq!(played.agree("9 contributions so far"), now);
    assert_eq!(played.last_line(), now);
}

#[test]
fn fewer_rounds_and_rounds_without_the_institution_cost_less() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    let agreed = played.agree("all 8 rounds together");
    played.round(true);
    played.round(false);
    played.round(true);
    let less = played.agree("2 contributions so far and the 5 rounds to come together");
    assert_ne!(less, agreed);
    played.change(&noised(4, "20.0"));
    played.agree("2 contributions so far (2 of them before the last change of the agreement) and the round to come");
    played.round(true);
    assert_eq!(played.agree("3 contributions so far"), played.last_line());
}

/// The same with a fifth member.
fn of_five(rounds: u64) -> String {
    let four = Agreement::parse("f.toml", &noised(rounds, "20.0")).unwrap();
    four.admitting("fifth", key(40).public(), Some(120), Vec::new())
        .unwrap()
}

#[test]
fn rounds_aborted_or_repeated_by_a_recovery_count_twice() {
    let mut played = PlayedInstitution::of(&of_five(6));
    for _ in 1..=3 {
        played.round(true);
    }
    // All give the third round up: nobody is lost.
    played.recovers(&[], 2);
    let again = played.agree(
        "3 contributions so far (3 of them before the last change of the agreement) and the 4 \
                              rounds to come together",
    );
    played.round(true);
    assert_eq!(played.agree("together"), again);
    // One is gone for good, and with it the outcome of two rounds.
    played.round(true);
    played.round(true);
    played.prepare();
    played.recovers(&[MemberIndex(4)], 3);
    let twice = played.agree("7 contributions so far");
    assert_ne!(twice, again);
    for _ in 4..=6 {
        played.round(true);
    }
    assert_eq!(played.agree("10 contributions so far"), twice);
    assert_eq!(played.last_line(), twice);
}

#[test]
fn members_that_come_and_go_change_only_the_repeated_rounds() {
    let five = of_five(6);
    let mut played = PlayedInstitution::of(&noised(6, "20.0"));
    played.round(true);
    played.change(&five);
    played.agree("1 contribution so far");
    played.round(true);
    let without = Agreement::parse("f.toml", &five)
        .unwrap()
        .without("south")
        .unwrap();
    played.change(&without);
    let all =
        played.agree("2 contributions so far (2 of them before the last change of the agreement)");
    for _ in 3..=6 {
        played.round(true);
    }
    assert_eq!(played.agree("6 contributions so far"), all);
    assert_eq!(played.last_line(), all);
}

#[test]
fn a_newcomer_counts_from_the_round_in_which_it_joined() {
    let first = noised(6, "20.0").replacen("name = \"north\"", "name = \"elder\"", 1);
    let first = first.replace(&key(9).public().to_string(), &key(41).public().to_string());
    let joined = Agreement::parse("f.toml", &first).unwrap();
    let joined = joined
        .admitting("north", key(9).public(), Some(120), Vec::new())
        .unwrap();
    let mut played = PlayedInstitution::of(&first);
    played.round(false);
    played.round(false);
    played.change(&joined);
    let all = played.agree("the 4 rounds to come: epsilon ");
    for _ in 3..=6 {
        played.round(true);
    }
    assert_eq!(played.agree("4 contributions so far together"), all);
    assert_eq!(played.last_line(), all);
}

#[test]
fn a_key_that_was_replaced_is_the_same_institution() {
    let old =
        noised(6, "20.0").replace(&key(9).public().to_string(), &key(42).public().to_string());
    let mut played = PlayedInstitution::of(&old);
    played.round(true);
    played.round(true);
    played.change(&noised(6, "20.0"));
    played.agree("2 contributions so far (2 of them before the last change of the agreement) and the 4 rounds to");
}

#[test]
fn noise_after_rounds_in_clear_or_with_masks_alone_has_no_bound() {
    for masked in [false, true] {
        let mut played = PlayedInstitution::of(&without_noise(6, masked));
        played.round(true);
        played.round(true);
        played.change(&noised(6, "20.0"));
        assert_eq!(
            played
                .agree("no bound for one row, because 2 contributions so far had no noise")
                .0,
            "no bound"
        );
        played.has("the 4 rounds to come alone: epsilon ");
        played.has("There is no bound on what all published results together tell about one row, because 2");
        played.has("Of the rounds to come alone: with or without one row, nothing that is published becomes more");
        played.round(true);
        played.agree("no bound for one row");
        assert_eq!(
            played.last_line(),
            ("no bound".to_owned(), "no bound".to_owned())
        );
        played.never(&["inf", "NaN", "e^no bound", "epsilon 0"]);
    }
}

#[test]
fn a_ledger_that_was_made_after_rounds_in_clear_is_contradicted() {
    let mut played = PlayedInstitution::of(&without_noise(6, false));
    played.without_ledger();
    played.round(true);
    played.change(&noised(6, "20.0"));
    played.with_ledger();
    played.round(true);
    let pages = played.pages();
    // The second round was under way when the change came into force.
    for page in &pages {
        assert!(
            page.contains("no bound for one row, because 2 contributions so far had no noise"),
            "{page}"
        );
    }
    assert!(
        pages[0].contains(
            "the ledger here has no line of 2 contributions of these, so what it says is too little"
        ),
        "{}",
        pages[0]
    );
}

#[test]
fn what_a_federation_continues_counts_where_the_ledger_has_it() {
    let continues = |earlier: &PlayedInstitution| {
        let of = format!("{:#}", earlier.federation());
        let hash = "ab".repeat(32);
        noised(4, "20.0").replacen(
            "[protocol]",
            &format!(
                "[continues]\nname = \"stays before\"\nfederation = \"{of}\"\nround = 3\nblock = \"{hash}\"\nmodel = \
                 \"{hash}\"\n\n[protocol]"
            ),
            1,
        )
    };
    let mut earlier = PlayedInstitution::of(&noised(3, "10.0"));
    for _ in 1..=3 {
        earlier.round(true);
    }
    let text = continues(&earlier);
    let mut played = earlier.continued_by(&text);
    let all = played.agree("3 contributions so far (3 of them to an earlier federation) and the 4");
    played.has(
        "among them are 3 contributions to the federation stays before, which this one continues",
    );
    // A federation before that one is in the ledger only, which the pages have beside it.
    for page in played.pages() {
        for said in [
            "what that one continued itself, if it did, is",
            "over all federations of these rows: epsilon ",
        ] {
            assert!(page.contains(said), "{said}: {page}");
        }
    }
    played.has("Our ledger counts all federations that learn from these rows: epsilon ");
    for _ in 1..=4 {
        played.round(true);
    }
    assert_eq!(played.agree("7 contributions so far"), all);
    assert_eq!(played.last_line(), all);
    // Without a ledger, and with one that knows nothing of it, what it told is beside the numbers.
    let mut alone = PlayedInstitution::of(&text);
    alone.agree("all 4 rounds together");
    alone.has("this is beside what the federation stays before, which this one continues, told of rows here: the ledger");
    alone.has("What the federation stays before told of our rows before is not counted.");
    alone.without_ledger();
    alone.has("told of rows here: only a ledger of these rows counts it");
}

#[test]
fn without_a_ledger_what_cannot_be_excluded_counts() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    played.round(true);
    played.round(true);
    played.change(&noised(8, "10.0"));
    let known = played.agree("2 contributions so far");
    played.without_ledger();
    let most = played.numbers(
        "at most 3 contributions so far (3 of them before the last change of the agreement)",
    );
    assert!(most.0.parse::<f64>().unwrap() > known.0.parse::<f64>().unwrap());
}

#[test]
fn an_absent_institution_may_have_prepared_the_current_round() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    played.without_ledger();
    played.round(false);
    played.change(&noised(8, "10.0"));
    played.numbers(
        "at most 1 contribution so far (1 of them before the last change of the agreement)",
    );
}

#[test]
fn what_precedes_the_first_line_of_a_ledger_counts_as_without() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    played.without_ledger();
    for _ in 1..=3 {
        played.round(true);
    }
    played.forgets(2);
    played.with_ledger();
    played.round(true);
    played.numbers("at most 4 contributions so far and the 4 rounds to come together");
    // Since that line the ledger knows better than the blocks that are missing.
    played.round(false);
    played.round(true);
    played.forgets(5);
    played.numbers("at most 5 contributions so far and the 2 rounds to come together");
    // So with the round that was under way when a change came into force.
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    played.without_ledger();
    played.round(true);
    played.round(true);
    played.prepare();
    played.change(&noised(8, "10.0"));
    played.with_ledger();
    played.round(true);
    let said = "at most 4 contributions so far (3 of them before the last change of the agreement)";
    played.numbers(said);
}

#[test]
fn a_ledger_from_the_start_shows_that_nothing_was_contributed() {
    let mut played = PlayedInstitution::of(&noised(8, "20.0"));
    played.round(false);
    played.change(&noised(8, "10.0"));
    played.agree("the 7 rounds to come: epsilon ");
}

#[test]
fn a_file_alone_counts_the_rounds_of_its_agreement() {
    let agreement = Agreement::parse("f.toml", &noised(6, "20.0")).unwrap();
    let page = crate::federation::words(&agreement).join("\n");
    assert!(page.contains("all 6 rounds together: epsilon "), "{page}");
    assert!(
        page.contains("these are the rounds under this agreement only"),
        "{page}"
    );
    assert!(
        page.contains("These are the rounds under this agreement only."),
        "{page}"
    );
}
