//! The program `rota`.

mod cli;
mod commands;
mod logging;
#[cfg(feature = "otlp")]
mod otlp;
mod progress;

use std::process::ExitCode;

use clap::Parser;
use indicatif::ProgressBar;

use cli::{Cli, Command, Federation};
use commands::CommandError;
use logging::Log;
use rota::report::numbers;

fn main() -> ExitCode {
    let cli = Cli::parse();
    // The bar is hidden until there is progress. The log needs it, to hide it while writing.
    let bar = ProgressBar::hidden();
    // Simulated silos run in virtual time, so times of the wall clock would mislead.
    let run = match &cli.command {
        Command::Run(run) => Some(run),
        _ => None,
    };
    let log = Log {
        verbose: cli.verbose,
        many_runs: matches!(
            cli.command,
            Command::Compare(_) | Command::Advise(_) | Command::Lab(_)
        ),
        timed: run.is_some(),
        format: cli.log_format,
        otlp: run.and_then(|run| run.otlp.as_deref()),
    };
    let _traces = match logging::start(&log, &bar) {
        Ok(traces) => traces,
        Err(why) => return fail(&CommandError::Log(why)),
    };
    let done = match &cli.command {
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
        Command::Devices(devices) => commands::devices::run(devices),
        Command::Run(run) => commands::run::run(run),
        Command::Check(check) => commands::check::run(check),
        Command::Status(status) => commands::status::status(status),
        Command::Watch(watch) => commands::status::watch(watch),
        Command::Report(report) => commands::report::run(report),
        Command::Chain(chain) => commands::chain::run(chain),
        Command::Audit(audit) => commands::audit::run(audit),
        Command::Verify(verify) => commands::verify::run(verify),
        Command::Model(model) => commands::model::run(model),
        Command::Learner(learner) => commands::learner::run(learner),
        Command::Identity(identity) => commands::identity::run(identity),
        Command::Backup(options) => commands::backup::backup(options),
        Command::Restore(options) => commands::backup::restore(options),
        Command::Recover(options) => commands::recover::recover(options),
        Command::Federation(Federation::New(options)) => commands::federation::new(options),
        Command::Federation(Federation::Continue(options)) => {
            commands::continuing::continue_from(options)
        }
        Command::Federation(Federation::Add(options)) => commands::federation::add(options),
        Command::Federation(Federation::Invite(options)) => commands::federation::invite(options),
        Command::Federation(Federation::Join(options)) => commands::join::join(options),
        Command::Federation(Federation::Sign(options)) => commands::join::sign(options),
        Command::Federation(Federation::Show { file }) => commands::federation::show(file),
        Command::Federation(Federation::Print(options)) => commands::print::run(options),
        Command::Federation(Federation::Check(options)) => commands::federation::check(options),
        Command::Federation(Federation::Demo(demo)) => commands::demo::run(demo),
        Command::Federation(Federation::Amend(amend)) => commands::amend::amend(amend),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader closed the pipe, as in `rota simulate | head`.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &CommandError) -> ExitCode {
    // If standard error is closed, the exit code still reports the failure.
    let said = numbers::message(&error.to_string());
    let _ = progress::say(&format!("error: {said}"));
    ExitCode::from(error.exit_code())
}
