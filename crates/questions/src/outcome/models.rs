//! Sheets of coefficients.

use super::tables::test;
use super::{LEVEL, PrintedCell, PrintedTable};
use crate::Estimate;
use crate::kinds::cox::CoxOutcome;
use crate::kinds::glm::{GlmFamily, GlmOutcome};
use crate::kinds::meta::MetaOutcome;
use crate::kinds::mixed::MixedOutcome;
use crate::special::chi_squared_above;

/// The columns of an estimate after its value.
const INTERVAL: [(&str, &str); 4] = [
    ("error", "SE"),
    ("low", "95 % from"),
    ("high", "to"),
    ("p_value", "p"),
];

fn interval(estimate: Option<Estimate>) -> [PrintedCell; 4] {
    let Some(estimate) = estimate else {
        return [
            PrintedCell::Nothing,
            PrintedCell::Nothing,
            PrintedCell::Nothing,
            PrintedCell::Nothing,
        ];
    };
    let [low, high] = estimate.interval(LEVEL);
    [
        PrintedCell::Number(estimate.error),
        PrintedCell::Number(low),
        PrintedCell::Number(high),
        PrintedCell::Probability(estimate.p()),
    ]
}

/// e to a coefficient, which is a ratio.
fn ratio(value: f64) -> PrintedCell {
    PrintedCell::Number(libm::exp(value))
}

/// A generalised linear model.
pub(super) fn glm(found: &GlmOutcome) -> Vec<PrintedTable> {
    let ratio_name = match found.family {
        GlmFamily::Gaussian => None,
        GlmFamily::Binomial => Some("OR"),
        GlmFamily::Poisson | GlmFamily::Gamma | GlmFamily::NegativeBinomial => Some("ratio"),
    };
    let title = match found.common {
        None => "Coefficients, with an intercept for each site",
        Some(_) => "Coefficients, with one intercept for all sites",
    };
    let mut sheet = PrintedTable::new(
        "coefficients",
        title,
        &[("term", "term"), ("coefficient", "coefficient")],
    );
    INTERVAL
        .iter()
        .for_each(|(name, header)| sheet.column(name, header));
    if let Some(header) = ratio_name {
        sheet.column("ratio", header);
    }
    if let Some(common) = &found.common {
        sheet.column("noise_share", "noise in SE²");
        let mut row = vec![
            PrintedCell::Text("(intercept)".to_owned()),
            PrintedCell::Number(common.estimate.value),
        ];
        row.extend(interval(Some(common.estimate)));
        row.extend(ratio_name.map(|_| PrintedCell::Nothing));
        row.push(PrintedCell::Number(common.noise_share));
        sheet.rows.push(row);
    }
    let first = found.coefficients.first();
    let robust = first.is_some_and(|coefficient| coefficient.robust.is_some());
    let clustered = first.is_some_and(|coefficient| coefficient.clustered.is_some());
    for (wanted, name, header) in [
        (robust, "robust_error", "robust SE"),
        (clustered, "clustered_error", "clustered SE"),
    ] {
        if wanted {
            sheet.column(name, header);
        }
    }
    for coefficient in &found.coefficients {
        let mut row = vec![
            PrintedCell::Text(coefficient.term.clone()),
            PrintedCell::Number(coefficient.value),
        ];
        row.extend(interval(coefficient.estimate));
        if ratio_name.is_some() {
            row.push(ratio(coefficient.value));
        }
        row.extend(coefficient.noise_share.map(PrintedCell::Number));
        let errors = [
            (robust, coefficient.robust),
            (clustered, coefficient.clustered),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted);
        row.extend(
            errors
                .map(|(_, estimate)| PrintedCell::number(estimate.map(|estimate| estimate.error))),
        );
        sheet.rows.push(row);
    }
    if found.covariance.is_empty() {
        sheet.notes.push("no intervals: a ridge shrinks the coefficients, and their errors are not those of a test".to_owned());
    }
    if found.common.is_some() {
        sheet.notes.push(
            "the intercept is the linear predictor in the middle of all agreed ranges, where no condition holds; \
             differences between sites that the terms do not explain are in it"
                .to_owned(),
        );
        let noisy: Vec<&str> = found
            .coefficients
            .iter()
            .filter(|one| one.noise_share.is_some_and(|share| share > 0.5))
            .map(|one| one.term.as_str())
            .collect();
        if !noisy.is_empty() {
            sheet.notes.push(format!(
                "noise is more than chance in the error of {}: more rows would tell more",
                noisy.join(", ")
            ));
        }
        if found.family == GlmFamily::Gaussian && found.dispersion.is_none() {
            sheet
                .notes
                .push("noise hides the variance of the residuals".to_owned());
        }
    }
    if found.rows_told < found.rows {
        sheet.notes.push(format!(
            "{} of {} complete rows are at sites that tell nothing of the coefficients, because all their outcomes are alike",
            found.rows - found.rows_told,
            found.rows
        ));
    }
    let mut fit = PrintedTable::new(
        "fit",
        "Fit",
        &[("rows", "rows"), ("sites", "sites"), ("rounds", "rounds")],
    );
    let mut row = vec![
        PrintedCell::Count(found.rows_told),
        PrintedCell::Count(found.sites_told),
        PrintedCell::Count(found.rounds as f64),
    ];
    let theta = found.log_theta.map(libm::exp);
    let more = [
        ("log_likelihood", "log likelihood", found.log_likelihood),
        ("dispersion", "dispersion", found.dispersion),
        ("theta", "θ", theta),
    ];
    for (name, header, value) in more {
        if let Some(value) = value {
            fit.column(name, header);
            row.push(PrintedCell::Number(value));
        }
    }
    fit.rows.push(row);
    let mut sheets = vec![sheet, fit];
    if let Some(smaller) = &found.likelihood_ratio {
        let title = format!(
            "Comparison with the model without {}",
            smaller.without.join(", ")
        );
        let name = if smaller.denominator.is_some() {
            ("statistic", "F·df")
        } else {
            ("statistic", "likelihood ratio")
        };
        let mut sheet = PrintedTable::new(
            "comparison",
            &title,
            &[name, ("freedom", "df"), ("p_value", "p")],
        );
        sheet.rows.push(vec![
            PrintedCell::Number(smaller.statistic),
            PrintedCell::Count(smaller.freedom),
            PrintedCell::Probability(smaller.p()),
        ]);
        sheets.push(sheet);
    }
    sheets
}

/// A Cox regression.
pub(super) fn cox(found: &CoxOutcome) -> Vec<PrintedTable> {
    let mut sheet = PrintedTable::new(
        "coefficients",
        "Log hazard ratios, stratified by site",
        &[("term", "term"), ("coefficient", "coefficient")],
    );
    INTERVAL
        .iter()
        .for_each(|(name, header)| sheet.column(name, header));
    sheet.column("ratio", "HR");
    let robust = found
        .coefficients
        .first()
        .is_some_and(|coefficient| coefficient.robust.is_some());
    if robust {
        sheet.column("robust_error", "robust SE");
    }
    let tested = found.hazards.is_some();
    if tested {
        sheet.column("hazards_p_value", "p (PH)");
    }
    for coefficient in &found.coefficients {
        let mut row = vec![
            PrintedCell::Text(coefficient.term.clone()),
            PrintedCell::Number(coefficient.value),
        ];
        row.extend(interval(coefficient.estimate));
        row.push(ratio(coefficient.value));
        if robust {
            row.push(PrintedCell::number(
                coefficient.robust.map(|estimate| estimate.error),
            ));
        }
        if tested {
            let p = coefficient
                .hazards
                .map(|statistic| chi_squared_above(statistic, 1.0));
            row.push(p.map_or(PrintedCell::Nothing, PrintedCell::Probability));
        }
        sheet.rows.push(row);
    }
    if found.covariance.is_empty() {
        sheet.notes.push("no intervals: a ridge shrinks the coefficients, and their errors are not those of a test".to_owned());
    }
    let mut fit = PrintedTable::new(
        "fit",
        "Fit",
        &[
            ("rows", "rows"),
            ("events", "events"),
            ("rounds", "rounds"),
            ("log_likelihood", "partial log likelihood"),
        ],
    );
    let mut row = vec![
        PrintedCell::Count(found.rows),
        PrintedCell::Count(found.events),
        PrintedCell::Count(found.rounds as f64),
        PrintedCell::Number(found.log_likelihood),
    ];
    if let Some(concordance) = found.concordance() {
        fit.column("concordance", "concordance within sites");
        row.push(PrintedCell::Number(concordance));
    }
    fit.rows.push(row);
    let mut sheets = vec![sheet, fit];
    if let Some(hazards) = &found.hazards {
        sheets.push(test(
            "proportional_hazards",
            "Test of proportional hazards, all terms",
            hazards.statistic,
            hazards.freedom,
        ));
    }
    if !found.baseline.is_empty() {
        let columns = [
            ("time", "time"),
            ("cumulative_hazard", "cumulative hazard"),
            ("survival", "survival"),
        ];
        let mut baseline = PrintedTable::new(
            "baseline",
            "Baseline, where every term is 0, averaged over sites by their rows",
            &columns,
        );
        for point in &found.baseline {
            let survival = libm::exp(-point.hazard);
            baseline.rows.push(vec![
                PrintedCell::Exact(point.time),
                PrintedCell::Number(point.hazard),
                PrintedCell::Number(survival),
            ]);
        }
        sheets.push(baseline);
    }
    sheets
}

/// A meta-analysis.
pub(super) fn meta(found: &MetaOutcome) -> Vec<PrintedTable> {
    let mut sheet = PrintedTable::new(
        "effects",
        "Effect",
        &[("model", "model"), ("effect", "effect")],
    );
    INTERVAL
        .iter()
        .for_each(|(name, header)| sheet.column(name, header));
    let models = [
        ("one effect for all sites", found.fixed),
        ("effects differ between sites", found.random),
        ("the same, Hartung and Knapp", found.hartung_knapp),
    ];
    for (model, estimate) in models {
        let mut row = vec![
            PrintedCell::Text(model.to_owned()),
            PrintedCell::Number(estimate.value),
        ];
        row.extend(interval(Some(estimate)));
        sheet.rows.push(row);
    }
    if let Some([low, high]) = found.prediction(LEVEL) {
        let mut row = vec![
            PrintedCell::Text("prediction for another site".to_owned()),
            PrintedCell::Number(found.random.value),
        ];
        row.extend([
            PrintedCell::Nothing,
            PrintedCell::Number(low),
            PrintedCell::Number(high),
            PrintedCell::Nothing,
        ]);
        sheet.rows.push(row);
    }
    let between = if found.reml {
        "τ² (REML)"
    } else {
        "τ² (DerSimonian–Laird)"
    };
    let columns = [
        ("sites", "sites"),
        ("heterogeneity", "Q"),
        ("freedom", "df"),
        ("p_value", "p"),
        ("inconsistency", "I²"),
        ("between", between),
    ];
    let mut spread = PrintedTable::new("heterogeneity", "Differences between sites", &columns);
    spread.rows.push(vec![
        PrintedCell::Count(found.sites),
        PrintedCell::Number(found.heterogeneity),
        PrintedCell::Count(found.sites - 1.0),
        PrintedCell::Probability(chi_squared_above(found.heterogeneity, found.sites - 1.0)),
        PrintedCell::Number(found.inconsistency()),
        PrintedCell::Number(found.between),
    ]);
    vec![sheet, spread]
}

/// A mixed model.
pub(super) fn mixed(found: &MixedOutcome) -> [PrintedTable; 2] {
    let mut sheet = PrintedTable::new(
        "coefficients",
        "Common coefficients",
        &[("term", "term"), ("coefficient", "coefficient")],
    );
    INTERVAL
        .iter()
        .for_each(|(name, header)| sheet.column(name, header));
    sheet.column("deviation", "SD between sites");
    for coefficient in &found.coefficients {
        let mut row = vec![
            PrintedCell::Text(coefficient.term.clone()),
            PrintedCell::Number(coefficient.estimate.value),
        ];
        row.extend(interval(Some(coefficient.estimate)));
        row.push(PrintedCell::number(coefficient.deviation));
        sheet.rows.push(row);
    }
    sheet
        .notes
        .push("the intercept is the outcome in the middle of all agreed ranges".to_owned());
    let singular = found.singular();
    if !singular.is_empty() {
        sheet.notes.push(format!(
            "sites do not differ in {} by more than chance explains: the variance between them is 0, at the boundary of the \
             fit (lme4: singular)",
            singular.join(", ")
        ));
    }
    let columns = [
        ("rows", "rows"),
        ("sites", "sites"),
        ("rounds", "rounds"),
        ("residual", "residual variance"),
        ("intraclass", "intraclass correlation"),
    ];
    let mut fit = PrintedTable::new("fit", "Fit (REML)", &columns);
    fit.rows.push(vec![
        PrintedCell::Count(found.rows),
        PrintedCell::Count(found.sites),
        PrintedCell::Count(found.rounds as f64),
        PrintedCell::Number(found.residual),
        PrintedCell::Number(found.intraclass()),
    ]);
    [sheet, fit]
}
