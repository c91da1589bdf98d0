//! No row passes the norm that noise is scaled to.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::*;
use crate::kinds::TimeGrid;
use crate::kinds::correlate::Correlate;
use crate::kinds::crosstab::Crosstab;
use crate::kinds::describe::Describe;
use crate::kinds::glm::Glm;
use crate::kinds::km::Km;
use crate::kinds::logrank::{Logrank, LogrankOutcome};
use crate::table::CellColumn;
use crate::tests::{WITHOUT_LIMITS, agreed, near, words};
use crate::{FirstCounts, KindProgress, Outcome, QuestionStopped, Step, ask};

/// Numbers that are drawn (SplitMix64), for noise and rows of tests.
pub(crate) struct DrawnNormals(pub(crate) u64);

impl DrawnNormals {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ word >> 31) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A normal number of mean 0 and variance 1.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(1.0 - self.uniform())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

/// Noise of this multiplier, shared by two of three authors.
pub(crate) fn noise_of(multiplier: f64) -> SumNoise {
    SumNoise {
        multiplier,
        min_authors: 3,
        colluders: 1,
    }
}

/// The least noise that can be agreed on.
pub(crate) fn nearly_none() -> SumNoise {
    SumNoise {
        colluders: 0,
        ..noise_of(1.0 / 128.0)
    }
}

/// Two hundred rows, some of which lack a value or are out of range.
fn table() -> RowTable {
    let numbers =
        |of: &dyn Fn(usize) -> Option<f64>| CellColumn::Numbers((0..200).map(of).collect());
    let mut table = RowTable::new(200);
    table.insert(
        "age",
        numbers(&|at| (at % 17 != 0).then_some(20.0 + (at % 90) as f64)),
    );
    table.insert("months", numbers(&|at| Some((at % 50) as f64)));
    table.insert("status", numbers(&|at| Some((at % 3 / 2) as f64)));
    let word = |at: usize| Some(["a", "b", "c"][at % 3].to_owned());
    table.insert("arm", CellColumn::Words((0..200).map(word).collect()));
    table.insert(
        "stage",
        CellColumn::Words((0..200).map(|at| word(at / 7)).collect()),
    );
    table
}

fn kinds() -> Vec<Kind> {
    let group = || Some("arm".to_owned());
    vec![
        Kind::Describe(Describe {
            columns: vec!["age".to_owned(), "months".to_owned()],
            group: group(),
        }),
        Kind::Crosstab(Crosstab {
            rows: "arm".to_owned(),
            columns: "stage".to_owned(),
        }),
        Kind::Km(Km {
            time: "months".to_owned(),
            event: "status > 0".to_owned(),
            causes: 1,
            grid: TimeGrid {
                step: 6.0,
                cells: 10,
            },
            group: group(),
        }),
        Kind::Logrank(Logrank {
            time: "months".to_owned(),
            event: "status > 0".to_owned(),
            group: "arm".to_owned(),
            grid: Some(TimeGrid {
                step: 6.0,
                cells: 6,
            }),
        }),
        Kind::Correlate(Correlate {
            columns: words(&["age", "months", "arm = a"]),
        }),
        Kind::Glm(regression("gaussian", "age", "months")),
        Kind::Glm(regression("binomial", "status > 0", "age")),
    ]
}

fn regression(family: &str, outcome: &str, term: &str) -> Glm {
    let text =
        format!(r#"{{"family":"{family}","outcome":"{outcome}","terms":["{term}","stage = a"]}}"#);
    serde_json::from_str(&text).unwrap()
}

fn question(kind: Kind) -> FederatedQuestion {
    let levels: &[&str] = &["a", "b", "c"];
    let agreed = agreed(
        &[("age", [0.0, 100.0]), ("months", [0.0, 49.0])],
        &[("arm", levels), ("stage", levels)],
    );
    FederatedQuestion {
        mode: QuestionMode::Noised,
        noise: Some(nearly_none()),
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(kind, agreed)
    }
}

/// The rounds of a question about the table, as it is asked of one site.
fn rounds(question: &FederatedQuestion) -> Vec<QuestionProgress> {
    let asked = ask(question, &[table()], |_, _, _| Ok(())).unwrap();
    assert!(asked.end.is_ok(), "{:?}", asked.end);
    assert_eq!(asked.rounds.len() as u64, question.most_rounds());
    asked
        .rounds
        .into_iter()
        .map(|round| round.progress)
        .collect()
}

#[test]
fn rows_add_up_to_the_answer_and_none_exceeds_its_bound() {
    for kind in kinds() {
        let question = question(kind);
        for progress in rounds(&question) {
            let norm = question.row_norm(&progress).unwrap();
            let mut sum = vec![0.0; question.layout(&progress).unwrap().len()];
            let (mut rows, mut longest) = (0, 0f64);
            let mut each = |numbers: &[f64]| {
                rows += 1;
                let pairs = sum.iter_mut().zip(numbers);
                pairs.for_each(|(sum, number)| *sum += number);
                let squares: f64 = numbers.iter().map(|number| number * number).sum();
                longest = longest.max(squares.sqrt());
            };
            question
                .row_numbers(&table(), &progress, &mut each)
                .unwrap();
            let mut whole = question.answer(&table(), &progress).unwrap();
            if progress == QuestionProgress::Counts {
                whole[0] = 0.0;
            }
            let kind = question.kind.name();
            for (sum, whole) in sum.iter().zip(&whole) {
                assert!((sum - whole).abs() < 1e-9, "{kind}: {sum} and {whole}");
            }
            assert_eq!(rows, 200);
            assert!(longest <= norm + 1e-12, "{kind}: {longest} beyond {norm}");
            // The bound is not much larger than it has to be.
            assert!(longest > 0.4 * norm, "{kind}: {longest} of {norm}");
            let words = question.noised_words(&progress, &whole, 7).unwrap();
            let decoded = question.layout(&progress).unwrap().decode(&words).numbers;
            for (at, (found, whole)) in decoded.iter().zip(&whole).enumerate() {
                let sites = progress == QuestionProgress::Counts && at == 0;
                let expected = if sites { 7.0 } else { *whole };
                assert!((found - expected).abs() < 1e-8, "{kind}: {found}");
            }
        }
    }
}

#[test]
fn kinds_without_a_bound_say_why() {
    for kind in ["cox", "quantiles", "mixed", "trees", "logrank", "glm"] {
        let text = match kind {
            "cox" => r#"{"kind":"cox","time":"months","event":"status > 0","terms":["age"]}"#,
            "quantiles" => {
                r#"{"kind":"quantiles","columns":["age"],"probabilities":[0.5],"width":1}"#
            }
            "logrank" => r#"{"kind":"logrank","time":"months","event":"status > 0","group":"arm"}"#,
            "glm" => r#"{"kind":"glm","family":"poisson","outcome":"months","terms":["age"]}"#,
            "trees" => r#"{"kind":"trees","outcome":"status > 0","columns":["age"],"trees":2}"#,
            _ => r#"{"kind":"mixed","outcome":"age","terms":["months"]}"#,
        };
        let kind: Kind = serde_json::from_str(text).unwrap();
        let question = question(kind);
        let why = question.without_noise().unwrap();
        assert!(why.contains("ask for"), "{why}");
        assert!(question.row_norm(&QuestionProgress::Counts).is_err());
    }
}

#[test]
fn a_mode_with_noise_needs_noise_that_can_be_drawn() {
    let question = question(kinds().swap_remove(0));
    assert_eq!(question.check_noise(), Ok(()));
    for noise in [
        None,
        Some(noise_of(1e6)),
        Some(SumNoise {
            colluders: 3,
            ..noise_of(1.0)
        }),
    ] {
        let wrong = FederatedQuestion {
            noise,
            ..question.clone()
        };
        assert!(wrong.check_noise().is_err(), "{noise:?}");
        assert!(wrong.layout(&QuestionProgress::Counts).is_err());
    }
    let clear = FederatedQuestion {
        mode: QuestionMode::Clear,
        noise: None,
        ..question
    };
    assert_eq!(clear.check_noise(), Ok(()));
    assert_eq!(clear.noise_of_round(&QuestionProgress::Counts, 4.0), None);
}

#[test]
fn a_sum_beyond_its_words_is_no_sum() {
    let question = question(kinds().swap_remove(0));
    let progress = rounds(&question).swap_remove(1);
    let mut numbers = vec![1.0; question.layout(&progress).unwrap().len()];
    let last = numbers.len() - 1;
    numbers[last] = 4e9;
    let words = question.noised_words(&progress, &numbers, 4).unwrap();
    assert_eq!(
        question.layout(&progress).unwrap().decode(&words).numbers[last],
        4e9
    );
    numbers[last] = 5e9;
    assert!(question.noised_words(&progress, &numbers, 4).is_err());
}

/// A question of two columns and a condition, after means of its columns.
fn correlation(multiplier: f64) -> FederatedQuestion {
    let kind = Kind::Correlate(Correlate {
        columns: words(&["age", "months", "arm = a"]),
    });
    FederatedQuestion {
        noise: Some(noise_of(multiplier)),
        ..question(kind)
    }
}

/// After a first round that counted so many rows.
fn started(question: &FederatedQuestion, rows: f64) -> QuestionProgress {
    let counts = FirstCounts {
        sites: 4.0,
        rows,
        complete: rows,
        ..FirstCounts::default()
    };
    let known = question.known(counts.clone()).unwrap();
    let Kind::Correlate(correlate) = &question.kind else {
        panic!()
    };
    let kind = crate::sums::SumKind::start(correlate, &known).unwrap();
    QuestionProgress::Rounds {
        counts,
        kind: Box::new(KindProgress::Correlate(kind)),
    }
}

/// Takes a step with these sums.
fn step(
    question: &FederatedQuestion,
    progress: &QuestionProgress,
    sums: Vec<f64>,
) -> Step<QuestionProgress, Outcome> {
    let sum = question.layout(progress).unwrap().opened(sums);
    question.step(progress, &sum)
}

#[test]
fn correlations_have_the_noise_that_they_state() {
    // Scaled values of variances 0.25, 0.16 and 0.2 and correlations 0.5, −0.3 and 0.1.
    let (rows, means) = (200_000.0, [0.1, -0.2, 0.4]);
    let roots = [0.5, 0.4, 0.2_f64.sqrt()];
    let correlation_of = [1.0, 0.5, -0.3, 1.0, 0.1, 1.0];
    let question = correlation(40.0);
    let mut drawn = DrawnNormals(11);
    let (mut covered, mut all) = ([0; 2], [0; 2]);
    for _ in 0..1000 {
        let first = started(&question, rows);
        let noise = question.noise_of_round(&first, 4.0).unwrap();
        let sums = means.map(|mean| rows * mean + noise * drawn.normal());
        let Step::Next(second) = step(&question, &first, sums.to_vec()) else {
            panic!()
        };
        let noise = question.noise_of_round(&second, 4.0).unwrap();
        let pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
        let products = pairs.iter().zip(correlation_of);
        let products = products.map(|((row, column), r)| {
            rows * r * roots[*row] * roots[*column] + noise * drawn.normal()
        });
        let Step::Done(Outcome::Correlate(found)) = step(&question, &second, products.collect())
        else {
            panic!()
        };
        let stated = found.noise.unwrap();
        for at in [1, 2, 4] {
            let off = (found.correlation[at] - correlation_of[at]).abs();
            covered[0] += u32::from(off < 1.96 * stated.correlation[at]);
            all[0] += 1;
        }
        for (at, half) in [(0, 50.0), (1, 24.5), (2, 1.0)] {
            let middle = if at == 2 { 0.0 } else { half };
            let off = (found.means[at] - middle - half * means[at]).abs();
            covered[1] += u32::from(off < 1.96 * stated.means[at]);
            all[1] += 1;
        }
    }
    for (covered, all) in covered.into_iter().zip(all) {
        let part = f64::from(covered) / f64::from(all);
        assert!((0.93..0.975).contains(&part), "{part}");
    }
}

#[test]
fn correlations_that_noise_hides_are_not_printed() {
    let question = correlation(40.0);
    let stopped = |rows: f64, sums: [f64; 3], products: [f64; 6]| {
        let first = started(&question, rows);
        let why = match step(&question, &first, sums.to_vec()) {
            Step::Next(second) => step(&question, &second, products.to_vec()),
            other => other,
        };
        match why {
            Step::Stopped(QuestionStopped::Other(why)) => why,
            other => panic!("{other:?}"),
        }
    };
    let few = stopped(100.0, [0.0; 3], [0.0; 6]);
    assert!(few.contains("too few complete rows"), "{few}");
    let flat = stopped(1e5, [0.0; 3], [5e4, 0.0, 0.0, 100.0, 0.0, 5e4]);
    assert!(flat.contains("squares of column \"months\""), "{flat}");
    assert!(flat.contains("rows or more would do"), "{flat}");
    let same = stopped(1e5, [0.0; 3], [5e4, 5.1e4, 0.0, 5e4, 0.0, 5e4]);
    assert!(same.contains("not positive definite"), "{same}");
}

#[test]
fn correlations_without_noise_are_the_pooled_ones() {
    let kind = Kind::Correlate(Correlate {
        columns: words(&["a", "number"]),
    });
    let question = FederatedQuestion {
        mode: QuestionMode::Noised,
        noise: Some(nearly_none()),
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(kind, crate::tests::small::ranges())
    };
    let asked = ask(&question, &crate::tests::small::tables(), |_, _, _| Ok(())).unwrap();
    let Ok(Outcome::Correlate(found)) = asked.end else {
        panic!("{:?}", asked.end)
    };
    near(found.correlation[1], 0.556_654_228_872, 1e-6);
    near(found.means[1], 4.652_380_952_381, 1e-6);
    near(found.covariance[0].sqrt(), 2.458_954_58, 1e-6);
    assert!(found.noise.unwrap().correlation[1] < 0.01);
}

proptest! {
    #[test]
    fn no_row_passes_the_norm_of_products(
        means in proptest::collection::vec(-1.5..1.5_f64, 3),
        row in proptest::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0_f64], 2),
        is_a: bool,
    ) {
        let question = correlation(1.0);
        let first = started(&question, 1e6);
        let sums = means.iter().map(|mean| 1e6 * mean).collect();
        let Step::Next(second) = step(&question, &first, sums) else {
            panic!()
        };
        let word = if is_a { "a" } else { "b" };
        let mut table = RowTable::new(1)
            .with("age", &[100.0 * row[0]])
            .with("months", &[49.0 * row[1]]);
        table.insert("arm", CellColumn::Words(vec![Some(word.to_owned())]));
        for progress in [first, second] {
            let norm = question.row_norm(&progress).unwrap();
            let mut longest = 0.0_f64;
            question.row_numbers(&table, &progress, &mut |numbers| {
                let squares: f64 = numbers.iter().map(|number| number * number).sum();
                longest = longest.max(squares.sqrt());
            }).unwrap();
            prop_assert!(longest <= norm * (1.0 + 1e-12), "{} beyond {}", longest, norm);
        }
    }
}

/// The test of two groups with these hazards in a cell, from counts with noise.
fn compared(
    (rows, cells): (f64, usize),
    hazards: [f64; 2],
    multiplier: f64,
    drawn: &mut DrawnNormals,
) -> Result<LogrankOutcome, String> {
    let kind = Kind::Logrank(Logrank {
        time: "months".to_owned(),
        event: "status > 0".to_owned(),
        group: "arm".to_owned(),
        grid: Some(TimeGrid { step: 1.0, cells }),
    });
    let levels: &[&str] = &["old", "new"];
    let question = FederatedQuestion {
        noise: Some(noise_of(multiplier)),
        agreed: agreed(&[], &[("arm", levels)]),
        ..question(kind)
    };
    let counts = FirstCounts {
        sites: 4.0,
        rows,
        complete: rows,
        groups: vec![rows / 2.0; 2],
        ..FirstCounts::default()
    };
    let progress = QuestionProgress::Rounds {
        counts,
        kind: Box::new(KindProgress::Logrank(())),
    };
    let noise = question.noise_of_round(&progress, 4.0).unwrap();
    let mut sums = Vec::new();
    for hazard in hazards {
        let mut at_risk = rows / 2.0;
        for cell in 0..cells + 2 {
            // Nobody in cell 0, and all that are left in the last one.
            let mut count = |part: f64| {
                let mean = at_risk * part;
                (mean + (mean * (1.0 - part)).max(0.0).sqrt() * drawn.normal())
                    .round()
                    .max(0.0)
            };
            let [events, censored] = match cell {
                0 => [0.0; 2],
                cell if cell > cells => [0.0, at_risk],
                _ => [count(hazard), count(0.02)],
            };
            at_risk -= events + censored;
            for exact in [events, censored] {
                sums.push((exact + noise * drawn.normal()).round());
            }
        }
    }
    match step(&question, &progress, sums) {
        Step::Done(Outcome::Logrank(found)) => Ok(found),
        Step::Stopped(why) => Err(why.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn noised_logrank_tests_keep_their_size_and_find_differences() {
    let mut drawn = DrawnNormals(5);
    let mut rejected = |of: (f64, usize), hazards: [f64; 2], multiplier: f64| {
        let tested = (0..500).filter(|_| {
            let found = compared(of, hazards, multiplier, &mut drawn).unwrap();
            assert_eq!(found.freedom, 1.0);
            crate::special::chi_squared_above(found.statistic, 1.0) < 0.05
        });
        tested.count() as f64 / 500.0
    };
    for (of, multiplier) in [
        ((2_000.0, 24), 3.5),
        ((10_000.0, 24), 14.0),
        ((20_000.0, 60), 7.0),
    ] {
        let size = rejected(of, [0.03; 2], multiplier);
        assert!((0.02..0.08).contains(&size), "{of:?}: {size}");
    }
    let power = rejected((10_000.0, 24), [0.036, 0.03], 14.0);
    assert!(power > 0.7, "{power}");
}

#[test]
fn a_logrank_test_of_too_few_rows_is_not_printed() {
    let mut drawn = DrawnNormals(5);
    let why = compared((400.0, 24), [0.03; 2], 14.0, &mut drawn).unwrap_err();
    assert!(why.contains("\"old\" has too few rows at risk"), "{why}");
    assert!(why.contains("rows or more would do"), "{why}");
    // With next to no noise it is the exact test.
    let found = compared((10_000.0, 24), [0.036, 0.03], 0.01, &mut drawn).unwrap();
    assert!(found.noise.unwrap().share < 1e-4);
    assert_eq!(found.noise.unwrap().until, 24.0);
}
