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
    by_schema(SCHEMA, task, name, text, names)
}

fn by_schema(schema: &str, task: &TableTask, name: &str, text: &str, names: LocalNames) -> Survey {
    let folder = std::env::temp_dir().join(format!("rota-survey-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("own.csv"), text).unwrap();
    let rows = toml::from_str::<OwnRows>("files = ['own.csv']").unwrap();
    let schema: Schema = toml::from_str(schema).unwrap();
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
        names.written(),
        [
            "columns.age = \"Age\"",
            "columns.cost = \"?\"",
            "codes.outcome.gone = \"?\"",
            "codes.ward.General = \"general\"",
            "codes.ward.ITS = \"?\"",
            "ignore = [\"kosten\", \"patient_id\"]",
        ]
    );
    assert_eq!(found.unread, ["kosten", "patient_id"]);
    assert!(
        found
            .misfits
            .iter()
            .any(|line| line.contains("ward: not agreed are \"ITS\" 2, \"General\" 1"))
    );
    // Pasted keys are read, and the rest is found.
    let mut local: LocalNames = toml::from_str(&names.written().join("\n")).unwrap();
    assert_eq!(local, names);
    local.columns.insert("cost".into(), "kosten".into());
    local.ignore.retain(|name| name != "kosten");
    let again = of("pasted", text, local);
    let lines = again.misfits.join("\n");
    for said in [
        "age: outside of the agreed range 0 to 120 in 1 row, from 160 to 160",
        "age: whole numbers are agreed, and it holds 40.5",
        "cost: no numbers are \"inf\" 1; if one is a missing value, put it into `missing` of this column",
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
fn the_column_of_persons_is_needed_and_may_have_another_name() {
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
    let written = first.names.unwrap().written();
    assert_eq!(written, ["columns.patient = \"Patient ID\""]);
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
fn units_bounds_and_another_encoding_are_reported_with_options() {
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
    let written = names.written();
    for line in ["units.age = \"Y\"", "units.cost = \"EUR/a\""] {
        assert!(written.iter().any(|own| own == line), "{written:?}");
    }
    let again = of("own-units", text, names);
    assert!(
        again.misfits.iter().all(|line| line.contains("bound")),
        "{:?}",
        again.misfits
    );
}

#[test]
fn a_level_in_another_encoding_is_reported_as_one() {
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
    assert_eq!(found.names.unwrap().value("ward", "SÃ¼d"), "Süd");
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

fn names(text: &str) -> LocalNames {
    toml::from_str(text).unwrap()
}

/// Whoever pastes what is printed, as it is printed, is asked for what is open and for nothing twice.
#[test]
fn pasted_names_lose_nothing_and_are_not_asked_for_again() {
    let text =
        "Age,kosten,ward,outcome,patient_id\n40,9,ITS,home,1\n60,n/d,N,gone,2\n50,11,N,died,3\n";
    let mut local = names(
        "columns = { cost = 'kosten' }\ncodes = { ward = { N = 'general' } }\nmissing = { cost = ['n/d'] }",
    );
    let right = local.clone();
    let mut open = Vec::new();
    for join in 0..2 {
        let found = of(&format!("literal-{join}"), text, local.clone());
        let whole = found.names.expect("something is open");
        let pasted: LocalNames = names(&whole.written().join("\n"));
        assert_eq!(pasted, whole);
        assert_eq!(pasted.column("cost"), "kosten");
        assert_eq!(pasted.value("ward", "N"), "general");
        assert_eq!(
            (&pasted.missing, &pasted.absent),
            (&right.missing, &right.absent)
        );
        assert_eq!(pasted.ignore, ["patient_id"]);
        open = pasted.open();
        local = pasted;
    }
    assert_eq!(
        open,
        [
            "what \"gone\" of \"outcome\" means",
            "what \"ITS\" of \"ward\" means"
        ]
    );
    for (column, text, value) in [("outcome", "gone", "died"), ("ward", "ITS", "intensive")] {
        local
            .codes
            .entry(column.into())
            .or_default()
            .insert(text.into(), value.into());
    }
    let last = of("literal-last", text, local);
    assert_eq!((last.misfits, last.names), (vec![], None));
}

/// Names of an earlier agreement go, and values that are none are asked for.
#[test]
fn names_that_stand_for_nothing_agreed_are_reported_and_unused() {
    let text = "age,cost,ward,outcome\n40,9,ITS,home\n60,10,general,died\n";
    let local =
        names("columns = { agee = 'Alter' }\ncodes = { ward = { ITS = 'icu' } }\nabsent = ['age']");
    let found = of("stale", text, local);
    assert!(
        found.misfits[0].contains("no column \"agee\"")
            && found.misfits[0].contains("did you mean"),
        "{:?}",
        found.misfits
    );
    assert_eq!(found.names.unwrap().written(), ["codes.ward.ITS = \"?\""]);
}

#[test]
fn a_column_that_is_not_recorded_is_named_in_one_answer() {
    let text = "age,ward,outcome\n40,general,home\n60,intensive,died\n";
    let first = of("lacking", text, LocalNames::default());
    assert!(
        first.misfits[0]
            .contains("there is no column \"cost\"; if it has none, name it in `absent`"),
        "{:?}",
        first.misfits
    );
    let again = of("absent", text, names("absent = ['cost']"));
    assert_eq!((again.misfits, again.names), (vec![], None));
    assert!(
        again
            .columns
            .iter()
            .any(|(name, what)| name == "cost" && what.contains("not in the files"))
    );
}

/// A word may be a value of one column and a gap in another, and a code is a value in its own column only.
#[test]
fn a_word_is_a_value_in_columns_that_know_it_and_else_missing() {
    let text = "age,cost,ward,outcome\n40,None,None,home\n60,10,general,died\n50,None,None,home\n";
    let first = of("word", text, LocalNames::default());
    assert_eq!(first.misfits.len(), 1, "{:?}", first.misfits);
    assert!(
        first.misfits[0].contains("read as missing are \"None\" 2: a value if `codes` says which"),
        "{:?}",
        first.misfits
    );
    let names = first.names.unwrap();
    assert_eq!(names.written(), ["codes.ward.None = \"?\""]);
    let coded = self::names("codes = { ward = { None = 'intensive' } }");
    let again = of("coded", text, coded);
    assert_eq!(again.misfits, [""; 0]);
    let said: Vec<&str> = again.columns.iter().map(|(_, what)| &**what).collect();
    assert_eq!(said[2], "general 1, intensive 2");
    assert!(said[1].ends_with("66.7 % missing"), "{said:?}");
}

#[test]
fn dates_are_held_against_the_agreed_days_and_get_a_form() {
    let schema = "[target]\nname = 'cost'\n[[feature]]\nname = 'admitted'\ntype = 'date'\n\
                  since = '2020-01-01'\nuntil = '2023-12-31'\n";
    let of = |name: &str, cells: &[&str], names: LocalNames| {
        let rows: String = cells.iter().map(|cell| format!("{cell},1\n")).collect();
        let text = format!("admitted,cost\n{rows}");
        by_schema(schema, &task(), name, &text, names)
    };
    let fits = of(
        "dates",
        &["2020-02-01", "31.03.2021"],
        LocalNames::default(),
    );
    assert_eq!((&fits.misfits, &fits.names), (&vec![], &None));
    let said = &fits.columns[0].1;
    assert_eq!(said, "dates from 2020-02-01 to 2021-03-31");
    let outside = of("late", &["2020-02-01", "2024-01-01"], LocalNames::default());
    let why = &outside.misfits[0];
    assert!(why.contains("2020-01-01 to 2023-12-31 in 1 row"), "{why}");
    let form = of("form", &["02/28/2020", "03/01/2020"], LocalNames::default());
    assert!(form.misfits[0].contains("MM/DD/YYYY"), "{:?}", form.misfits);
    let names = form.names.expect("a form is proposed");
    assert_eq!(names.written(), ["dates.admitted = \"MM/DD/YYYY\""]);
    let then = of("told", &["02/28/2020", "03/01/2020"], names);
    assert_eq!((then.misfits, then.names), (vec![], None));
    let either = of(
        "either",
        &["02/03/2020", "03/01/2020"],
        LocalNames::default(),
    );
    let why = &either.misfits[0];
    assert!(why.contains("DD/MM/YYYY or as MM/DD/YYYY"), "{why}");
    assert_eq!(either.names, None);
}

/// Rows of a site, with a cost by their place.
type CostOf = (&'static str, fn(usize) -> f64);

#[test]
fn numbers_in_another_unit_are_a_doubt_whatever_the_factor() {
    let doubts = |name: &str, cost: fn(usize) -> f64| {
        let row = |row: usize| format!("40,{},general,home\n", cost(row));
        let rows: String = (0..40).map(row).collect();
        let text = format!("age,cost,ward,outcome\n{rows}");
        of(name, &text, LocalNames::default()).doubts
    };
    let others: [CostOf; 4] = [
        ("months", |row| 12.0 * (9_000.0 + 250.0 * row as f64)),
        ("pounds", |row| 4.0 * (9_000.0 + 250.0 * row as f64)),
        ("signs", |row| -9_000.0 - 250.0 * row as f64),
        ("percent", |row| 0.01 * (9_000.0 + 250.0 * row as f64)),
    ];
    for (name, cost) in others {
        let found = doubts(name, cost);
        assert!(
            found[0].starts_with("cost: the middle value here is"),
            "{name}: {found:?}"
        );
    }
    // Another population is no other unit.
    let populations: [CostOf; 3] = [
        ("dearer", |row| 15_000.0 + 1_200.0 * row as f64),
        ("cheaper", |row| 500.0 + 200.0 * row as f64),
        ("cheap", |row| 2_025.0 - row as f64),
    ];
    for (name, cost) in populations {
        assert_eq!(doubts(name, cost), [""; 0], "{name}");
    }
}

const TIMES: &str = r#"
only = ["age >= 18"]
target = { event = "died", time = "days", entry = "start" }
[[feature]]
name = "age"
"#;

#[test]
fn an_event_and_its_time_are_described() {
    let text = "age,died,days,start\n40,1,10,0\n60,0,20.5,3\n50,0,7,\n";
    let found = by_schema(TIMES, &task(), "times", text, LocalNames::default());
    let columns: Vec<String> = found
        .columns
        .iter()
        .map(|(name, what)| format!("{name}: {what}"))
        .collect();
    assert_eq!(
        columns[1..],
        [
            "died: to predict: 1 event, 2 censored",
            "days: the time until then: numbers from 7 to 20.5, median 10",
            "start: observed from: whole numbers from 0 to 3, median 0; 33.3 % missing",
        ]
    );
    assert_eq!((found.misfits, found.names), (vec![], None));
}

#[test]
fn events_in_other_words_and_times_of_0_do_not_fit() {
    let text = "age,died,days,start\n40,yes,10,0\n60,no,0,-3\n50,no,-7,0\n";
    let found = by_schema(TIMES, &task(), "no-times", text, LocalNames::default());
    let said = found.misfits.join("\n");
    for part in [
        "died: not agreed are \"no\" 2, \"yes\" 1; agreed are 1, where the event happened, and 0",
        "days: 2 rows have a time of 0 or less",
        "only = [\"days > 0\"]",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let names = found.names.unwrap();
    assert_eq!(
        names.written(),
        ["codes.died.no = \"?\"", "codes.died.yes = \"?\""]
    );
    // What somebody fills in is read, but no number that is no event.
    let filled: LocalNames = toml::from_str("codes = { died = { yes = '1', no = '2' } }").unwrap();
    let again = by_schema(TIMES, &task(), "filled", text, filled)
        .names
        .unwrap();
    assert_eq!(again.written()[0], "codes.died.no = \"?\"");
    let positive = TIMES.replace("\"age >= 18\"", "\"days > 0\"");
    let left = by_schema(&positive, &task(), "left-out", text, LocalNames::default());
    assert!(!left.misfits.join("\n").contains("0 or less"));
}
