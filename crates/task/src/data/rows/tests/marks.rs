//! Words that are values of one column and mean a missing value in another, and columns that a site does not have.

use super::*;

const SCHEMA: &str = r#"
target = { name = "y", classes = ["none", "some"] }
usual = { dose = [10.0, 30.0] }
[[feature]]
name = "therapy"
type = "category"
levels = ["none", "drug"]
missing = "indicator"
[[feature]]
name = "dose"
missing = "mean"
[[feature]]
name = "lactate"
range = [0, 8]
missing = "indicator"
[[feature]]
name = "way"
type = "category"
levels = ["a", "b", "c", "d"]
missing = "mean"
"#;

fn read(names: &str, format: &str, text: &str) -> Result<DataSet, String> {
    let folder = Folder::with(&[("own.csv", text)]);
    let config = format!("files = [{{ path = 'own.csv', names = {names} }}]\n{format}");
    let config: RowsConfig = toml::from_str(&config).unwrap();
    let schema: Schema = toml::from_str(SCHEMA).unwrap();
    let read = config.read(Some(&schema), Some(&folder.0), &SplitConfig::default());
    read.map_err(|error| error.to_string())
}

/// Rows of numbers: dose, lactate, therapy=drug, way=b, c, d, then whether therapy and lactate are missing.
fn rows(data: &DataSet) -> Vec<&[f64]> {
    let table = &data.silos[0].1;
    table.values.chunks(table.columns.len()).collect()
}

const TEXT: &str =
    "therapy,dose,lactate,way,y\nnone,None,1,a,none\ndrug,20,None,b,some\nNULL,-,2,c,none\n";

#[test]
fn a_word_is_read_in_each_column_as_that_column_knows_it() {
    let marks = "format = { missing = ['', 'None', 'NULL', '-', 'none'] }";
    let codes = "{ codes = { therapy = { none = 'none' }, y = { none = 'none' } } }";
    for (names, format) in [("{}", ""), (codes, marks)] {
        let data = read(names, format, TEXT).unwrap();
        let [first, second, third] = rows(&data)[..] else {
            panic!()
        };
        assert_eq!(
            (first[2], first[6]),
            (0.0, 0.0),
            "none of therapy is a level"
        );
        assert!(first[0].is_nan() && third[0].is_nan() && second[1].is_nan());
        assert_eq!((second[7], third[6]), (1.0, 1.0));
        assert_eq!(data.silos[0].1.target, [0.0, 1.0, 0.0]);
    }
    // Whoever says so of all columns, and knows no code, is taken at the word.
    let missing = read("{}", marks, TEXT).unwrap_err();
    assert!(missing.contains("1 usable row"), "{missing}");
}

#[test]
fn a_mark_of_one_column_is_missing_there_and_a_number_elsewhere() {
    let text = "therapy,dose,lactate,way,y\nnone,999,1,a,none\ndrug,20,5,b,some\n";
    let names = "{ missing = { dose = ['999'], way = ['b'] } }";
    let data = read(names, "", text).unwrap();
    assert!(rows(&data)[0][0].is_nan() && rows(&data)[1][3].is_nan());
    let all = read("{}", "", text).unwrap();
    assert_eq!(rows(&all)[0][0], 999.0);
    let both = read(
        "{ missing = { way = ['b'] }, codes = { way = { b = 'a' } } }",
        "",
        text,
    );
    assert!(
        both.unwrap_err()
            .contains("stands in `codes` and in `missing` of \"way\"")
    );
}

#[test]
fn a_column_that_a_site_lacks_counts_as_the_agreed_middle() {
    let text = "therapy,y\nnone,none\ndrug,some\n";
    let names = "{ absent = ['dose', 'lactate', 'way'] }";
    let data = read(names, "", text).unwrap();
    for row in rows(&data) {
        assert_eq!(row[..2], [20.0, 4.0]);
        assert_eq!(row[3..6], [0.25; 3]);
        assert_eq!((row[6], row[7]), (0.0, 1.0));
    }
    let notes = data.notes.join("; ");
    for said in [
        "it has no column \"dose\": every row counts there as 20, the middle of the usual values",
        "it has no column \"lactate\": every row counts there as 4, the middle of the agreed range",
        "it has no column \"way\": every row counts there as no level in particular",
    ] {
        assert!(notes.contains(said), "{notes}");
    }
}

#[test]
fn what_cannot_be_absent_is_reported() {
    for (names, text, said) in [
        (
            "{ absent = ['dose', 'dosee'] }",
            "therapy,lactate,way,y\nnone,1,a,none\n",
            "no column to learn from has that name",
        ),
        (
            "{ absent = ['dose'] }",
            TEXT,
            "has the column \"dose\": take it out of `absent`",
        ),
        (
            "{ absent = ['y'] }",
            "therapy,dose,lactate,way\nnone,1,1,a\n",
            "no column to learn from has that name",
        ),
        (
            "{ columns = { dose = '?' } }",
            "therapy,lactate,way,y\nnone,1,a,none\n",
            "what \"dose\" is called here",
        ),
        (
            "{ codes = { way = { x = '?' } } }",
            TEXT,
            "what \"x\" of \"way\" means",
        ),
        (
            "{ missing = { dosis = ['x'] } }",
            TEXT,
            "\"dosis\" stands in `missing`, but the schema has no such column",
        ),
    ] {
        let why = read(names, "", text).unwrap_err();
        assert!(why.contains(said), "{said}: {why}");
    }
}
