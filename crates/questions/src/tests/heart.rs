//! Four hospitals: what statsmodels finds in the pooled rows with an intercept for each hospital.

use super::data::heart;
use super::*;
use crate::kinds::glm::{Glm, GlmFamily, GlmOutcome};
use crate::kinds::meta::{Meta, SiteEffect};
use crate::kinds::mixed::Mixed;
use crate::kinds::{correlate::Correlate, describe::Describe, quantiles::Quantiles};

const TERMS: [&str; 7] = [
    "age10",
    "sex = 1",
    "trestbps20",
    "thalach25",
    "exang = 1",
    "oldpeak",
    "cp = 4",
];

fn ranges() -> AgreedColumns {
    let ranges = [
        ("age10", [-6.0, 6.0]),
        ("trestbps20", [-8.0, 8.0]),
        ("thalach25", [-8.0, 8.0]),
        ("thalach", [0.0, 300.0]),
        ("oldpeak", [-10.0, 10.0]),
    ];
    agreed(&ranges, &[])
}

fn model(family: GlmFamily, outcome: &str, without: &str) -> Glm {
    Glm {
        family,
        outcome: outcome.to_owned(),
        terms: TERMS
            .iter()
            .filter(|term| **term != without)
            .map(|term| (*term).to_owned())
            .collect(),
        offset: None,
        weights: None,
        ridge: 0.0,
        robust: false,
        clustered: false,
        without: Vec::new(),
    }
}

fn fitted(glm: Glm) -> Option<GlmOutcome> {
    let sites = heart()?;
    match answer(Kind::Glm(glm), &ranges(), &sites) {
        Outcome::Glm(found) => Some(found),
        other => panic!("{other:?}"),
    }
}

#[test]
fn logistic_regression_of_four_hospitals_is_that_of_statsmodels() {
    let glm = Glm {
        robust: true,
        without: words(&["cp = 4"]),
        ..model(GlmFamily::Binomial, "num > 0", "")
    };
    let Some(found) = fitted(glm) else { return };
    assert_eq!(
        [found.rows, found.rows_told, found.sites_told],
        [854.0, 854.0, 4.0]
    );
    near(found.log_likelihood.unwrap(), -331.5099646, 1e-9);
    let sex = &found.coefficients[1];
    near(sex.value, 1.278256079, 1e-9);
    near(sex.estimate.unwrap().error, 0.2519947079, 1e-9);
    near(sex.robust.unwrap().error, 0.2424094869, 1e-9);
    let ratio = found.likelihood_ratio.unwrap();
    near(ratio.statistic, 61.06952648, 1e-9);
    assert_eq!(ratio.freedom, 1.0);
    assert!(found.rounds <= 7, "{}", found.rounds);
}

#[test]
fn a_ridge_has_the_known_coefficient_and_no_intervals() {
    let Some(found) = fitted(Glm {
        ridge: 5.0,
        ..model(GlmFamily::Binomial, "num > 0", "")
    }) else {
        return;
    };
    near(found.coefficients[1].value, 0.9640683358, 1e-9);
    assert!(
        found
            .coefficients
            .iter()
            .all(|coefficient| coefficient.estimate.is_none())
    );
    assert!(found.covariance.is_empty());
}

#[test]
fn linear_regression_of_four_hospitals_is_that_of_statsmodels() {
    let Some(found) = fitted(model(GlmFamily::Gaussian, "thalach", "thalach25")) else {
        return;
    };
    near(found.coefficients[0].value, -9.07724326, 1e-9);
    near(
        found.coefficients[0].estimate.unwrap().error,
        0.8804404826,
        1e-9,
    );
    near(found.dispersion.unwrap(), 419.5695747, 1e-9);
}

#[test]
fn counts_of_four_hospitals_are_those_of_statsmodels() {
    let counts = |family| Glm {
        offset: Some("exposure".to_owned()),
        ..model(family, "count", "oldpeak")
    };
    let Some(found) = fitted(counts(GlmFamily::Poisson)) else {
        return;
    };
    near(found.coefficients[1].value, 0.1553001846, 1e-9);
    near(found.log_likelihood.unwrap(), -1011.151833, 1e-9);
    let found = fitted(counts(GlmFamily::NegativeBinomial)).unwrap();
    near(libm::exp(found.log_theta.unwrap()), 10.58689856, 1e-6);
}

/// The estimates and variances of eight studies.
pub(super) const STUDIES: [(f64, f64); 8] = [
    (0.1, 0.05),
    (0.5, 0.02),
    (-0.2, 0.08),
    (0.8, 0.04),
    (0.3, 0.03),
    (0.0, 0.06),
    (0.9, 0.09),
    (0.4, 0.02),
];

#[test]
fn meta_analysis_of_eight_studies_has_the_known_variances() {
    let sites: Vec<RowTable> = STUDIES
        .iter()
        .map(|(y, v)| RowTable::new(1).with("y", &[*y]).with("v", &[*v]))
        .collect();
    let effect = SiteEffect::Given {
        estimate: "y".to_owned(),
        variance: "v".to_owned(),
    };
    let between = |reml| match answer(
        Kind::Meta(Meta {
            effect: effect.clone(),
            reml,
        }),
        &AgreedColumns::default(),
        &sites,
    ) {
        Outcome::Meta(found) => found,
        other => panic!("{other:?}"),
    };
    near(between(false).between, 0.0520020783, 1e-8);
    near(between(true).between, 0.0586613, 1e-6);
    assert!(between(true).reml && !between(false).reml);
}

#[test]
fn means_correlations_quantiles_are_those_of_pooled_rows() {
    let Some(sites) = heart() else { return };
    let mut pooled: Vec<[f64; 2]> = Vec::new();
    for site in &sites {
        let cells = |name: &str| match site.cells(name) {
            Some(crate::table::CellColumn::Numbers(cells)) => {
                cells.iter().flatten().copied().collect::<Vec<f64>>()
            }
            other => panic!("{other:?}"),
        };
        pooled.extend(
            cells("thalach")
                .into_iter()
                .zip(cells("oldpeak"))
                .map(|(a, b)| [a, b]),
        );
    }
    let n = pooled.len() as f64;
    let mean = |of: &dyn Fn(&[f64; 2]) -> f64| pooled.iter().map(of).sum::<f64>() / n;
    let (first, second) = (mean(&|r| r[0]), mean(&|r| r[1]));
    let variance = mean(&|r| (r[0] - first) * (r[0] - first)) * n / (n - 1.0);
    let covariance = mean(&|r| (r[0] - first) * (r[1] - second)) * n / (n - 1.0);
    let columns = words(&["thalach", "oldpeak"]);
    let Outcome::Describe(found) = answer(
        Kind::Describe(Describe {
            columns: columns.clone(),
            group: None,
        }),
        &ranges(),
        &sites,
    ) else {
        panic!()
    };
    near(found.columns[0].mean.unwrap(), first, 1e-10);
    near(found.columns[0].deviation.unwrap(), variance.sqrt(), 1e-9);
    assert_eq!(found.columns[0].known, 854.0);
    let Outcome::Correlate(found) =
        answer(Kind::Correlate(Correlate { columns }), &ranges(), &sites)
    else {
        panic!()
    };
    near(found.covariance[1], covariance, 1e-9);
    near(
        found.components[0].variance + found.components[1].variance,
        2.0,
        1e-12,
    );
    let kind = Quantiles {
        columns: words(&["thalach"]),
        probabilities: vec![0.25, 0.5, 0.9],
        width: None,
    };
    let Outcome::Quantiles(found) = answer(Kind::Quantiles(kind), &ranges(), &sites) else {
        panic!()
    };
    let mut sorted: Vec<f64> = pooled.iter().map(|r| r[0]).collect();
    sorted.sort_by(f64::total_cmp);
    for quantile in &found.quantiles {
        let rank = (quantile.probability * n).ceil() as usize;
        let gap = (quantile.value - sorted[rank - 1]).abs();
        assert!(gap <= quantile.width, "{quantile:?}: {}", sorted[rank - 1]);
    }
}

#[test]
fn random_intercepts_of_four_hospitals_are_those_of_reml() {
    let Some(sites) = heart() else { return };
    let kind = Mixed {
        outcome: "thalach25".to_owned(),
        terms: words(&[
            "age10",
            "sex = 1",
            "trestbps20",
            "exang = 1",
            "oldpeak",
            "cp = 4",
        ]),
        slopes: Vec::new(),
    };
    let Outcome::Mixed(found) = answer(Kind::Mixed(kind), &ranges(), &sites) else {
        panic!()
    };
    let deviation = found.coefficients[0].deviation.unwrap();
    near(deviation * deviation, 0.1447983827, 1e-7);
    near(found.residual, 0.6712979035, 1e-8);
    near(found.coefficients[1].estimate.value, -0.3632978383, 1e-7);
    assert!(found.rounds <= 40, "{}", found.rounds);
}
