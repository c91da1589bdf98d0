//! Output of `rota` about its commands, and about those that it does not have.

#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn rota(arguments: &[&str]) -> Output {
    let mut rota = Command::new(env!("CARGO_BIN_EXE_rota"));
    rota.args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_help_has_groups_examples_and_exit_codes() {
    let output = rota(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    let first = "Peer-to-peer federated learning with a rotating lead and verified results\n";
    assert!(help.starts_with(first), "{help}");
    let headings = [
        "Usage: rota",
        "Try, without a node:\n  simulate ",
        "Operate a node:\n  identity ",
        "Govern a federation:\n  federation ",
        "Verify:\n  chain ",
        "Options:\n  -v, --verbose",
        "Examples:\n  rota simulate ",
        "Exit codes:\n  0    success\n",
    ];
    let places = headings.map(|heading| help.find(heading));
    assert!(places.iter().all(Option::is_some), "{places:?} in {help}");
    assert!(places.is_sorted(), "{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert_eq!(text(&rota(&["help"]).stdout), help);
}

#[test]
fn without_a_command_the_help_is_an_error() {
    let output = rota(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr), text(&rota(&["--help"]).stdout));
    let version = rota(&["--version"]);
    assert_eq!(version.status.code(), Some(0));
    assert!(text(&version.stdout).starts_with("rota 0."));
}

#[test]
fn a_command_describes_itself_briefly_and_at_length() {
    let (brief, long) = (rota(&["chain", "-h"]), rota(&["chain", "--help"]));
    let (brief, long) = (text(&brief.stdout), text(&long.stdout));
    let first = "Print the final rounds in a node's journal\n";
    assert!(
        brief.starts_with(first) && long.starts_with(first),
        "{long}"
    );
    assert!(long.contains("Needs no key") && !brief.contains("Needs no key"));
}

#[test]
fn an_inner_help_is_described_as_the_outer_one() {
    for name in ["federation", "solve", "model"] {
        let help = text(&rota(&[name, "--help"]).stdout);
        let line = help
            .lines()
            .find(|line| line.trim_start().starts_with("help "));
        let line = line.unwrap_or_default();
        assert!(line.ends_with("Print the help of a command"), "{help}");
        assert_eq!(text(&rota(&["help", name]).stdout), help);
    }
}

#[test]
fn a_file_that_is_not_there_is_wrong_input_for_every_command() {
    for arguments in [
        &["simulate", "nowhere.toml"][..],
        &["simulate", "digits20", "--data", "nowhere"],
        &["compare", "nowhere.toml"],
        &["init", "nowhere.csv"],
        &["identity", "show", "nowhere.key"],
        &["restore", "nowhere.tar"],
        &["report", "nowhere.jsonl"],
        &["verify", "nowhere.json"],
        &["federation", "show", "nowhere.toml"],
        &["recover"],
        &["advise", "diabetes", "--minutes", "0"],
        &["status", "--config", "nowhere"],
    ] {
        let output = rota(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    }
    let said = text(&rota(&["recover"]).stderr);
    assert!(
        said.contains("--lost") && said.contains("--abort-round"),
        "{said}"
    );
    let said = text(&rota(&["advise", "nofile"]).stderr);
    assert!(said.contains("built-in scenarios breast-cancer"), "{said}");
}

#[test]
fn what_is_mistyped_is_refused_with_what_is_like_it() {
    for (arguments, like) in [
        (&["simulat"][..], "'simulate'"),
        (&["federation", "jion"], "'join'"),
        (&["simulate", "--sed", "1"], "'--seed'"),
        (&["check", "--confg", "x"], "'--config'"),
    ] {
        let output = rota(arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("similar") && said.contains(like), "{said}");
    }
}
