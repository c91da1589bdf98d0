//! The command line of what a program prints about itself.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use clap_complete::Shell;

/// What a program prints about itself, for a shell and for `man`.
#[derive(Debug, Subcommand)]
pub enum ProgramCommand {
    /// Print the completion script of a shell
    ///
    /// For bash: `rota completions bash > ~/.local/share/bash-completion/completions/rota`. For zsh, write it
    /// as `_rota` into a folder of `fpath`; for fish, into `~/.config/fish/completions/rota.fish`.
    Completions {
        /// Shell that reads the script
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    ///
    /// `rota man | man -l -` shows the page. With --to, pages of all commands are written, such as
    /// `rota-run.1`: `rota man --to ~/.local/share/man/man1`.
    Man(PrintMan),
}

/// Options of `rota man`.
#[derive(Debug, Args)]
pub struct PrintMan {
    /// Folder for a page of each command, created if it is missing
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}
