//! Tasks of institutions that bring rows of their own: the agreed schema, and what follows from it
//! without anybody's data.

use crate::data::{
    DataError, DataSet, Standardise, breast_cancer_silos, diabetes_silos, eicu_los_columns,
    eicu_los_target, heart_schema, tpt48_columns, tpt48_target,
};
use crate::schema::{EncodedColumn, Fill, MissingRule, Schema};
use crate::{Source, TableTask};

impl TableTask {
    /// Returns what the rows of every institution have in common, if the task says it without looking at
    /// files: its schema, or that of built-in data.
    ///
    /// # Errors
    /// [`DataError`]: built-in data that are damaged.
    pub fn agreed_schema(&self) -> Result<Option<Schema>, DataError> {
        let numbers = |names: Vec<String>| -> Vec<EncodedColumn> {
            let fill = Fill::Mean;
            let column = |name| EncodedColumn {
                name,
                fill,
                range: None,
            };
            names.into_iter().map(column).collect()
        };
        let built_in = match (&self.schema, &self.data) {
            (Some(schema), _) => return Ok(Some(schema.clone())),
            (None, Some(source @ (Source::Diabetes | Source::BreastCancer))) => {
                let set = match source {
                    Source::Diabetes => diabetes_silos(1)?,
                    _ => breast_cancer_silos(1)?,
                };
                let (_, table) = &set.silos[0];
                let columns = numbers(table.columns.clone());
                Some(Schema::of_encoded(&columns, &set.target))
            }
            (None, Some(Source::Heart)) => {
                let schema = heart_schema()?;
                Some(Schema::of_encoded(&schema.encoded(), &schema.target()))
            }
            (None, Some(Source::Tpt48(_))) => Some(Schema::of_encoded(
                &numbers(tpt48_columns()),
                &tpt48_target(),
            )),
            (None, Some(Source::EicuLos(_))) => Some(Schema::of_encoded(
                &numbers(eicu_los_columns()),
                &eicu_los_target(),
            )),
            (None, Some(Source::Synthetic(config))) => Some(Schema::of_encoded(
                &numbers(config.columns()),
                &config.target(),
            )),
            // The columns of these are known when their files are read.
            (
                None,
                Some(
                    Source::EicuMortality(_)
                    | Source::Images(_)
                    | Source::Rows(_)
                    | Source::TcgaBrca(_),
                )
                | None,
            ) => None,
        };
        Ok(built_in.map(|schema| self.of_built_in(schema)))
    }

    /// The schema of rows that are written as they were encoded. With noise one that misses a value is left out.
    fn of_built_in(&self, mut schema: Schema) -> Schema {
        if self.noised {
            let features = schema.features.iter_mut();
            features.for_each(|feature| feature.missing = MissingRule::Drop);
        }
        schema
    }

    /// The task of institutions that each have rows of their own in a file written by
    /// [`Table`](crate::data::Table), instead of sharing those of `data`. Where the data give the parts of
    /// rows, the file has them in the column that `split` names.
    #[must_use]
    pub fn of_own_rows(&self, data: &DataSet) -> Self {
        let shared = !matches!(
            self.data,
            None | Some(
                Source::Rows(_)
                    | Source::Images(_)
                    | Source::EicuMortality(_)
                    | Source::TcgaBrca(_)
            )
        );
        let mut split = self.split.clone();
        if split.column.is_none() && data.silos.iter().any(|(_, table)| !table.parts.is_empty()) {
            split.column = Some("part".into());
        }
        if shared {
            return Self {
                split,
                ..self.clone()
            };
        }
        let columns = data.silos.first().map(|(_, table)| table.encoding());
        let schema = Schema::of_encoded(&columns.unwrap_or_default(), &data.target);
        let mut schema = self.of_built_in(schema);
        if self.scaling() == Standardise::Ranges {
            let mut tables = data.silos.iter().map(|(_, table)| table);
            schema.target.range = tables.find_map(|table| table.target_range);
        }
        Self {
            data: None,
            split,
            schema: Some(schema),
            standardise: Some(self.scaling()),
            ..self.clone()
        }
    }
}
