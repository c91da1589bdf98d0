//! Ways in which commands find the node that they are about.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use super::cli::{folder, good};

/// Runs `rota` in a folder, with this value of `ROTA_CONFIG`.
fn rota(folder: &Path, variable: Option<&Path>, arguments: &[&str]) -> Output {
    let mut rota = Command::new(env!("CARGO_BIN_EXE_rota"));
    rota.args(arguments).current_dir(folder);
    match variable {
        Some(place) => rota.env("ROTA_CONFIG", place),
        None => rota.env_remove("ROTA_CONFIG"),
    };
    rota.output().unwrap()
}

#[test]
fn a_node_is_found_by_file_folder_environment_or_current_folder() {
    let demo = folder("place").join("demo");
    good(&["federation", "demo", demo.to_str().unwrap(), "--silos", "4"]);
    let nodes = std::fs::read_dir(&demo)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let node = nodes.into_iter().find(|path| path.is_dir()).unwrap();
    let file = node.join("node.toml");
    let named = |place: &Path| {
        let place = place.to_str().unwrap();
        rota(
            &demo,
            None,
            &["check", "--offline", "--json", "--config", place],
        )
    };
    let here = rota(&node, None, &["check", "--offline", "--json"]);
    assert!(
        String::from_utf8_lossy(&here.stdout).contains("verdict"),
        "{here:?}"
    );
    let elsewhere = |place: &Path| rota(&demo, Some(place), &["check", "--offline", "--json"]);
    for found in [
        named(&file),
        named(&node),
        elsewhere(&file),
        elsewhere(&node),
    ] {
        assert_eq!(found.status, here.status, "{found:?}");
        assert_eq!(found.stdout.len() > 100, here.stdout.len() > 100);
    }
}

#[test]
fn a_node_that_is_not_found_is_refused_with_the_places_searched() {
    let empty = folder("place-empty");
    let shown = empty.to_str().unwrap();
    let file = empty.join("node.toml");
    let file = file.to_str().unwrap();
    for (variable, arguments, looked) in [
        (
            None,
            &["status"][..],
            format!("in the current folder, {shown}"),
        ),
        (
            None,
            &["run", "--config", shown],
            format!("at {file} (from --config)"),
        ),
        (
            None,
            &["chain", "--config", file],
            format!("at {file} (from --config)"),
        ),
        (
            Some(&*empty),
            &["verify"],
            format!("at {file} (from ROTA_CONFIG)"),
        ),
        (
            None,
            &["federation", "changes"],
            "in the current folder".into(),
        ),
    ] {
        let refused = rota(&empty, variable, arguments);
        let said = String::from_utf8(refused.stderr).unwrap();
        // Where an option or a variable names a folder without a node, that one has to be changed.
        let remedy = match (arguments, variable) {
            (_, Some(_)) => "name another node with ROTA_CONFIG",
            (["status"] | ["federation", ..], None) => {
                "name the node with --config PATH or ROTA_CONFIG"
            }
            _ => "name another node with --config",
        };
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
        for part in [&*looked, remedy, "rota federation join"] {
            assert!(said.contains(part), "{arguments:?}: {said}");
        }
    }
}
