//! Tasks whose rows are read for sums with noise.
//!
//! Noise hides one row (or person) only if that row changes nothing but its own numbers. So rows are read one
//! by one: what a row becomes follows from its own cells and from what is agreed on. No number of it is filled
//! in or scaled by other rows, and a row that cannot be read becomes nothing. It stops no silo and changes no
//! other row, because everybody would see that.
//!
//! [`TableTask::with_noise`] is the only way to such a task. It gives what rows are read by, so that what is
//! checked before a federation begins is what is used afterwards: the schema that is used, wherever it comes
//! from, and not only one that somebody wrote.

use crate::data::{DataError, Incomplete, Standardise, TargetColumns};
use crate::schema::{MissingRule, Schema};
use crate::{Source, TableTask, TaskConfig};

/// A key of a task that cannot be used with noise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {what}")]
pub struct NoiseFault {
    /// The path of the key.
    pub key: &'static str,
    /// The fault and the remedy, in words that follow the key.
    pub what: String,
}

impl From<NoiseFault> for DataError {
    fn from(fault: NoiseFault) -> Self {
        Self::Config(fault.to_string())
    }
}

const SCALES: &str = "must be \"ranges\" or \"none\" where sums are noised: a scale that follows from own rows \
                      changes with each of them, and with it the gradients of all others. With \"ranges\" \
                      numbers are scaled by the ranges that the schema agrees on; with \"none\" divide them by \
                      agreed ranges before they are read";
const TIMES: &str = "predicts a time to an event, which does not go with noise: in Cox's partial likelihood a patient is \
                     in the risk sets of others, so there is no bound on what one of them changes. Use \
                     `mode = \"secure-aggregation\"` or `\"clear\"`, or predict whether the event happens by an agreed time";
const FILLS: &str = "fills missing values with a mean or median of own rows, which changes with each of them: write";

impl TaskConfig {
    /// The task whose rows are read for sums with noise, see [`TableTask::with_noise`]; tasks without tables of
    /// rows as they are.
    ///
    /// # Errors
    /// [`NoiseFault`].
    pub fn with_noise(&self) -> Result<Self, NoiseFault> {
        Ok(match self {
            Self::Table(task) => Self::Table(Box::new(task.with_noise()?)),
            other => other.clone(),
        })
    }
}

impl TableTask {
    /// The task whose rows are read one by one, for sums with noise. Own rows that are read by the columns of
    /// built-in data and have a missing value are left out, as with `missing = "drop"`: no row of such data
    /// misses one.
    ///
    /// # Errors
    /// [`NoiseFault`]: a number of a row would depend on other rows.
    pub fn with_noise(&self) -> Result<Self, NoiseFault> {
        let task = self.row_by_row();
        let mut faults = task.noise_faults().into_iter();
        faults.next().map_or(Ok(task), Err)
    }

    /// All keys by which a number of a row would depend on other rows.
    pub fn noise_faults(&self) -> Vec<NoiseFault> {
        let scale = match self.scaling() {
            Standardise::None | Standardise::Ranges => None,
            Standardise::Silo | Standardise::Federation => Some(NoiseFault {
                key: "task.table.standardise",
                what: SCALES.into(),
            }),
        };
        let survival = self.predicts_times().map(|key| NoiseFault {
            key,
            what: TIMES.into(),
        });
        let faults = survival.into_iter().chain(scale);
        faults.chain(self.row_by_row().fills()).collect()
    }

    /// The key by which the task predicts a time to an event, if it does.
    fn predicts_times(&self) -> Option<&'static str> {
        if self
            .schema
            .as_ref()
            .is_some_and(|schema| schema.target.survival)
        {
            return Some("task.table.schema.target");
        }
        match &self.data {
            Some(Source::TcgaBrca(_)) => Some("task.table.data"),
            Some(Source::Rows(rows)) => {
                let target = rows.columns.as_ref().map(|columns| &columns.target);
                matches!(target, Some(TargetColumns::Survival { .. }))
                    .then_some("task.table.data.rows.columns")
            }
            _ => None,
        }
    }

    /// The task as it is read with noise, whether it may be or not.
    fn row_by_row(&self) -> Self {
        Self {
            // Own rows are read without the data that the default may follow from.
            standardise: Some(self.scaling()),
            noised: true,
            ..self.clone()
        }
    }

    /// Returns whether the rows are read for sums with noise.
    pub fn is_noised(&self) -> bool {
        self.noised
    }

    /// Returns where a source of its schema fills a value from own rows.
    fn fills(&self) -> Option<NoiseFault> {
        let fault = |key, what| Some(NoiseFault { key, what });
        if let Some(Source::Rows(rows)) = &self.data
            && let Some(columns) = &rows.columns
            && columns.incomplete != Incomplete::Drop
        {
            let what = format!("{FILLS} `incomplete = \"drop\"`");
            return fault("task.table.data.rows.columns", what);
        }
        let key = match &self.schema {
            Some(_) => "task.table.schema",
            None => "task.table.data",
        };
        match self.agreed_schema() {
            Ok(Some(schema)) if fills(&schema) => {
                let what = format!(
                    "{FILLS} `missing = \"middle\"` (the middle of the agreed range) or `missing = \"drop\"` (the row) \
                     for every feature that may be missing"
                );
                fault(key, what)
            }
            Ok(_) => None,
            Err(error) => fault(key, format!("cannot be used: {error}")),
        }
    }
}

/// Returns whether a value of own rows takes the place of a missing one.
fn fills(schema: &Schema) -> bool {
    let mut rules = schema.features.iter().map(|feature| feature.missing);
    rules.any(MissingRule::looks_at_rows)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn task(text: &str) -> TableTask {
        let text = format!("model = \"logistic\"\nstandardise = \"none\"\n{text}");
        toml::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
    }

    fn why(text: &str) -> NoiseFault {
        task(text).with_noise().unwrap_err()
    }

    const FEATURE: &str = "[schema]\ntarget = { name = \"y\", classes = [\"a\", \"b\"] }\n[[schema.feature]]\n\
                           name = \"x\"\n";

    /// Own rows are read by the columns of built-in data, whose rule for missing values nobody wrote.
    #[test]
    fn no_source_of_a_schema_fills_from_own_rows() {
        for data in [
            "data = \"heart\"",
            "data = \"diabetes\"",
            "data = { synthetic = { target = \"logistic\", groups = 1, features = 2, rows = [5, 9] } }",
            "data = { tpt48 = { from = \"east\", to = \"east\" } }",
            "data = { eicu-los = {} }",
        ] {
            let written = task(data);
            assert!(fills(&written.agreed_schema().unwrap().unwrap()), "{data}");
            let read = written.with_noise().unwrap();
            assert!(!fills(&read.agreed_schema().unwrap().unwrap()), "{data}");
            assert!(read.is_noised() && !written.is_noised());
            // The mark is nobody's to write.
            let again = toml::to_string(&read).unwrap();
            assert!(!toml::from_str::<TableTask>(&again).unwrap().is_noised());
        }
    }

    #[test]
    fn filling_from_local_rows_is_refused_with_a_remedy() {
        for rule in ["mean", "median", "indicator"] {
            let fault = why(&format!("{FEATURE}missing = \"{rule}\""));
            assert_eq!(fault.key, "task.table.schema");
            assert!(
                fault.what.contains("write `missing = \"middle\"`"),
                "{fault}"
            );
        }
        for rule in ["drop", "refuse", "middle", "middle-indicator"] {
            let text = format!("{FEATURE}range = [0.0, 9.0]\nmissing = \"{rule}\"");
            assert!(task(&text).with_noise().is_ok(), "{rule}");
        }
        // Both at once.
        let text = format!("{FEATURE}missing = \"mean\"");
        let mut both = task(&text);
        both.standardise = Some(Standardise::Silo);
        let keys: Vec<_> = both.noise_faults().iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["task.table.standardise", "task.table.schema"]);
        let rows = |incomplete: &str| {
            format!(
                "[data.rows]\nfiles = [{{ path = \"a.csv\" }}]\n[data.rows.columns]\ntarget = \"y\"\n\
                 incomplete = \"{incomplete}\""
            )
        };
        let fault = why(&rows("impute"));
        assert_eq!(fault.key, "task.table.data.rows.columns");
        assert!(
            fault.what.ends_with("write `incomplete = \"drop\"`"),
            "{fault}"
        );
        assert!(task(&rows("drop")).with_noise().is_ok());
    }

    #[test]
    fn a_time_to_an_event_does_not_go_with_noise() {
        let schema = "[schema]\ntarget = { event = \"died\", time = \"days\" }\n[[schema.feature]]\nname = \"x\"\n";
        let rows = "[data.rows]\nfiles = [{ path = \"a.csv\" }]\n[data.rows.columns]\ntarget = { event = \"died\", \
                    time = \"days\" }\nincomplete = \"drop\"";
        for (text, key) in [
            ("data = { tcga-brca = {} }", "task.table.data"),
            (schema, "task.table.schema.target"),
            (rows, "task.table.data.rows.columns"),
        ] {
            let fault = why(text);
            assert_eq!(fault.key, key);
            assert!(
                fault.what.contains("no bound on what one of them changes"),
                "{fault}"
            );
        }
    }

    #[test]
    fn own_rows_keep_the_scale_that_was_checked() {
        // Built-in data on a common scale need none; own rows would be scaled by themselves.
        let text = "model = \"logistic\"\n[data.synthetic]\ntarget = \"logistic\"\ngroups = 1\nfeatures = 2\nrows = [5, 9]";
        let task: TableTask = toml::from_str(text).unwrap();
        let mut read = task.with_noise().unwrap();
        read.data = None;
        assert_eq!(read.scaling(), Standardise::None);
        let mut own = task.clone();
        own.data = None;
        own.schema = task.agreed_schema().unwrap();
        assert_eq!(own.scaling(), Standardise::Silo);
        assert_eq!(own.with_noise().unwrap_err().key, "task.table.standardise");
    }
}
