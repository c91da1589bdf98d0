//! Names and codes with which files would fit, whole: what was right before stays.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{LISTED, SurveyBuilder, listed};
use crate::data::{Format, RawFile, composed, nearest};
use crate::propose::Cells;
use crate::schema::{FeatureColumns, LocalNames, MissingRule, OPEN, ReadCells};

/// The name of an agreed column in the files, as they are read; the agreed one where nobody has filled it in.
pub(super) fn called<'n>(local: &'n LocalNames, agreed: &'n str) -> Cow<'n, str> {
    composed(match local.column(agreed) {
        OPEN => agreed,
        local => local,
    })
}

impl SurveyBuilder<'_> {
    /// Returns whether the agreement has something to put in where an agreed column has no value.
    pub(super) fn is_filled(&self, name: &str) -> bool {
        let feature = self.schema.columns().find(|(own, _)| *own == name);
        let rule = feature.map_or(MissingRule::Refuse, |(_, feature)| feature.missing);
        !matches!(rule, MissingRule::Refuse | MissingRule::Drop)
    }

    /// Returns whether somebody says rightly that the files do not have an agreed column.
    pub(super) fn lacks(&self, name: &str) -> bool {
        let own = called(self.local, name);
        let there = |(file, _): &(RawFile, Format)| file.header.iter().any(|column| *column == own);
        self.local.lacks(name) && self.is_filled(name) && !self.raw.iter().any(there)
    }

    /// Returns what is said of a column that the files do not have.
    pub(super) fn lacking(&self, name: &str) -> Option<(String, String)> {
        self.lacks(name).then(|| {
            (
                name.to_owned(),
                "not in the files, which counts as a gap".into(),
            )
        })
    }

    /// Names that stand for no agreed column.
    pub(super) fn unknown_names(&mut self) {
        let agreed = self.agreed();
        let local = self.local;
        let named = local.columns.keys().chain(local.codes.keys());
        let named = named.chain(local.missing.keys()).chain(local.units.keys());
        let named = named.chain(local.dates.keys()).chain(&local.absent);
        let mut odd: Vec<&String> = named.filter(|name| !agreed.contains(name)).collect();
        odd.dedup();
        for name in odd {
            let near = nearest(name, agreed.iter().map(String::as_str));
            let line =
                format!("the agreement has no column {name:?}, of which the names speak{near}");
            self.survey.misfits.push(line);
        }
        for name in local.absent.iter().filter(|name| agreed.contains(name)) {
            if !self.lacks(name) {
                self.survey.misfits.push(format!(
                    "`absent` names {name:?}, which the files have or whose gaps the agreement does not fill"
                ));
            }
        }
    }

    /// Texts of a column of numbers that are no numbers, and of which nobody has said what they mean.
    pub(super) fn untranslated(&self, name: &str, cells: &Cells<'_>) -> Vec<(String, usize)> {
        let open =
            |text: &str| matches!(self.local.value(name, text), own if own == text || own == OPEN);
        let odd = cells.odd().into_iter().filter(|(text, _)| open(text));
        odd.map(|(text, rows)| (text.to_owned(), rows)).collect()
    }

    /// The texts that are read as missing in a category which may have no gaps: a code makes one a value.
    pub(super) fn read_as_missing(&mut self, name: &str, feature: &FeatureColumns) -> String {
        let local = called(self.local, name);
        let marks = self.local.marks(self.schema, name);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (file, format) in self.raw {
            let Ok(place) = file.place(&local) else {
                continue;
            };
            let cells = file.rows.iter();
            let cells = cells.map(|row| row.cells.get(place).unwrap_or_default());
            for text in cells.filter(|text| !text.is_empty()) {
                if format.is_missing_in(&marks, text) {
                    *counts.entry(text.to_owned()).or_default() += 1;
                }
            }
        }
        let codes = match feature.kind.cells() {
            ReadCells::Numbers { .. } | ReadCells::Days(_) => false,
            ReadCells::Levels(_) => true,
        };
        if counts.is_empty() || !codes {
            return String::new();
        }
        let all: Vec<(String, usize)> = counts.into_iter().collect();
        let codes = all.iter().take(LISTED);
        let codes = codes.map(|(text, _)| (text.clone(), OPEN.to_owned()));
        self.codes.entry(name.to_owned()).or_default().extend(codes);
        format!(
            "; read as missing are {}: a value if `codes` says which",
            listed(&all)
        )
    }

    /// The names that would fit; `None` where names would not help.
    pub(super) fn names(&self) -> Option<LocalNames> {
        let agreed = self.agreed();
        let known = |name: &String| agreed.contains(name);
        let mut all = self.local.clone();
        all.columns.retain(|name, _| known(name));
        all.codes.retain(|name, _| known(name));
        all.missing.retain(|name, _| known(name));
        all.units.retain(|name, _| known(name));
        all.dates.retain(|name, _| known(name));
        all.absent.retain(|name| self.lacks(name));
        for (column, codes) in &mut all.codes {
            for value in codes.values_mut() {
                if value != OPEN && !self.schema.allows(column, value) {
                    OPEN.clone_into(value);
                }
            }
        }
        all.columns.extend(self.columns.clone());
        for (column, codes) in &self.codes {
            let own = all.codes.entry(column.clone()).or_default();
            own.extend(codes.clone());
        }
        all.units.extend(self.units.clone());
        all.dates.extend(self.dates.clone());
        all.ignore.extend(self.ignore.iter().cloned());
        (all != *self.local || !all.open().is_empty()).then_some(all)
    }
}
