//! Questions about rows that only a person can answer, at every door of a member and in many spellings. Whoever types
//! what is printed gets past it.

use std::fmt::Write as _;
use std::process::Command;

use super::*;

/// The first hospital's rows, with `odd` in place of the pulse of three of them.
fn with_pulses(odd: &str) -> String {
    let mut rows = String::new();
    for (at, line) in table(0).lines().enumerate() {
        match line.split(',').collect::<Vec<_>>()[..] {
            [age, _, ward, outcome] if at % 20 == 7 => {
                writeln!(rows, "{age},{odd},{ward},{outcome}").unwrap();
            }
            _ => writeln!(rows, "{line}").unwrap(),
        }
    }
    rows
}

/// Rows of people who come five times each, with the number that each has; nothing but who it is predicts the outcome.
fn visits(column: &str, number: impl Fn(usize) -> String) -> String {
    let mut rows = format!("age,{column},outcome\n");
    for row in 0..300_usize {
        let person = row * 7919 % 60;
        let (age, number) = (20 + row * 17 % 61, number(person));
        let coin = ["home", "died"][((person * 40_503) >> 5) % 2];
        writeln!(rows, "{age},{number},{coin}").unwrap();
    }
    rows
}

/// The answers in a question, each as it stands behind its clause.
fn answers(said: &str) -> Vec<String> {
    let clauses = said.trim().split(['\n', ';']);
    let answers = clauses.filter_map(|clause| Some(clause[clause.find(" --")?..].to_owned()));
    answers.collect()
}

/// Returns what a shell makes of the program with these words: its code, and what it says on standard error.
fn typed(words: &[&str], more: &str) -> (i32, String) {
    let program = crate::nodes::program();
    let words: String = words
        .iter()
        .fold(String::new(), |all, word| all + " '" + word + "'");
    let line = format!("'{}'{words}{more}", program.display());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &line])
        .current_dir(env!("CARGO_TARGET_TMPDIR"));
    let output = shell.output().unwrap();
    (output.status.code().unwrap(), text(&output.stderr))
}

/// A hospital that is asked about its rows.
struct AskedHospital {
    hospitals: JoiningHospitals,
    draft: String,
    token: String,
}

impl AskedHospital {
    fn new(name: &str, scenario: &str) -> Self {
        let hospitals = JoiningHospitals::new(name);
        fs::write(hospitals.folder.join("scenario.toml"), scenario).unwrap();
        let draft = hospitals.draft(3);
        let token = good(&["federation", "invite", "--file", &draft]);
        Self {
            token: token.trim().to_owned(),
            hospitals,
            draft,
        }
    }

    fn write(&self, rows: &str) {
        fs::write(self.hospitals.path(0, "rows.csv"), rows).unwrap();
    }

    /// Looks at the agreement with the rows.
    fn looks(&self, more: &str) -> (i32, String) {
        let rows = self.hospitals.path(0, "rows.csv");
        typed(&["federation", "check", &self.draft, "--data", &rows], more)
    }

    fn joins(&self, more: &str) -> (i32, String) {
        let words = self.hospitals.joining(0, &self.token);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        typed(&words, more)
    }

    fn signs(&self, more: &str) -> (i32, String) {
        let config = self.hospitals.path(0, "node.toml");
        typed(&["federation", "sign", "--yes", "--config", &config], more)
    }

    /// Returns what `rota check` finds bad about the rows; where that is something, it ends as wrong input does.
    fn bad(&self) -> Vec<String> {
        let config: PathBuf = self.hospitals.path(0, "node.toml").into();
        let (code, document, _) = checked(&config, &["--offline"]);
        let found = findings(&document, "rows");
        let bad = found.into_iter().filter(|(level, _)| level == "bad");
        let bad: Vec<String> = bad.map(|(_, said)| said).collect();
        assert_eq!(code == 2, !bad.is_empty(), "{document:#}");
        bad
    }

    fn consent(&self) -> Option<String> {
        fs::read_to_string(self.hospitals.path(0, "consent.toml")).ok()
    }

    /// Every door that writes nothing asks with so many answers, and lets whoever types one of them pass.
    fn is_asked(&self, about: &str, answered: usize) {
        for door in [Self::looks, Self::joins] {
            let before = self.consent();
            let (code, said) = door(self, "");
            assert_eq!(code, 2, "{said}");
            assert!(said.contains(about), "{about}: {said}");
            assert_eq!(self.consent(), before, "{said}");
            let answers = answers(&said);
            assert_eq!(answers.len(), answered, "{said}");
            for answer in answers {
                let (code, said) = door(self, &answer);
                assert_eq!(code, 0, "{answer}: {said}");
            }
        }
    }
}

#[test]
fn odd_numbers_are_asked_about_at_every_door_of_a_member() {
    let scenario = SCENARIO.replace("range = [0, 300]\n", "");
    let hospital = AskedHospital::new("join-doors", &scenario);
    for odd in ["7777", "-88.0", "65535", "99997", "-1e30"] {
        hospital.write(&with_pulses(odd));
        hospital.is_asked("3 rows hold ", 2);
        // It signed for other rows, and these came later.
        let config = hospital.hospitals.path(0, "node.toml");
        for file in ["node.toml", "consent.toml"] {
            fs::remove_file(hospital.hospitals.path(0, file)).unwrap();
        }
        fs::remove_dir_all(hospital.hospitals.path(0, "state")).unwrap();
        hospital.write(&table(0));
        assert_eq!(hospital.joins("").0, 0);
        hospital.write(&with_pulses(odd));
        let (signed, written) = (hospital.consent(), fs::read_to_string(&config).unwrap());
        let (code, said) = hospital.signs("");
        assert_eq!((code, hospital.consent()), (2, signed), "{said}");
        assert_eq!(fs::read_to_string(&config).unwrap(), written);
        assert!(
            hospital.bad()[0].contains("3 rows hold "),
            "{:?}",
            hospital.bad()
        );
        for answer in answers(&said) {
            let (code, said) = hospital.signs(&answer);
            assert_eq!(code, 0, "{answer}: {said}");
            assert!(hospital.bad().is_empty(), "{:?}", hospital.bad());
            fs::write(&config, &written).unwrap();
        }
    }
}

#[test]
fn numbers_of_persons_are_asked_about_at_every_door_of_a_member() {
    for (at, (column, number)) in [
        (
            "Aktenzeichen",
            (|person| format!("{}", 52_000 + 613 * person)) as fn(usize) -> String,
        ),
        ("episode ref", |person| {
            format!("{}", 7_000_000_001_usize + 97_711 * person)
        }),
        ("CIP", |person| format!("{}", (person * 37) % 61 + 300)),
        ("who", |person| format!("{}", person + 1)),
        ("nr=x", |person| {
            format!("{}", 10_000 + (person * person * 31) % 89_989)
        }),
    ]
    .into_iter()
    .enumerate()
    {
        let feature = format!(
            "[[task.table.schema.feature]]\nname = ['age', '{column}']\nmissing = 'median'\n"
        );
        let (start, rest) = SCENARIO
            .split_once("[[task.table.schema.feature]]\n")
            .unwrap();
        let (_, end) = rest.split_once("[strategy]").unwrap();
        let scenario = format!("{start}{feature}[strategy]{end}");
        let hospital = AskedHospital::new(&format!("join-persons-{at}"), &scenario);
        hospital.write(&visits(column, number));
        hospital.is_asked("behave like the number of a person or case", 1);
    }
}
