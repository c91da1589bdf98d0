//! Tables as they are read from a file, and rows as models take them.

use std::fmt;
use std::sync::Arc;

use methods::learner::{Split, together};

use super::Target;
use crate::random::{shuffle, stream};
use crate::schema::{EncodedColumn, Fill, Schema};

/// Name of a group of rows in a file, such as a patient. It is printed nowhere.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupId(pub String);

impl fmt::Debug for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupId")
    }
}

/// One silo's rows before splitting and scaling.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Names of the feature columns.
    pub columns: Vec<String>,
    /// Replacements of missing values, by column.
    pub fills: Vec<Fill>,
    /// The smallest and largest number that are agreed on, by column.
    pub ranges: Vec<Option<[f64; 2]>>,
    /// Those of the numbers to predict.
    pub target_range: Option<[f64; 2]>,
    /// Features, rows × columns, row-major; NaN where a value is missing.
    pub values: Vec<f64>,
    /// Targets, row-major: a number, the index of a class, several numbers, or the pixels of
    /// a mask for every row.
    pub target: Vec<f64>,
    /// The part of every row, where the data give it; empty where rows are to be split.
    pub parts: Vec<Split>,
    /// The time of every row, in any unit; empty where it is not known.
    pub times: Vec<f64>,
    /// Duration of a row from its time on, in the same unit; 0 for a moment. Rows that last into the time of
    /// held-out ones are not trained on.
    pub span: f64,
    /// The subgroup of every row, by its position in [`DataSet::subgroups`]; empty where there are none.
    pub subgroups: Vec<u16>,
    /// The group of every row, such as its patient, as a number from 0 that means nothing outside of this
    /// table: rows of one group stay together when rows are divided. Empty where rows have no groups.
    pub groups: Vec<u32>,
    /// Names of these groups in the files, by number. They stay at the silo, as rows do.
    pub group_ids: Vec<GroupId>,
    /// Keyed hashes of the unit that every row belongs to, where the institution has a secret for them; empty
    /// where it has none.
    pub drawn: Vec<u64>,
    /// The group that the silo is known to belong to, such as its region.
    pub group: Option<String>,
    /// The domain of every row, from 0, where the source knows them; empty where it does not.
    pub domains: Vec<u32>,
    /// Reports of rows that could not be read and count as nothing, in sentences without a full stop.
    pub unreadable: Vec<String>,
}

impl Table {
    /// No rows yet; missing values are to become means.
    pub fn new(columns: Vec<String>) -> Self {
        Self {
            fills: vec![Fill::Mean; columns.len()],
            ranges: vec![None; columns.len()],
            target_range: None,
            columns,
            values: Vec::new(),
            target: Vec::new(),
            parts: Vec::new(),
            times: Vec::new(),
            span: 0.0,
            subgroups: Vec::new(),
            groups: Vec::new(),
            group_ids: Vec::new(),
            drawn: Vec::new(),
            group: None,
            domains: Vec::new(),
            unreadable: Vec::new(),
        }
    }

    /// No rows yet, of these columns.
    pub fn encoded(columns: &[EncodedColumn]) -> Self {
        Self {
            fills: columns.iter().map(|column| column.fill).collect(),
            ranges: columns.iter().map(|column| column.range).collect(),
            ..Self::new(columns.iter().map(|column| column.name.clone()).collect())
        }
    }

    /// The columns of a row as a model takes it.
    pub fn encoding(&self) -> Vec<EncodedColumn> {
        let rules = self.fills.iter().zip(&self.ranges);
        let columns = self.columns.iter().zip(rules);
        let column =
            |(name, (&fill, &range)): (&String, (&Fill, &Option<[f64; 2]>))| EncodedColumn {
                name: name.clone(),
                fill,
                range,
            };
        columns.map(column).collect()
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If `features` does not have one value per column.
    pub fn push(&mut self, features: &[f64], target: f64) {
        self.push_all(features, &[target]);
    }

    /// Adds a row with several numbers to predict: as many as every other row has.
    ///
    /// # Panics
    /// If `features` does not have one value per column.
    pub fn push_all(&mut self, features: &[f64], targets: &[f64]) {
        assert_eq!(features.len(), self.columns.len(), "one value per column");
        self.values.extend_from_slice(features);
        self.target.extend_from_slice(targets);
    }

    /// The domain of all its rows, if the source knows it and it is the same.
    pub fn domain(&self) -> Option<u32> {
        let first = *self.domains.first()?;
        self.domains
            .iter()
            .all(|&domain| domain == first)
            .then_some(first)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.columns.len().max(1)
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The target of row `index`.
    pub fn targets(&self, index: usize) -> &[f64] {
        let count = self.target.len() / self.len().max(1);
        &self.target[index * count..][..count]
    }

    /// The features of row `index`.
    pub fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.columns.len()..][..self.columns.len()]
    }
}

/// All silos of a source, with the same columns and the same kind of target.
#[derive(Debug, Clone, PartialEq)]
pub struct DataSet {
    /// The kind of target.
    pub target: Target,
    /// Name and rows of each silo, in the source's order.
    pub silos: Vec<(String, Table)>,
    /// Meaning of the columns; `None` for built-in data, whose columns are plain numbers.
    pub schema: Option<Schema>,
    /// Findings while they were read, in sentences without a full stop.
    pub notes: Vec<String>,
    /// Names of the subgroups of rows; empty where there are none.
    pub subgroups: Vec<String>,
}

/// Complete rows as a model takes them, row-major: features and targets.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rows {
    width: usize,
    /// Targets per row.
    outputs: usize,
    features: Arc<Vec<f32>>,
    targets: Vec<f32>,
    /// Features and targets before they were rounded, where rounding changed any and they are still to
    /// be scaled.
    exact: Option<Exact>,
    /// The subgroup of every row; empty where there are none.
    subgroups: Arc<Vec<u16>>,
    /// The domain of every row; empty where none are known.
    domains: Vec<u32>,
    /// The group of every row, which is not divided; empty where there are none.
    groups: Arc<Vec<u32>>,
}

/// Features and targets in double precision, row-major.
#[derive(Debug, Clone, PartialEq)]
struct Exact {
    features: Arc<Vec<f64>>,
    targets: Vec<f64>,
}

impl Rows {
    /// One target per row.
    ///
    /// # Panics
    /// If there are not `width` features per target.
    pub fn new(width: usize, features: Vec<f32>, targets: Vec<f32>) -> Self {
        Self::wide(width, 1, features, targets)
    }

    /// With `outputs` targets per row, at least 1.
    ///
    /// # Panics
    /// If there are not `width` features for every `outputs` targets.
    pub fn wide(width: usize, outputs: usize, features: Vec<f32>, targets: Vec<f32>) -> Self {
        assert_eq!(
            features.len() * outputs,
            width * targets.len(),
            "features per row"
        );
        Self {
            width,
            outputs,
            features: Arc::new(features),
            targets,
            exact: None,
            subgroups: Arc::default(),
            domains: Vec::new(),
            groups: Arc::default(),
        }
    }

    /// Rows that are still to be scaled: double precision is kept where single precision would round.
    ///
    /// # Panics
    /// If there are not `width` features for every `outputs` targets.
    pub fn unscaled(width: usize, outputs: usize, features: Vec<f64>, targets: Vec<f64>) -> Self {
        let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        let rows = Self::wide(width, outputs, single(&features), single(&targets));
        let rounded = |value: &f64| f64::from(*value as f32) != *value;
        let exact = features.iter().chain(&targets).any(rounded);
        Self {
            exact: exact.then(|| Exact {
                features: Arc::new(features),
                targets,
            }),
            ..rows
        }
    }

    /// A feature of a row before it was rounded.
    #[inline]
    pub fn exact_feature(&self, row: usize, column: usize) -> f64 {
        let at = row * self.width + column;
        match &self.exact {
            Some(exact) => exact.features[at],
            None => self.features[at].into(),
        }
    }

    /// A number of the targets before it was rounded, by its position among those of all rows, row-major.
    fn exact_target(&self, at: usize) -> f64 {
        match &self.exact {
            Some(exact) => exact.targets[at],
            None => self.targets[at].into(),
        }
    }

    /// The targets of all rows before they were rounded, row-major.
    #[inline]
    pub fn exact_targets(&self) -> impl Iterator<Item = f64> + Clone {
        (0..self.targets.len()).map(|at| self.exact_target(at))
    }

    /// The features of these rows and their targets, before they were rounded.
    fn exact_of(&self, rows: impl Iterator<Item = usize> + Clone) -> Exact {
        let features = |row| (0..self.width).map(move |column| self.exact_feature(row, column));
        let targets = |row| (0..self.outputs).map(move |at| row * self.outputs + at);
        Exact {
            features: Arc::new(rows.clone().flat_map(features).collect()),
            targets: rows
                .flat_map(targets)
                .map(|at| self.exact_target(at))
                .collect(),
        }
    }

    /// The rows with a group each, or without any.
    pub fn with_groups(mut self, groups: Vec<u32>) -> Self {
        debug_assert!(groups.is_empty() || groups.len() == self.len());
        self.groups = Arc::new(groups);
        self
    }

    /// The group of every row; empty where there are none.
    #[inline]
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// The rows with a subgroup each, or without any.
    pub fn with_subgroups(mut self, subgroups: Vec<u16>) -> Self {
        debug_assert!(subgroups.is_empty() || subgroups.len() == self.len());
        self.subgroups = Arc::new(subgroups);
        self
    }

    /// The subgroup of every row; empty where there are none.
    #[inline]
    pub fn subgroups(&self) -> &[u16] {
        &self.subgroups
    }

    /// The rows with the domain of each.
    ///
    /// # Panics
    /// If there is not one for every row.
    pub fn within(mut self, domains: Vec<u32>) -> Self {
        assert_eq!(domains.len(), self.len(), "one domain per row");
        self.domains = domains;
        self
    }

    /// The domain of every row, if all are known.
    #[inline]
    pub fn domains(&self) -> Option<&[u32]> {
        (self.domains.len() == self.len()).then_some(&self.domains)
    }

    /// Rows of all parts, one part after the other.
    ///
    /// # Panics
    /// If there are no parts, or parts of different widths.
    pub fn concat(parts: &[&Self]) -> Self {
        let first = parts.first().expect("at least one part");
        let (width, outputs) = (first.width, first.outputs);
        let (mut features, mut targets, mut subgroups) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            assert_eq!((part.width, part.outputs), (width, outputs), "columns");
            features.extend_from_slice(&part.features);
            targets.extend_from_slice(&part.targets);
            subgroups.extend_from_slice(&part.subgroups);
        }
        if parts.iter().any(|part| part.subgroups.is_empty()) {
            subgroups.clear();
        }
        let any = parts.iter().any(|part| part.exact.is_some());
        let exact = any.then(|| {
            let mut all = Exact {
                features: Arc::default(),
                targets: Vec::new(),
            };
            for part in parts {
                let own = part.exact_of(0..part.len());
                Arc::make_mut(&mut all.features).extend_from_slice(&own.features);
                all.targets.extend(own.targets);
            }
            all
        });
        // Numbers of groups are a silo's own: those of the next begin after them.
        let mut groups = Vec::new();
        for part in parts {
            let next = groups.iter().max().map_or(0, |&last: &u32| last + 1);
            groups.extend(part.groups.iter().map(|&group| next + group));
        }
        if parts.iter().any(|part| part.groups.is_empty()) {
            groups.clear();
        }
        Self {
            exact,
            groups: Arc::new(groups),
            ..Self::wide(width, outputs, features, targets).with_subgroups(subgroups)
        }
    }

    /// The rows with the targets dealt to them in another order: row `i` has those of row `order[i]`.
    ///
    /// # Panics
    /// If `order` does not name one row for each.
    pub fn with_targets_of(&self, order: &[usize]) -> Self {
        assert_eq!(order.len(), self.len(), "one row for each");
        let outputs = self.outputs;
        let of = |&row: &usize| &self.targets[row * outputs..(row + 1) * outputs];
        let exact = self.exact.as_ref().map(|exact| {
            let of = |&row: &usize| &exact.targets[row * outputs..(row + 1) * outputs];
            Exact {
                features: exact.features.clone(),
                targets: order.iter().flat_map(of).copied().collect(),
            }
        });
        Self {
            targets: order.iter().flat_map(of).copied().collect(),
            exact,
            ..self.clone()
        }
    }

    /// The rows with every number changed, from what it was before it was rounded: a feature by
    /// `feature(column, value)`, a target by `target`.
    pub fn map(&self, feature: impl Fn(usize, f64) -> f32, target: impl Fn(f64) -> f32) -> Self {
        let cells = (0..self.len())
            .flat_map(|row| (0..self.width).map(move |column| (row, column)))
            .map(|(row, column)| feature(column, self.exact_feature(row, column)));
        Self {
            features: Arc::new(cells.collect()),
            targets: self.exact_targets().map(target).collect(),
            exact: None,
            ..self.clone()
        }
    }

    /// Features per row.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.targets.len() / self.outputs.max(1)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The features of one row.
    #[inline]
    pub fn features(&self, row: usize) -> &[f32] {
        &self.features[row * self.width..][..self.width]
    }

    /// The features of all rows, row-major.
    #[inline]
    pub fn all(&self) -> &[f32] {
        &self.features
    }

    /// The target of one row: numbers, the index of its class, or the pixels of a mask.
    #[inline]
    pub fn target(&self, row: usize) -> &[f32] {
        &self.targets[row * self.outputs..][..self.outputs]
    }

    /// The rows outside a fold and the rows in it, both in their order: the rows are dealt out to
    /// `folds` folds in turn, in an order drawn from `seed`, rows of one (first) target after the
    /// other so that folds have as many of each class as can be. Rows of one group are dealt together, by
    /// the (first) target of its first row. `None` unless `fold < folds`, there are at least two, and no
    /// more than rows, or groups.
    pub fn without_fold(&self, fold: usize, folds: usize, seed: u64) -> Option<(Self, Self)> {
        let dealt = self.dealt_together();
        if fold >= folds || folds < 2 || folds > dealt.len() {
            return None;
        }
        let mut order: Vec<usize> = (0..dealt.len()).collect();
        shuffle(&mut stream(seed, "folds"), &mut order);
        let target = |at: usize| self.target(dealt[at][0])[0];
        order.sort_by(|&a, &b| target(a).total_cmp(&target(b)));
        let mut inside = vec![false; self.len()];
        order
            .iter()
            .skip(fold)
            .step_by(folds)
            .flat_map(|&at| &dealt[at])
            .for_each(|&row| inside[row] = true);
        let part = |wanted: bool| {
            let rows = (0..self.len() as u32).filter(|&row| inside[row as usize] == wanted);
            self.pick(&rows.collect::<Vec<_>>())
        };
        Some((part(false), part(true)))
    }

    /// The rows of every group, in the order of their first rows; without groups every row by itself.
    fn dealt_together(&self) -> Vec<Vec<usize>> {
        together(&self.groups, self.len())
    }

    /// The rows at these positions alone, in this order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn pick(&self, rows: &[u32]) -> Self {
        let mut features = Vec::with_capacity(rows.len() * self.width);
        let mut targets = Vec::with_capacity(rows.len() * self.outputs);
        for &row in rows {
            features.extend_from_slice(self.features(row as usize));
            targets.extend_from_slice(self.target(row as usize));
        }
        let subgroups = if self.subgroups.is_empty() {
            Vec::new()
        } else {
            rows.iter()
                .map(|&row| self.subgroups[row as usize])
                .collect()
        };
        let domains = match self.domains() {
            Some(domains) => rows.iter().map(|&row| domains[row as usize]).collect(),
            None => Vec::new(),
        };
        let groups = if self.groups.is_empty() {
            Vec::new()
        } else {
            rows.iter().map(|&row| self.groups[row as usize]).collect()
        };
        let exact = self.exact.as_ref();
        Self {
            domains,
            groups: Arc::new(groups),
            exact: exact.map(|_| self.exact_of(rows.iter().map(|&row| row as usize))),
            ..Self::wide(self.width, self.outputs, features, targets).with_subgroups(subgroups)
        }
    }

    /// The features of these rows with these classes as targets.
    ///
    /// # Panics
    /// If the number of classes is not that of the rows.
    pub fn labelled(&self, labels: &[u32]) -> Self {
        assert_eq!(labels.len(), self.len(), "one label per row");
        let exact = self.exact.as_ref().map(|exact| Exact {
            features: exact.features.clone(),
            targets: labels.iter().map(|&label| label.into()).collect(),
        });
        Self {
            outputs: 1,
            targets: labels.iter().map(|&label| label as f32).collect(),
            exact,
            ..self.clone()
        }
    }

    /// The targets of all rows, row-major.
    #[inline]
    pub fn targets(&self) -> &[f32] {
        &self.targets
    }
}
