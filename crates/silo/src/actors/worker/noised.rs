//! The part of the worker for rounds with noise.

use std::collections::BTreeMap;

use actix::{Context, Recipient};
use bytes::Bytes;
use privacy::masks::Secret;
use protocol::Hash;

use super::WorkerActor;
use super::masked::not_prepared;
use crate::actors::messages::WorkResult;
use crate::notice::Notice;
use crate::rounds::{Noised, NoisedVector, PreparedInput, PreparedRound};
use crate::surroundings::WorkSize;

impl WorkerActor {
    /// Computes the silo's gradients, adds noise, and keeps both with a secret. Done once for an epoch and
    /// round.
    pub(super) fn prepare_noised(
        &mut self,
        round: u64,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let drawn = self.secrets.mask();
        let drawn = drawn.and_then(|secret| Ok((secret, self.secrets.noise()?)));
        let (secret, seed) = match drawn {
            Ok(drawn) => drawn,
            Err(reason) => return reply.do_send(not_prepared(round, reason)),
        };
        let (config, base, blobs) = (self.config.clone(), self.base.clone(), self.blobs.clone());
        let epoch = config.member.epoch.clone();
        let work = WorkSize::Train {
            samples: config.learner.samples(),
        };
        let job = move || {
            let masked = epoch.charter.privacy.masked();
            let noised = Noised::of(masked, base.gate.layout.len())?;
            let noised = noised.ok_or("no noise is agreed on")?;
            let vector = noised.vector(&config, &base, &seed)?;
            let blob = PreparedRound::noised_blob(&secret, &epoch.id, vector.integers.all());
            let blob = blobs.to_file(blob);
            Ok((vector, secret, Hash::of(&blob), blob))
        };
        let began = self.clock.now();
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = worker.in_time(round, result);
            let seconds = worker.clock.since(began).as_secs_f64();
            match result.and_then(|result| worker.prepared_noised(round, seconds, result)) {
                Ok(answer) => answer,
                Err(reason) => not_prepared(round, reason),
            }
        });
    }

    /// Keeps a vector with noise.
    fn prepared_noised(
        &mut self,
        round: u64,
        seconds: f64,
        (vector, secret, hash, blob): (NoisedVector, Secret, Hash, Bytes),
    ) -> Result<WorkResult, String> {
        let NoisedVector {
            integers,
            loss,
            samples,
        } = vector;
        let prepared = PreparedRound {
            round,
            secret,
            input: PreparedInput::Noised(integers),
        };
        let notice = Notice::Trained {
            round,
            loss,
            samples,
            seconds,
            metrics: BTreeMap::new(),
        };
        // What is personal stays as it is: nothing else is learned from rows.
        self.keep_prepared((prepared, hash, blob), self.own.personal.clone(), notice)
    }
}
