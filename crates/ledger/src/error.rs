//! Refusals of a ledger.

use std::io;
use std::path::PathBuf;

use privacy::accountant::Bound;

use crate::contribution::Place;
use crate::limits::Limit;
use crate::unit::SourceUnit;

/// Reason for which a ledger was not made, read or written. Nothing may be contributed then.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file is not there.
    #[error(
        "the ledger {} is missing: put it back, or, only if nothing was ever contributed from this source, \
         make one with `rota ledger new`", file.display()
    )]
    Missing {
        /// The file.
        file: PathBuf,
    },
    /// A new ledger would replace another one.
    #[error("{} exists already, and a ledger is never made a second time", file.display())]
    Exists {
        /// The file.
        file: PathBuf,
    },
    /// Another process has the ledger for too long.
    #[error(
        "the ledger {} is locked by another process: try again when that process has ended (`fuser {}` names it)",
        file.display(), file.display()
    )]
    InUse {
        /// The file.
        file: PathBuf,
    },
    /// The system refuses.
    #[error("the ledger {} cannot be used: {why}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file is not as a ledger wrote it.
    #[error(
        "the ledger {} is damaged in line {line}: {why}; put back the newest whole copy of it", file.display()
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The line of the text, from 1.
        line: u64,
        /// Description of the damage.
        why: String,
    },
    /// The file is older than something that is known.
    #[error(
        "the ledger {} is an older copy, or another one: {why}; put back the newest copy of it", file.display()
    )]
    RolledBack {
        /// The file.
        file: PathBuf,
        /// Description of what is known and missing in the file.
        why: String,
    },
    /// Somebody knows of a contribution that has no line.
    #[error(
        "the ledger {} is an older copy, or another one: this institution contributed to {place}, and it has no \
         such line; put back the newest copy of it, or, where there is none, add the line with \
         `rota ledger reconcile`", file.display()
    )]
    Lacks {
        /// The file.
        file: PathBuf,
        /// Epoch and round of the contribution.
        place: Place,
    },
    /// The federation protects another unit than the ledger counts.
    #[error("the ledger {} counts the unit {ledger}, and the agreement protects the unit {agreed}", file.display())]
    OtherUnit {
        /// The file.
        file: PathBuf,
        /// The unit of the ledger.
        ledger: SourceUnit,
        /// The unit of the agreement.
        agreed: SourceUnit,
    },
    /// The round has a line with another commitment.
    #[error(
        "the ledger has a line of another contribution for {place}, and a round may have one only: the \
         institution does not take part in this round"
    )]
    Second {
        /// The epoch and round.
        place: Place,
    },
    /// The institution's limit is reached.
    #[error(
        "the ledger is spent: with this round it would be {bound}, and the institution's policy has `{limit}`"
    )]
    Spent {
        /// Bound that would hold.
        bound: Bound,
        /// The limit that it exceeds.
        limit: Limit,
    },
}
