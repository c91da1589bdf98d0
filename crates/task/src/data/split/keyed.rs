//! Split by a keyed hash: the part of a row, or of all rows of a group, depends on its content and on a secret,
//! and on no other row.

use methods::learner::Split;
use zeroize::Zeroize;

use super::{Parts, SplitConfig, Units};
use crate::data::{DataSet, Table};

/// The secret of one institution by which a [keyed](SplitConfig::keyed) split holds out its rows. Whoever
/// does not know it cannot tell in which part a row is that they know.
pub struct SplitKey([u8; 32]);

/// Kind of hashed content: the first byte under the key.
const GROUP: u8 = 0;
const ROW: u8 = 1;

impl SplitKey {
    /// These bytes, which are random.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// That of a simulated silo: the same for the same `seed` of the split and name of the silo, so it hides
    /// nothing.
    pub fn simulated(seed: u64, silo: &str) -> Self {
        let material = [&seed.to_le_bytes(), silo.as_bytes()].concat();
        Self(blake3::derive_key("rota split 1 simulated", &material))
    }

    /// The secret bytes, for the file that they are kept in.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0
    }

    /// Returns what the hash makes of the unit of every row: of its group by what the files call it, or of the cells
    /// of the row as the schema reads them, before anything is filled in or scaled.
    pub(in crate::data) fn draws(&self, table: &Table) -> Vec<u64> {
        let each = (0..table.len()).map(|row| match table.groups.get(row) {
            None => self.of_row(table.row(row), table.targets(row)),
            Some(&group) => match table.group_ids.get(group as usize) {
                Some(id) => self.of(GROUP, id.0.as_bytes()),
                None => self.of(GROUP, group.to_string().as_bytes()),
            },
        });
        each.collect()
    }

    fn of_row(&self, features: &[f64], targets: &[f64]) -> u64 {
        let mut bytes = (features.len() as u64).to_le_bytes().to_vec();
        let cells = features.iter().chain(targets);
        bytes.extend(cells.flat_map(|&cell| canonical(cell).to_le_bytes()));
        self.of(ROW, &bytes)
    }

    fn of(&self, what: u8, bytes: &[u8]) -> u64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(b"rota split 1").update(&[what]).update(bytes);
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        u64::from_le_bytes(first)
    }
}

impl Drop for SplitKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl DataSet {
    /// Takes the secret by which a [keyed](SplitConfig::keyed) split holds out the rows of all its silos.
    pub fn hold_out_by(&mut self, key: &SplitKey) {
        let tables = self.silos.iter_mut();
        tables.for_each(|(_, table)| table.drawn = key.draws(table));
    }
}

/// The bits of a number: those of 0 for -0, and one NaN, which stands for a missing value.
fn canonical(value: f64) -> u64 {
    match value {
        value if value.is_nan() => f64::NAN.to_bits(),
        0.0 => 0,
        value => value.to_bits(),
    }
}

/// Of all values of a hash, those below this fraction.
fn below(fraction: f64) -> u64 {
    // 2⁶⁴; a fraction is below 1, so nothing is lost at the end.
    (fraction * 18_446_744_073_709_551_616.0) as u64
}

impl SplitConfig {
    /// The parts of rows by a hash of the unit of each. A part that the data give stays, and of its training
    /// rows the hash takes those for validation.
    pub(super) fn by_hash(&self, table: &Table, units: &Units, seed: u64, silo: &str) -> Parts {
        let simulated: Vec<u64>;
        let drawn = if table.drawn.is_empty() {
            simulated = SplitKey::simulated(seed, silo).draws(table);
            &simulated
        } else {
            &table.drawn
        };
        let (test, validation) = match table.parts.is_empty() {
            true => (below(self.test), below(self.test + self.validation)),
            false => (0, below(self.validation)),
        };
        let part = |unit: &Vec<usize>| match table.parts.get(unit[0]) {
            Some(&given) if given != Split::Train => given,
            _ if drawn[unit[0]] < test => Split::Test,
            _ if drawn[unit[0]] < validation => Split::Validation,
            _ => Split::Train,
        };
        Parts::of(units, part)
    }
}
