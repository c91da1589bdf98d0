//! Rare values in an institution's tables stay there: no name, no rare level and no date of birth is in anything that
//! leaves it or that a node writes or prints.

use super::nodes::base_port;
use super::*;

/// Sixty rows of one hospital with these columns beside age and outcome: a header, and the cells of a row.
fn table(hospital: usize, header: &str, cells: impl Fn(usize) -> String) -> String {
    let row = |row: usize| {
        let age = 30 + (7 * row + hospital) % 45;
        let outcome = ["home", "died"][usize::from((3 * row + hospital) % 5 > 2)];
        format!("{age},{},{outcome}\n", cells(row))
    };
    let rows: String = (0..60).map(row).collect();
    format!("age,{header},outcome\n{rows}")
}

/// The tables of three hospitals, with cells that begin with `Zqxrare` where a value is rare or says who
/// somebody is.
type Tables = fn(usize) -> String;

const TABLES: [(&str, Tables); 3] = [
    ("levels", |hospital| {
        table(hospital, "ward,patient", |row| {
            let ward = match row % 20 {
                0 => format!("Zqxrareward{hospital}{row}"),
                other => ["general", "intensive"][other % 2].to_owned(),
            };
            let letter = char::from(b'a' + (row % 24) as u8);
            format!("{ward},Zqxraregiven{letter} Zqxrarefamily{letter}{letter}")
        })
    }),
    ("doctors", |hospital| {
        table(hospital, "doctor,diagnosis,note", |row| {
            let diagnosis = match row % 30 {
                0 => format!("Zqxrarerare{hospital}"),
                other => ["angina", "asthma", "sepsis"][other % 3].to_owned(),
            };
            let doctor = [
                "Zqxraremeier",
                "Zqxrarehuber",
                "Zqxrareschmid",
                "Zqxrareweber",
            ][row % 4]
                .to_uppercase();
            format!("Dr. {doctor},{diagnosis},\"Zqxrare{row} seen at home, {hospital}\"")
        })
    }),
    ("addresses", |hospital| {
        table(hospital, "street,born,class", |row| {
            let class = if row < 4 {
                format!("Zqxrare{row}")
            } else {
                ["day", "night"][row % 2].into()
            };
            // Dates with marks that are found again.
            format!(
                "Zqxrarestrasse {row}, 19{}-0{}-1{}T23:59:5{hospital},{class}",
                40 + row % 60,
                1 + row % 9,
                row % 10
            )
            .replace("Zqxrarestrasse", "Zqxrarestr.")
        })
    }),
];

/// All files below a folder that are no tables.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false if path.extension().is_some_and(|end| end == "csv") => {}
            false => found.push(path),
        }
    }
}

#[test]
fn nothing_that_is_rare_leaves_an_institution() {
    for (name, tables) in TABLES {
        federation(name, tables);
    }
}

fn federation(name: &str, tables: Tables) {
    let folder = nowhere(&format!("run-rare-{name}"));
    fs::create_dir_all(&folder).unwrap();
    let place = |file: &str| folder.join(file).to_str().unwrap().to_owned();
    let agreement = place("federation.toml");
    let port = base_port();
    for hospital in 0..3 {
        fs::write(place(&format!("{hospital}.csv")), tables(hospital)).unwrap();
    }
    let table = place("0.csv");
    let drawn = ["--strategy", "fedavg", "--rounds", "2", "--name", name];
    let new = [
        "federation",
        "new",
        "--table",
        &table,
        "--target",
        "outcome",
        "--out",
        &agreement,
    ];
    let said = good(&[&new[..], &drawn].concat());
    // Said before it is written, with the rows of every level that is listed.
    assert!(said.contains("2 classes, with their rows: "), "{said}");
    let before = said.find("This stands in the agreement").unwrap();
    assert!(before < said.find("written: ").unwrap(), "{said}");
    let left: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("left out: "))
        .collect();
    let ignore: Vec<&str> = left
        .iter()
        .map(|line| line.split(',').next().unwrap())
        .collect();
    for hospital in 0..3 {
        let key = place(&format!("{hospital}.key"));
        let key = good(&["identity", "new", "--out", &key]);
        let address = format!("127.0.0.1:{}", port + hospital);
        let member = format!("hospital {hospital}");
        good(&[
            "federation",
            "add",
            &member,
            key.trim(),
            &address,
            "--rows",
            "2000",
            "--file",
            &agreement,
        ]);
    }
    let invitation = good(&["federation", "invite", "--file", &agreement]);
    let shown = good(&["federation", "show", &agreement]);
    let mut configs = Vec::new();
    for hospital in 0..3 {
        let (key, data) = (
            place(&format!("{hospital}.key")),
            place(&format!("{hospital}.csv")),
        );
        let out = place(&format!("{hospital}"));
        let mut join = vec![
            "federation",
            "join",
            invitation.trim(),
            "--identity",
            &key,
            "--data",
            &data,
        ];
        join.extend(["--out", &out, "--yes"]);
        ignore
            .iter()
            .for_each(|column| join.extend(["--ignore", column]));
        good(&join);
        configs.push(folder.join(hospital.to_string()).join("node.toml"));
    }
    let mut nodes = TestNodes::new(&configs, &["--until-done"]);
    (0..3).for_each(|node| nodes.start(node));
    for (node, config) in configs.iter().enumerate() {
        let code = nodes.code(node);
        assert_eq!(code, 0, "{}", fs::read_to_string(log(config)).unwrap());
    }
    let config = configs[0].to_str().unwrap();
    let state = configs[0].with_file_name("state");
    let state = state.to_str().unwrap();
    // The invitation is the text of the agreement, compressed.
    let mut said = vec![shown];
    for command in [
        &["chain", "--json", "--state", state][..],
        &["verify", "--state", state],
        &["audit", "--state", state],
        &["model", "list", "--config", config],
    ] {
        let output = output(command);
        said.push(text(&output.stdout) + &text(&output.stderr));
    }
    for text in &said {
        assert!(
            !text.contains("Zqxrare") && !text.contains("T23:59:5"),
            "{name}: {text}"
        );
    }
    // Agreement, consents, configurations, journals, models, audit logs, lines and logs.
    let mut all = Vec::new();
    files(&folder, &mut all);
    for file in &all {
        let bytes = fs::read(file).unwrap();
        for mark in [&b"Zqxrare"[..], b"ZQXRARE", b"T23:59:5"] {
            let found = bytes.windows(mark.len()).any(|window| window == mark);
            assert!(!found, "{name}: {} in {}", text(mark), file.display());
        }
    }
    assert!(all.iter().any(|file| file.ends_with("consent.toml")));
}
