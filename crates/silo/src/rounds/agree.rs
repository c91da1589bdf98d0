//! A manifest's decision and outcome. A manifest without entries has the empty decision, and leaves the
//! models as they are.

use bytes::Bytes;
use methods::LoadedManifest;
use protocol::codec;
use protocol::message::RoundManifest;

use super::RoundBase;
use crate::config::SiloConfig;
use crate::outcome::{Settled, decision, read_from, unchanged};

/// Chooses a decision, encoded.
///
/// # Errors
/// Why the manifest admits none.
pub fn decide(
    config: &SiloConfig,
    base: &RoundBase,
    manifest: &LoadedManifest,
) -> Result<Vec<u8>, String> {
    if manifest.entries.is_empty() {
        return Ok(Vec::new());
    }
    let decision = config.strategy.decide(&base.state, manifest, base.next());
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
    manifest: &LoadedManifest,
    decided: &[u8],
) -> Result<(), String> {
    if manifest.entries.is_empty() {
        let why = "expected an empty decision about an empty sheet, found one with content";
        return decided.is_empty().then_some(()).ok_or_else(|| why.into());
    }
    let (decision, round) = (decision(decided)?, base.next());
    let checked = config
        .strategy
        .check(&base.state, manifest, &decision, round);
    checked.map_err(|objection| objection.to_string())
}

/// Computes the outcome of an encoded decision. `manifest` is `signed` with its models; `to_file` takes
/// the bytes of the outcome's models to where they will be stored.
///
/// # Errors
/// Why decision and manifest do not fit each other.
pub fn settle(
    config: &SiloConfig,
    base: &RoundBase,
    signed: &RoundManifest,
    manifest: &LoadedManifest,
    decided: &[u8],
    to_file: impl Fn(Bytes) -> Bytes,
) -> Result<Settled, String> {
    let round = base.next();
    if manifest.entries.is_empty() {
        return Ok(unchanged(round, &base.state));
    }
    let decision = decision(decided)?;
    let outcome = config
        .strategy
        .settle(&base.state, manifest, &decision, round);
    let outcome = outcome.map_err(|error| error.to_string())?;
    let entries = signed.entries.iter();
    Ok(Settled::new(
        round,
        entries.map(|entry| entry.fields.blob).collect(),
        outcome.assignment,
        read_from(outcome.state, |_, blob| to_file(blob)),
    ))
}
