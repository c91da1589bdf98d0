//! Questions about tables that only a person can answer, at the doors that describe one and at those that read one by a
//! description: each asks in many spellings, writes nothing, and lets whoever types or writes what is printed pass.

#![allow(clippy::unwrap_used)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Rows of a hospital; `cell` gives what is between age and outcome.
fn rows(column: &str, count: usize, cell: impl Fn(usize) -> String) -> String {
    let mut text = format!("age,{column},outcome\n");
    for row in 0..count {
        let (age, outcome) = (20 + row * 17 % 31, ["home", "died"][row * row % 7 % 2]);
        writeln!(text, "{age},{},{outcome}", cell(row)).unwrap();
    }
    text
}

/// Two hospitals with the same kind of rows, and a scenario that has their columns as numbers.
struct Doors(PathBuf);

impl Doors {
    fn new(name: &str, column: &str, both: [String; 2]) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for (file, rows) in ["a.csv", "b.csv"].into_iter().zip(both) {
            fs::write(folder.join(file), rows).unwrap();
        }
        let doors = Self(folder);
        doors.describe(&format!(
            "name = 'doors'\nrounds = 1\n[task.table]\nmodel = 'logistic'\n\
             split = {{ validation = 0.0, test = 0.25 }}\n[task.table.data.rows]\n\
             files = [{{ path = 'a.csv' }}, {{ path = 'b.csv' }}]\n[task.table.schema]\nmin-rows = 10\n\
             target = {{ name = 'outcome', classes = ['home', 'died'] }}\n[[task.table.schema.feature]]\n\
             name = ['age', '{column}']\nmissing = 'median'\n[strategy]\nname = 'fedavg'\n\
             training = {{ epochs = 1, batch = 8, optimiser = {{ name = 'sgd', rate = 0.1 }} }}\n"
        ));
        doors
    }

    fn describe(&self, scenario: &str) {
        fs::write(self.0.join("s.toml"), scenario).unwrap();
    }

    fn scenario(&self) -> String {
        fs::read_to_string(self.0.join("s.toml")).unwrap()
    }

    /// Returns what a shell makes of the program with these words: its code, and what it says on standard error.
    fn typed(&self, words: &str) -> (i32, String) {
        let line = format!("'{}' {words}", env!("CARGO_BIN_EXE_rota"));
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).current_dir(&self.0);
        let output = shell.env_remove("ROTA_DATA").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    }

    fn simulates(&self) -> (i32, String) {
        self.typed("simulate s.toml --no-references --quiet")
    }

    /// Those that describe the table, with these further options.
    fn describing(&self, more: &str) -> [(i32, String); 2] {
        ["init a.csv b.csv", "federation new --table a.csv --name x"].map(|door| {
            self.typed(&format!(
                "{door} --target outcome --out new.toml --force{more}"
            ))
        })
    }

    /// Returns whether a door wrote the file that it was to write.
    fn wrote(&self) -> bool {
        let file = self.0.join("new.toml");
        let wrote = file.exists();
        let _ = fs::remove_file(file);
        wrote
    }

    /// The doors that describe the table ask so, and each answer lets pass.
    fn is_asked(&self, about: &str, answered: usize) {
        for (code, said) in self.describing("") {
            assert_eq!((code, self.wrote()), (2, false), "{said}");
            assert!(said.contains(about), "{about}: {said}");
            let clauses = said
                .trim()
                .split(['\n', ';', ','])
                .flat_map(|part| part.split(" or "));
            let answers: Vec<&str> = clauses
                .filter_map(|clause| {
                    Some(
                        &clause[clause
                            .find(" --")
                            .or_else(|| clause.starts_with("--").then_some(0))?..],
                    )
                })
                .collect();
            assert_eq!(answers.len(), answered, "{said}");
            for answer in answers {
                for (code, said) in self.describing(&format!(" {answer}")) {
                    assert_eq!(code, 0, "{answer}: {said}");
                }
                assert!(self.wrote());
            }
        }
    }
}

/// A laboratory value.
fn lab(row: usize) -> String {
    format!("{:.1}", 2.0 + (row * 37 % 53) as f64 / 20.0)
}

#[test]
fn odd_numbers_are_asked_about_wherever_a_table_is_read() {
    for (at, (odd, value)) in [
        ("9998", "9998"),
        ("-777.7", "-777.7"),
        ("88888", "88888"),
        ("4294967294", "4294967294"),
        ("-9e30", "-9000000000000000000000000000000"),
        ("=\"7777\"", "7777"),
    ]
    .into_iter()
    .enumerate()
    {
        let cell = |row: usize| match row % 20 {
            7 => odd.to_owned(),
            _ => lab(row),
        };
        let both = [rows("Kreatinin", 60, cell), rows("Kreatinin", 60, cell)];
        let doors = Doors::new(&format!("doors-odd-{at}"), "Kreatinin", both);
        doors.is_asked(&format!("rows hold {value}, unlike all other numbers"), 2);
        let (code, said) = doors.simulates();
        assert_eq!(code, 2, "{said}");
        // Both answers, each written where it is said to stand.
        let answers: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        let [missing, _, keep] = answers[..] else {
            panic!("{said}");
        };
        let scenario = doors.scenario();
        let names = format!("', names = {{ {missing} }} }}");
        let header = "[task.table.data.rows]\n";
        for answered in [
            scenario.replace("' }", &names),
            scenario.replace(header, &format!("{header}{keep}\n")),
        ] {
            doors.describe(&answered);
            let (code, said) = doors.simulates();
            assert_eq!(code, 0, "{answered}\n{said}");
        }
    }
}

#[test]
fn persons_numbers_are_asked_about_wherever_a_table_is_read() {
    type PersonsNumber = fn(usize) -> String;
    let forms: [(&str, PersonsNumber); 5] = [
        ("Vorgangszeichen", |person| {
            (31_000 + 7_411 * person).to_string()
        }),
        ("n.s.s.", |person| {
            (6_000_000_019_u64 + 104_651 * person as u64).to_string()
        }),
        ("legajo", |person| (person * 41 % 67 + 500).to_string()),
        ("quien", |person| (person + 1).to_string()),
        ("no°1", |person| {
            (20_000 + person * person * 53 % 79_999).to_string()
        }),
    ];
    for (at, (column, number)) in forms.into_iter().enumerate() {
        // The fate of each person is the toss of a coin, and each comes five times.
        let rows = |hospital: usize| {
            let mut text = format!("age,{column},outcome\n");
            for row in 0..300_usize {
                let person = hospital * 60 + row * 7919 % 60;
                let coin = ["home", "died"][((person * 40_503) >> 5) % 2];
                let (age, number) = (20 + row * 17 % 61, number(person));
                writeln!(text, "{age},{number},{coin}").unwrap();
            }
            text
        };
        let both = [rows(0), rows(1)];
        let doors = Doors::new(&format!("doors-persons-{at}"), column, both);
        doors.is_asked("behave like the number of a person or case", 4);
        let (code, said) = doors.simulates();
        assert_eq!(code, 2, "{said}");
        let answers: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
        let learn = answers.iter().find(|answer| answer.starts_with("answers"));
        let header = "[task.table.data.rows]\n";
        let answered = format!("{header}{}\n", learn.unwrap());
        doors.describe(&doors.scenario().replace(header, &answered));
        let (code, said) = doors.simulates();
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn a_unit_in_every_cell_is_named_wherever_a_table_is_read() {
    for (at, (unit, form)) in [
        ("μkat/l", "{} µkat/l"),
        ("Tage", "{}Tage"),
        ("ca.", "ca. {}"),
        ("10*9/L", "{} 10*9/L"),
        ("℃", "{}℃"),
        ("x ULN", "{} x ULN"),
    ]
    .into_iter()
    .enumerate()
    {
        let cell = |row: usize| form.replace("{}", &lab(row));
        let both = [rows("Wert", 60, cell), rows("Wert", 60, cell)];
        let doors = Doors::new(&format!("doors-unit-{at}"), "Wert", both);
        let about = format!("a number is needed, without \"{unit}\"");
        doors.is_asked(&about, 3);
        let (code, said) = doors.simulates();
        assert!(code != 0 && said.contains(&about), "{said}");
        let names = format!("', names = {{ units = {{ Wert = '{unit}' }} }} }}");
        doors.describe(&doors.scenario().replace("' }", &names));
        let (code, said) = doors.simulates();
        assert_eq!(code, 0, "{said}");
    }
}
