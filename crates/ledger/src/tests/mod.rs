//! The promises of a ledger.
#![allow(clippy::unwrap_used)]

mod kill;
mod processes;
mod promises;
mod torn;

use std::fs;
use std::path::PathBuf;

use privacy::accountant::Delta;
use privacy::noise::{Authors, Multiplier};
use protocol::Hash;
use tempfile::TempDir;

use crate::{Contribution, Cost, LedgerFile, Limits, Place, Source, SourceUnit};

/// A folder with the new ledger of a source.
pub(super) struct Fresh {
    folder: TempDir,
}

impl Fresh {
    pub(super) fn new() -> Self {
        let fresh = Self {
            folder: TempDir::new().unwrap(),
        };
        let source = Source {
            name: "patients".into(),
            unit: SourceUnit::Row,
        };
        LedgerFile::create(&fresh.file(), &source, &[7; 16]).unwrap();
        fresh
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("patients.ledger")
    }

    /// The ledger, as a process that just started has it.
    pub(super) fn ledger(&self, limits: Limits) -> LedgerFile {
        LedgerFile::at(self.file(), limits)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        fs::read(self.file()).unwrap()
    }

    pub(super) fn put(&self, bytes: &[u8]) {
        fs::write(self.file(), bytes).unwrap();
    }
}

pub(super) fn delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

pub(super) fn no_limit() -> Limits {
    Limits::none(delta())
}

/// A round with noise z of a federation, shared by seven authors of whom three may pool.
pub(super) fn noised(federation: u8, round: u64, z: f64) -> Contribution {
    let cost = Cost::Noised {
        z: Multiplier::new(z).unwrap(),
        authors: Authors::new(7, 3).unwrap(),
        unit: SourceUnit::Row,
    };
    Contribution {
        place: place(federation, round),
        commitment: Hash::of(&[federation, round as u8]),
        cost,
    }
}

pub(super) fn clear(federation: u8, round: u64) -> Contribution {
    Contribution {
        cost: Cost::NoBound,
        ..noised(federation, round, 1.0)
    }
}

pub(super) fn place(federation: u8, round: u64) -> Place {
    Place {
        federation: Hash([federation; 32]),
        epoch: 0,
        round,
    }
}
