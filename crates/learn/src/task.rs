//! The learning task: its configuration, and the silos and learners made from it.

use std::path::Path;
use std::sync::Arc;

use methods::Learner;
use methods::learner::Split;
use methods::robust::TransportCost;
use serde::{Deserialize, Serialize};

use crate::data::{
    CsvConfig, DataError, DataSet, Digits, Prepared, Rows, SplitConfig, Standardise, Target,
    diabetes_silos, digits, heart,
};
use crate::learners::{ConstantLearner, Script, TableLearner};
use crate::metrics::{Metric, MetricName};
use crate::models::{Head, Linear, Loss, Mlp, Model, Network, NetworkConfig, RegressionLoss};

/// Default number of silos for sources whose rows can be partitioned into any number.
const SILOS: usize = 8;

/// A learning task. In TOML: `[task.table]`, `task = "digits8-bench"`, or `[task.constant]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TaskConfig {
    /// A model on tables of rows.
    Table(Box<TableTask>),
    /// A benchmark with given initial weights and order of rows: a 64-128-10 perceptron on the optical
    /// digits of UCI, in 20 (the default) or 100 silos, from the folder `digits8_bench` of the data.
    Digits8Bench,
    /// Null training, to measure the cost of everything but learning.
    Constant {
        /// Number of values in the model.
        #[schemars(range(min = 1), extend("x-unit" = "values"))]
        parameters: usize,
    },
}

/// A model on tables of rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableTask {
    /// Source of the rows: `"diabetes"`, `"heart"`, or a `csv` table.
    pub data: Source,
    /// Model family: `"logistic"`, or a table `linear`, `mlp` or `network`.
    pub model: ModelConfig,
    /// Fractions of the rows that are held out.
    #[serde(default)]
    pub split: SplitConfig,
    /// How features, and a target that is a number, are scaled to mean 0 and deviation 1. Default:
    /// `"silo"`.
    #[serde(default)]
    pub standardise: Standardise,
    /// The cost of moving a row in robust losses.
    #[serde(default)]
    pub robust: TransportCost,
    /// The metric that reports compare; by default `"mae"` for numbers, `"accuracy"` for classes.
    #[serde(default)]
    pub metric: Option<MetricName>,
    /// Domain of the rows of every silo, from 0, in the order of the source; for institutions with their
    /// own rows, in the order of the roster. Needed by strategies with given domains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domains: Option<Vec<u32>>,
}

/// The source of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The diabetes study (442 patients, built in), partitioned by age and sex; see
    /// [`diabetes_silos`].
    Diabetes,
    /// The four hospitals of UCI Heart Disease; see [`heart`].
    Heart,
    /// CSV files.
    Csv(Box<CsvConfig>),
}

/// The model family.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum ModelConfig {
    /// Linear regression.
    Linear {
        /// Loss of a row. Default: `"squared"`.
        #[serde(default)]
        loss: RegressionLoss,
    },
    /// Logistic regression, for two classes.
    Logistic,
    /// A multi-layer perceptron with ReLU: softmax and cross-entropy for classes, one output for
    /// every number.
    Mlp {
        /// Widths of the hidden layers, each at least 1.
        hidden: Vec<usize>,
        /// Loss of a row, for targets that are numbers only. Default: `"squared"`.
        #[serde(default)]
        loss: Option<RegressionLoss>,
    },
    /// A network of layers, for images or any rows: softmax and cross-entropy for classes, one
    /// output for every number, the soft Dice loss for masks.
    Network(Box<NetworkConfig>),
}

/// A silo and its learner.
#[derive(Clone)]
pub struct Silo {
    /// Its name.
    pub name: String,
    /// Its data and model.
    pub learner: Arc<dyn Learner>,
    /// Number of its rows.
    pub rows: RowCounts,
}

/// A silo's rows, by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Training rows.
    pub train: usize,
    /// Validation rows.
    pub validation: usize,
    /// Test rows.
    pub test: usize,
}

impl RowCounts {
    /// Rows in the part that `split` names.
    pub fn of(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train,
            Split::Validation => self.validation,
            Split::Test => self.test,
        }
    }
}

/// All silos of a task, and its primary metric.
#[derive(Clone)]
pub struct Study {
    /// The silos, in the source's order; all learners have one layout.
    pub silos: Vec<Silo>,
    /// The primary metric.
    pub metric: Metric,
    /// Makes a learner with the training rows of several silos, by their positions, for a centralised
    /// reference model. `None` if rows cannot be pooled.
    pub pooled: Option<Pool>,
}

/// Puts the training rows of silos together.
pub type Pool = Arc<dyn Fn(&[usize]) -> Arc<dyn Learner> + Send + Sync>;

/// The pool of these silos' learners.
fn pool(learners: Vec<Arc<TableLearner>>) -> Option<Pool> {
    Some(Arc::new(move |places: &[usize]| {
        let chosen: Vec<_> = places.iter().map(|&at| &*learners[at]).collect();
        Arc::new(TableLearner::pooled(&chosen))
    }))
}

impl TaskConfig {
    /// Whether the silos agree on a common scale in a first round before they train.
    pub fn common_scale(&self) -> bool {
        matches!(self, Self::Table(task) if task.standardise == Standardise::Federation)
    }

    /// Reads the data, from `folder` where they are files, partitions them into `silos` silos and
    /// splits the rows of each by `seed`. By default 8 silos where the source can be partitioned
    /// into any number, and otherwise all that it has (of a smaller number the first ones).
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read or partitioned, a model that does not fit the target.
    pub fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError> {
        if silos == Some(0) {
            return Err(DataError::Config(
                "a federation needs at least one silo".into(),
            ));
        }
        match self {
            Self::Table(task) => task.study(silos, folder, seed),
            Self::Digits8Bench => Ok(digits_study(digits(folder, silos.unwrap_or(20))?)),
            Self::Constant { parameters: 0 } => {
                Err(DataError::Config("`parameters` must be at least 1".into()))
            }
            Self::Constant { parameters } => {
                let learner: Arc<dyn Learner> = Arc::new(ConstantLearner::new(*parameters));
                let silo = |number: usize| Silo {
                    name: format!("silo {number}"),
                    learner: learner.clone(),
                    rows: RowCounts {
                        train: 1,
                        validation: 0,
                        test: 1,
                    },
                };
                Ok(Study {
                    pooled: None,
                    silos: (1..=silos.unwrap_or(SILOS)).map(silo).collect(),
                    metric: Metric {
                        name: MetricName::Loss,
                        unit: String::new(),
                    },
                })
            }
        }
    }
}

impl TableTask {
    /// The rows of all silos as they were read, before they are split and standardised.
    ///
    /// # Errors
    /// [`DataError`]: data that cannot be read, or cannot be partitioned into this number of silos.
    pub fn tables(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
    ) -> Result<DataSet, DataError> {
        self.data.read(silos, folder)
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

    fn study(
        &self,
        silos: Option<usize>,
        folder: Option<&Path>,
        seed: u64,
    ) -> Result<Study, DataError> {
        self.split.check()?;
        self.robust
            .validate()
            .map_err(|error| DataError::Config(format!("`robust.label-cost`: {error}")))?;
        let DataSet {
            target,
            silos: tables,
        } = self.tables(silos, folder)?;
        if matches!(target, Target::Numbers { .. }) && self.standardise == Standardise::Federation {
            return Err(DataError::Config(
                "`standardise = \"federation\"` needs a target of one number, but the target has several: use \"silo\", or \"none\" for numbers that have one scale everywhere already".into(),
            ));
        }
        let metric = self.metric(&target)?;
        let silos = tables.len();
        let (mut built, mut learners) = (Vec::with_capacity(silos), Vec::new());
        for (place, (name, table)) in tables.into_iter().enumerate() {
            let domain = self.domain(place, silos)?;
            let target = target.clone();
            let data = Prepared::new(&name, &table, target, self.split, self.standardise, seed)?;
            let rows = counts(&data);
            let (model, loss) = self.model.family(data.features, &data.target)?;
            let learner = TableLearner::new(data, model, loss, self.standardise, self.robust);
            let learner = Arc::new(learner.within(domain));
            learners.push(learner.clone());
            built.push(Silo {
                name,
                learner,
                rows,
            });
        }
        Ok(Study {
            silos: built,
            metric,
            pooled: pool(learners),
        })
    }

    /// The primary metric, if the target has it.
    fn metric(&self, target: &Target) -> Result<Metric, DataError> {
        use MetricName::{Accuracy, Dice, LogLoss, Loss, Mae, Mse, RocAuc};
        let (fitting, default) = match target {
            Target::Number { .. } | Target::Numbers { .. } => (&[Loss, Mae, Mse][..], Mae),
            Target::Mask { .. } => (&[Loss, Dice][..], Dice),
            Target::Classes(classes) if classes.len() == 2 => {
                (&[Loss, Accuracy, LogLoss, RocAuc][..], Accuracy)
            }
            Target::Classes(_) => (&[Loss, Accuracy, LogLoss][..], Accuracy),
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

impl Source {
    /// All rows, in the asked number of silos.
    fn read(&self, silos: Option<usize>, folder: Option<&Path>) -> Result<DataSet, DataError> {
        let (source_name, mut data) = match self {
            Self::Diabetes => ("diabetes", diabetes_silos(silos.unwrap_or(SILOS))?),
            Self::Heart => ("heart", heart(folder)?),
            Self::Csv(config) => ("csv", config.read(folder)?),
        };
        let has = data.silos.len();
        match silos {
            Some(asked) if asked > has => Err(DataError::TooManySilos {
                asked,
                source_name,
                has: format!("{has}"),
            }),
            _ => {
                data.silos.truncate(silos.unwrap_or(has));
                Ok(data)
            }
        }
    }
}

impl ModelConfig {
    /// The family for this many features and this target.
    fn family(
        &self,
        features: usize,
        target: &Target,
    ) -> Result<(Box<dyn Model>, Loss), DataError> {
        let fail = |text: &str| Err(DataError::Config(text.into()));
        match (self, target) {
            (Self::Linear { loss }, Target::Number { .. }) => {
                Ok((Box::new(Linear { features }), Loss::Regression(*loss)))
            }
            (Self::Linear { .. }, Target::Classes(_)) => fail(
                "a linear model predicts a number, but the target has classes: use model = \"logistic\" or an mlp",
            ),
            (Self::Linear { .. }, _) => fail(
                "a linear model predicts one number, but the target has several: use an mlp or a network",
            ),
            (Self::Logistic, Target::Classes(classes)) if classes.len() == 2 => {
                Ok((Box::new(Linear { features }), Loss::Logistic))
            }
            (Self::Logistic, _) => fail(
                "a logistic model needs two classes: give `positive` or two `classes`, or use another model",
            ),
            (Self::Mlp { hidden, .. }, _) if hidden.contains(&0) => {
                fail("mlp: every hidden width must be at least 1")
            }
            (Self::Mlp { hidden, loss: None }, Target::Classes(classes)) => Ok((
                Box::new(Mlp::new(features, hidden, classes.len())),
                Loss::Softmax,
            )),
            (Self::Mlp { .. }, Target::Classes(_)) => {
                fail("mlp: `loss` is for numbers; classes are learned by cross-entropy")
            }
            (Self::Mlp { hidden, loss }, Target::Number { .. }) => {
                let loss = Loss::Regression(loss.unwrap_or_default());
                Ok((Box::new(Mlp::new(features, hidden, 1)), loss))
            }
            (Self::Mlp { hidden, loss }, Target::Numbers { count, .. }) => {
                let loss = Loss::Regression(loss.unwrap_or_default());
                Ok((Box::new(Mlp::new(features, hidden, *count)), loss))
            }
            (Self::Mlp { .. }, Target::Mask { .. }) => {
                fail("an mlp cannot predict a mask: use a network, such as the unet")
            }
            (Self::Network(config), target) => {
                let (head, loss) = match target {
                    Target::Number { .. } => (Head::Dense(1), None),
                    Target::Numbers { count, .. } => (Head::Dense(*count), None),
                    Target::Classes(classes) => (Head::Dense(classes.len()), Some(Loss::Softmax)),
                    Target::Mask { pixels } => {
                        (Head::Pixels(*pixels), Some(Loss::Dice { pixels: *pixels }))
                    }
                };
                if loss.is_some() && config.loss.is_some() {
                    return fail(
                        "network: `loss` is for numbers; classes are learned by cross-entropy and masks by the Dice loss",
                    );
                }
                let loss = loss.unwrap_or(Loss::Regression(config.loss.unwrap_or_default()));
                let network = Network::new(config, features, head)
                    .map_err(|error| DataError::Config(format!("network: {error}")))?;
                Ok((Box::new(network), loss))
            }
        }
    }
}

fn counts(data: &Prepared) -> RowCounts {
    let of = |rows: &Rows| rows.len();
    RowCounts {
        train: of(&data.train),
        validation: of(&data.validation),
        test: of(&data.test),
    }
}

/// The digits benchmark, without randomness and without scaling.
fn digits_study(files: Digits) -> Study {
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
                    unit: 1.0,
                };
                let rows = counts(&data);
                let model = Box::new(Mlp::new(WIDTHS[0], &WIDTHS[1..2], WIDTHS[2]));
                let cost = TransportCost::default();
                let learner =
                    TableLearner::new(data, model, Loss::Softmax, Standardise::None, cost).follow(
                        Script {
                            start: start.clone(),
                            orders,
                        },
                    );
                Silo {
                    name: format!("silo {}", index + 1),
                    learner: Arc::new(learner),
                    rows,
                }
            });
    Study {
        silos: silos.collect(),
        pooled: None,
        metric: Metric {
            name: MetricName::Accuracy,
            unit: String::new(),
        },
    }
}

#[cfg(test)]
mod tests;
