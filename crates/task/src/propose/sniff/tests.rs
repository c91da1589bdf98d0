#![allow(clippy::unwrap_used)]
use super::*;

/// Returns what is found in a file with these bytes.
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
fn a_point_beside_a_quoted_decimal_comma_is_a_question() {
    let with = |text: &str, decimal, thousands| {
        let given = Marks {
            decimal,
            thousands,
            ..Marks::default()
        };
        sniffed(text.as_bytes(), given).map(|(format, _)| (format.decimal, format.thousands))
    };
    for (text, column) in [
        ("y,x\n\"2,55\",9.373\n\"3,1\",8.412\n", "x"),
        ("x,y\n9.373,\"2,55\"\n8.412,\"3,1\"\n", "x"),
        ("y,z,x\n\"2,5\",a,19.373\n\"3,1\",b,8.412\n", "x"),
        // In one column.
        ("x,y\n9.373,1\n\"2,55\",1\n8.412,1\n", "x"),
        ("x;y\n9.373;1\n2,55;1\n8.412;1\n", "x"),
        ("x\ty\n2,55\t1\n9.373\t1\n", "x"),
    ] {
        let asked = |decimal| with(text, decimal, None).unwrap_err();
        for error in [asked(None), asked(Some(','))] {
            assert!(
                error.contains(&format!("column {column:?} holds \"9.373\""))
                    || error.contains("\"19.373\""),
                "{error}"
            );
            assert!(error.contains("decimal comma (\"2,5"), "{error}");
            assert!(
                error.contains("`decimal = \",\"` and `thousands = \".\"`"),
                "{error}"
            );
        }
        assert_eq!(with(text, Some(','), Some('.')), Ok((',', Some('.'))));
    }
    // Between semicolons it is what German tables have, and is said.
    let (_, file) = sniffed(b"x;z\n1.234;3,5\n", Marks::default()).unwrap();
    assert_eq!(
        file.notes,
        [
            "column \"x\" holds \"1.234\", which is read as 1234, because column \"z\" has a decimal comma (\"3,5\")"
        ]
    );
}

#[test]
fn mixed_decimal_marks_are_refused_with_both_columns() {
    for text in [
        "y,x\n\"2,55\",9.37\n",
        "x,y\n9.37,\"2,55\"\n1.5,\"3,25\"\n",
        "x;y\n9.37;2,55\n",
        "x\ty\n1.5\t0,25\n",
        "x|y\n.5|0,25\n",
    ] {
        let error = found(text).unwrap_err();
        assert!(
            error.contains("column \"x\" has a decimal point")
                && error.contains("column \"y\" a decimal comma"),
            "{error}"
        );
    }
}

#[test]
fn numbers_with_a_unit_tell_the_decimal_mark_where_no_others_do() {
    let marks = |cells: &[&str]| {
        let format = found(&column(cells)).unwrap();
        (format.decimal, format.thousands)
    };
    assert_eq!(marks(&["2,55 mg", "3,1 mg"]), (',', None));
    assert_eq!(marks(&["<0,5", "3,1"]), (',', None));
    assert_eq!(marks(&["1.234,5 kg", "3,1 kg"]), (',', Some('.')));
    assert_eq!(marks(&["CHF 1'234'567.-", "CHF 5.-"]), ('.', Some('\'')));
    // Where others do, they decide.
    let times = found("x;z\n12.30 Uhr;2,55\n09.15 Uhr;3,1\n").unwrap();
    assert_eq!(times.decimal, ',');
}

#[test]
fn the_encoding_is_found_or_asked_for() {
    let rows = |word: &str| format!("ward,y\n{word},1\n");
    let bytes = |name: &str, word: &str| {
        let charset = crate::data::Charset::of(name).unwrap();
        charset.bytes(&rows(word)).unwrap()
    };
    for (name, word) in [
        ("windows-1252", "Süd"),
        ("cp850", "Süd"),
        ("koi8-r", "Север"),
        ("shift_jis", "東京都"),
        ("windows-1253", "Ανατολή"),
    ] {
        let (format, file) = sniffed(&bytes(name, word), Marks::default()).unwrap();
        assert_eq!(
            (&*format.encoding, file.rows.row(0).cells.get(0)),
            (name, Some(word))
        );
        assert_eq!(
            file.notes,
            [format!("its text is {name}, such as {word:?}")]
        );
    }
    let street = bytes("cp850", "Straße");
    let error = sniffed(&street, Marks::default()).map(|_| ()).unwrap_err();
    assert!(
        error.contains("\"Straáe\" in windows-1252, \"Straße\" in cp850"),
        "{error}"
    );
    let given = Marks {
        encoding: crate::data::Charset::of("cp850"),
        ..Marks::default()
    };
    let (_, file) = sniffed(&street, given.clone()).unwrap();
    assert_eq!(file.rows.row(0).cells.get(0), Some("Straße"));
    // UTF-8 is read as such.
    let (format, _) = sniffed(rows("Süd").as_bytes(), given).unwrap();
    assert_eq!(format.encoding, "utf-8");
    let error = sniffed(b"a,b\n\x81\xFF\x8F\x9D\xFE,1\n", Marks::default());
    assert!(error.is_err_and(|error| error.contains("--encoding NAME")));
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
        notes[1].contains("b.csv: cells are separated by ';', numbers have a decimal comma"),
        "{notes:?}"
    );
    assert_eq!(
        formats,
        crate::propose::formats_of(&files, Marks::default()).unwrap()
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
