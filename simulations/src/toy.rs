//! Studies of toy silos, for tests and examples: each has a quadratic loss with a known optimum.

use std::sync::Arc;

use learn::{RowCounts, Study, StudySilo};
use methods::learner::QuadraticLearner;
use task::{metrics::Metric, metrics::MetricName};

/// A study of silos with these centres, and their learners. The mean of the centres minimises the
/// sum of the silos' losses.
pub fn toy_study(centres: &[Vec<f64>]) -> (Study, Vec<Arc<QuadraticLearner>>) {
    let learners: Vec<_> = centres
        .iter()
        .map(|centre| Arc::new(QuadraticLearner::new(centre)))
        .collect();
    (study(&learners), learners)
}

/// A study of silos with these learners, called `toy 0`, `toy 1` and so on.
pub fn study(learners: &[Arc<QuadraticLearner>]) -> Study {
    let silo = |(at, learner): (usize, &Arc<QuadraticLearner>)| StudySilo {
        name: format!("toy {at}"),
        learner: learner.clone(),
        rows: RowCounts {
            train: 1,
            validation: 0,
            test: 1,
        },
        preparation: None,
        group: None,
        table: None,
    };
    let silos = learners.iter().enumerate().map(silo).collect();
    let metric = Metric {
        name: MetricName::Loss,
        unit: String::new(),
    };
    Study {
        silos,
        metric,
        pooled: None,
        notes: Vec::new(),
        proposed: None,
        subgroups: Vec::new(),
        classes: Vec::new(),
    }
}
