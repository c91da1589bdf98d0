#![allow(clippy::unwrap_used)]
use super::*;
use crate::data::{Format, RawFile};

const CLINIC: &str = r#"
min-rows = 2
only = ["age >= 18"]
target = { name = "outcome", classes = ["home", { name = "died", values = ["died", "dead"] }], positive = "died" }

[[feature]]
name = "age"
type = "integer"
unit = "years"
range = [0, 120]

[[feature]]
name = ["systolic", "diastolic"]
unit = "mmHg"
missing = "median"

[[feature]]
name = "ward"
type = "category"
levels = ["general", "intensive"]
missing = "indicator"
"#;

fn schema(text: &str) -> Schema {
    let schema: Schema = toml::from_str(text).unwrap();
    schema.check().unwrap();
    schema
}

fn file(text: &str) -> RawFile {
    RawFile::of_text("a.csv".into(), text, &Format::default()).unwrap()
}

/// Returns what becomes of the rows of this text, or the error.
fn read(schema: &Schema, names: &str, text: &str) -> Result<Vec<ReadRow>, String> {
    let (names, format, file) = (
        toml::from_str(names).unwrap(),
        Format::default(),
        file(text),
    );
    let layout = FileLayout::new(schema, &names, &format, &file, true, &[]);
    let layout = layout.map_err(|error| error.to_string())?;
    let rows = file.rows.iter().map(|row| layout.read(&row));
    rows.collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

fn used(rows: &[ReadRow], at: usize) -> (Vec<f64>, Vec<f64>) {
    match &rows[at] {
        ReadRow::Used(values, targets) => (values.clone(), targets.clone()),
        other => panic!("row {at}: {other:?}"),
    }
}

#[test]
fn columns_are_found_by_name_in_any_order() {
    let schema = schema(CLINIC);
    let names: Vec<String> = schema
        .encoded()
        .into_iter()
        .map(|column| column.name)
        .collect();
    let expected = [
        "age",
        "systolic",
        "diastolic",
        "ward=intensive",
        "ward is missing",
    ];
    assert_eq!(names, expected);
    let one = read(
        &schema,
        "",
        "age,systolic,diastolic,ward,outcome\n60,120,80,intensive,died\n",
    );
    let other = read(
        &schema,
        "",
        "outcome,ward,diastolic,systolic,age\ndead,intensive,80,120,60\n",
    );
    let expected = (vec![60.0, 120.0, 80.0, 1.0, 0.0], vec![1.0]);
    assert_eq!(used(&one.unwrap(), 0), expected);
    assert_eq!(used(&other.unwrap(), 0), expected);
}

#[test]
fn a_missing_category_is_one_missing_cell() {
    let more = "[[feature]]\nname = \"way\"\ntype = \"category\"\nlevels = [\"a\", \"b\", \"c\"]\nmissing = \"mean\"\n";
    // `way` has the numbers 3 and 4 of 7, and `ward` the number 5.
    let text = CLINIC.replacen(
        "[[feature]]\nname = \"ward\"",
        &format!("{more}[[feature]]\nname = \"ward\""),
        1,
    );
    let schema = schema(&text);
    assert_eq!(schema.first_numbers(), [0, 1, 2, 3, 5]);
    let text = "age,systolic,diastolic,way,ward,outcome\n60,,80,,,home\n";
    let rows = read(&schema, "", text).unwrap();
    let (values, _) = used(&rows, 0);
    let missing = schema
        .first_numbers()
        .into_iter()
        .filter(|at| values[*at].is_nan());
    assert_eq!(missing.count(), 3);
    assert_eq!(values.iter().filter(|value| value.is_nan()).count(), 4);
}

#[test]
fn local_columns_and_codes_are_read_by_their_agreed_names() {
    let names = r#"
ignore = ["patient"]
columns = { age = "Alter", outcome = "Ausgang" }
codes = { outcome = { "0" = "home", "1" = "died" }, ward = { ITS = "intensive", N = "general" } }
"#;
    let text = "patient,Alter,systolic,diastolic,ward,Ausgang\n7,60,120,80,ITS,1\n8,40,,80,,0\n";
    let rows = read(&schema(CLINIC), names, text).unwrap();
    assert_eq!(
        used(&rows, 0),
        (vec![60.0, 120.0, 80.0, 1.0, 0.0], vec![1.0])
    );
    let (values, targets) = used(&rows, 1);
    assert!(values[1].is_nan() && values[3].is_nan());
    assert_eq!((values[4], targets[0]), (1.0, 0.0));
}

#[test]
fn rows_that_the_schema_leaves_out_are_left_out() {
    let text = "age,systolic,diastolic,ward,outcome\n17,1,2,general,home\n20,1,2,general,\n";
    let rows = read(&schema(CLINIC), "", text).unwrap();
    let excluded = ReadRow::Excluded("age >= 18".into());
    assert_eq!(rows, [excluded, ReadRow::NoTarget]);
}

#[test]
fn what_does_not_fit_is_refused_with_row_column_and_remedy() {
    let schema = schema(CLINIC);
    let head = "age,systolic,diastolic,ward,outcome\n";
    let cases = [
        (
            "",
            "age,systolic,ward,outcome\n60,120,general,home\n".to_owned(),
            "a.csv: there is no column \"diastolic\"; the columns are age, systolic, ward, outcome",
        ),
        (
            "",
            "Age,systolic,diastolic,ward,outcome\n60,120,80,general,home\n".to_owned(),
            "a.csv: there is no column \"age\"; the columns are Age, systolic, diastolic, ward, \
             outcome; did you mean \"Age\"?",
        ),
        (
            "",
            "id,age,systolic,diastolic,ward,outcome\n1,60,120,80,general,home\n".to_owned(),
            "a.csv: the column \"id\" is not in the schema: write the name under `ignore` if it is \
             not to be read, or under `columns` if it is another name of a column in the schema",
        ),
        (
            "",
            format!("{head}60,120,80,general,home\n61,120,80,general,1\n"),
            "a.csv, line 3: column \"outcome\" holds \"1\", but the agreed values are home, died, dead",
        ),
        (
            "",
            format!("{head}60,120,80,Intensive,home\n"),
            "a.csv, line 2: column \"ward\" holds \"Intensive\", but the agreed levels are general, \
             intensive; did you mean \"intensive\"?",
        ),
        (
            "",
            format!("{head}sixty,120,80,general,home\n"),
            "a.csv, line 2: column \"age\" holds \"sixty\", but a number is needed",
        ),
        (
            "",
            format!("{head}60.5,120,80,general,home\n"),
            "a.csv, line 2: column \"age\" holds \"60.5\", but a whole number is needed",
        ),
        (
            "",
            format!("{head}160,120,80,general,home\n"),
            "a.csv, line 2: column \"age\" holds \"160\", but the agreed range is 0 to 120",
        ),
        (
            "columns = { agee = 'Alter' }",
            format!("{head}60,120,80,general,home\n"),
            "\"agee\" stands in `columns` or `codes`, but the schema has no such column; did you \
             mean \"age\"?",
        ),
    ];
    for (names, text, expected) in cases {
        let error = read(&schema, names, &text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let strict = CLINIC.replace("only = [\"age >= 18\"]", "");
    let text = format!("{head},120,80,general,home\n");
    assert_eq!(
        read(&self::schema(&strict), "", &text).unwrap_err(),
        "a.csv, line 2: column \"age\" holds \"\", but a value is needed: the schema has no rule for \
         missing values here"
    );
}

#[test]
fn contradictions_in_a_schema_are_refused() {
    let cases = [
        (
            "type = \"integer\"",
            "type = \"category\"",
            "the column \"age\": a category needs `levels`",
        ),
        (
            "type = \"category\"",
            "type = \"number\"",
            "the column \"ward\": `levels` go with `type = \"category\"`",
        ),
        (
            "missing = \"indicator\"",
            "unit = \"beds\"",
            "`range` and `unit` go with numbers",
        ),
        (
            "unit = \"mmHg\"",
            "other = true",
            "`other` goes with `type = \"category\"`",
        ),
        (
            "range = [0, 120]",
            "range = [120, 0]",
            "the smaller one first",
        ),
        (
            "positive = \"died\"",
            "positive = \"dead\"",
            "must be one of two classes",
        ),
        (
            "\"dead\"]",
            "\"home\"]",
            "the value \"home\" is of two classes",
        ),
        ("\"general\", ", "", "at least two levels"),
        (
            "\"systolic\", ",
            "\"age\", ",
            "the column \"age\" is named twice",
        ),
        (
            "missing = \"indicator\"",
            "missing = \"median\"",
            "goes with numbers",
        ),
        ("min-rows = 2", "min-rows = 1", "at least 2"),
    ];
    for (from, to, expected) in cases {
        let text = CLINIC.replace(from, to);
        assert_ne!(text, CLINIC);
        let error = match toml::from_str::<Schema>(&text) {
            Ok(schema) => schema.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(expected), "{from} → {to}: {error}");
    }
    let rule = "target = { name = \"y\", rule = \"= 1\" }\n[[feature]]\nname = \"x\"";
    let error = toml::from_str::<Schema>(rule).unwrap().check().unwrap_err();
    assert!(
        error.to_string().contains("list them in `classes`"),
        "{error}"
    );
}

#[test]
fn the_positive_class_is_the_second_of_two() {
    let text = "target = { name = \"y\", classes = [\"ill\", \"well\"], positive = \"ill\" }\n[[feature]]\nname = \"x\"";
    let classes = vec!["well".to_owned(), "ill".to_owned()];
    assert_eq!(schema(text).target(), Target::Classes(classes));
}

#[test]
fn values_beyond_the_levels_count_as_other_where_so_agreed() {
    let text = "target = { name = \"y\" }\n[[feature]]\nname = \"k\"\ntype = \"category\"\nlevels = [\"a\", \"b\"]\nother = true";
    let schema = schema(text);
    let rows = read(&schema, "", "k,y\na,1\nb,2\nzebra,3\n").unwrap();
    let values: Vec<Vec<f64>> = (0..3).map(|row| used(&rows, row).0).collect();
    assert_eq!(values, [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]);
    assert_eq!(schema.encoded()[1].name, "k=other");
}

#[test]
fn units_bounds_and_accents_are_read_as_agreed() {
    let agreed = schema(
        "target = { name = 'dose', unit = 'mg', censored = 'limit' }\n\
         feature = [\n\
           { name = 'lab', unit = 'mg/l', censored = 'half' },\n\
           { name = 'age', type = 'integer' },\n\
           { name = 'Größe', type = 'category', levels = ['groß', 'klein'] },\n\
         ]\n",
    );
    let text = "lab,age,Gro\u{308}ße,dose\n<0.5 mg/l,37Y,groß,5 mg\n0.7mg/l,037Y,klein,<2\n";
    let rows = read(&agreed, "units = { age = 'Y' }", text).unwrap();
    assert_eq!(used(&rows, 0), (vec![0.25, 37.0, 0.0], vec![5.0]));
    assert_eq!(used(&rows, 1), (vec![0.7, 37.0, 1.0], vec![2.0]));
    let error = read(&agreed, "", text).unwrap_err();
    assert!(
        error.contains("\"37Y\", but a number is needed, without \"Y\""),
        "{error}"
    );
    let error = read(&agreed, "units = { aeg = 'Y' }", text).unwrap_err();
    assert!(error.contains("\"aeg\" stands in `units`"), "{error}");
    // An older agreement or node.toml may have the accents as letters of their own.
    let older = toml::to_string(&agreed).unwrap().replace("ö", "o\u{308}");
    let older = schema(&older);
    assert_ne!(older, agreed);
    let names = "units = { age = 'Y' }\ncodes = { 'Gro\u{308}ße' = { 'ho\u{308}her' = 'groß' } }";
    let rows = read(&older, names, &text.replace("Y,groß", "Y,höher")).unwrap();
    assert_eq!(used(&rows, 0).0, [0.25, 37.0, 0.0]);
    // Unused keys are not written.
    let plain = toml::to_string(&schema(CLINIC)).unwrap();
    assert!(!plain.contains("censored"), "{plain}");
    assert_eq!(toml::to_string(&LocalNames::default()).unwrap(), "");
    let category = "target = { name = 'y' }\nfeature = [{ name = 'x', type = 'category', levels = ['a', 'b'], censored = 'half' }]";
    assert!(toml::from_str::<Schema>(category).is_err());
}

const STAYS: &str = r#"
target = { name = "days" }

[[feature]]
name = "admitted"
type = "date"
since = "2020-01-01"
until = "2024-12-31"
missing = "middle"
"#;

#[test]
fn a_date_is_the_number_of_days_since_the_agreed_one() {
    let schema = schema(STAYS);
    let [column] = &schema.encoded()[..] else {
        panic!("{:?}", schema.encoded());
    };
    assert_eq!(column.range, Some([0.0, 1826.0]));
    let text = "admitted,days\n2020-01-01,1\n31.01.2020 14:05,2\n20200301,3\nNA,4\n";
    let rows = read(&schema, "", text).unwrap();
    let days: Vec<f64> = (0..4).map(|at| used(&rows, at).0[0]).collect();
    assert_eq!(days, [0.0, 30.0, 60.0, 913.0]);
}

#[test]
fn a_file_states_how_it_writes_dates_and_what_its_codes_mean() {
    let schema = schema(STAYS);
    let text = "admitted,days\n01/03/2020,1\nstart,2\n";
    for (form, first) in [("DD/MM/YYYY", 60.0), ("MM/DD/YYYY", 2.0)] {
        let names = format!(
            "dates = {{ admitted = '{form}' }}\ncodes = {{ admitted = {{ start = '2020-01-01' }} }}"
        );
        let rows = read(&schema, &names, text).unwrap();
        assert_eq!((used(&rows, 0).0[0], used(&rows, 1).0[0]), (first, 0.0));
    }
    let why = read(&schema, "", text).unwrap_err();
    assert!(
        why.contains("such as 2024-05-31") && why.contains("`dates`"),
        "{why}"
    );
    let why = read(&schema, "", "admitted,days\n2025-01-01,1\n").unwrap_err();
    assert!(
        why.contains("the agreed days are 2020-01-01 to 2024-12-31"),
        "{why}"
    );
    let why = read(&schema, "dates = { days = 'DD/MM/YYYY' }", text).unwrap_err();
    assert!(why.contains("no column of dates"), "{why}");
}

#[test]
fn a_date_is_written_as_read_and_its_keys_go_with_no_other() {
    let schema = schema(STAYS);
    let again: Schema = toml::from_str(&toml::to_string(&schema).unwrap()).unwrap();
    assert_eq!(again, schema);
    let said = schema.columns().next().unwrap().1.kind.to_string();
    assert_eq!(said, "a date, as days since 2020-01-01, to 2024-12-31");
    for (from, to, expected) in [
        ("since = \"2020-01-01\"", "", "a date needs `since`"),
        (
            "\"date\"",
            "\"integer\"",
            "`since`, `until` and `parts` go with",
        ),
        (
            "since",
            "unit = \"days\"\nsince",
            "`range` and `unit` go with numbers",
        ),
        ("2024-12-31", "2024-12-32", "is no day"),
    ] {
        let found = toml::from_str::<Schema>(&STAYS.replacen(from, to, 1));
        let why = found.unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
    for (from, to, expected) in [
        (
            "until = \"2024-12-31\"",
            "until = \"2019-12-31\"",
            "later than `since`",
        ),
        (
            "until = \"2024-12-31\"",
            "",
            "the middle from `since` to `until`",
        ),
    ] {
        let found: Schema = toml::from_str(&STAYS.replacen(from, to, 1)).unwrap();
        let why = found.check().unwrap_err().to_string();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn a_time_to_an_event_is_written_as_it_is_read() {
    let text = "[target]\nevent = \"died\"\ntime = \"days\"\nentry = \"from\"\nat = [365.0]\nunit = \"days\"\n\n[[feature]]\n\
                name = \"x\"\n";
    let read = schema(text);
    assert!(read.target.survival);
    let names: Vec<&str> = read.target.name.iter().collect();
    assert_eq!(names, ["died", "days", "from"]);
    let written = toml::to_string(&read).unwrap();
    assert!(
        written.contains("event = \"died\"") && !written.contains("survival"),
        "{written}"
    );
    assert_eq!(toml::from_str::<Schema>(&written).unwrap(), read);
    // A number is written as before.
    let number = schema("target = { name = \"y\" }\n[[feature]]\nname = \"x\"\n");
    let written = toml::to_string(&number.target).unwrap();
    assert_eq!(written, "name = \"y\"\n");
}

#[test]
fn what_contradicts_a_time_to_an_event_is_refused() {
    let why = |target: &str| -> String {
        let text = format!("target = {target}\n[[feature]]\nname = \"x\"\n");
        match toml::from_str::<Schema>(&text) {
            Ok(schema) => schema.check().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let both = "event = \"died\", time = \"days\"";
    for (target, expected) in [
        (
            "{ event = \"died\" }".to_owned(),
            "needs both columns: `event`",
        ),
        (
            "{ time = \"days\" }".to_owned(),
            "needs both columns: `event`",
        ),
        (
            "{ unit = \"days\" }".to_owned(),
            "needs the `name` of a column",
        ),
        (
            format!("{{ name = \"y\", {both} }}"),
            "`name` does not go with `event`",
        ),
        (
            "{ name = \"y\", at = [3.0] }".to_owned(),
            "`name` does not go with `event`",
        ),
        (
            format!("{{ {both}, classes = [\"a\", \"b\"] }}"),
            "`classes` does not go with a time to an event",
        ),
        (format!("{{ {both}, mask = true }}"), "`mask` does not go"),
        (
            format!("{{ {both}, range = [0.0, 9.0] }}"),
            "`range` does not go",
        ),
        (
            format!("{{ {both}, at = [9.0, 3.0] }}"),
            "`at` needs times above 0 in ascending order",
        ),
        (
            format!("{{ {both}, at = [0.0] }}"),
            "`at` needs times above 0",
        ),
        (
            format!("{{ {both}, entry = \"x\" }}"),
            "the column \"x\" is named twice",
        ),
    ] {
        let error = why(&target);
        assert!(error.contains(expected), "{target}: {error}");
    }
}
