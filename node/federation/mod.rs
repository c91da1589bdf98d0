//! The files of a federation: an agreement in words, and a whole federation on one machine to try
//! out.

mod continuing;
mod demo;
mod words;

pub use continuing::{Changes, ContinueError, Start, continued};
pub use demo::{Demo, DemoError, Member, demo};
pub use words::words;
