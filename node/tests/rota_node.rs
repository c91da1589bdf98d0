//! The program `rota-node`: an institution's commands, and nothing of the laboratory.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn rota_node(arguments: &[&str]) -> Output {
    let program = Command::new(env!("CARGO_BIN_EXE_rota-node"))
        .args(arguments)
        .env_remove("RUST_LOG")
        .output();
    program.unwrap()
}

#[test]
fn an_institution_has_its_nodes_commands_and_no_laboratory() {
    let help = String::from_utf8(rota_node(&["--help"]).stdout).unwrap();
    let listed = |command: &str| {
        help.lines()
            .any(|line| line.split_whitespace().next() == Some(command))
    };
    for command in [
        "run",
        "check",
        "status",
        "watch",
        "chain",
        "verify",
        "audit",
        "model",
        "identity",
        "ledger",
        "backup",
        "restore",
        "recover",
        "federation",
        "learner",
        "devices",
        "init",
    ] {
        assert!(listed(command), "{command} is missing:\n{help}");
    }
    for command in [
        "simulate",
        "compare",
        "lab",
        "advise",
        "report",
        "solve",
        "scenarios",
    ] {
        assert!(!listed(command), "{command} is of the laboratory:\n{help}");
        let refused = rota_node(&[command]);
        assert_eq!(refused.status.code(), Some(2), "{command}");
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("commands of the whole program, rota"),
            "{said}"
        );
    }
}

#[test]
fn a_key_is_made_and_shown_and_what_fails_states_why() {
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("identity.key");
    let key = key.to_str().unwrap();
    let made = rota_node(&["identity", "new", "--out", key, "--name", "north"]);
    assert!(made.status.success(), "{made:?}");
    let shown = rota_node(&["identity", "show", key, "--name", "north"]);
    assert_eq!(made.stdout, shown.stdout);
    let missing = folder.path().join("node.toml");
    let refused = rota_node(&["status", "--config", missing.to_str().unwrap()]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("error: ") && said.contains("node.toml"),
        "{said}"
    );
}
