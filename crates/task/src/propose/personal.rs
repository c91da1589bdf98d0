//! Columns of texts that say who somebody is: names, addresses, dates, free text. No model should learn
//! from them, and no agreement should list them.

use std::collections::{BTreeMap, BTreeSet};

use crate::schema::LEVEL;

/// Words of column names that stand for persons and for how they are reached.
const PERSONS: [&str; 44] = [
    "name",
    "names",
    "surname",
    "lastname",
    "firstname",
    "forename",
    "fullname",
    "vorname",
    "nachname",
    "familienname",
    "nom",
    "prenom",
    "apellido",
    "nombre",
    "patient",
    "patientin",
    "person",
    "subject",
    "doctor",
    "physician",
    "surgeon",
    "nurse",
    "arzt",
    "ärztin",
    "consultant",
    "author",
    "employee",
    "mitarbeiter",
    "teacher",
    "student",
    "customer",
    "client",
    "kunde",
    "insured",
    "contact",
    "email",
    "mail",
    "phone",
    "telefon",
    "address",
    "adresse",
    "street",
    "strasse",
    "straße",
];
/// Words of column names that stand for a birth.
const BIRTH: [&str; 7] = [
    "birth",
    "birthday",
    "birthdate",
    "dob",
    "geburtsdatum",
    "geburt",
    "geboren",
];
/// Titles before a person's name.
const TITLES: [&str; 14] = [
    "dr", "mr", "mrs", "ms", "miss", "prof", "herr", "frau", "hr", "fr", "m", "mme", "sr", "sra",
];
/// Most weeks, months or quarters that are levels, such as cohorts.
const PERIODS: usize = 12;
/// Most rows of one value, on average, of a column that may name the persons of visits.
const VISITS: usize = 20;

/// The words of a column's name, in small letters: `patientName` and `patient_name` have the same.
pub(super) fn words(column: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in column.chars() {
        let new = !letter.is_alphanumeric() || before.is_lowercase() && letter.is_uppercase();
        if new && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a column's name says that it stands for persons.
pub(super) fn names_persons(column: &str) -> bool {
    words(column)
        .iter()
        .any(|word| PERSONS.contains(&word.as_str()))
}

/// Returns the reason for which a column of texts is not for a model and not for an agreement, as far as its
/// name and its values, each with its number of rows, show one.
pub(super) fn personal(column: &str, values: &BTreeMap<String, usize>) -> Option<String> {
    let rows: usize = values.values().sum();
    let distinct = values.len();
    let share = |is: &dyn Fn(&str) -> bool| {
        let such = values.iter().filter(|(text, _)| is(text));
        such.map(|(_, rows)| rows).sum::<usize>() as f64 / rows.max(1) as f64
    };
    if share(&is_date) >= 0.9 {
        let birth = words(column)
            .iter()
            .any(|word| BIRTH.contains(&word.as_str()));
        return Some(if birth {
            "dates of birth, which say who somebody is: an age in years is a number to learn from"
                .into()
        } else {
            format!(
                "dates: a model needs a number, such as the days since an admission (`--date {column}=2020-01-01` \
                 counts those since that day); they can say which \
                 rows are held out (`split = {{ time = {column:?} }}`, written as 2024-05-31)"
            )
        });
    }
    if distinct > PERIODS && share(&is_period) >= 0.9 {
        return Some(
            "weeks, months or quarters of the calendar: a model needs a number, such as the months since an admission"
                .into(),
        );
    }
    if share(&|text| text.contains('@') && text.contains('.')) >= 0.5 {
        return Some("addresses of electronic mail".into());
    }
    if share(&is_phone) >= 0.5 && distinct > 2 {
        return Some("they look like telephone numbers".into());
    }
    if share(&is_address) >= 0.5 && distinct > 2 {
        return Some("they look like addresses".into());
    }
    if share(&|text| !may_be_level(text)) >= 0.1 {
        return Some("free text: long, or over several lines".into());
    }
    let titled = |text: &str| {
        let first = text.split_whitespace().next().unwrap_or_default();
        let title = first.trim_end_matches('.').to_lowercase();
        text.contains(' ') && first.len() > 1 && TITLES.contains(&title.as_str())
    };
    if share(&titled) >= 0.5 {
        return Some("names of persons, by their titles".into());
    }
    let capitalised = share(&|text| (1..=4).contains(&capitalised(text)));
    if names_persons(column) && distinct >= 4 && capitalised >= 0.6 {
        return Some(format!(
            "{distinct} names of persons, as the column's name says"
        ));
    }
    let several = share(&|text| (2..=4).contains(&self::capitalised(text)));
    let mut words = BTreeSet::new();
    let mut count = 0;
    for word in values.keys().flat_map(|text| text.split_whitespace()) {
        count += 1;
        words.insert(word.trim_end_matches(','));
    }
    let differ = 10 * words.len() >= 8 * count;
    if several >= 0.8 && differ && distinct >= 8 && rows <= VISITS * distinct {
        return Some(format!("{distinct} texts that look like names of persons"));
    }
    None
}

/// Returns whether nearly all of these texts are days.
pub(super) fn are_dates(texts: &[&str]) -> bool {
    let present = texts.iter().filter(|text| !text.is_empty());
    let days = present.clone().filter(|text| is_date(text)).count();
    days > 0 && 10 * days >= 9 * present.count()
}

/// Returns whether a text may be a level of a category: short, and on one line.
pub(super) fn may_be_level(text: &str) -> bool {
    text.chars().count() <= LEVEL && !text.contains(char::is_control)
}

/// The number of words of a text that consists of capitalised words; 0 of any other.
fn capitalised(text: &str) -> usize {
    let mut count = 0;
    for word in text
        .split([' ', ',', '\u{a0}'])
        .filter(|word| !word.is_empty())
    {
        let mut letters = word.chars();
        let first = letters.next().is_some_and(char::is_uppercase);
        let rest = letters
            .all(|letter| letter.is_alphabetic() || matches!(letter, '.' | '-' | '\'' | '’'));
        if !first || !rest {
            return 0;
        }
        count += 1;
    }
    count
}

fn is_phone(text: &str) -> bool {
    let digits = text.chars().filter(char::is_ascii_digit).count();
    let marks = text
        .chars()
        .all(|letter| letter.is_ascii_digit() || " +-/().".contains(letter));
    marks
        && (7..=15).contains(&digits)
        && (text.starts_with(['+', '0', '(']) && text.contains([' ', '-', '/', '+']))
}

/// A street with a number, in some languages.
fn is_address(text: &str) -> bool {
    let low = text.to_lowercase();
    let street = [
        "str.", "straße", "strasse", "gasse", "platz", " weg", "weg ", "allee", " street", " st.",
        " road", " rd", " avenue", " ave", " lane", "rue ", "via ", "calle ",
    ];
    low.contains(|letter: char| letter.is_ascii_digit())
        && street.iter().any(|word| low.contains(word))
}

/// A day, with or without a time: 2024-05-31, 31.05.2024, 5/31/24, 31-May-2024, 20240531.
fn is_date(text: &str) -> bool {
    let day = text.split(['T', ' ']).next().unwrap_or_default();
    if let Some((year, month, day)) = compact(day) {
        return plausible(year, month, day);
    }
    let parts: Vec<&str> = day.split(['-', '.', '/']).collect();
    let [first, middle, last] = parts.as_slice() else {
        return false;
    };
    let digits = last.len();
    let number = |text: &str| match text.len() {
        1..=4 => text.parse::<u32>().ok(),
        _ => None,
    };
    let month = |text: &str| {
        let months = [
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ];
        let low = text.to_lowercase();
        number(text).or_else(|| {
            months
                .iter()
                .position(|month| *month == low)
                .map(|at| at as u32 + 1)
        })
    };
    let (Some(first), Some(middle), Some(last)) = (number(first), month(middle), number(last))
    else {
        return false;
    };
    match first > 31 {
        true => plausible(first, middle, last),
        // The year comes last, with two digits or four; day and month in either order.
        false if !matches!(digits, 2 | 4) => false,
        false => {
            let year = if last < 100 { 2000 + last } else { last };
            plausible(year, middle, first) || plausible(year, first, middle)
        }
    }
}

/// A week, month or quarter of a year: 2021-02, 02/2021, 2021-W05, 2021-Q3.
fn is_period(text: &str) -> bool {
    let Some((one, other)) = text.split_once(['-', '/']) else {
        return false;
    };
    let within = |text: &str, range: std::ops::Range<u32>| {
        text.parse()
            .is_ok_and(|number: u32| range.contains(&number))
    };
    let year = |text: &str| text.len() == 4 && within(text, 1900..2100);
    let part = |text: &str| within(text.trim_start_matches(['W', 'w', 'Q', 'q']), 1..54);
    (year(one) && part(other)) || (part(one) && year(other))
}

fn compact(text: &str) -> Option<(u32, u32, u32)> {
    let digits = text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit());
    let part = |from: usize, to: usize| text[from..to].parse().ok();
    if digits {
        Some((part(0, 4)?, part(4, 6)?, part(6, 8)?))
    } else {
        None
    }
}

fn plausible(year: u32, month: u32, day: u32) -> bool {
    (1850..=2150).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(column: &str, texts: &[&str], rows: usize) -> Option<String> {
        personal(
            column,
            &texts
                .iter()
                .map(|text| ((*text).to_owned(), rows))
                .collect(),
        )
    }

    #[test]
    fn names_addresses_dates_and_free_text_are_recognised() {
        let people = [
            "Anna Meier",
            "Jörg Weiß",
            "Li Na",
            "José Álvarez",
            "Ada Lovelace",
            "Mary O'Brien",
            "Jean-Luc Picard",
            "Eva Brunner",
            "Tom Baker",
        ];
        assert!(of("who", &people, 3).is_some_and(|why| why.contains("look like names")));
        let turned: Vec<String> = people.iter().map(|name| name.replace(' ', ", ")).collect();
        let turned: Vec<&str> = turned.iter().map(String::as_str).collect();
        assert!(of("x", &turned, 6).is_some());
        let doctors = ["Meier", "Huber", "Schmid", "Weber"];
        assert!(of("doctor", &doctors, 100).is_some_and(|why| why.contains("column's name")));
        assert!(of("treatedBy", &["Dr. Meier", "Dr. Huber", "Prof. Ott"], 100).is_some());
        assert!(of("x", &["a.b@c.org", "d@e.ch", "f@g.de"], 2).is_some());
        assert!(
            of(
                "x",
                &["+41 44 123 45 67", "044/123-4568", "(0)44 123 45 69"],
                2
            )
            .is_some()
        );
        assert!(
            of(
                "x",
                &["Hauptstrasse 5", "12 Mill Road", "Via Roma 3, Lugano"],
                2
            )
            .is_some()
        );
        for dates in [
            ["2024-05-31", "2023-01-02"],
            ["31.5.2024", "1.12.1999"],
            ["5/31/24", "12/1/99"],
            ["31-May-2024", "02-Jan-1999"],
            ["20240531", "19991201"],
            ["2024-05-31 14:30", "2023-01-02T08:00"],
        ] {
            let why = of("admitted", &dates, 2);
            assert!(
                why.is_some_and(|why| why.contains("days since")),
                "{dates:?}"
            );
            assert!(of("date_of_birth", &dates, 2).is_some_and(|why| why.contains("age in years")));
        }
        let long = "x".repeat(65);
        assert!(of("note", &[&long, "short"], 2).is_some());
        assert!(of("note", &["two\nlines", "one"], 2).is_some());
    }

    #[test]
    fn many_weeks_months_and_quarters_are_no_levels() {
        let periods = |form: fn(usize) -> String, count: usize| {
            let values: BTreeMap<String, usize> = (0..count).map(|at| (form(at), 6)).collect();
            personal("when", &values)
        };
        let forms: [fn(usize) -> String; 5] = [
            |at| format!("{}-{:02}", 2018 + at / 12, 1 + at % 12),
            |at| format!("{:02}/{}", 1 + at % 12, 2018 + at / 12),
            |at| format!("2021-W{:02}", 1 + at),
            |at| format!("{}-Q{}", 1990 + at / 4, 1 + at % 4),
            |at| format!("{}/{}", 1 + at % 12, 2018 + at / 12),
        ];
        for form in forms {
            let why = periods(form, 40).unwrap_or_default();
            assert!(why.starts_with("weeks, months or quarters"), "{why}");
            // A few are cohorts.
            assert_eq!(periods(form, 4), None);
        }
        assert_eq!(periods(|at| format!("{}-{}", 20 + at, 25 + at), 40), None);
    }

    #[test]
    fn ordinary_categories_are_not() {
        for (column, texts) in [
            (
                "ward",
                &["general", "intensive", "surgery", "emergency"][..],
            ),
            (
                "ward",
                &[
                    "General Medicine",
                    "Intensive Care",
                    "Emergency Room",
                    "Plastic Surgery",
                ],
            ),
            ("student", &["Yes", "No"]),
            ("sex", &["M", "F", "X", "U"]),
            ("icd", &["A09.0", "I25.1", "250.0", "E11"]),
            ("version", &["1.2.3", "1.10.0"]),
            ("city", &["Bern", "Zürich", "Genève", "Lugano"]),
            ("score", &["12.5", "13.7"]),
        ] {
            assert_eq!(of(column, texts, 100), None, "{column}");
        }
        assert_eq!(words("patientName"), ["patient", "name"]);
        assert!(names_persons("patient_id") && !names_persons("outpatient"));
    }
}
