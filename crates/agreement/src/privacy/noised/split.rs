//! Hold-out of rows where sums are differentially private: the part of a row must not change because another one
//! comes or goes, or one row more would change many rows of a sum, for which there is too little noise.

use task::{Source, TableTask};

use crate::privacy::refusals::KeyFault;

/// By which a row's part depends on nothing else.
const KEYED: &str =
    "write `keyed = true` in `[task.table.split]`, by which a keyed hash of each row decides";

/// Returns the reason for which the split of a task breaks the bound, and what to write. `by_unit` is true if parts
/// depend on single rows or groups alone, `rows` if noise protects single rows.
pub(crate) fn fault(task: &TableTask, by_unit: bool, rows: bool) -> Option<KeyFault> {
    let split = &task.split;
    let (how, write) = match (&split.time, &split.column) {
        // A group begins when its first row does.
        _ if by_unit && rows && split.test_from.is_some() && split.group.is_some() => (
            "holds out groups by the time of their first rows",
            "protect whole groups, with `privacy-unit = { person = \"…\" }` in `[privacy]`, or leave out `group`",
        ),
        _ if by_unit => return None,
        (Some(_), _) => (
            "holds out a fraction of the latest rows",
            "write `test-from`, the date from which on rows are test rows, and `validation-from` in place of \
             `validation`",
        ),
        (None, Some(_)) => (
            "draws validation rows from those that the data give for training",
            KEYED,
        ),
        (None, None) if files_have_parts(task) => (
            "draws validation rows from files that have `part = \"train\"`, where none is for validation",
            KEYED,
        ),
        (None, None) => ("deals rows out at random, by how many there are", KEYED),
    };
    let what = format!(
        "{how}, so one row more or less moves others, and with noise epsilon does not hold: {write}"
    );
    Some(("task.table.split", what))
}

/// Returns whether files of the task say of which part their rows are.
fn files_have_parts(task: &TableTask) -> bool {
    let Some(Source::Rows(rows)) = &task.data else {
        return false;
    };
    rows.files.iter().any(|file| file.part.is_some())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_fault_states_how_rows_are_held_out() {
        let said = |file: &str| {
            let text = format!(
                "model = {{ linear = {{ loss = 'squared' }} }}\n[data.rows]\nfiles = [{file}]"
            );
            fault(&toml::from_str(&text).unwrap(), false, true)
                .unwrap()
                .1
        };
        let drawn = said("{ path = 'a.csv' }");
        assert!(drawn.starts_with("deals rows out at random"), "{drawn}");
        let given = said("{ path = 'a.csv', part = 'train' }");
        assert!(
            given.starts_with("draws validation rows from files"),
            "{given}"
        );
    }
}
