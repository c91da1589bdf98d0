#![allow(clippy::unwrap_used)]
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::super::{SchemaProposal, propose};
use super::*;
use crate::Source;
use crate::data::{
    DataSet, EicuLosConfig, EicuMortalityConfig, SplitConfig, breast_cancer_silos, diabetes_silos,
};
use crate::questions::{AskedAt, RowAnswers, RowDoubt, Unanswered, questions};
use crate::schema::Schema;

/// Proposes for one file with this text.
fn of(name: &str, text: &str, wishes: &Wishes) -> Result<SchemaProposal, DataError> {
    let file = std::env::temp_dir().join(format!("rota-whose-{}-{name}.csv", std::process::id()));
    std::fs::write(&file, text).unwrap();
    propose(&[file], wishes)
}

fn wishes() -> Wishes {
    Wishes {
        target: Some("outcome".into()),
        alone: true,
        ..Wishes::default()
    }
}

/// The questions that are open.
fn open(proposal: Result<SchemaProposal, DataError>) -> Unanswered {
    match proposal {
        Err(DataError::Unanswered(open)) => open,
        other => panic!("{other:?}"),
    }
}

/// Visits of 60 patients whose outcome is a coin's, with their number under this name.
fn visits(name: &str, number: fn(usize) -> String) -> String {
    let mut text = format!("{name},age,lab,outcome\n");
    for row in 0..360_usize {
        let patient = row * 7919 % 60;
        let (age, lab) = (20 + row * 31 % 67, (row * 7907 % 1013) as f64 / 100.0);
        let coin = ["no", "yes"][((patient * 2_654_435_761_usize) >> 7) % 2];
        writeln!(text, "{},{age},{lab},{coin}", number(patient)).unwrap();
    }
    text
}

/// Spelling of a person's number.
type Spelling = fn(usize) -> String;

#[test]
fn a_patients_number_is_asked_about_whatever_it_is_called() {
    let spelt: [(&str, Spelling); 6] = [
        ("nhs_number", |patient| {
            (4_857_773_456 + 7_654_321 * patient).to_string()
        }),
        ("Fallnummer", |patient| (patient * 37 % 61 + 1).to_string()),
        ("KVNR", |patient| format!("K{:09}", 13_579 * (patient + 7))),
        ("AHV", |patient| {
            format!("756-{:04}-{:04}", 31 * patient % 9973, 9999 - patient)
        }),
        ("numéro de dossier", |patient| {
            (20_240_000 + patient * 17).to_string()
        }),
        ("x", |patient| format!("{:06x}", 0xAB_0000 + 257 * patient)),
    ];
    for (at, (name, number)) in spelt.into_iter().enumerate() {
        let text = visits(name, number);
        let file = format!("visits-{at}");
        let asked = open(of(&file, &text, &wishes()));
        let [question] = asked.questions.as_slice() else {
            panic!("{name}: {asked}");
        };
        assert_eq!(
            (question.column.as_str(), &question.doubt),
            (name, &RowDoubt::Identifier)
        );
        let said = asked.to_string();
        for option in ["--group", "--number", "--category", "--drop"] {
            assert!(said.contains(&format!("{option} {name:?}")), "{said}");
        }
        // Every answer is one.
        let group = Wishes {
            group: Some(name.into()),
            ..wishes()
        };
        let proposal = of(&file, &text, &group).unwrap();
        assert_eq!(proposal.group.unwrap().0, name);
        let drop = Wishes {
            drop: vec![name.into()],
            ..wishes()
        };
        assert!(
            of(&file, &text, &drop)
                .unwrap()
                .schema
                .names()
                .eq(["age", "lab"])
        );
    }
}

#[test]
fn the_answer_that_a_number_is_learned_from_stays_with_the_rows() {
    let text = visits("tariff", |patient| (1_000 + 83 * patient).to_string());
    let number = Wishes {
        numbers: vec!["tariff".into()],
        ..wishes()
    };
    let proposal = of("tariff", &text, &number).unwrap();
    assert_eq!(proposal.answers.learn, ["tariff"]);
    // Columns without a question need no answer.
    let more = Wishes {
        numbers: vec!["tariff".into(), "age".into()],
        ..wishes()
    };
    assert_eq!(
        of("tariff", &text, &more).unwrap().answers,
        proposal.answers
    );
}

#[test]
fn numbers_that_may_be_missing_values_are_asked_about() {
    for odd in ["999", "-99", "-999", "999.9", "-2147483648"] {
        let mut text = String::from("lab,age,outcome\n");
        for row in 0..90_usize {
            let lab = match row % 30 {
                4 => odd.to_owned(),
                _ => format!("{:.1}", 3.0 + (row * 37 % 60) as f64 / 20.0),
            };
            writeln!(
                text,
                "{lab},{},{}",
                20 + row * 7 % 61,
                ["no", "yes"][row % 2]
            )
            .unwrap();
        }
        let file = format!("odd{odd}");
        let said = open(of(&file, &text, &wishes())).to_string();
        let pair = format!("lab={odd}");
        assert!(
            said.contains(&format!("3 rows hold {odd}, unlike")),
            "{said}"
        );
        assert!(
            said.contains(&format!("--missing-mark=\"{pair}\"; ")),
            "{said}"
        );
        assert!(said.contains(&format!("--keep \"{pair}\"")), "{said}");
        let missing = Wishes {
            missing: vec![pair],
            ..wishes()
        };
        let proposal = of(&file, &text, &missing).unwrap();
        assert_eq!(proposal.missing["lab"], [odd]);
        let what = proposal.columns.iter().find(|(name, _)| name == "lab");
        assert!(what.unwrap().1.ends_with("3.3 % missing"), "{what:?}");
        let all = Wishes {
            missing: vec![odd.into()],
            ..wishes()
        };
        assert!(of(&file, &text, &all).unwrap().missing.is_empty());
        let keep = Wishes {
            keep: vec![("lab".into(), odd.into())],
            ..wishes()
        };
        assert_eq!(of(&file, &text, &keep).unwrap().answers.keep["lab"], [odd]);
    }
}

/// The columns of a table that are asked about, with what is asked.
fn asked_of(file: &Path, header: Option<usize>, target: &str) -> Vec<(String, RowDoubt)> {
    let mut text = crate::data::bytes(file).unwrap();
    if let Some(columns) = header {
        let names: Vec<String> = (0..columns).map(|at| format!("column {at}")).collect();
        text = [names.join(",").into_bytes(), b"\n".to_vec(), text].concat();
    }
    let copy = std::env::temp_dir().join(format!(
        "rota-asked-{}-{}.csv",
        std::process::id(),
        file.file_name().unwrap().to_string_lossy()
    ));
    std::fs::write(&copy, text).unwrap();
    let wishes = Wishes {
        target: Some(target.into()),
        missing: vec!["?".into()],
        ..wishes()
    };
    let found = propose(std::slice::from_ref(&copy), &wishes);
    std::fs::remove_file(&copy).unwrap();
    let questions = match found {
        Err(DataError::Unanswered(open)) => open.questions,
        Ok(_) => Vec::new(),
        Err(other) => panic!("{}: {other}", file.display()),
    };
    let each = questions.into_iter();
    each.map(|question| (question.column, question.doubt))
        .collect()
}

/// The columns of built-in data that are asked about.
fn asked_of_data(mut data: DataSet) -> Vec<String> {
    let encoded = data.silos[0].1.encoding();
    data.schema = Some(Schema::of_encoded(&encoded, &data.target));
    let asked = questions(&data, &RowAnswers::default()).into_iter();
    asked
        .map(|question| question.at(AskedAt::Scenario))
        .collect()
}

/// The columns that the documentation names as asked about wrongly.
fn listed() -> BTreeSet<String> {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/tables-as-they-come.md"
    );
    let page = std::fs::read_to_string(page).unwrap();
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| eICU, "));
    let cells = rows.map(|row| row.split(" | ").collect::<Vec<_>>());
    cells
        .map(|cells| format!("{}.csv: {}", cells[0], cells[1].trim_matches('`')))
        .collect()
}

/// Of the tables at hand hardly a column is asked about that is neither whose a row is nor a missing value, and the
/// documentation names those that are.
#[test]
fn at_most_two_columns_of_known_tables_are_asked_about_wrongly() {
    assert_eq!(asked_of_data(diabetes_silos(4).unwrap()), [""; 0]);
    assert_eq!(asked_of_data(breast_cancer_silos(4).unwrap()), [""; 0]);
    let Some(folder) = std::env::var_os("ROTA_DATA").map(PathBuf::from) else {
        crate::skipped::skipped("needs the data sets, and ROTA_DATA is not set");
        return;
    };
    let tables = [
        ("breast_cancer/wdbc.csv", None, "diagnosis"),
        ("tcga_brca/tcga_brca.csv", None, "event"),
        (
            "heart_disease/processed.cleveland.data",
            Some(14),
            "column 13",
        ),
        (
            "heart_disease/processed.hungarian.data",
            Some(14),
            "column 13",
        ),
        (
            "heart_disease/processed.switzerland.data",
            Some(14),
            "column 13",
        ),
        ("heart_disease/processed.va.data", Some(14), "column 13"),
        ("tpt48/longitude-latitude-normalize.csv", None, "latitude"),
        ("tpt48/month_temp_data.csv", None, "2019-12"),
        ("eicu_demo/patient.csv.gz", None, "hospitaldischargestatus"),
        (
            "eicu_demo/apachepatientresult.csv.gz",
            None,
            "actualhospitalmortality",
        ),
        ("eicu_demo/apachepredvar.csv.gz", None, "diedinhospital"),
        ("eicu_demo/apacheapsvar.csv.gz", None, "heartrate"),
    ];
    let (mut right, mut wrong) = (BTreeSet::new(), BTreeSet::new());
    for (table, header, target) in tables {
        let file = folder.join(table);
        if !file.exists() {
            crate::skipped::skipped(format!("{} is not there", file.display()));
            continue;
        }
        for (column, doubt) in asked_of(&file, header, target) {
            let name = format!("{}: {column}", file.file_stem().unwrap().to_string_lossy());
            let is_right = match doubt {
                // The marks of this database for a value that nobody has.
                RowDoubt::StandIn(value) => table.starts_with("eicu") && value == -1.0,
                RowDoubt::Identifier => [
                    "patientunitstayid",
                    "patienthealthsystemstayid",
                    "uniquepid",
                ]
                .contains(&column.as_str()),
            };
            if is_right {
                right.insert(name)
            } else {
                wrong.insert(name)
            };
        }
    }
    assert!(right.len() >= 2, "{right:?}");
    assert_eq!((&wrong, wrong.len() <= 2), (&listed(), true));
    // Built-in data, which are read from these folders.
    let sources = [
        Source::Heart,
        Source::EicuLos(EicuLosConfig::default()),
        Source::EicuMortality(EicuMortalityConfig::default()),
    ];
    for source in sources {
        let read = (None, crate::data::Reading::Whole);
        let data = source.read(read, None, Some(&folder), &SplitConfig::default(), 1);
        assert_eq!(asked_of_data(data.unwrap()), [""; 0]);
    }
}
