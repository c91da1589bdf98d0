//! The schema that follows from a short description and from what the files hold.

use std::collections::BTreeSet;

use super::{ColumnsConfig, Incomplete, TargetColumns};
use crate::data::{DataError, Format, RawFile, Rule, are_with_zeros, number, without_zeros};
use crate::schema::{
    ClassValues, ColumnNames, FeatureColumns, MissingRule, Schema, TargetColumn, merged,
};

impl ColumnsConfig {
    /// The schema of these files. The first one decides on the features, unless the
    /// configuration does; the columns `beside` are none.
    ///
    /// # Errors
    /// [`DataError`]: a contradiction, a column that is not there, no feature.
    pub fn schema(
        &self,
        files: &[RawFile],
        beside: &[&str],
        formats: &[Format],
    ) -> Result<Schema, DataError> {
        self.check()?;
        let first = files.first().expect("at least one file");
        let dropped = self.drop.iter().filter(|column| !first.has(column));
        for column in dropped.chain(&self.one_hot) {
            first.place(column)?;
        }
        let features = self.features.clone().unwrap_or_else(|| {
            let rest = first.header.iter().filter(|name| {
                !self.target.names().contains(&name.as_str())
                    && !beside.contains(&name.as_str())
                    && !self.drop.contains(name)
            });
            rest.cloned().collect()
        });
        if features.is_empty() {
            return Err(DataError::Config("no feature columns are left".into()));
        }
        let missing = match self.incomplete {
            Incomplete::Drop => MissingRule::Drop,
            Incomplete::Impute => MissingRule::Mean,
        };
        let feature = |name: String| -> Result<FeatureColumns, DataError> {
            let column = match (self.one_hot.contains(&name), self.levels.get(&name)) {
                (false, _) => FeatureColumns::numbers(ColumnNames::One(name)),
                (true, Some(levels)) => FeatureColumns::category(&name, levels.clone()),
                (true, None) => FeatureColumns::category(&name, occurring(files, &name, formats)?),
            };
            Ok(FeatureColumns { missing, ..column })
        };
        let features = features.into_iter().map(feature);
        let features = merged(features.collect::<Result<Vec<_>, _>>()?);
        Ok(Schema {
            target: self.target(files, formats)?,
            min_rows: 2,
            only: self.only.clone(),
            subgroup: self.subgroup.clone(),
            usual: std::collections::BTreeMap::new(),
            features,
        })
    }

    fn check(&self) -> Result<(), DataError> {
        let fail = |text: &str| Err(DataError::Config(text.into()));
        if self.positive.is_some() && self.classes.is_some() {
            return fail("`positive` and `classes` exclude each other");
        }
        if self.target.names().is_empty() {
            return fail("`target` names no column");
        }
        if !matches!(self.target, TargetColumns::One(_))
            && (self.positive.is_some() || self.classes.is_some())
        {
            return fail("`positive` and `classes` go with one `target` column");
        }
        if let Some(name) = self.levels.keys().find(|name| !self.one_hot.contains(name)) {
            return fail(&format!(
                "`levels` names {name:?}, which is not in `one-hot`"
            ));
        }
        Ok(())
    }

    fn target(&self, files: &[RawFile], formats: &[Format]) -> Result<TargetColumn, DataError> {
        let (name, mask) = match &self.target {
            TargetColumns::One(name) => (ColumnNames::One(name.clone()), false),
            TargetColumns::Several(names) => (ColumnNames::Several(names.clone()), false),
            TargetColumns::Mask { mask } => (ColumnNames::Several(mask.clone()), true),
            TargetColumns::Survival {
                event,
                time,
                entry,
                at,
            } => {
                return Ok(TargetColumn {
                    unit: self.unit.clone(),
                    at: at.clone(),
                    ..TargetColumn::survival(event, time, entry.as_deref())
                });
            }
        };
        let classes = self.classes.iter().flatten().cloned().map(ClassValues::One);
        let mut target = TargetColumn {
            name,
            classes: self.classes.as_ref().map(|_| classes.collect()),
            mask,
            ..TargetColumn::number("", self.unit.clone())
        };
        match &self.positive {
            Some(rule) if rule.is_order() => target.rule = Some(rule.clone()),
            Some(rule) => target.classes = Some(self.values(files, rule, formats)?),
            None => {}
        }
        Ok(target)
    }

    /// The two classes of a rule that compares with one value.
    fn values(
        &self,
        files: &[RawFile],
        rule: &Rule,
        formats: &[Format],
    ) -> Result<Vec<ClassValues>, DataError> {
        let name = self.target.names()[0];
        let all = occurring(files, name, formats)?;
        let (positive, negative): (Vec<String>, Vec<String>) = all
            .into_iter()
            .partition(|value| rule.holds(value) == Some(true));
        let written = String::from(rule.clone());
        if positive.is_empty() || negative.is_empty() {
            let (which, there) = if positive.is_empty() {
                ("no row", &negative)
            } else {
                ("every row", &positive)
            };
            return Err(DataError::Config(format!(
                "`positive = {written:?}` holds for {which}: column {name:?} holds {}",
                some(there)
            )));
        }
        Ok(vec![
            ClassValues::Several {
                name: format!("not {name} {written}"),
                values: negative,
            },
            ClassValues::Several {
                name: format!("{name} {written}"),
                values: positive,
            },
        ])
    }
}

/// A few of these values, for a message.
fn some(values: &[String]) -> String {
    let mut text = values
        .iter()
        .take(5)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if values.len() > 5 {
        text += ", …";
    }
    text
}

/// All values of a column, numbers by size and then texts by letter.
fn occurring(
    files: &[RawFile],
    column: &str,
    formats: &[Format],
) -> Result<Vec<String>, DataError> {
    let mut seen = BTreeSet::new();
    for (file, format) in files.iter().zip(formats) {
        let place = file.place(column)?;
        let cells = file.rows.iter().filter_map(|row| row.cells.get(place));
        let present = cells.filter(|text| !format.is_missing(text));
        let zeros = are_with_zeros(present.clone());
        let text = |text| {
            if zeros {
                without_zeros(text).unwrap_or(text)
            } else {
                text
            }
        };
        seen.extend(present.map(|cell| text(cell).to_owned()));
    }
    let mut values: Vec<String> = seen.into_iter().collect();
    // The sort is stable, and texts are in order already.
    values.sort_by(|a, b| match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    Ok(values)
}
