//! Rounds with noise, played by the functions of a silo, without masks and messages.
//!
//! Masks cancel in a sum, so the sums are those that members would open. All members take part in every round.

use methods::Params;
use protocol::MemberIndex;
use silo::SiloConfig;
use silo::outcome::genesis;
use silo::rounds::{NoisedPart, RoundBase, noised_outcome, noised_part};
use simulations::RunError;
use simulations::random::Random;

/// A round before its outcome.
pub(crate) struct PlayedRound<'a> {
    /// The outcome that it starts from.
    pub(crate) base: &'a RoundBase,
    /// What every member adds to the sum.
    pub(crate) parts: &'a [NoisedPart],
    /// The opened sum.
    pub(crate) sum: &'a [i64],
}

/// Plays all agreed rounds, and returns the model after each. The noise follows from `seed` alone; `watch` sees
/// every round before its outcome.
///
/// # Errors
/// [`RunError::Round`]: a round that cannot be played.
pub(crate) fn replay(
    members: &[SiloConfig],
    seed: u64,
    mut watch: impl FnMut(&PlayedRound<'_>) -> Result<(), String>,
) -> Result<Vec<Params>, RunError> {
    let first = members.first();
    let config = first.ok_or_else(|| RunError::Setup("there are no silos".into()))?;
    let authors: Vec<_> = (0..members.len())
        .map(|at| MemberIndex(at as u16))
        .collect();
    let layout = config.learner.layout();
    let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
    let mut base = RoundBase::new(config, &genesis);
    let mut noise = Random::new(seed, "noise of an attacked federation");
    let mut released = Vec::new();
    for round in 1..=config.member.epoch.protocol.rounds {
        let failed = |what| RunError::Round { round, what };
        let parts = members.iter();
        let parts = parts.map(|member| noised_part(member, &base, noise.bytes()));
        let parts: Vec<_> = parts.collect::<Result<_, _>>().map_err(failed)?;
        let sum = total(&parts);
        let played = PlayedRound {
            base: &base,
            parts: &parts,
            sum: &sum,
        };
        watch(&played).map_err(failed)?;
        let settled = noised_outcome(config, &base, &authors, &sum).map_err(failed)?;
        base = RoundBase::new(config, &settled);
        let model = base.state.models.first();
        // Adaptive strategies keep moments beside the model.
        let model = model.and_then(|model| Params::gather(&layout, &[model]));
        released.push(model.ok_or_else(|| failed("it has no global model".into()))?);
    }
    Ok(released)
}

/// The sum of what these silos add.
pub(crate) fn total<'a>(parts: impl IntoIterator<Item = &'a NoisedPart>) -> Vec<i64> {
    let mut total = Vec::new();
    for part in parts {
        total.resize(part.units.len(), 0);
        let own = part.units.iter().zip(&part.noise);
        for (total, (gradient, noise)) in total.iter_mut().zip(own) {
            *total += gradient + noise;
        }
    }
    total
}
