//! The sums of a secure-aggregation round one by one, opened again from what a silo has kept.

use bytes::Bytes;
use privacy::masks::{Seeds, Shape, SumAuthors, Void, Width, Word};
use protocol::MemberIndex;
use protocol::message::MaskedEntry;
use protocol::work::WorkError;

use super::{OpeningRound, authors};
use crate::config::SiloConfig;
use crate::rounds::RoundBase;
use crate::rounds::sums::{SumBasis, summand};

/// A sum that was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenSum {
    /// Its authors, ascending, with their weights.
    pub authors: Vec<(MemberIndex, u64)>,
    /// The weighted sum of their vectors, by coordinate; `None` if it tells nothing.
    pub values: Option<Vec<i64>>,
    /// With noise, the standard deviation of that of one author in each coordinate.
    pub sigma: Option<f64>,
}

/// Opens the sums of a final round.
///
/// # Errors
/// [`WorkError::Unavailable`]: a vector is missing, or too few unmaskings hold.
/// [`WorkError::Refused`]: what is wrong.
pub(crate) fn open_sums(
    config: &SiloConfig,
    base: &RoundBase,
    round: &OpeningRound,
    unmaskings: &[(MemberIndex, Vec<u8>)],
    vector: impl Fn(&MaskedEntry) -> Option<Bytes>,
) -> Result<Vec<OpenSum>, WorkError> {
    let (held, _) = round.proven(unmaskings);
    if held.len() < round.list.threshold {
        return Err(WorkError::Unavailable);
    }
    let openings: Vec<_> = held.iter().map(|(_, opening)| opening).collect();
    let seeds = Seeds::recover(&round.ready, &round.transcripts, &openings);
    let seeds = seeds.map_err(|error| WorkError::Refused(error.to_string()))?;
    let of = SumBasis { config, base };
    let summand = summand(of).map_err(WorkError::Refused)?;
    let sums = round.list.sums.iter().map(|sum| {
        let entries = round.manifest.entries.iter();
        let vectors = entries
            .filter(|entry| sum.has(entry.member))
            .map(|entry| vector(entry).ok_or(WorkError::Unavailable));
        let vectors = vectors.collect::<Result<Vec<_>, _>>()?;
        let parts: Vec<&[u8]> = vectors.iter().map(|vector| &vector[..]).collect();
        let shape = summand.shape(of, sum).map_err(WorkError::Refused)?;
        let authors = authors(&round.ready, sum).map_err(WorkError::Refused)?;
        let opened = match shape.width() {
            Width::Bits32 => opened::<u32>(&seeds, shape, &authors, &parts),
            Width::Bits64 => opened::<u64>(&seeds, shape, &authors, &parts),
        };
        let (values, void) = opened.map_err(WorkError::Refused)?;
        Ok(OpenSum {
            authors: sum.authors.clone(),
            values: void.is_none().then_some(values),
            sigma: summand.sigma(),
        })
    });
    sums.collect()
}

fn opened<W: Word>(
    seeds: &Seeds,
    shape: Shape,
    authors: &SumAuthors,
    vectors: &[&[u8]],
) -> Result<(Vec<i64>, Option<Void>), String> {
    let opened = seeds.combine::<W>(shape, authors, vectors);
    let opened = opened.map_err(|error| error.to_string())?;
    let words = opened.words.iter().take(shape.coordinates());
    Ok((words.map(|word| word.signed()).collect(), opened.void))
}
