//! The files of a federation: a new agreement, an agreement in words, and a whole federation on one
//! machine to try out.

mod demo;
mod new;
mod words;

pub use demo::{Demo, DemoError, Member, demo};
pub use new::{NewError, new};
pub use words::words;
