//! Exit codes of the programs: one table, one meaning each.

use std::fmt::Write;
use std::process::{self, ExitCode};

/// Exit code of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Success = 0,
    /// Failure.
    Failure = 1,
    /// Wrong input.
    Input = 2,
    /// Other members are missing.
    Waiting = 3,
    /// A part of the result is missing.
    Partial = 4,
    /// Interrupted by the user; the number by which shells report SIGINT.
    Interrupted = 130,
}

impl Exit {
    /// All of them, by their codes.
    pub const ALL: [Self; 6] = [
        Self::Success,
        Self::Failure,
        Self::Input,
        Self::Waiting,
        Self::Partial,
        Self::Interrupted,
    ];

    /// The number that the operating system gets.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The meaning, for help and manual pages.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure: the command failed, or what it checked is wrong",
            Self::Input => "wrong input: change an option, a configuration or a file first",
            Self::Waiting => "ready, but nodes of other members do not answer yet (check)",
            Self::Partial => {
                "predictions written, without the rows that do not fit (model predict)"
            }
            Self::Interrupted => "interrupted; results so far are kept (compare)",
        }
    }

    /// The end of a program whose command line was not understood, or only asked for help.
    pub fn of(error: &clap::Error) -> Self {
        if error.use_stderr() {
            Self::Input
        } else {
            Self::Success
        }
    }

    /// All codes with their meanings, a line each, for the end of a help text.
    pub fn table() -> String {
        let mut table = String::from("Exit codes:");
        for exit in Self::ALL {
            // Writing to a string never fails.
            let _ = write!(table, "\n  {:<4} {}", exit.code(), exit.meaning());
        }
        table
    }

    /// Ends the process here.
    pub fn now(self) -> ! {
        process::exit(self.code().into())
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The table of docs/exit-codes.md as pairs of code and meaning.
    fn page() -> Vec<(String, String)> {
        let page = include_str!("../docs/exit-codes.md");
        let cells = |line: &str| {
            let [code, meaning] = line.trim_matches('|').split('|').collect::<Vec<_>>()[..] else {
                return None;
            };
            Some((code.trim().to_owned(), meaning.trim().replace('`', "")))
        };
        let rows = page.lines().filter(|line| line.starts_with('|'));
        rows.skip(2).filter_map(cells).collect()
    }

    #[test]
    fn the_page_has_the_codes_and_meanings_of_the_program() {
        let codes = Exit::ALL.map(|exit| (exit.code().to_string(), exit.meaning().to_owned()));
        assert_eq!(page(), codes);
    }

    #[test]
    fn every_code_has_one_meaning() {
        let codes: BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        let meanings: BTreeSet<_> = Exit::ALL.iter().map(|exit| exit.meaning()).collect();
        assert_eq!((codes.len(), meanings.len()), (6, 6));
        assert!(
            codes.iter().eq(Exit::ALL.map(Exit::code).iter()),
            "{codes:?}"
        );
    }
}
