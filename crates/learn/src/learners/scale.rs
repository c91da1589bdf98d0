//! The common scale of a federation: made from summaries of all silos, kept in buffers of the model.

use std::borrow::Cow;
use std::sync::Arc;

use methods::{Layout, Params, Role, TensorSpec};

use crate::data::{Moments, Rows, effective};

/// Names of the buffers in the model, each `[c]` over features, then the target if it is a number.
pub(crate) const MEAN: &str = "scale.mean";
pub(crate) const DEVIATION: &str = "scale.deviation";

/// Which columns the federation scales.
#[derive(Clone)]
pub(crate) struct Scale {
    features: usize,
    /// Whether the target is scaled, too: one number or several on one scale.
    target: bool,
    /// Whether rows have labels instead of the target, which are not scaled.
    labelled: bool,
    summary: Arc<Layout>,
}

impl Scale {
    pub(crate) fn new(features: usize, target: bool) -> Self {
        let columns = features + usize::from(target);
        let tensor = |name, len| TensorSpec::new(name, [len], Role::Buffer);
        let summary = vec![
            tensor("count", 1),
            tensor("sum", columns),
            tensor("squares", columns),
        ];
        let summary = Layout::new(summary).expect("three different names, of small shapes");
        Self {
            features,
            target,
            labelled: false,
            summary,
        }
    }

    /// The same scale, for rows with labels instead of the target.
    pub(crate) fn of_labelled(&self) -> Self {
        Self {
            labelled: true,
            ..self.clone()
        }
    }

    fn columns(&self) -> usize {
        self.features + usize::from(self.target)
    }

    /// The buffers that the model carries.
    pub(crate) fn tensors(&self) -> [TensorSpec; 2] {
        [MEAN, DEVIATION].map(|name| TensorSpec::new(name, [self.columns()], Role::Buffer))
    }

    /// The initial buffers: mean 0, deviation 1.
    pub(crate) fn initial(&self) -> [(String, Vec<f32>); 2] {
        let columns = self.columns();
        [
            (MEAN.into(), vec![0.0; columns]),
            (DEVIATION.into(), vec![1.0; columns]),
        ]
    }

    /// Layout of a summary.
    pub(crate) fn summary_layout(&self) -> &Arc<Layout> {
        &self.summary
    }

    /// Count, sum, and squared deviations from the silo's own mean, by column.
    pub(crate) fn summarise(&self, rows: &Rows) -> Params {
        let column = |column: usize| {
            if column < rows.width() {
                let values = (0..rows.len()).map(|row| f64::from(rows.features(row)[column]));
                return Moments::of(values);
            }
            // Several numbers of a row count as their mean does, so that one number of rows, which
            // the summary has, goes with features and target.
            let targets = Moments::of(rows.targets().iter().map(|&target| f64::from(target)));
            let outputs = targets.count as f64 / rows.len().max(1) as f64;
            Moments {
                sum: targets.sum / outputs.max(1.0),
                squares: targets.squares / outputs.max(1.0),
                ..targets
            }
        };
        let moments: Vec<Moments> = (0..self.columns()).map(column).collect();
        Params::build(&self.summary, |into| {
            // In the order of names: count, squares, sum.
            let (count, rest) = into.split_at_mut(1);
            let (squares, sums) = rest.split_at_mut(moments.len());
            count[0] = rows.len() as f32;
            for ((square, sum), moments) in squares.iter_mut().zip(sums).zip(&moments) {
                (*square, *sum) = (moments.squares as f32, moments.sum as f32);
            }
        })
    }

    /// Rows on the scale that `model` carries.
    pub(crate) fn apply<'a>(&self, model: &Params, rows: &'a Rows) -> Cow<'a, Rows> {
        let (mean, deviation) = (buffer(model, MEAN), buffer(model, DEVIATION));
        if mean.iter().all(|&m| m == 0.0) && deviation.iter().all(|&d| d == 1.0) {
            return Cow::Borrowed(rows);
        }
        let scaled = |column: usize, value: f32| {
            let deviation = effective(f64::from(deviation[column]));
            ((f64::from(value) - f64::from(mean[column])) / deviation) as f32
        };
        Cow::Owned(rows.map(scaled, |y| {
            if self.target && !self.labelled {
                scaled(self.features, y)
            } else {
                y
            }
        }))
    }

    /// The size of one unit of the scaled target in the target's own units.
    pub(crate) fn unit(&self, model: &Params) -> f64 {
        if !self.target {
            return 1.0;
        }
        effective(f64::from(buffer(model, DEVIATION)[self.features]))
    }
}

fn buffer<'a>(model: &'a Params, name: &str) -> &'a [f32] {
    model.tensor(name).expect("the learner checked the layout")
}
