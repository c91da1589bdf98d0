//! An older copy of a state folder in the place of the newest one.

use super::storage::{adopts, ended, kill, long};
use super::*;

/// Copies the files of a folder, and of the folders in it. Sockets are left out.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&path, &copied);
        } else if kind.is_file() {
            fs::copy(&path, &copied).unwrap();
        }
    }
}

#[test]
fn an_older_state_folder_is_noticed_and_the_newest_one_resumes() {
    let demo = long("run-put-back", 150);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    adopts(&nodes, 3, 3);
    kill(&mut nodes, 3);
    let config = &demo.configs[3];
    let state = config.with_file_name("state");
    let (older, newest) = (
        state.with_extension("older"),
        state.with_extension("newest"),
    );
    copy(&state, &older);
    nodes.start(3);
    adopts(&nodes, 3, 6);
    kill(&mut nodes, 3);
    fs::rename(&state, &newest).unwrap();
    fs::rename(&older, &state).unwrap();
    for _ in 0..2 {
        // It says so at every start.
        nodes.start(3);
        let noticed = nodes.until(3, "journal-outdated", 30);
        let why = noticed["why"].as_str().unwrap();
        for part in [
            "is an older copy",
            "put the newest",
            "rota federation rekey",
        ] {
            assert!(why.contains(part), "{why}");
        }
        let waits = nodes.until(3, "waiting", 30);
        assert!(waits["why"].as_str().unwrap().contains(why), "{waits}");
        let said = good(&["status", "--config", config.to_str().unwrap()]);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = "takes part no: only listening: the journal is an older copy";
        assert!(said.contains(line), "{said}");
        kill(&mut nodes, 3);
    }
    fs::rename(&state, &older).unwrap();
    fs::rename(&newest, &state).unwrap();
    nodes.start(3);
    let all = ended(&mut nodes);
    assert!(all.iter().all(|chain| *chain == all[0]));
    let lines = fs::read_to_string(config.with_file_name("lines")).unwrap();
    assert_eq!(lines.matches("journal-outdated").count(), 2);
}
