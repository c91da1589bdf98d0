//! Writes the files of a federation on one machine.

mod demo;

pub use demo::{Demo, DemoError, Member, demo};
