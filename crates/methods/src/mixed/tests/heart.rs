//! Random intercepts of four hospitals, as statsmodels' `MixedLM` fits them by REML to the pooled rows.

use super::*;

/// The hospitals of the heart disease data: age, sex, blood pressure, angina on exercise, ST depression and
/// asymptomatic pain on the highest heart rate, complete rows only. `None` without the data.
fn hospitals() -> Option<Vec<Samples>> {
    let Some(data) = std::env::var_os("ROTA_DATA") else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return None;
    };
    let folder = std::path::Path::new(&data).join("heart_disease");
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(format!("processed.{name}.data"))).unwrap();
        let rows = text.lines().filter_map(|line| {
            let cells: Vec<Option<f64>> = line.split(',').map(|c| c.trim().parse().ok()).collect();
            let used = [0, 1, 2, 3, 7, 8, 9].map(|at: usize| cells.get(at).copied().flatten());
            let [age, sex, pain, pressure, rate, angina, depression] = used;
            let pain = f64::from(u8::from(pain? == 4.0));
            let features = vec![
                (age? - 55.0) / 10.0,
                sex?,
                (pressure? - 130.0) / 20.0,
                angina?,
                depression?,
                pain,
            ];
            Some((features, (rate? - 140.0) / 25.0))
        });
        let (features, targets): (Vec<_>, Vec<_>) = rows.unzip();
        samples(&features, targets)
    };
    Some(
        ["cleveland", "hungarian", "switzerland", "va"]
            .map(read)
            .into(),
    )
}

#[test]
fn random_intercepts_of_four_hospitals_equal_pooled_reml() {
    let Some(sites) = hospitals() else { return };
    assert_eq!(sites.iter().map(Samples::len).sum::<usize>(), 854);
    let (found, rounds) = rounds(&sites, EXACT);
    assert!(found.done && rounds <= 40, "{rounds} rounds");
    assert_near(found.strengths[0], 0.1447983827, 2e-9);
    assert_near(found.noise, 0.6712979035, 2e-9);
    assert_near(found.mean[1], -0.3632978383, 2e-9);
}

#[test]
fn estimating_slope_precision_moves_the_variance_a_little() {
    let Some(sites) = hospitals() else { return };
    let run = Run {
        settings: MixedSettings {
            precision: None,
            ..EXACT.settings
        },
        ..EXACT
    };
    assert_near(rounds(&sites, run).0.strengths[0], 0.1475, 5e-5);
}

#[test]
fn diagonals_lead_to_nearly_the_same_estimates_as_whole_sums() {
    let Some(sites) = hospitals() else { return };
    let (found, _) = rounds(
        &sites,
        Run {
            lean: true,
            ..EXACT
        },
    );
    assert!(found.done);
    assert_near(found.strengths[0], 0.1447983827, 1e-6);
    assert_near(found.noise, 0.6712979035, 1e-5);
}
