//! The benchmark `digits8-bench`.

use std::sync::Arc;

use methods::robust::TransportCost;

use super::table::counts;
use super::{Study, StudySilo};
use crate::data::{Digits, Preparation, Prepared, Standardise, Target};
use crate::learners::{TableLearner, TrainingScript};
use crate::metrics::{Metric, MetricName};
use crate::models::{Loss, Mlp};

/// The digits benchmark, without randomness and without scaling.
pub(crate) fn digits_study(files: Digits) -> Study {
    use crate::data::DIGITS_WIDTHS as WIDTHS;
    let mut rest = files.start.as_slice();
    let mut start = Vec::new();
    for (layer, pair) in WIDTHS.windows(2).enumerate() {
        for (part, len) in [("weight", pair[0] * pair[1]), ("bias", pair[1])] {
            let (values, after) = rest.split_at(len);
            start.push((format!("layer{layer}.{part}"), values.to_vec()));
            rest = after;
        }
    }
    let silos =
        files
            .silos
            .into_iter()
            .zip(files.orders)
            .enumerate()
            .map(|(index, (train, orders))| {
                let data = Prepared {
                    features: WIDTHS[0],
                    target: Target::Classes(
                        (0..WIDTHS[2]).map(|digit| digit.to_string()).collect(),
                    ),
                    train,
                    validation: Arc::default(),
                    test: files.test.clone(),
                    preparation: Preparation::none(WIDTHS[0]),
                    constant: Vec::new(),
                    absent: Vec::new(),
                    columns: Vec::new(),
                };
                let rows = counts(&data);
                let model = Box::new(Mlp::new(WIDTHS[0], &WIDTHS[1..2], WIDTHS[2]));
                let cost = TransportCost::default();
                let learner =
                    TableLearner::new(data, model, Loss::Softmax, Standardise::None, cost).follow(
                        TrainingScript {
                            start: start.clone(),
                            orders,
                        },
                    );
                let learner = Arc::new(learner);
                StudySilo {
                    name: format!("silo {}", index + 1),
                    learner: learner.clone(),
                    rows,
                    preparation: None,
                    group: None,
                    table: Some(learner),
                }
            });
    Study {
        silos: silos.collect(),
        notes: Vec::new(),
        proposed: None,
        subgroups: Vec::new(),
        classes: (0..WIDTHS[2]).map(|digit| digit.to_string()).collect(),
        pooled: None,
        metric: Metric {
            name: MetricName::Accuracy,
            unit: String::new(),
        },
    }
}
