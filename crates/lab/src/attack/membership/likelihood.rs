//! Confidence in a row of models that learned from it, and of those that did not.

use super::shadows::HalfFederation;

/// Smallest variance: confidences that are all alike tell nothing by their last bits.
const LEAST_VARIANCE: f64 = 1e-12;

/// A normal distribution of a row's confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
struct NormalFit {
    mean: f64,
    variance: f64,
}

impl NormalFit {
    /// `None` of fewer than two values.
    fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.len() < 2 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self {
            mean,
            variance: (squares / (count - 1.0)).max(LEAST_VARIANCE),
        })
    }

    /// The logarithm of the density, but for a constant.
    fn log_density(&self, at: f64) -> f64 {
        -0.5 * (self.variance.ln() + (at - self.mean).powi(2) / self.variance)
    }
}

/// Confidence of shadows in one row.
pub(super) struct ConfidenceModel {
    inside: Option<NormalFit>,
    outside: Option<NormalFit>,
}

impl ConfidenceModel {
    /// From the confidences `of` shadows.
    pub(super) fn of(
        shadows: &[HalfFederation],
        row: usize,
        of: fn(&HalfFederation) -> &[f64],
    ) -> Self {
        let with = |member: bool| {
            let shadows = shadows.iter().filter(|half| half.members[row] == member);
            let values: Vec<_> = shadows.map(|half| of(half)[row]).collect();
            NormalFit::of(&values)
        };
        Self {
            inside: with(true),
            outside: with(false),
        }
    }

    /// The logarithm of how much more likely this confidence is if the row was learned from; 0 where shadows
    /// say nothing.
    pub(super) fn ratio(&self, at: f64) -> f64 {
        let both = self.inside.zip(self.outside);
        both.map_or(0.0, |(inside, outside)| {
            inside.log_density(at) - outside.log_density(at)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn half(members: &[bool], last: &[f64]) -> HalfFederation {
        HalfFederation {
            members: members.into(),
            last: last.into(),
            mean: last.into(),
            informed: None,
        }
    }

    /// Means 3 and 0, both of variance 2: the ratio at x is (x²−(x−3)²)/4.
    #[test]
    fn the_ratio_is_that_of_two_normal_distributions() {
        let shadows = [(true, 2.0), (true, 4.0), (false, 1.0), (false, -1.0)];
        let shadows = shadows.map(|(member, value)| half(&[member], &[value]));
        let model = ConfidenceModel::of(&shadows, 0, |half| &half.last);
        for x in [-1.0, 0.0, 1.5, 4.0] {
            let expected = (x * x - (x - 3.0) * (x - 3.0)) / 4.0;
            assert!((model.ratio(x) - expected).abs() < 1e-12, "{x}");
        }
        // One shadow that learned from the row is too few.
        let few = ConfidenceModel::of(&shadows[1..], 0, |half| &half.last);
        assert_eq!(few.ratio(2.0), 0.0);
    }
}
