//! Attacks on sums of losses and estimates of the sites: each succeeds where its rule is not checked, and is refused by the
//! rule.

#![allow(clippy::unwrap_used)]

use super::attacks::{breaks, guarded, unguarded};
use super::{AnswerRecord, AnswerRules};
use crate::kinds::baselines::Baselines;
use crate::kinds::meta::{Meta, SiteEffect};
use crate::table::RowTable;
use crate::tests::baselines::{synthetic, synthetic_ranges};
use crate::tests::{near, words};
use crate::{FederatedQuestion, Kind, QuestionProgress};

fn losses() -> FederatedQuestion {
    losses_of("ill = 1")
}

fn losses_of(outcome: &str) -> FederatedQuestion {
    let kind = Baselines {
        outcome: outcome.to_owned(),
        terms: words(&["dose", "size"]),
        folds: 5,
        ridge: 1.0,
    };
    FederatedQuestion::new(Kind::Baselines(kind), synthetic_ranges())
}

/// Sites that differ in how the outcome depends on the terms.
fn sites(count: usize) -> Vec<RowTable> {
    synthetic(count, 90, |site| 1.0 - 0.3 * site as f64)
}

fn fresh(count: usize) -> Vec<AnswerRecord> {
    vec![AnswerRecord::default(); count]
}

/// A site's own losses in the last round: constant, model, global constant, global model.
fn own(question: &FederatedQuestion, table: &RowTable, progress: &QuestionProgress) -> Vec<f64> {
    let layout = question.layout(progress).unwrap();
    let numbers = question.answer(table, progress).unwrap();
    layout.opened(numbers).block("losses").to_vec()
}

#[test]
fn one_of_three_sites_solves_the_sums_for_the_others_gains() {
    let (question, sites) = (losses(), sites(3));
    let found = unguarded(&question, &sites);
    let last = found.rounds.last().unwrap();
    let each: Vec<Vec<f64>> = sites
        .iter()
        .map(|site| own(&question, site, &last.progress))
        .collect();
    let gains: Vec<f64> = each.iter().map(|losses| losses[1] - losses[3]).collect();
    // What the first site knows: the sums and its own losses.
    let sums = last.sum.block("losses");
    let first = sums[1] - sums[3] - gains[0];
    let second = last.sum.one("squared gains") - gains[0] * gains[0];
    let apart = (2.0 * second - first * first).sqrt();
    let mut solved = [0.5 * (first - apart), 0.5 * (first + apart)];
    let mut others = [gains[1], gains[2]];
    solved.sort_by(f64::total_cmp);
    others.sort_by(f64::total_cmp);
    assert!(others[1] - others[0] > 0.01, "{others:?}");
    near(solved[0], others[0], 1e-6);
    near(solved[1], others[1], 1e-6);
    let rules = AnswerRules::default();
    let refused = guarded(&question, &sites, &mut fresh(3), &rules);
    breaks(refused, "numbers");
}

#[test]
fn eight_sites_are_enough_and_seven_are_not() {
    let rules = AnswerRules::default();
    for (count, answered) in [(7, false), (8, true)] {
        let mut records = fresh(count);
        let found = guarded(&losses(), &sites(count), &mut records, &rules);
        assert_eq!(found.is_ok(), answered, "{count}: {found:?}");
        // Refused before more than counts is open: sites, rows, complete, outside, events.
        if !answered {
            assert_eq!(records[0].answered[0].opened, 5);
        }
    }
    assert_eq!(losses().too_few_sites(8), None);
    let why = losses().too_few_sites(7).unwrap();
    assert!(why.contains("needs 8 sites or more"), "{why}");
}

/// Sites with a column of their numbers, by which a filter keeps some of them.
fn named(count: usize) -> Vec<RowTable> {
    let sites = sites(count).into_iter().enumerate();
    sites
        .map(|(at, site)| {
            let name = vec![at as f64; site.rows()];
            site.with("place", &name)
        })
        .collect()
}

fn filtered(filter: &str) -> FederatedQuestion {
    FederatedQuestion {
        filter: vec![filter.parse().unwrap()],
        ..losses()
    }
}

#[test]
fn a_filter_that_leaves_one_site_tells_its_losses() {
    // Every site answers, and two of them have rows.
    let (question, sites) = (filtered("place < 2"), named(9));
    let found = unguarded(&question, &sites);
    let last = found.rounds.last().unwrap();
    let other = own(&question, &sites[1], &last.progress);
    let mine = own(&question, &sites[0], &last.progress);
    for (at, sum) in last.sum.block("losses").iter().enumerate() {
        near(sum - mine[at], other[at], 1e-6);
    }
    // The rule about sums over rows lets it pass.
    let rules = AnswerRules {
        unknowns_per_number: 0.01,
        ..AnswerRules::default()
    };
    let mut records = fresh(9);
    let refused = guarded(&question, &sites, &mut records, &rules);
    breaks(refused, "numbers");
    let fits = found.rounds.iter().map(|round| round.layout.len() as u64);
    let losses = last.layout.len() as u64;
    assert_eq!(records[0].answered[0].opened, fits.sum::<u64>() - losses);
}

/// Checks that the sums of two questions, of which the second one leaves out the ninth site, tell what its local constant
/// and model lose: it is the difference.
fn tell_the_ninth(all: &FederatedQuestion, fewer: &FederatedQuestion, sites: &[RowTable]) {
    let [whole, part] = [all, fewer].map(|question| unguarded(question, sites));
    let [whole, part] = [&whole, &part].map(|found| found.rounds.last().unwrap());
    let ninth = own(all, &sites[8], &whole.progress);
    for (at, ninth) in ninth.iter().enumerate().take(2) {
        let [sum, less] = [whole, part].map(|round| round.sum.block("losses")[at]);
        near(sum - less, *ninth, 1e-6);
    }
}

#[test]
fn two_filters_that_differ_in_one_site_tell_its_losses() {
    let (all, fewer, sites) = (losses(), filtered("place < 8"), named(9));
    tell_the_ninth(&all, &fewer, &sites);
    let rules = AnswerRules::default();
    let mut records = fresh(9);
    assert!(guarded(&all, &sites, &mut records, &rules).is_ok());
    breaks(guarded(&fewer, &sites, &mut records, &rules), "numbers");
}

#[test]
fn an_outcome_in_other_words_tells_the_losses_of_a_site() {
    let (all, sites) = (losses(), named(9));
    let fewer = FederatedQuestion {
        kind: losses_of("ill > 0").kind,
        ..filtered("place < 8")
    };
    tell_the_ninth(&all, &fewer, &sites);
    let rules = AnswerRules::default();
    let mut records = fresh(9);
    assert!(guarded(&all, &sites, &mut records, &rules).is_ok());
    breaks(guarded(&fewer, &sites, &mut records, &rules), "numbers");
    // Refused before more than counts is open: sites, rows, complete, outside, events.
    assert_eq!(records[0].answered[1].opened, 5);
}

/// A meta-analysis of the mean dose, of the rows that a filter keeps.
fn means(filter: &[&str]) -> FederatedQuestion {
    let effect = SiteEffect::Mean {
        column: "dose".to_owned(),
    };
    let kind = Meta {
        effect,
        reml: false,
    };
    let filter = filter.iter().map(|text| text.parse().unwrap()).collect();
    FederatedQuestion {
        filter,
        ..FederatedQuestion::new(Kind::Meta(kind), synthetic_ranges())
    }
}

/// Weight and weighted estimate, which a site adds to the first sums of a meta-analysis.
fn weighted(
    question: &FederatedQuestion,
    table: &RowTable,
    progress: &QuestionProgress,
) -> [f64; 2] {
    let layout = question.layout(progress).unwrap();
    let own = layout.opened(question.answer(table, progress).unwrap());
    ["weights", "weighted"].map(|block| own.one(block))
}

#[test]
fn a_filter_that_leaves_two_of_fifteen_sites_tells_an_estimate() {
    let (question, sites) = (means(&["place < 2"]), named(15));
    let found = unguarded(&question, &sites);
    assert_eq!(found.counts.as_ref().unwrap().told, Some(2.0));
    let round = &found.rounds[1];
    let [mine, other] = [0, 1].map(|at| weighted(&question, &sites[at], &round.progress));
    for (at, block) in ["weights", "weighted"].iter().enumerate() {
        near(round.sum.one(block) - mine[at], other[at], 1e-6);
    }
    let mut records = fresh(15);
    let refused = guarded(&question, &sites, &mut records, &AnswerRules::default());
    breaks(refused, "numbers");
    // Refused before more than counts is open: sites, rows, complete, outside, told.
    assert_eq!(records[0].answered[0].opened, 5);
}

#[test]
fn two_meta_analyses_that_differ_in_one_site_tell_its_estimate() {
    let (all, fewer, sites) = (means(&[]), means(&["place < 14"]), named(15));
    let [whole, part] = [&all, &fewer].map(|question| unguarded(question, &sites));
    let last = weighted(&all, &sites[14], &whole.rounds[1].progress);
    for (at, block) in ["weights", "weighted"].iter().enumerate() {
        let [sum, less] = [&whole, &part].map(|found| found.rounds[1].sum.one(block));
        near(sum - less, last[at], 1e-6);
    }
    let rules = AnswerRules::default();
    let mut records = fresh(15);
    assert!(guarded(&all, &sites, &mut records, &rules).is_ok());
    breaks(guarded(&fewer, &sites, &mut records, &rules), "numbers");
}

#[test]
fn an_effect_in_other_words_tells_the_estimate_of_a_site() {
    let difference = |between: &str| {
        let effect = SiteEffect::Difference {
            column: "dose".to_owned(),
            between: between.to_owned(),
        };
        let reml = false;
        Kind::Meta(Meta { effect, reml })
    };
    let of = |between: &str, filter: &[&str]| FederatedQuestion {
        kind: difference(between),
        ..means(filter)
    };
    // The other way round: every estimate has the other sign.
    let (all, fewer) = (of("ill = 1", &[]), of("ill = 0", &["place < 14"]));
    let sites = named(15);
    let [whole, part] = [&all, &fewer].map(|question| unguarded(question, &sites));
    let last = weighted(&all, &sites[14], &whole.rounds[1].progress);
    let weighted = |found: &crate::AskedQuestion| found.rounds[1].sum.one("weighted");
    near(weighted(&whole) + weighted(&part), last[1], 1e-5);
    let rules = AnswerRules::default();
    let mut records = fresh(15);
    assert!(guarded(&all, &sites, &mut records, &rules).is_ok());
    breaks(guarded(&fewer, &sites, &mut records, &rules), "numbers");
    assert_eq!(records[0].answered[1].opened, 5);
}
