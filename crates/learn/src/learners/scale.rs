//! The common scale of a federation: made from summaries of all silos, kept in buffers of the model.

use std::borrow::Cow;
use std::sync::Arc;

use methods::strategy::{DEVIATION, MEAN, REST, SUM_REST, split_double};
use methods::{Layout, Params, Role, TensorSpec};

use crate::data::{Moments, Rows, effective};

/// Columns that the federation scales.
#[derive(Clone)]
pub(crate) struct ColumnScaling {
    features: usize,
    /// `true` if the target is scaled, too: one number or several on one scale.
    target: bool,
    /// True if rows have labels instead of the target, which are not scaled.
    labelled: bool,
    summary: Arc<Layout>,
}

impl ColumnScaling {
    pub(crate) fn new(features: usize, target: bool) -> Self {
        let columns = features + usize::from(target);
        let tensor = |name, len| TensorSpec::new(name, [len], Role::Buffer);
        let summary = vec![
            tensor("count", 1),
            tensor("sum", columns),
            tensor(SUM_REST, columns),
            tensor("squares", columns),
        ];
        let summary = Layout::new(summary).expect("four different names, of small shapes");
        Self {
            features,
            target,
            labelled: false,
            summary,
        }
    }

    /// This scale, for rows with labels instead of the target.
    pub(crate) fn of_labelled(&self) -> Self {
        Self {
            labelled: true,
            ..self.clone()
        }
    }

    fn columns(&self) -> usize {
        self.features + usize::from(self.target)
    }

    /// The buffers that the model carries, each `[c]` over features, then the target if it is a number.
    pub(crate) fn tensors(&self) -> [TensorSpec; 3] {
        [MEAN, DEVIATION, REST].map(|name| TensorSpec::new(name, [self.columns()], Role::Buffer))
    }

    /// The initial buffers: mean 0, deviation 1.
    pub(crate) fn initial(&self) -> [(String, Vec<f32>); 3] {
        let columns = self.columns();
        [
            (MEAN.into(), vec![0.0; columns]),
            (REST.into(), vec![0.0; columns]),
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
                let values = (0..rows.len()).map(|row| rows.exact_feature(row, column));
                return Moments::of(values);
            }
            // Several numbers of a row count as their mean does, so that one number of rows, which
            // the summary has, goes with features and target.
            let targets = Moments::of(rows.exact_targets());
            let outputs = targets.count as f64 / rows.len().max(1) as f64;
            Moments {
                sum: targets.sum / outputs.max(1.0),
                squares: targets.squares / outputs.max(1.0),
                ..targets
            }
        };
        let moments: Vec<Moments> = (0..self.columns()).map(column).collect();
        // Single precision may round the count, by which the sum is divided again.
        let rounded = f64::from(rows.len() as f32) / rows.len().max(1) as f64;
        let column = |moments: &Moments| {
            let (sum, rest) = split_double(moments.sum * rounded);
            // At the edges of `f32` a spread still has to be a number.
            (moments.squares.min(f32::MAX.into()) as f32, sum, rest)
        };
        Params::build(&self.summary, |into| {
            // In the order of names: count, squares, sum, rest of the sum.
            let (count, columns) = into.split_at_mut(1);
            count[0] = rows.len() as f32;
            let width = moments.len();
            for (at, moments) in moments.iter().enumerate() {
                (columns[at], columns[width + at], columns[2 * width + at]) = column(moments);
            }
        })
    }

    /// Rows on the scale that `model` carries.
    pub(crate) fn apply<'a>(&self, model: &Params, rows: &'a Rows) -> Cow<'a, Rows> {
        let scale: Vec<(f64, f64)> = (0..self.columns())
            .filter_map(|column| column_scale(model, column))
            .collect();
        if scale.iter().all(|&scale| scale == (0.0, 1.0)) {
            return Cow::Borrowed(rows);
        }
        let scaled = |column: usize, value: f64| {
            let (mean, deviation) = scale[column];
            ((value - mean) / deviation) as f32
        };
        Cow::Owned(rows.map(scaled, |y| {
            if self.target && !self.labelled {
                scaled(self.features, y)
            } else {
                y as f32
            }
        }))
    }

    /// The size of one unit of the scaled target in the target's own units.
    pub(crate) fn unit(&self, model: &Params) -> f64 {
        if !self.target {
            return 1.0;
        }
        let scale = column_scale(model, self.features);
        scale.expect("the learner checked the layout").1
    }
}

/// Mean and deviation of a column on the common scale that `model` carries; `None` where it carries none.
pub(crate) fn column_scale(model: &Params, column: usize) -> Option<(f64, f64)> {
    let number = |name| Some(f64::from(*model.tensor(name)?.get(column)?));
    // Models made before it was there have no rest.
    let mean = number(MEAN)? + number(REST).unwrap_or(0.0);
    Some((mean, effective(number(DEVIATION)?)))
}
