//! Quality of scores that separate members from others: the area under the ROC curve, with an interval.

use simulations::random::Random;

use super::AttackEstimate;
use crate::statistic::Interval;

/// Draws of rows behind an interval.
const DRAWS: usize = 1000;

/// The score that an attack gives a row in one model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RowScore {
    /// The row.
    pub(crate) row: u32,
    /// Higher where the attack takes the row for a member.
    pub(crate) score: f64,
    /// True if the model learned from the row.
    pub(crate) member: bool,
}

/// The scores of all rows in one or several models, ascending.
pub(crate) struct RowScores {
    sorted: Vec<RowScore>,
    rows: usize,
}

impl RowScores {
    /// Of rows below `rows`.
    pub(crate) fn new(mut scores: Vec<RowScore>, rows: usize) -> Self {
        scores.sort_by(|a, b| a.score.total_cmp(&b.score));
        Self {
            sorted: scores,
            rows,
        }
    }

    /// The probability that a member has a higher score than another, where every row counts so often; a tie
    /// counts half. Not a number if there are no members or no others.
    fn area(&self, times: &[u32]) -> f64 {
        let (mut others, mut members, mut above) = (0.0, 0.0, 0.0);
        for equal in self.sorted.chunk_by(|a, b| a.score == b.score) {
            let of = |member| {
                let rows = equal.iter().filter(move |one| one.member == member);
                rows.map(|one| f64::from(times[one.row as usize]))
                    .sum::<f64>()
            };
            let (here, ties) = (of(true), of(false));
            above += here * (others + ties / 2.0);
            members += here;
            others += ties;
        }
        above / (members * others)
    }

    /// The area, with the interval of rows that are drawn again with their scores in all models.
    pub(crate) fn estimate(&self, seed: u64) -> Option<AttackEstimate> {
        let measured = self.area(&vec![1; self.rows]);
        let mut random = Random::new(seed, "rows drawn again for an interval");
        let mut times = vec![0_u32; self.rows];
        let draws = (0..DRAWS).map(|_| {
            times.fill(0);
            for _ in 0..self.rows {
                times[random.below(self.rows)] += 1;
            }
            self.area(&times)
        });
        let Interval { by, low, high } = Interval::of(measured, draws)?;
        Some(AttackEstimate {
            value: by,
            low,
            high,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scores(each: &[(f64, bool)]) -> RowScores {
        let scores = each.iter().enumerate();
        let scores = scores.map(|(row, &(score, member))| RowScore {
            row: row as u32,
            score,
            member,
        });
        RowScores::new(scores.collect(), each.len())
    }

    #[test]
    fn the_area_counts_pairs_and_half_of_the_ties() {
        let all = scores(&[(0.1, false), (0.4, true), (0.4, false), (0.8, true)]);
        // Of four pairs three are right and one is a tie.
        assert_eq!(all.area(&[1; 4]), 3.5 / 4.0);
        // The row at the tie counts twice.
        assert_eq!(all.area(&[1, 1, 2, 1]), 5.0 / 6.0);
        assert!(scores(&[(0.1, true)]).area(&[1]).is_nan());
    }

    /// Members are normal around 1, others around 0: the area is Φ(1/√2) = 0.760.
    #[test]
    fn the_interval_holds_the_truth() {
        let mut random = Random::new(4, "scores");
        let each: Vec<_> = (0..600)
            .map(|row| {
                (
                    methods::random::normal(random.words()) + f64::from(row % 2),
                    row % 2 == 1,
                )
            })
            .collect();
        let found = scores(&each).estimate(1).unwrap();
        assert!(found.low < 0.76 && 0.76 < found.high, "{found:?}");
        assert!(
            (0.05..0.12).contains(&(found.high - found.low)),
            "{found:?}"
        );
        assert_eq!(scores(&each).estimate(1), Some(found));
        assert_eq!(scores(&[(0.1, true)]).estimate(1), None);
    }
}
