//! Synthetic silos whose true groups are known, as in the experiments of CS-RCFL (Konti et al. 2024).

use methods::learner::Split;
use methods::robust::synthetic::{Hospitals, Targets};
use serde::{Deserialize, Serialize};

use super::{DataError, DataSet, Table, Target};

/// Silos of [`SyntheticConfig`] where the scenario names no number.
const SILOS: usize = 20;
/// Rows of one fresh test set, and how many sets there are.
const TEST: (usize, usize) = (100, 10);

/// What synthetic rows are to predict.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum SyntheticTarget {
    /// A number: the output of the silo's true linear model plus noise.
    #[default]
    Linear,
    /// Two classes: whether the true model's probability of class 1 is above one half. Without noise, as
    /// in the paper, so that the classes are separable.
    Logistic,
}

/// Synthetic silos. Every silo draws its features from a normal distribution of its own; silos of one
/// group share the true model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SyntheticConfig {
    /// What is predicted. Default `"linear"`.
    pub target: SyntheticTarget,
    /// Number of true models; silo `i`, from 0, follows model `i mod groups`. Default 4, a guess, as the
    /// following: the paper's numbers are lost.
    #[schemars(range(min = 1), extend("x-unit" = "groups"))]
    pub groups: usize,
    /// Number of features. Default 10.
    #[schemars(range(min = 1), extend("x-unit" = "features"))]
    pub features: usize,
    /// Standard deviation of the noise on a target that is a number. Default 0.5.
    #[schemars(range(min = 0))]
    pub noise: f64,
    /// Standard deviation of the true weights. Default 2.
    #[schemars(range(min = 0))]
    pub scale: f64,
    /// Fewest and most rows of a silo, drawn uniformly in between. Default `[100, 200]`.
    pub rows: [usize; 2],
}

impl Default for SyntheticConfig {
    fn default() -> Self {
        Self {
            target: SyntheticTarget::Linear,
            groups: 4,
            features: 10,
            noise: 0.5,
            scale: 2.0,
            rows: [100, 200],
        }
    }
}

impl SyntheticConfig {
    /// Names of the features.
    pub fn columns(&self) -> Vec<String> {
        (1..=self.features).map(|at| format!("x{at}")).collect()
    }

    /// The target.
    pub fn target(&self) -> Target {
        match self.target {
            SyntheticTarget::Linear => Target::Number {
                unit: String::new(),
            },
            SyntheticTarget::Logistic => Target::Classes(vec!["0".into(), "1".into()]),
        }
    }
}

/// Synthetic silos, a function of the options and the seed; 20 unless `silos` says otherwise. Every
/// silo trains on all its rows and tests on ten fresh sets of 100 rows from the same distribution. A
/// silo's group is its true model.
///
/// # Errors
/// [`DataError::Config`]: a number out of its range.
pub fn synthetic(
    config: &SyntheticConfig,
    silos: Option<usize>,
    seed: u64,
) -> Result<DataSet, DataError> {
    let targets = match config.target {
        SyntheticTarget::Linear => Targets::Numbers {
            noise: config.noise,
        },
        SyntheticTarget::Logistic => Targets::Labels { threshold: 0.5 },
    };
    let hospitals = Hospitals {
        hospitals: silos.unwrap_or(SILOS),
        coalitions: config.groups,
        features: config.features,
        rows: (config.rows[0], config.rows[1]),
        scale: config.scale,
        targets,
    };
    let drawn = hospitals.draw(seed).map_err(|_| {
        DataError::Config(format!(
            "`synthetic`: expected 1 to {} `groups` (as many as silos), at least 1 of `features`, \
             `rows` from at least 1 up, `noise` and `scale` of at least 0; found {} groups, {} \
             features, rows {:?}, noise {}, scale {}",
            hospitals.hospitals,
            config.groups,
            config.features,
            config.rows,
            config.noise,
            config.scale
        ))
    })?;
    let classes = config.target == SyntheticTarget::Logistic;
    let silos = drawn.iter().enumerate().map(|(at, hospital)| {
        let mut table = Table::new(config.columns());
        table.group = Some(format!("group {}", hospital.coalition + 1));
        let mut push = |rows: &methods::robust::Samples, part: Split| {
            for (features, target) in rows.iter() {
                // Labels are −1 and 1.
                let target = if classes {
                    (target + 1.0) / 2.0
                } else {
                    target
                };
                table.push(features, target);
                table.parts.push(part);
            }
        };
        push(&hospital.rows, Split::Train);
        for set in 0..TEST.1 {
            // Seeds of the silos' own rows are mixed of `seed` and their positions alone.
            let own = methods::learner::mixed_seed(!seed, (TEST.1 * at + set) as u64);
            push(&hospital.population.draw(TEST.0, own), Split::Test);
        }
        (format!("silo {}", at + 1), table)
    });
    Ok(DataSet {
        target: config.target(),
        silos: silos.collect(),
        schema: None,
        notes: Vec::new(),
        subgroups: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn silos_train_on_their_rows_and_test_on_a_thousand_fresh_ones() {
        let config = SyntheticConfig::default();
        let data = synthetic(&config, None, 3).unwrap();
        assert_eq!(data.silos.len(), 20);
        assert_eq!(data, synthetic(&config, None, 3).unwrap());
        assert_ne!(data, synthetic(&config, None, 4).unwrap());
        for (at, (_, table)) in data.silos.iter().enumerate() {
            let test = table
                .parts
                .iter()
                .filter(|part| **part == Split::Test)
                .count();
            let train = table.len() - test;
            assert_eq!((test, table.parts.len()), (1000, table.len()));
            assert!((100..=200).contains(&train), "{train}");
            assert_eq!(table.group, Some(format!("group {}", at % 4 + 1)));
            // No test row is a training row, or one of another silo.
            let first = table.row(train);
            let others = data
                .silos
                .iter()
                .flat_map(|(_, other)| (0..other.len()).map(move |row| other.row(row)));
            assert_eq!(others.filter(|row| *row == first).count(), 1);
        }
    }

    #[test]
    fn silos_of_one_group_share_the_true_model() {
        let config = SyntheticConfig {
            groups: 2,
            features: 2,
            noise: 0.0,
            ..SyntheticConfig::default()
        };
        let data = synthetic(&config, Some(4), 9).unwrap();
        // Two rows without noise give the weights: y = a·w.
        let weights = |silo: usize| {
            let table = &data.silos[silo].1;
            let (a, b) = (table.row(0), table.row(1));
            let (y, z) = (table.target[0], table.target[1]);
            let det = a[0] * b[1] - a[1] * b[0];
            [(y * b[1] - a[1] * z) / det, (a[0] * z - y * b[0]) / det]
        };
        let close = |a: [f64; 2], b: [f64; 2]| (0..2).all(|at| (a[at] - b[at]).abs() < 1e-9);
        assert!(close(weights(0), weights(2)) && close(weights(1), weights(3)));
        assert!(!close(weights(0), weights(1)));
    }

    #[test]
    fn classes_are_zero_and_one_and_wrong_options_are_named() {
        let config = SyntheticConfig {
            target: SyntheticTarget::Logistic,
            ..SyntheticConfig::default()
        };
        let data = synthetic(&config, Some(4), 1).unwrap();
        let targets = || data.silos.iter().flat_map(|(_, table)| &table.target);
        assert!(targets().all(|&class| class == 0.0 || class == 1.0));
        assert!(targets().any(|&class| class == 0.0) && targets().any(|&class| class == 1.0));
        let error = synthetic(&config, Some(3), 1).unwrap_err().to_string();
        assert!(error.contains("expected 1 to 3 `groups`") && error.contains("found 4 groups"));
    }
}
