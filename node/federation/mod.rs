//! A whole federation for one machine, as files.

mod demo;

pub use demo::{Demo, DemoError, Member, demo};
