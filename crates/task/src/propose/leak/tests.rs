#![allow(clippy::unwrap_used)]
use super::*;
use crate::random::uniform;

/// A schema with a number, a category with many levels, and one that is known after the outcome.
const SCHEMA: &str = r#"
[[feature]]
name = "lab"
[[feature]]
name = "after"
missing = "mean"
[[feature]]
name = "discharge"
type = "category"
levels = ["home", "dead", "rehab"]
missing = "indicator"
[[feature]]
name = "bed"
type = "category"
levels = [BEDS]
"#;

fn schema(target: &str) -> Schema {
    let beds: Vec<String> = (0..60).map(|bed| format!("\"b{bed}\"")).collect();
    let text = SCHEMA.replace("BEDS", &beds.join(", "));
    let schema: Schema = toml::from_str(&format!("{target}\n{text}")).unwrap();
    schema.check().unwrap();
    schema
}

/// One row of what a silo wrote down.
struct StayRow {
    lab: f64,
    after: f64,
    discharge: usize,
    bed: usize,
    target: f64,
}

fn table(
    schema: &Schema,
    rows: usize,
    row: impl Fn(&mut dyn FnMut() -> f64, usize) -> StayRow,
) -> Table {
    let mut rng = stream(7, "leak");
    let mut draw = || uniform(&mut rng);
    let mut table = Table::encoded(&schema.encoded());
    for at in 0..rows {
        let row = row(&mut draw, at);
        let cells = table
            .columns
            .clone()
            .into_iter()
            .map(|name| match name.split_once('=') {
                Some(("discharge", level)) => {
                    f64::from(u8::from(["home", "dead", "rehab"][row.discharge] == level))
                }
                Some((_, level)) => f64::from(u8::from(format!("b{}", row.bed) == level)),
                None if name == "lab" => row.lab,
                None if name == "after" => row.after,
                None => 0.0,
            });
        let cells: Vec<f64> = cells.collect();
        table.push(&cells, row.target);
    }
    table
}

fn questions(table: &Table, schema: &Schema) -> Vec<String> {
    let found = leaks(&[table], &schema.target(), Some(schema));
    found.into_iter().map(|leak| leak.question).collect()
}

const DIED: &str = "target = { name = 'died', classes = ['no', 'yes'] }";
const DAYS: &str = "target = { name = 'days', unit = 'd' }";

/// Death by chance; `discharge` says so, `after` is measured in those who lived.
fn hospital(draw: &mut dyn FnMut() -> f64, at: usize) -> StayRow {
    let died = draw() < 0.3;
    StayRow {
        lab: draw() + 0.5 * f64::from(u8::from(died)),
        after: if died { f64::NAN } else { draw() },
        discharge: if died {
            1
        } else {
            2 * usize::from(draw() < 0.5)
        },
        bed: at % 60,
        target: f64::from(u8::from(died)),
    }
}

#[test]
fn a_level_or_a_gap_that_shows_who_died_is_asked_about_by_name() {
    let schema = schema(DIED);
    let found = questions(&table(&schema, 200, hospital), &schema);
    assert_eq!(
        found,
        [
            "\"after\" alone gives AUC 1.000: is it known before the outcome?",
            "\"discharge\" alone gives AUC 1.000: is it known before the outcome?"
        ]
    );
}

#[test]
fn unique_levels_and_chance_in_few_rows_are_no_reason_to_ask() {
    let schema = schema(DIED);
    // Sixty rows with a bed each, and a number by chance.
    let none = |draw: &mut dyn FnMut() -> f64, at: usize| StayRow {
        discharge: 0,
        after: draw(),
        ..hospital(draw, at)
    };
    assert_eq!(questions(&table(&schema, 60, none), &schema), [""; 0]);
    assert_eq!(questions(&table(&schema, 19, hospital), &schema), [""; 0]);
    // One death in thirty: a third of all columns of chance put it first or last in some order of 60.
    let one = |draw: &mut dyn FnMut() -> f64, at: usize| StayRow {
        target: f64::from(u8::from(at == 4)),
        lab: -((at == 4) as u8 as f64) * 9.0 + draw(),
        ..none(draw, at)
    };
    assert_eq!(questions(&table(&schema, 30, one), &schema), [""; 0]);
}

#[test]
fn numbers_that_leak_a_number_are_found_by_rank_and_by_level() {
    let schema = schema(DAYS);
    // `after` is what the stay cost; `lab` says something.
    let stay = |draw: &mut dyn FnMut() -> f64, at: usize| {
        let days = (1.0 + 20.0 * draw()).exp2();
        let discharge = at % 3;
        StayRow {
            lab: days.log2() + 3.0 * draw(),
            after: 100.0 + 7.0 * days,
            discharge,
            bed: at % 60,
            target: days,
        }
    };
    let found = questions(&table(&schema, 120, stay), &schema);
    let said = "\"after\" alone has the rank correlation 1.000 with \"days\": is it known before the outcome?";
    assert_eq!(found, [said]);
    let by_level = |draw: &mut dyn FnMut() -> f64, at: usize| StayRow {
        target: [3.0, 40.0, 11.0][at % 3] + 0.1 * draw(),
        after: draw(),
        lab: [7.0, 2.0, 9.0][at % 3],
        ..stay(draw, at)
    };
    let found = questions(&table(&schema, 120, by_level), &schema);
    // Sixty beds of two rows each go with the days, too, and one half does not know all of them.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("\"lab\" alone explains 99."),
        "a code, not an order: {}",
        found[0]
    );
    assert!(
        found[1].starts_with("\"discharge\" alone explains 99."),
        "{}",
        found[1]
    );
}

#[test]
fn of_several_classes_the_one_that_is_given_away_is_named() {
    let schema = schema("target = { name = 'exit', classes = ['home', 'died', 'moved'] }");
    let exits = |draw: &mut dyn FnMut() -> f64, at: usize| {
        let exit = (3.0 * draw()).floor();
        StayRow {
            lab: draw(),
            after: if exit == 2.0 {
                5.0 + draw()
            } else {
                4.0 * draw()
            },
            discharge: 0,
            bed: at % 60,
            target: exit,
        }
    };
    let found = questions(&table(&schema, 150, exits), &schema);
    assert_eq!(
        found,
        ["\"after\" alone gives AUC 1.000 for \"moved\": is it known before the outcome?"]
    );
}

#[test]
fn a_strong_but_honest_column_is_not_asked_about() {
    let schema = schema(DIED);
    let honest = |draw: &mut dyn FnMut() -> f64, at: usize| {
        let row = hospital(draw, at);
        StayRow {
            lab: row.target + 1.6 * draw(),
            after: draw(),
            discharge: usize::from(draw() < 0.5),
            ..row
        }
    };
    assert_eq!(questions(&table(&schema, 400, honest), &schema), [""; 0]);
}

#[test]
fn rows_of_all_silos_are_examined_together_without_a_schema() {
    let mut silos = Vec::new();
    for silo in 0..3 {
        let mut table = Table::new(vec!["a".into(), "b".into()]);
        (0..12).for_each(|row| {
            table.push(
                &[f64::from(row % 2), f64::from(row * 7 % 5)],
                f64::from(row % 2),
            )
        });
        silos.push((format!("s{silo}"), table));
    }
    let data = DataSet {
        target: Target::Classes(vec!["no".into(), "yes".into()]),
        silos,
        schema: None,
        notes: Vec::new(),
        subgroups: Vec::new(),
    };
    let found = leaks_of(&data);
    assert_eq!(
        (found.len(), found[0].column.as_str(), found[0].score),
        (1, "a", 1.0)
    );
}

#[test]
fn a_date_is_asked_about_once_whatever_its_parts() {
    let schema: Schema = toml::from_str(&format!(
        "{DIED}\n[[feature]]\nname = \"died_at\"\ntype = \"date\"\nsince = \"2020-01-01\"\n\
         parts = [\"year\", \"month\"]\nmissing = \"mean\"\n[[feature]]\nname = \"lab\"\n"
    ))
    .unwrap();
    schema.check().unwrap();
    let mut table = Table::encoded(&schema.encoded());
    let mut rng = stream(7, "dates");
    for _ in 0..200 {
        let died = uniform(&mut rng) < 0.3;
        // Those who live have no date.
        let cell = |value: f64| if died { value } else { f64::NAN };
        let mut row = vec![cell(2020.0), uniform(&mut rng)];
        row.extend([cell(0.0); 11]);
        table.push(&row, f64::from(died));
    }
    let found = questions(&table, &schema);
    assert_eq!(
        found,
        ["\"died_at\" alone gives AUC 1.000: is it known before the outcome?"]
    );
}

#[test]
fn many_rows_take_little_time() {
    let mut table = Table::new((0..40).map(|at| format!("c{at}")).collect());
    let mut rng = stream(1, "many");
    for _ in 0..100_000 {
        let row: Vec<f64> = (0..40).map(|_| uniform(&mut rng)).collect();
        let class = f64::from(row[3] > 0.5);
        table.push(&row, class);
    }
    let target = Target::Classes(vec!["no".into(), "yes".into()]);
    let begun = std::time::Instant::now();
    let found = leaks(&[&table], &target, None);
    assert_eq!(found.len(), 1);
    assert!(begun.elapsed().as_secs() < 10);
}

#[test]
fn a_cause_and_a_further_time_give_an_event_away() {
    let schema = schema("target = { event = 'died', time = 'days' }");
    // `lab` is a time of follow-up, too, `discharge` tells who died, and `after` neither.
    let with = |lab: fn(f64, f64) -> f64, discharge: fn(bool, f64) -> usize| {
        let rows = table(&schema, 200, |draw, at| {
            let (died, days) = (draw() < 0.4, 1.0 + (400.0 * draw()).floor());
            StayRow {
                lab: lab(days, draw()),
                after: draw(),
                discharge: discharge(died, draw()),
                bed: at % 60,
                target: if died { days } else { -days },
            }
        });
        let mut timed = Table::encoded(&schema.encoded());
        for row in 0..rows.len() {
            let signed = rows.targets(row)[0];
            let event = f64::from(u8::from(signed > 0.0));
            timed.push_all(rows.row(row), &[event, signed.abs(), 0.0]);
        }
        questions(&timed, &schema)
    };
    let leaking = with(|days, _| days + 2.0, |died, _| usize::from(died));
    let [lab, discharge] = &leaking[..] else {
        panic!("{leaking:?}");
    };
    assert!(lab.starts_with("\"lab\" alone has the rank correlation") && lab.contains("\"days\""));
    assert!(discharge.starts_with("\"discharge\" alone gives AUC 1.000 for \"died\""));
    let honest = with(|_, draw| draw, |_, draw| usize::from(draw < 0.5));
    assert_eq!(honest, [""; 0]);
}
