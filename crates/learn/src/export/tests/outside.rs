//! Values far outside of those that a model was trained on.

use std::collections::BTreeMap;

use task::questions::{ColumnProfile, RowsProfile};

use super::*;
use crate::data::Format;
use crate::schema::LocalNames;

const LAB: &str = r#"
target = { name = "outcome", classes = ["home", "died"] }
[usual]
lab = [3.0, 8.0]
[[feature]]
name = "age"
range = [0.0, 2000.0]
missing = "mean"
[[feature]]
name = "lab"
missing = "mean"
"#;

/// The predictor of a model of the laboratory value, scaled in this way.
fn predictor(standardise: &str) -> Predictor {
    let task = task(LAB, "'logistic'", standardise);
    let (mut preparation, model) = model(&task, 3);
    if standardise == "silo" {
        (preparation.means, preparation.deviations) = (vec![55.0, 5.0], vec![15.0, 1.5]);
    }
    let card = Card::new(CardParts {
        task: &task,
        preparation: &preparation,
        model: &model,
        origin: origin(),
        created: String::new(),
    });
    Predictor::new(card.unwrap(), &model).unwrap()
}

fn outside(
    predictor: &Predictor,
    name: &str,
    rows: &str,
    own: Option<&RowsProfile>,
) -> OutsideRows {
    let file = folder("outside").join(format!("{name}.csv"));
    std::fs::write(&file, format!("age,lab\n{rows}")).unwrap();
    let (format, names) = (Format::default(), LocalNames::default());
    let rows = predictor.read(&file, &format, &names, &[], BadRows::Refuse);
    predictor.outside(&rows.unwrap(), own)
}

#[test]
fn values_far_outside_training_are_noted_and_refused_on_demand() {
    // Laboratory values times 18, months for years, a year of birth, a value without its point, a code for none.
    for (at, (rows, column)) in [
        (
            "40,99.1\n41,5.5\n",
            "lab: 1 row holds values from 99.1 to 99.1",
        ),
        (
            "480,5.5\n660,6.1\n50,4\n",
            "age: 2 rows hold values from 480 to 660",
        ),
        ("1961,5.5\n", "age: 1 row holds"),
        ("50,55\n", "lab: 1 row holds"),
        ("50,-999\n", "lab: 1 row holds"),
    ]
    .into_iter()
    .enumerate()
    {
        let found = outside(&predictor("silo"), &format!("silo-{at}"), rows, None);
        let [said] = found.columns.as_slice() else {
            panic!("{found:?}");
        };
        assert!(
            said.starts_with(column) && said.ends_with("is it in another unit?"),
            "{said}"
        );
        assert!(found.rows >= 1);
    }
    let found = outside(
        &predictor("silo"),
        "both",
        "480,99\n50,5\n600,5\n,5\n",
        None,
    );
    assert_eq!((found.columns.len(), found.rows), (2, 2));
    assert!(
        found.columns[0].contains("and agreed is 0 to 2000"),
        "{found:?}"
    );
}

#[test]
fn ordinary_values_and_gaps_are_not_outside() {
    let found = outside(&predictor("silo"), "usual", "18,2.1\n97,11\n40,\n", None);
    assert_eq!(found, OutsideRows::default());
}

#[test]
fn without_a_scale_the_usual_values_and_own_rows_decide() {
    let plain = predictor("none");
    let found = outside(&plain, "plain", "480,99\n", None);
    assert_eq!(found.columns.len(), 1, "{found:?}");
    let ages = ColumnProfile {
        rows: 100,
        below: Some([20.0, 30.0, 50.0, 70.0, 90.0]),
        ..ColumnProfile::default()
    };
    let own = RowsProfile {
        columns: BTreeMap::from([("age".to_owned(), ages)]),
    };
    let found = outside(&plain, "own", "480,99\n", Some(&own));
    assert_eq!((found.columns.len(), found.rows), (2, 1), "{found:?}");
    // It is in no card.
    let card = serde_json::to_string(plain.card()).unwrap();
    assert!(card.contains("2000.0") && !card.contains("below"), "{card}");
}

#[test]
fn parts_of_dates_far_outside_of_the_training_are_named() {
    let text = LAB.replace(
        "name = \"age\"\nrange = [0.0, 2000.0]",
        "name = \"age\"\ntype = \"date\"\nsince = \"2020-01-01\"\nparts = [\"days\", \"year\", \"month\"]",
    );
    let task = task(&text, "'logistic'", "silo");
    let (mut preparation, model) = model(&task, 3);
    let of = |days: f64, year: f64, lab: f64, month: f64| {
        [&[days, year, lab][..], &[month; 11]].concat()
    };
    preparation.means = of(700.0, 2021.0, 5.0, 0.1);
    preparation.deviations = of(300.0, 1.0, 1.5, 0.3);
    let card = Card::new(CardParts {
        task: &task,
        preparation: &preparation,
        model: &model,
        origin: origin(),
        created: String::new(),
    });
    let predictor = Predictor::new(card.unwrap(), &model).unwrap();
    let found = outside(&predictor, "dates", "2050-03-01,5\n2021-12-01,5\n", None);
    let [days, year] = found.columns.as_slice() else {
        panic!("{found:?}");
    };
    assert!(
        days.starts_with("age: 1 row holds values from 2050-03-01 to 2050-03-01"),
        "{days}"
    );
    assert!(
        year.starts_with("age year: 1 row holds values from 2050 to 2050"),
        "{year}"
    );
    for said in [days, year] {
        assert!(said.ends_with("are its dates written in another form (`dates`)?"));
    }
    assert_eq!(found.rows, 1);
}
