//! Three sites of fourteen rows, and what statsmodels and lifelines find in the pooled rows with intercepts or strata
//! for each site.

use super::*;
use crate::kinds::TimeGrid;
use crate::kinds::correlate::Correlate;
use crate::kinds::cox::{Cox, CoxOutcome, Ties};
use crate::kinds::crosstab::Crosstab;
use crate::kinds::glm::{Glm, GlmFamily, GlmOutcome};
use crate::kinds::km::{Km, KmOutcome};
use crate::kinds::logrank::Logrank;
use crate::kinds::meta::{Meta, SiteEffect};

/// Rows by site: a, b, y, c, over, positive, number, weight, time, cause, entry.
const ROWS: [[[f64; 11]; 14]; 3] = [
    [
        [8.0, 1.0, 1.0, 4.0, 4.0, 1.9, 3.5, 2.0, 8.0, 1.0, 2.0],
        [5.0, 0.0, 0.0, 1.0, 14.0, 3.3, 5.0, 2.0, 4.0, 0.0, 0.0],
        [6.0, 1.0, 1.0, 3.0, 4.0, 2.9, 2.8, 1.0, 8.0, 2.0, 6.0],
        [8.0, 1.0, 1.0, 1.0, 16.0, 4.3, 5.6, 2.0, 7.0, 1.0, 5.0],
        [5.0, 0.0, 1.0, 1.0, 2.0, 1.8, 3.2, 3.0, 7.0, 2.0, 2.0],
        [6.0, 0.0, 1.0, 2.0, 2.0, 2.3, 4.9, 2.0, 2.0, 0.0, 0.0],
        [7.0, 0.0, 1.0, 4.0, 1.0, 2.2, 5.5, 1.0, 4.0, 0.0, 0.0],
        [2.0, 0.0, 0.0, 2.0, 5.0, 1.4, 1.7, 3.0, 8.0, 0.0, 6.0],
        [0.0, 0.0, 0.0, 2.0, 10.0, 1.8, 3.7, 3.0, 7.0, 1.0, 2.0],
        [2.0, 1.0, 0.0, 1.0, 2.0, 1.5, 3.0, 2.0, 2.0, 2.0, 0.0],
        [2.0, 1.0, 1.0, 2.0, 0.0, 2.3, 1.0, 1.0, 7.0, 1.0, 4.0],
        [7.0, 0.0, 1.0, 2.0, 15.0, 3.8, 6.3, 3.0, 7.0, 1.0, 4.0],
        [8.0, 1.0, 1.0, 4.0, 1.0, 8.2, 4.9, 1.0, 2.0, 2.0, 0.0],
        [0.0, 1.0, 1.0, 0.0, 3.0, 0.9, -2.1, 3.0, 1.0, 0.0, 0.0],
    ],
    [
        [4.0, 1.0, 0.0, 1.0, 2.0, 3.5, 3.8, 2.0, 3.0, 0.0, 0.0],
        [7.0, 1.0, 1.0, 3.0, 6.0, 3.2, 4.9, 2.0, 4.0, 2.0, 3.0],
        [1.0, 0.0, 0.0, 2.0, 7.0, 1.8, 3.6, 3.0, 2.0, 2.0, 0.0],
        [7.0, 1.0, 1.0, 6.0, 0.0, 1.9, 3.9, 1.0, 1.0, 0.0, 0.0],
        [1.0, 0.0, 0.0, 3.0, 1.0, 1.5, 3.2, 1.0, 1.0, 0.0, 0.0],
        [4.0, 0.0, 0.0, 3.0, 2.0, 3.3, 4.8, 3.0, 3.0, 1.0, 0.0],
        [7.0, 0.0, 1.0, 7.0, 7.0, 3.2, 7.7, 3.0, 4.0, 2.0, 0.0],
        [2.0, 0.0, 1.0, 0.0, 1.0, 2.1, 4.3, 3.0, 3.0, 0.0, 2.0],
        [3.0, 1.0, 1.0, 0.0, 7.0, 2.0, 3.0, 1.0, 4.0, 2.0, 0.0],
        [2.0, 0.0, 1.0, 2.0, 3.0, 3.2, 5.5, 1.0, 6.0, 1.0, 4.0],
        [6.0, 0.0, 1.0, 4.0, 4.0, 3.0, 5.4, 2.0, 2.0, 2.0, 0.0],
        [2.0, 0.0, 1.0, 4.0, 0.0, 0.8, 3.6, 3.0, 4.0, 1.0, 1.0],
        [8.0, 1.0, 0.0, 0.0, 10.0, 2.8, 3.7, 3.0, 6.0, 1.0, 0.0],
        [4.0, 1.0, 1.0, 3.0, 5.0, 1.1, 5.1, 3.0, 1.0, 1.0, 0.0],
    ],
    [
        [4.0, 1.0, 1.0, 0.0, 9.0, 0.7, 5.5, 2.0, 8.0, 2.0, 7.0],
        [4.0, 0.0, 1.0, 5.0, 5.0, 2.0, 6.9, 3.0, 8.0, 1.0, 3.0],
        [5.0, 1.0, 0.0, 0.0, 7.0, 4.6, 5.7, 1.0, 3.0, 2.0, 0.0],
        [4.0, 0.0, 0.0, 0.0, 4.0, 2.5, 6.1, 1.0, 8.0, 2.0, 3.0],
        [4.0, 0.0, 1.0, 2.0, 4.0, 1.5, 6.2, 2.0, 3.0, 0.0, 0.0],
        [8.0, 0.0, 0.0, 3.0, 11.0, 2.5, 7.7, 1.0, 8.0, 2.0, 3.0],
        [7.0, 1.0, 0.0, 1.0, 7.0, 5.2, 5.8, 3.0, 6.0, 1.0, 0.0],
        [7.0, 1.0, 0.0, 5.0, 3.0, 3.5, 6.1, 3.0, 2.0, 0.0, 0.0],
        [6.0, 1.0, 1.0, 2.0, 5.0, 3.1, 7.0, 1.0, 1.0, 0.0, 0.0],
        [5.0, 0.0, 1.0, 3.0, 3.0, 2.7, 7.1, 1.0, 4.0, 0.0, 0.0],
        [3.0, 1.0, 1.0, 1.0, 4.0, 2.3, 3.9, 1.0, 6.0, 1.0, 1.0],
        [8.0, 0.0, 0.0, 6.0, 16.0, 5.1, 7.4, 1.0, 2.0, 0.0, 0.0],
        [4.0, 1.0, 1.0, 2.0, 4.0, 3.1, 3.9, 2.0, 5.0, 1.0, 0.0],
        [1.0, 1.0, 1.0, 2.0, 0.0, 2.0, 4.6, 2.0, 1.0, 2.0, 0.0],
    ],
];

const NAMES: [&str; 11] = [
    "a", "b", "y", "c", "over", "positive", "number", "weight", "time", "cause", "entry",
];

/// The rows as tables of sites.
pub(crate) fn tables() -> Vec<RowTable> {
    let table = |rows: &[[f64; 11]; 14]| {
        NAMES
            .iter()
            .enumerate()
            .fold(RowTable::new(14), |table, (at, name)| {
                let column: Vec<f64> = rows.iter().map(|row| row[at]).collect();
                table.with(name, &column)
            })
    };
    ROWS.iter().map(table).collect()
}

pub(crate) fn ranges() -> AgreedColumns {
    let ranges = [("a", [0.0, 10.0]), ("number", [-5.0, 10.0])];
    agreed(&ranges, &[("b", &["0", "1"]), ("cause", &["0", "1", "2"])])
}

pub(super) fn model(family: GlmFamily, outcome: &str) -> Glm {
    Glm {
        family,
        outcome: outcome.to_owned(),
        terms: words(&["a", "b = 1"]),
        offset: None,
        weights: None,
        ridge: 0.0,
        robust: false,
        clustered: false,
        without: Vec::new(),
    }
}

fn fitted(glm: Glm) -> GlmOutcome {
    match answer(Kind::Glm(glm), &ranges(), &tables()) {
        Outcome::Glm(found) => found,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn has(found: &GlmOutcome, values: [f64; 2], errors: [f64; 2]) {
    for (at, coefficient) in found.coefficients.iter().enumerate() {
        near(coefficient.value, values[at], 1e-8);
        near(coefficient.estimate.unwrap().error, errors[at], 1e-6);
    }
}

#[test]
fn logistic_regression_has_intervals_and_robust_errors() {
    let found = fitted(Glm {
        robust: true,
        clustered: false,
        ..model(GlmFamily::Binomial, "y")
    });
    has(
        &found,
        [0.05286616337180314, 0.6554485924228586],
        [0.14002073114820263, 0.6721999842374967],
    );
    near(found.log_likelihood.unwrap(), -26.458365292367375, 1e-9);
    near(
        found.coefficients[0].robust.unwrap().error,
        0.1381908181369367,
        1e-8,
    );
    let estimate = found.coefficients[1].estimate.unwrap();
    near(estimate.p(), 0.3295207026282002, 1e-8);
    near(estimate.interval(0.95)[1], 1.9729363519367442, 1e-8);
}

#[test]
fn errors_clustered_by_site_need_enough_sites() {
    let glm = Glm {
        clustered: true,
        ..model(GlmFamily::Binomial, "y")
    };
    let why = stopped(Kind::Glm(glm.clone()), &ranges(), &tables());
    assert!(
        matches!(why, QuestionStopped::TooFew { needed: 4, .. }),
        "{why}"
    );
    // One term, so that three sites are enough.
    let found = fitted(Glm {
        terms: words(&["a"]),
        ..glm
    });
    let error = found.coefficients[0].clustered.unwrap().error;
    near(error, 0.2968323495901608, 1e-8);
}

#[test]
fn linear_regression_has_students_t_and_f() {
    let found = fitted(Glm {
        robust: true,
        without: words(&["b = 1"]),
        ..model(GlmFamily::Gaussian, "number")
    });
    has(
        &found,
        [0.45015463152338875, -1.5828503331793937],
        [0.0643541810433063, 0.311441589784586],
    );
    near(found.dispersion.unwrap(), 0.9895112288994243, 1e-8);
    near(
        found.coefficients[1].estimate.unwrap().p(),
        1.0934391989191417e-05,
        1e-6,
    );
    near(
        found.coefficients[1].robust.unwrap().error,
        0.3044893619505616,
        1e-8,
    );
    let ratio = found.likelihood_ratio.unwrap();
    near(ratio.statistic / ratio.freedom, 25.830123861610332, 1e-7);
    near(ratio.p(), 1.0934391989191417e-05, 1e-6);
}

#[test]
fn weights_multiply_likelihoods_of_rows() {
    let found = fitted(Glm {
        weights: Some("weight".to_owned()),
        ..model(GlmFamily::Gaussian, "number")
    });
    has(
        &found,
        [0.4723278047930841, -1.7233080632676878],
        [0.06867993869122893, 0.34794386829175006],
    );
}

#[test]
fn gamma_regression_has_the_observed_information() {
    let found = fitted(model(GlmFamily::Gamma, "positive"));
    has(
        &found,
        [0.12093714980735008, 0.04580695669648792],
        [0.02576384403777712, 0.1259523880028319],
    );
    near(found.dispersion.unwrap(), 0.15539403460519297, 1e-8);
}

#[test]
fn counts_are_poissons_or_overdispersed() {
    let found = fitted(model(GlmFamily::Poisson, "c"));
    has(
        &found,
        [0.152416549223985, -0.44634322177595215],
        [0.04579236076550159, 0.20723464917038115],
    );
    near(found.log_likelihood.unwrap(), -73.61111857750909, 1e-9);
    let found = fitted(model(GlmFamily::NegativeBinomial, "over"));
    has(
        &found,
        [0.12283478112858778, -0.24491806463051277],
        [0.04909422066615273, 0.24329257133390803],
    );
    near(found.log_likelihood.unwrap(), -108.56353880766228, 1e-9);
    near(
        libm::exp(found.log_theta.unwrap()),
        2.5621524298635725,
        1e-6,
    );
}

pub(super) fn cox(ties: Ties, entry: bool) -> Cox {
    Cox {
        time: "time".to_owned(),
        event: "cause > 0".to_owned(),
        entry: entry.then(|| "entry".to_owned()),
        terms: words(&["a", "b = 1"]),
        strata: None,
        ties,
        ridge: 0.0,
        robust: false,
        hazards: None,
        concordance: false,
        baseline: None,
    }
}

fn hazards(cox: Cox) -> CoxOutcome {
    match answer(Kind::Cox(cox), &ranges(), &tables()) {
        Outcome::Cox(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn hazard_ratios_are_those_of_statsmodels_and_lifelines() {
    let found = hazards(Cox {
        robust: true,
        ..cox(Ties::Efron, false)
    });
    near(found.log_likelihood, -44.03943361182385, 1e-9);
    near(found.coefficients[0].value, -0.08669113757839354, 1e-6);
    near(
        found.coefficients[1].estimate.unwrap().error,
        0.4241213971114363,
        1e-6,
    );
    // By derivatives of the estimate by the weight of each row, numerically; lifelines ignores ties here.
    near(
        found.coefficients[0].robust.unwrap().error,
        0.06909894309861157,
        2e-6,
    );
    near(
        found.coefficients[1].robust.unwrap().error,
        0.3360298448720409,
        2e-6,
    );
    let found = hazards(cox(Ties::Breslow, false));
    near(found.coefficients[1].value, 0.5799042939084973, 1e-6);
    near(found.log_likelihood, -50.8527823047865, 1e-9);
}

#[test]
fn rows_are_at_risk_after_their_entry() {
    let found = hazards(cox(Ties::Efron, true));
    near(found.coefficients[0].value, -0.11880436919377486, 1e-6);
    near(found.coefficients[1].value, 0.5878218192109348, 1e-6);
    near(
        found.coefficients[1].estimate.unwrap().error,
        0.4149483743498178,
        1e-6,
    );
    near(found.log_likelihood, -37.830137158382726, 1e-9);
}

fn survival(causes: usize) -> KmOutcome {
    let event = if causes == 1 { "cause > 0" } else { "cause" };
    let km = Km {
        time: "time".to_owned(),
        event: event.to_owned(),
        causes,
        grid: TimeGrid {
            step: 1.0,
            cells: 8,
        },
        group: None,
    };
    match answer(Kind::Km(km), &ranges(), &tables()) {
        Outcome::Km(found) => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn survival_and_its_log_log_interval_are_those_of_lifelines() {
    let found = survival(1);
    let points = &found.curves[0].points;
    near(points[4].survival, 0.656814449917898, 1e-12);
    near(
        points[4].error,
        0.656814449917898 * 0.1247008827650355,
        1e-12,
    );
    let interval = points[8].interval(0.95).unwrap();
    near(interval[0], 0.002837422383064183, 1e-9);
    near(interval[1], 0.16448489779535813, 1e-9);
    assert_eq!(points[0].interval(0.95), None);
    assert_eq!(found.curves[0].quantile(0.5), Some(6.0));
}

#[test]
fn incidences_of_causes_add_up_to_what_survival_lacks() {
    let (one, two) = (survival(1), survival(2));
    for (one, two) in one.curves[0].points.iter().zip(&two.curves[0].points) {
        let incidence: f64 = two.incidence.iter().map(|cause| cause[0]).sum();
        near(incidence, 1.0 - one.survival, 1e-12);
    }
    // By hand from the counts of the pooled rows at the first time: 2 and 0 of 42, then 2 and 2 of 36.
    let points = &two.curves[0].points;
    let at_risk: f64 = 42.0;
    assert_eq!(points[1].at_risk, at_risk);
    let first = points[1].events[0] / at_risk;
    near(points[1].incidence[0][0], first, 1e-12);
    near(
        points[1].incidence[0][1],
        (first * (1.0 - first) / at_risk).sqrt(),
        1e-12,
    );
}

#[test]
fn the_variance_of_incidence_is_greenwoods_for_one_cause() {
    let one = survival(1);
    // A second cause without events.
    let sites: Vec<RowTable> = tables()
        .into_iter()
        .map(|table| {
            let kept = table.rows();
            let any: Vec<f64> = match table.cells("cause") {
                Some(crate::table::CellColumn::Numbers(cells)) => {
                    cells.iter().map(|x| x.unwrap().min(1.0)).collect()
                }
                other => panic!("{other:?}"),
            };
            assert_eq!(any.len(), kept);
            table.with("any", &any)
        })
        .collect();
    let km = Km {
        time: "time".to_owned(),
        event: "any".to_owned(),
        causes: 2,
        grid: TimeGrid {
            step: 1.0,
            cells: 8,
        },
        group: None,
    };
    let Outcome::Km(found) = answer(Kind::Km(km), &ranges(), &sites) else {
        panic!()
    };
    for (one, two) in one.curves[0].points.iter().zip(&found.curves[0].points) {
        near(two.incidence[0][1], one.error, 1e-9);
    }
}

#[test]
fn log_rank_tests_are_those_of_statsmodels() {
    let logrank = |grid, group: &str| {
        let kind = Logrank {
            time: "time".to_owned(),
            event: "cause > 0".to_owned(),
            group: group.to_owned(),
            grid,
        };
        match answer(Kind::Logrank(kind), &ranges(), &tables()) {
            Outcome::Logrank(found) => found,
            other => panic!("{other:?}"),
        }
    };
    let found = logrank(None, "b");
    near(found.statistic, 2.4586062420757133, 1e-8);
    near(found.excess.iter().sum::<f64>(), 0.0, 1e-9);
    let found = logrank(
        Some(TimeGrid {
            step: 1.0,
            cells: 8,
        }),
        "b",
    );
    near(found.statistic, 2.280604281606294, 1e-9);
    assert!(!found.by_site && found.freedom == 1.0);
}

#[test]
fn a_table_of_counts_has_pearsons_statistic() {
    let sites: Vec<RowTable> = tables()
        .into_iter()
        .map(|table| match table.cells("a").cloned() {
            Some(crate::table::CellColumn::Numbers(cells)) => {
                let high: Vec<f64> = cells
                    .iter()
                    .map(|x| f64::from(u8::from(x.unwrap() > 4.0)))
                    .collect();
                table.with("high", &high)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let mut agreed = ranges();
    agreed.levels.insert("high".to_owned(), words(&["0", "1"]));
    let kind = Crosstab {
        rows: "high".to_owned(),
        columns: "cause".to_owned(),
    };
    let Outcome::Crosstab(found) = answer(Kind::Crosstab(kind), &agreed, &sites) else {
        panic!()
    };
    assert_eq!(found.counts[0], [6.0, 9.0, 6.0, 0.0]);
    near(found.statistic.unwrap(), 1.714285714285714, 1e-12);
    assert_eq!(found.freedom, 2.0);
}

#[test]
fn principal_components_are_those_of_numpy() {
    let kind = Correlate {
        columns: words(&["a", "b = 1", "number"]),
    };
    let Outcome::Correlate(found) = answer(Kind::Correlate(kind), &ranges(), &tables()) else {
        panic!()
    };
    near(found.correlation[1], 0.13720216232311738, 1e-8);
    near(found.correlation[4], -0.3077724850685387, 1e-8);
    near(found.components[0].variance, 1.585798489526389, 1e-8);
    near(found.components[0].weights[2], 0.7315377782274568, 1e-8);
    near(found.components[1].weights[1], 0.8790323329176085, 1e-8);
    near(found.components[2].weights[2], 0.6708372845286557, 1e-8);
}

#[test]
fn meta_analysis_is_that_of_statsmodels() {
    let studies = super::heart::STUDIES;
    let sites: Vec<RowTable> = studies
        .iter()
        .map(|(y, v)| RowTable::new(1).with("y", &[*y]).with("v", &[*v]))
        .collect();
    let effect = SiteEffect::Given {
        estimate: "y".to_owned(),
        variance: "v".to_owned(),
    };
    let Outcome::Meta(found) = answer(
        Kind::Meta(Meta {
            effect,
            reml: false,
        }),
        &ranges(),
        &sites,
    ) else {
        panic!()
    };
    near(found.heterogeneity, 16.53811944091487, 1e-7);
    near(found.fixed.value, 0.3865311308767472, 1e-8);
    near(found.fixed.error, 0.06763381483979733, 1e-8);
    near(found.random.value, 0.36413286072236317, 1e-8);
    near(found.random.error, 0.10898509368508326, 1e-8);
    near(found.hartung_knapp.error, 0.12143239503884337, 1e-8);
    near(found.inconsistency(), 1.0 - 7.0 / 16.53811944091487, 1e-7);
    assert!(found.prediction(0.95).unwrap()[0] < found.random.interval(0.95)[0]);
}
