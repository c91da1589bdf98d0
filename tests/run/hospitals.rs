//! Three hospitals whose tables differ in names, codes, order and format agree, learn and come to one
//! chain, and none of them needs the file of another.

use super::nodes::{base_port, sign};
use super::stays::{SCENARIO, patients, table};
use super::*;

/// The file of each hospital as it happens to have it, and what its `node.toml` says about it.
fn file(hospital: usize) -> (&'static str, String, &'static str) {
    let rows = patients(hospital);
    match hospital {
        0 => ("north.csv", table(0), ""),
        // Other names, codes and order, semicolons, decimal commas, a number for each patient.
        1 => {
            let row = |(at, [age, pulse, ward, outcome]): (usize, [usize; 4])| {
                format!("{at};{outcome};{};{pulse},5;{age}\n", ["N", "ITS"][ward])
            };
            let rows: String = rows.enumerate().map(row).collect();
            (
                "sued.csv",
                format!("Fall;verstorben;Station;Puls;Alter\n{rows}"),
                "format = { delimiter = ';', decimal = ',' }
[data.rows.names]
ignore = ['Fall']
columns = { age = 'Alter', pulse = 'Puls', ward = 'Station', outcome = 'verstorben' }
codes = { ward = { N = 'general', ITS = 'intensive' }, outcome = { '0' = 'home', '1' = 'died' } }
",
            )
        }
        // Gaps, and columns in another order.
        _ => {
            let row = |(at, [age, pulse, ward, outcome]): (usize, [usize; 4])| {
                let pulse = match at % 10 {
                    0 => "NA".to_owned(),
                    _ => pulse.to_string(),
                };
                let (ward, outcome) = (["general", "intensive"][ward], ["home", "died"][outcome]);
                format!("{outcome},{ward},{pulse},{age}\n")
            };
            let rows: String = rows.enumerate().map(row).collect();
            ("east.csv", format!("outcome,ward,pulse,age\n{rows}"), "")
        }
    }
}

#[test]
fn hospitals_with_different_tables_learn_by_one_agreement() {
    let folder = nowhere("run-hospitals");
    fs::create_dir_all(&folder).unwrap();
    let scenario = folder.join("scenario.toml");
    fs::write(&scenario, SCENARIO).unwrap();
    let names = ["north", "south", "east"];
    let port = base_port();
    let mut members = Vec::new();
    let mut configs = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        let own = folder.join(name);
        fs::create_dir_all(&own).unwrap();
        let key = own.join("identity.key");
        let key = good(&["identity", "new", "--out", key.to_str().unwrap()]);
        members.push(format!("{name}={}=1000", key.trim()));
        let (file, rows, more) = file(at);
        fs::write(own.join(file), rows).unwrap();
        let peers: String = (0..3)
            .filter(|other| *other != at)
            .map(|other| {
                let (name, port) = (names[other], port + other as u16);
                format!("[[peer]]\nname = '{name}'\naddresses = ['/ip4/127.0.0.1/tcp/{port}']\n")
            })
            .collect();
        let config = own.join("node.toml");
        let text = format!(
            "federation = '../federation.toml'\nidentity = 'identity.key'\nstate = 'state'\n\
             listen = ['/ip4/127.0.0.1/tcp/{}']\n[data.rows]\nfiles = ['{file}']\n{more}{peers}",
            port + at as u16
        );
        fs::write(&config, text).unwrap();
        configs.push(config);
    }
    let out = folder.join("federation.toml");
    let out = out.to_str().unwrap();
    let scenario = scenario.to_str().unwrap();
    let mut new = vec!["federation", "new", "--scenario", scenario, "--out", out];
    for member in &members {
        new.extend(["--member", member]);
    }
    let made = good(&new);
    let id = made
        .lines()
        .find_map(|line| line.strip_prefix("federation "))
        .unwrap();
    let shown = good(&["federation", "show", out]);
    for said in [
        id,
        "to predict outcome: one of home, died",
        "ward: one of general, intensive",
        "age: a number, 0 to 300; the median where it is missing",
        "every row and every file of data",
        "a federation of fewer than four members has no protection",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    configs.iter().for_each(|config| sign(config));
    let mut nodes = TestNodes::new(&configs, &["--until-done"]);
    (0..3).for_each(|node| nodes.start(node));
    for (node, config) in configs.iter().enumerate() {
        let code = nodes.code(node);
        let said = fs::read_to_string(log(config)).unwrap();
        assert_eq!(code, 0, "{}: {said}", names[node]);
    }
    let chains = configs.iter().map(|config| {
        let state = config.with_file_name("state");
        good(&["chain", "--json", "--state", state.to_str().unwrap()])
    });
    let chains: Vec<String> = chains.collect();
    assert!(chains.iter().all(|chain| *chain == chains[0]), "{chains:?}");
    let chain: Value = serde_json::from_str(&chains[0]).unwrap();
    assert!(chains[0].contains("\"round\": 3"), "{chain:#}");
}

#[test]
fn an_agreement_that_cannot_be_made_states_what_to_change() {
    let folder = nowhere("run-new");
    fs::create_dir_all(&folder).unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let good = write("good.toml", SCENARIO);
    let bare = write(
        "bare.toml",
        "name = 'x'\nrounds = 2\n[task.table]\nmodel = 'logistic'\n[task.table.data.rows]\nfiles = [{ path = 'x.csv' }]\ncolumns = { target = 'y', classes = ['a', 'b'] }\n[strategy]\nname = 'fedavg'\ntraining = { epochs = 1, batch = 8, optimiser = { name = 'sgd', rate = 0.1 } }\n",
    );
    let twice = write("twice.toml", &SCENARIO.replace("'pulse']", "'age']"));
    let key = |digit: &str| format!("a={}", digit.repeat(64));
    let one = "north=8a88e3dd7409f195fd52db2d3cba5d72ca6709bf1d94121bf3748801b40f6f5c";
    let out = folder.join("federation.toml");
    let out = out.to_str().unwrap();
    let zeros = key("0");
    let cases: &[(&str, &[&str], &str)] = &[
        (&bare, &[one], "the task has no [task.table.schema]"),
        (&twice, &[one], "the column \"age\" is named twice"),
        (&good, &["north"], "must be NAME=KEY"),
        (&good, &["north=abc"], "must be NAME=KEY"),
        (&good, &[one, one], "north"),
        (&good, &[&zeros], "is not a usable Ed25519 key"),
        ("null", &[one], "which no institution brings"),
    ];
    for (scenario, members, expected) in cases {
        let mut arguments = vec!["federation", "new", "--scenario", scenario, "--out", out];
        members
            .iter()
            .for_each(|member| arguments.extend(["--member", member]));
        let refused = output(&arguments);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{members:?}: {said}");
        assert!(said.contains(expected), "{members:?}: {said}");
        assert!(!Path::new(out).exists());
    }
}
