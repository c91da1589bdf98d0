//! The first help of a program: its commands in groups, which clap has for options only.

use std::process::ExitCode;

use clap::{Command, Parser};

use crate::exit::Exit;
use crate::logging::say;

/// Headings of commands, and what is below each, in the order of the help. A program lists those that it
/// has.
pub const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Try, without a node",
        &[
            "simulate",
            "compare",
            "advise",
            "ask",
            "lab",
            "attack",
            "solve",
            "init",
            "scenarios",
            "experiments",
            "strategies",
            "data",
        ],
    ),
    (
        "Operate a node",
        &[
            "identity", "check", "run", "status", "watch", "model", "devices", "learner", "backup",
            "restore",
        ],
    ),
    ("Govern a federation", &["federation", "recover", "ledger"]),
    ("Verify", &["chain", "verify", "audit", "blame", "report"]),
    (
        "Shell and editor",
        &["schema", "completions", "man", "help"],
    ),
];

/// Help of the command `help`, at every level.
const HELP: &str = "Print the help of a command";

/// Parses the command line of this process.
///
/// # Errors
/// The fault that clap found in it, or the help that was asked for; [`refused`] prints both.
pub fn parse<P: Parser>() -> Result<P, clap::Error> {
    let mut command = grouped(P::command());
    let arguments = std::env::args_os;
    let mut matches = command.try_get_matches_from_mut(arguments());
    // Only a help shows these lines; they need all commands built, which no other start has to wait for.
    if matches.as_ref().is_err_and(shows_help) {
        command = grouped(P::command());
        command.build();
        command = with_help_lines(command);
        matches = command.try_get_matches_from_mut(arguments());
    }
    let matches = matches?;
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Returns true if parsing ended because a help text is to be shown.
fn shows_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    )
}

/// The command, built, with one sentence for every `help` below it.
fn with_help_lines(command: Command) -> Command {
    command.mut_subcommands(|one| match one.get_name() {
        "help" => one.about(HELP),
        _ => with_help_lines(one),
    })
}

/// Prints why a command line was not understood, or the help that was asked for; `hint` follows an error.
pub fn refused(error: &clap::Error, hint: Option<&str>) -> ExitCode {
    // If standard error is closed, the exit code still reports the failure.
    let _ = error.print();
    if let Some(hint) = hint {
        let _ = say(hint);
    }
    Exit::of(error).into()
}

/// The command with its subcommands in groups, and the exit codes below its examples.
pub fn grouped(command: Command) -> Command {
    let style = command.get_styles().get_header().to_owned();
    let listed = |name: &&&str| {
        let mut subcommands = command.get_subcommands();
        **name == "help" || subcommands.any(|known| known.get_name() == **name)
    };
    let about = |name: &str| {
        let known = command.find_subcommand(name).and_then(Command::get_about);
        known.map_or(HELP.into(), ToString::to_string)
    };
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let names: Vec<_> = names.iter().filter(listed).collect();
        if names.is_empty() {
            continue;
        }
        groups += &format!("{style}{heading}:{style:#}\n");
        for name in names {
            groups += &format!("  {name:<12} {}\n", about(name));
        }
        groups += "\n";
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}{style}Options:{style:#}\n{{options}}{{after-help}}"
    );
    let examples = command.get_after_help().map(ToString::to_string);
    let after = format!("{}\n\n{}", examples.unwrap_or_default(), Exit::table());
    command
        .help_template(template)
        .after_help(after.trim_start().to_owned())
}

/// The visible commands of a program that stand in no group, or in several.
pub fn ungrouped(command: &Command) -> Vec<String> {
    let all = || GROUPS.iter().flat_map(|(_, names)| names.iter());
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    let names = visible.map(|one| one.get_name().to_owned());
    names
        .filter(|name| all().filter(|known| *known == name).count() != 1)
        .collect()
}
