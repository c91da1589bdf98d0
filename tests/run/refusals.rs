//! Errors before a node starts: wrong configurations, data, ports, keys and input files.

use super::*;

#[test]
fn wrong_configurations_are_refused_with_file_line_and_key() {
    let demo = quick("run-wrong", 2);
    let config = &demo.configs[0];
    let original = fs::read_to_string(config).unwrap();
    let refused = |from: &str, to: &str| {
        fs::write(config, &original).unwrap();
        edit(config, from, to);
        let (code, said) = run(config);
        assert_eq!(code, 2, "{said}");
        said.replace(&config.display().to_string(), "node.toml")
    };
    let typo = refused("identity = ", "identiti = ");
    assert!(
        typo.contains("there is no key `identiti`; did you mean \"identity\"?"),
        "{typo}"
    );
    let stranger = refused("name = \"silo 2\"", "name = \"silo 7\"");
    let line = line_of(config, "silo 7");
    assert!(
        stranger.starts_with(&format!(
            "error: node.toml, line {line}: `name` is \"silo 7\", which is not in the roster"
        )),
        "{stranger}"
    );
    assert!(stranger.contains("there are silo 1, silo 2"), "{stranger}");
    let address = refused("listen = [\"/ip4/127.0.0.1", "listen = [\"/ip4/127.0.0");
    assert!(
        address.starts_with(&format!(
            "error: node.toml, line {}: `listen` holds",
            line_of(config, "listen")
        )),
        "{address}"
    );
    let device = refused("seed = ", "device = \"tch-cuda:9999\"\nseed = ");
    assert!(
        device.starts_with(&format!(
            "error: node.toml, line {}: `device`: tch-cuda:9999 is not ",
            line_of(config, "device")
        )),
        "{device}"
    );
    let share = refused("1 of 2", "3 of 2");
    assert!(
        share.contains("`share` is \"3 of 2\", it must be like \"3 of 8\""),
        "{share}"
    );
    let file = refused("../federation.toml", "../elsewhere.toml");
    assert!(
        file.contains("cannot read") && file.contains("elsewhere.toml"),
        "{file}"
    );

    fs::write(config, &original).unwrap();
    let identity = config.with_file_name("other.key");
    good(&["identity", "new", "--out", identity.to_str().unwrap()]);
    let key = refused("identity.key", "other.key");
    assert!(key.contains("is not in the roster of"), "{key}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&identity, fs::Permissions::from_mode(0o644)).unwrap();
        let open = refused("identity.key", "other.key");
        assert!(open.contains("can be read by others"), "{open}");
    }

    fs::write(config, &original).unwrap();
    let agreed = demo.folder.join("federation.toml");
    edit(&agreed, "blob-limit = ", "blob-limit = 9 # was ");
    let (code, said) = run(config);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("to another agreement"), "{said}");
    // Nobody signs it, and the line that is printed mends it.
    let words = ["federation", "sign", "--yes", "--config"];
    let refused = output(&[&words[..], &[config.to_str().unwrap()]].concat());
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let mut lines = said.lines().map(str::trim);
    let line = lines
        .find(|line| line.starts_with("blob-limit = "))
        .unwrap();
    edit(&agreed, "blob-limit = 9 # was ", &format!("{line} # was "));
    sign(config);
}

#[test]
fn missing_data_are_named() {
    let demo = Demo::new("run-data", &["--silos", "2"]);
    fs::remove_file(demo.configs[0].with_file_name("rows.csv")).unwrap();
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1);
    assert!(
        said.contains("cannot read") && said.contains("rows.csv"),
        "{said}"
    );
    // Columns are found by name, and none may be missing.
    let rows = demo.configs[1].with_file_name("rows.csv");
    let fewer: String = fs::read_to_string(&rows)
        .unwrap()
        .lines()
        .map(|line| line.split_once(',').unwrap().1.to_owned() + "\n")
        .collect();
    fs::write(&rows, fewer).unwrap();
    let (code, said) = run(&demo.configs[1]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("there is no column \"age\""), "{said}");
}

/// Every way in which an institution's file can differ from what was agreed: what is changed in
/// `rows.csv` or in `node.toml`, and what the node says instead of training.
#[test]
fn rows_that_are_not_as_agreed_are_refused_before_round_one() {
    let scenario = scenario(
        "run-rows",
        "name = 'rows'
rounds = 2
[task.table]
model = 'logistic'
[task.table.data.rows]
files = [{ path = 'one.csv' }, { path = 'two.csv' }]
[task.table.schema]
min-rows = 10
target = { name = 'outcome', classes = ['home', 'died'], positive = 'died' }
[[task.table.schema.feature]]
name = ['age', 'pulse']
[[task.table.schema.feature]]
name = 'ward'
type = 'category'
levels = ['general', 'intensive']
[strategy]
name = 'fedavg'
training = { epochs = 1, batch = 8, optimiser = { name = 'sgd', rate = 0.1 } }
",
    );
    let mut rows = String::from("age,pulse,ward,outcome\n");
    for row in 0..24 {
        let ward = ["general", "intensive"][row % 2];
        let outcome = ["home", "died"][usize::from(row % 3 == 0)];
        rows += &format!("{},{},{ward},{outcome}\n", 40 + row, 60 + 2 * row);
    }
    for file in ["one.csv", "two.csv"] {
        fs::write(scenario.with_file_name(file), &rows).unwrap();
    }
    let demo = Demo::new("run-rows", &["--scenario", scenario.to_str().unwrap()]);
    let config = &demo.configs[0];
    let file = config.with_file_name("rows.csv");
    let good = fs::read_to_string(&file).unwrap();
    let original = fs::read_to_string(config).unwrap();
    // The numbers that a demo writes are those that a model takes.
    assert!(
        good.starts_with("age,pulse,ward=intensive,target\n40,60,0,died\n"),
        "{good}"
    );
    let cases: &[(&str, &str, &str, &str)] = &[
        ("age,pulse", "years,pulse", "", "there is no column \"age\""),
        ("age,pulse", "AGE,pulse", "", "did you mean \"AGE\"?"),
        ("target", "label", "", "there is no column \"target\""),
        (
            "40,60,0,died",
            "forty,60,0,died",
            "",
            "line 2: column \"age\" holds \"forty\", but a number",
        ),
        (
            "40,60,0,died",
            "\"40,5\",60,0,died",
            "",
            "holds \"40,5\", but a number is needed",
        ),
        (
            "40,60,0,died",
            "inf,60,0,died",
            "",
            "holds \"inf\", but a number is needed",
        ),
        (
            "40,60,0,died",
            "40,60,0,1",
            "",
            "column \"target\" holds \"1\", but the agreed values are home, died",
        ),
        (
            "40,60,0,died",
            "40,60,0,yes",
            "",
            "holds \"yes\", but the agreed values are home, died",
        ),
        (
            "40,60,0,died",
            "40,60,0,died,9",
            "",
            "expected 4 cells, one per column, found 5",
        ),
        (
            "40,60,0,died",
            "40,60,0",
            "",
            "expected 4 cells, one per column, found 3",
        ),
        (
            "",
            "",
            "[data.rows.names]\ncolumns = { agee = \"years\" }\n",
            "did you mean \"age\"?",
        ),
        (
            "",
            "",
            "[data.rows.names]\ncodes = { wardd = { a = \"b\" } }\n",
            "the schema has no such column",
        ),
    ];
    for (from, to, more, expected) in cases {
        fs::write(
            &file,
            good.replacen(from, to, usize::from(!from.is_empty())),
        )
        .unwrap();
        let text = if more.is_empty() {
            original.clone()
        } else {
            original.replacen(
                "[data.rows.format]",
                &format!("{more}[data.rows.format]"),
                1,
            )
        };
        fs::write(config, text).unwrap();
        let (code, said) = run(config);
        assert_ne!(code, 0, "{to}: {said}");
        assert!(said.contains(expected), "{to} {more}: {said}");
    }
    fs::write(config, &original).unwrap();
    // A column that nobody agreed on.
    let more: String = good.lines().map(|line| format!("{line},7\n")).collect();
    fs::write(&file, more.replacen("target,7", "target,patient", 1)).unwrap();
    let (code, said) = run(config);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("the column \"patient\" is not in the schema: write the name under `ignore`"),
        "{said}"
    );
    // One class only, and too few rows.
    fs::write(&file, good.replace("home", "died")).unwrap();
    let (code, said) = run(config);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("every row is of the class \"died\""),
        "{said}"
    );
    let few: Vec<&str> = good.lines().take(2).collect();
    fs::write(&file, few.join("\n")).unwrap();
    let (code, said) = run(config);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("has 1 usable row, but the schema asks for at least 2"),
        "{said}"
    );
}

#[test]
fn a_port_in_use_is_named() {
    let demo = quick("run-port", 1);
    let config = fs::read_to_string(&demo.configs[0]).unwrap();
    let (_, rest) = config.split_once("/udp/").unwrap();
    let (port, _) = rest.split_once('/').unwrap();
    let _taken = UdpSocket::bind(format!("127.0.0.1:{port}")).unwrap();
    let (code, said) = run(&demo.configs[0]);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("/udp/{port}/")), "{said}");
    assert!(said.contains("another program uses this port"), "{said}");
}

#[test]
fn an_unresolved_host_name_is_reported_and_the_node_continues() {
    let demo = quick("run-resolve", 2);
    let peer = fs::read_to_string(&demo.configs[0]).unwrap();
    let (_, rest) = peer.split_once("[[peer]]").unwrap();
    let host = "addresses = [\"/ip4/127.0.0.1";
    assert!(rest.contains(host));
    edit(
        &demo.configs[0],
        host,
        "addresses = [\"/dns/nowhere.invalid",
    );
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..2).for_each(|node| nodes.start(node));
    // The other node connects to this one.
    nodes.until(0, "finished", 30);
    assert_eq!((nodes.code(0), nodes.code(1)), (0, 0), "{}", nodes.tails());
    let said = fs::read_to_string(log(&demo.configs[0])).unwrap();
    assert!(said.contains("nowhere.invalid does not resolve"), "{said}");
}

#[test]
fn two_processes_with_one_key_are_named() {
    let demo = quick("run-key", 2);
    let mut nodes = TestNodes::new(&demo.configs[..1], &[]);
    nodes.start(0);
    let weakness = nodes.until(0, "weakness", 20);
    let why = weakness["why"].as_str().unwrap();
    assert!(
        why.contains("no protection against a Byzantine member")
            && why.contains("no round becomes final"),
        "{why}"
    );
    nodes.until(0, "view", 20);
    let second = demo.configs[0].with_file_name("second.toml");
    fs::copy(&demo.configs[0], &second).unwrap();
    edit(&second, "state = \"state\"", "state = \"another\"");
    let (code, said) = run(&second);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("another process uses this institution's key"),
        "{said}"
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let state = demo.configs[0].with_file_name("state");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state), 0o700);
        for file in ["journal.redb", "lock", "federation.toml"] {
            assert_eq!(mode(&state.join(file)), 0o600, "{file}");
        }
        assert_eq!(mode(&demo.configs[0].with_file_name("identity.key")), 0o600);
        assert_eq!(mode(demo.configs[0].parent().unwrap()), 0o700);
    }
}

#[test]
fn names_that_steer_a_terminal_are_refused_in_the_agreement() {
    let demo = quick("run-names", 2);
    let agreed = demo.folder.join("federation.toml");
    let original = fs::read_to_string(&agreed).unwrap();
    let refused = |from: &str, to: &str| {
        fs::write(&agreed, original.replacen(from, to, 1)).unwrap();
        let (code, said) = run(&demo.configs[0]);
        assert_eq!(code, 2, "{said}");
        assert!(said.starts_with("error: "), "{said}");
        let steers = |c: char| c.is_control() && c != '\n';
        assert!(!said.chars().any(steers), "{said:?}");
        // Only the program's own line starts at the margin.
        assert!(
            said.lines().skip(1).all(|line| line.starts_with(' ')),
            "{said}"
        );
        assert!(said.len() < 5000, "{} bytes", said.len());
        said
    };
    let silo = "name = \"silo 2\"";
    let line = original.lines().position(|line| line == silo).unwrap() + 1;
    let escape = refused(silo, "name = \"\\u001b[2Jsilo 2\"");
    assert!(
        escape.contains(&format!(
            "line {line}: the name of member 2 contains the character U+001B"
        )),
        "{escape}"
    );
    let forged = refused(silo, "name = \"a\\nround 9   view 9   lead a   4 models\"");
    assert!(forged.contains("U+000A"), "{forged}");
    let long = refused(silo, &format!("name = \"{}\"", "x".repeat(200_000)));
    assert!(long.contains("has 200000 characters"), "{}", long.len());
    let turned = refused(silo, "name = \"a\\u202eb\"");
    assert!(turned.contains("U+202E"), "{turned}");
    assert!(refused(silo, "name = \" \"").contains("is empty"));
    assert!(refused(silo, "name = \"Silo  1\"").contains("two members are named"));
    let own = refused("name = \"quick\"", "name = \"q\\u009b2J\"");
    assert!(
        own.contains("the federation's name contains the character U+009B"),
        "{own}"
    );
    let key = refused("rounds = ", "\"\\u001b[2J\\nround 9 final\" = 1\nrounds = ");
    assert!(key.contains("there is no key"), "{key}");
}

/// Exit code and output of a command that must end by itself within seconds.
fn soon(arguments: &[&str], input: Stdio) -> (i32, String) {
    let mut child = rota(arguments)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (sender, receiver) = channel();
    let mut error = child.stderr.take().unwrap();
    thread::spawn(move || {
        let mut said = String::new();
        let read = error.read_to_string(&mut said);
        let _ = sender.send(read.map(|_| said));
    });
    let said = receiver.recv_timeout(Duration::from_secs(60));
    if said.is_err() {
        child.kill().unwrap();
    }
    let code = child.wait().unwrap().code();
    (code.unwrap(), said.unwrap().unwrap())
}

#[cfg(unix)]
#[test]
fn pipes_devices_folders_and_endless_files_are_refused_at_once() {
    let demo = Demo::new("run-pipes", &["--silos", "2"]);
    let pipe = demo.folder.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let large = demo.folder.join("large");
    File::create(&large).unwrap().set_len(1 << 40).unwrap();
    let kinds = [
        (pipe.to_str().unwrap(), "it is a pipe"),
        ("/dev/zero", "it is a device"),
        (demo.folder.to_str().unwrap(), "it is a folder"),
        (large.to_str().unwrap(), "it has more than"),
    ];
    let config = &demo.configs[0];
    let original = fs::read_to_string(config).unwrap();
    let (rows, key) = (
        config.with_file_name("rows.csv"),
        config.with_file_name("identity.key"),
    );
    fs::set_permissions(&large, fs::Permissions::from_mode(0o600)).unwrap();
    for (name, why) in kinds {
        let refused = |arguments: &[&str]| {
            let (code, said) = soon(arguments, Stdio::null());
            assert!(code == 1 || code == 2, "{arguments:?}: {code}");
            assert!(
                said.contains(why) && said.lines().count() == 1,
                "{arguments:?}: {said}"
            );
        };
        // A folder is that of a node.
        if why != "it is a folder" {
            refused(&["run", "--config", name]);
        }
        refused(&["simulate", name]);
        refused(&["federation", "demo", "run-pipes-other", "--scenario", name]);
        refused(&["identity", "show", name]);
        refused(&["solve", "coalitions", name, "--coalitions", "2"]);
        let node = ["run", "--config", config.to_str().unwrap()];
        for key in [
            "federation = \"../federation.toml\"",
            "identity = \"identity.key\"",
        ] {
            let (word, _) = key.split_once(' ').unwrap();
            fs::write(config, original.replace(key, &format!("{word} = {name:?}"))).unwrap();
            refused(&node);
        }
        fs::write(config, &original).unwrap();
        let kept = fs::read(&rows).unwrap();
        fs::remove_file(&rows).unwrap();
        std::os::unix::fs::symlink(name, &rows).unwrap();
        refused(&node);
        fs::remove_file(&rows).unwrap();
        fs::write(&rows, kept).unwrap();
    }
    assert!(key.exists());
    let zeros = File::open("/dev/zero").unwrap().into();
    let (code, said) = soon(&["solve", "coalitions", "-", "--coalitions", "2"], zeros);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("it has more than 256 MiB"), "{said}");
}
