//! The privacy ledger of a source: what was told about its units, in all federations together.
//!
//! A *source* is a set of rows that an institution names, such as the patients of one hospital. Each
//! round in which the institution contributes something that was computed from these rows costs a part
//! of what may be told about one unit, a row or a person. What was told cannot be taken back, so the
//! institution must not forget it, whatever happens to the state folder of a node.
//!
//! The ledger is one file of text, outside of state folders. Each contribution has a line, and the line
//! is durable before the contribution is sent. [`LedgerFile`] reads and writes it; [`Ledger`] is what a
//! silo needs of it.
//!
//! # What holds
//!
//! - A contribution whose line is not durable is not sent: [`Ledger::record`] returns only after it is.
//! - The same commitment for an epoch and round costs nothing a second time. A different one is refused.
//! - A line that would exceed the [`Limits`] is refused, and is not written.
//! - Two processes with one file cannot exceed them together: the file is locked while it is used.
//! - A process that is killed while it writes leaves a line that is whole, and counts, or one that no
//!   call has returned for, and is cut off.
//! - Lines that are changed, or gone from the end, are noticed: each line has a hash over itself and the
//!   one before, and the first line says how many there are.
//! - An older copy that was put back is noticed while the process runs and, with [`Ledger::expect`], by
//!   everyone who knows of a contribution.
//!
//! Whoever may write to the file can make another one. The ledger protects against accidents, not
//! against its own institution.

mod contribution;
mod error;
mod file;
mod header;
mod limits;
mod line;
mod read;
mod unit;

#[cfg(test)]
mod tests;

pub use contribution::{Contribution, Cost, CostError, Place};
pub use error::LedgerError;
pub use file::LedgerFile;
pub use header::Source;
pub use limits::{Limit, Limits};
pub use line::{Line, NoiseOfLine};
pub use read::LedgerContents;
pub use unit::{SourceUnit, UnitError};

use privacy::accountant::Bound;

/// The ledger of the source whose rows a silo learns from.
pub trait Ledger: Send + Sync {
    /// Makes the line of a contribution durable, and returns what holds for one unit with it. Nothing of
    /// the contribution may be sent before. A line that is there already costs nothing.
    ///
    /// # Errors
    /// [`LedgerError`]: why nothing may be contributed. The ledger is as before.
    fn record(&self, contribution: &Contribution) -> Result<Bound, LedgerError>;

    /// Checks that contributions that somebody knows of have their lines.
    ///
    /// # Errors
    /// [`LedgerError::Lacks`] with the first one that has none; and if the ledger cannot be read.
    fn expect(&self, places: &[Place]) -> Result<(), LedgerError>;
}
