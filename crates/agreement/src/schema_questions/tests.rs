//! Schemas that are settled by answers.

#![allow(clippy::unwrap_used)]

use task::schema::{ColumnType, FeatureColumns, MissingRule, Quantity, Schema};

use super::*;

const FILE: &str = "# A scenario.\nname = \"stays\"\n\n[task.table]\nmodel = { linear = {} } # simple\n\n\
                    # What rows have in common.\n[task.table.schema]\nmin-rows = 10\nusual = { age = [40.0, 60.0], days = [2.0, 9.0] }\n\n\
                    [task.table.schema.target]\nname = \"days\"\nunit = \"days\"\n\n\
                    # Of one hospital.\n[[task.table.schema.feature]]\nname = [\"age\", \"ph\"]\n\n\
                    [[task.table.schema.feature]]\nname = \"ward\"\ntype = \"category\"\nlevels = [\"a\", \"b\", \"c\", \"d\"]\n\n\
                    # How it is learned.\n[strategy]\nname = \"fedavg\"\n";
const ROWS: &str = r#"{"name": "rows", "title": "Rows", "columns": ["sites", "rows", "complete", "missing", "outside"],
                      "rows": [[4, 410, 380, 30, 0]], "notes": []}"#;
const QUANTILES: &str = r#"{"name": "quantiles", "title": "Quantiles", "columns": ["column", "n", "probability", "value", "within"],
    "rows": [["age", 386, 0.025, 30.5, 1.5], ["age", 386, 0.1, 38.0, 1.5], ["age", 386, 0.5, 61.0, 1.5],
             ["age", 386, 0.9, 79.0, 1.5], ["age", 386, 0.975, 86.5, 1.5],
             ["days", 410, 0.025, 0.5, 0.5], ["days", 410, 0.5, 4.0, 0.5], ["days", 410, 0.975, 20.5, 0.5]], "notes": []}"#;
const LEVELS: &str = r#"{"name": "counts", "title": "ward by ward", "columns": ["level", "a", "b", "c", "d", "(missing)"],
    "rows": [["a", 300, 0, 0, 0, 0], ["b", 0, 100, 0, 0, 0], ["c", "suppressed", "suppressed", "suppressed", "suppressed", "suppressed"],
             ["d", 0, 0, 0, 0, 0], ["(missing)", 0, 0, 0, 0, 8]], "notes": []}"#;

fn schema() -> Schema {
    let file: toml::Table = FILE.parse().unwrap();
    file["task"]["table"]["schema"].clone().try_into().unwrap()
}

fn answers(tables: &[&str]) -> SchemaAnswers {
    let mut answers = SchemaAnswers::default();
    for (at, table) in tables.iter().enumerate() {
        let text = format!(r#"{{"answer": [{ROWS}, {table}]}}"#);
        answers
            .add(&format!("{at}.json"), &text, &schema())
            .unwrap();
    }
    answers
}

fn feature<'a>(settled: &'a SettledSchema, name: &str) -> &'a FeatureColumns {
    let mut columns = settled.schema.columns();
    columns.find(|(own, _)| *own == name).unwrap().1
}

fn range_of(feature: &FeatureColumns) -> Option<[f64; 2]> {
    match &feature.kind {
        ColumnType::Number(Quantity { range, .. }) => *range,
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranges_reach_beyond_the_outer_quantiles() {
    let found = answers(&[QUANTILES]);
    let wide = settled(&schema(), &found, 1.0, false);
    // 29 and 88 with their bins, as far from 61 again: −3 and 115. Nobody is younger than 0.
    assert_eq!(range_of(feature(&wide, "age")), Some([0.0, 120.0]));
    let narrow = settled(&schema(), &found, 0.0, false);
    assert_eq!(range_of(feature(&narrow, "age")), Some([20.0, 90.0]));
    assert_eq!(narrow.schema.target.range, Some([0.0, 25.0]));
    assert_eq!(narrow.schema.usual["age"], [35.0, 80.0]);
    // Nobody asked for these quantiles.
    assert_eq!(narrow.schema.usual["days"], [2.0, 9.0]);
    let reasons = &narrow.reasons["age"];
    let said = &reasons[0];
    assert!(
        said.starts_with("range: 20 to 90, from the quantiles 0.025 (about 30.5)")
            && said.contains("386 values at 4 sites (0.json)")
            && said.contains("at most 5 % of"),
        "{said}"
    );
    assert_eq!(range_of(feature(&narrow, "ph")), None);
    assert_eq!(narrow.reasons["ph"], ["no answer is about it: as it was"]);
    // The column to predict, and one to learn from.
    assert_eq!(narrow.changed, 2);
}

#[test]
fn a_range_stays_within_the_one_that_was_asked_for() {
    let mut schema = schema();
    schema.features[0].kind = ColumnType::Number(Quantity {
        range: Some([18.0, 100.0]),
        ..Quantity::default()
    });
    let settled = settled(&schema, &answers(&[QUANTILES]), 1.0, false);
    assert_eq!(range_of(feature(&settled, "age")), Some([18.0, 100.0]));
    assert!(
        settled.reasons["age"][0].ends_with("; as before"),
        "{:?}",
        settled.reasons
    );
}

#[test]
fn missing_values_get_a_filling_where_files_were_refused() {
    let found = answers(&[QUANTILES]);
    let rule = |by_ranges| feature(&settled(&schema(), &found, 1.0, by_ranges), "age").missing;
    // 24 of 410 rows are more than one in twenty.
    assert_eq!(rule(false), MissingRule::Indicator);
    assert_eq!(rule(true), MissingRule::MiddleIndicator);
    let few = QUANTILES.replace("386", "400");
    let few = settled(&schema(), &answers(&[&few]), 1.0, false);
    assert_eq!(feature(&few, "age").missing, MissingRule::Median);
    let said = &few.reasons["age"];
    assert!(
        said.iter()
            .any(|line| line.contains("\"median\" in place of \"refuse\", because 10 of 410")),
        "{said:?}"
    );
    let mut chosen = schema();
    chosen.features[0].missing = MissingRule::Drop;
    let chosen = settled(&chosen, &found, 1.0, false);
    assert_eq!(feature(&chosen, "age").missing, MissingRule::Drop);
}

#[test]
fn rare_and_absent_levels_are_left_out_and_named() {
    let settled = settled(&schema(), &answers(&[LEVELS]), 1.0, false);
    let ward = feature(&settled, "ward");
    let ColumnType::Category(levels) = &ward.kind else {
        panic!("{ward:?}");
    };
    assert_eq!(
        (&*levels.listed, levels.other),
        (&["a".to_owned(), "b".into()][..], true)
    );
    assert_eq!(ward.missing, MissingRule::Indicator);
    let said = settled.reasons["ward"].join("\n");
    assert!(
        said.contains("levels: 2 of 4 are in enough of 410 rows"),
        "{said}"
    );
    assert!(
        said.contains("left out: \"c\", of fewer") && said.contains("\"d\", which no row has"),
        "{said}"
    );
}

#[test]
fn a_column_with_one_level_left_stays_as_it_was() {
    let one = LEVELS.replace("100", "0").replace("\"suppressed\"", "0");
    let settled = settled(&schema(), &answers(&[&one]), 1.0, false);
    let ward = feature(&settled, "ward");
    assert_eq!(ward.kind, feature_of(&schema(), "ward").kind);
    let said = settled.reasons["ward"].join("\n");
    assert!(said.contains("leave the column out"), "{said}");
}

fn feature_of(schema: &Schema, name: &str) -> FeatureColumns {
    let mut columns = schema.columns();
    columns.find(|(own, _)| *own == name).unwrap().1.clone()
}

#[test]
fn rows_beyond_what_was_asked_are_named_once() {
    let beyond = ROWS.replace("30, 0]]", "18, 12]]");
    let text = format!(r#"{{"answer": [{beyond}, {QUANTILES}]}}"#);
    let mut found = SchemaAnswers::default();
    found.add("a.json", &text, &schema()).unwrap();
    let notes = settled(&schema(), &found, 1.0, false).notes;
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].starts_with("12 of 410 rows") && notes[0].contains("age, days"),
        "{notes:?}"
    );
}

#[test]
fn a_constant_is_judged_where_its_error_is_known() {
    let mean = r#"{"name": "columns", "title": "Columns", "columns": ["column", "n", "missing", "mean", "standard_deviation"],
                   "rows": [["days", 410, 0, 5.5, 2.0]], "notes": []}"#;
    let notes = settled(&schema(), &answers(&[mean]), 1.0, false).notes;
    // 4 · 409 / 410.
    assert!(
        notes[0].contains("mean squared error of 3.99 "),
        "{notes:?}"
    );
}

#[test]
fn the_settled_text_replaces_the_schema_and_nothing_else() {
    let settled = settled(&schema(), &answers(&[QUANTILES, LEVELS]), 0.0, false);
    let written = settled.text().unwrap();
    let (text, kept) = with_schema(FILE, &settled.schema, &written).unwrap();
    assert!(kept);
    for line in [
        "# A scenario.",
        "# simple",
        "# What rows have in common.",
        "# How it is learned.",
        "min-rows = 10",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(text.contains("# \"age\": range: 20 to 90"), "{text}");
    assert!(!text.contains("# Of one hospital."), "{text}");
    let file: toml::Table = text.parse().unwrap();
    let read: Schema = file["task"]["table"]["schema"].clone().try_into().unwrap();
    assert_eq!(read, settled.schema);
    assert_eq!(file["strategy"]["name"].as_str(), Some("fedavg"));
}

#[test]
fn a_schema_that_is_written_otherwise_is_written_anew() {
    let settled = settled(&schema(), &answers(&[QUANTILES]), 0.0, false);
    let written = settled.text().unwrap();
    let table: toml::Table = FILE.parse().unwrap();
    let inline = format!(
        "task = {}\nname = \"stays\"\nstrategy = {{ name = \"fedavg\" }}\n",
        table["task"]
    );
    let (text, kept) = with_schema(&inline, &settled.schema, &written).unwrap();
    assert!(!kept);
    let file: toml::Table = text.parse().unwrap();
    assert_eq!(
        file["task"]["table"]["model"],
        table["task"]["table"]["model"]
    );
    let read: Schema = file["task"]["table"]["schema"].clone().try_into().unwrap();
    assert_eq!(read, settled.schema);
    assert!(with_schema("name = \"x\"\n", &settled.schema, &written).is_err());
}
