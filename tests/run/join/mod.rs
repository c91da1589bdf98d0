//! Steps by which an agreement comes about: keys, draft, members, invitation, consent, check, run. Every command is the
//! program's, and no institution reads the file of another.

#![allow(clippy::unwrap_used)]

mod doctor;
#[cfg(unix)]
mod doors;
mod refusals;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::nodes::{TestNodes, base_port, good, nowhere, output, text};
use crate::stays::{SCENARIO, patients, table};
use serde_json::Value;

/// The hospitals' names.
const NAMES: [&str; 3] = ["north", "south", "east coast"];

/// The file of each hospital as it happens to have it.
fn rows(hospital: usize) -> String {
    let rows = patients(hospital).enumerate();
    let words =
        |ward: usize, outcome: usize| (["general", "intensive"][ward], ["home", "died"][outcome]);
    match hospital {
        0 => table(0),
        // Other names, codes and order, semicolons, decimal commas, a number for each patient.
        1 => {
            let row = |(at, [age, pulse, ward, outcome]): (usize, [usize; 4])| {
                format!("{at};{outcome};{};{pulse},5;{age}\n", ["N", "ITS"][ward])
            };
            format!(
                "Fall;verstorben;Station;Puls;Alter\n{}",
                rows.map(row).collect::<String>()
            )
        }
        // Gaps, and columns in another order.
        _ => {
            let row = |(at, [age, pulse, ward, outcome]): (usize, [usize; 4])| {
                let pulse = match at % 10 {
                    0 => "NA".to_owned(),
                    _ => pulse.to_string(),
                };
                let (ward, outcome) = words(ward, outcome);
                format!("{outcome},{ward},{pulse},{age}\n")
            };
            format!(
                "outcome,ward,pulse,age\n{}",
                rows.map(row).collect::<String>()
            )
        }
    }
}

/// Translation of the second hospital's names.
const NAMES_OF_SOUTH: [(&str, &str); 3] = [
    (
        "columns = {}",
        "columns = { age = 'Alter', pulse = 'Puls', ward = 'Station', outcome = 'verstorben' }",
    ),
    (
        "codes = {}",
        "codes = { ward = { N = 'general', ITS = 'intensive' }, outcome = { '0' = 'home', '1' = 'died' } }",
    ),
    ("ignore = []", "ignore = ['Fall']"),
];

/// Three hospitals that have made keys and files, each in a folder of its own.
struct JoiningHospitals {
    folder: PathBuf,
    port: u16,
    /// The lines `NAME KEY ADDRESS` that they sent to the first.
    lines: Vec<String>,
}

impl JoiningHospitals {
    fn new(name: &str) -> Self {
        let folder = nowhere(name);
        let port = base_port();
        let mut lines = Vec::new();
        for (at, name) in NAMES.into_iter().enumerate() {
            let own = folder.join(at.to_string());
            fs::create_dir_all(&own).unwrap();
            fs::write(own.join("rows.csv"), rows(at)).unwrap();
            let key = own.join("identity.key");
            let address = format!("127.0.0.1:{}", port + at as u16);
            let line = good(&[
                "identity",
                "new",
                "--out",
                key.to_str().unwrap(),
                "--name",
                name,
                "--address",
                &address,
                "--rows",
                "1000",
            ]);
            lines.push(line.trim().to_owned());
        }
        fs::write(folder.join("scenario.toml"), SCENARIO).unwrap();
        Self {
            folder,
            port,
            lines,
        }
    }

    fn path(&self, at: usize, file: &str) -> String {
        let path = self.folder.join(at.to_string()).join(file);
        path.to_str().unwrap().to_owned()
    }

    /// The first hospital's draft, with the first `members` of the three.
    fn draft(&self, members: usize) -> String {
        let scenario = self.folder.join("scenario.toml");
        let file = self.path(0, "draft.toml");
        let made = good(&[
            "federation",
            "new",
            "--scenario",
            scenario.to_str().unwrap(),
            "--out",
            &file,
            "--force",
        ]);
        assert!(
            made.contains("not complete yet") && made.contains("rota federation add"),
            "{made}"
        );
        for at in 0..members {
            self.add(&file, at);
        }
        file
    }

    /// Adds a hospital by the line that it sent.
    fn add(&self, file: &str, at: usize) -> String {
        let line = &self.lines[at];
        let (name, rest) = match line.strip_prefix('\'') {
            Some(quoted) => quoted.split_once("' ").unwrap(),
            None => line.split_once(' ').unwrap(),
        };
        assert_eq!(name, NAMES[at]);
        let words: Vec<_> = rest.split(' ').collect();
        good(&[
            "federation",
            "add",
            name,
            words[0],
            words[1],
            words[2],
            words[3],
            "--file",
            file,
        ])
    }

    /// The arguments with which a hospital joins.
    fn joining(&self, at: usize, token: &str) -> Vec<String> {
        let words = [
            "federation",
            "join",
            token,
            "--identity",
            &self.path(at, "identity.key"),
            "--data",
            &self.path(at, "rows.csv"),
            "--out",
            &self.path(at, ""),
            "--yes",
        ];
        words.map(str::to_owned).to_vec()
    }

    fn join(&self, at: usize, token: &str) -> std::process::Output {
        let words = self.joining(at, token);
        output(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// All three have joined; the second translates its names first.
    fn joined(name: &str) -> Self {
        let hospitals = Self::new(name);
        let draft = hospitals.draft(3);
        let token = good(&["federation", "invite", "--file", &draft]);
        for at in [0, 2] {
            let joined = hospitals.join(at, &token);
            assert!(joined.status.success(), "{}", text(&joined.stderr));
        }
        assert!(!hospitals.join(1, &token).status.success());
        hospitals.translate();
        let config = hospitals.path(1, "node.toml");
        good(&["federation", "sign", "--yes", "--config", &config]);
        hospitals
    }

    /// Writes the second hospital's names into its node.toml.
    fn translate(&self) {
        let config = self.path(1, "node.toml");
        let mut text = fs::read_to_string(&config).unwrap();
        for (from, to) in NAMES_OF_SOUTH {
            assert!(text.contains(from), "{text}");
            text = text.replacen(from, to, 1);
        }
        fs::write(&config, text).unwrap();
    }

    fn configs(&self) -> Vec<PathBuf> {
        (0..3).map(|at| self.path(at, "node.toml").into()).collect()
    }
}

/// Exit code, document and errors of `rota check --json`.
fn checked(config: &Path, more: &[&str]) -> (i32, Value, String) {
    let config = config.to_str().unwrap();
    let mut words = vec!["check", "--json", "--timeout", "2s", "--config", config];
    words.extend(more);
    let found = output(&words);
    let error = text(&found.stderr);
    let document = serde_json::from_slice(&found.stdout).unwrap_or(Value::Null);
    (found.status.code().unwrap(), document, error)
}

/// The findings of a topic: level, text and remedy.
fn findings(document: &Value, topic: &str) -> Vec<(String, String)> {
    let all = document["findings"].as_array().unwrap();
    all.iter()
        .filter(|finding| finding["topic"] == topic)
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            (
                text("level"),
                format!("{} → {}", text("text"), text("remedy")),
            )
        })
        .collect()
}

#[test]
fn three_hospitals_agree_and_learn_without_each_others_files() {
    let hospitals = JoiningHospitals::new("join-flow");
    // One line for each, which names itself, its key and its address.
    let address = format!(" 127.0.0.1:{} --rows 1000", hospitals.port + 2);
    let line = &hospitals.lines[2];
    assert!(
        line.starts_with("'east coast' ") && line.ends_with(&address),
        "{line}"
    );
    let draft = hospitals.draft(2);
    let early = good(&["federation", "show", &draft]);
    assert!(
        early.contains("stays, a federation of 2 members"),
        "{early}"
    );
    let added = hospitals.add(&draft, 2);
    assert!(added.contains("added: east coast"), "{added}");
    let id = added
        .lines()
        .find_map(|line| line.strip_prefix("federation "));
    let id = id.unwrap().to_owned();
    let token = good(&["federation", "invite", "--file", &draft]);
    assert!(
        token.starts_with("rota-invite-1-") && token.lines().count() == 1,
        "{token}"
    );

    // The first and the third have files that fit.
    for at in [0, 2] {
        let joined = hospitals.join(at, &token);
        let said = text(&joined.stdout);
        assert!(joined.status.success(), "{}", text(&joined.stderr));
        for part in [
            format!("id {id}"),
            "What leaves it, and who sees it:".into(),
            format!("The rows of {}, read by the agreement:", NAMES[at]),
            format!("signed as {} on 20", NAMES[at]),
            "rota run --config".into(),
        ] {
            assert!(said.contains(&part), "{part}: {said}");
        }
    }
    // The second has other names: it gets its files, and signs when they are translated.
    let joined = hospitals.join(1, &token);
    let why = text(&joined.stderr);
    assert_eq!(joined.status.code(), Some(1), "{why}");
    assert!(
        why.contains("there is no column \"age\"") && why.contains("Nothing was signed"),
        "{why}"
    );
    let configs = hospitals.configs();
    let refused = output(&["run", "--config", configs[1].to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let why = text(&refused.stderr);
    assert!(why.contains("has not signed the agreement yet"), "{why}");
    hospitals.translate();
    good(&[
        "federation",
        "sign",
        "--yes",
        "--config",
        configs[1].to_str().unwrap(),
    ]);

    // The consents come back, and the agreement lists who signed.
    for at in [0, 1] {
        let to = hospitals.path(0, &format!("consent-{at}.toml"));
        fs::copy(hospitals.path(at, "consent.toml"), to).unwrap();
    }
    let shown = good(&["federation", "show", &draft]);
    for part in [
        "signed by north on",
        "signed by south on",
        "no signed consent here of east coast",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let config = configs[1].to_str().unwrap();
    let fits = good(&["federation", "check", &draft, "--config", config]);
    for part in [
        &id,
        "computing it again gives the same",
        "60 rows fit the schema, at least 20",
    ] {
        assert!(fits.contains(part), "{part}: {fits}");
    }

    // Two run, the third looks first: both answer it, with the same agreement.
    let mut nodes = TestNodes::new(&configs, &[]);
    (0..2).for_each(|node| nodes.start(node));
    let end = Instant::now() + Duration::from_secs(60);
    let mut up = [false; 3];
    while !(up[0] && up[1]) {
        let said = nodes.next(end);
        let said = said.unwrap_or_else(|| panic!("the first two do not meet\n{}", nodes.tails()));
        up[said.node] |= said.line["event"] == "peer-up";
    }
    let (code, found, error) = checked(&configs[2], &[]);
    assert_eq!(code, 0, "{error} {found:#}");
    assert_eq!(found["running"], false);
    let peers = findings(&found, "peers");
    assert_eq!(peers.len(), 4, "{peers:?}");
    for (level, said) in &peers {
        assert_eq!(level, "good", "{said}");
        assert!(said.contains("right key, same agreement"), "{said}");
    }
    let clock = findings(&found, "clock");
    assert!(
        clock[0].1.contains("with 2 members that answered"),
        "{clock:?}"
    );
    let classes = findings(&found, "rows");
    let said = |what: &str| classes.iter().any(|(_, line)| line.contains(what));
    assert!(
        said("classes: home") && said("ward: general 40, intensive 20"),
        "{classes:?}"
    );
    let firewall = found["firewall"].as_str().unwrap();
    let own = format!("UDP {}", hospitals.port + 2);
    assert!(
        firewall.contains(&own) && firewall.lines().count() == 1,
        "{firewall}"
    );
    let owner = found["owner"].to_string();
    assert!(owner.contains("What others could learn from it"), "{owner}");

    // It runs, too, and all learn; a check meanwhile disturbs nothing and sees the same.
    nodes.start(2);
    nodes.until(2, "finished", 120);
    let (code, found, error) = checked(&configs[2], &[]);
    assert_eq!(code, 0, "{error} {found:#}");
    assert_eq!(found["running"], true);
    let met = findings(&found, "peers");
    assert!(
        met.iter()
            .all(|(level, said)| level == "good" && said.contains("same agreement")),
        "{met:?}"
    );
    (0..3).for_each(|node| nodes.terminate(node));
    for node in 0..3 {
        assert_eq!(nodes.code(node), 0, "{}", nodes.tails());
    }
    let chains = configs.iter().map(|config| {
        let state = config.with_file_name("state");
        good(&["chain", "--json", "--state", state.to_str().unwrap()])
    });
    let chains: Vec<String> = chains.collect();
    assert!(chains[0].contains("\"round\": 3"), "{}", chains[0]);
    assert!(chains.iter().all(|chain| *chain == chains[0]), "{chains:?}");
    // The running nodes had nothing to say about the checks.
    for config in &configs {
        let lines = fs::read_to_string(config.with_file_name("lines")).unwrap();
        for event in ["stranger", "other-agreement"] {
            assert!(!lines.contains(event), "{event}: {lines}");
        }
    }
}
