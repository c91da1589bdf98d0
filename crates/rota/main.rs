//! The program `rota`: the laboratory, and the commands around an institution's node.

mod caller;
mod cli;
mod commands;
mod progress;

use std::process::ExitCode;

use clap::CommandFactory;
use indicatif::ProgressBar;
use node::commands as around_a_node;
use node::logging::{self, LogSettings};
use simulations::scenario::BUILT_IN;

use cli::{Cli, FederationCommand, RotaCommand};
use commands::CommandError;

/// A simulated federation allocates and frees many small pieces, which this allocator does in less time
/// than that of the C library (docs/performance.md, *Scale*).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli: Cli = match node::cli::parse() {
        Ok(cli) => cli,
        Err(error) => return node::cli::refused(&error, None),
    };
    // The bar is hidden until there is progress. The log needs it, to hide it while writing.
    let bar = ProgressBar::hidden();
    // Simulated silos run in virtual time, so times of the wall clock would mislead.
    let run = match &cli.command {
        RotaCommand::Node(node::cli::NodeCommand::Run(run)) => Some(run),
        _ => None,
    };
    let log = LogSettings {
        verbose: cli.log.verbose,
        without_warnings: match &cli.command {
            RotaCommand::Compare(_) | RotaCommand::Advise(_) | RotaCommand::Lab(_) => true,
            RotaCommand::Simulate(simulate) => simulate.quiet,
            _ => false,
        },
        timed: run.is_some(),
        format: cli.log.log_format,
        otlp: run.and_then(|run| run.otlp.as_deref()),
    };
    around_a_node::end(
        logging::start(&log, &bar.clone()),
        || -> Result<(), CommandError> {
            match &cli.command {
                RotaCommand::Simulate(simulate) => commands::simulate::run(simulate, bar),
                RotaCommand::Compare(options) => commands::compare::run(options, bar),
                RotaCommand::Lab(options) => commands::lab::run(options, bar),
                RotaCommand::Advise(options) => commands::advise::run(options, bar),
                RotaCommand::Ask(ask) => commands::ask::run(ask),
                RotaCommand::Attack(attack) => commands::attack::run(attack, bar),
                RotaCommand::Scenarios => commands::scenarios::run(),
                RotaCommand::Data(data) => commands::data::run(data),
                RotaCommand::Experiments => commands::scenarios::experiments(),
                RotaCommand::Schema(schema) => commands::schema::run(schema),
                RotaCommand::Solve(solve) => commands::solve::run(solve, &bar),
                RotaCommand::Strategies(strategies) => commands::strategies::run(strategies),
                RotaCommand::Report(report) => commands::report::run(report),
                RotaCommand::Node(command) => {
                    around_a_node::run(command).map_err(CommandError::from)
                }
                RotaCommand::Program(command) => {
                    around_a_node::program::run(command, Cli::command()).map_err(CommandError::from)
                }
                RotaCommand::Federation(FederationCommand::Demo(demo)) => commands::demo::run(demo),
                RotaCommand::Federation(FederationCommand::Member(command)) => {
                    around_a_node::run_federation(command, BUILT_IN).map_err(CommandError::from)
                }
            }
        },
    )
}
