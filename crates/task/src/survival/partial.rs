//! Cox's partial likelihood of risk scores, with Efron's ties and left truncation.

use super::range_sums::RangeSums;
use super::{ObservedTime, observed};

/// The least sum of relative hazards that is told from 0: scores that are 690 below the largest one count as that far
/// below, so that models that diverge have a loss and a slope that are numbers.
const LEAST: f64 = 1e-300;

/// Rows of which one has its event at a time at which others have theirs (D), and all that are at risk then (R).
pub(super) struct EventTime {
    time: f32,
    /// Numbers of the rows with an event then.
    events: Vec<usize>,
    /// `Σ_R exp(η − top)`.
    at_risk: f64,
    /// `Σ_D exp(η − top)`.
    dying: f64,
}

impl EventTime {
    /// The time.
    pub(super) fn time(&self) -> f32 {
        self.time
    }

    /// Breslow's step of the hazard of a row with the largest score.
    pub(super) fn breslow(&self) -> f64 {
        self.events.len() as f64 / told_from_zero(self.at_risk)
    }

    /// The part of the dying that Efron takes off, and what is left of the risk set, for each of its events.
    fn terms(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let count = self.events.len() as f64;
        (0..self.events.len()).map(move |event| {
            let part = event as f64 / count;
            (part, told_from_zero(self.at_risk - part * self.dying))
        })
    }
}

/// This sum of relative hazards, at least [`LEAST`]; what is no number stays none.
fn told_from_zero(sum: f64) -> f64 {
    if sum < LEAST { LEAST } else { sum }
}

/// All times of events, the first one first, and the largest score.
pub(super) fn event_times(scores: &[f64], rows: &[ObservedTime]) -> (Vec<EventTime>, f64) {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // Rows of one time in their order: the sorts are stable.
    let by = |of: fn(&ObservedTime) -> f32| {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by(|&a, &b| of(&rows[a]).total_cmp(&of(&rows[b])));
        order
    };
    let (earliest, entering) = (by(|row| row.time), by(|row| row.entry));
    let mut places = vec![0; rows.len()];
    let in_order = entering.iter().enumerate();
    in_order.for_each(|(place, &row)| places[row] = place);
    let weight = |row: usize| (scores[row] - top).exp();
    // Relative hazards by entry, of the rows that end at the time at hand or later.
    let mut observed = RangeSums::zeros(rows.len());
    let mut times = Vec::new();
    for same in earliest
        .chunk_by(|&a, &b| rows[a].time == rows[b].time)
        .rev()
    {
        let time = rows[same[0]].time;
        same.iter()
            .for_each(|&row| observed.add(places[row], weight(row)));
        let events: Vec<usize> = same
            .iter()
            .copied()
            .filter(|&row| rows[row].event)
            .collect();
        if !events.is_empty() {
            let entered = entering.partition_point(|&row| rows[row].entry < time);
            times.push(EventTime {
                time,
                dying: events.iter().map(|&row| weight(row)).sum(),
                at_risk: observed.sum(0..entered),
                events,
            });
        }
    }
    times.reverse();
    (times, top)
}

/// The negative log partial likelihood of risk scores, divided by the number of events (Cox 1975, with ties as Efron
/// 1977 counts them), and into `slopes` its gradient with respect to every score:
///
/// `−1/E Σ_s [ Σ_D η − Σ_{l<d} ln( Σ_R exp η − l/d Σ_D exp η ) ]`
///
/// over the times `s` of the `E` events, with the `d` rows D that have theirs at `s` and the rows R at risk then. Rows
/// are at risk together with those given here alone: all rows of a silo in a full step, those of a mini-batch in a
/// small one, as in DeepSurv (Katzman et al. 2018), which is an approximation whose risk sets are samples. Without an
/// event the loss and all slopes are 0.
///
/// `scores` and `slopes` have one number for each row, `targets` [three](super::NUMBERS).
///
/// # Panics
/// If there is another number of targets.
pub fn partial_likelihood(scores: &[f64], targets: &[f32], slopes: &mut [f64]) -> f64 {
    let rows = observed(targets);
    assert_eq!(scores.len(), rows.len(), "a score for every row");
    let (times, top) = event_times(scores, &rows);
    slopes.fill(0.0);
    let count: usize = times.iter().map(|time| time.events.len()).sum();
    if count == 0 {
        return 0.0;
    }
    let each = 1.0 / count as f64;
    // Σ 1/A over the terms of every time: a row is pulled at all times at which it is at risk.
    let mut pulls = Vec::with_capacity(times.len());
    let mut loss = 0.0;
    for time in &times {
        let (mut pull, mut spared) = (0.0, 0.0);
        for (part, rest) in time.terms() {
            loss += top + rest.ln();
            pull += 1.0 / rest;
            spared += part / rest;
        }
        for &row in &time.events {
            loss -= scores[row];
            slopes[row] -= each * (1.0 + (scores[row] - top).exp() * spared);
        }
        pulls.push(pull);
    }
    let pulls = RangeSums::of(&pulls);
    for (row, (slope, score)) in rows.iter().zip(slopes.iter_mut().zip(scores)) {
        let until = |limit: f32| times.partition_point(|event| event.time <= limit);
        let pull = pulls.sum(until(row.entry)..until(row.time));
        *slope += each * (score - top).exp() * pull;
    }
    loss * each
}

/// Returns what every row adds to the negative log partial likelihood: its own term, ties in equal parts; 0 for a row without
/// an event. The sum over the rows, divided by the number of events, is [`partial_likelihood`].
///
/// # Panics
/// As [`partial_likelihood`].
pub fn row_terms(scores: &[f64], targets: &[f32]) -> Vec<f64> {
    let rows = observed(targets);
    assert_eq!(scores.len(), rows.len(), "a score for every row");
    let (times, top) = event_times(scores, &rows);
    let mut terms = vec![0.0; rows.len()];
    for time in &times {
        let all: f64 = time.terms().map(|(_, rest)| top + rest.ln()).sum();
        let share = all / time.events.len() as f64;
        for &row in &time.events {
            terms[row] = share - scores[row];
        }
    }
    terms
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::path::Path;

    use super::*;
    use crate::data::{TcgaBrcaConfig, tcga_brca};
    use crate::random::{stream, uniform};

    /// Event, time and entry of every row.
    fn targets(of: &[(u8, f32, f32)]) -> Vec<f32> {
        let row = |&(event, time, entry): &(u8, f32, f32)| [f32::from(event), time, entry];
        of.iter().flat_map(row).collect()
    }

    fn loss(scores: &[f64], targets: &[f32]) -> f64 {
        partial_likelihood(scores, targets, &mut vec![0.0; scores.len()])
    }

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found}, not {expected}");
    }

    #[test]
    fn the_loss_is_that_of_three_terms_by_hand() {
        let rows = targets(&[(1, 1.0, 0.0), (0, 2.0, 0.0), (1, 3.0, 0.0), (1, 4.0, 0.0)]);
        let scores: [f64; 4] = [2f64.ln(), 0.0, 3f64.ln(), 0.0];
        // 2/(2+1+3+1), 3/(3+1) and 1/1.
        let terms = [(3.5f64).ln(), (4.0f64 / 3.0).ln(), 0.0];
        near(loss(&scores, &rows), terms.iter().sum::<f64>() / 3.0);
        let each = row_terms(&scores, &rows);
        for (found, expected) in each.iter().zip([terms[0], 0.0, terms[1], 0.0]) {
            near(*found, expected);
        }
        // Scores that differ by a constant are one model, however large it is.
        let moved = scores.map(|score| score + 1e4);
        assert!((loss(&moved, &rows) - loss(&scores, &rows)).abs() < 1e-9);
    }

    #[test]
    fn ties_are_counted_as_efron_counts_them() {
        let rows = targets(&[(1, 1.0, 0.0), (1, 1.0, 0.0), (0, 2.0, 0.0)]);
        let scores: [f64; 3] = [2f64.ln(), 0.0, 3f64.ln()];
        // 2·1 over (2+1+3) and (2+1+3 − ½·(2+1)).
        near(loss(&scores, &rows), (6.0f64 * 4.5 / 2.0).ln() / 2.0);
        // The order of rows of one time does not matter.
        let other = targets(&[(0, 2.0, 0.0), (1, 1.0, 0.0), (1, 1.0, 0.0)]);
        near(
            loss(&[scores[2], scores[1], scores[0]], &other),
            loss(&scores, &rows),
        );
        let all = row_terms(&scores, &rows).iter().sum::<f64>();
        near(all / 2.0, loss(&scores, &rows));
    }

    #[test]
    fn rows_are_at_risk_from_their_entry_on() {
        // The third row enters when the first has had its event, the fourth before it.
        let rows = [(1, 1.0, 0.0), (1, 2.0, 0.0), (0, 3.0, 1.0), (0, 3.0, 0.5)];
        let scores: [f64; 4] = [2f64.ln(), 0.0, 3f64.ln(), 5f64.ln()];
        let expected = (8.0f64 / 2.0).ln() + (9.0f64 / 1.0).ln();
        near(loss(&scores, &targets(&rows)), expected / 2.0);
        // Whoever enters before the first event is there from the beginning.
        let early = rows.map(|(event, time, entry)| (event, time, entry / 4.0));
        let never = rows.map(|(event, time, _)| (event, time, 0.0));
        near(
            loss(&scores, &targets(&early)),
            loss(&scores, &targets(&never)),
        );
    }

    #[test]
    fn without_an_event_there_is_nothing_to_lose() {
        let rows = targets(&[(0, 1.0, 0.0), (0, 2.0, 0.0)]);
        let mut slopes = [7.0; 2];
        assert_eq!(partial_likelihood(&[1.0, 5.0], &rows, &mut slopes), 0.0);
        assert_eq!(slopes, [0.0; 2]);
        // A row by itself is certain to be the one.
        near(loss(&[3.0], &targets(&[(1, 1.0, 0.0)])), 0.0);
        assert_eq!(loss(&[], &[]), 0.0);
    }

    #[test]
    fn slopes_equal_finite_differences_with_ties_and_entries() {
        for seed in 0..20 {
            let mut random = stream(seed, "partial likelihood");
            let mut draw = |most: f64| (uniform(&mut random) * most).floor();
            // Half of the seeds without late entries: these are added up in another way.
            let late = if seed % 2 == 0 { 3.0 } else { 1.0 };
            let rows: Vec<f32> = (0..30)
                .flat_map(|_| {
                    let entry = draw(late);
                    [draw(2.0), entry + 1.0 + draw(6.0), entry].map(|value| value as f32)
                })
                .collect();
            let scores: Vec<f64> = (0..30).map(|_| draw(100.0) / 25.0 - 2.0).collect();
            let mut slopes = vec![0.0; 30];
            partial_likelihood(&scores, &rows, &mut slopes);
            assert!(slopes.iter().sum::<f64>().abs() < 1e-12, "seed {seed}");
            for row in 0..30 {
                let moved = |by: f64| {
                    let mut scores = scores.clone();
                    scores[row] += by;
                    loss(&scores, &rows)
                };
                let difference = (moved(1e-4) - moved(-1e-4)) / 2e-4;
                let off = (slopes[row] - difference).abs();
                assert!(off < 1e-7, "seed {seed}, row {row}: {off}");
            }
        }
    }

    #[test]
    fn scores_far_apart_have_a_loss_and_slopes_that_are_numbers() {
        let rows = targets(&[(1, 1.0, 0.0), (1, 2.0, 0.0), (1, 3.0, 0.0), (0, 4.0, 0.0)]);
        for scores in [[5e3, 0.0, -5e3, 0.0], [-5e3, 5e3, 0.0, -5e3]] {
            let mut slopes = [0.0; 4];
            let found = partial_likelihood(&scores, &rows, &mut slopes);
            assert!(found.is_finite() && slopes.iter().all(|slope| slope.is_finite()));
        }
        // A score that is no number gives none.
        for scores in [[0.0, f64::NAN, 0.0, 0.0], [f64::INFINITY, 0.0, 0.0, 0.0]] {
            assert!(loss(&scores, &rows).is_nan(), "{scores:?}");
        }
    }

    /// Six regions, months rounded up, and the six columns of a model whose fit statsmodels and lifelines give.
    #[test]
    fn six_regions_have_the_known_likelihood_and_optimum() {
        let Some(folder) = std::env::var_os("ROTA_DATA") else {
            crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
            return;
        };
        let data = tcga_brca(TcgaBrcaConfig::default(), Some(Path::new(&folder))).unwrap();
        let columns = [
            ("age_at_index", 0.177_125_373_934),
            ("race_black or african american", -0.034_901_737_714_6),
            ("prior_malignancy_yes", 0.375_611_596_311),
            ("treatment_or_therapy_yes", -1.205_152_086_27),
            (
                "primary_diagnosis_Lobular carcinoma, NOS",
                -0.163_181_069_595,
            ),
            ("ajcc_pathologic_n_N1a", -0.510_016_756_544),
        ];
        let (mut total, mut gradient) = (0.0, [0.0; 6]);
        for (_, table) in &data.silos {
            let place = |name: &str| table.columns.iter().position(|own| own == name).unwrap();
            let features: Vec<Vec<f64>> = (0..table.len())
                .map(|row| {
                    let value = |&(name, _): &(&str, f64)| table.row(row)[place(name)];
                    let mut values: Vec<f64> = columns.iter().map(value).collect();
                    values[0] = (values[0] - 58.0) / 10.0;
                    values
                })
                .collect();
            let scores: Vec<f64> = features
                .iter()
                .map(|row| row.iter().zip(columns).map(|(x, (_, b))| x * b).sum())
                .collect();
            let rows: Vec<f32> = (0..table.len())
                .flat_map(|row| {
                    let months = (table.targets(row)[1] / 30.4375).ceil();
                    [table.targets(row)[0], months, 0.0].map(|value| value as f32)
                })
                .collect();
            let events = rows.chunks_exact(3).filter(|row| row[0] > 0.5).count() as f64;
            let mut slopes = vec![0.0; scores.len()];
            total += events * partial_likelihood(&scores, &rows, &mut slopes);
            for (row, slope) in features.iter().zip(slopes) {
                let each = gradient.iter_mut().zip(row);
                each.for_each(|(sum, x)| *sum += events * slope * x);
            }
        }
        assert!((total - 603.608_499_4).abs() < 1e-6, "{total}");
        // Ages are of single precision in a table.
        assert!(
            gradient.iter().all(|slope| slope.abs() < 1e-6),
            "{gradient:?}"
        );
    }
}
