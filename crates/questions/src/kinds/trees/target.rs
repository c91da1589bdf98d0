//! Outcomes that trees predict: scores, gradients and losses of a row.

use super::{Trees, TreesStart};
use crate::AgreedColumns;
use crate::table::Condition;

/// Kind of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreesTarget {
    /// A condition: one score, its log odds.
    Condition,
    /// So many levels: a score of each, of which softmax makes probabilities.
    Classes(usize),
    /// A number, scaled to ±1.
    Number,
}

impl Trees {
    /// The kind of the outcome.
    pub(super) fn target(&self, agreed: &AgreedColumns) -> TreesTarget {
        if self.outcome.parse::<Condition>().is_ok() {
            return TreesTarget::Condition;
        }
        // A column with an agreed range is a number.
        let levels = agreed.levels.get(&self.outcome);
        match levels.filter(|_| !agreed.ranges.contains_key(&self.outcome)) {
            Some(levels) => TreesTarget::Classes(levels.len()),
            None => TreesTarget::Number,
        }
    }
}

impl TreesTarget {
    /// Scores of a row, each of which has trees of its own.
    pub(super) fn scores(self) -> usize {
        match self {
            Self::Condition | Self::Number => 1,
            Self::Classes(count) => count,
        }
    }

    /// Returns whether its loss is the log loss.
    pub(super) fn is_probability(self) -> bool {
        match self {
            Self::Condition | Self::Classes(_) => true,
            Self::Number => false,
        }
    }

    /// The scores that trees are added to: the log odds of the condition, the logarithms of the levels' shares around their
    /// mean, or the scaled mean.
    pub(super) fn bases(self, start: &TreesStart) -> Vec<f64> {
        let outcomes = &start.outcomes;
        match self {
            Self::Condition => vec![libm::log(outcomes[0] / (start.rows - outcomes[0]))],
            Self::Number => vec![outcomes[0] / start.rows],
            Self::Classes(count) => {
                let shares = outcomes.iter().map(|rows| libm::log(rows / start.rows));
                let shares: Vec<f64> = shares.collect();
                let mean = shares.iter().sum::<f64>() / count as f64;
                shares.iter().map(|share| share - mean).collect()
            }
        }
    }

    /// Gradient and hessian of a row by each of its scores.
    pub(super) fn derivatives(self, scores: &[f64], outcome: f64) -> Vec<[f64; 2]> {
        match self {
            Self::Number => vec![[scores[0] - outcome, 1.0]],
            Self::Condition => {
                let probability = 1.0 / (1.0 + libm::exp(-scores[0]));
                vec![[probability - outcome, probability * (1.0 - probability)]]
            }
            Self::Classes(_) => {
                let is = |class: usize| f64::from(u8::from(class as f64 == outcome));
                let probabilities = softmax(scores).into_iter().enumerate();
                probabilities
                    .map(|(class, p)| [p - is(class), p * (1.0 - p)])
                    .collect()
            }
        }
    }

    /// The log loss, or the squared error.
    pub(super) fn loss(self, scores: &[f64], outcome: f64) -> f64 {
        match self {
            Self::Number => (scores[0] - outcome) * (scores[0] - outcome),
            Self::Condition => {
                let against = if outcome > 0.0 { -scores[0] } else { scores[0] };
                // ln(1 + e^x) without overflow.
                against.max(0.0) + libm::log1p(libm::exp(-against.abs()))
            }
            Self::Classes(_) => {
                let most = largest(scores);
                let sum: f64 = scores.iter().map(|score| libm::exp(score - most)).sum();
                libm::log(sum) - (scores[outcome as usize] - most)
            }
        }
    }
}

fn largest(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// The probabilities of scores.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let most = largest(scores);
    let parts = scores.iter().map(|score| libm::exp(score - most));
    let parts: Vec<f64> = parts.collect();
    let sum: f64 = parts.iter().sum();
    parts.iter().map(|part| part / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_of_classes_are_derivatives_of_their_loss() {
        let target = TreesTarget::Classes(3);
        let scores = [0.4, -1.2, 2.0];
        for class in 0..3 {
            let outcome = f64::from(u8::from(class > 0)) + f64::from(u8::from(class > 1));
            for (at, [gradient, hessian]) in
                target.derivatives(&scores, outcome).into_iter().enumerate()
            {
                let moved = |by: f64| {
                    let mut scores = scores;
                    scores[at] += by;
                    target.loss(&scores, outcome)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let curve = (moved(1e-4) - 2.0 * moved(0.0) + moved(-1e-4)) / 1e-8;
                assert!((slope - gradient).abs() < 1e-8, "{slope} {gradient}");
                assert!((curve - hessian).abs() < 1e-5, "{curve} {hessian}");
            }
        }
        // Two levels are a condition with the difference of their scores.
        let two = TreesTarget::Classes(2).loss(&[0.3, 1.5], 1.0);
        let one = TreesTarget::Condition.loss(&[1.2], 1.0);
        assert!((two - one).abs() < 1e-12, "{two} {one}");
    }
}
