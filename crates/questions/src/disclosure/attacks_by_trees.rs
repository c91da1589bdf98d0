//! Attacks by the sums of boosted trees: each succeeds where its rule is not checked, and is refused by the rule.

#![allow(clippy::unwrap_used)]

use super::attacks::{breaks, guarded, known, records, sites, unguarded};
use super::{AnswerRecord, AnswerRules};
use crate::kinds::trees::Trees;
use crate::table::{CellColumn, RowTable};
use crate::tests::words;
use crate::{FederatedQuestion, Kind, QuestionMode};

/// Trees of the illness by age in two bins, below 96.5 years and above, dose and ward.
fn trees(count: usize, held_out: f64) -> FederatedQuestion {
    let kind = Trees {
        outcome: "ill = 1".to_owned(),
        columns: words(&["age", "dose", "ward"]),
        trees: count,
        depth: 2,
        rate: 0.1,
        lambda: 1.0,
        min_rows: 20,
        min_hessian: 1e-3,
        bins: 10,
        edges: [("age".to_owned(), vec![96.5])].into(),
        held_out,
    };
    FederatedQuestion::new(Kind::Trees(kind), known())
}

/// Rules that let many numbers pass.
fn generous() -> AnswerRules {
    AnswerRules {
        unknowns_per_number: 0.001,
        ..AnswerRules::default()
    }
}

fn cell(table: &RowTable, column: &str, row: usize) -> f64 {
    match table.cells(column) {
        Some(CellColumn::Numbers(cells)) => cells[row].unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bin_with_one_patient_tells_the_outcome() {
    let found = unguarded(&trees(20, 0.0), &sites());
    let [first, root] = [1, 2].map(|round| &found.rounds[round].sum);
    // The second bin of age has the oldest patient alone.
    assert_eq!(root.block("rows")[1], 1.0);
    let probability = first.one("outcomes") / first.block("rows")[0];
    let ill = probability - root.block("gradients")[1];
    assert!((ill - cell(&sites()[0], "ill", 17)).abs() < 1e-9, "{ill}");
    let mut records = records();
    let refused = guarded(
        &trees(20, 0.0),
        &sites(),
        &mut records,
        &AnswerRules::default(),
    );
    breaks(refused, "numbers");
    // Refused before more than counts is open.
    assert_eq!(records[0].answered[0].opened, 5);
}

#[test]
fn all_trees_are_counted_before_the_first_one_grows() {
    // Two nodes of 3 + 11 + 4 bins with three numbers each, a loss, and 5 + 3 + 1 numbers.
    let most = |count: u64| 5 + 3 + 1 + count * (2 * 18 * 3 + 1);
    // Of 180 rows of others with four columns.
    let rules = AnswerRules {
        unknowns_per_number: 179.9 * 4.0 / most(3) as f64,
        ..AnswerRules::default()
    };
    for (count, answered) in [(3, true), (4, false)] {
        let found = guarded(&trees(count, 0.0), &sites(), &mut records(), &rules);
        assert_eq!(found.is_ok(), answered, "{count} trees: {found:?}");
    }
}

#[test]
fn two_parts_of_held_out_rows_that_differ_in_few_are_refused() {
    let rules = generous();
    let mut records = records();
    assert!(guarded(&trees(1, 0.25), &sites(), &mut records, &rules).is_ok());
    breaks(
        guarded(&trees(1, 0.26), &sites(), &mut records, &rules),
        "pieces",
    );
}

/// Three sites: at the first one patient is above 96.5 years, at the others half of them.
fn few_old() -> Vec<RowTable> {
    let site = |number: usize| {
        let column = |of: &dyn Fn(usize) -> f64| (0..60).map(of).collect::<Vec<f64>>();
        let old = move |row: usize| row == 9 || number > 0 && row.is_multiple_of(2);
        RowTable::new(60)
            .with("age", &column(&|row| if old(row) { 97.0 } else { 60.0 }))
            .with("dose", &column(&|row| (row % 10) as f64))
            .with(
                "ill",
                &column(&|row| f64::from(u8::from(old(row) && row % 7 > 0))),
            )
            .with("ward", &column(&|row| (row % 3) as f64))
    };
    (0..3).map(site).collect()
}

#[test]
fn a_node_with_one_row_of_a_site_shows_the_row_in_clear() {
    let question = FederatedQuestion {
        mode: QuestionMode::Clear,
        ..trees(1, 0.0)
    };
    let sites = few_old();
    let found = unguarded(&question, &sites);
    // The second level asks for the node above 96.5 years, which has fewer rows.
    let round = &found.rounds[3];
    let own = question.answer(&sites[0], &round.progress).unwrap();
    let shown = round.layout.opened(own);
    let rows = shown.block("rows");
    let bins: Vec<usize> = (0..rows.len()).filter(|bin| rows[*bin] == 1.0).collect();
    // Its bins of age, dose and ward: 9 of 10, and 9 modulo 3.
    assert_eq!(bins, [1, 3 + 9, 3 + 11]);
    assert!(shown.block("gradients")[1] < 0.0, "it is ill");
    let fresh = || vec![AnswerRecord::default(); 3];
    breaks(
        guarded(&question, &sites, &mut fresh(), &generous()),
        "clear",
    );
    let masked = FederatedQuestion {
        mode: QuestionMode::Masked,
        ..question
    };
    assert!(guarded(&masked, &sites, &mut fresh(), &generous()).is_ok());
}
