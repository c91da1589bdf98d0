//! Sums of several groups of sites, each opened by itself: what the total of all would hide, a group alone may show. The
//! rules hold for each group.

#![allow(clippy::unwrap_used)]

use super::attacks::{known, sites, unguarded};
use super::{AnswerRecord, AnswerRules, Broken, OpenedBefore};
use crate::kinds::describe::Describe;
use crate::table::RowTable;
use crate::tests::{near, words};
use crate::{FederatedQuestion, Kind, QuestionProgress, SiteRefusal};

/// Mean dose of the rows of two groups of two sites.
fn doses() -> FederatedQuestion {
    let kind = Describe {
        columns: words(&["dose"]),
        group: None,
    };
    FederatedQuestion {
        groups: 2,
        ..FederatedQuestion::new(Kind::Describe(kind), known())
    }
}

/// A site with the first rows of another one.
fn part(of: &RowTable, rows: usize) -> RowTable {
    let names: Vec<String> = of.names().map(str::to_owned).collect();
    names.iter().fold(RowTable::new(rows), |table, name| {
        let numbers: Vec<f64> = match of.cells(name) {
            Some(crate::table::CellColumn::Numbers(cells)) => {
                cells.iter().flatten().copied().collect()
            }
            other => panic!("{other:?}"),
        };
        table.with(name, &numbers[..rows])
    })
}

/// The first two sites are a group, in which the second one has so few rows; the other two are the other group.
fn grouped(few: usize) -> Vec<RowTable> {
    let mut sites = sites();
    sites[1] = part(&sites[1], few);
    sites
}

/// The check of the first site before the second round, with the counts of its group and so many numbers opened.
fn checked(sites: &[RowTable], numbers: u64, grouped: bool) -> Result<(), SiteRefusal> {
    let question = doses();
    let all = unguarded(&question, sites);
    let own = unguarded(&question, &sites[..2]);
    let before = OpenedBefore {
        numbers,
        group: grouped.then(|| own.counts.unwrap()),
    };
    AnswerRecord::default().check_round(
        &question,
        &sites[0],
        &AnswerRules::default(),
        &all.rounds[1].progress,
        before,
    )
}

#[test]
fn a_group_that_is_one_site_shows_what_the_total_hides() {
    let sites = grouped(3);
    // The sum of the group is in effect that of its first site.
    let sum = |sites: &[RowTable]| {
        let round = unguarded(&doses(), sites).rounds.swap_remove(1);
        round.sum.block("sum")[0]
    };
    let (group, alone) = (sum(&sites[..2]), sum(&sites[..1]));
    assert!((group - alone).abs() <= 3.0);
    near(sum(&sites), group + sum(&sites[2..]), 1e-6);
    // Of all rows it has a third, of its group nearly all.
    assert_eq!(checked(&sites, 4, false), Ok(()));
    let why = checked(&sites, 4, true).unwrap_err();
    assert!(
        matches!(why, SiteRefusal::Rule(Broken::Dominance("rows"))),
        "{why}"
    );
}

#[test]
fn numbers_are_set_against_the_unknowns_of_the_own_group() {
    // 50 unknowns in the group, a third of which may be opened, and 170 in all.
    let sites = grouped(50);
    for (numbers, refused) in [(13, false), (14, true)] {
        assert_eq!(checked(&sites, numbers, false), Ok(()), "{numbers}");
        let found = checked(&sites, numbers, true);
        let broken = matches!(found, Err(SiteRefusal::Rule(Broken::Numbers)));
        assert_eq!(broken, refused, "{numbers}: {found:?}");
    }
}

#[test]
fn a_group_below_the_limits_of_counts_stops_the_question() {
    let question = doses();
    let counts = |sites: &[RowTable]| {
        let layout = question.layout(&QuestionProgress::Counts).unwrap();
        let mut sum = vec![0; layout.len()];
        for site in sites {
            let own = question.answer(site, &QuestionProgress::Counts).unwrap();
            crate::add_words(&mut sum, &layout.encode(&own).unwrap());
        }
        sum
    };
    let few = [part(&sites()[0], 2), part(&sites()[1], 2)];
    assert_eq!(question.counts_of(&counts(&few)).unwrap().rows, 4.0);
    let why = question.check_group(&counts(&few)).unwrap_err().to_string();
    assert!(why.contains("fewer than 5"), "{why}");
    assert_eq!(question.check_group(&counts(&sites()[..2])), Ok(()));
    assert!(question.check_group(&[1, 2]).is_err());
}
