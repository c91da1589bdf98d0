//! Times to an event, some of which are censored.

use methods::learner::Surviving;

use super::*;

/// The time at which calibration is measured.
const UNTIL: f32 = 0.5;
/// About this share of the rows has its event, and rows.
const SIZES: [(f64, usize); 4] = [(0.9, 14), (0.5, 40), (0.3, 60), (0.15, 120)];

/// All ways in which models differ; there are no classes to be right about.
const MODELS: [SimulatedModels; 4] = [
    SimulatedModels::Coins,
    SimulatedModels::Near,
    SimulatedModels::Apart,
    SimulatedModels::Ties,
];

/// Both models' outputs for so many rows. Times are exponential; those of coins have nothing to do with the scores.
fn of_times(
    models: SimulatedModels,
    share: f64,
    rows: usize,
    random: &mut Random,
) -> SimulatedPair {
    let exponential = |rate: f64, random: &mut Random| -libm::log(1.0 - random.uniform()) / rate;
    let each: Vec<([f64; 2], [f32; 3])> = (0..rows)
        .map(|_| {
            let [x, a, b] = [(); 3].map(|()| normal(random));
            let scores = match models {
                SimulatedModels::Coins => [0.7 * a, 0.7 * b],
                SimulatedModels::Near => [x + 0.3 * a, x + 0.3 * b],
                _ => [x + 0.3 * a, 0.5 * x + b],
            };
            let scores = scores.map(|score| match models {
                SimulatedModels::Ties => (2.0 * score).round() / 2.0,
                _ => score,
            });
            let hazard = match models {
                SimulatedModels::Coins => 1.0,
                _ => libm::exp(x),
            };
            let event = exponential(hazard, random);
            let end = exponential((1.0 - share) / share, random);
            let seen = f32::from(u8::from(event < end));
            // A time of 0 is none.
            let time = (event.min(end) as f32).max(1e-6);
            (scores, [seen, time, 0.0])
        })
        .collect();
    [0, 1].map(|model| {
        let risks: Vec<f64> = each.iter().map(|(scores, _)| scores[model]).collect();
        let surviving = |score: &f64| libm::exp(-libm::exp(*score) * f64::from(UNTIL));
        RowResults {
            scores: [("loss".to_owned(), vec![0.0; rows])].into(),
            targets: each.iter().flat_map(|(_, target)| *target).collect(),
            surviving: Some(Surviving {
                until: UNTIL,
                probabilities: risks.iter().map(surviving).collect(),
            }),
            risks,
            ..RowResults::default()
        }
    })
}

#[test]
fn intervals_of_concordance_and_calibration_in_time_hold() {
    for metric in ["concordance", "calibration-at-time"] {
        let mut checked = CheckedCell::default();
        for models in MODELS {
            for (share, rows) in SIZES {
                let found = shares(metric, 100, rows, None, |rows, random| {
                    of_times(models, share, rows, random)
                });
                let what = format!("{models:?}, events at {share} of {rows} rows");
                checked.0.push((what, 0.93, found));
            }
        }
        checked.assert(metric, &[]);
    }
}
