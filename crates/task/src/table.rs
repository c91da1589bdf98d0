//! Tasks of models on tables of rows.

use std::path::Path;

use methods::robust::TransportCost;
use serde::{Deserialize, Serialize};

use crate::data::{DataError, DataSet, Reading, SplitConfig, Standardise, Target, without_range};
use crate::metrics::{Metric, MetricName};
use crate::schema::Schema;
use crate::{ModelConfig, Source};

/// A model on tables of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableTask {
    /// Source of the rows of a simulation: `"diabetes"`, `"breast-cancer"`, `"heart"`, or a table `tpt48`, `eicu-los`,
    /// `eicu-mortality`, `tcga-brca`, `synthetic`, `images` or `rows`. Without it every institution has rows of its own, which
    /// `schema` describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Source>,
    /// What the columns of all rows mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Schema>,
    /// Model family: `"logistic"`, `"cox"`, or a table `linear`, `mlp` or `network`.
    pub model: ModelConfig,
    /// Which rows are held out, to choose with and to test on.
    #[serde(default)]
    pub split: SplitConfig,
    /// How features, and a target that is a number, are scaled. Default:
    /// `"federation"` where numbers are predicted, `"silo"` for classes and masks, `"none"` for built-in
    /// data that are on a common scale already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardise: Option<Standardise>,
    /// The cost of moving a row in robust losses.
    #[serde(default)]
    pub robust: TransportCost,
    /// The metric that reports compare; by default `"mae"` for numbers, `"accuracy"` for classes, `"dice"` for masks,
    /// `"concordance"` for a time to an event.
    #[serde(default)]
    pub metric: Option<MetricName>,
    /// Domain of the rows of every silo, from 0, in the order of the source; for institutions with their
    /// own rows, in the order of the roster. By default what the source knows, which may be another
    /// domain for every row. Needed by strategies with given domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
    /// True if rows are read for sums with noise, see [`with_noise`](Self::with_noise).
    #[serde(skip)]
    pub(crate) noised: bool,
}

impl TableTask {
    /// Returns how numbers are scaled: as the task says, or by default by a common scale where numbers are
    /// predicted and by every silo otherwise. A silo that scales the target by its own mean makes
    /// models look better than they are at predicting the number itself.
    pub fn scaling(&self) -> Standardise {
        let scaled = self.data.as_ref().is_some_and(Source::is_scaled);
        self.standardise
            .unwrap_or(match (scaled, self.predicts_numbers()) {
                (true, _) => Standardise::None,
                (false, true) => Standardise::Federation,
                (false, false) => Standardise::Silo,
            })
    }

    fn predicts_numbers(&self) -> bool {
        let of_schema = |schema: &Schema| {
            matches!(
                schema.target(),
                Target::Number { .. } | Target::Numbers { .. }
            )
        };
        match (&self.schema, &self.data) {
            (Some(schema), _) => of_schema(schema),
            (None, Some(source)) => source.predicts_numbers(),
            (None, None) => false,
        }
    }

    /// The rows of all silos as they were read, before they are split and standardised. What a source
    /// draws at random follows from `seed`.
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read, or not be partitioned into that many silos; no
    /// `data` in the task; a task that contradicts itself.
    pub fn tables(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<DataSet, DataError> {
        self.check()?;
        let source = self.data.as_ref().ok_or_else(|| {
            DataError::Config(
                "the task names no data: every institution has rows of its own. To simulate, write \
                 `data`, such as [task.table.data.rows] with `files`"
                    .into(),
            )
        })?;
        let schema = self.schema.as_ref();
        let seed = self.split.seed.unwrap_or(seed);
        let reading = match self.noised {
            true => Reading::RowByRow,
            false => Reading::Whole,
        };
        source.read((schema, reading), silos, folder, &self.split, seed)
    }

    /// Returns whether the part of every row depends on its own unit alone
    /// ([`SplitConfig::is_by_unit`]), as the split says, or because the source gives it.
    pub fn is_by_unit(&self) -> bool {
        let given = matches!(self.data, Some(Source::Synthetic(_) | Source::Tpt48(_)));
        self.split.is_by_unit() || (given && self.split.validation == 0.0)
    }

    /// The domain of the rows of the silo at position `place` of `silos`, if domains are given.
    ///
    /// # Errors
    /// [`DataError::Config`]: another number of domains than of silos.
    pub fn domain(&self, place: usize, silos: usize) -> Result<Option<u32>, DataError> {
        match &self.domains {
            Some(domains) if domains.len() != silos => Err(DataError::Config(format!(
                "`domains` has {} entries for {silos} silos: give one for every silo, in their order",
                domains.len()
            ))),
            domains => Ok(domains.as_ref().and_then(|all| all.get(place)).copied()),
        }
    }

    /// Returns whether its numbers are in range and its schema is no contradiction.
    ///
    /// # Errors
    /// [`DataError::Config`].
    pub fn check(&self) -> Result<(), DataError> {
        self.split.check()?;
        self.robust
            .validate()
            .map_err(|error| DataError::Config(format!("`robust.label-cost`: {error}")))?;
        self.schema.as_ref().map_or(Ok(()), Schema::check)?;
        match &self.schema {
            _ if self.scaling() != Standardise::Ranges => Ok(()),
            Some(schema) => has_ranges(schema),
            None => Err(DataError::Config(
                "`standardise = \"ranges\"` scales by the ranges that a schema agrees on, and this task has no \
                 `[task.table.schema]`"
                    .into(),
            )),
        }
    }

    /// The primary metric, if the target has it.
    ///
    /// # Errors
    /// [`DataError::Config`]: it has not.
    pub fn primary_metric(&self, target: &Target) -> Result<Metric, DataError> {
        use MetricName::{
            Accuracy, BalancedAccuracy, Brier, CalibrationAtTime, CalibrationError, Concordance,
            Dice, IntegratedBrier, LogLoss, Loss, Mae, Mse, RocAuc,
        };
        let classes = [
            Loss,
            Accuracy,
            BalancedAccuracy,
            LogLoss,
            Brier,
            CalibrationError,
            RocAuc,
        ];
        let (fitting, default) = match target {
            Target::Number { .. } | Target::Numbers { .. } => (&[Loss, Mae, Mse][..], Mae),
            Target::Mask { .. } => (&[Loss, Dice][..], Dice),
            Target::Survival { .. } => (
                &[Concordance, Loss, IntegratedBrier, CalibrationAtTime][..],
                Concordance,
            ),
            Target::Classes(names) if names.len() == 2 => (&classes[..], Accuracy),
            // An area is for two classes.
            Target::Classes(_) => (&classes[..6], Accuracy),
        };
        let name = self.metric.unwrap_or(default);
        if !fitting.contains(&name) {
            let names: Vec<&str> = fitting.iter().map(|name| name.key()).collect();
            return Err(DataError::Config(format!(
                "`metric = {:?}` does not suit this target: choose one of {}",
                name.key(),
                names.join(", ")
            )));
        }
        let unit = match (target, name) {
            (Target::Number { unit } | Target::Numbers { unit, .. }, Mae) => unit.clone(),
            (Target::Number { unit } | Target::Numbers { unit, .. }, Mse) => {
                format!("({unit})²")
            }
            _ => String::new(),
        };
        Ok(Metric { name, unit })
    }
}

/// Returns whether every number of a schema has a range.
///
/// # Errors
/// [`DataError::Config`]: all that have none.
fn has_ranges(schema: &Schema) -> Result<(), DataError> {
    let columns = schema.encoded().into_iter();
    let without = columns.filter(|column| column.range.is_none());
    let mut without: Vec<_> = without
        .map(|column| format!("the column {:?}", column.name))
        .collect();
    let numbers = matches!(
        schema.target(),
        Target::Number { .. } | Target::Numbers { .. }
    );
    if numbers && schema.target.range.is_none() {
        without.push("the target".into());
    }
    match without.is_empty() {
        true => Ok(()),
        false => Err(without_range(&without.join(" and "))),
    }
}
