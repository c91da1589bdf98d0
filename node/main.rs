//! The program `rota-node`: the commands around an institution's node, without the laboratory.

use std::process::{self, ExitCode};

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use indicatif::ProgressBar;
use node::cli::{LogOptions, NodeCommand, NodeFederationCommand};
use node::commands;
use node::logging::{self, LogSettings};

/// One institution's node in a federation that trains models together without a server.
#[derive(Debug, Parser)]
#[command(name = "rota-node", version, max_term_width = 100)]
#[command(after_help = "\
The same commands as those of the program rota, which texts name, without the laboratory: scenarios, \
simulations, comparisons, and drafts of new agreements.

Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.")]
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
    /// Take part in federations, and change their agreements
    #[command(subcommand)]
    Federation(NodeFederationCommand),
}

fn main() -> ExitCode {
    let cli = NodeCli::try_parse().unwrap_or_else(|error| {
        let unknown = error.kind() == ErrorKind::InvalidSubcommand;
        // If standard error is closed, the exit code still reports the failure.
        let _ = error.print();
        if unknown {
            let _ = logging::say(
                "This is the program of an institution, rota-node. Simulations, comparisons and drafts of new \
                 agreements are commands of the whole program, rota.",
            );
        }
        process::exit(error.exit_code())
    });
    let run = match &cli.command {
        Commands::Node(NodeCommand::Run(run)) => Some(run),
        _ => None,
    };
    let log = LogSettings {
        verbose: cli.log.verbose,
        many_runs: false,
        timed: run.is_some(),
        format: cli.log.log_format,
        otlp: run.and_then(|run| run.otlp.as_deref()),
    };
    commands::end(
        logging::start(&log, &ProgressBar::hidden()),
        || match &cli.command {
            Commands::Node(command) => commands::run(command).map_err(Box::new),
            Commands::Federation(command) => commands::run_federation(command).map_err(Box::new),
        },
    )
}
