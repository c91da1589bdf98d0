//! Six regions of breast cancer patients: what statsmodels and lifelines find in the pooled rows, stratified by region.

use super::data::tcga;
use super::*;
use crate::kinds::TimeGrid;
use crate::kinds::cox::{Cox, CoxOutcome, HazardsTime, Ties};
use crate::kinds::km::{Km, KmOutcome};
use crate::kinds::logrank::Logrank;

const TREATMENT: usize = 3;

fn ranges() -> AgreedColumns {
    agreed(&[("age", [-5.0, 5.0])], &[("treatment", &["0", "1"])])
}

fn cox(ties: Ties) -> Cox {
    Cox {
        time: "months".to_owned(),
        event: "event".to_owned(),
        entry: None,
        terms: words(&[
            "age",
            "black = 1",
            "prior = 1",
            "treatment = 1",
            "lobular = 1",
            "n1a = 1",
        ]),
        strata: None,
        ties,
        ridge: 0.0,
        robust: true,
        hazards: None,
        concordance: true,
        baseline: None,
    }
}

fn fitted(cox: Cox) -> Option<CoxOutcome> {
    match answer(Kind::Cox(cox), &ranges(), &tcga()?) {
        Outcome::Cox(found) => Some(found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cox_regression_of_six_regions_is_that_of_statsmodels() {
    let Some(found) = fitted(cox(Ties::Efron)) else {
        return;
    };
    near(found.log_likelihood, -603.6084994, 1e-9);
    let treatment = &found.coefficients[TREATMENT];
    near(treatment.value, -1.205152086, 1e-9);
    near(treatment.estimate.unwrap().error, 0.1926361559, 1e-9);
    near(treatment.robust.unwrap().error, 0.184822656, 1e-8);
    assert!(found.rounds <= 6, "{}", found.rounds);
}

#[test]
fn breslow_ties_and_concordance_are_the_known_ones() {
    let Some(found) = fitted(cox(Ties::Breslow)) else {
        return;
    };
    near(found.coefficients[TREATMENT].value, -1.202130158, 1e-9);
    assert_eq!(found.pairs.unwrap()[0], 10768.0);
    near(found.concordance().unwrap(), 0.7071909965, 1e-9);
}

#[test]
fn hazards_that_change_with_time_have_the_score_test() {
    let known = [
        (HazardsTime::LogPlusOne, Ties::Efron, 10.87798260905795),
        (HazardsTime::Log, Ties::Efron, 10.90776041389423),
        (HazardsTime::Log, Ties::Breslow, 10.828871019869558),
        (HazardsTime::Identity, Ties::Efron, 7.730614226812504),
    ];
    for (time, ties, expected) in known {
        let Some(found) = fitted(Cox {
            hazards: Some(time),
            ..cox(ties)
        }) else {
            return;
        };
        let test = found.hazards.unwrap();
        near(test.statistic, expected, 1e-8);
        assert_eq!(test.freedom, 6.0);
    }
}

#[test]
fn a_ridge_fits_many_columns_of_a_cox_regression() {
    let Some(found) = fitted(Cox {
        ridge: 10.0,
        robust: false,
        ..cox(Ties::Efron)
    }) else {
        return;
    };
    let free = fitted(Cox {
        robust: false,
        ..cox(Ties::Efron)
    })
    .unwrap();
    let size = |found: &CoxOutcome| {
        found
            .coefficients
            .iter()
            .map(|c| c.value * c.value)
            .sum::<f64>()
    };
    assert!(size(&found) < size(&free) && found.coefficients[0].estimate.is_none());
}

fn quarters() -> Option<KmOutcome> {
    let km = Km {
        time: "days".to_owned(),
        event: "event".to_owned(),
        causes: 1,
        grid: TimeGrid {
            step: 3.0 * 30.4375,
            cells: 100,
        },
        group: Some("treatment".to_owned()),
    };
    match answer(Kind::Km(km), &ranges(), &tcga()?) {
        Outcome::Km(found) => Some(found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn survival_in_quarters_is_that_of_lifelines() {
    let Some(found) = quarters() else { return };
    let point = &found.curves[1].points[8];
    near(point.survival, 0.9647114978, 1e-9);
    near(point.error, 0.007011911809, 1e-9);
    assert_eq!(found.events_beyond, 0.0);
}

#[test]
fn the_log_rank_test_by_region_has_the_known_statistic() {
    let Some(sites) = tcga() else { return };
    let logrank = |grid| Logrank {
        time: "days".to_owned(),
        event: "event".to_owned(),
        group: "treatment".to_owned(),
        grid,
    };
    let Outcome::Logrank(found) = answer(Kind::Logrank(logrank(None)), &ranges(), &sites) else {
        panic!()
    };
    near(found.statistic, 66.82724959, 1e-9);
    let grid = |cells| {
        Some(TimeGrid {
            step: 3.0 * 30.4375,
            cells,
        })
    };
    let Outcome::Logrank(found) = answer(Kind::Logrank(logrank(grid(100))), &ranges(), &sites)
    else {
        panic!()
    };
    near(found.statistic, 91.4, 1e-3);
    let Outcome::Logrank(cut) = answer(Kind::Logrank(logrank(grid(30))), &ranges(), &sites) else {
        panic!()
    };
    near(cut.statistic, 67.4, 1e-3);
}
