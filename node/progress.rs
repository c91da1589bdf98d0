//! Progress on standard error: a bar on a terminal, a line per round elsewhere, or nothing.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rota::report::numbers;
use rota::simulations::RoundDone;

/// Shows rounds as they become final.
pub(crate) enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// Elsewhere.
    Lines,
    /// Not asked for.
    Quiet,
}

impl Progress {
    /// Begins to show, with that hidden bar on a terminal.
    pub(crate) fn new(bar: ProgressBar, quiet: bool, rounds: u64) -> Progress {
        if quiet {
            return Progress::Quiet;
        }
        if !io::stderr().is_terminal() {
            return Progress::Lines;
        }
        let style = ProgressStyle::with_template("{bar:24} round {pos}/{len}  {msg}  {elapsed}")
            .expect("the template is a constant and well-formed");
        bar.set_style(style);
        bar.set_message("forming the federation");
        bar.set_length(rounds);
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.reset();
        bar.enable_steady_tick(Duration::from_millis(100));
        Progress::Bar(bar)
    }

    /// A round became final.
    pub(crate) fn round(&self, done: &RoundDone) {
        let lead = numbers::plain(&done.lead);
        let time = numbers::seconds(done.at);
        match self {
            Progress::Bar(bar) => {
                bar.set_position(done.round);
                bar.set_message(match done.round == done.rounds {
                    true => "training what to compare with".to_owned(),
                    false => format!("led by {lead}, {time} in the federation"),
                });
            }
            Progress::Lines => {
                let (round, rounds, view) = (done.round, done.rounds, done.view);
                // Progress that nobody reads is no failure.
                let _ = say(&format!(
                    "round {round}/{rounds} final in view {view}, led by {lead}, at {time}"
                ));
            }
            Progress::Quiet => {}
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}

/// Shows on a terminal that the program is at work, until what is given back is dropped.
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

/// A line on standard error; unlike `eprintln!`, it does not panic where that is closed.
pub(crate) fn say(line: &str) -> io::Result<()> {
    writeln!(io::stderr().lock(), "{line}")
}
