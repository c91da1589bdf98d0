//! Steps by which the comparison for advice grows with the time that there is.

use std::time::Duration;

/// The steps, the smallest first, from which the time of the others is guessed: seeds, and settings tried for
/// each way.
pub(super) const STEPS: [(usize, usize); 7] =
    [(2, 1), (6, 1), (6, 3), (8, 3), (10, 4), (14, 6), (20, 6)];

/// The time that a larger step may take, as a multiple of what is expected: one that is cut off confirms nothing.
const SPARE: f64 = 1.5;

/// Time that a step took, or took until it was cut off.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepTime {
    /// Its seeds and settings.
    pub(super) step: (usize, usize),
    /// Runs that it has, and those of them that ended.
    pub(super) runs: (usize, usize),
    pub(super) took: Duration,
}

impl StepTime {
    /// Returns how long another step takes, about; `None` where no run ended, so that nobody knows.
    fn of(&self, step: (usize, usize)) -> Option<Duration> {
        let (all, ended) = self.runs;
        let whole = (ended > 0).then(|| self.took.mul_f64(all as f64 / ended as f64))?;
        Some(whole.mul_f64(cost(step) / cost(self.step)))
    }

    /// The largest step for which there is time after this one, the first; with time to spare, where a smaller one
    /// would confirm as well.
    pub(super) fn next(&self, budget: Duration) -> Option<(usize, usize)> {
        let fits = |step: &&(usize, usize)| {
            let spare = if **step == STEPS[1] { 1.0 } else { SPARE };
            let takes = self.of(**step);
            takes.is_some_and(|takes| self.took + takes.mul_f64(spare) <= budget)
        };
        STEPS.iter().skip(1).rev().find(fits).copied()
    }

    /// Minutes, about, in which enough seeds confirm a gain: the time of the first step, and that of so many seeds
    /// as the second step has at least. Never fewer than those of the `budget` that were too few. `None` where no
    /// run of the last step ended.
    pub(super) fn enough(first: &Self, second: Option<&Self>, budget: Duration) -> Option<f64> {
        let (seeds, points) = STEPS[1];
        let (before, takes) = match second {
            Some(second) => (first.took, second.of((seeds, second.step.1))?),
            None => (first.of(first.step)?, first.of((seeds, points))?),
        };
        Some((before + takes).max(budget).as_secs_f64() / 60.0)
    }
}

/// Trainings of a step for each round: every setting, and the chosen one again.
fn cost((seeds, points): (usize, usize)) -> f64 {
    (seeds * (points + 1)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn time(step: (usize, usize), runs: (usize, usize), minutes: u32) -> StepTime {
        let took = minutes * MINUTE;
        StepTime { step, runs, took }
    }

    #[test]
    fn the_minutes_named_are_those_with_which_the_step_fits() {
        let first = time(STEPS[0], (20, 20), 1);
        // One minute, and three times as long for three times the seeds.
        let named = StepTime::enough(&first, None, 3 * MINUTE);
        assert_eq!(named, Some(4.0));
        assert_eq!(first.next(4 * MINUTE), Some(STEPS[1]));
        assert_eq!(first.next(4 * MINUTE - Duration::from_secs(1)), None);
        // Six minutes, and half as many to spare.
        assert_eq!(first.next(9 * MINUTE), Some(STEPS[1]));
        assert_eq!(first.next(10 * MINUTE), Some(STEPS[2]));
    }

    #[test]
    fn a_step_that_was_cut_off_is_scaled_by_its_runs() {
        // Half of the runs in two minutes: four for all, and twelve more.
        let first = time(STEPS[0], (20, 10), 2);
        let named = StepTime::enough(&first, None, 2 * MINUTE);
        assert_eq!(named, Some(16.0));
        assert_eq!(first.next(2 * MINUTE), None);
        // Where no run ended, nobody knows.
        let none = time(STEPS[0], (20, 0), 2);
        assert_eq!(StepTime::enough(&none, None, 2 * MINUTE), None);
        assert_eq!(none.next(100 * MINUTE), None);
    }

    #[test]
    fn never_fewer_minutes_are_named_than_were_given() {
        let first = time(STEPS[0], (20, 20), 1);
        // A quarter of eight seeds took six minutes: six seeds take eighteen.
        let second = time(STEPS[3], (80, 20), 6);
        let named = StepTime::enough(&first, Some(&second), 7 * MINUTE);
        assert_eq!(named, Some(1.0 + 0.75 * 24.0));
        // What took less than guessed, and is not complete for another reason.
        let quick = time(STEPS[1], (60, 60), 2);
        let named = StepTime::enough(&first, Some(&quick), 7 * MINUTE);
        assert_eq!(named, Some(7.0));
    }
}
