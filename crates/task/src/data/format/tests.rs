#![allow(clippy::unwrap_used)]
use std::path::Path;

use super::*;

fn german() -> Format {
    Format {
        decimal: ',',
        thousands: Some('.'),
        ..Format::default()
    }
}

#[test]
fn missing_value_marks_are_those_of_programs_that_write_tables() {
    let format = Format::default();
    let marks = [
        "",
        "  ",
        "NA",
        "na",
        "n/a",
        "<NA>",
        "NaN",
        "-NaN",
        "nan",
        "None",
        "none",
        "null",
        "NULL",
        "(null)",
        "\\N",
        "NaT",
        ".",
        "-",
        "--",
        "?",
        "#N/A",
        "#NV",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NAME?",
        "#NUM!",
        "not available",
        "Missing",
        "k.A.",
        "k. A.",
        "K.A.",
        " NA ",
        "\u{2013}",
    ];
    for mark in marks {
        assert!(format.is_missing(mark), "{mark:?}");
    }
    let values = [
        "0", "..", "-1", ".5", "no", "nano", "Nan Li", "N", "A", "nil", "- -", "other", "unknown",
    ];
    for value in values {
        assert!(!format.is_missing(value), "{value:?}");
    }
    let own = Format {
        missing: vec!["-9".into()],
        ..Format::default()
    };
    assert!(own.is_missing("-9") && !own.is_missing("") && !own.is_missing("NA"));
}

#[test]
fn a_mark_that_is_a_number_is_that_number_however_it_is_written() {
    let mark = |mark: &str, decimal| Format {
        missing: vec![mark.into()],
        decimal,
        thousands: (decimal == ',').then_some('.'),
        ..Format::default()
    };
    let point = mark("-999", '.');
    for same in [
        "-999",
        "-999.0",
        "-999.",
        "-999.000",
        " -999.0 ",
        "-9.99e+02",
        "\u{2212}999",
    ] {
        assert!(point.is_missing(same), "{same:?}");
    }
    for other in [
        "999", "-999.5", "-99", "-999 %", "-999-", "(999)", "$-999", "x",
    ] {
        assert!(!point.is_missing(other), "{other:?}");
    }
    let comma = mark("-9999", ',');
    for same in ["-9999,0", "-9.999", "-9.999,00", "-9999"] {
        assert!(comma.is_missing(same), "{same:?}");
    }
    assert!(mark("-999.5", ',').is_missing("-999,50"));
    assert!(mark("-999,5", ',').is_missing("-999,50"));
    assert!(mark(".5", '.').is_missing("0.50"));
    // Codes that look like numbers are texts.
    let code = mark("9", '.');
    assert!(code.is_missing("9.0") && !code.is_missing("09") && !code.is_missing("009"));
    assert!(!mark("400", '.').is_missing("4E2") && !mark("4E2", '.').is_missing("400"));
    // No code is as large.
    let huge = mark("-9000000000000000000000000000000", '.');
    assert!(huge.is_missing("-9e30") && huge.is_missing("-9.0E+30") && !huge.is_missing("-9e29"));
    assert!(mark("09", '.').is_missing("09") && !mark("09", '.').is_missing("9"));
}

#[test]
fn default_marks_that_could_be_values_are_guesses() {
    let format = Format::default();
    for text in ["", "NA", "NaN", "null"] {
        assert!(!format.is_guess(text), "{text}");
    }
    for text in ["-", "None", "missing", "Na", ".", "?"] {
        assert!(format.is_guess(text), "{text}");
    }
    let own = Format {
        missing: vec!["-".into()],
        ..Format::default()
    };
    assert!(!own.is_guess("-"));
}

#[test]
fn numbers_follow_the_marks_of_the_format() {
    let plain = Format::default();
    assert_eq!(plain.number("1.234"), Some(1.234));
    assert_eq!(plain.number("1,234"), None);
    assert_eq!(german().number("1.234"), Some(1234.0));
    assert_eq!(german().number("1.234,5"), Some(1234.5));
    assert_eq!(german().number("1,2"), Some(1.2));
    assert_eq!(german().number("1.2"), None);
    let us = Format {
        thousands: Some(','),
        ..Format::default()
    };
    assert_eq!(us.number("1,2"), None);
    assert_eq!(us.number("12,345.5"), Some(12_345.5));
    let spaced = Format {
        thousands: Some('\u{a0}'),
        ..Format::default()
    };
    assert_eq!(spaced.number("1 234"), Some(1234.0));
}

#[test]
fn texts_of_categories_keep_their_digits_and_change_their_marks() {
    assert_eq!(german().pointed("1.234,50").as_deref(), Some("1234.50"));
    assert_eq!(german().pointed("007").as_deref(), Some("007"));
    assert_eq!(german().pointed("4E2").as_deref(), Some("4E2"));
    assert_eq!(german().pointed("12 %"), None);
    assert_eq!(german().plain("1,5"), "1.5");
    assert_eq!(Format::default().plain("(1)"), "(1)");
    assert_eq!(
        Format::default().plain("12345678901234567890a"),
        "12345678901234567890a"
    );
}

#[test]
fn a_text_that_is_no_number_is_refused_with_a_remedy() {
    let plain = Format::default();
    let cases = [
        ("fast", "a number is needed"),
        ("60,5", "decimal = \",\""),
        (
            "12,345",
            "between thousands (12345) or a decimal comma (12.345)",
        ),
        ("6'000", "thousands = \"'\""),
        ("6 000", "thousands = \" \""),
        ("6\u{202f}000,5", "thousands = \" \", decimal = \",\""),
        ("1.234,5", "decimal = \",\", thousands = \".\""),
        ("1,234.5", "thousands = \",\""),
        ("inf", "infinite"),
        ("-Infinity", "infinite"),
        ("0x1F", "decimal digits"),
        ("1e999", "too large"),
        ("60 bpm", "without \"bpm\""),
        ("<5", "not a bound"),
    ];
    for (text, part) in cases {
        let needed = plain.needed(text);
        assert!(
            needed.starts_with("a number is needed") && needed.contains(part),
            "{text}: {needed}"
        );
    }
    assert!(
        german().needed("1.5").contains("decimal = \".\""),
        "{}",
        german().needed("1.5")
    );
}

#[test]
fn marks_that_contradict_each_other_are_refused() {
    let fails = |format: Format| format.check().unwrap_err().to_string();
    let same = Format {
        thousands: Some('.'),
        ..Format::default()
    };
    assert!(fails(same).contains("is the decimal mark \",\"?"));
    let other = Format {
        thousands: Some('x'),
        ..Format::default()
    };
    assert!(fails(other).contains("`thousands` must be"));
    for mark in ['\'', ' ', '\u{202f}', ',', '_'] {
        let format = Format {
            thousands: Some(mark),
            ..Format::default()
        };
        format.check().unwrap();
    }
    german().check().unwrap();
}

#[test]
fn utf_16_is_known_by_its_mark_or_its_zero_bytes() {
    let text = "age,ward\n40,S\u{fc}d\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = |mark: [u8; 2], rest: &[u8]| [&mark[..], rest].concat();
    let all = [
        little.clone(),
        big.clone(),
        marked([0xFF, 0xFE], &little),
        marked([0xFE, 0xFF], &big),
        [&[0xEF, 0xBB, 0xBF][..], text.as_bytes()].concat(),
    ];
    for bytes in all {
        let read = Format::default().decode(Path::new("a.csv"), bytes).unwrap();
        assert_eq!(read, text);
    }
    let zeros = Format::default().decode(Path::new("a.csv"), b"a,b\n1\0,2\n".to_vec());
    assert!(zeros.unwrap_err().to_string().contains("zero bytes"));
}
