#![allow(clippy::unwrap_used)]
use super::*;

/// What is found in a file with these bytes.
fn sniffed(bytes: &[u8], given: Marks) -> Result<(Format, RawFile), String> {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("rota-sniff-{}-{number}.csv", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, bytes).unwrap();
    let found = read(&path, &given).map_err(|error| error.to_string());
    std::fs::remove_file(&path).unwrap();
    found
}

fn found(text: &str) -> Result<Format, String> {
    sniffed(text.as_bytes(), Marks::default()).map(|(format, _)| format)
}

/// A column of these cells beside a plain one, with semicolons.
fn column(cells: &[&str]) -> String {
    let rows: String = cells.iter().map(|cell| format!("{cell};1\n")).collect();
    format!("x;y\n{rows}")
}

fn marks(cells: &[&str]) -> (char, Option<char>) {
    let format = found(&column(cells)).unwrap();
    assert_eq!(format.delimiter, ';');
    (format.decimal, format.thousands)
}

#[test]
fn marks_of_numbers_are_found_in_the_whole_file() {
    let cases: [(&[&str], char, Option<char>); 20] = [
        (&["1", "22"], '.', None),
        (&["1.5", "22.25"], '.', None),
        (&["1,5", "22"], ',', None),
        (&["0.512", "1.234"], '.', None),
        (&["0,512", "1,234"], ',', None),
        (&["1234.567", "1.234"], '.', None),
        (&["1,234.56", "12"], '.', Some(',')),
        (&["1.234,56", "12"], ',', Some('.')),
        (&["1,234,567", "1,234"], '.', Some(',')),
        (&["1.234.567", "1.234"], ',', Some('.')),
        (&["1,23,456", "1,234"], '.', Some(',')),
        (&["1'234", "12"], '.', Some('\'')),
        (&["1\u{2019}234.5", "12"], '.', Some('\'')),
        (&["1 234", "12"], '.', Some(' ')),
        (&["1\u{a0}234,5", "12"], ',', Some(' ')),
        (&["1\u{202f}234", "12,5"], ',', Some(' ')),
        (&["1\u{2009}234.567", "12"], '.', Some(' ')),
        (&["1.234e5", "1.234"], '.', None),
        (&["$1,234.00", "$5.00"], '.', Some(',')),
        (&["1.234,50 €", "-3,00 €"], ',', Some('.')),
    ];
    for (cells, decimal, thousands) in cases {
        assert_eq!(marks(cells), (decimal, thousands), "{cells:?}");
    }
    // Dates, addresses and texts tell nothing.
    let others: [&[&str]; 5] = [
        &["12.03.2024", "13.04.2024"],
        &["10.0.0.1", "10.0.0.2"],
        &["v1.234", "v1.235"],
        &["a, b", "c, d"],
        &["12:30", "2024-05-31"],
    ];
    for cells in others {
        assert_eq!(marks(cells), ('.', None), "{cells:?}");
    }
}

#[test]
fn a_quoted_comma_in_a_file_with_commas_is_between_thousands() {
    let format = found("age,income\n37,\"12,500\"\n28,\"37,603\"\n").unwrap();
    assert_eq!((format.decimal, format.thousands), ('.', Some(',')));
    assert_eq!(format.number("12,500"), Some(12_500.0));
    // Unless other numbers of the file say that it is a decimal comma.
    let format = found("age,income\n\"37,5\",\"12,500\"\n\"28,0\",\"37,603\"\n").unwrap();
    assert_eq!((format.decimal, format.thousands), (',', None));
}

#[test]
fn another_column_may_tell_what_one_leaves_open() {
    let both = |a: &str, b: &str| found(&format!("x;z\n{a};{b}\n")).unwrap();
    let format = both("1.234", "3,5");
    assert_eq!((format.decimal, format.thousands), (',', Some('.')));
    let format = both("1.234", "3.5");
    assert_eq!((format.decimal, format.thousands), ('.', None));
    let format = both("1.234", "1,234,567");
    assert_eq!((format.decimal, format.thousands), ('.', Some(',')));
}

#[test]
fn three_digits_behind_one_mark_everywhere_are_a_question() {
    for (text, mark) in [
        (column(&["1.234", "12.500"]), '.'),
        (column(&["1,234", "12,500"]), ','),
        (column(&["-1.234", "NA", "567"]), '.'),
        ("x,y\n1.234,1\n12.345,2\n".to_owned(), '.'),
        ("x\ty\n1,234\t1\n12,345\t2\n".to_owned(), ','),
    ] {
        let error = found(&text).unwrap_err();
        for part in [
            "column \"x\" holds",
            "1234",
            "1.234",
            &format!("`decimal = \"{mark}\"`"),
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert!(
            error.contains(&format!("`thousands = \"{mark}\"`")),
            "{error}"
        );
        // Both answers are followed.
        let answer = |decimal, thousands| {
            let (format, _) = sniffed(
                text.as_bytes(),
                Marks {
                    decimal,
                    thousands,
                    ..Marks::default()
                },
            )
            .unwrap();
            (format.decimal, format.thousands)
        };
        let other = if mark == '.' { ',' } else { '.' };
        assert_eq!(answer(Some(mark), None), (mark, None));
        assert_eq!(answer(None, Some(mark)), (other, Some(mark)));
    }
    let contradiction = found("x;z\n1.234.567;3.5\n").unwrap_err();
    assert!(
        contradiction.contains("between thousands in column \"x\""),
        "{contradiction}"
    );
}

#[test]
fn the_separator_is_found_beside_titles_and_comments() {
    let rows = "age;lab\n1;2,5\n3;4,5\n";
    for ahead in [
        "",
        "Patients, all of them\n",
        "# a, b, c\n",
        "sep=;\n",
        "\n\n",
    ] {
        let format = found(&format!("{ahead}{rows}")).unwrap();
        assert_eq!((format.delimiter, format.decimal), (';', ','), "{ahead:?}");
    }
    for end in ["\r", "\r\n"] {
        assert_eq!(found(&rows.replace('\n', end)).unwrap().delimiter, ';');
    }
    for mark in [',', '\t', '|'] {
        let text = "a;b\n1;2\n".replace(';', &mark.to_string());
        assert_eq!(found(&text).unwrap().delimiter, mark);
    }
}

#[test]
fn utf_16_without_a_mark_is_written_into_the_format() {
    let bytes = |own: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "a,b\n1,2\n".encode_utf16().flat_map(own).collect()
    };
    for (bytes, name) in [
        (bytes(u16::to_le_bytes), "utf-16le"),
        (bytes(u16::to_be_bytes), "utf-16be"),
    ] {
        let (format, file) = sniffed(&bytes, Marks::default()).unwrap();
        assert_eq!((format.encoding.as_str(), file.rows.len()), (name, 1));
    }
}

#[test]
fn every_file_has_its_own_format_and_all_are_read_as_the_first() {
    let folder = std::env::temp_dir().join(format!("rota-formats-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let files = [
        write("a.csv", b"age,lab,ward\n50,1.37,n\n28,3.2,\"a,b\"\n"),
        write("b.csv", b"age;lab;ward\n39;2,06;S\xfcd\n83;1.234,5;n\n"),
    ];
    let (formats, raw) = all(&files, &Marks::default()).unwrap();
    assert_eq!(
        (
            formats[1].delimiter,
            formats[1].decimal,
            formats[1].thousands
        ),
        (';', ',', Some('.'))
    );
    assert_eq!(formats[1].encoding, "windows-1252");
    let cells: Vec<&str> = raw[1]
        .rows
        .iter()
        .flat_map(|row| row.cells.iter())
        .collect();
    assert_eq!(cells, ["39", "2.06", "Süd", "83", "1234.5", "n"]);
    let notes = file_notes(&formats, &raw, |_| ColumnMarks::default()).unwrap();
    assert!(
        notes[0].contains("b.csv: cells are separated by ';', numbers have a decimal comma"),
        "{notes:?}"
    );
    assert_eq!(
        formats,
        crate::propose::formats_of(&files, Marks::default()).unwrap()
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
