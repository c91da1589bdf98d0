//! Metrics that are no means over rows, as functions of how often each row counts: once where a model
//! is measured, and as often as it is drawn where an interval is drawn from the rows.

/// The area under the ROC curve: the fraction of pairs of a positive and a negative row in which the
/// positive one scores higher, equal scores counting half.
#[derive(Debug, Clone)]
pub struct RocArea {
    /// Rows by ascending score, each with whether it is positive.
    ascending: Vec<(usize, bool)>,
    /// Lengths of the runs of rows with equal scores.
    equal: Vec<usize>,
}

impl RocArea {
    /// Of rows with these scores.
    ///
    /// # Panics
    /// If one of the two lists is longer than the other.
    pub fn new(scores: &[f64], positive: &[bool]) -> Self {
        assert_eq!(
            scores.len(),
            positive.len(),
            "a score and a side for every row"
        );
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[a].total_cmp(&scores[b]));
        let equal = order.chunk_by(|&a, &b| scores[a] == scores[b]);
        Self {
            equal: equal.map(<[usize]>::len).collect(),
            ascending: order.into_iter().map(|row| (row, positive[row])).collect(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.ascending.len()
    }

    /// Returns whether each row is positive, in the order in which they were given.
    pub fn positive(&self) -> Vec<bool> {
        let mut all = vec![false; self.rows()];
        for &(row, positive) in &self.ascending {
            all[row] = positive;
        }
        all
    }

    /// The area where row i counts `times[i]` times; not a number without both kinds of rows.
    pub fn value(&self, times: &[u32]) -> f64 {
        let (mut positives, mut negatives, mut wins) = (0.0, 0.0, 0.0);
        let mut rest = self.ascending.as_slice();
        for &length in &self.equal {
            let (rows, others) = rest.split_at(length);
            rest = others;
            let (mut ups, mut downs) = (0.0, 0.0);
            for &(row, positive) in rows {
                let side = if positive { &mut ups } else { &mut downs };
                *side += f64::from(times[row]);
            }
            wins += ups * (negatives + downs / 2.0);
            positives += ups;
            negatives += downs;
        }
        wins / (positives * negatives)
    }
}

/// The mean over the classes that occur of the fraction of their rows that are given the right class.
#[derive(Debug, Clone, Default)]
pub struct BalancedAccuracy {
    /// The class of every row, and 1 where the row is given that class, otherwise 0.
    pub rows: Vec<(usize, f64)>,
}

impl BalancedAccuracy {
    /// The accuracy where row i counts `times[i]` times; not a number without rows.
    pub fn value(&self, times: &[u32]) -> f64 {
        let most = self.rows.iter().map(|(class, _)| *class).max();
        let mut classes = vec![(0.0, 0.0); most.map_or(0, |most| most + 1)];
        for (&(class, right), &times) in self.rows.iter().zip(times) {
            let sums: &mut (f64, f64) = &mut classes[class];
            sums.0 += right * f64::from(times);
            sums.1 += f64::from(times);
        }
        let there = classes.iter().filter(|(_, count)| *count > 0.0);
        let recalls: Vec<f64> = there.map(|(right, count)| right / count).collect();
        recalls.iter().sum::<f64>() / recalls.len() as f64
    }
}

/// Bins of the calibration error.
const BINS: usize = 10;

/// The expected calibration error (Guo et al. 2017), in ten bins.
#[derive(Debug, Clone, Default)]
pub struct CalibrationError {
    /// The probability of the class that every row is given, and 1 where that class is right,
    /// otherwise 0.
    pub rows: Vec<(f64, f64)>,
}

impl CalibrationError {
    /// The error where row i counts `times[i]` times; not a number without rows, and where a
    /// probability is none.
    pub fn value(&self, times: &[u32]) -> f64 {
        let (mut bins, mut all) = ([(0.0, 0.0); BINS], 0.0);
        for (&(probability, right), &times) in self.rows.iter().zip(times) {
            // The last bin holds 1, too.
            let bin = &mut bins[((probability * BINS as f64) as usize).min(BINS - 1)];
            bin.0 += right * f64::from(times);
            bin.1 += probability * f64::from(times);
            all += f64::from(times);
        }
        let apart = bins.iter().map(|(right, sum)| (right - sum).abs());
        apart.sum::<f64>() / all
    }
}
