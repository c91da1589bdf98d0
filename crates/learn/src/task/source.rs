//! Where the rows of a simulation come from.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::SILOS;
use crate::data::{DataError, DataSet, RowsConfig, TargetColumns, diabetes_silos, heart};
use crate::schema::Schema;

/// The source of the rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The diabetes study (442 patients, built in), partitioned by age and sex; see
    /// [`diabetes_silos`].
    Diabetes,
    /// The four hospitals of UCI Heart Disease; see [`heart`].
    Heart,
    /// Files.
    Rows(Box<RowsConfig>),
}

impl Source {
    /// Makes the paths of its files relative to `folder`.
    pub(super) fn resolve(&mut self, folder: &Path) {
        if let Self::Rows(rows) = self {
            for file in &mut rows.files {
                file.path = folder.join(&file.path);
            }
        }
    }

    /// Whether its target is a number, or several, and neither classes nor a mask.
    pub(super) fn predicts_numbers(&self) -> bool {
        match self {
            Self::Diabetes => true,
            Self::Heart => false,
            Self::Rows(rows) => rows.columns.as_ref().is_some_and(|columns| {
                let classes = columns.positive.is_some() || columns.classes.is_some();
                !classes && !matches!(columns.target, TargetColumns::Mask { .. })
            }),
        }
    }

    /// All rows, in the asked number of silos.
    pub(super) fn read(
        &self,
        schema: Option<&Schema>,
        silos: Option<usize>,
        folder: Option<&Path>,
    ) -> Result<DataSet, DataError> {
        if schema.is_some() && !matches!(self, Self::Rows(_)) {
            return Err(DataError::Config(
                "built-in data have columns of their own: a schema goes with `rows`".into(),
            ));
        }
        let (source_name, mut data) = match self {
            Self::Diabetes => ("diabetes", diabetes_silos(silos.unwrap_or(SILOS))?),
            Self::Heart => ("heart", heart(folder)?),
            Self::Rows(config) => ("rows", config.read(schema, None)?),
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
