//! Data that do not determine an answer, and sites that are unlike the others.

use super::small::{cox, model, ranges, tables};
use super::*;
use crate::kinds::TimeGrid;
use crate::kinds::cox::Ties;
use crate::kinds::crosstab::Crosstab;
use crate::kinds::describe::Describe;
use crate::kinds::glm::{Glm, GlmFamily};
use crate::kinds::km::Km;
use crate::kinds::logrank::Logrank;
use crate::kinds::quantiles::Quantiles;
use crate::table::CellColumn;
use crate::{QuestionError, SiteRefusal};

/// A column of the small tables, by a function of its rows' numbers.
fn with(name: &str, of: impl Fn(usize, usize) -> f64) -> Vec<RowTable> {
    let with = |(site, table): (usize, RowTable)| {
        let column: Vec<f64> = (0..table.rows()).map(|row| of(site, row)).collect();
        table.with(name, &column)
    };
    tables().into_iter().enumerate().map(with).collect()
}

fn cells(table: &RowTable, name: &str) -> Vec<f64> {
    match table.cells(name) {
        Some(CellColumn::Numbers(cells)) => cells.iter().flatten().copied().collect(),
        other => panic!("{other:?}"),
    }
}

fn without_rows() -> RowTable {
    tables()[0]
        .names()
        .fold(RowTable::new(0), |table, name| table.with(name, &[]))
}

#[test]
fn separated_outcomes_are_named_and_a_ridge_is_offered() {
    // The outcome itself as a term.
    let sites: Vec<RowTable> = tables()
        .into_iter()
        .map(|table| {
            let y = cells(&table, "y");
            table.with("same", &y)
        })
        .collect();
    let glm = Glm {
        terms: words(&["a", "same = 1"]),
        ..model(GlmFamily::Binomial, "y")
    };
    let why = stopped(Kind::Glm(glm.clone()), &ranges(), &sites);
    assert!(
        matches!(&why, QuestionStopped::Separated(names) if names.contains("same = 1")),
        "{why}"
    );
    assert!(why.to_string().contains("ridge"));
    let Outcome::Glm(found) = answer(Kind::Glm(Glm { ridge: 1.0, ..glm }), &ranges(), &sites)
    else {
        panic!()
    };
    assert!(found.coefficients[1].value > 1.0 && found.coefficients[1].estimate.is_none());
}

#[test]
fn partly_separated_hazards_are_named() {
    // Nobody with `none` = 1 has an event.
    let sites: Vec<RowTable> = tables()
        .into_iter()
        .map(|table| {
            let cause = cells(&table, "cause");
            let none: Vec<f64> = cause
                .iter()
                .enumerate()
                .map(|(row, cause)| f64::from(u8::from(*cause == 0.0 && row % 2 == 0)))
                .collect();
            table.with("none", &none)
        })
        .collect();
    let mut kind = cox(Ties::Efron, false);
    kind.terms = words(&["a", "none = 1"]);
    let why = stopped(Kind::Cox(kind), &ranges(), &sites);
    assert!(
        matches!(&why, QuestionStopped::Separated(names) if names.contains("none")),
        "{why}"
    );
}

#[test]
fn collinear_columns_are_named() {
    let mut agreed = ranges();
    agreed.ranges.insert("twice".to_owned(), [0.0, 20.0]);
    let sites: Vec<RowTable> = tables()
        .into_iter()
        .map(|table| {
            let twice: Vec<f64> = cells(&table, "a").iter().map(|a| 2.0 * a).collect();
            table.with("twice", &twice)
        })
        .collect();
    for (family, outcome) in [
        (GlmFamily::Binomial, "y"),
        (GlmFamily::Gaussian, "number"),
        (GlmFamily::Poisson, "c"),
    ] {
        let glm = Glm {
            terms: words(&["a", "b = 1", "twice"]),
            ..model(family, outcome)
        };
        let why = stopped(Kind::Glm(glm), &agreed, &sites);
        let both = matches!(&why, QuestionStopped::Collinear(names) if names.contains("\"a\"") && names.contains("twice") && !names.contains("b = 1"));
        assert!(both, "{why}");
    }
}

#[test]
fn a_column_that_is_constant_within_every_site_is_named() {
    let sites = with("place", |site, _| site as f64);
    let mut agreed = ranges();
    agreed.ranges.insert("place".to_owned(), [0.0, 2.0]);
    let glm = Glm {
        terms: words(&["a", "place"]),
        ..model(GlmFamily::Binomial, "y")
    };
    assert_eq!(
        stopped(Kind::Glm(glm), &agreed, &sites),
        QuestionStopped::Constant("place".to_owned())
    );
    let mut kind = cox(Ties::Efron, false);
    kind.terms = words(&["a", "place"]);
    assert_eq!(
        stopped(Kind::Cox(kind), &agreed, &sites),
        QuestionStopped::Constant("place".to_owned())
    );
}

#[test]
fn without_events_nothing_is_estimated() {
    let sites = with("zero", |_, _| 0.0);
    let why = stopped(
        Kind::Glm(model(GlmFamily::Binomial, "zero")),
        &ranges(),
        &sites,
    );
    assert!(matches!(why, QuestionStopped::Other(_)), "{why}");
    let why = stopped(
        Kind::Glm(model(GlmFamily::Poisson, "zero")),
        &ranges(),
        &sites,
    );
    assert!(matches!(why, QuestionStopped::Other(_)), "{why}");
    let mut kind = cox(Ties::Efron, false);
    kind.event = "zero".to_owned();
    assert!(
        stopped(Kind::Cox(kind), &ranges(), &sites)
            .to_string()
            .contains("censored")
    );
    let logrank = Logrank {
        time: "time".to_owned(),
        event: "zero".to_owned(),
        group: "b".to_owned(),
        grid: None,
    };
    assert!(
        stopped(Kind::Logrank(logrank), &ranges(), &sites)
            .to_string()
            .contains("censored")
    );
    let km = Km {
        time: "time".to_owned(),
        event: "zero".to_owned(),
        causes: 1,
        grid: TimeGrid {
            step: 1.0,
            cells: 8,
        },
        group: None,
    };
    let Outcome::Km(found) = answer(Kind::Km(km), &ranges(), &sites) else {
        panic!()
    };
    assert!(
        found.curves[0]
            .points
            .iter()
            .all(|point| point.survival == 1.0 && point.error == 0.0)
    );
}

#[test]
fn a_site_with_one_class_shows_nothing_of_slopes() {
    let all = tables();
    let mut with_one_class = all.clone();
    let kept = all[1].filtered(&["y = 1".parse().unwrap()]).unwrap();
    let only = all[1]
        .names()
        .fold(RowTable::new(kept.len()), |table, name| {
            let column = cells(&all[1], name);
            let kept: Vec<f64> = kept.iter().map(|row| column[*row]).collect();
            table.with(name, &kept)
        });
    with_one_class.push(only);
    let fit = |sites: &[RowTable]| match answer(
        Kind::Glm(model(GlmFamily::Binomial, "y")),
        &ranges(),
        sites,
    ) {
        Outcome::Glm(found) => found,
        other => panic!("{other:?}"),
    };
    let (without, with) = (fit(&all), fit(&with_one_class));
    assert_eq!(without.coefficients, with.coefficients);
    assert_eq!((with.rows_told, with.sites_told), (42.0, 3.0));
    assert!(with.rows > 42.0);
}

#[test]
fn a_site_without_rows_changes_nothing() {
    let (all, mut more) = (tables(), tables());
    more.push(without_rows());
    let kinds = [
        Kind::Glm(model(GlmFamily::Binomial, "y")),
        Kind::Glm(model(GlmFamily::Gaussian, "number")),
        Kind::Cox(cox(Ties::Efron, true)),
        Kind::Describe(Describe {
            columns: words(&["a", "b = 1"]),
            group: None,
        }),
        Kind::Logrank(Logrank {
            time: "time".to_owned(),
            event: "cause > 0".to_owned(),
            group: "b".to_owned(),
            grid: None,
        }),
    ];
    for kind in kinds {
        assert_eq!(
            answer(kind.clone(), &ranges(), &all),
            answer(kind, &ranges(), &more)
        );
    }
}

#[test]
fn a_site_that_lacks_a_column_ends_the_question() {
    let mut sites = tables();
    sites.push(RowTable::new(2).with("a", &[1.0, 2.0]));
    let question = FederatedQuestion::new(Kind::Glm(model(GlmFamily::Binomial, "y")), ranges());
    let Err(AskedNothing::Refused { site, why }) = asked(&question, &sites).end else {
        panic!()
    };
    assert_eq!(site, 3);
    assert!(
        matches!(why, SiteRefusal::Column(_)) && why.to_string().contains("ask without"),
        "{why}"
    );
}

#[test]
fn times_at_or_below_zero_are_in_the_first_cell() {
    let times = [-3.0, 0.0, 0.0, 1.0, 2.0];
    let site = RowTable::new(5)
        .with("t", &times)
        .with("e", &[1.0, 1.0, 0.0, 1.0, 0.0]);
    let km = Km {
        time: "t".to_owned(),
        event: "e".to_owned(),
        causes: 1,
        grid: TimeGrid {
            step: 1.0,
            cells: 2,
        },
        group: None,
    };
    let Outcome::Km(found) = answer(Kind::Km(km), &AgreedColumns::default(), &[site]) else {
        panic!()
    };
    let points = &found.curves[0].points;
    assert_eq!(
        (points[0].at_risk, points[0].events[0], points[0].censored),
        (5.0, 2.0, 1.0)
    );
    near(points[0].survival, 0.6, 1e-12);
    assert_eq!(points[1].at_risk, 2.0);
}

#[test]
fn times_on_a_grid_line_belong_to_the_cell_that_ends_there() {
    let grid = TimeGrid {
        step: 0.1,
        cells: 10,
    };
    for cell in 1..=10 {
        assert_eq!(grid.cell(grid.time(cell)), cell, "{cell}");
    }
    assert_eq!(grid.cell(0.3), 3);
    assert_eq!(grid.cell(0.3000001), 4);
    assert_eq!(grid.cell(1.01), 11);
    assert_eq!(grid.cell(f64::MAX), 11);
}

#[test]
fn entries_after_the_end_are_refused() {
    let sites = with("late", |_, row| if row == 3 { 100.0 } else { 0.0 });
    let mut kind = cox(Ties::Efron, true);
    kind.entry = Some("late".to_owned());
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(Kind::Cox(kind), ranges())
    };
    let Err(AskedNothing::Refused { why, .. }) = asked(&question, &sites).end else {
        panic!()
    };
    assert!(why.to_string().contains("entry"), "{why}");
}

#[test]
fn ties_everywhere_have_an_answer() {
    let sites = with("same", |_, _| 5.0);
    for ties in [Ties::Efron, Ties::Breslow] {
        let mut kind = cox(ties, false);
        kind.time = "same".to_owned();
        let Outcome::Cox(found) = answer(Kind::Cox(kind), &ranges(), &sites) else {
            panic!()
        };
        assert!(
            found
                .coefficients
                .iter()
                .all(|coefficient| coefficient.value.is_finite())
        );
    }
    let mut agreed = ranges();
    agreed.ranges.insert("same".to_owned(), [0.0, 10.0]);
    let kind = Quantiles {
        columns: words(&["same"]),
        probabilities: vec![0.5],
        width: Some(0.01),
    };
    let Outcome::Quantiles(found) = answer(Kind::Quantiles(kind), &agreed, &sites) else {
        panic!()
    };
    assert!((found.quantiles[0].value - 5.0).abs() <= found.quantiles[0].width);
}

#[test]
fn fewer_rows_than_coefficients_are_too_few() {
    let few: Vec<RowTable> = tables().into_iter().take(1).collect();
    let question = FederatedQuestion {
        filter: vec!["a = 8".parse().unwrap()],
        rules: QuestionRules {
            smallest_cell: 1,
            ..QuestionRules::default()
        },
        ..FederatedQuestion::new(Kind::Glm(model(GlmFamily::Gaussian, "number")), ranges())
    };
    let Err(AskedNothing::Stopped(why)) = asked(&question, &few).end else {
        panic!()
    };
    assert!(
        matches!(why, QuestionStopped::TooFew { needed: 6, .. }),
        "{why}"
    );
    // Without limits the arithmetic notices by itself.
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        filter: vec!["a > 7".parse().unwrap()],
        ..question
    };
    assert!(asked(&question, &few).end.is_err());
}

#[test]
fn few_events_are_too_few_for_a_cox_regression_without_ridge() {
    let mut kind = cox(Ties::Efron, false);
    kind.event = "cause > 1".to_owned();
    let rules = QuestionRules {
        events_per_coefficient: 20,
        ..QuestionRules::default()
    };
    let question = FederatedQuestion {
        rules,
        ..FederatedQuestion::new(Kind::Cox(kind.clone()), ranges())
    };
    let Err(AskedNothing::Stopped(why)) = asked(&question, &tables()).end else {
        panic!()
    };
    assert!(
        matches!(&why, QuestionStopped::TooFew { what, .. } if what == "events"),
        "{why}"
    );
    kind.ridge = 1.0;
    let question = FederatedQuestion {
        rules,
        ..FederatedQuestion::new(Kind::Cox(kind), ranges())
    };
    assert!(asked(&question, &tables()).end.is_ok());
}

#[test]
fn values_without_agreed_ranges_or_levels_cannot_be_asked_for() {
    let of = |kind| {
        FederatedQuestion::new(kind, AgreedColumns::default())
            .inputs()
            .unwrap_err()
    };
    let range = of(Kind::Describe(Describe {
        columns: words(&["a"]),
        group: None,
    }));
    assert!(matches!(range, QuestionError::Range(_)) && range.to_string().contains("[ranges]"));
    let levels = of(Kind::Crosstab(Crosstab {
        rows: "b".to_owned(),
        columns: "cause".to_owned(),
    }));
    assert!(matches!(levels, QuestionError::Levels(_)) && levels.to_string().contains("[levels]"));
    let condition = of(Kind::Crosstab(Crosstab {
        rows: "a > 0".to_owned(),
        columns: "cause".to_owned(),
    }));
    assert!(condition.to_string().contains("is a condition"));
}

#[test]
fn missing_and_outlying_cells_are_counted_and_left_out() {
    let mut site = RowTable::new(6);
    site.insert(
        "x",
        CellColumn::Numbers(vec![
            Some(1.0),
            None,
            Some(3.0),
            Some(999.0),
            Some(5.0),
            Some(3.0),
        ]),
    );
    let kind = Describe {
        columns: words(&["x"]),
        group: None,
    };
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(Kind::Describe(kind), agreed(&[("x", [0.0, 10.0])], &[]))
    };
    let found = asked(&question, &[site]);
    let counts = found.counts.unwrap();
    assert_eq!(
        [counts.rows, counts.complete, counts.outside],
        [6.0, 4.0, 1.0]
    );
    let Ok(Outcome::Describe(described)) = found.end else {
        panic!()
    };
    near(described.columns[0].mean.unwrap(), 3.0, 1e-8);
    assert_eq!(described.columns[0].known, 4.0);
}

#[test]
fn sums_beyond_reach_are_refused_and_a_larger_exponent_helps() {
    let site = RowTable::new(6)
        .with("x", &[1e9, 0.0, 1e9, 0.0, 1e9, 0.0])
        .with("y", &[5e6, 1.0, 4e6, 2.0, 3e6, 3.0]);
    let glm = Glm {
        terms: words(&["x"]),
        ..model(GlmFamily::Poisson, "y")
    };
    let ask = |exponent| {
        let question = FederatedQuestion {
            rules: WITHOUT_LIMITS,
            exponent,
            ..FederatedQuestion::new(Kind::Glm(glm.clone()), agreed(&[("x", [0.0, 1e9])], &[]))
        };
        asked(&question, std::slice::from_ref(&site)).end
    };
    let Err(AskedNothing::Refused { why, .. }) = ask(0) else {
        panic!()
    };
    assert!(
        matches!(why, SiteRefusal::Reach { .. }) && why.to_string().contains("exponent"),
        "{why}"
    );
    assert!(ask(8).is_ok(), "{:?}", ask(8));
}

#[test]
fn means_that_do_not_overdisperse_are_told_from_those_that_do() {
    // The same count in every row varies less than Poisson's.
    let sites = with("flat", |_, _| 3.0);
    let why = stopped(
        Kind::Glm(model(GlmFamily::NegativeBinomial, "flat")),
        &ranges(),
        &sites,
    );
    assert!(why.to_string().contains("no overdispersion"), "{why}");
}

#[test]
fn outcomes_other_than_two_classes_are_refused() {
    let question = FederatedQuestion {
        rules: WITHOUT_LIMITS,
        ..FederatedQuestion::new(Kind::Glm(model(GlmFamily::Binomial, "cause")), ranges())
    };
    let Err(AskedNothing::Refused { why, .. }) = asked(&question, &tables()).end else {
        panic!()
    };
    assert!(why.to_string().contains("cause > 0"), "{why}");
}
