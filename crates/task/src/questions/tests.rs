#![allow(clippy::unwrap_used)]
use std::fmt::Write;

use super::*;
use crate::data::{RowsConfig, SplitConfig};
use crate::schema::Schema;

/// The rows of a hospital, where `lab` of some rows is `odd`.
fn rows(name: &str, odd: &str, answers: &str) -> DataSet {
    let mut text = String::from("age,lab,outcome\n");
    for row in 0..60 {
        let lab = match row % 20 {
            7 => odd.to_owned(),
            _ => format!("{:.1}", 3.0 + (row * 37 % 60) as f64 / 20.0),
        };
        writeln!(text, "{},{lab},{}", 20 + row, ["no", "yes"][row % 2]).unwrap();
    }
    let file = std::env::temp_dir().join(format!("rota-asked-{}-{name}.csv", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let config: RowsConfig = toml::from_str(&format!(
        "files = [{{ path = {:?}, names = {{ missing = {{ lab = ['-77'] }} }} }}]\n{answers}",
        file.display().to_string()
    ))
    .unwrap();
    let schema: Schema = toml::from_str(
        "target = { name = 'outcome', classes = ['no', 'yes'] }\n[[feature]]\nname = ['age', 'lab']\n\
         missing = 'mean'",
    )
    .unwrap();
    config
        .read(Some(&schema), None, &SplitConfig::default())
        .unwrap()
}

fn asked(data: &DataSet, answers: &RowAnswers) -> Vec<String> {
    let questions = questions(data, answers).into_iter();
    questions
        .map(|question| question.at(AskedAt::Scenario))
        .collect()
}

#[test]
fn possible_missing_values_are_asked_about_until_answered() {
    let mut none = RowAnswers::default();
    for odd in ["999", "-99", "-999", "999.9", "-2147483648"] {
        let said = asked(&rows("odd", odd, ""), &none);
        let [one] = said.as_slice() else {
            panic!("{odd}: {said:?}");
        };
        assert!(one.contains(&format!("3 rows hold {odd}, unlike")), "{one}");
        assert!(one.contains("answers = { keep = { \"lab\" = ["), "{one}");
    }
    let data = rows("kept", "999", "");
    none.add("lab", Some("999.0"));
    assert_eq!(asked(&data, &none), [""; 0]);
    // One that means a missing value in this column is none.
    assert_eq!(
        asked(&rows("marked", "-77", ""), &RowAnswers::default()),
        [""; 0]
    );
}

#[test]
fn answers_stand_in_the_file() {
    let written = "answers = { keep = { lab = ['999'] }, learn = ['age'] }";
    let table: toml::Table = written.parse().unwrap();
    let answers: RowAnswers = table["answers"].clone().try_into().unwrap();
    assert!(answers.keeps("lab", 999.0) && !answers.keeps("age", 999.0));
    assert!(answers.learns("age") && !answers.learns("lab"));
    let mut more = RowAnswers::default();
    more.extend(&answers);
    more.extend(&answers);
    assert_eq!(more, answers);
}
