//! Linear mixed models of twelve sites, and what masks hide of them.

use super::*;
use crate::disclosure::{AnswerRecord, AnswerRules};
use crate::kinds::mixed::{Mixed, MixedOutcome};
use crate::{QuestionMode, SiteRefusal};

const INTERCEPTS: [f64; 12] = [
    1.2, -0.7, 0.4, -1.5, 0.9, 0.1, -0.3, 1.8, -1.1, 0.6, -0.9, -0.2,
];
const SLOPES: [f64; 12] = [
    0.3, -0.2, 0.1, 0.25, -0.35, 0.05, -0.1, 0.2, -0.3, 0.15, -0.05, 0.0,
];

/// Variances of intercepts, slopes and residuals, by direct maximisation of the restricted likelihood.
const VARIANCES: [f64; 3] = [0.9969056055452987, 0.036778569330259664, 1.5846578967409852];
/// The common intercept and slope, and their standard errors.
const MEANS: [f64; 2] = [2.028452998726714, 0.6029513967395038];
const ERRORS: [f64; 2] = [0.2994801886003284, 0.0755265417579383];

fn sites(intercepts: &[f64; 12], slopes: &[f64; 12]) -> Vec<RowTable> {
    of_rows(20, intercepts, slopes)
}

fn of_rows(rows: usize, intercepts: &[f64; 12], slopes: &[f64; 12]) -> Vec<RowTable> {
    let site = |k: usize| {
        let x: Vec<f64> = (0..rows)
            .map(|i| ((i * 7 + k * 3) % 11) as f64 / 2.0 - 2.5)
            .collect();
        let noise = |i: usize| ((i * i * 13 + k * 29 + i * k * 5) % 17) as f64 / 4.0 - 2.0;
        let y = x
            .iter()
            .enumerate()
            .map(|(i, x)| 2.0 + 0.5 * x + intercepts[k] + slopes[k] * x + noise(i));
        let y: Vec<f64> = y.collect();
        RowTable::new(rows).with("x", &x).with("y", &y)
    };
    (0..12).map(site).collect()
}

fn ranges() -> AgreedColumns {
    agreed(&[("x", [-3.0, 3.0]), ("y", [-10.0, 10.0])], &[])
}

fn model(slopes: &[&str]) -> Kind {
    Kind::Mixed(Mixed {
        outcome: "y".to_owned(),
        terms: words(&["x"]),
        slopes: words(slopes),
    })
}

fn fitted(slopes: &[&str], sites: &[RowTable]) -> MixedOutcome {
    match answer(model(slopes), &ranges(), sites) {
        Outcome::Mixed(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn random_slopes_are_those_of_a_dense_fit_by_reml() {
    let found = fitted(&["x"], &sites(&INTERCEPTS, &SLOPES));
    let variance = |at: usize| {
        found.coefficients[at]
            .deviation
            .map(|deviation| deviation * deviation)
            .unwrap()
    };
    near(variance(0), VARIANCES[0], 1e-6);
    near(variance(1), VARIANCES[1], 1e-5);
    near(found.residual, VARIANCES[2], 1e-6);
    for (at, coefficient) in found.coefficients.iter().enumerate() {
        near(coefficient.estimate.value, MEANS[at], 1e-6);
        near(coefficient.estimate.error, ERRORS[at], 1e-6);
    }
}

#[test]
fn slopes_that_do_not_differ_have_no_variance() {
    let found = fitted(&["x"], &sites(&INTERCEPTS, &[0.0; 12]));
    assert_eq!(found.coefficients[1].deviation, Some(0.0));
    assert!(found.coefficients[0].deviation.unwrap() > 0.5);
    assert!(found.intraclass() > 0.1 && found.intraclass() < 0.9);
    let fixed = fitted(&[], &sites(&INTERCEPTS, &[0.0; 12]));
    assert_eq!(fixed.coefficients[1].deviation, None);
    near(found.residual, fixed.residual, 1e-5);
}

/// Patients of four hospitals, with age and visits.
fn hospitals() -> Vec<RowTable> {
    let tables = [
        include_str!("../../../../examples/questions/north.csv"),
        include_str!("../../../../examples/questions/east.csv"),
        include_str!("../../../../examples/questions/south.csv"),
        include_str!("../../../../examples/questions/west.csv"),
    ];
    let table = |text: &str| {
        let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let rows: Vec<_> = lines.collect();
        let mut table = RowTable::new(rows.len());
        for column in ["age", "visits"] {
            let at = names.iter().position(|name| *name == column).unwrap();
            let cells = rows.iter().map(|row| row[at].trim().parse().ok());
            table.insert(column, crate::table::CellColumn::Numbers(cells.collect()));
        }
        table
    };
    tables.map(table).into()
}

#[test]
fn variances_near_zero_end_with_the_fit_by_reml() {
    let kind = Kind::Mixed(Mixed {
        outcome: "visits".to_owned(),
        terms: words(&["age"]),
        slopes: Vec::new(),
    });
    let agreed = agreed(&[("age", [18.0, 100.0]), ("visits", [0.0, 40.0])], &[]);
    let Outcome::Mixed(found) = answer(kind, &agreed, &hospitals()) else {
        panic!()
    };
    // By direct maximisation of the restricted likelihood, which is flat there.
    near(found.coefficients[0].deviation.unwrap(), 0.009_180, 0.02);
    near(found.residual, 6.055_08, 1e-5);
    near(found.coefficients[0].estimate.value, 2.784_60, 1e-5);
    near(found.coefficients[1].estimate.value, 0.002_309_40, 1e-4);
    assert!(found.rounds < 60, "{}", found.rounds);
    assert!(found.singular().is_empty());
}

#[test]
fn a_fit_at_the_boundary_ends_there_and_says_so() {
    let slopes = SLOPES.map(|slope| 0.3 * slope);
    let tables = sites(&[0.0; 12], &slopes);
    let found = fitted(&["x"], &tables);
    let deviations: Vec<_> = found.coefficients.iter().map(|one| one.deviation).collect();
    assert_eq!(deviations, [Some(0.0); 2]);
    assert_eq!(found.singular(), ["(intercept)", "x"]);
    assert_eq!(found.intraclass(), 0.0);
    // Least squares of all rows.
    near(found.residual, 1.566_615_8, 1e-6);
    near(found.coefficients[0].estimate.value, 2.000_189_4, 1e-6);
    let question = FederatedQuestion::new(model(&["x"]), ranges());
    let counts = asked(&question, &tables).counts.unwrap();
    let sheets = crate::outcome::sheets(&question, &counts, &Outcome::Mixed(found));
    let notes = sheets[1].notes.join("; ");
    assert!(
        notes.contains("do not differ in (intercept), x") && notes.contains("lme4: singular"),
        "{notes}"
    );
}

#[test]
fn equal_sites_do_not_differ_and_the_question_ends() {
    let one = sites(&[0.0; 12], &[0.0; 12]).swap_remove(0);
    let found = fitted(&["x"], &vec![one; 12]);
    assert_eq!(found.singular(), ["(intercept)", "x"]);
    near(found.residual, 1.958_206_5, 1e-6);
}

#[test]
fn sites_with_two_rows_have_the_fit_by_reml() {
    let found = fitted(&[], &of_rows(2, &INTERCEPTS, &[0.0; 12]));
    let deviation = found.coefficients[0].deviation.unwrap();
    near(deviation * deviation, 1.015_74, 1e-5);
    near(found.residual, 1.719_102_2, 1e-5);
    // With slopes that differ, too, nothing of two rows is left.
    let why = stopped(model(&["x"]), &ranges(), &of_rows(2, &INTERCEPTS, &SLOPES));
    assert!(why.to_string().contains("no residual"), "{why}");
}

#[test]
fn one_site_has_nothing_that_differs() {
    let one: Vec<RowTable> = sites(&INTERCEPTS, &SLOPES).into_iter().take(1).collect();
    let why = stopped(model(&[]), &ranges(), &one);
    assert!(why.to_string().contains("two sites"), "{why}");
}

#[test]
fn twice_the_same_column_is_collinear() {
    let sites: Vec<RowTable> = sites(&INTERCEPTS, &SLOPES)
        .into_iter()
        .map(|site| match site.cells("x").cloned() {
            Some(crate::table::CellColumn::Numbers(cells)) => {
                let again: Vec<f64> = cells.iter().flatten().copied().collect();
                site.with("again", &again)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let mut agreed = ranges();
    agreed.ranges.insert("again".to_owned(), [-3.0, 3.0]);
    let kind = Mixed {
        outcome: "y".to_owned(),
        terms: words(&["x", "again"]),
        slopes: Vec::new(),
    };
    let why = stopped(Kind::Mixed(kind), &agreed, &sites);
    assert!(matches!(why, QuestionStopped::Collinear(_)), "{why}");
}

#[test]
fn masks_do_not_hide_few_sites_in_a_mixed_model() {
    let sites = sites(&INTERCEPTS, &SLOPES);
    let asked = |mode| {
        let question = FederatedQuestion {
            mode,
            ..FederatedQuestion::new(model(&[]), ranges())
        };
        let mut opened = 0;
        ask(&question, &sites, |site, progress, vector| {
            let record = AnswerRecord::default();
            record.check_round(
                &question,
                &sites[site],
                &AnswerRules::default(),
                progress,
                opened,
            )?;
            if site == 11 {
                opened += vector.len() as u64;
            }
            Ok(())
        })
        .unwrap()
        .end
    };
    let Err(AskedNothing::Refused {
        why: SiteRefusal::Rule(why),
        ..
    }) = asked(QuestionMode::Masked)
    else {
        panic!()
    };
    assert!(why.to_string().contains("rule numbers"), "{why}");
    assert!(asked(QuestionMode::Clear).is_ok());
}
