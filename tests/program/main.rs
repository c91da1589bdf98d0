//! The program from outside, without a node: its output, its files, its errors and its exit codes.

mod ask;
mod attack;
mod cli;
mod compare;
mod direct;
#[cfg(unix)]
mod doors;
mod help;
mod init;
mod inputs;
mod keep;
#[path = "../nodes/mod.rs"]
mod nodes;
mod pasted;
mod pictures;
mod place;
mod rare;
mod settings;
mod shell;
mod signing;
#[path = "../skipped/mod.rs"]
mod skipped;
mod solve;
mod switches;
