//! The files for services and containers: checked by systemd itself where it is installed, and against
//! the program. The laboratory of rotating leads with real processes, and the report on their lines.
//! Federations with members behind NAT.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod alerts;
mod lab;
mod nat;
#[path = "../nodes/mod.rs"]
mod nodes;
#[path = "../skipped/mod.rs"]
mod skipped;
mod ssh;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn file(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/deploy");
    fs::read_to_string(folder.join(name)).unwrap()
}

/// `systemd-analyze` on the unit, with this program in place of the one that is not installed here.
/// None, with a message, where there is no systemd.
fn analyze(arguments: &[&str]) -> Option<Output> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deploy");
    fs::create_dir_all(&folder).unwrap();
    let unit: PathBuf = folder.join("rota@.service");
    let installed = "rota";
    let text = file("rota@.service");
    assert!(text.contains(&format!("ExecStart={installed} ")));
    let here = text.replace(
        &format!("ExecStart={installed}"),
        &format!("ExecStart={}", env!("CARGO_BIN_EXE_rota")),
    );
    fs::write(&unit, here).unwrap();
    let output = Command::new("systemd-analyze")
        .args(arguments)
        .arg(&unit)
        .output();
    if output.is_err() {
        skipped::skipped("there is no systemd-analyze here");
    }
    output.ok()
}

#[test]
fn systemd_accepts_the_unit_and_calls_it_well_protected() {
    if let Some(verified) = analyze(&["verify"]) {
        let said = String::from_utf8_lossy(&verified.stderr).into_owned();
        assert!(verified.status.success() && said.is_empty(), "{said}");
    }
    // 0 is closed, 100 is open.
    if let Some(rated) = analyze(&["security", "--offline=true", "--threshold=20"]) {
        let said = String::from_utf8_lossy(&rated.stdout).into_owned();
        assert!(rated.status.success(), "{said}");
    }
}

#[test]
fn systemd_accepts_the_units_of_nightly_predictions() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("deploy-nightly");
    fs::create_dir_all(&folder).unwrap();
    let names = [
        "rota-model@.service",
        "rota-predict@.service",
        "rota-predict@.timer",
    ];
    let written = names.map(|name| {
        let here = file(name).replace(
            "ExecStart=rota ",
            concat!("ExecStart=", env!("CARGO_BIN_EXE_rota"), " "),
        );
        let path = folder.join(name);
        fs::write(&path, here).unwrap();
        path
    });
    let verified = Command::new("systemd-analyze")
        .arg("verify")
        .args(&written)
        .output();
    let Ok(verified) = verified else {
        return skipped::skipped("there is no systemd-analyze here");
    };
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    assert!(verified.status.success() && said.is_empty(), "{said}");
}

/// The options in the units are those of the program, and of the node's folders the units of predictions name
/// the configuration alone, for the user that owns it.
#[test]
fn the_units_of_nightly_predictions_start_the_program_as_it_is() {
    for (name, command) in [
        ("rota-model@.service", "export"),
        ("rota-predict@.service", "predict"),
    ] {
        let unit = file(name);
        let start = unit
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="));
        let words: Vec<&str> = start.unwrap().split_whitespace().collect();
        assert_eq!(words[1..3], ["model", command]);
        let help = Command::new(env!("CARGO_BIN_EXE_rota"))
            .args(["model", command, "--help"])
            .output()
            .unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(
                help.contains(option),
                "rota model {command} has no {option}"
            );
        }
    }
    let predict = file("rota-predict@.service");
    assert!(
        predict.contains("\nSuccessExitStatus=4\n") && predict.contains("\nUser=rota-predict\n")
    );
    assert!(
        !predict.contains("/var/lib/rota/"),
        "nothing of the node's state"
    );
}

/// The value of a key of the unit.
fn value(key: &str) -> String {
    let unit = file("rota@.service");
    let mut lines = unit.lines();
    let found = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {key}")).to_owned()
}

#[test]
fn the_unit_starts_the_program_and_restarts_only_where_it_helps() {
    let start = value("ExecStart");
    let words: Vec<&str> = start.split_whitespace().collect();
    assert_eq!(words[1], "run");
    let help = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["run", "--help"])
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for option in words.iter().filter(|word| word.starts_with("--")) {
        assert!(help.contains(option), "rota run has no {option}");
    }
    // A configuration that has to be changed ends the program with the code that prevents a restart.
    let missing = Command::new(env!("CARGO_BIN_EXE_rota"))
        .args(["run", "--config", "no-such-silo.toml"])
        .output()
        .unwrap();
    let code = missing.status.code().unwrap().to_string();
    assert_eq!(value("RestartPreventExitStatus"), code);
    assert_eq!(value("Restart"), "on-failure");
    assert_eq!(value("StateDirectoryMode"), "0700");
    // Nodes of several federations share a ledger, which is in none of their state folders.
    assert_eq!(value("StateDirectory"), "rota/%i rota-ledgers");
    // With it the program could not read how much memory there is, and would take no connections.
    assert!(
        !file("rota@.service")
            .lines()
            .any(|line| line.starts_with("ProcSubset"))
    );
}

#[test]
fn the_container_is_built_from_here_and_holds_only_the_program() {
    let container = file("Containerfile");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cargo = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut lines = cargo.lines();
    let version = lines.find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.unwrap().trim_matches('"');
    let image = format!("FROM docker.io/library/rust:{version}.0-alpine AS build");
    assert!(container.contains(&image), "{image}");
    assert!(cargo.contains("[profile.dist]") && container.contains("--profile dist"));
    // All that is copied for the build exists.
    let copied = container
        .lines()
        .filter_map(|line| line.strip_prefix("COPY "));
    for line in copied.filter(|line| !line.starts_with("--from")) {
        let names: Vec<&str> = line.split(' ').collect();
        for name in &names[..names.len() - 1] {
            assert!(root.join(name).exists(), "{name}");
        }
    }
    assert!(container.contains(" --bin rota-node "));
    // Nothing but the program is in the last stage.
    let last = container.rsplit("FROM ").next().unwrap();
    assert!(last.starts_with("scratch\n"));
    assert_eq!(
        last.lines()
            .filter(|line| line.starts_with("COPY "))
            .count(),
        1
    );
}

/// The package for Debian is made of the files that node/Cargo.toml names.
#[test]
fn the_debian_package_has_every_unit_and_only_existing_files() {
    // The package is that of the institution's program: it has nothing of the laboratory.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("node");
    let cargo = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let cargo: toml::Table = cargo.parse().unwrap();
    let deb = &cargo["package"]["metadata"]["deb"];
    let assets = deb["assets"].as_array().unwrap().iter();
    let sources: Vec<&str> = assets.map(|asset| asset[0].as_str().unwrap()).collect();
    for source in &sources {
        let built = *source == "target/release/rota-node";
        assert!(built || root.join(source).is_file(), "{source}");
    }
    let scripts = root.join(deb["maintainer-scripts"].as_str().unwrap());
    for entry in fs::read_dir(root.join("../examples/deploy")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_unit = name.ends_with(".service") || name.ends_with(".timer");
        let packed = sources.contains(&format!("../examples/deploy/{name}").as_str());
        assert!(!is_unit || packed, "{name} is not in the package");
    }
    // The users of the units are those that are made, and the scripts are of a plain shell.
    let made = fs::read_to_string(scripts.join("postinst")).unwrap();
    let users = made
        .lines()
        .find_map(|line| line.trim().strip_prefix("for user in "));
    let users: Vec<&str> = users.unwrap().trim_end_matches("; do").split(' ').collect();
    for unit in [
        "rota@.service",
        "rota-model@.service",
        "rota-predict@.service",
    ] {
        let text = file(unit);
        let user = text.lines().find_map(|line| line.strip_prefix("User="));
        assert!(users.contains(&user.unwrap()), "{unit}");
    }
    for script in ["postinst", "postrm"] {
        let read = Command::new("sh")
            .arg("-n")
            .arg(scripts.join(script))
            .output();
        assert!(read.unwrap().status.success(), "{script}");
    }
}
