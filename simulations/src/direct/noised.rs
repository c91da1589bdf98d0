//! A round with noise of the loop: the integers of all members are added as they are, because masks would
//! cancel in the sum. The noise of every member is that which it would draw over a network.

use protocol::{MemberIndex, Report};
use silo::Notice;
use silo::rounds::{
    LastTraining, NoiseDraws, NoisedShare, noised_outcome, noised_share, vector_bytes,
};

use super::Direct;
use crate::error::RunError;
use crate::federation::life;

/// The noise that every member of a federation draws after its first start.
pub(super) fn draws(seed: u64, members: usize) -> Vec<NoiseDraws> {
    let members = (0..members).map(|at| MemberIndex(at as u16));
    members
        .map(|by| NoiseDraws::new(&life(seed, by, 1)))
        .collect()
}

impl Direct<'_> {
    /// Runs one round with noise, and adopts its outcome.
    pub(super) fn noised_round(&mut self) -> Result<(), RunError> {
        let shares = self.shares()?;
        let (config, base) = (self.config.clone(), self.base.clone());
        let authors: Vec<MemberIndex> = shares.iter().map(|(by, _)| *by).collect();
        let mut sum = Vec::new();
        shares.iter().for_each(|(_, share)| share.add_to(&mut sum));
        let settled = noised_outcome(&config, &base, &authors, &sum);
        let settled = settled.map_err(|what| self.failed(what))?;
        let bytes = vector_bytes(&config, &base, authors.iter().copied());
        let bytes = bytes.map_err(|what| self.failed(what))?;
        self.blobs += authors.len() as u64 * (self.silos.len() as u64 - 1) * bytes;
        let mut after: Vec<Option<(usize, LastTraining)>> = vec![None; self.silos.len()];
        for (position, by) in authors.iter().enumerate() {
            let training = LastTraining {
                round: base.next(),
                blob: settled.hash,
                // Nothing but the global model is learned.
                personal: self.silos[by.at()].own.personal.clone(),
            };
            after[by.at()] = Some((position, training));
        }
        let keeps = config.strategy.keeps_numbers(base.next());
        self.adopted(authors, after, keeps, &settled)
    }

    /// Returns what every member adds to the sum.
    fn shares(&mut self) -> Result<Vec<(MemberIndex, NoisedShare)>, RunError> {
        let (base, round) = (self.base.clone(), self.base.next());
        let (mut shares, mut failed) = (Vec::new(), None);
        for at in 0..self.silos.len() {
            let config = self.silos[at].config.clone();
            match noised_share(&config, &base, &mut self.noise[at]) {
                Ok(Some(share)) => {
                    let (loss, samples, seconds) = (share.loss, share.samples, 0.0);
                    let trained = Notice::Trained {
                        round,
                        loss,
                        samples,
                        seconds,
                        metrics: std::collections::BTreeMap::new(),
                    };
                    self.notice(at, trained);
                    shares.push((MemberIndex(at as u16), share));
                }
                Ok(None) => return Err(self.failed("no noise is agreed on")),
                Err(reason) => {
                    let reported = reason.clone();
                    let report = Report::TrainingFailed { round, reason };
                    self.notice(at, Notice::Protocol(report));
                    failed = Some(reported);
                }
            }
        }
        if let Some(reason) = failed {
            self.enough(self.silos.len() - shares.len(), reason)?;
        }
        Ok(shares)
    }
}
