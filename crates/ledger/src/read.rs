//! Reads the bytes of a ledger, and says what they cost.

use std::path::Path;

use data_encoding::HEXLOWER;
use privacy::accountant::{Accountant, Bound, Delta};
use protocol::Hash;

use crate::contribution::{Cost, Place};
use crate::error::LedgerError;
use crate::header::{LedgerHeader, Source};
use crate::line::Line;

/// Contents of a ledger.
#[derive(Debug, Clone)]
pub struct LedgerContents {
    /// Source that it is about.
    pub source: Source,
    /// Its lines, oldest first.
    pub lines: Vec<Line>,
    /// Accountant of the cost of all lines.
    pub accountant: Accountant,
    /// Hash of each line, behind what stands for the line before the first.
    pub(crate) hashes: Vec<Hash>,
    /// Bytes up to the end of the last line. What is behind was left by a process that was killed.
    pub(crate) whole: usize,
    /// The number of lines that the first line has.
    pub(crate) counted: u64,
}

impl LedgerContents {
    /// Reads the bytes of a file. A line that is not whole, or does not fit, ends it if no call has
    /// returned for it.
    ///
    /// # Errors
    /// [`LedgerError::Damaged`], [`LedgerError::RolledBack`].
    pub(crate) fn read(file: &Path, bytes: &[u8]) -> Result<Self, LedgerError> {
        let damaged = |line, why| LedgerError::Damaged {
            file: file.to_owned(),
            line,
            why,
        };
        let mut texts = bytes.split_inclusive(|byte| *byte == b'\n');
        let first = texts.next().and_then(|text| text.strip_suffix(b"\n"));
        let first = first.ok_or_else(|| damaged(1, "it is not whole".into()))?;
        let header = LedgerHeader::read(first).map_err(|why| damaged(1, why))?;
        let mut contents = Self {
            source: header.source,
            lines: Vec::new(),
            accountant: Accountant::new(),
            hashes: vec![header.hash],
            whole: first.len() + 1,
            counted: header.lines,
        };
        for text in texts {
            let number = contents.lines.len() as u64 + 1;
            match contents.add(text) {
                Ok(()) => {}
                Err(why) if number <= contents.counted => return Err(damaged(number + 1, why)),
                Err(_) => break,
            }
        }
        let found = contents.lines.len() as u64;
        if found < contents.counted {
            let why = format!("it had {} lines, and has {found}", contents.counted);
            return Err(LedgerError::RolledBack {
                file: file.to_owned(),
                why,
            });
        }
        Ok(contents)
    }

    /// Adds a line with its end.
    pub(crate) fn add(&mut self, text: &[u8]) -> Result<(), String> {
        let line = text.strip_suffix(b"\n").ok_or("it is not whole")?;
        let (line, hash) = Line::read(line, self.last())?;
        let number = self.lines.len() as u64 + 1;
        if line.line != number {
            return Err(format!(
                "expected line number {number}, found {}",
                line.line
            ));
        }
        line.cost(&self.source.unit)?.spend(&mut self.accountant, 1);
        self.lines.push(line);
        self.hashes.push(hash);
        self.whole += text.len();
        Ok(())
    }

    /// Hash of the last line.
    pub(crate) fn last(&self) -> &Hash {
        self.hashes
            .last()
            .expect("what stands before the first line is always there")
    }

    /// The line of an epoch and round.
    pub fn at(&self, place: &Place) -> Option<&Line> {
        self.lines.iter().find(|line| line.is_at(place))
    }

    /// The contributions to a federation, oldest first: epoch, round, and what each costs.
    pub fn contributions(&self, federation: &Hash) -> impl Iterator<Item = (u64, u64, Cost)> {
        let federation = HEXLOWER.encode(&federation.0);
        let lines = self.lines.iter();
        let own = lines.filter(move |line| line.federation == federation);
        own.map(|line| {
            let cost = line.cost(&self.source.unit);
            let cost = cost.expect("a line whose cost is wrong is not read");
            (line.epoch, line.round, cost)
        })
    }

    /// Returns what holds for one unit after all lines.
    pub fn bound(&self, delta: Delta) -> Bound {
        self.accountant.bound(delta)
    }

    /// Lines of rounds without noise.
    pub fn without_noise(&self) -> usize {
        let without = |line: &&Line| line.noise.is_none();
        self.lines.iter().filter(without).count()
    }

    /// Lines of contributions that only others know of.
    pub fn reconciled(&self) -> usize {
        self.lines
            .iter()
            .filter(|line| line.is_reconciled())
            .count()
    }

    /// Returns what would hold with the next line, and its number.
    pub(crate) fn with(&self, cost: &Cost, delta: Delta) -> (u64, Bound) {
        let mut accountant = self.accountant;
        cost.spend(&mut accountant, 1);
        (self.lines.len() as u64 + 1, accountant.bound(delta))
    }
}
