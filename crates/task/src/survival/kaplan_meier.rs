//! The Kaplan-Meier estimate (Kaplan & Meier 1958).

use super::ObservedTime;

/// The probability that an event has not happened yet, as a step function of time.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct KaplanMeier {
    /// The times at which it falls, ascending, and the probability from then on.
    steps: Vec<(f32, f64)>,
    /// The end of the last observation; 0 without rows.
    last: f32,
}

impl KaplanMeier {
    /// Of rows that count `times` times each; with late entries among those at risk.
    ///
    /// # Panics
    /// If there is another number of rows.
    pub(super) fn weighted(rows: &[ObservedTime], times: &[u32]) -> Self {
        Self::of_ends(rows, times, |row| row.event, |_| false)
    }

    /// Of rows that count once each.
    #[cfg(test)]
    fn of(rows: &[ObservedTime]) -> Self {
        Self::weighted(rows, &vec![1; rows.len()])
    }

    /// The distribution of censoring: the probability that a row is still observed. Events come before censorings of
    /// the same time.
    pub(super) fn of_censoring(rows: &[ObservedTime]) -> Self {
        Self::of_ends(
            rows,
            &vec![1; rows.len()],
            |row| !row.event,
            |row| row.event,
        )
    }

    /// Falls where rows end; those that have left by then are not at risk of it.
    fn of_ends(
        rows: &[ObservedTime],
        times: &[u32],
        ends: impl Fn(&ObservedTime) -> bool,
        has_left: impl Fn(&ObservedTime) -> bool,
    ) -> Self {
        assert_eq!(rows.len(), times.len(), "how often every row counts");
        let mut earliest: Vec<usize> = (0..rows.len()).filter(|&row| times[row] > 0).collect();
        earliest.sort_by(|&a, &b| rows[a].time.total_cmp(&rows[b].time));
        let mut entering = earliest.clone();
        entering.sort_by(|&a, &b| rows[a].entry.total_cmp(&rows[b].entry));
        let (mut at_risk, mut entered, mut probability) = (0.0, 0, 1.0);
        let mut steps = Vec::new();
        for same in earliest.chunk_by(|&a, &b| rows[a].time == rows[b].time) {
            let time = rows[same[0]].time;
            while let Some(&row) = entering.get(entered).filter(|&&row| rows[row].entry < time) {
                at_risk += f64::from(times[row]);
                entered += 1;
            }
            let count = |of: &dyn Fn(&ObservedTime) -> bool| -> f64 {
                let those = same.iter().filter(|&&row| of(&rows[row]));
                those.map(|&row| f64::from(times[row])).sum()
            };
            let ended = count(&ends);
            if ended > 0.0 {
                probability *= 1.0 - ended / (at_risk - count(&has_left));
                steps.push((time, probability));
            }
            at_risk -= count(&|_| true);
        }
        Self {
            steps,
            last: earliest.last().map_or(0.0, |&row| rows[row].time),
        }
    }

    /// The probability that the event has not happened until this time, what happens then included. `None` beyond the
    /// last observation, unless nothing is left by then.
    pub(super) fn at(&self, time: f32) -> Option<f64> {
        let probability = self.after_time(time);
        (time <= self.last || probability == 0.0).then_some(probability)
    }

    /// The probability after what happens at this time; after the last observation that of its end.
    pub(super) fn after_time(&self, time: f32) -> f64 {
        self.after(self.steps.partition_point(|(step, _)| *step <= time))
    }

    /// The probability just before this time.
    pub(super) fn before(&self, time: f32) -> f64 {
        self.after(self.steps.partition_point(|(step, _)| *step < time))
    }

    fn after(&self, steps: usize) -> f64 {
        match steps {
            0 => 1.0,
            steps => self.steps[steps - 1].1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(u8, f32)]) -> Vec<ObservedTime> {
        let row = |&(event, time): &(u8, f32)| ObservedTime {
            event: event == 1,
            time,
            entry: 0.0,
        };
        of.iter().map(row).collect()
    }

    fn near(found: Option<f64>, expected: f64) {
        assert!(
            found.is_some_and(|found| (found - expected).abs() < 1e-12),
            "{found:?}, expected {expected}"
        );
    }

    #[test]
    fn the_estimate_is_the_product_over_the_event_times() {
        // Of four one has it at 1; of the two that are left at 3, one has it then.
        let estimate = KaplanMeier::of(&rows(&[(1, 1.0), (0, 2.0), (1, 3.0), (0, 4.0)]));
        near(estimate.at(0.5), 1.0);
        near(estimate.at(1.0), 0.75);
        near(estimate.at(2.9), 0.75);
        near(estimate.at(3.0), 0.375);
        assert_eq!(estimate.before(3.0), 0.75);
        assert_eq!(estimate.at(4.1), None, "beyond the last observation");
        // All have had the event: it stays at 0.
        near(KaplanMeier::of(&rows(&[(1, 1.0), (1, 2.0)])).at(9.0), 0.0);
    }

    #[test]
    fn rows_that_count_twice_are_two_rows() {
        let all = rows(&[(1, 1.0), (0, 2.0), (1, 3.0)]);
        let weighted = KaplanMeier::weighted(&all, &[2, 0, 1]);
        let twice = KaplanMeier::of(&rows(&[(1, 1.0), (1, 1.0), (1, 3.0)]));
        assert_eq!(weighted, twice);
    }

    #[test]
    fn rows_that_enter_late_are_not_at_risk_before() {
        let mut all = rows(&[(1, 1.0), (1, 2.0), (0, 5.0)]);
        all[2].entry = 1.5;
        let estimate = KaplanMeier::of(&all);
        near(estimate.at(1.0), 0.5);
        near(estimate.at(2.0), 0.25);
    }

    #[test]
    fn events_come_before_censorings_of_the_same_time() {
        // At 2 one has the event and one is censored: of the two that are left then, one is censored.
        let estimate = KaplanMeier::of_censoring(&rows(&[(1, 2.0), (0, 2.0), (0, 3.0)]));
        near(estimate.at(2.0), 0.5);
        near(estimate.at(1.9), 1.0);
    }
}
