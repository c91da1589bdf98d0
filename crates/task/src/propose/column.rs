//! Finds out what a column holds.

use super::category::category;
use super::cells::Cells;
use super::personal::{names_persons, personal, words};
use super::units::COUNTED;
use super::{ColumnUse, Wishes};
use crate::schema::{ColumnType, DateForm, Day, Days, FeatureColumns, Quantity};
use crate::typed::typed_pair;

/// Most distinct values of a column of whole numbers that may hold codes.
const CODES: usize = 30;

/// Returns whether numbers look like codes: whole and few, and the name says so or some have leading zeros.
fn looks_like_codes(cells: &Cells<'_>) -> bool {
    let named = ["id", "code", "type", "class", "category", "kind", "group"];
    let named = words(cells.name)
        .iter()
        .any(|word| named.contains(&word.as_str()));
    let zeros = cells.values.keys().any(|text| {
        text.len() > 1 && text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
    });
    (named || zeros) && cells.whole() && cells.values.len() <= CODES
}

/// A column of dates, of which somebody says that it is one.
fn dates(cells: &Cells<'_>, since: Day) -> ColumnUse {
    let odd: Vec<&str> = cells.odd().into_iter().map(|(text, _)| text).collect();
    if let Some(first) = odd.first() {
        let name = cells.name;
        let forms = DateForm::of(odd.iter().copied());
        let forms: Vec<_> = forms
            .iter()
            .map(|form| format!("--date-form {}", typed_pair(name, form.name())))
            .collect();
        return ColumnUse::Question(match &forms[..] {
            [] => format!(
                "column {name:?} is to hold dates, and {first:?} is none: write it as 2024-05-31, or say that it means a \
                 missing value with --missing-mark {}",
                typed_pair(name, first)
            ),
            forms => format!(
                "column {name:?} is to hold dates, and {first:?} is read as none until you say how they are written: {}",
                forms.join(" or ")
            ),
        });
    }
    let days = Days::since(since);
    let ends = cells.numbers.first().zip(cells.numbers.last());
    let what = ends.map_or("no date".to_owned(), |((low, _), (high, _))| {
        format!("dates from {} to {}", days.day(*low), days.day(*high))
    });
    let feature = FeatureColumns {
        kind: ColumnType::Date(days),
        missing: cells.rule(),
        ..FeatureColumns::numbers(cells.name.into())
    };
    ColumnUse::Feature(feature, cells.with_missing(what))
}

pub(super) fn found(cells: &Cells<'_>, wishes: &Wishes) -> ColumnUse {
    let named = |names: &[String]| names.iter().any(|name| name == cells.name);
    let (number, asked) = (named(&wishes.numbers), named(&wishes.categories));
    let distinct = cells.values.len();
    if cells.present() == 0 {
        return ColumnUse::LeftOut("no value in any row".into());
    }
    if distinct == 1 {
        let value = cells.values.keys().next().map_or("", String::as_str);
        let value: String = value.chars().take(40).collect();
        return ColumnUse::LeftOut(format!("the same value in every row: {value:?}"));
    }
    let share = cells.missing as f64 / cells.count as f64;
    if share > 0.6 && !number && !asked {
        return ColumnUse::LeftOut(format!("{:.0} % of the values are missing", 100.0 * share));
    }
    if let Some((_, since)) = wishes.dates.iter().find(|(name, _)| name == cells.name) {
        return dates(cells, *since);
    }
    let unasked = !asked && !number;
    if let (true, Some(why)) = (unasked, personal(cells.name, &cells.values)) {
        return ColumnUse::LeftOut(why);
    }
    if unasked && let Some(question) = cells.pair_question() {
        return ColumnUse::Question(question);
    }
    let codes = cells.all_numbers() && looks_like_codes(cells);
    let numeric = cells.all_numbers() || cells.mostly_numbers();
    if unasked && let Some(question) = cells.around_question() {
        return ColumnUse::Question(question);
    }
    if asked || (!number && (!numeric || codes)) {
        return category(cells, wishes, codes, asked);
    }
    if cells.whole() && distinct == cells.present() && distinct > COUNTED && !number {
        return ColumnUse::LeftOut("a different whole number in every row: an identifier".into());
    }
    let identifier = cells.name.to_ascii_lowercase().ends_with("id") || names_persons(cells.name);
    if cells.whole() && identifier && distinct > 2 && !number {
        let what = format!("{distinct} whole numbers, and by the name an identifier");
        return ColumnUse::LeftOut(what);
    }
    if cells.numeric < cells.present() {
        return ColumnUse::Odd;
    }
    if unasked && let Some(question) = cells.form_question() {
        return ColumnUse::Question(question);
    }
    let measured = wishes.measured(cells.name);
    let quantity = Quantity {
        unit: measured.units.first().map(|unit| (*unit).to_owned()),
        range: None,
        censored: measured.censored,
    };
    let kind = if cells.whole() {
        ColumnType::Integer(quantity)
    } else {
        ColumnType::Number(quantity)
    };
    let feature = FeatureColumns {
        kind,
        missing: cells.rule(),
        ..FeatureColumns::numbers(cells.name.into())
    };
    ColumnUse::Feature(feature, cells.with_missing(cells.range()))
}
