//! A fourth hospital comes late, with a table that hardly fits: it lacks a column, has decimal commas, other words, and
//! 999 where nobody knows an age. It joins with what it is told, and its join is played to the end.

use super::amended::{Heard, id, says};
use super::nodes::base_port;
use super::stays::{SCENARIO, patients};
use super::year::{institution, join};
use super::*;

/// The late hospital's table.
fn hardest() -> String {
    let row = |(at, [age, _, ward, outcome]): (usize, [usize; 4])| {
        let age = if at % 12 == 5 {
            "999".to_owned()
        } else {
            format!("{age},5")
        };
        let (ward, outcome) = (["N", "ITS"][ward], ["home", "died"][outcome]);
        format!("{age};{ward};{outcome}\n")
    };
    let rows: String = patients(5).enumerate().map(row).collect();
    format!("Alter;ward;outcome\n{rows}")
}

/// Arguments of `join` with the answers that only the hospital knows.
const ANSWERS: [&str; 14] = [
    "--column",
    "age",
    "Alter",
    "--absent",
    "pulse",
    "--code",
    "ward",
    "N",
    "general",
    "--code",
    "ward",
    "ITS",
    "intensive",
    "--missing",
];

#[test]
fn a_fourth_hospital_joins_late_with_the_hardest_table() {
    let folder = nowhere("run-late");
    fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let port = base_port();
    let address = |at: usize| format!("127.0.0.1:{}", usize::from(port) + at);
    let agreed = folder.join("federation.toml");
    let agreed = agreed.to_str().unwrap();
    let scenario = scenario.to_str().unwrap();
    good(&["federation", "new", "--scenario", scenario, "--out", agreed]);
    let names = ["north", "south", "east", "late"];
    let all: Vec<_> = (0..4)
        .map(|at| institution(&folder, names[at], at))
        .collect();
    for (at, (_, key)) in all[..3].iter().enumerate() {
        let address = address(at);
        let rows = ["--rows", "1000", "--file", agreed];
        good(&[&["federation", "add", names[at], key, &address][..], &rows].concat());
    }
    let invitation = good(&["federation", "invite", "--file", agreed]);
    for (own, _) in &all[..3] {
        let (code, _, said) = join(invitation.trim(), own, "stays.csv", &[]);
        assert_eq!(code, 0, "{said}");
    }
    let config = |at: usize| all[at].0.join("node").join("node.toml");
    let configs: Vec<_> = (0..4).map(config).collect();
    let mut nodes = Heard::of(&configs, &["--wait-for-admission"]);
    (0..3).for_each(|node| nodes.nodes.start(node));
    for node in 0..3 {
        nodes.until(node, "finished");
    }

    // Everything that does not fit is said at once, and nothing is signed.
    let own = &all[3].0;
    fs::write(own.join("stays.csv"), hardest()).unwrap();
    let first = configs[0].to_str().unwrap();
    let token = good(&["federation", "invite", "late", "--config", first]);
    let address = address(3);
    let about = ["--address", &address, "--rows", "60"];
    let (code, said, why) = join(token.trim(), own, "stays.csv", &about);
    assert_eq!(code, 1, "{said}\n{why}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "age",
        "pulse",
        "ITS",
        "--absent COLUMN",
        "--missing COLUMN TEXT",
    ] {
        assert!(words.contains(part), "{part}: {said}");
    }
    assert!(why.contains("Nothing was signed"), "{why}");
    assert!(!configs[3].with_file_name("consent.toml").exists());

    // It answers what only it knows, and joins.
    let answers = [&ANSWERS[..], &["age", "999"], &about].concat();
    let (code, said, why) = join(token.trim(), own, "stays.csv", &answers);
    assert_eq!(code, 0, "{said}\n{why}");
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("5 cells are missing and filled in"),
        "{said}"
    );
    let mut lines = said.lines().map(str::trim);
    let request = lines.find_map(|line| line.strip_prefix("rota federation admit "));
    let request = request.unwrap();
    nodes.nodes.start(3);
    nodes.until(3, "waits-for-admission");
    let said = says(&configs[0], &["admit", request]);
    let admission = id(&said[said.find("amendment ").unwrap()..]).to_owned();
    while nodes.until(1, "amendment")["amendment"] != admission.as_str() {}
    says(&configs[1], &["approve", &admission]);
    for node in 0..4 {
        assert_eq!(nodes.until(node, "epoch")["epoch"], 1);
    }
    nodes.until(3, "finished");

    // Its models are in the rounds that follow, and it predicts its own rows as they are.
    let now = fs::read_to_string(configs[3].with_file_name("state").join("in-force.toml")).unwrap();
    let more = own.join("more.toml");
    fs::write(&more, now.replace("\nrounds = 3", "\nrounds = 4")).unwrap();
    let said = says(&configs[3], &["change", more.to_str().unwrap()]);
    let change = id(&said[said.find("amendment ").unwrap()..]).to_owned();
    for (node, config) in configs.iter().enumerate().take(2) {
        while nodes.until(node, "amendment")["amendment"] != change.as_str() {}
        says(config, &["approve", &change]);
    }
    for node in 0..4 {
        while nodes.until(node, "epoch")["epoch"] != 2 {}
        while nodes.until(node, "adopted")["round"] != 4 {}
    }
    // A model is chosen after the last round, while other rounds may begin.
    while nodes.until(3, "serves")["round"] != 4 {}
    let state = configs[0].with_file_name("state");
    let chain = good(&["chain", "--state", state.to_str().unwrap()]);
    let with_it = |line: &str| line.trim().starts_with("in ") && line.contains("late");
    assert!(chain.lines().any(with_it), "{chain}");
    let late = configs[3].to_str().unwrap();
    let (rows, out) = (own.join("stays.csv"), own.join("predicted.csv"));
    let words = [rows.to_str().unwrap(), "--out", out.to_str().unwrap()];
    good(&[&["model", "predict"], &words[..], &["--config", late]].concat());
    let predicted = fs::read_to_string(out).unwrap();
    assert_eq!(predicted.lines().count(), 61, "{predicted}");
    let found = good(&["check", "--json", "--offline", "--config", late]);
    assert!(
        found.contains("this institution approved change 2, the agreement in force"),
        "{found}"
    );
}
