//! A federation without messages: one loop that plans, trains, decides, checks and settles every round by
//! the functions that silos use ([`silo::rounds`]). Nobody leads, signs or votes.
//!
//! The outcome of a round depends on its contributions alone, so every outcome is that of the same
//! federation over a network, to the bit: entries have the ids that they would have there, which follow
//! from the members' keys, and stand in their order. What a healthy network adds is time, and who leads.

mod manifest;
mod noised;
mod round;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use methods::Params;
use protocol::parameters::{RoundMode, Verification};
use protocol::{Hash, MemberIndex, Time};
use silo::outcome::genesis;
use silo::rounds::{NoiseDraws, OwnState, Personal, RoundBase};
use silo::{Notice, SiloConfig};

use crate::contributions::{Contributions, GroupingBasis};
use crate::environment::Mesh;
use crate::error::RunError;
use crate::federation::Federation;
use crate::options::{Options, RoundDone};
use crate::pool::Threads;
use crate::record::{RoundRecord, RunRecord};

/// A federation at the beginning of a round.
struct Direct<'a> {
    federation: &'a Federation,
    threads: &'a Threads,
    /// The configuration by which decisions are made.
    config: Arc<SiloConfig>,
    silos: Vec<DirectSilo>,
    base: Arc<RoundBase>,
    notices: Vec<(Time, MemberIndex, Notice)>,
    rounds: Vec<RoundRecord>,
    /// The contributions of all rounds, where they are kept.
    kept_contributions: Option<Vec<Contributions>>,
    /// What groups were formed by, where that is kept.
    basis: Option<GroupingBasis>,
    /// Bytes that the members would send of models.
    blobs: u64,
    /// The blobs of the last rounds, which members would still have.
    kept: VecDeque<Vec<Hash>>,
    /// The noise that every member draws, in a federation with noise.
    noise: Vec<NoiseDraws>,
}

/// A silo between two rounds.
struct DirectSilo {
    config: Arc<SiloConfig>,
    own: OwnState,
    /// What rounding left out of its last contribution.
    rest: Option<Params>,
}

/// Runs one federation to its end.
///
/// # Errors
/// [`RunError`]: silos that cannot train, or a round that cannot end.
pub(crate) fn federate(
    federation: &Federation,
    options: &mut Options<'_>,
    threads: &Arc<Threads>,
) -> Result<RunRecord, RunError> {
    let began = Instant::now();
    let mut direct = Direct::new(federation, threads)?;
    direct.kept_contributions = options.keep_contributions.then(Vec::new);
    direct.basis = options.keep_basis.then(GroupingBasis::default);
    let protocol = &federation.epoch.protocol;
    // At other levels it depends on the leads.
    let counted = protocol.verification == Verification::Full;
    for round in 1..=protocol.rounds {
        match protocol.privacy.mode() {
            RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => direct.round()?,
            RoundMode::Noised(..) => direct.noised_round()?,
        }
        let done = RoundDone {
            round,
            rounds: protocol.rounds,
            led: None,
            bytes: counted.then_some(direct.blobs),
            losses: direct.losses(round),
        };
        (options.progress)(&done);
        let ended = options.ends.as_mut().is_some_and(|ends| ends(&done));
        if ended || direct.config.strategy.ends(&direct.base.state) {
            break;
        }
    }
    Ok(RunRecord {
        mesh: Mesh::DIRECT,
        notices: direct.notices,
        rounds: direct.rounds,
        blobs: counted.then_some(direct.blobs),
        seconds: began.elapsed().as_secs_f64(),
        protocol: None,
        contributions: direct.kept_contributions.unwrap_or_default(),
        basis: direct.basis.unwrap_or_default(),
    })
}

impl<'a> Direct<'a> {
    /// The federation before its first round.
    fn new(federation: &'a Federation, threads: &'a Threads) -> Result<Self, RunError> {
        let silo = |config: &SiloConfig| {
            let initial = config.learner.initial_personal(config.initial_seed);
            DirectSilo {
                config: Arc::new(config.clone()),
                own: OwnState {
                    round: 0,
                    coalition: 0,
                    personal: Personal::new(initial),
                },
                rest: None,
            }
        };
        let silos: Vec<DirectSilo> = federation.members.iter().map(silo).collect();
        let first = silos.first();
        let config = first.map(|first| first.config.clone());
        let config = config.ok_or_else(|| RunError::Setup("there are no silos".into()))?;
        let genesis = genesis(&*config.strategy, &*config.learner, config.initial_seed);
        Ok(Self {
            federation,
            threads,
            base: Arc::new(RoundBase::new(&config, &genesis)),
            config,
            silos,
            notices: Vec::new(),
            rounds: Vec::new(),
            kept_contributions: None,
            basis: None,
            blobs: 0,
            kept: VecDeque::new(),
            noise: noised::draws(federation.seed, federation.members.len()),
        })
    }

    /// The training losses of a round, by silo.
    fn losses(&self, of: u64) -> Vec<(String, f64)> {
        let roster = &self.federation.epoch.roster;
        let mut losses: Vec<_> = self
            .notices
            .iter()
            .rev()
            .take_while(
                |(_, _, notice)| !matches!(notice, Notice::Adopted { round, .. } if *round < of),
            )
            .filter_map(|(_, by, notice)| match notice {
                Notice::Trained { round, loss, .. } if *round == of => {
                    Some((roster.name(*by).to_owned(), *loss))
                }
                _ => None,
            })
            .collect();
        losses.reverse();
        losses
    }

    /// Why the round under way cannot end.
    fn failed(&self, what: impl Into<String>) -> RunError {
        RunError::Round {
            round: self.base.next(),
            what: what.into(),
        }
    }

    /// A silo tells something. Without messages there is no clock.
    fn notice(&mut self, by: usize, notice: Notice) {
        let by = MemberIndex(by as u16);
        self.notices.push((Time::default(), by, notice));
    }
}
