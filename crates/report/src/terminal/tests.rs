//! The report on the terminal, as a person sees it.

#![allow(clippy::unwrap_used)]
use super::*;
use crate::fixture;

fn text(story: &Story, colour: bool) -> String {
    let mut out = Vec::new();
    write(&mut out, story, colour).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_report_has_leads_failed_views_reasons_and_hand_overs() {
    let text = text(&fixture::story(8, 2, 4), false);
    for part in [
        "a federation of 8 silos, strategy cs-rcfl, 4 rounds, seed 7",
        "nullified after 2.0 s: the lead was silent",
        "left-out-reason",
        "took over round 2 from",
        "A    4 silos",
        "refused-reason",
        "charge-text",
        "cache     off",
        "safety    S1–S9 held after each of 54,321 events",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
}

#[test]
fn the_result_in_a_sentence_stands_above_the_table() {
    let story = fixture::story(8, 2, 4);
    let text = text(&story, false);
    let first = statements(&story, &ComparisonTable::of(&story)).swap_remove(0);
    let place = |part: &str| text.find(part).unwrap();
    let begin: String = first.chars().take(30).collect();
    assert_eq!(text.matches(&begin).count(), 1, "{text}");
    assert!(place(&begin) < place("On held-out rows: "), "{text}");
}

#[test]
fn lines_have_at_most_a_hundred_columns_and_no_default_colour() {
    for silos in [1, 8, 100] {
        let mut story = fixture::story(silos, 3.min(silos), 40);
        story.silos[0].name = "a hospital with a name that goes on and on for no reason".into();
        story.silos[0].samples = 1_234_567;
        let text = text(&story, false);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert!(!line.contains('\u{1b}'));
        }
    }
}

#[test]
fn only_the_best_values_are_coloured() {
    let story = fixture::story(4, 2, 2);
    let comparison = ComparisonTable::of(&story);
    let rows = comparison.rows.iter();
    let rows = rows.chain([&comparison.means, &comparison.row_means]);
    let best = rows.flatten().flatten().filter(|cell| cell.best).count();
    assert!(best >= 1);
    assert_eq!(text(&story, true).matches("\u{1b}[1;32m").count(), best);
}

#[test]
fn an_empty_federation_has_a_report_without_a_table() {
    let mut story = fixture::story(1, 1, 1);
    story.silos.clear();
    story.rounds.clear();
    story.timeline.clear();
    assert!(text(&story, false).contains("Nothing was measured"));
}
