#![allow(clippy::unwrap_used)]
use super::*;

fn read(text: &str) -> Result<RawFile, String> {
    read_as(text, &Format::default())
}

fn read_as(text: &str, format: &Format) -> Result<RawFile, String> {
    RawFile::of_text("a.csv".into(), text, format).map_err(|error| error.to_string())
}

/// Header and rows, cells separated by bars.
fn table(file: &RawFile) -> (String, Vec<String>) {
    let row = |row: RawRow<'_>| row.cells.iter().collect::<Vec<_>>().join("|");
    (file.header.join("|"), file.rows.iter().map(row).collect())
}

/// Rows of three columns.
const ROWS: &str = "37,2.5,general\n52,6.8,surgery\n68,5.1,general\n";
const NAMES: &str = "age,lab,ward\n";

fn is_the_table(file: &RawFile) {
    let (header, rows) = table(file);
    assert_eq!(header, "age|lab|ward");
    assert_eq!(rows, ["37|2.5|general", "52|6.8|surgery", "68|5.1|general"]);
}

#[test]
fn an_ordinary_table_has_nothing_to_say() {
    let file = read(&format!("{NAMES}{ROWS}")).unwrap();
    is_the_table(&file);
    assert_eq!(file.notes, [""; 0]);
    assert_eq!(file.rows.row(1).at, RowPlace::Line(3));
}

#[test]
fn an_unclosed_quotation_mark_is_an_error_where_it_began() {
    let rest = "52,6.8,ok\n".repeat(20);
    let cases = [
        (
            format!("{NAMES}37,2.5,\"check\n{rest}"),
            2,
            3,
            "never closed",
        ),
        (
            format!("{NAMES}37,2.5,\"check\n52,6.8,ok\n"),
            2,
            3,
            "never closed",
        ),
        (
            format!("{NAMES}37,2.5,ok\n\"52,6.8,ok\n{rest}"),
            3,
            1,
            "never closed",
        ),
        (
            format!("{NAMES}37,\"2.5,ok\n52,\"6.8\",ok\n"),
            2,
            2,
            "followed by text",
        ),
        // Two marks that swallow whole rows, after which the number of cells fits.
        (
            format!("{NAMES}37,2.5,\"check\n52,6.8,ok\n68,5.1,check\"\n77,4.7,ok\n"),
            2,
            3,
            "look like rows",
        ),
        (
            format!("{NAMES}37,2.5,\"check\n68,5.1,check\"\n77,4.7,ok\n"),
            2,
            3,
            "look like rows",
        ),
        (format!("age,lab,\"ward\n{rest}"), 1, 3, "never closed"),
    ];
    for (text, line, cell, what) in cases {
        let error = read(&text).err().unwrap();
        let start = format!("a.csv, line {line}: a quotation mark opens cell {cell}, which ");
        assert!(error.starts_with(&start) && error.contains(what), "{error}");
    }
    let ragged = read(&format!("{NAMES}37,\"a\nb\"\n")).err().unwrap();
    assert!(
        ragged.contains("line 2: expected 3 cells") && ragged.contains("from line 2 on"),
        "{ragged}"
    );
}

#[test]
fn texts_over_a_few_lines_are_read() {
    let file =
        read("age,note\n1,\"first line,\nsecond line\n\nthird, of \"\"four\"\"\"\n2,x\n").unwrap();
    let (_, rows) = table(&file);
    assert_eq!(
        rows,
        ["1|first line,\nsecond line\n\nthird, of \"four\"", "2|x"]
    );
    assert_eq!(file.rows.row(1).at, RowPlace::Line(6));
}

/// Reads a text in parts of so many bytes, and in it these columns.
fn read_in_parts(text: &str, length: usize, wanted: Wanted<'_>) -> RawFile {
    let mut rest = text;
    let window = TextWindow::parts(|into| {
        let (part, more) = rest.split_at(length.min(rest.len()));
        into.push_str(part);
        rest = more;
        Ok(!rest.is_empty())
    });
    RawFile::of_window("a.csv".into(), window, &Format::default(), wanted).unwrap()
}

#[test]
fn a_text_in_parts_is_the_table_of_the_whole() {
    let mut text = "Stays of all\n# draft\nage,lab,ward\nyears,mg/dl,\n".to_owned();
    for row in 0..200 {
        text += &format!("{row},{}.5,\"Ward\n{}\"\n", row % 7, row % 3);
        text += ["", ",,\n", "age,lab,ward\n", "\n"][row % 4];
    }
    text += "Total,14.4,\nMean,1,\n";
    let whole = read(&text).unwrap();
    assert_eq!(
        (whole.rows.len(), whole.notes.len()),
        (200, 6),
        "{:?}",
        whole.notes
    );
    for length in [1, 7, 100, 1000, text.len()] {
        let parts = read_in_parts(&text, length, None);
        assert_eq!(
            (table(&parts), &parts.notes),
            (table(&whole), &whole.notes),
            "{length}"
        );
    }
}

#[test]
fn a_file_takes_less_than_three_times_its_numbers() {
    let columns: Vec<String> = (0..20).map(|at| format!("x{at}")).collect();
    let mut text = columns.join(",") + "\n";
    for row in 0..5000 {
        let cells: Vec<String> = (0..20)
            .map(|at| format!("{}.{:05}", row % 97, at * row))
            .collect();
        text += &(cells.join(",") + "\n");
    }
    for wanted in [None, Some(&["x3", "x17"][..])] {
        let file = read_in_parts(&text, 1 << 12, wanted);
        let used = wanted.map_or(20, <[&str]>::len);
        let (held, numbers) = (file.rows.held(), 8 * 5000 * used);
        assert!(
            held < 3 * numbers,
            "{used} columns: {held} bytes for {numbers}"
        );
        assert_eq!(file.rows.row(4999).cells.get(3), Some("52.14997"));
        let other = if wanted.is_some() { "" } else { "52.04999" };
        assert_eq!(file.rows.row(4999).cells.get(1), Some(other));
    }
}

#[test]
fn multiline_texts_are_read_unless_a_line_looks_like_a_row() {
    let note = (1..=40).map(|at| format!("{at}. seen, and well\n"));
    let note: String = note.collect();
    for (text, end) in [
        (note.clone(), "\n"),
        (note.replace('\n', "\r\n"), "\r\n"),
        (note.replace(", ", "; "), "\n"),
        (format!("\n\n{note}"), "\n"),
        (note.replace("well", "\"\"well\"\""), "\n"),
    ] {
        let file = read(&format!(
            "age,note,y{end}1,\"{text}\",0{end}2,\"{text}\",1{end}3,,1{end}"
        ));
        let file = file.unwrap();
        assert_eq!((file.rows.len(), &file.notes[..]), (3, &[][..]));
        let cell = file.rows.row(1).cells.get(1).unwrap().to_owned();
        assert_eq!(
            cell.lines().filter(|line| line.contains("seen")).count(),
            40
        );
    }
    let swallowed = format!(
        "age,note,y\n1,\"open,0\n{}2,\"x\",1\n",
        "3,x,1\n".repeat(40)
    );
    let error = read(&swallowed).err().unwrap();
    assert!(
        error.contains("line 2: a quotation mark opens cell 2"),
        "{error}"
    );
}

#[test]
fn the_labels_of_rows_are_left_out_and_reported() {
    // Of pandas, of two tables one after the other, of a table put into another order, of texts, of R.
    let nameless = [
        ["0", "1", "2"],
        ["0", "1", "0"],
        ["17", "3", "5"],
        ["north", "south", "east"],
        ["\"1\"", "\"2\"", "\"3\""],
        ["", "1", ""],
    ];
    for labels in nameless {
        let rows = ROWS
            .lines()
            .zip(labels)
            .map(|(row, label)| format!("{label},{row}\n"));
        let file = read(&format!(",{NAMES}{}", rows.collect::<String>())).unwrap();
        is_the_table(&file);
        assert!(
            file.notes[0]
                .starts_with("the first column has no name and is left out: it has the labels"),
            "{:?}",
            file.notes
        );
    }
    for name in [
        "Unnamed: 0",
        "Unnamed: 0.1",
        "...1",
        "X.1",
        "__index_level_0__",
    ] {
        let rows = ROWS
            .lines()
            .enumerate()
            .map(|(at, row)| format!("{at},{row}\n"));
        let file = read(&format!("{name},{NAMES}{}", rows.collect::<String>())).unwrap();
        is_the_table(&file);
        assert!(file.notes[0].contains(&format!("the column {name:?} is left out")));
        let error = file.place(name).unwrap_err().to_string();
        assert!(
            error.contains("is not read: it holds the labels of the rows"),
            "{error}"
        );
        assert!(file.has(name) && file.has("age") && !file.has("other"));
    }
    // Where it holds something else, such a name is one like others.
    let other = read("Unnamed: 0,y\nnorth,1\nsouth,2\n").unwrap();
    assert_eq!(
        (table(&other).0.as_str(), other.notes.len()),
        ("Unnamed: 0|y", 0)
    );
    // R writes no name above the labels at all.
    let rows = ROWS
        .lines()
        .enumerate()
        .map(|(at, row)| format!("\"{}\",{row}\n", at + 1));
    let file = read(&format!(
        "\"age\",\"lab\",\"ward\"\n{}",
        rows.collect::<String>()
    ))
    .unwrap();
    is_the_table(&file);
    assert!(
        file.notes[0].contains("as R writes them"),
        "{:?}",
        file.notes
    );
    // A column too many is still an error.
    let many = read("id,age\n1,37,x\n2,52,y\n").err().unwrap();
    assert!(many.contains("line 2: expected 2 cells"), "{many}");
}

#[test]
fn a_second_line_of_names_or_units_is_left_out_and_reported() {
    for second in [
        "years,mg/dl,",
        "years,mg/dl,ward name",
        "Alter,Laborwert,Station",
        ",mg/dl,",
        "[a],[mmol/l],-",
        "int,float,text",
    ] {
        let file = read(&format!("{NAMES}{second}\n{ROWS}")).unwrap();
        is_the_table(&file);
        let note = &file.notes[0];
        assert!(
            note.starts_with("line 2 holds \"")
                && note.ends_with("a second line of names or units"),
            "{note}"
        );
    }
    // A row with a number, with a value that comes again, or with marks of missing values, is a row.
    for first in ["37,unknown,general", "x,y,general", "NA,?,north", ",,"] {
        let file = read(&format!("{NAMES}{first}\n{ROWS}")).unwrap();
        assert!(
            !file.notes.iter().any(|note| note.contains("a second line")),
            "{:?}",
            file.notes
        );
    }
}

#[test]
fn titles_and_comments_before_the_table_are_left_out() {
    let cases = [
        (
            "# exported 2024-05-01\n",
            "line 1 stands before the table and is left out",
        ),
        (
            "# exported, by N. N.\n# two\n",
            "lines 1 and 2 stand before the table and are left out",
        ),
        ("Patients of 2024\n", "line 1 stands"),
        ("Patients of 2024\n\n", "line 1 stands"),
        ("Patients of 2024,,\n", "line 1 stands"),
        ("Patients of 2024,,\n,,\n", "line 1 stands"),
        ("Report\nWard North\n\n# draft\n", "lines 1, 2 and 4 stand"),
        ("\"Patients, all\"\n", "line 1 stands"),
        ("#\n", "line 1 stands"),
    ];
    for (ahead, note) in cases {
        let file = read(&format!("{ahead}{NAMES}{ROWS}")).unwrap();
        is_the_table(&file);
        assert!(
            file.notes[0].starts_with(note),
            "{ahead:?}: {:?}",
            file.notes
        );
    }
    // Names may begin with a hash, and there may be one column only.
    let hash = read("#age,lab\n1,2\n").unwrap();
    assert_eq!((table(&hash).0.as_str(), hash.notes.len()), ("#age|lab", 0));
    let one = read("age\n1\n2\n").unwrap();
    assert_eq!((table(&one).0.as_str(), one.rows.len()), ("age", 2));
    // Names with another separator are no title.
    let other = read("age;lab\n1;2,5\n").err().unwrap();
    assert!(other.contains("expected 1 cells"), "{other}");
    // Without names in the file, every row is one.
    let format = Format {
        columns: Some(Vec::new()),
        ..Format::default()
    };
    let rows = read_as("37,,\n52,6.8,x\n", &format).unwrap();
    assert_eq!((rows.rows.len(), rows.notes.len()), (2, 0));
}

#[test]
fn totals_behind_the_table_are_left_out_and_reported() {
    let totals = [
        "Total,14.4,3",
        "total,14.4,",
        "Summe,14.4,",
        "Sum:,14.4,",
        "Gesamt,,",
        "Grand total,1,2",
        "TOTAL (n=3),14.4,",
        ",Total,3",
        "Mean,4.8,",
        "Durchschnitt,4.8,",
        "Total",
        "Moyenne,4.8,",
    ];
    for total in totals {
        let file = read(&format!("{NAMES}{ROWS}{total}\n")).unwrap();
        is_the_table(&file);
        let note = &file.notes[0];
        assert!(
            note.starts_with("line 5 begins with ") && note.contains("is left out"),
            "{note}"
        );
    }
    let two = read(&format!("{NAMES}{ROWS}\nSum,1,\nMean,1,\n")).unwrap();
    is_the_table(&two);
    assert_eq!(two.notes.len(), 2);
    // Where the word is a value like others, or stands elsewhere, the row is one.
    for rows in ["a,Sum\nSum,1\nb,2\nSum,3\n", "a,b,c\n1,2,x\n3,4,total\n"] {
        let file = read(rows).unwrap();
        assert_eq!(
            (file.rows.len(), file.notes.len()),
            (rows.lines().count() - 1, 0),
            "{rows}"
        );
    }
}

#[test]
fn names_that_come_again_are_left_out_and_reported() {
    let file = read(&format!(
        "{NAMES}37,2.5,general\n52,6.8,surgery\n{NAMES}68,5.1,general\n"
    ))
    .unwrap();
    is_the_table(&file);
    assert_eq!(
        file.notes,
        ["line 4 repeats the names of the columns and is left out"]
    );
    let twice = read(&format!("{NAMES}{NAMES}{ROWS} age , lab,\"ward\"\n")).unwrap();
    is_the_table(&twice);
    assert_eq!(
        twice.notes,
        ["lines 2 and 6 repeat the names of the columns and are left out"]
    );
}

#[test]
fn empty_lines_and_columns_are_left_out_and_reported() {
    let cases = [
        (
            "age,lab,ward,,\n37,2.5,general,,\n52,6.8,surgery,,\n68,5.1,general,,\n",
            "2 columns without",
        ),
        (
            "age,lab,ward\n37,2.5,general,,\n52,6.8,surgery,,\n68,5.1,general,\n",
            "3 of 3 rows end with",
        ),
        (
            "age,lab,ward,\n37,2.5,general,\n52,6.8,surgery,,\n68,5.1,general,\n",
            "1 of 3 rows ends with",
        ),
        (
            "age,lab,ward,,\n37,2.5,general\n52,6.8,surgery,\n68,5.1,general\n",
            "2 columns without",
        ),
        (
            "age,,lab,ward\n37,,2.5,general\n52,,6.8,surgery\n68,,5.1,general\n",
            "a column without",
        ),
        (
            "age,lab,ward\n37,2.5,general\n,,\n52,6.8,surgery\n68,5.1,general\n,,\n",
            "lines 3 and 6 have separators",
        ),
    ];
    for (text, note) in cases {
        let file = read(text).unwrap();
        is_the_table(&file);
        assert!(file.notes[0].starts_with(note), "{text}: {:?}", file.notes);
    }
    let blank = read(&format!(
        "\n\n{NAMES}\n{}\n  \n",
        ROWS.replace('\n', "\n\n")
    ))
    .unwrap();
    is_the_table(&blank);
    assert_eq!(blank.notes, [""; 0]);
    // A column without a name that holds something stays, and so is seen.
    let middle = read("age,,lab\n40,x,1\n41,y,2\n").unwrap();
    assert_eq!(table(&middle).0, "age||lab");
    let cut = read("age,lab,ward\n37,2.5,general,x\n").err().unwrap();
    assert!(
        cut.contains("line 2: expected 3 cells, one per column, found 4"),
        "{cut}"
    );
    let short = read("age,lab,ward\n37,2.5\n").err().unwrap();
    assert!(
        short.contains("line 2: expected 3 cells, one per column, found 2"),
        "{short}"
    );
}

#[test]
fn names_of_columns_are_without_blanks_and_invisible_letters() {
    let file = read(&format!("\"age \",\u{a0}lab,\u{200b}ward\u{feff}\n{ROWS}")).unwrap();
    is_the_table(&file);
    assert_eq!(
        file.notes,
        [
            "the names of \"age\", \"lab\", \"ward\" have spaces or invisible characters that are left out"
        ]
    );
    let marked = read(&format!("\u{feff}{NAMES}{ROWS}")).unwrap();
    is_the_table(&marked);
    let inner = read("blood\u{a0}pressure,y\n1,2\n").unwrap();
    assert_eq!(inner.header, ["blood pressure", "y"]);
    assert_eq!(inner.notes.len(), 1);
    // Spaces behind all separators are a way of writing.
    let spaced =
        read("age, lab, ward\n37, 2.5, general\n52, 6.8, surgery\n68, 5.1, \"general\"\n").unwrap();
    is_the_table(&spaced);
    assert_eq!(spaced.notes, [""; 0]);
    for twice in [
        "age,age\n1,2\n",
        "age,\"age \"\n1,2\n",
        "age,\u{feff}age\n1,2\n",
    ] {
        let error = read(twice).err().unwrap();
        assert!(
            error.contains("the column \"age\" is there twice"),
            "{error}"
        );
    }
}

#[test]
fn the_first_line_may_name_the_separator() {
    for first in ["sep=;", "SEP=;", "\"sep=;\"", "\u{feff}sep=;"] {
        let text = format!("{first}\r\n{}", format!("{NAMES}{ROWS}").replace(',', ";"));
        let file = read(&text).unwrap();
        is_the_table(&file);
        assert_eq!(
            file.notes,
            ["cells are separated by ';', as its first line says"]
        );
        assert_eq!(file.rows.row(0).at, RowPlace::Line(3));
    }
    let tabs = format!("sep=\t\n{}", format!("{NAMES}{ROWS}").replace(',', "\t"));
    is_the_table(&read(&tabs).unwrap());
    let same = read(&format!("sep=,\n{NAMES}{ROWS}")).unwrap();
    is_the_table(&same);
    assert_eq!(same.notes, [""; 0]);
}

#[test]
fn lines_end_in_every_way() {
    for end in ["\r\n", "\r", "\n"] {
        let file = read(&format!("{NAMES}{ROWS}").replace('\n', end)).unwrap();
        is_the_table(&file);
        assert_eq!(file.rows.row(2).at, RowPlace::Line(4), "{end:?}");
    }
}

#[test]
fn numbers_are_rewritten_as_another_file_writes_them() {
    let german = Format {
        delimiter: ';',
        decimal: ',',
        thousands: Some('.'),
        ..Format::default()
    };
    let mut file = read_as("x;k;m\n1.234,50;01;-\n12;a,b;NA\n", &german).unwrap();
    file.rewritten(&german, &Format::default()).unwrap();
    assert_eq!(table(&file).1, ["1234.50|01|-", "12|a,b|NA"]);
    let mut file = read("x,k\n1.5,a.b\n").unwrap();
    file.rewritten(&Format::default(), &german).unwrap();
    assert_eq!(table(&file).1, ["1,5|a.b"]);
}
