#![allow(clippy::unwrap_used)]
use super::*;

const SCHEMA: &str = r#"
[target]
name = "outcome"
classes = ["home", "died"]
[[feature]]
name = "age"
type = "integer"
range = [0, 120]
[[feature]]
name = "cost"
missing = "mean"
[[feature]]
name = "ward"
type = "category"
levels = ["general", "intensive"]
[usual]
cost = [8000.0, 20000.0]
"#;

fn of(name: &str, text: &str, names: LocalNames) -> Survey {
    split_by(name, text, names, &SplitConfig::default())
}

fn split_by(name: &str, text: &str, names: LocalNames, split: &SplitConfig) -> Survey {
    let task = TableTask {
        split: split.clone(),
        ..task()
    };
    by_task(&task, name, text, names)
}

fn task() -> TableTask {
    toml::from_str("model = 'logistic'").unwrap()
}

fn by_task(task: &TableTask, name: &str, text: &str, names: LocalNames) -> Survey {
    let folder = std::env::temp_dir().join(format!("rota-survey-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("own.csv"), text).unwrap();
    let rows = toml::from_str::<OwnRows>("files = ['own.csv']").unwrap();
    let schema: Schema = toml::from_str(SCHEMA).unwrap();
    let found = survey(task, &schema, &OwnRows { names, ..rows }, &folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    found
}

#[test]
fn a_file_that_fits_is_described_column_by_column() {
    let text = "age,cost,ward,outcome\n40,9000,general,home\n60,NA,intensive,died\n50,15000,general,home\n";
    let found = of("fits", text, LocalNames::default());
    let columns: Vec<String> = found
        .columns
        .iter()
        .map(|(name, what)| format!("{name}: {what}"))
        .collect();
    assert_eq!(
        columns,
        [
            "age: whole numbers from 40 to 60, median 50",
            "cost: whole numbers from 9000 to 15000, median 9000; 33.3 % missing",
            "ward: general 2, intensive 1",
            "outcome: to predict: home 2, died 1",
        ]
    );
    assert_eq!(
        (found.misfits, found.names, found.doubts),
        (vec![], None, vec![])
    );
}

#[test]
fn all_that_does_not_fit_is_listed_at_once_with_keys_to_paste() {
    let text = "Age,kosten,ward,outcome,patient_id\n40.5,9,ITS,home,1\n160,10,General,gone,2\n50,inf,ITS,died,3\n";
    let found = of("misfits", text, LocalNames::default());
    let names = found.names.clone().unwrap();
    assert_eq!(
        names,
        "columns = { \"age\" = \"Age\", \"cost\" = \"?\" }\n\
         codes = { \"outcome\" = { \"gone\" = \"?\" }, \"ward\" = { \"General\" = \"general\", \"ITS\" = \"?\" } }\n\
         ignore = [\"kosten\", \"patient_id\"]\n"
    );
    assert!(
        found
            .misfits
            .iter()
            .any(|line| line.contains("ward: not agreed are \"ITS\" 2, \"General\" 1"))
    );
    // What is pasted is read, and the rest is found.
    let mut local: LocalNames = toml::from_str(&names).unwrap();
    local.columns.insert("cost".into(), "kosten".into());
    local.ignore.retain(|name| name != "kosten");
    let again = of("pasted", text, local);
    let lines = again.misfits.join("\n");
    for said in [
        "age: outside of the agreed range 0 to 120 in 1 row, from 160 to 160",
        "age: whole numbers are agreed, and it holds 40.5",
        "cost: no numbers are \"inf\" 1; if they are missing values, add \"inf\" to `missing`",
    ] {
        assert!(lines.contains(said), "{said}: {lines}");
    }
    assert!(
        again.doubts[0].starts_with("cost: the middle value here is 9, and in the table"),
        "{:?}",
        again.doubts
    );
}

#[test]
fn the_column_that_says_whose_a_row_is_is_needed_and_may_have_another_name() {
    let split = SplitConfig {
        group: Some("patient".into()),
        ..SplitConfig::default()
    };
    let text = "age,cost,ward,outcome,Patient ID\n40,9000,general,home,a\n60,9000,general,died,a\n50,9000,general,home,\n";
    let first = split_by("group", text, LocalNames::default(), &split);
    assert!(
        first.misfits[0].ends_with("there is no column \"patient\"; is it \"Patient ID\"?"),
        "{:?}",
        first.misfits
    );
    assert_eq!(
        first.names.as_deref(),
        Some("columns = { \"patient\" = \"Patient ID\" }\n")
    );
    let names: LocalNames = toml::from_str("columns = { patient = 'Patient ID' }").unwrap();
    let again = split_by("named", text, names, &split);
    assert_eq!(
        again.misfits,
        [
            "patient: 1 row has no value, and every row needs one, so that rows of one are not in two parts"
        ]
    );
    let said = again
        .columns
        .last()
        .map(|(name, what)| format!("{name}: {what}"));
    assert_eq!(
        said.as_deref(),
        Some("patient: whose a row is: 1 different; 33.3 % missing")
    );
}

/// A line that is no row is no error where rows are read one by one.
#[test]
fn with_noise_rows_are_read_as_they_will_be() {
    let noised = TableTask {
        noised: true,
        ..task()
    };
    let text =
        "age,cost,ward,outcome\n40,9000,general,home\n50,\"8000,general,died\n60,7000,general\n";
    let found = by_task(&noised, "noised", text, LocalNames::default());
    assert!(
        found.columns[0].1.contains("40") && !found.columns[0].1.contains("50"),
        "{:?}",
        found.columns
    );
}

/// The sentences of `rota init`, with what an institution can do by itself.
#[test]
fn units_bounds_and_texts_in_another_encoding_are_said_with_the_option() {
    let text = "age,cost,ward,outcome\n40Y,9000 EUR/a,general,home\n45Y,9500 EUR/a,general,home\n\
                50Y,<8000,intensive,died\n55Y,7000 EUR/a,general,home\n";
    let found = of("units", text, LocalNames::default());
    let lines = found.misfits.join("\n");
    for said in [
        "age: a number is needed, without \"Y\": 4 of 4 cells have it, such as \"40Y\"; if it is the unit that all \
         mean, say --unit \"age=Y\"",
        "cost: a number is needed, without \"EUR/a\": 3 of 4 cells have it",
        "cost: a number is needed, not a bound: 1 of 4 cells is one, such as \"<8000\"; the agreement has no rule",
    ] {
        assert!(lines.contains(said), "{said}: {lines}");
    }
    let names = found.names.unwrap();
    assert!(
        names.contains("units = { \"age\" = \"Y\", \"cost\" = \"EUR/a\" }"),
        "{names}"
    );
    let again = of("own-units", text, toml::from_str(&names).unwrap());
    assert!(
        again.misfits.iter().all(|line| line.contains("bound")),
        "{:?}",
        again.misfits
    );
}

#[test]
fn a_level_in_another_encoding_is_said_to_be_one() {
    let schema = SCHEMA.replace("\"intensive\"", "\"Süd\"");
    let folder = std::env::temp_dir().join(format!("rota-survey-{}-bytes", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let rows = "age,cost,ward,outcome\n40,9000,SÃ¼d,home\n45,9500,Su\u{308}d,died\n";
    std::fs::write(folder.join("own.csv"), rows).unwrap();
    let own = toml::from_str::<OwnRows>("files = ['own.csv']").unwrap();
    let found = survey(&task(), &toml::from_str(&schema).unwrap(), &own, &folder).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(
        found.misfits[0]
            .contains("not agreed are \"SÃ¼d\" 1; agreed are general, Süd; \"SÃ¼d\" is \"Süd\""),
        "{:?}",
        found.misfits
    );
    assert!(found.names.unwrap().contains("\"SÃ¼d\" = \"Süd\""));
}

#[test]
fn numbers_that_are_written_as_codes_are_a_doubt() {
    let rows: String = (0..40)
        .map(|row| {
            format!(
                "40,{},general,home\n",
                ["9000.0", "9000.00", "9000.01"][row % 3]
            )
        })
        .collect();
    let text = format!("age,cost,ward,outcome\n{rows}");
    let found = of("codes", &text, LocalNames::default());
    assert!(
        found.doubts[0]
            .starts_with("cost: its numbers are written as codes are: \"9000.0\" and \"9000.00\""),
        "{:?}",
        found.doubts
    );
}
