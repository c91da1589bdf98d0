//! Adopting a final outcome.

use std::sync::Arc;

use actix::{Context, Recipient};
use bytes::Bytes;
use methods::params::Gate;
use methods::strategy::least_loss;
use methods::{Params, State};
use protocol::effects::{FinalRound, WorkError};
use protocol::{Hash, Input, MemberIndex, codec};

use super::part::refused;
use super::{Failed, Ground, Left, Needs, OnRound, Own, WorkerActor};
use crate::actors::silo::Answer;
use crate::config::SiloConfig;
use crate::notice::Notice;
use crate::outcome::{Document, Settled};
use crate::record::{Adopted, Record};
use crate::surroundings::Work;

/// Where the outcome comes from.
enum Source {
    /// Computed here.
    Settled(Arc<Settled>),
    /// Fetched by hash.
    Blobs {
        blob: Bytes,
        document: Document,
        models: Vec<Bytes>,
    },
}

impl WorkerActor {
    /// The outcome's document and, once that is here, its models.
    pub(super) fn needs_outcome(
        &self,
        rounds: &[FinalRound],
        holders: &[MemberIndex],
    ) -> Result<Needs, Failed> {
        let Some(last) = rounds.last() else {
            return Ok(Needs::default());
        };
        // Those who voted for it have it for certain; anybody else may: the hash says what it is.
        let others = self.config.member.epoch.roster.members();
        let others = others.filter(|member| !holders.contains(member));
        let from = holders.iter().copied().chain(others).collect();
        if self.round.settled.contains_key(&last.outcome) {
            return Ok(Needs::default());
        }
        let Some(blob) = self.blobs.get(&last.outcome) else {
            return Ok(Needs {
                blobs: vec![(last.outcome, codec::LIMIT as u64)],
                from,
            });
        };
        let document =
            Document::read(&blob).map_err(|error| WorkError::Refused(error.to_string()))?;
        let size = self.config.learner.layout().document_len() as u64;
        Ok(Needs {
            blobs: document.all_models().map(|model| (model, size)).collect(),
            from,
        })
    }

    /// Adopts the last of these rounds.
    pub(super) fn apply(
        &mut self,
        rounds: Vec<FinalRound>,
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let Some(last) = rounds.last().cloned() else {
            return;
        };
        let round = last.round;
        let Some(source) = self.source(&last.outcome) else {
            let result = Err(WorkError::Unavailable);
            return reply.do_send(Input::Applied { round, result }.into());
        };
        let bytes = match &source {
            Source::Settled(_) => 0,
            Source::Blobs { models, .. } => models.iter().map(|model| model.len() as u64).sum(),
        };
        let config = self.config.clone();
        if self.again == Some(last.block) {
            return self.stand_again(round, source, bytes, reply, ctx);
        }
        let (trained, own) = (self.trained.clone(), self.own.personal.clone());
        let (before, since) = (self.own.coalition, self.own.round);
        let job = move || {
            let settled = assemble(&config, source)?;
            if settled.document.round != round {
                return Err("the final outcome is of another round".to_owned());
            }
            // The protocol does not know the position after a restart; the outcome does.
            let contributed = trained.as_ref().filter(|trained| trained.round == round);
            let find = |trained: &Left| {
                settled
                    .document
                    .entries
                    .iter()
                    .position(|entry| *entry == trained.blob)
            };
            let position = last.position.or_else(|| contributed.and_then(find));
            // A personal state belongs to an outcome that the training behind it went into.
            let entered = |trained: &Left| {
                let earlier = |final_: &FinalRound| final_.round == trained.round;
                let earlier = rounds.iter().find(|final_| earlier(final_));
                if trained.round == round {
                    position.is_some()
                } else {
                    earlier.is_some_and(|final_| final_.position.is_some())
                }
            };
            let personal = trained
                .filter(entered)
                .map_or(own, |trained| trained.personal);
            let assigned = position.and_then(|at| settled.document.assignment.get(at));
            let has_model = |coalition: &&u32| (**coalition as usize) < settled.state.models.len();
            let coalition = assigned.filter(has_model).copied();
            // Where coalitions are as they were, who has no entry stays.
            let mut after = rounds.iter().filter(|final_| final_.round > since);
            let nobody_came = after.clone().count() == 1 && settled.document.entries.is_empty();
            let kept =
                nobody_came || after.all(|final_| config.strategy.keeps_numbers(final_.round));
            let stays = Some(&before)
                .filter(|before| kept && has_model(before))
                .copied();
            let coalition = coalition
                .or(stays)
                .unwrap_or_else(|| best(&config, &settled.state, &personal.params));
            let ground = Arc::new(Ground::new(&config, &settled));
            Ok((
                ground,
                settled,
                Own {
                    round,
                    coalition,
                    personal,
                },
            ))
        };
        self.applying = true;
        self.run(
            ctx,
            reply,
            Work::Models { bytes },
            job,
            move |worker, result| {
                worker.applying = false;
                match result.map_or_else(refused, |result| result.map_err(WorkError::Refused)) {
                    Ok((ground, settled, own)) => worker.adopt(last.block, ground, &settled, own),
                    Err(error) => Input::Applied {
                        round,
                        result: Err(error),
                    }
                    .into(),
                }
            },
        );
    }

    /// Stands on an outcome again that was adopted in an earlier life and whose blobs were gone.
    /// That is no adoption: the journal says already what the silo is with it, and nothing of it
    /// changes.
    fn stand_again(
        &mut self,
        round: u64,
        source: Source,
        bytes: u64,
        reply: Recipient<Answer>,
        ctx: &mut Context<Self>,
    ) {
        let (config, coalition) = (self.config.clone(), self.own.coalition);
        let job = move || {
            let settled = assemble(&config, source)?;
            let models = settled.state.models.len();
            if settled.document.round != round || coalition as usize >= models {
                return Err(format!(
                    "the journal names coalition {coalition} of round {round}, and the outcome has \
                     {models} of round {}",
                    settled.document.round
                ));
            }
            Ok(Arc::new(Ground::new(&config, &settled)))
        };
        self.applying = true;
        let work = Work::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            worker.applying = false;
            match result.map_or_else(refused, |result| result.map_err(WorkError::Refused)) {
                Ok(ground) => {
                    (worker.ground, worker.round) = (ground, OnRound::default());
                    worker.again = None;
                    worker.checks.advance(round);
                    Answer {
                        keep: Vec::new(),
                        retain: None,
                        notices: vec![Notice::Whole { round }],
                        input: Ok(Input::Applied {
                            round,
                            result: Ok(()),
                        }),
                    }
                }
                Err(error) => Input::Applied {
                    round,
                    result: Err(error),
                }
                .into(),
            }
        });
    }

    fn source(&self, outcome: &Hash) -> Option<Source> {
        if let Some(settled) = self.round.settled.get(outcome) {
            return Some(Source::Settled(settled.clone()));
        }
        let blob = self.blobs.get(outcome)?;
        let document = Document::read(&blob).ok()?;
        let models = document.all_models().map(|model| self.blobs.get(&model));
        let models = models.collect::<Option<_>>()?;
        Some(Source::Blobs {
            blob,
            document,
            models,
        })
    }

    /// Everything of the silo moves to the new round; durable with the answer.
    fn adopt(&mut self, block: Hash, ground: Arc<Ground>, settled: &Settled, own: Own) -> Answer {
        let round = ground.round;
        let blobs = settled.names.clone();
        let adopted = Adopted {
            round,
            block: block.0,
            outcome: settled.hash.0,
            coalition: own.coalition,
            personal: own.personal.hash.0,
            blobs: blobs.iter().map(|blob| blob.0).collect(),
        };
        let notice = Notice::Adopted {
            round,
            outcome: settled.hash,
            state: settled.state.clone(),
            assignment: settled.document.assignment.as_slice().into(),
            coalition: own.coalition,
            model: settled.state.models[own.coalition as usize].clone(),
            personal: own.personal.params.clone(),
        };
        self.kept.push_back(blobs);
        while self.kept.len() > self.config.member.epoch.charter.keep as usize {
            self.kept.pop_front();
        }
        let mut retain: Vec<Hash> = self.kept.iter().flatten().copied().collect();
        retain.push(own.personal.hash);
        // Not unstable: this one sees that it is a few sorted runs.
        retain.sort();
        retain.dedup();
        (self.ground, self.own, self.round) = (ground, own, OnRound::default());
        (self.trained, self.again) = (None, None);
        self.checks.advance(round);
        Answer {
            keep: vec![
                Record::Adopted(adopted),
                Record::Protocol(protocol::Record::Applied { round }),
            ],
            retain: Some(retain),
            notices: vec![notice],
            input: Ok(Input::Applied {
                round,
                result: Ok(()),
            }),
        }
    }
}

/// An outcome is final because a quorum computed it, so its models need only be models.
pub(crate) fn outcome_gate(config: &SiloConfig) -> Gate {
    Gate {
        layout: config.learner.layout(),
        norm: f64::INFINITY,
    }
}

fn assemble(config: &SiloConfig, source: Source) -> Result<Arc<Settled>, String> {
    match source {
        Source::Settled(settled) => Ok(settled),
        Source::Blobs {
            blob,
            document,
            models,
        } => {
            let gate = outcome_gate(config);
            let models = models.into_iter().map(|model| gate.admit(model));
            let models = models
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?;
            Ok(Arc::new(Settled::assemble(blob, document, models)))
        }
    }
}

/// The coalition whose model does best on the silo's own rows: where a silo goes that has no entry
/// in the outcome, where coalitions were numbered anew.
fn best(config: &SiloConfig, state: &State, personal: &Params) -> u32 {
    least_loss(
        &state.models,
        &*config.learner,
        personal,
        Some(&config.radius),
    ) as u32
}
