//! The program `rota`: the laboratory, and the commands around an institution's node.

mod cli;
mod commands;
mod progress;

use std::process::ExitCode;

use clap::Parser;
use indicatif::ProgressBar;
use node::commands as around_a_node;
use node::logging::{self, Log};

use cli::{Cli, Command, Federation};
use commands::CommandError;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // The bar is hidden until there is progress. The log needs it, to hide it while writing.
    let bar = ProgressBar::hidden();
    // Simulated silos run in virtual time, so times of the wall clock would mislead.
    let run = match &cli.command {
        Command::Node(node::cli::Command::Run(run)) => Some(run),
        _ => None,
    };
    let log = Log {
        verbose: cli.log.verbose,
        many_runs: matches!(
            cli.command,
            Command::Compare(_) | Command::Advise(_) | Command::Lab(_)
        ),
        timed: run.is_some(),
        format: cli.log.log_format,
        otlp: run.and_then(|run| run.otlp.as_deref()),
    };
    around_a_node::end(
        logging::start(&log, &bar.clone()),
        || -> Result<(), CommandError> {
            match &cli.command {
                Command::Simulate(simulate) => commands::simulate::run(simulate, bar),
                Command::Compare(options) => commands::compare::run(options, bar),
                Command::Lab(options) => commands::lab::run(options, bar),
                Command::Advise(options) => commands::advise::run(options, bar),
                Command::Attack(attack) => commands::attack::run(attack, bar),
                Command::Init(init) => commands::init::run(init),
                Command::Scenarios => commands::scenarios::run(),
                Command::Data(data) => commands::data::run(data),
                Command::Experiments => commands::scenarios::experiments(),
                Command::Schema(schema) => commands::schema::run(schema),
                Command::Solve(solve) => commands::solve::run(solve, &bar),
                Command::Strategies(strategies) => commands::strategies::run(strategies),
                Command::Report(report) => commands::report::run(report),
                Command::Node(command) => around_a_node::run(command).map_err(CommandError::from),
                Command::Federation(Federation::New(options)) => commands::new::new(options),
                Command::Federation(Federation::Demo(demo)) => commands::demo::run(demo),
                Command::Federation(Federation::Member(command)) => {
                    around_a_node::run_federation(command).map_err(CommandError::from)
                }
            }
        },
    )
}
