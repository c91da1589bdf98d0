//! Finds out what is predicted.

use super::Wishes;
use super::cells::Cells;
use crate::counted::rows_that;
use crate::data::{DataError, nearest};
use crate::schema::{ClassValues, TargetColumn};
use crate::typed::typed_pair;

/// Most values of a target that are taken for classes.
const CLASSES: usize = 12;
/// Values that usually mean the positive class.
const POSITIVE: [&str; 12] = [
    "1", "yes", "true", "y", "t", "positive", "pos", "ill", "dead", "died", "case", "event",
];

/// Returns whether the column to predict is a number, and no class.
pub(super) fn is_number(cells: &Cells<'_>, wishes: &Wishes) -> bool {
    let many = cells.values.len() > CLASSES || !cells.whole();
    cells.all_numbers() && many && wishes.positive.is_none()
}

/// The column to predict, and its classes with their rows in words, where there are classes.
///
/// # Errors
/// [`DataError::Config`]: no value, one value, too many texts, a positive class that is none; a class of
/// few rows that others would read of, and that nobody has said yes to.
pub(super) fn target(
    cells: &Cells<'_>,
    name: &str,
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<(TargetColumn, Option<String>), DataError> {
    let fail = |text: String| Err(wrong_target(name, &text));
    let distinct = cells.values.len();
    if cells.missing > 0 {
        notes.push(format!(
            "{} no value of {name:?}, of {} in all: left out",
            rows_that(cells.missing, "have"),
            cells.count
        ));
    }
    let measured = wishes.measured(name);
    let unit = measured.units.first().map(|unit| (*unit).to_owned());
    let column = TargetColumn {
        censored: measured.censored,
        ..TargetColumn::number(name, unit)
    };
    let known = |names: &[String]| names.iter().any(|own| own == name);
    let number = cells.all_numbers() && (distinct > CLASSES || !cells.whole());
    if wishes.positive.is_none() && !known(&wishes.numbers) && !known(&wishes.categories) {
        let form = cells.form_question().filter(|_| number);
        let around = cells.around_question().filter(|_| distinct > CLASSES);
        if let Some(question) = form.or(around) {
            return Err(DataError::Config(question));
        }
    }
    if number && wishes.positive.is_none() && !known(&wishes.categories) {
        return Ok((column, None));
    }
    if cells.mostly_numbers() && distinct > CLASSES && wishes.positive.is_none() {
        return fail(super::odd_cells(cells));
    }
    match distinct {
        0 => return fail("no row has a value".into()),
        1 => return fail("every row has the same value, so there is nothing to learn".into()),
        2..=CLASSES => {}
        _ => {
            return fail(format!(
                "{distinct} different texts are too many classes: choose another --target"
            ));
        }
    }
    let mut values: Vec<&String> = cells.values.keys().collect();
    values.sort_by(|a, b| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    });
    let positive = positive(cells, name, &values, wishes, notes)?;
    check_classes(cells, name, &values, wishes, notes)?;
    let rows = with_rows(cells, &values, positive.as_ref());
    let one = |value: &&String| ClassValues::One((*value).clone());
    let classes = match (&positive, distinct) {
        // One against all others.
        (Some(positive), 3..) => vec![
            ClassValues::Several {
                name: format!("not {positive}"),
                values: values
                    .iter()
                    .filter(|value| **value != positive)
                    .map(|value| (*value).clone())
                    .collect(),
            },
            ClassValues::One(positive.clone()),
        ],
        _ => values.iter().map(one).collect(),
    };
    let target = TargetColumn {
        classes: Some(classes),
        positive,
        ..column
    };
    Ok((target, Some(format!("classes, with their rows: {rows}"))))
}

/// The classes with their rows: every value, or of more than two the positive one and all others together.
fn with_rows(cells: &Cells<'_>, values: &[&String], positive: Option<&String>) -> String {
    let listed = |values: &[&String]| {
        let each = values
            .iter()
            .map(|value| format!("{value} {}", cells.values[*value]));
        each.collect::<Vec<_>>().join(", ")
    };
    match positive {
        Some(positive) if values.len() > 2 => {
            let others = values.iter().copied();
            let others: Vec<&String> = others.filter(|value| *value != positive).collect();
            let rows: usize = others.iter().map(|value| cells.values[*value]).sum();
            format!(
                "{positive} {}, not {positive} {rows} ({})",
                cells.values[positive],
                listed(&others)
            )
        }
        _ => listed(values),
    }
}

/// The class that counts as positive: the wished one, of two the one that is usual or rarer.
fn positive(
    cells: &Cells<'_>,
    name: &str,
    values: &[&String],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<Option<String>, DataError> {
    match &wishes.positive {
        Some(positive) if cells.values.contains_key(positive) => Ok(Some(positive.clone())),
        Some(positive) => {
            let known = values.iter().map(|value| value.as_str());
            Err(wrong_target(
                name,
                &format!(
                    "no row has the value {positive:?} that --positive names{}",
                    nearest(positive, known)
                ),
            ))
        }
        None if values.len() == 2 => {
            let usual = values
                .iter()
                .find(|value| POSITIVE.contains(&value.to_lowercase().as_str()));
            let rarer = values.iter().min_by_key(|value| cells.values[**value]);
            let chosen = usual.or(rarer).map(|value| (*value).clone());
            if let Some(chosen) = &chosen {
                notes.push(format!(
                    "of the two values of {name:?}, {chosen:?} is taken as positive (--positive takes the other)"
                ));
            }
            Ok(chosen)
        }
        None => Ok(None),
    }
}

/// Says which classes are rare. Refuses one that must not be told to others, and texts that are no class.
fn check_classes(
    cells: &Cells<'_>,
    name: &str,
    values: &[&String],
    wishes: &Wishes,
    notes: &mut Vec<String>,
) -> Result<(), DataError> {
    let few = |value: &&&String| cells.values[**value] < wishes.rare();
    for value in values.iter().filter(few) {
        let rows = rows_that(cells.values[*value], "hold");
        if !wishes.alone {
            notes.push(format!(
                "the class {value:?} of {name:?} is rare: {rows} it"
            ));
        } else if !wishes.keeps(name, value) {
            return Err(wrong_target(
                name,
                &format!(
                    "{rows} the class {value:?}, which is too few: classes are listed in the agreement, so every \
                     member would read that there is such a row. If they may, say --keep {}; if not, remove \
                     these rows from the table",
                    typed_pair(name, value)
                ),
            ));
        }
    }
    let long = |value: &&String| !super::personal::may_be_level(value);
    if let Some(value) = values.iter().copied().find(long) {
        let value: String = value.chars().take(24).collect();
        return Err(wrong_target(
            name,
            &format!(
                "the class that begins with {value:?} is long or goes over several lines: is a quotation mark \
             never closed?"
            ),
        ));
    }
    Ok(())
}

/// The error of a column that cannot be predicted.
fn wrong_target(name: &str, what: &str) -> DataError {
    DataError::Config(format!("the target {name:?}: {what}"))
}
