//! The audit log of a node: a line for everything that it sends to another member, each with the hash of
//! the line before it.
//!
//! ```text
//! STATE/audit/000001.jsonl   lines, oldest first; a new file every 16 MiB
//! STATE/audit/head.json      how many lines there are, and the hash of the last, signed by the silo
//! ```
//!
//! The journal names the same head, as of its last transaction and at the end of a run, so that an older
//! copy of the log beside it is noticed. A log and a journal that are put back together are not noticed
//! here: then other members show the node that its journal is an older copy.
//!
//! The log is kept up to 256 MiB: then the oldest file is removed, and a line says which lines it held and
//! the hash of the last of them, so that the chain goes on without a gap.
//!
//! | file | holds |
//! |---|---|
//! | `line` | one line |
//! | `log` | writes the log |
//! | `check` | reads it, and names the first line that was changed, cut out or added |
//! | `words` | one line as a sentence |
//! | `tap` | passes what a silo sends on to its network, and writes it down |

mod audited_network;
mod check;
mod line;
mod log;
#[cfg(test)]
mod tests;
mod words;

pub(crate) use audited_network::{AuditedNetwork, Questions};
pub use check::{Audited, CheckError, check};
pub use line::{AuditEvent, AuditLine};
pub use log::{AuditLog, LogError, LogSizes};

/// The folder of the log in a node's state folder.
pub const AUDIT: &str = "audit";
/// The file with the signed head.
const HEAD: &str = "head.json";
