//! Models from sums with noise: pooled fits where there is next to none, intervals that cover, and norms that no row exceeds.

#![allow(clippy::unwrap_used)]
use proptest::prelude::*;

use super::super::GlmProgress;
use super::*;
use crate::noise::tests::{DrawnNormals, nearly_none, noise_of};
use crate::tests::{WITHOUT_LIMITS, agreed, near, words};
use crate::{
    AgreedColumns, AskedNothing, FederatedQuestion, FirstCounts, Kind, KindProgress, Outcome,
    QuestionMode, QuestionProgress, SumNoise, ask,
};

fn model(family: GlmFamily, outcome: &str, terms: &[&str]) -> Glm {
    Glm {
        family,
        outcome: outcome.to_owned(),
        terms: words(terms),
        offset: None,
        weights: None,
        ridge: 0.0,
        robust: false,
        clustered: false,
        without: Vec::new(),
    }
}

fn with_noise(glm: &Glm, agreed: AgreedColumns, noise: SumNoise) -> FederatedQuestion {
    FederatedQuestion {
        mode: QuestionMode::Noised,
        noise: Some(noise),
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(Kind::Glm(glm.clone()), agreed)
    }
}

fn fitted(outcome: Outcome) -> GlmOutcome {
    match outcome {
        Outcome::Glm(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Estimate and error of the intercept and of every term.
fn estimates(found: &GlmOutcome) -> Vec<Estimate> {
    let slopes = found.coefficients.iter().map(|one| one.estimate.unwrap());
    [found.common.unwrap().estimate]
        .into_iter()
        .chain(slopes)
        .collect()
}

#[test]
fn without_noise_the_fit_is_the_pooled_one_with_one_intercept() {
    // By Newton's method and by least squares, from the 42 rows of three sites put together.
    let logistic = [
        (0.318_290_531_253, 0.452_929_857),
        (0.041_873_921_756, 0.135_316_690),
        (0.602_214_606_611, 0.659_709_961),
    ];
    let linear = [
        (5.564_529_030_093, 0.318_251_245),
        (0.470_340_642_130, 0.091_517_387),
        (-1.465_941_380_468, 0.444_683_894),
    ];
    for (family, outcome, expected, rounds) in [
        (GlmFamily::Binomial, "y", logistic, 7),
        (GlmFamily::Gaussian, "number", linear, 2),
    ] {
        let glm = model(family, outcome, &["a", "b = 1"]);
        let question = with_noise(&glm, crate::tests::small::ranges(), nearly_none());
        let asked = ask(&question, &crate::tests::small::tables(), |_, _, _| Ok(())).unwrap();
        assert_eq!(asked.rounds.len() as u64, rounds);
        assert_eq!(question.most_rounds(), rounds);
        let found = fitted(asked.end.unwrap());
        for (estimate, (value, error)) in estimates(&found).into_iter().zip(expected) {
            near(estimate.value, value, 1e-6);
            near(estimate.error, error, 4e-3);
        }
        assert!(
            found
                .coefficients
                .iter()
                .all(|one| one.noise_share.unwrap() < 0.01)
        );
        if family == GlmFamily::Gaussian {
            near(found.dispersion.unwrap(), 2.037_224_184_716, 1e-6);
        }
    }
}

/// A table of cells: one column on five points, one condition, and this many rows of each.
struct CellsOfRows {
    rows: f64,
    truth: [f64; 3],
}

impl CellsOfRows {
    fn each(&self) -> impl Iterator<Item = [f64; 3]> {
        (0..10).map(|at| [1.0, f64::from(at % 5) / 2.0 - 1.0, f64::from(at / 5)])
    }

    /// The outcomes of all cells: events, or sums of outcomes and of their squares.
    fn outcomes(&self, family: GlmFamily, drawn: &mut DrawnNormals) -> Vec<[f64; 2]> {
        let outcome = |x: [f64; 3]| {
            let eta = dot(&x, &self.truth);
            let root = self.rows.sqrt();
            if family == GlmFamily::Binomial {
                let p = 1.0 / (1.0 + libm::exp(-eta));
                let events = self.rows * p + root * (p * (1.0 - p)).sqrt() * drawn.normal();
                return [events.round(), 0.0];
            }
            let deviation = 0.2;
            let error = root * deviation * drawn.normal();
            let squares =
                deviation * deviation * (self.rows + (2.0 * self.rows).sqrt() * drawn.normal());
            [
                self.rows * eta + error,
                self.rows * eta * eta + 2.0 * eta * error + squares,
            ]
        };
        self.each().map(outcome).collect()
    }

    /// The exact sums of a round.
    fn sums(&self, family: GlmFamily, outcomes: &[[f64; 2]], at: &[f64]) -> Vec<f64> {
        let (mut score, mut squares) = (vec![0.0; 3], 0.0);
        let mut information = Symmetric::zeros(3);
        for (x, [first, second]) in self.each().zip(outcomes) {
            let (told, weight) = if family == GlmFamily::Binomial {
                let p = 1.0 / (1.0 + libm::exp(-dot(&x, at)));
                (first - self.rows * p, self.rows * p * (1.0 - p))
            } else {
                (*first, self.rows)
            };
            score
                .iter_mut()
                .zip(&x)
                .for_each(|(sum, x)| *sum += told * x);
            information.add_outer(weight, &x);
            squares += second;
        }
        if family == GlmFamily::Binomial {
            score.extend(information.triangle());
            return score;
        }
        // Of (1, columns, outcome), row by row.
        let mut all = Symmetric::zeros(4);
        for (row, product) in score.iter().enumerate() {
            (row..3).for_each(|column| all.set(row, column, information.at(row, column)));
            all.set(row, 3, *product);
        }
        all.set(3, 3, squares);
        all.triangle()
    }

    /// The answer to one question about new outcomes, with new noise.
    fn asked(
        &self,
        glm: &Glm,
        noise: SumNoise,
        drawn: &mut DrawnNormals,
    ) -> Result<GlmOutcome, String> {
        let agreed = agreed(&[("x", [-1.0, 1.0]), ("y", [-1.0, 1.0])], &[]);
        let question = with_noise(glm, agreed, noise);
        let outcomes = self.outcomes(glm.family, drawn);
        let counts = FirstCounts {
            sites: 4.0,
            rows: 10.0 * self.rows,
            complete: 10.0 * self.rows,
            ..FirstCounts::default()
        };
        let kind = KindProgress::Glm(GlmProgress::with_noise(glm.noised_start()));
        let mut progress = QuestionProgress::Rounds {
            counts,
            kind: Box::new(kind),
        };
        loop {
            let QuestionProgress::Rounds { kind, .. } = &progress else {
                panic!("{progress:?}")
            };
            let KindProgress::Glm(GlmProgress {
                noised: Some(fit), ..
            }) = &**kind
            else {
                panic!("{kind:?}")
            };
            let mut sums = self.sums(glm.family, &outcomes, &fit.at);
            let deviation = question.noise_of_round(&progress, 4.0).unwrap();
            sums.iter_mut()
                .for_each(|sum| *sum += deviation * drawn.normal());
            let sum = question.layout(&progress).unwrap().opened(sums);
            match question.step(&progress, &sum) {
                Step::Next(next) => progress = next,
                Step::Done(outcome) => return Ok(fitted(outcome)),
                Step::Stopped(why) => return Err(why.to_string()),
            }
        }
    }
}

#[test]
fn intervals_cover_the_truth_under_noise() {
    for (family, outcome, truth) in [
        (GlmFamily::Binomial, "y > 0", [-0.8, 0.5, -0.4]),
        (GlmFamily::Gaussian, "y", [0.1, 0.2, -0.15]),
    ] {
        let glm = model(family, outcome, &["x", "c = 1"]);
        let cells = CellsOfRows {
            rows: 10_000.0,
            truth,
        };
        let mut drawn = DrawnNormals(7);
        let (mut covered, mut all, mut shares) = (0, 0, 0.0);
        for _ in 0..1000 {
            // As many as there are rows of 100,000, the noise is about as large as chance.
            let found = cells.asked(&glm, noise_of(40.0), &mut drawn).unwrap();
            for (estimate, truth) in estimates(&found).into_iter().zip(truth) {
                let [low, high] = estimate.interval(0.95);
                covered += u32::from(low <= truth && truth <= high);
                all += 1;
            }
            shares += found.coefficients[0].noise_share.unwrap() / 1000.0;
        }
        let part = f64::from(covered) / f64::from(all);
        assert!((0.93..0.975).contains(&part), "{family:?}: {part}");
        // Without the noise in them they would not.
        assert!(shares > 0.2, "{family:?}: {shares}");
    }
}

#[test]
fn too_much_noise_stops_the_question_with_a_sentence() {
    let cells = CellsOfRows {
        rows: 100.0,
        truth: [-0.8, 0.5, -0.4],
    };
    for (family, outcome) in [(GlmFamily::Binomial, "y > 0"), (GlmFamily::Gaussian, "y")] {
        let glm = model(family, outcome, &["x", "c = 1"]);
        let why = cells
            .asked(&glm, noise_of(40.0), &mut DrawnNormals(3))
            .unwrap_err();
        assert!(why.contains("not determined under this noise"), "{why}");
        assert!(why.contains("rows or more would do"), "{why}");
    }
}

#[test]
fn outcomes_that_terms_separate_are_not_answered() {
    let cells = CellsOfRows {
        rows: 1e7,
        truth: [0.0, 60.0, 0.0],
    };
    let glm = model(GlmFamily::Binomial, "y > 0", &["x", "c = 1"]);
    let why = cells
        .asked(&glm, noise_of(1.0), &mut DrawnNormals(3))
        .unwrap_err();
    assert!(
        why.contains("nearly separate") || why.contains("not determined"),
        "{why}"
    );
}

#[test]
fn options_and_families_without_a_bound_say_what_to_ask_for() {
    let refused = |glm: &Glm| glm.without_noise().unwrap();
    let plain = model(GlmFamily::Binomial, "y > 0", &["x"]);
    assert_eq!(plain.without_noise(), None);
    for family in [
        GlmFamily::Poisson,
        GlmFamily::Gamma,
        GlmFamily::NegativeBinomial,
    ] {
        let why = refused(&model(family, "y", &["x"]));
        assert!(why.contains("ask for family \"binomial\""), "{why}");
    }
    for more in [
        Glm {
            ridge: 1.0,
            ..plain.clone()
        },
        Glm {
            robust: true,
            ..plain.clone()
        },
        Glm {
            without: words(&["x"]),
            ..plain.clone()
        },
        Glm {
            offset: Some("y".to_owned()),
            ..plain.clone()
        },
    ] {
        assert!(refused(&more).contains("without `offset`"));
    }
}

#[test]
fn rows_of_another_outcome_add_nothing_under_noise() {
    // With noise a refusal would tell of the row.
    let glm = model(GlmFamily::Binomial, "y", &["x"]);
    let agreed = agreed(&[("x", [-1.0, 1.0])], &[]);
    let x: Vec<f64> = (0..200).map(|at| f64::from(at % 21) / 10.0 - 1.0).collect();
    let y: Vec<f64> = (0..200).map(|at| f64::from(at % 3)).collect();
    let table = crate::table::RowTable::new(200).with("x", &x).with("y", &y);
    let question = with_noise(&glm, agreed.clone(), nearly_none());
    let asked = ask(&question, std::slice::from_ref(&table), |_, _, _| Ok(())).unwrap();
    assert!(asked.end.is_ok(), "{:?}", asked.end);
    let exact = FederatedQuestion {
        mode: QuestionMode::Clear,
        ..question
    };
    let asked = ask(&exact, &[table], |_, _, _| Ok(())).unwrap();
    assert!(matches!(asked.end, Err(AskedNothing::Refused { .. })));
}

/// The norm of what one row of these columns adds at these coefficients.
fn norm_of(glm: &Glm, row: &[f64], at: &[f64]) -> f64 {
    let rows = vec![row.iter().map(|value| CellValue::Known(*value)).collect()];
    let fit = NoisedFit {
        at: at.to_vec(),
        rounds: 0,
    };
    let numbers = glm.noised_sums(&rows, &fit);
    dot(&numbers, &numbers).sqrt()
}

#[test]
fn the_norm_of_many_terms_is_reached_between_the_ends() {
    for p in [3, 14, 20, 21, 40] {
        let names: Vec<String> = (0..p).map(|at| format!("x{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let glm = model(GlmFamily::Binomial, "y", &names);
        let (row, norm) = (vec![1.0; p + 1], glm.noised_norm());
        // Along the intercept, all probabilities.
        let longest = (-4000..4000).map(|at| {
            let mut coefficients = vec![0.0; p + 1];
            coefficients[0] = f64::from(at) / 100.0;
            norm_of(&glm, &row, &coefficients)
        });
        let longest = longest.fold(0.0, f64::max);
        assert!(
            longest <= norm * (1.0 + 1e-12),
            "{p}: {longest} beyond {norm}"
        );
        assert!(longest > 0.9999 * norm, "{p}: {longest} of {norm}");
        let q = (p + 1) as f64;
        assert_eq!(norm * norm > q + 1e-9, p >= 21, "{p}: {norm}");
    }
}

proptest! {
    #[test]
    fn no_row_passes_the_norm_of_a_regression(
        values in proptest::collection::vec(prop_oneof![Just(-1.0), Just(1.0), Just(0.0), -1.0..=1.0_f64], 1..24),
        coefficients in proptest::collection::vec(-9.0..9.0_f64, 24),
        linear: bool,
    ) {
        let p = values.len() - 1;
        prop_assume!(p > 0);
        let names: Vec<String> = (0..p).map(|at| format!("x{at}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut row, family) = (values, if linear { GlmFamily::Gaussian } else { GlmFamily::Binomial });
        if !linear {
            row[p] = f64::from(u8::from(row[p] > 0.0));
        }
        let glm = model(family, "y", &names);
        let found = norm_of(&glm, &row, &coefficients[..=p]);
        prop_assert!(found <= glm.noised_norm() * (1.0 + 1e-12));
    }
}
