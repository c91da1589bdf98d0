#![allow(clippy::unwrap_used)]

use super::*;
use crate::fixture::NOISED;
use learn::TaskStudy;
use task::TableTask;

fn agreement(name: &str) -> Agreement {
    let scenario = Scenario::load(name).unwrap();
    let study = scenario
        .task
        .study(scenario.silos, None, scenario.seed)
        .unwrap();
    let federation = Federation::of(&scenario, &study).unwrap();
    agreement_of(&scenario, &federation)
}

fn error(text: &str) -> String {
    let error = Agreement::parse("f.toml", text).err().unwrap();
    error.to_string()
}

#[test]
fn the_written_agreement_is_read_as_the_same_federation() {
    for name in ["diabetes", "null"] {
        let ours = agreement(name);
        let text = ours.to_toml().unwrap();
        let read = Agreement::parse("f.toml", &text).unwrap();
        assert_eq!(read.epoch.federation, ours.epoch.federation, "{name}");
        assert_eq!(read.epoch.id, ours.epoch.id);
        assert_eq!(read.seed, ours.seed);
        assert!(text.contains(&format!("{:#}", ours.epoch.federation)));
        // The id follows from the meaning, not from the text.
        let spaced = text.replace("straggler-timeout =", "# how long?\nstraggler-timeout   =");
        let spaced = Agreement::parse("f.toml", &spaced).unwrap();
        assert_eq!(spaced.epoch.federation, ours.epoch.federation);
        let other = Agreement::parse(
            "f.toml",
            &text.replace("keep-rounds = 3", "keep-rounds = 4"),
        )
        .unwrap();
        assert_ne!(other.epoch.federation, ours.epoch.federation);
    }
}

#[test]
fn no_device_is_part_of_the_agreement() {
    let scenario = Scenario::load("diabetes").unwrap();
    let text = |slots: Option<u16>, name| {
        let mut scenario = scenario.clone();
        scenario.device = learn::DeviceChoice {
            name,
            slots: slots.and_then(std::num::NonZero::new),
        };
        let study = scenario.study(None).unwrap();
        let federation = Federation::of(&scenario, &study).unwrap();
        agreement_of(&scenario, &federation).to_toml().unwrap()
    };
    let plain = text(None, learn::DeviceName::Cpu);
    assert!(!plain.contains("device"), "{plain}");
    for device in learn::devices() {
        if device.available {
            assert_eq!(text(Some(3), device.name), plain, "{}", device.name);
        }
    }
}

#[test]
fn errors_name_file_line_key_and_what_is_allowed() {
    let text = agreement("diabetes").to_toml().unwrap();
    let line =
        |text: &str, of: &str| text.lines().position(|line| line.starts_with(of)).unwrap() + 1;
    let few = text.replace("min-contributions = 5", "min-contributions = 2");
    assert_eq!(
        error(&few),
        format!(
            "f.toml, line {}: protocol: min-contributions is 2, it must be between 5 and 8 with 8 members",
            line(&few, "min-contributions")
        )
    );
    let start = text.replacen("start = \"", "start = \"x", 1);
    assert_eq!(
        error(&start),
        format!(
            "f.toml, line {}: `start` must be 64 hexadecimal digits",
            line(&start, "start")
        )
    );
    let typo = error(&text.replace("keep-rounds = 3", "kepe-rounds = 3"));
    assert!(
        typo.contains("there is no key `kepe-rounds`; did you mean"),
        "{typo}"
    );
    let key = text
        .lines()
        .find(|line| line.starts_with("key = "))
        .unwrap();
    let last = text
        .lines()
        .rfind(|line| line.starts_with("key = "))
        .unwrap();
    let twice = error(&text.replace(last, key));
    assert!(
        twice.contains("has the same key as another member"),
        "{twice}"
    );
    assert!(twice.starts_with("f.toml, line "), "{twice}");
    assert!(!text.contains("standardise = true"), "{text}");
    let scale = error(&text.replace("[strategy]\n", "[strategy]\nstandardise = true\n"));
    assert!(
        scale.contains("`standardise`: not an option of a strategy"),
        "{scale}"
    );
}

#[test]
fn folder_names_are_safe_and_different() {
    let all = ["age Q1 · sex A", "Köln/../x", "", "Age q1 sex a"];
    let name = |at| names(all.into_iter(), at);
    assert_eq!(name(0), "age-q1-sex-a");
    assert_eq!(name(1), "köln-x");
    assert_eq!(name(2), "silo-3-");
    assert_eq!(name(3), "silo-4-age-q1-sex-a");
}

#[test]
fn free_ports_differ_and_a_port_in_use_is_named() {
    let found = ports(None, 20).unwrap();
    assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let error = ports(Some(port), 1).unwrap_err().to_string();
    assert!(error.starts_with(&format!("port {port} is not free")));
}

/// Rows that are drawn have their part from the drawing.
#[test]
fn drawn_rows_of_an_institution_are_trained_on_as_simulated() {
    let config = "model = 'logistic'\nstandardise = 'none'\n\
        data.synthetic = { target = 'logistic', groups = 1, features = 2, rows = [20, 20] }";
    let task: TableTask = toml::from_str(config).unwrap();
    let set = task.tables(Some(2), None, 0).unwrap();
    let own = task.of_own_rows(&set);
    assert_eq!(own.data, task.data);
    let text = csv(&set, 1, &own.split);
    let rows = |part: &str| text.lines().filter(|line| line.starts_with(part)).count();
    assert!(text.starts_with("part,x1,x2,target\n"), "{text}");
    assert_eq!(rows("train,"), 20);
    assert_eq!(rows("test,"), set.silos[1].1.len() - 20);
}

/// A task whose files are in this folder, and its rows.
fn table(config: &str, folder: &Path) -> (TableTask, DataSet) {
    let mut task = TaskConfig::Table(toml::from_str(config).unwrap());
    task.resolve(folder);
    let TaskConfig::Table(task) = task else {
        panic!("a table")
    };
    let set = task.tables(None, None, 0).unwrap();
    (*task, set)
}

#[test]
fn rows_of_an_institution_keep_their_part_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "x,on,part,y\n1,1970-01-03,train,10\n2,1970-01-02,test,20\n";
    fs::write(folder.path().join("a.csv"), rows).unwrap();
    let config = "model = { linear = {} }\nsplit = { column = 'part', time = 'on' }\n\
                  data.rows = { files = [{ path = 'a.csv' }], columns = { target = 'y' } }";
    let (task, set) = table(config, folder.path());
    let own = task.of_own_rows(&set);
    assert_eq!(
        csv(&set, 0, &own.split),
        "part,on,x,target\ntrain,2,1,10\ntest,1,2,20\n"
    );
    // Where files give the part, a column does for the institution.
    let config = config.replace("column = 'part', time = 'on'", "test = 0.5");
    let config = config.replace("'a.csv' }", "'a.csv', part = 'train' }");
    let config = config.replace("target = 'y'", "target = 'y', drop = ['part', 'on']");
    let (task, set) = table(&config, folder.path());
    let own = task.of_own_rows(&set);
    assert_eq!(own.split.column.as_deref(), Some("part"));
    assert_eq!(
        csv(&set, 0, &own.split),
        "part,x,target\ntrain,1,10\ntrain,2,20\n"
    );
}

#[test]
fn institutions_hold_out_the_simulated_rows_by_a_local_secret() {
    let scenario = Scenario::parse("noised.toml", NOISED).unwrap();
    let study = scenario.study(None).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let places = |count: usize| {
        let listen = (0..count).map(|at| vec![format!("/ip4/127.0.0.1/tcp/{}", 4001 + at)]);
        Ok(NodePlaces::open(listen.collect()))
    };
    let (_, members) = files(folder.path(), None, &scenario, places).unwrap();
    let written = fs::read_to_string(folder.path().join(FEDERATION)).unwrap();
    assert!(written.contains("keyed = true"), "{written}");
    let mut moved = 0;
    for (member, silo) in members.iter().zip(&study.silos) {
        let institution = node::institution::Institution::load(&member.config).unwrap();
        let rows = institution.equipment(None).unwrap().plain.rows;
        assert_eq!(rows, silo.rows, "{}", silo.name);
        let key = split_key::beside(&institution.identity);
        fs::remove_file(&key).unwrap();
        let why = institution.equipment(None).err().unwrap().to_string();
        assert!(why.contains("split.key is missing"), "{why}");
        split_key::write(&institution.identity, &SplitKey::new([3; 32])).unwrap();
        let others = institution.equipment(None).unwrap().plain.rows;
        assert_eq!(others.train + others.test, rows.train + rows.test);
        moved += usize::from(others != rows);
    }
    assert!(moved > 1, "another secret holds out other rows");
    // Without the key the scenario says what to write.
    let drawn = NOISED.replace("split = { keyed = true }", "");
    let why = Scenario::parse("noised.toml", &drawn)
        .err()
        .unwrap()
        .to_string();
    assert!(why.contains("write `keyed = true`"), "{why}");
}

#[test]
fn rows_of_an_institution_keep_their_group() {
    let folder = tempfile::tempdir().unwrap();
    let rows = "x,patient,y\n1,b,10\n2,\"a,c\",20\n3,b,30\n";
    fs::write(folder.path().join("a.csv"), rows).unwrap();
    let config = "model = { linear = {} }\nsplit = { group = 'patient', keyed = true }\n\
                  data.rows = { files = [{ path = 'a.csv' }], columns = { target = 'y' } }";
    let (task, set) = table(config, folder.path());
    let own = task.of_own_rows(&set);
    assert_eq!(
        csv(&set, 0, &own.split),
        "patient,x,target\nb,1,10\n\"a,c\",2,20\nb,3,30\n"
    );
}
