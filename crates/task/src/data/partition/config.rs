//! The kinds of partitions, as a configuration names them.

use serde::{Deserialize, Serialize};

use super::RowsToPartition;

/// How the rows of a source are partitioned into silos. The number of silos is that of the scenario,
/// unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum PartitionConfig {
    /// Equally many rows at random to every silo.
    Iid,
    /// For every class, shares of the silos from a symmetric Dirichlet distribution (Hsu et al. 2019),
    /// drawn again until every silo has enough rows.
    Dirichlet {
        /// Concentration, above 0: the smaller, the fewer classes a silo has much of.
        #[schemars(extend("exclusiveMinimum" = 0))]
        alpha: f64,
        /// Fewest rows of a silo to train on. Default 10.
        #[serde(default = "ten")]
        #[schemars(extend("x-unit" = "rows"))]
        rows: usize,
    },
    /// Rows sorted by class and cut into shards of one size, of which every silo gets some at random
    /// (HCCT's CIFAR-10; with `"equal"` McMahan et al. 2017).
    Shards {
        /// Number of shards. Default 100.
        #[serde(default = "hundred")]
        #[schemars(range(min = 1))]
        count: usize,
        /// How many each silo gets.
        #[serde(default)]
        shares: ShardShares,
    },
    /// Every domain in some silos of its own, at random. The number of silos follows.
    Domains {
        /// Silos of each domain. Default 1.
        #[serde(default = "one")]
        #[schemars(range(min = 1))]
        silos: usize,
    },
    /// Every silo has rows of all domains, and equally many as the others: shares of the domains given
    /// for every silo, or drawn. Rows that are over are left out. The domain of every row is kept.
    Mixed(MixedShares),
    /// HCCT's Table II: A and B have the first half of the classes, with these shares of the rows, and
    /// C has all rows of the other classes.
    ThreeClients {
        /// Share of A, above 0.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        a: f64,
        /// Share of B, above 0; both together at most 1.
        #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 1))]
        b: f64,
    },
    /// Every user of LEAF is a silo. The number of silos follows.
    Users {
        /// Fewest rows; users with less are left out. Default 5, as LEAF does with CelebA.
        #[serde(default = "five")]
        #[schemars(extend("x-unit" = "rows"))]
        rows: usize,
    },
}

/// How many shards every silo gets.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum ShardShares {
    /// In proportion to the size of a standard normal number, rounded down, at least one.
    #[default]
    HalfNormal,
    /// Equally many, rounded down.
    Equal,
}

/// Shares of the domains in every silo.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MixedShares {
    /// For every silo the shares of the domains, in the order of the source: `[[0.8, 0.2], [0.5, 0.5]]`.
    /// The number of silos follows.
    Given(Vec<Vec<f64>>),
    /// Concentration of the Dirichlet distribution from which every silo's shares are drawn, above 0.
    Alpha(f64),
}

fn one() -> usize {
    1
}

fn five() -> usize {
    5
}

fn ten() -> usize {
    10
}

fn hundred() -> usize {
    100
}

impl PartitionConfig {
    /// Returns whether its settings are in range, and the source has what it needs.
    pub(super) fn check(&self, population: &RowsToPartition<'_>) -> Result<(), String> {
        let positive = |name: &str, value: f64| {
            if value > 0.0 && value.is_finite() {
                Ok(())
            } else {
                Err(format!(
                    "`{name}` of a partition must be above 0, not {value}"
                ))
            }
        };
        let least = |name: &str, value: usize| match value {
            0 => Err(format!("`{name}` of a partition must be at least 1")),
            _ => Ok(()),
        };
        let domains = || {
            match population.domains.len() {
            0 => Err(
                "the partition goes by domains, and the rows have none: choose another one, or give \
                 `domain` to the files"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
        };
        match self {
            Self::Iid => Ok(()),
            Self::Dirichlet { alpha, .. } => positive("alpha", *alpha),
            Self::Shards { count, .. } => least("count", *count),
            Self::Domains { silos } => least("silos", *silos).and_then(|()| domains()),
            Self::Mixed(MixedShares::Alpha(alpha)) => {
                positive("alpha", *alpha).and_then(|()| domains())
            }
            Self::Mixed(MixedShares::Given(shares)) => {
                domains()?;
                let expected = population.domains.len();
                let fits = |shares: &Vec<f64>| {
                    let sum: f64 = shares.iter().sum();
                    let each = shares.iter().all(|&share| share >= 0.0);
                    shares.len() == expected && each && (sum - 1.0).abs() < 1e-6
                };
                match shares.iter().position(|shares| !fits(shares)) {
                    None if shares.is_empty() => {
                        Err("`given` of a partition needs the shares of at least one silo".into())
                    }
                    None => Ok(()),
                    Some(at) => Err(format!(
                        "`given` of a partition: expected for every silo {expected} shares from 0 that \
                         add up to 1 (of {}), found {:?} for silo {}",
                        population.domains.join(", "),
                        shares[at],
                        at + 1
                    )),
                }
            }
            Self::ThreeClients { a, b } => {
                positive("a", *a)?;
                positive("b", *b)?;
                if a + b <= 1.0 + 1e-9 && population.classes >= 2 {
                    Ok(())
                } else {
                    Err(format!(
                        "`three-clients` shares the rows of half of at least 2 classes: expected `a` and \
                         `b` of at most 1 together, found {a} and {b} for {} classes",
                        population.classes
                    ))
                }
            }
            Self::Users { .. } => {
                if population.users.is_empty() {
                    Err(
                    "the partition goes by users, and the rows have none: only files of LEAF do"
                        .into(),
                )
                } else {
                    Ok(())
                }
            }
        }
    }
}
