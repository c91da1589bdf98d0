//! Fit of an institution's rows to the agreed schema, and what they are.

use std::path::Path;

use agreement::Agreement;
use formatting::numbers::{plural, verb};
use learn::RowCounts;
use protocol::MemberIndex;
use task::data::{OwnRows, SplitKey, Target};
use task::propose::noticed;
use task::questions::{AskedAt, RowQuestion, RowsProfile, questions};
use task::survey::{Survey, survey};
use task::{Source as Rows, TableTask, TaskConfig, data::DataError};

/// An institution's rows, as they were read by the agreed schema.
#[derive(Debug, Clone, PartialEq)]
pub struct RowsFit {
    /// Rows that are used.
    pub rows: usize,
    /// Fewest rows that the agreement asks for.
    pub least: usize,
    /// Columns to learn from.
    pub columns: usize,
    /// Numbers that a row becomes.
    pub numbers: usize,
    /// Cells that are missing and get a substitute.
    pub missing: usize,
    /// Rows by class, where classes are predicted.
    pub classes: Vec<(String, usize)>,
    /// Smallest and largest number to predict, where one number is, or time to an event.
    pub range: Option<(f64, f64)>,
    /// Rows with an event, where a time to an event is predicted.
    pub events: Option<usize>,
    /// Rows for training, validation and test.
    pub split: RowCounts,
    /// Findings, in sentences without a full stop.
    pub notes: Vec<String>,
    /// Questions that a person has to answer about the rows, and has not answered.
    pub questions: Vec<RowQuestion>,
    /// Distribution of the values of every column.
    pub profile: RowsProfile,
}

/// The task of one institution with rows of its own; `table` is how its agreement has rows read.
pub(super) fn own_task(
    table: &TableTask,
    rows: &OwnRows,
    name: &str,
    folder: &Path,
) -> Result<TableTask, DataError> {
    let mut table = table.clone();
    table.schema = table.agreed_schema()?;
    if table.schema.is_none() {
        return Err(DataError::Config(
            "the agreement has no [task.table.schema], by which own rows could be read: agree on one, \
             or write `share = \"1 of 8\"` in [data]"
                .into(),
        ));
    }
    // The split of the rows depends on the silo's name.
    let rows = rows.of_silo(name, folder);
    table.data = Some(Rows::Rows(Box::new(rows)));
    Ok(table)
}

/// The domain of a member's rows as a task of that member alone has it.
pub(super) fn own_domain(
    table: &mut TableTask,
    me: MemberIndex,
    members: usize,
) -> Result<(), DataError> {
    let domain = table.domain(me.at(), members)?;
    table.domains = domain.map(|domain| vec![domain]);
    Ok(())
}

/// Reads rows, in `folder`, of the institution called `name`, as `agreement` has them read, and splits them
/// by `seed`, or where the split is keyed by the institution's secret; without that the counts are roughly
/// right. With noise rows that cannot be read, or that are too few, are only noted: they keep no node out
/// of its rounds.
///
/// # Errors
/// [`DataError`]: the first thing that does not fit.
pub fn fit(
    agreement: &Agreement,
    rows: &OwnRows,
    name: &str,
    folder: &Path,
    (seed, key): (u64, Option<&SplitKey>),
) -> Result<RowsFit, DataError> {
    let TaskConfig::Table(table) = agreement.task_of_rows()? else {
        return Err(DataError::Config(
            "the task has data of its own, and reads no rows of institutions".into(),
        ));
    };
    let mut table = own_task(&table, rows, name, folder)?;
    table.domains = None;
    let mut set = table.tables(None, None, seed)?;
    set.notes.extend(noticed(&set));
    let profile = RowsProfile::of(&set);
    let mut questions = questions(&set, &rows.answers);
    if table.is_noised() {
        // Nothing that a row can tip keeps an institution out: people are told, and decide.
        let asked = questions.drain(..);
        set.notes
            .extend(asked.map(|question| question.at(AskedAt::Node)));
    }
    key.into_iter().for_each(|key| set.hold_out_by(key));
    let schema = table.schema.as_ref();
    let least = schema.map_or(2, |schema| schema.min_rows);
    let columns = schema.map_or(0, |schema| schema.names().count());
    let read = set.silos.first().map(|(_, table)| table);
    let count = read.map_or(0, task::data::Table::len);
    let firsts = schema.map_or(Vec::new(), task::schema::Schema::first_numbers);
    let missing = read.map_or(0, |read| {
        let rows = read.values.chunks(read.columns.len().max(1));
        let missing = |row: &&f64| row.is_nan();
        rows.map(|row| {
            firsts
                .iter()
                .filter_map(|at| row.get(*at))
                .filter(missing)
                .count()
        })
        .sum()
    });
    let targets = read.map_or(&[][..], |read| &read.target);
    let classes = match &set.target {
        Target::Classes(names) => {
            let of = |at: usize| {
                targets
                    .iter()
                    .filter(|class| **class as usize == at)
                    .count()
            };
            let named = names.iter().enumerate();
            named.map(|(at, name)| (name.clone(), of(at))).collect()
        }
        _ => Vec::new(),
    };
    let ends = |numbers: &mut dyn Iterator<Item = f64>| {
        let first = (f64::INFINITY, f64::NEG_INFINITY);
        numbers.fold(first, |(low, high), next| (low.min(next), high.max(next)))
    };
    let of_times = || targets.chunks_exact(task::survival::NUMBERS);
    let (range, events) = match &set.target {
        Target::Number { .. } => (Some(ends(&mut targets.iter().copied())), None),
        Target::Survival { .. } => {
            let events = of_times().filter(|row| row[0] == 1.0).count();
            let times = &mut of_times().map(|row| row[1]);
            (Some(ends(times)).filter(|_| count > 0), Some(events))
        }
        _ => (None, None),
    };
    let numbers = read.map_or(0, |read| read.columns.len());
    let mut study = learn::study_of(&table, set, seed)?;
    let untrained = study.silos.iter().find(|silo| silo.rows.train == 0);
    let untrained = untrained.cloned();
    if table.is_noised() {
        study.notes.extend((count < least).then(|| {
            let rows = plural(count, "row");
            format!("{rows} can be used, and the agreement asks for at least {least} (`min-rows`)")
        }));
        study.notes.extend(untrained.map(|_| {
            "there is no row to train on: this node would contribute its noise alone".to_owned()
        }));
    } else if let Some(silo) = untrained.filter(|_| !table.split.may_leave_none()) {
        // Only a hash or a date may leave none: the institution then takes part.
        return Err(DataError::TooFewRows {
            silo: silo.name.clone(),
            rows: count,
            train: 0,
            validation: silo.rows.validation,
            test: silo.rows.test,
        });
    }
    Ok(RowsFit {
        rows: count,
        least,
        columns,
        numbers,
        missing,
        classes,
        range,
        events,
        split: study
            .silos
            .first()
            .map_or_else(RowCounts::default, |silo| silo.rows),
        notes: study.notes,
        questions,
        profile,
    })
}

/// Returns what every column of the rows holds, and all that does not fit the agreed schema, in files that are read as
/// `agreement` has them read.
///
/// # Errors
/// [`DataError`]: a file cannot be read; the task has no schema.
pub fn surveyed(agreement: &Agreement, rows: &OwnRows, folder: &Path) -> Result<Survey, DataError> {
    let none = || DataError::Config("the task reads no rows of institutions".into());
    let TaskConfig::Table(table) = agreement.task_of_rows()? else {
        return Err(none());
    };
    let schema = table.agreed_schema()?.ok_or_else(none)?;
    survey(&table, &schema, rows, folder)
}

/// All that does not fit, one line each.
pub fn misfits(survey: &Survey) -> Vec<String> {
    let lines = survey.misfits.iter();
    lines.map(|line| format!("  {line}")).collect()
}

/// The table of names with which rows would fit, as lines of TOML, whole; nothing where names would not help.
pub fn names_that_fit(survey: &Survey) -> Vec<String> {
    let names = survey.names.as_ref();
    let lines = names.map(|names| {
        let header = "[data.rows.names]".to_owned();
        [vec![header], names.written()].concat()
    });
    lines.unwrap_or_default()
}

/// Instruction for that table, in a line.
pub const PASTE: &str = "Names and codes that would fit, with \"?\" where only you know: put this into node.toml, whole, \
                         in place of [data.rows.names], with the agreed value or the column's name in place of each \"?\". \
                         A column that is to be read does not stay in `ignore`, and one that the files do not have \
                         goes from `columns` into `absent = [\"COLUMN\"]` where the agreement fills gaps:";

impl RowsFit {
    /// The findings in sentences, one line each.
    pub fn lines(&self) -> Vec<String> {
        let Self {
            rows,
            least,
            columns,
            numbers,
            missing,
            split,
            ..
        } = self;
        let mut lines = vec![format!(
            "{} {} the schema, at least {least} are needed: {} to train, {} to validate, {} to test; {}, encoded \
             as {} per row; {} {} missing and filled in",
            plural(*rows, "row"),
            verb(*rows, "fits", "fit"),
            split.train,
            split.validation,
            split.test,
            plural(*columns, "column"),
            plural(*numbers, "number"),
            plural(*missing, "cell"),
            verb(*missing, "is", "are"),
        )];
        if !self.classes.is_empty() {
            let part = |count: usize| 100.0 * count as f64 / (*rows).max(1) as f64;
            let each = self.classes.iter();
            let each: Vec<_> = each
                .map(|(name, count)| format!("{name} {count} ({:.1} %)", part(*count)))
                .collect();
            lines.push(format!("classes: {}", each.join(", ")));
        }
        if let (Some(events), Some((low, high))) = (self.events, self.range) {
            let part = 100.0 * events as f64 / (*rows).max(1) as f64;
            lines.push(format!(
                "{} ({part:.1} %), {} censored; times from {low} to {high}",
                plural(events, "event"),
                rows.saturating_sub(events)
            ));
        } else if let Some((low, high)) = self.range {
            lines.push(format!(
                "the number to predict lies between {low} and {high}"
            ));
        }
        lines
    }

    /// A class that no row has, or one that all have.
    pub fn is_unbalanced(&self) -> bool {
        self.classes.iter().any(|(_, count)| *count == 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::fixture::North;
    use crate::institution::Data;

    /// Returns what is found in north's rows under this agreement, where the severity of some is `odd`.
    fn found(text: &str, odd: &str, kept: &[&str]) -> RowsFit {
        let north = North::new();
        let file = north.folder.path().join("rows.csv");
        let rows = fs::read_to_string(&file).unwrap();
        let changed = rows.replace(",3,", &format!(",{odd},"));
        assert_ne!(rows, changed);
        fs::write(&file, changed).unwrap();
        let Data::Rows(mut rows) = north.institution.data.clone() else {
            panic!("rows of files");
        };
        for value in kept {
            rows.answers.add("severity", Some(value));
        }
        let folder = north.folder.path();
        fit(&North::read(text), &rows, "north", folder, (0, None)).unwrap()
    }

    #[test]
    fn a_possible_missing_value_is_asked_about_until_answered() {
        let text = North::text(&[]);
        for odd in ["999", "-99", "-999", "9999", "-2147483648", "32767"] {
            let asked = found(&text, odd, &[]).questions;
            let [one] = asked.as_slice() else {
                panic!("{odd}: {asked:?}");
            };
            let said = one.at(AskedAt::Member);
            assert!(
                said.contains(&format!("--missing \"severity\" \"{odd}\"")),
                "{said}"
            );
            assert_eq!(found(&text, odd, &[odd]).questions, []);
        }
        assert_eq!(found(&text, "4", &[]).questions, []);
    }

    #[test]
    fn missing_cells_are_counted_not_the_numbers_they_become() {
        // A gap among four levels is three numbers, and one of a severity a number and an indicator.
        let text = North::text(&[
            ("\"intensive\"]", "\"intensive\", \"day\", \"night\"]"),
            ("missing = \"mean\"", "missing = \"indicator\""),
        ]);
        let north = North::new();
        let folder = north.folder.path();
        let rows = fs::read_to_string(folder.join("rows.csv")).unwrap();
        let gaps = rows.replace(",3,", ",,").replace(",general,", ",,");
        fs::write(folder.join("rows.csv"), gaps).unwrap();
        let Data::Rows(rows) = &north.institution.data else {
            panic!("rows of files");
        };
        let fit = fit(&North::read(&text), rows, "north", folder, (0, None)).unwrap();
        assert_eq!(fit.missing, 8 + 20);
        let line = &fit.lines()[0];
        assert!(
            line.ends_with("28 cells are missing and filled in"),
            "{line}"
        );
    }

    #[test]
    fn events_are_counted_and_a_site_without_one_is_told() {
        let text = North::text(&[
            (
                "model = { linear = { loss = \"absolute\" } }",
                "model = \"cox\"",
            ),
            ("metric = \"mae\"", "metric = \"concordance\""),
            ("standardise = \"federation\"", "standardise = \"silo\""),
            (
                "name = \"days\"\nunit = \"days\"\nrange = [0.0, 365.0]",
                "event = \"died\"\ntime = \"days\"\n",
            ),
        ]);
        let north = North::new();
        let folder = north.folder.path();
        let rows = fs::read_to_string(folder.join("rows.csv")).unwrap();
        let Data::Rows(own) = &north.institution.data else {
            panic!("rows of files");
        };
        let with = |event: fn(usize) -> usize| {
            let mut lines = rows.lines();
            let header = format!("{},died\n", lines.next().unwrap());
            let lines = lines.enumerate();
            let lines: String = lines
                .map(|(at, line)| format!("{line},{}\n", event(at)))
                .collect();
            fs::write(folder.join("rows.csv"), header + &lines).unwrap();
            fit(&North::read(&text), own, "north", folder, (0, None)).unwrap()
        };
        let found = with(|at| usize::from(at % 4 == 0));
        assert_eq!((found.events, found.range), (Some(10), Some((3.0, 9.0))));
        assert_eq!(
            found.lines()[1],
            "10 events (25.0 %), 30 censored; times from 3 to 9"
        );
        let told = |fit: &RowsFit| {
            fit.notes
                .iter()
                .any(|note| note.contains("every training row is censored"))
        };
        assert!(!told(&found));
        assert!(told(&with(|_| 0)));
    }

    #[test]
    fn with_noise_the_same_is_only_told() {
        let noised = North::noised("noise-multiplier = 20.0\nmin-authors = 3");
        let told = found(&noised, "-9", &[]);
        assert_eq!(told.questions, []);
        let notes = told.notes.join("\n");
        assert!(notes.contains("8 rows hold -9, unlike"), "{notes}");
    }
}
