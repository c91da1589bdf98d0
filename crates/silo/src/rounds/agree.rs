//! A sheet's decision and outcome. A sheet without entries has the empty decision, and leaves the
//! models as they are.

use bytes::Bytes;
use methods::Sheet;
use protocol::codec;
use protocol::message::Sheet as SignedSheet;

use super::RoundBase;
use crate::config::SiloConfig;
use crate::outcome::{Settled, decision, read_from};

/// Chooses a decision, encoded.
///
/// # Errors
/// Why the sheet admits none.
pub fn decide(config: &SiloConfig, base: &RoundBase, sheet: &Sheet) -> Result<Vec<u8>, String> {
    if sheet.entries.is_empty() {
        return Ok(Vec::new());
    }
    let decision = config.strategy.decide(&base.state, sheet, base.next());
    decision
        .map(|decision| codec::encode(&decision))
        .map_err(|error| error.to_string())
}

/// Checks an encoded decision.
///
/// # Errors
/// Why a member does not accept it.
pub fn check(
    config: &SiloConfig,
    base: &RoundBase,
    sheet: &Sheet,
    decided: &[u8],
) -> Result<(), String> {
    if sheet.entries.is_empty() {
        let why = "expected an empty decision about an empty sheet, found one with content";
        return decided.is_empty().then_some(()).ok_or_else(|| why.into());
    }
    let (decision, round) = (decision(decided)?, base.next());
    let checked = config.strategy.check(&base.state, sheet, &decision, round);
    checked.map_err(|objection| objection.to_string())
}

/// The outcome of a round without contributions: the models stay as they are.
pub(crate) fn unchanged(config: &SiloConfig, base: &RoundBase) -> Settled {
    let round = base.next();
    let state = config.strategy.nothing_told(&base.state, round);
    Settled::new(round, Vec::new(), Vec::new(), state)
}

/// Computes the outcome of an encoded decision. `sheet` is `signed` with its models; `to_file` takes
/// the bytes of the outcome's models to where they will be stored.
///
/// # Errors
/// Why decision and sheet do not fit each other.
pub fn settle(
    config: &SiloConfig,
    base: &RoundBase,
    signed: &SignedSheet,
    sheet: &Sheet,
    decided: &[u8],
    to_file: impl Fn(Bytes) -> Bytes,
) -> Result<Settled, String> {
    let round = base.next();
    if sheet.entries.is_empty() {
        return Ok(unchanged(config, base));
    }
    let decision = decision(decided)?;
    let outcome = config.strategy.settle(&base.state, sheet, &decision, round);
    let outcome = outcome.map_err(|error| error.to_string())?;
    let entries = signed.entries.iter();
    Ok(Settled::new(
        round,
        entries.map(|entry| entry.fields.blob).collect(),
        outcome.assignment,
        read_from(outcome.state, |_, blob| to_file(blob)),
    ))
}
