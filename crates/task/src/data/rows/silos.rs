//! The rows of silos while files are read.

use super::Reading;
use super::extra::{Extra, Groups};
use crate::data::{DataError, GroupId, Table, pretend_silo};
use crate::schema::EncodedColumn;

/// Most subgroups: more are hardly a division of the rows that anybody wants to see.
const SUBGROUPS: usize = 100;

/// The rows of silos, in the order of their first rows.
pub(super) struct Silos<'a> {
    pub(super) columns: &'a [EncodedColumn],
    /// The range of the numbers to predict.
    pub(super) target_range: Option<[f64; 2]>,
    pub(super) tables: Vec<(String, Table)>,
    /// Rows dealt to synthetic silos.
    pub(super) dealt: usize,
    /// Names of the subgroups, in the order of their first rows.
    pub(super) subgroups: Vec<String>,
    pub(super) groups: Groups,
}

impl Silos<'_> {
    /// Gives a row to the next of `count` synthetic silos, or to the one that has its group.
    pub(super) fn deal(&mut self, count: usize, values: &[f64], targets: &[f64], extra: Extra) {
        let group = extra.group.as_deref();
        let turn = group.map_or(self.dealt, |group| self.groups.number(group));
        let silo = pretend_silo(turn % count);
        self.dealt += 1;
        self.push(&silo, values, targets, extra);
    }

    /// The place of the table of a silo, which has no rows yet if it was not there.
    pub(super) fn table(&mut self, silo: &str) -> usize {
        let place = self.tables.iter().position(|(name, _)| name == silo);
        place.unwrap_or_else(|| {
            let table = Table {
                target_range: self.target_range,
                ..Table::encoded(self.columns)
            };
            self.tables.push((silo.to_owned(), table));
            self.tables.len() - 1
        })
    }

    /// Gives a row to a silo.
    pub(super) fn push(&mut self, silo: &str, values: &[f64], targets: &[f64], extra: Extra) {
        let place = self.table(silo);
        let table = &mut self.tables[place].1;
        table.push_all(values, targets);
        table.parts.extend(extra.part);
        table.times.extend(extra.time);
        if let Some(group) = extra.group {
            let number = self.groups.within(place, &group);
            table.groups.push(number);
            if table.group_ids.len() <= number as usize {
                table.group_ids.push(GroupId(group));
            }
        }
        if let Some(name) = extra.subgroup {
            let known = self.subgroups.iter().position(|own| *own == name);
            let at = known.unwrap_or_else(|| {
                self.subgroups.push(name);
                self.subgroups.len() - 1
            });
            // Too many to count are refused when all rows are read.
            table.subgroups.push(u16::try_from(at).unwrap_or(u16::MAX));
        }
    }

    /// The names of the subgroups in alphabetical order, in which the rows then refer to them. Row by row, too
    /// many are none.
    pub(super) fn sorted_subgroups(&mut self, reading: Reading) -> Result<Vec<String>, DataError> {
        let names = std::mem::take(&mut self.subgroups);
        if names.len() > SUBGROUPS && reading == Reading::RowByRow {
            let tables = self.tables.iter_mut();
            tables.for_each(|(_, table)| table.subgroups.clear());
            return Ok(Vec::new());
        }
        if names.len() > SUBGROUPS {
            return Err(DataError::Config(format!(
                "the column `subgroup` holds {} different values, such as {:?}: choose one with at most \
                 {SUBGROUPS}",
                names.len(),
                names[0]
            )));
        }
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by(|&a, &b| names[a].cmp(&names[b]));
        let mut places = vec![0; names.len()];
        for (place, &name) in order.iter().enumerate() {
            places[name] = place as u16;
        }
        for at in self
            .tables
            .iter_mut()
            .flat_map(|(_, table)| &mut table.subgroups)
        {
            *at = places[usize::from(*at)];
        }
        Ok(order.into_iter().map(|at| names[at].clone()).collect())
    }
}
