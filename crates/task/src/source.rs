//! Sources of the rows of a simulation.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::SILOS;
use crate::data::{
    DataError, DataSet, EicuLosConfig, EicuMortalityConfig, ImagesConfig, Reading, RowsConfig,
    SplitConfig, SyntheticConfig, SyntheticTarget, TargetColumns, TcgaBrcaConfig, Tpt48Config,
    breast_cancer_silos, diabetes_silos, eicu_los, eicu_mortality, heart, synthetic, tcga_brca,
    tpt48,
};
use crate::schema::Schema;

/// The source of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The diabetes study (442 patients, built in), partitioned by age and sex; see
    /// [`diabetes_silos`].
    Diabetes,
    /// Breast Cancer Wisconsin (569 patients, built in), dealt to clinics; see [`breast_cancer_silos`].
    BreastCancer,
    /// The four hospitals of UCI Heart Disease; see [`heart`].
    Heart,
    /// Temperatures of the 48 contiguous states of the US; see [`tpt48`].
    Tpt48(Tpt48Config),
    /// Whether stays in intensive care last more than a day, at hospitals of the eICU demo; see
    /// [`eicu_los`].
    EicuLos(EicuLosConfig),
    /// Hospital mortality from drugs, at hospitals of the eICU demo; see [`eicu_mortality`].
    EicuMortality(EicuMortalityConfig),
    /// Silos whose true groups are known; see [`synthetic`].
    Synthetic(SyntheticConfig),
    /// Pictures with classes: public sets and files.
    Images(Box<ImagesConfig>),
    /// Files.
    Rows(Box<RowsConfig>),
    /// The time to death of breast cancer patients in six regions; see [`tcga_brca`].
    TcgaBrca(TcgaBrcaConfig),
}

impl Source {
    /// Makes the paths of its files relative to `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        match self {
            Self::Rows(rows) => {
                for file in &mut rows.files {
                    file.path = folder.join(&file.path);
                }
            }
            Self::Images(images) => images.resolve(folder),
            _ => (),
        }
    }

    /// Returns whether its target is a number, or several, and neither classes nor a mask.
    pub(super) fn predicts_numbers(&self) -> bool {
        match self {
            Self::Diabetes | Self::Tpt48(_) => true,
            Self::BreastCancer
            | Self::Heart
            | Self::EicuLos(_)
            | Self::EicuMortality(_)
            | Self::TcgaBrca(_)
            | Self::Images(_) => false,
            Self::Synthetic(config) => config.target == SyntheticTarget::Linear,
            Self::Rows(rows) => rows.columns.as_ref().is_some_and(|columns| {
                let classes = columns.positive.is_some() || columns.classes.is_some();
                let other = matches!(
                    columns.target,
                    TargetColumns::Mask { .. } | TargetColumns::Survival { .. }
                );
                !classes && !other
            }),
        }
    }

    /// Returns whether its numbers are on a scale that all silos share.
    pub(super) fn is_scaled(&self) -> bool {
        match self {
            Self::Tpt48(_) | Self::EicuLos(_) | Self::EicuMortality(_) | Self::Synthetic(_) => true,
            Self::Images(images) => images.is_scaled(),
            Self::Diabetes
            | Self::BreastCancer
            | Self::Heart
            | Self::Rows(_)
            | Self::TcgaBrca(_) => false,
        }
    }

    /// All rows, in the asked number of silos.
    pub(super) fn read(
        &self,
        (schema, reading): (Option<&Schema>, Reading),
        silos: Option<usize>,
        folder: Option<&Path>,
        split: &SplitConfig,
        seed: u64,
    ) -> Result<DataSet, DataError> {
        if schema.is_some() && !matches!(self, Self::Rows(_)) {
            return Err(DataError::Config(
                "built-in data have columns of their own: a schema goes with `rows`".into(),
            ));
        }
        if (split.column.is_some() || split.time.is_some()) && !matches!(self, Self::Rows(_)) {
            return Err(DataError::Config(
                "built-in data have no such column: `column` and `time` of `split` go with `rows`"
                    .into(),
            ));
        }
        let (source_name, mut data) = match self {
            Self::Diabetes => ("diabetes", diabetes_silos(silos.unwrap_or(SILOS))?),
            Self::BreastCancer => (
                "breast-cancer",
                breast_cancer_silos(silos.unwrap_or(SILOS))?,
            ),
            Self::Heart => ("heart", heart(folder)?),
            Self::Tpt48(config) => ("tpt48", tpt48(*config, folder)?),
            Self::EicuLos(config) => ("eicu-los", eicu_los(*config, folder, seed)?),
            Self::EicuMortality(config) => ("eicu-mortality", eicu_mortality(*config, folder)?),
            Self::Synthetic(config) => ("synthetic", synthetic(config, silos, seed)?),
            Self::Images(config) => ("images", config.read(silos, SILOS, folder, seed)?),
            Self::TcgaBrca(config) => ("tcga-brca", tcga_brca(*config, folder)?),
            Self::Rows(config) => ("rows", config.read_by(reading, schema, None, split)?),
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
