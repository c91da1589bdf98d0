//! A line of a ledger: one contribution, what it costs, and a hash over it and the lines before.

use data_encoding::HEXLOWER;
use privacy::accountant::{Bound, Delta};
use privacy::noise::{Authors, Multiplier};
use protocol::Hash;
use serde::{Deserialize, Serialize};

use crate::contribution::{Contribution, Cost, Place};
use crate::unit::SourceUnit;

/// Text between a line and its hash.
const BEFORE_HASH: &str = ",\"hash\":\"";
/// Text behind the hash.
const AFTER_HASH: &str = "\"}";
/// Digits of a hash.
const HASH: usize = 64;

/// Stands in place of the commitment in a line that was made of what other members know.
const RECONCILED: &str = "reconciled";

/// The noise that a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseOfLine {
    /// z: the noise of the sum, in Δ.
    pub z: f64,
    /// The fewest authors of the sum.
    pub a: u16,
    /// Of these, the authors that may collude.
    pub c: u16,
}

/// One line: a contribution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Line {
    /// Number of the line, from 1.
    pub line: u64,
    /// Id of the federation, in hexadecimal digits.
    pub federation: String,
    /// Number of the epoch.
    pub epoch: u64,
    /// Number of the round.
    pub round: u64,
    /// The commitment to what was contributed, in hexadecimal digits; the word `reconciled` where only
    /// others know that something was contributed.
    pub commitment: String,
    /// The noise; `None` for a round without.
    pub noise: Option<NoiseOfLine>,
    /// ε of all lines so far, rounded up, or "no bound".
    pub epsilon: String,
    /// ε_alone of all lines so far, rounded up, or "no bound".
    pub epsilon_alone: String,
    /// δ of both.
    pub delta: f64,
}

impl Line {
    /// The line of a contribution, with what holds then.
    pub(crate) fn new(line: u64, contribution: &Contribution, bound: &Bound) -> Self {
        let commitment = HEXLOWER.encode(&contribution.commitment.0);
        let (place, cost) = (contribution.place, &contribution.cost);
        Self::at(line, (place, cost), commitment, bound)
    }

    /// The line of a contribution that only others know of.
    pub(crate) fn reconciled(line: u64, known: (Place, &Cost), bound: &Bound) -> Self {
        Self::at(line, known, RECONCILED.into(), bound)
    }

    /// Returns whether only others know of the contribution.
    pub fn is_reconciled(&self) -> bool {
        self.commitment == RECONCILED
    }

    fn at(line: u64, (place, cost): (Place, &Cost), commitment: String, bound: &Bound) -> Self {
        let Place {
            federation,
            epoch,
            round,
        } = place;
        let noise = match cost {
            Cost::Noised { z, authors, .. } => Some(NoiseOfLine {
                z: z.value(),
                a: authors.fewest(),
                c: authors.colluders(),
            }),
            Cost::NoBound => None,
        };
        Self {
            line,
            federation: HEXLOWER.encode(&federation.0),
            epoch,
            round,
            commitment,
            noise,
            epsilon: bound.epsilon().to_string(),
            epsilon_alone: bound.alone().to_string(),
            delta: Delta::value(bound.delta()),
        }
    }

    /// Returns what the line costs.
    ///
    /// # Errors
    /// A description of the fault in its noise.
    pub(crate) fn cost(&self, unit: &SourceUnit) -> Result<Cost, String> {
        let Some(NoiseOfLine { z, a, c }) = self.noise else {
            return Ok(Cost::NoBound);
        };
        Ok(Cost::Noised {
            z: Multiplier::new(z).map_err(|why| why.to_string())?,
            authors: Authors::new(a, c).map_err(|why| why.to_string())?,
            unit: unit.clone(),
        })
    }

    /// Returns whether the line is about this epoch and round.
    pub(crate) fn is_at(&self, place: &Place) -> bool {
        self.epoch == place.epoch
            && self.round == place.round
            && self.federation == HEXLOWER.encode(&place.federation.0)
    }

    /// The text with its hash, without its end, and the hash.
    pub(crate) fn text(&self, before: &Hash) -> (String, Hash) {
        let mut text =
            serde_json::to_string(self).expect("texts and finite numbers can be written as JSON");
        text.pop();
        let hash = chained(before, text.as_bytes());
        text.push_str(BEFORE_HASH);
        text.push_str(&HEXLOWER.encode(&hash.0));
        text.push_str(AFTER_HASH);
        (text, hash)
    }

    /// Reads the text of a line that follows another one.
    ///
    /// # Errors
    /// A description of the fault in the line.
    pub(crate) fn read(text: &[u8], before: &Hash) -> Result<(Self, Hash), String> {
        let end = BEFORE_HASH.len() + HASH + AFTER_HASH.len();
        let body = text.len().checked_sub(end);
        let (body, end) = text.split_at(body.ok_or("the line is too short")?);
        let hash = chained(before, body);
        let expected = format!("{BEFORE_HASH}{}{AFTER_HASH}", HEXLOWER.encode(&hash.0));
        if end != expected.as_bytes() {
            return Err("its hash does not fit it and the lines before".into());
        }
        let whole = [body, b"}"].concat();
        let line = serde_json::from_slice(&whole).map_err(|why| why.to_string())?;
        Ok((line, hash))
    }
}

/// The hash over a line and, through that of the line before, all lines before.
fn chained(before: &Hash, body: &[u8]) -> Hash {
    Hash::labelled("ledger line", &[&before.0, body])
}
