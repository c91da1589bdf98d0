//! Draws of test rows, as a bootstrap takes them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use simulations::random::Random;

/// Counts of every row in every draw.
pub(super) struct DrawnRows {
    /// Row by row, in each all draws: so the sums of all draws are added side by side, each in the order
    /// that it has alone.
    times: Vec<u32>,
    /// Rows of every draw.
    counts: Vec<f64>,
}

impl DrawnRows {
    /// `draws` draws of as many `units` as there are, each with all its rows. The same for the same
    /// `targets`.
    fn new(targets: &str, units: &[Vec<usize>], draws: usize) -> Self {
        let mut random = Random::new(0, &format!("test rows {targets}"));
        let rows: usize = units.iter().map(Vec::len).sum();
        let mut times = vec![0; rows * draws];
        let mut counts = vec![0.0; draws];
        for (draw, count) in counts.iter_mut().enumerate() {
            for _ in 0..units.len() {
                let unit = &units[random.below(units.len())];
                unit.iter().for_each(|row| times[row * draws + draw] += 1);
                *count += unit.len() as f64;
            }
        }
        Self { times, counts }
    }

    /// Number of draws.
    pub(super) fn count(&self) -> usize {
        self.counts.len()
    }

    /// Returns how often every row counts in draw number `draw`.
    pub(super) fn draw(&self, draw: usize) -> Vec<u32> {
        let rows = self.times.chunks_exact(self.counts.len());
        rows.map(|times| times[draw]).collect()
    }

    /// The mean of `values`, one for each row, in every draw.
    pub(super) fn means(&self, values: &[f64]) -> Vec<f64> {
        let mut means = vec![0.0; self.counts.len()];
        let rows = self.times.chunks_exact(self.counts.len());
        for (value, times) in values.iter().zip(rows) {
            for (sum, &times) in means.iter_mut().zip(times) {
                *sum += value * f64::from(times);
            }
        }
        let each = means.iter_mut().zip(&self.counts);
        each.for_each(|(sum, count)| *sum /= count);
        means
    }
}

/// The draws of a comparison, which all pairs of models share that were measured on the same rows.
#[derive(Default)]
pub(super) struct SharedDraws(RefCell<HashMap<(String, usize), Rc<DrawnRows>>>);

impl SharedDraws {
    /// `draws` draws of the rows with these targets, which are in these units.
    pub(super) fn of(&self, targets: &str, units: &[Vec<usize>], draws: usize) -> Rc<DrawnRows> {
        let mut known = self.0.borrow_mut();
        let new = || Rc::new(DrawnRows::new(targets, units, draws));
        known
            .entry((targets.to_owned(), draws))
            .or_insert_with(new)
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_group_are_drawn_together_and_means_are_of_draws() {
        let units = vec![vec![0, 2, 3], vec![1], vec![4, 5]];
        let shared = SharedDraws::default();
        let drawn = shared.of("rows", &units, 50);
        let means = drawn.means(&[1.0, 7.0, 1.0, 1.0, 4.0, 4.0]);
        for (draw, mean) in means.into_iter().enumerate() {
            let times = drawn.draw(draw);
            assert_eq!(
                (times[0], times[0], times[4]),
                (times[2], times[3], times[5])
            );
            assert_eq!(times[0] + times[1] + times[4], 3);
            let count = f64::from(3 * times[0] + times[1] + 2 * times[4]);
            let own = f64::from(3 * times[0] + 7 * times[1] + 8 * times[4]) / count;
            assert!((mean - own).abs() < 1e-12);
        }
        // The same targets have the same draws, also in another comparison.
        let again = SharedDraws::default().of("rows", &units, 50);
        assert_eq!(again.times, drawn.times);
        assert!(Rc::ptr_eq(&shared.of("rows", &units, 50), &drawn));
    }

    #[test]
    fn without_groups_the_draws_are_those_of_rows() {
        let rows: Vec<Vec<usize>> = (0..6).map(|row| vec![row]).collect();
        let drawn = SharedDraws::default().of("rows", &rows, 9);
        assert!((0..9).all(|draw| drawn.draw(draw).iter().sum::<u32>() == 6));
    }
}
