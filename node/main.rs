//! The program `rota-node`: the commands around an institution's node, without the laboratory.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use indicatif::ProgressBar;
use node::cli::{self, LogOptions, NodeCommand, NodeFederationCommand, ProgramCommand};
use node::commands;
use node::logging::{self, LogSettings};

/// Peer-to-peer federated learning with a rotating lead and verified results: one institution's node
#[derive(Debug, Parser)]
#[command(name = "rota-node", version, max_term_width = 100)]
#[command(after_help = "\
These are the commands of the program rota, which texts name, without the laboratory: simulations,
comparisons, and reports on them.")]
struct NodeCli {
    /// The subcommand.
    #[command(subcommand)]
    command: Commands,
    /// How the log is written.
    #[command(flatten)]
    log: LogOptions,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Commands {
    /// What an institution does with its node.
    #[command(flatten)]
    Node(NodeCommand),
    /// Create or join a federation, and sign or amend its agreement
    #[command(subcommand)]
    Federation(NodeFederationCommand),
    /// What the program prints about itself.
    #[command(flatten)]
    Program(ProgramCommand),
}

fn main() -> ExitCode {
    let cli = match cli::parse::<NodeCli>() {
        Ok(cli) => cli,
        Err(error) => {
            let unknown = error.kind() == ErrorKind::InvalidSubcommand;
            let hint = unknown.then_some(
                "This is the program of an institution, rota-node. Simulations, comparisons and reports are \
                 commands of the whole program, rota.",
            );
            return cli::refused(&error, hint);
        }
    };
    let run = match &cli.command {
        Commands::Node(NodeCommand::Run(run)) => Some(run),
        _ => None,
    };
    let log = LogSettings {
        verbose: cli.log.verbose,
        without_warnings: false,
        timed: run.is_some(),
        format: cli.log.log_format,
        otlp: run.and_then(|run| run.otlp.as_deref()),
    };
    commands::end(
        logging::start(&log, &ProgressBar::hidden()),
        || match &cli.command {
            Commands::Node(command) => commands::run(command).map_err(Box::new),
            Commands::Federation(command) => {
                commands::run_federation(command, &[]).map_err(Box::new)
            }
            Commands::Program(command) => {
                commands::program::run(command, NodeCli::command()).map_err(Box::new)
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_of_the_help() {
        assert_eq!(cli::ungrouped(&NodeCli::command()), [""; 0]);
        cli::grouped(NodeCli::command()).debug_assert();
    }

    #[test]
    fn an_institution_drafts_without_the_laboratory() {
        for drafts in [
            &["rota-node", "init", "rows.csv"][..],
            &["rota-node", "federation", "new", "--table", "rows.csv"],
            &["rota-node", "federation", "new", "--scenario", "ours.toml"],
        ] {
            let parsed = NodeCli::try_parse_from(drafts);
            assert!(parsed.is_ok(), "{drafts:?}");
        }
        assert!(NodeCli::try_parse_from(["rota-node", "simulate"]).is_err());
    }
}
