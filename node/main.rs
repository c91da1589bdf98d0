//! The program `rota`.

mod cli;
mod commands;
mod logging;
mod progress;

use std::process::ExitCode;

use clap::Parser;
use indicatif::ProgressBar;

use cli::{Cli, Command, Federation};
use commands::CommandError;
use rota::report::numbers;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // Hidden until there is something to show; the log has to know it, to write around it.
    let bar = ProgressBar::hidden();
    // Simulated silos live in virtual time: the wall clock would mislead.
    let timed = matches!(cli.command, Command::Run(_));
    logging::start(cli.verbose, timed, &bar);
    let done = match &cli.command {
        Command::Simulate(simulate) => commands::simulate::run(simulate, bar),
        Command::Init(init) => commands::init::run(init),
        Command::Scenarios => commands::scenarios::run(),
        Command::Schema(schema) => commands::schema::run(schema),
        Command::Solve(solve) => commands::solve::run(solve, &bar),
        Command::Strategies(strategies) => commands::strategies::run(strategies),
        Command::Run(run) => commands::run::run(run),
        Command::Chain(chain) => commands::chain::run(chain),
        Command::Identity(identity) => commands::identity::run(identity),
        Command::Federation(Federation::Demo(demo)) => commands::demo::run(demo),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough, as in `rota simulate | head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &CommandError) -> ExitCode {
    // With nobody to read it, the exit code still tells.
    let said = numbers::message(&error.to_string());
    let _ = progress::say(&format!("error: {said}"));
    ExitCode::from(error.exit_code())
}
