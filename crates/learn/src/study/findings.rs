//! Findings about data before anything is learned from them.

use super::far::far_silos;
use crate::data::{ColumnSummary, DataError, Moments, Table, Target};

/// Refuses data in which no silo has more than one class, and notes the silos that have one.
///
/// # Errors
/// [`DataError::Config`]: one class everywhere.
pub(super) fn classes(
    target: &Target,
    silos: &[(String, Table)],
    notes: &mut Vec<String>,
) -> Result<(), DataError> {
    let Target::Classes(names) = target else {
        return Ok(());
    };
    let only = |table: &Table| {
        let first = *table.target.first()?;
        let same = table.target.iter().all(|&class| class == first);
        same.then_some(first as usize)
    };
    let single: Vec<(&str, usize)> = silos
        .iter()
        .filter_map(|(name, table)| Some((name.as_str(), only(table)?)))
        .collect();
    let Some(&(_, first)) = single.first() else {
        return Ok(());
    };
    if single.len() == silos.len() && single.iter().all(|&(_, class)| class == first) {
        return Err(DataError::Config(format!(
            "every row is of the class {:?}, so there is nothing to learn: check the rule or the \
             classes of the target",
            names[first]
        )));
    }
    let which: Vec<String> = single
        .iter()
        .take(5)
        .map(|&(silo, class)| format!("{silo} ({} only)", names[class]))
        .collect();
    let more = match single.len() {
        0..=5 => String::new(),
        count => format!(" and {} more", count - 5),
    };
    notes.push(format!(
        "{} of {} silos have rows of one class, so that a model is right there that always gives \
         it: {}{more}",
        single.len(),
        silos.len(),
        which.join(", "),
    ));
    Ok(())
}

/// Columns to note, each with the number of silos where it is to be noted.
#[derive(Default)]
pub(super) struct NotedColumns(Vec<(String, usize)>);

impl NotedColumns {
    pub(super) fn add(&mut self, columns: &[String]) {
        for column in columns {
            match self.0.iter_mut().find(|(name, _)| name == column) {
                Some((_, silos)) => *silos += 1,
                None => self.0.push((column.clone(), 1)),
            }
        }
    }

    /// The sentence about what they hold in the training rows, of this number of silos.
    pub(super) fn note(mut self, what: &str, silos: usize) -> Option<String> {
        self.0.sort_by_key(|(_, silos)| std::cmp::Reverse(*silos));
        let columns: Vec<String> = self
            .0
            .iter()
            .take(5)
            .map(|(name, count)| format!("{name} (at {count} of {silos})"))
            .collect();
        let more = match self.0.len() {
            0..=5 => String::new(),
            count => format!(" and {} more", count - 5),
        };
        let any = !columns.is_empty();
        any.then(|| {
            format!(
                "columns with {what} in the training rows of a silo: {}{more}",
                columns.join(", ")
            )
        })
    }
}

/// Columns of all silos, to find those that are far from the others.
#[derive(Default)]
pub(super) struct Far {
    columns: Vec<String>,
    silos: Vec<(String, Vec<ColumnSummary>)>,
}

impl Far {
    pub(super) fn add(&mut self, silo: &str, columns: &[String], held: &[ColumnSummary]) {
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        self.silos.push((silo.into(), held.to_vec()));
    }

    /// The sentence about columns whose values at a silo are far from those of the others. A target
    /// that is a number is among them.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.silos.iter().map(|(_, held)| held.len()).min()?;
        let mut found = Vec::new();
        for column in 0..count {
            let held = || self.silos.iter().map(|(_, held)| &held[column]);
            if held().all(|one| one.binary) {
                continue;
            }
            let moments: Vec<Moments> = held().map(|one| one.moments).collect();
            let name = self
                .columns
                .get(column)
                .map_or("the target", String::as_str);
            for (silo, far) in far_silos(column, &moments) {
                found.push(format!(
                    "{name} at {} (mean {}, elsewhere {})",
                    self.silos[silo].0,
                    rounded(far.mean),
                    rounded(far.others)
                ));
            }
        }
        let more = match found.len() {
            0..=5 => String::new(),
            count => format!(" and {} more", count - 5),
        };
        found.truncate(5);
        let any = !found.is_empty();
        any.then(|| {
            format!(
                "values far from those of the other silos, perhaps in another unit: {}{more}",
                found.join(", ")
            )
        })
    }
}

/// A number with about three significant digits.
fn rounded(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if size >= 1e6 || (size > 0.0 && size < 1e-3) => format!("{value:.2e}"),
        _ if size >= 100.0 => format!("{value:.0}"),
        _ if size >= 10.0 => format!("{value:.1}"),
        _ if size >= 1.0 || size == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}
