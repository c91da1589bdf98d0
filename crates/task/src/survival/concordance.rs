//! Harrell's concordance index, as a function of how often each row counts.

use super::ObservedTime;
use super::range_sums::RangeSums;

/// The concordance index (Harrell et al. 1982): of the comparable pairs, the fraction in which the row with the event
/// has the higher risk score, equal scores counting half.
///
/// A pair is comparable if one row has its event while the other is at risk and goes on: it lives longer, or is
/// censored at the same time. Two events of the same time are no pair, and pairs of rows of different parts, such as
/// silos, are none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Concordance {
    parts: Vec<PairedRows>,
}

/// The rows among which pairs are formed.
#[derive(Debug, Clone, PartialEq)]
struct PairedRows {
    rows: Vec<ObservedTime>,
    /// The position of every row's score among the different ones, from 0.
    ranks: Vec<usize>,
    /// Number of different scores.
    levels: usize,
    /// The rows by time, the last one first.
    latest: Vec<usize>,
    /// The rows by entry, the last one first.
    entering: Vec<usize>,
}

impl Concordance {
    /// Adds rows with these scores, of which pairs are formed among each other.
    ///
    /// # Panics
    /// If one of the two lists is longer than the other.
    pub fn push(&mut self, scores: &[f64], rows: Vec<ObservedTime>) {
        assert_eq!(scores.len(), rows.len(), "a score for every row");
        let mut ascending: Vec<usize> = (0..rows.len()).collect();
        ascending.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let (mut ranks, mut levels) = (vec![0; rows.len()], 0);
        for equal in ascending.chunk_by(|&a, &b| scores[a] == scores[b]) {
            equal.iter().for_each(|&row| ranks[row] = levels);
            levels += 1;
        }
        let by = |of: fn(&ObservedTime) -> f32| {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by(|&a, &b| of(&rows[b]).total_cmp(&of(&rows[a])));
            order
        };
        let (latest, entering) = (by(|row| row.time), by(|row| row.entry));
        self.parts.push(PairedRows {
            rows,
            ranks,
            levels,
            latest,
            entering,
        });
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows.len()).sum()
    }

    /// Returns whether each row has an event, in the order in which they were given.
    pub fn events(&self) -> Vec<bool> {
        let rows = self.parts.iter().flat_map(|part| &part.rows);
        rows.map(|row| row.event).collect()
    }

    /// The index where row i counts `times[i]` times; not a number without a comparable pair.
    ///
    /// # Panics
    /// If there are fewer numbers than rows.
    pub fn value(&self, times: &[u32]) -> f64 {
        let (mut rest, mut wins, mut pairs) = (times, 0.0, 0.0);
        for part in &self.parts {
            let (own, others) = rest.split_at(part.rows.len());
            rest = others;
            let (more, all) = part.pairs(own);
            wins += more;
            pairs += all;
        }
        wins / pairs
    }
}

impl PairedRows {
    /// Concordant pairs, tied ones counting half, and comparable pairs.
    fn pairs(&self, times: &[u32]) -> (f64, f64) {
        // How many rows have each rank: whole numbers, so that sums are exact.
        let mut at_risk = RangeSums::zeros(self.levels);
        let mut left = 0;
        let (mut wins, mut pairs) = (0.0, 0.0);
        let weight = |row: usize| f64::from(times[row]);
        for same in self
            .latest
            .chunk_by(|&a, &b| self.rows[a].time == self.rows[b].time)
        {
            let time = self.rows[same[0]].time;
            let (events, censored): (Vec<usize>, Vec<usize>) =
                same.iter().partition(|&&row| self.rows[row].event);
            for &row in &censored {
                at_risk.add(self.ranks[row], weight(row));
            }
            // Who enters at that time or later ends later, so that it was added before.
            while let Some(&row) = self
                .entering
                .get(left)
                .filter(|&&row| self.rows[row].entry >= time)
            {
                at_risk.add(self.ranks[row], -weight(row));
                left += 1;
            }
            for &row in &events {
                let rank = self.ranks[row];
                let (below, up_to) = (at_risk.sum(0..rank), at_risk.sum(0..rank + 1));
                wins += weight(row) * (below + up_to) / 2.0;
                pairs += weight(row) * at_risk.sum(0..self.levels);
            }
            for &row in &events {
                at_risk.add(self.ranks[row], weight(row));
            }
        }
        (wins, pairs)
    }
}

/// The [concordance index](Concordance) of one silo's rows; `None` without a comparable pair.
///
/// # Panics
/// If there is not a score for every row.
pub fn concordance(scores: &[f64], rows: &[ObservedTime]) -> Option<f64> {
    let mut index = Concordance::default();
    index.push(scores, rows.to_vec());
    let value = index.value(&vec![1; rows.len()]);
    (!value.is_nan()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{stream, uniform};

    fn row(event: bool, time: f32, entry: f32) -> ObservedTime {
        ObservedTime { event, time, entry }
    }

    /// The definition, pair by pair.
    fn by_pairs(scores: &[f64], rows: &[ObservedTime], times: &[u32]) -> f64 {
        let (mut wins, mut pairs) = (0.0, 0.0);
        for (a, dies) in rows.iter().enumerate().filter(|(_, row)| row.event) {
            for (b, other) in rows.iter().enumerate() {
                let longer = other.time > dies.time || (other.time == dies.time && !other.event);
                if longer && other.entry < dies.time {
                    let weight = f64::from(times[a] * times[b]);
                    pairs += weight;
                    wins += weight
                        * match scores[a].total_cmp(&scores[b]) {
                            std::cmp::Ordering::Greater => 1.0,
                            std::cmp::Ordering::Equal => 0.5,
                            std::cmp::Ordering::Less => 0.0,
                        };
                }
            }
        }
        wins / pairs
    }

    #[test]
    fn five_rows_by_hand_have_their_index() {
        let rows = [
            row(true, 1.0, 0.0),
            row(true, 2.0, 0.0),
            row(false, 2.0, 0.0),
            row(false, 3.0, 0.0),
            row(true, 3.0, 0.0),
        ];
        // Of the first row: 4 pairs, of the second 3 (the censored one of its time, too), of the last 1.
        // 3 > 1, 3 = 3, 3 > 0, 3 < 4; 1 < 3, 1 > 0, 1 < 4; 4 > 0.
        let found = concordance(&[3.0, 1.0, 3.0, 0.0, 4.0], &rows);
        assert_eq!(found, Some((2.5 + 1.0 + 1.0) / 8.0));
    }

    #[test]
    fn rows_without_a_comparable_pair_have_no_index() {
        let censored = [row(false, 1.0, 0.0), row(false, 2.0, 0.0)];
        assert_eq!(concordance(&[1.0, 2.0], &censored), None);
        // The event is the last: nobody is at risk then.
        let last = [row(false, 1.0, 0.0), row(true, 2.0, 0.0)];
        assert_eq!(concordance(&[1.0, 2.0], &last), None);
        let both = [row(true, 1.0, 0.0), row(true, 1.0, 0.0)];
        assert_eq!(concordance(&[1.0, 2.0], &both), None);
        // The other one enters when the first has had its event.
        let late = [row(true, 1.0, 0.0), row(false, 2.0, 1.0)];
        assert_eq!(concordance(&[1.0, 2.0], &late), None);
    }

    #[test]
    fn counts_of_ranks_give_the_pairs_of_the_definition() {
        for seed in 0..20 {
            let mut random = stream(seed, "concordance");
            let mut draw = |most: f64| (uniform(&mut random) * most).floor();
            let rows: Vec<ObservedTime> = (0..40)
                .map(|_| {
                    let entry = (draw(8.0) - 4.0).max(0.0);
                    row(
                        draw(2.0) == 1.0,
                        (entry + 1.0 + draw(9.0)) as f32,
                        entry as f32,
                    )
                })
                .collect();
            let scores: Vec<f64> = (0..40).map(|_| draw(6.0)).collect();
            let times: Vec<u32> = (0..40).map(|_| draw(4.0) as u32).collect();
            let mut index = Concordance::default();
            index.push(&scores, rows.clone());
            let expected = by_pairs(&scores, &rows, &times);
            assert!(
                (index.value(&times) - expected).abs() < 1e-12,
                "seed {seed}"
            );
        }
    }

    #[test]
    fn pairs_are_formed_within_parts_only() {
        let mut index = Concordance::default();
        let rows = vec![row(true, 1.0, 0.0), row(false, 2.0, 0.0)];
        index.push(&[1.0, 0.0], rows.clone());
        index.push(&[0.0, 9.0], rows);
        assert_eq!(index.value(&[1; 4]), 0.5);
        assert_eq!(index.value(&[1, 1, 1, 0]), 1.0);
        assert_eq!(
            (index.rows(), index.events()),
            (4, vec![true, false, true, false])
        );
    }
}
