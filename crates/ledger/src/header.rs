//! The first line of a ledger: what it counts, and how many lines follow.
//!
//! ```text
//! {"lines":"00000000000000000042","format":1,"source":"patients","unit":"row","id":"…"}
//! ```
//!
//! The number has always as many digits, so that it can be replaced in place. It is written after its
//! line is durable: what lies behind so many lines, no call has returned for.

use data_encoding::HEXLOWER;
use protocol::Hash;
use serde::{Deserialize, Serialize};

use crate::unit::SourceUnit;

/// Version of the format.
const FORMAT: u32 = 1;

/// Positions of the digits of the number of lines: within one sector of a disk.
pub(crate) const DIGITS: std::ops::Range<usize> = 10..30;

/// Source of rows that a ledger is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The name that the institution gave.
    pub name: String,
    /// Unit that is counted.
    pub unit: SourceUnit,
}

/// The first line, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderLine {
    lines: String,
    format: u32,
    source: String,
    unit: SourceUnit,
    id: String,
}

/// The first line, read.
#[derive(Debug, Clone)]
pub(crate) struct LedgerHeader {
    pub(crate) source: Source,
    /// Lines that are known to be durable.
    pub(crate) lines: u64,
    /// Hash in place of the line before the first.
    pub(crate) hash: Hash,
}

impl LedgerHeader {
    /// The line of a new ledger, without its end. `id` makes it another one than all others.
    pub(crate) fn begin(source: &Source, id: &[u8; 16]) -> String {
        let written = HeaderLine {
            lines: digits(0),
            format: FORMAT,
            source: source.name.clone(),
            unit: source.unit.clone(),
            id: HEXLOWER.encode(id),
        };
        serde_json::to_string(&written).expect("texts and numbers can be written as JSON")
    }

    /// Reads the line.
    ///
    /// # Errors
    /// A description of the fault in the line.
    pub(crate) fn read(line: &[u8]) -> Result<Self, String> {
        let written: HeaderLine = serde_json::from_slice(line).map_err(|why| why.to_string())?;
        if written.format != FORMAT {
            return Err(format!(
                "expected a ledger of format {FORMAT}, found format {}",
                written.format
            ));
        }
        let lines = written.lines.parse().map_err(|_| {
            let found = &written.lines;
            format!("expected the number of lines, found {found:?}")
        })?;
        let in_place = line.get(DIGITS) == Some(digits(lines).as_bytes());
        if !in_place {
            return Err("the number of lines is not at its place".into());
        }
        let hash = Hash::labelled("ledger", &[&line[DIGITS.end..]]);
        let source = Source {
            name: written.source,
            unit: written.unit,
        };
        Ok(Self {
            source,
            lines,
            hash,
        })
    }
}

/// A number of lines as it is written.
pub(crate) fn digits(lines: u64) -> String {
    format!("{lines:0width$}", width = DIGITS.len())
}
