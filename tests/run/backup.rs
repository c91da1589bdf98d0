//! A backup of an institution, and what becomes of it.

use ::rota::protocol;

use super::amended::{Heard, says};
use super::approvals::proposed;
use super::storage::{adopts, ended, kill, long};
use super::*;

/// The permissions of everything in a folder that other users have.
#[cfg(unix)]
fn open_to_others(folder: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let found = fs::symlink_metadata(&path).unwrap();
        if found.permissions().mode() & 0o077 != 0 {
            open.push(path.clone());
        }
        if found.is_dir() {
            open.extend(open_to_others(&path));
        }
    }
    open
}

fn backup(config: &Path, file: &Path) -> String {
    let config = config.to_str().unwrap();
    good(&["backup", file.to_str().unwrap(), "--config", config])
}

/// Exit code and log of `rota restore`.
fn restore(file: &Path, folder: &Path) -> (i32, String) {
    let (file, folder) = (file.to_str().unwrap(), folder.to_str().unwrap());
    // The agreement of a demo stands beside the folders of its silos.
    let output = output(&["restore", file, "--out", folder, "--outside"]);
    let log = text(&output.stderr);
    let log = log.split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code().unwrap(), log)
}

#[test]
fn a_node_without_its_disk_resumes_from_backup_and_other_chains() {
    let demo = long("run-backup", 150);
    let mut nodes = TestNodes::new(&demo.configs, &["--until-done"]);
    (0..4).for_each(|node| nodes.start(node));
    adopts(&nodes, 3, 3);
    let config = &demo.configs[3];
    let (home, state) = (config.parent().unwrap(), config.with_file_name("state"));
    let file = demo.folder.join("silo.backup.tar");
    // While the node runs.
    let said = backup(config, &file);
    for part in ["secret key", "what the node has signed (on purpose)"] {
        assert!(said.contains(part), "{said}");
    }
    adopts(&nodes, 3, 3);
    kill(&mut nodes, 3);
    // A state that has gone on since is never written over.
    let (code, said) = restore(&file, home);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("holds a state already") && said.contains("a backup never overwrites one"),
        "{said}"
    );
    let agreed = fs::read(demo.folder.join("federation.toml")).unwrap();
    fs::remove_dir_all(home).unwrap();
    let (code, said) = restore(&file, home);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        fs::read(demo.folder.join("federation.toml")).unwrap(),
        agreed
    );
    #[cfg(unix)]
    assert_eq!(open_to_others(home), [] as [PathBuf; 0]);
    let records = store::snapshot(&state).unwrap().records;
    assert_eq!(records, [JournalRecord::Lost]);
    // An interrupted restoration can be done again, before the node has run.
    fs::remove_file(config).unwrap();
    assert_eq!(restore(&file, home).0, 0);
    nodes.start(3);
    let waiting = nodes.until(3, "waiting", 10);
    assert!(
        waiting["why"].as_str().unwrap().contains("only listening"),
        "{waiting}"
    );
    nodes.until(3, "taking-part", 60);
    let all = ended(&mut nodes);
    assert!(all.iter().all(|chain| *chain == all[0]));
    // Once it has taken part again, the state is newer than the backup.
    let (code, said) = restore(&file, home);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("has adopted round 150"), "{said}");
    // The audit log goes on, and says where something is missing.
    let audit = good(&["audit", "--summary", "--state", state.to_str().unwrap()]);
    assert!(audit.contains("was put back at"), "{audit}");
}

#[test]
fn a_backup_of_a_later_agreement_resumes_under_that_agreement() {
    let demo = quick("run-backup-later", 4);
    let mut nodes = Heard::of(&demo.configs, &[]);
    (0..4).for_each(|node| nodes.nodes.start(node));
    nodes.until(3, "finished");
    let change = proposed(&demo, 0, 150);
    for node in 1..3 {
        nodes.until(node, "amendment");
        says(&demo.configs[node], &["approve", &change]);
    }
    assert_eq!(nodes.until(3, "epoch")["epoch"], 1);
    nodes.until(3, "adopted");
    let config = &demo.configs[3];
    let (home, state) = (config.parent().unwrap(), config.with_file_name("state"));
    let file = demo.folder.join("later.tar");
    backup(config, &file);
    nodes.nodes.kill(3);
    fs::remove_dir_all(home).unwrap();
    assert_eq!(restore(&file, home).0, 0);
    // Beside the loss, the proof of the change and nothing that the silo has signed itself.
    let records = store::snapshot(&state).unwrap().records;
    assert_eq!(records[0], JournalRecord::Lost);
    let [JournalRecord::Protocol(protocol::Record::Final { blocks, .. })] = &records[1..] else {
        panic!("{records:?}");
    };
    assert!(blocks[0].change().is_some());
    let said = good(&["check", "--offline", "--config", config.to_str().unwrap()]);
    assert!(said.contains("150 rounds"), "{said}");
    nodes.nodes.start(3);
    nodes.until(3, "taking-part");
    nodes.until(3, "adopted");
    let newest = |node: usize| {
        let state = demo.configs[node].with_file_name("state");
        let said = good(&["chain", "--json", "--state", state.to_str().unwrap()]);
        let chain: Value = serde_json::from_str(&said).unwrap();
        chain["blocks"].as_array().unwrap().clone()
    };
    let (own, other) = (newest(3), newest(0));
    // The newest ones may be on their way to the other node.
    let view = |block: &Value| block["view"].as_u64().unwrap();
    let reached = other.iter().map(view).max();
    let mut known = own.iter().filter(|block| Some(view(block)) <= reached);
    assert!(
        known.all(|block| other.contains(block)),
        "{own:?}\n{other:?}"
    );
    // The last of them may be an empty block.
    let rounds = own.iter().filter_map(|block| block["round"].as_u64());
    assert!(rounds.max() > Some(3), "{own:?}");
}

#[test]
fn a_backup_overwrites_no_files_and_names_another_federation() {
    let demo = quick("run-backup-refused", 4);
    let config = &demo.configs[0];
    let file = demo.folder.join("b.tar");
    backup(config, &file);
    let again = output(&[
        "backup",
        file.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
    ]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("a backup is not overwritten"));
    // Onto a machine with another configuration.
    let elsewhere = nowhere("run-backup-elsewhere").join("silo");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("node.toml"), "other = 1\n").unwrap();
    let (code, said) = restore(&file, &elsewhere);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("node.toml exists with other contents"),
        "{said}"
    );
    assert!(
        !elsewhere.join("identity.key").exists(),
        "nothing was written"
    );
    // Into the folder of a node of another federation.
    let other = long("run-backup-other", 4);
    let mut nodes = TestNodes::new(&other.configs[..1], &[]);
    nodes.start(0);
    nodes.until(0, "start", 10);
    nodes.kill(0);
    let home = other.configs[0].parent().unwrap();
    let (code, said) = restore(&file, home);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("of the federation"), "{said}");
    // Something that is no backup.
    let (code, said) = restore(config, &elsewhere);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("is not a whole backup"), "{said}");
}
