#![allow(clippy::unwrap_used)]

use crate::table::RowTable;
use crate::{
    AgreedColumns, AskedNothing, AskedQuestion, FederatedQuestion, Kind, Outcome, QuestionRules,
    QuestionStopped, ask,
};

pub(crate) mod baselines;
mod data;
mod hard;
mod heart;
mod mixed;
mod properties;
pub(crate) mod small;
mod tcga;
mod trees;
mod trees_of_levels;

/// No limits of counts, for methods on few rows.
pub(crate) const WITHOUT_LIMITS: QuestionRules = QuestionRules {
    smallest_cell: 1,
    rows_per_coefficient: 1,
    events_per_coefficient: 0,
    colluders: 0,
};

/// The whole question with the tables of all sites, without what sites check.
pub(crate) fn asked(question: &FederatedQuestion, sites: &[RowTable]) -> AskedQuestion {
    let asked = ask(question, sites, |_, _, _| Ok(())).unwrap();
    assert!(asked.rounds.len() as u64 <= question.most_rounds());
    let lengths = asked.rounds.iter().map(|round| round.layout.len());
    assert!(lengths.max().unwrap_or(0) <= question.largest_sum());
    asked
}

/// The answer to a question of this kind, with these agreed ranges and without limits of counts.
pub(crate) fn answer(kind: Kind, agreed: &AgreedColumns, sites: &[RowTable]) -> Outcome {
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(kind, agreed.clone())
    };
    asked(&question, sites).end.unwrap()
}

/// Returns the reason for which there is no answer.
pub(crate) fn stopped(kind: Kind, agreed: &AgreedColumns, sites: &[RowTable]) -> QuestionStopped {
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(kind, agreed.clone())
    };
    match asked(&question, sites).end {
        Err(AskedNothing::Stopped(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Agreed ranges and levels.
pub(crate) fn agreed(ranges: &[(&str, [f64; 2])], levels: &[(&str, &[&str])]) -> AgreedColumns {
    let words = |levels: &&[&str]| levels.iter().map(|level| (*level).to_owned()).collect();
    AgreedColumns {
        ranges: ranges
            .iter()
            .map(|(name, range)| ((*name).to_owned(), *range))
            .collect(),
        levels: levels
            .iter()
            .map(|(name, levels)| ((*name).to_owned(), words(levels)))
            .collect(),
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Compares with a known answer.
#[track_caller]
pub(crate) fn near(found: f64, expected: f64, relative: f64) {
    let near = (found - expected).abs() <= relative * expected.abs().max(1e-3);
    assert!(near, "{found} is not {expected} within {relative}");
}
