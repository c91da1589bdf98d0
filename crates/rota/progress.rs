//! Progress on standard error: a bar on a terminal, otherwise a line per round, or nothing.

use std::io::{self, IsTerminal};
use std::time::Duration;

use formatting::numbers;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
pub(crate) use node::logging::say;
use simulations::RoundDone;

/// Shows rounds as they become final.
pub(crate) enum RoundProgress {
    /// A bar, on a terminal.
    Bar(ProgressBar),
    /// A line per round, elsewhere.
    Lines,
    /// Nothing, with `--quiet`.
    Quiet,
}

impl RoundProgress {
    /// Starts to show progress, on a terminal with the hidden bar.
    pub(crate) fn new(bar: ProgressBar, quiet: bool, rounds: u64) -> RoundProgress {
        if quiet {
            return RoundProgress::Quiet;
        }
        if !io::stderr().is_terminal() {
            return RoundProgress::Lines;
        }
        let style = ProgressStyle::with_template("{bar:24} round {pos}/{len}  {msg}  {elapsed}")
            .expect("the template is a constant and well-formed");
        bar.set_style(style);
        bar.set_message("starting the federation");
        bar.set_length(rounds);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.reset();
        bar.enable_steady_tick(Duration::from_millis(100));
        RoundProgress::Bar(bar)
    }

    /// A round became final.
    pub(crate) fn round(&self, done: &RoundDone) {
        let led = done.led.as_ref().map(|led| {
            let (lead, time) = (numbers::plain(&led.lead), numbers::seconds(led.at));
            (led.view, format!("led by {lead}, at {time}"))
        });
        match self {
            RoundProgress::Bar(bar) => {
                bar.set_position(done.round);
                bar.set_message(if done.round == done.rounds {
                    "training reference models".to_owned()
                } else {
                    led.map_or_else(String::new, |(_, by)| by)
                });
            }
            RoundProgress::Lines => {
                let of = format!("round {}/{}", done.round, done.rounds);
                // Standard error may be closed; that is no reason to fail.
                let _ = say(&match led {
                    Some((view, by)) => format!("{of} final in view {view}, {by}"),
                    None => of,
                });
            }
            RoundProgress::Quiet => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        if let RoundProgress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows pieces of work as they are done: a bar on a terminal, otherwise a line each, or nothing.
pub(crate) enum Counted {
    /// A bar, on a terminal.
    Bar(ProgressBar),
    /// A line for each, elsewhere.
    Lines,
    /// Nothing, with `--quiet`.
    Quiet,
}

impl Counted {
    /// Starts to show progress, on a terminal with the hidden bar.
    pub(crate) fn new(bar: ProgressBar, quiet: bool, first: &'static str) -> Self {
        if quiet {
            return Self::Quiet;
        }
        if !io::stderr().is_terminal() {
            return Self::Lines;
        }
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}  {elapsed}")
            .expect("the template is a constant and well-formed");
        bar.set_style(style);
        bar.set_message(first);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.reset();
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Bar(bar)
    }

    /// A piece is done, as `text` says.
    pub(crate) fn step(&self, done: usize, all: usize, text: &str) {
        match self {
            Self::Bar(bar) => {
                bar.set_length(all as u64);
                bar.set_position(done as u64);
                bar.set_message(text.to_owned());
            }
            // Standard error may be closed; that is no reason to fail.
            Self::Lines => drop(say(&format!("{done}/{all} {text}"))),
            Self::Quiet => {}
        }
    }

    /// Removes the bar.
    pub(crate) fn end(&self) {
        if let Self::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows a spinner on a terminal until the returned value is dropped.
pub(crate) fn working(bar: &ProgressBar, what: &'static str) -> impl Drop {
    struct Shown(ProgressBar);
    impl Drop for Shown {
        fn drop(&mut self) {
            self.0.finish_and_clear();
        }
    }
    if io::stderr().is_terminal() {
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
            .expect("the template is a constant and well-formed");
        bar.set_style(style);
        bar.set_message(what);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.reset();
        bar.enable_steady_tick(Duration::from_millis(100));
    }
    Shown(bar.clone())
}
