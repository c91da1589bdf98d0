//! Adopts final outcomes.

use std::sync::Arc;

use actix::{Context, Recipient};
use bytes::Bytes;
use protocol::effects::{Answer, FinalRound, WorkError};
use protocol::{Hash, MemberIndex, codec};

use super::part::refused;
use super::{CurrentRound, NeededBlobs, WorkerActor};
use crate::actors::messages::WorkResult;
use crate::config::SiloConfig;
use crate::environment::WorkSize;
use crate::notice::Notice;
use crate::outcome::{Document, Settled};
use crate::record::{Adopted, JournalRecord};
use crate::rounds::{LastTraining, OwnState, RoundBase, adopt, outcome_gate};

/// Most models for each member in an outcome that is kept before a quorum has agreed on it.
const MODELS: usize = 16;

/// The source of an outcome.
enum OutcomeSource {
    /// Computed here.
    Settled(Arc<Settled>),
    /// Fetched by hash.
    Blobs {
        blob: Bytes,
        document: Box<Document>,
        models: Vec<Bytes>,
    },
}

impl OutcomeSource {
    /// Bytes of models that have to be read.
    fn bytes(&self) -> u64 {
        match self {
            Self::Settled(_) => 0,
            Self::Blobs { models, .. } => models.iter().map(|model| model.len() as u64).sum(),
        }
    }
}

impl WorkerActor {
    /// The blobs of an outcome that are needed: its document and, once that is here, its models.
    pub(super) fn needs_outcome(
        &self,
        outcome: &Hash,
        holders: &[MemberIndex],
    ) -> Result<NeededBlobs, WorkError> {
        // Its voters have it for certain, others may have it; the hash is checked in any case.
        let others = self.config.member.epoch.roster.members();
        let others = others.filter(|member| !holders.contains(member));
        let from = holders.iter().copied().chain(others).collect();
        if self.round.settled.contains_key(outcome) {
            return Ok(NeededBlobs::default());
        }
        let Some(blob) = self.blobs.get(outcome) else {
            return Ok(NeededBlobs {
                blobs: vec![(*outcome, codec::LIMIT as u64)],
                from,
            });
        };
        let document =
            Document::read(&blob).map_err(|error| WorkError::Refused(error.to_string()))?;
        let size = self.config.learner.layout().document_len() as u64;
        Ok(NeededBlobs {
            blobs: document.all_models().map(|model| (model, size)).collect(),
            from,
        })
    }

    /// Refuses an outcome that no quorum has computed if it names more models than strategies keep: a
    /// lead must not fill the disks of others.
    pub(super) fn bounded(&self, outcome: &Hash) -> Result<(), WorkError> {
        let document = self.blobs.get(outcome).map(|blob| Document::read(&blob));
        let Some(Ok(document)) = document else {
            return Ok(());
        };
        let most = MODELS * (1 + self.config.member.epoch.roster.len());
        match document.all_models().count() {
            few if few <= most => Ok(()),
            many => Err(WorkError::Refused(format!(
                "expected an outcome with at most {most} models, found {many}"
            ))),
        }
    }

    /// Keeps an outcome that others have computed: all of its models are here, and have the agreed
    /// layout.
    pub(super) fn keep(
        &mut self,
        round: u64,
        outcome: Hash,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let kept = move |result| Answer::Kept {
            round,
            outcome,
            result,
        };
        let Some(source) = self.source(&outcome) else {
            return reply.do_send(kept(Err(WorkError::Unavailable)).into());
        };
        let bytes = source.bytes();
        let config = self.config.clone();
        let job = move || {
            let settled = assemble(&config, source)?;
            of_round(&settled, round)?;
            Ok(settled)
        };
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = result.map_or_else(refused, |result| result.map_err(WorkError::Refused));
            if let Ok(settled) = &result
                && round == worker.base.next()
            {
                worker.round.settled.insert(outcome, settled.clone());
            }
            kept(result.map(|_| ())).into()
        });
    }

    /// Adopts the last of these rounds.
    pub(super) fn apply(
        &mut self,
        rounds: Vec<FinalRound>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let Some(last) = rounds.last().cloned() else {
            return;
        };
        let round = last.round;
        let Some(source) = self.source(&last.outcome) else {
            let result = Err(WorkError::Unavailable);
            let failed = Answer::Applied {
                round,
                ends: false,
                result,
            };
            return reply.do_send(failed.into());
        };
        let bytes = source.bytes();
        let config = self.config.clone();
        if self.again == Some(last.block) {
            return self.recover(round, source, bytes, reply, ctx);
        }
        let (trained, own) = (self.trained.clone(), self.own.clone());
        let job = move || {
            let settled = assemble(&config, source)?;
            of_round(&settled, round)?;
            let own = own_after(&config, &settled, &rounds, own, trained);
            let base = Arc::new(RoundBase::new(&config, &settled));
            Ok((base, settled, own))
        };
        self.applying = true;
        self.run(
            ctx,
            reply,
            WorkSize::Models { bytes },
            job,
            move |worker, result| {
                worker.applying = false;
                match result.map_or_else(refused, |result| result.map_err(WorkError::Refused)) {
                    Ok((base, settled, own)) => worker.adopt(last.block, base, &settled, own),
                    Err(error) => Answer::Applied {
                        round,
                        ends: false,
                        result: Err(error),
                    }
                    .into(),
                }
            },
        );
    }

    /// Restores the state after an outcome that was adopted before a restart, once its missing blobs
    /// are here again. This is no second adoption: the journal already has it.
    fn recover(
        &mut self,
        round: u64,
        source: OutcomeSource,
        bytes: u64,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, coalition) = (self.config.clone(), self.own.coalition);
        let job = move || {
            let settled = assemble(&config, source)?;
            let models = settled.state.models.len();
            if settled.document.round != round || coalition as usize >= models {
                return Err(format!(
                    "expected an outcome of round {round} with coalition {coalition}, found one of \
                     round {} with {models} coalitions",
                    settled.document.round
                ));
            }
            Ok(Arc::new(RoundBase::new(&config, &settled)))
        };
        self.applying = true;
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            worker.applying = false;
            match result.map_or_else(refused, |result| result.map_err(WorkError::Refused)) {
                Ok(base) => {
                    let recovered = [Notice::Recovered { round }].into_iter();
                    let notices = recovered.chain(worker.searched(&base)).collect();
                    (worker.base, worker.round) = (base, CurrentRound::default());
                    worker.again = None;
                    worker.checks.advance(round);
                    WorkResult {
                        line: None,
                        records: Vec::new(),
                        retain: None,
                        notices,
                        answer: Ok(Answer::Applied {
                            round,
                            ends: worker.config.strategy.ends(&worker.base.state),
                            result: Ok(()),
                        }),
                    }
                }
                Err(error) => Answer::Applied {
                    round,
                    ends: false,
                    result: Err(error),
                }
                .into(),
            }
        });
    }

    fn source(&self, outcome: &Hash) -> Option<OutcomeSource> {
        if let Some(settled) = self.round.settled.get(outcome) {
            return Some(OutcomeSource::Settled(settled.clone()));
        }
        let blob = self.blobs.get(outcome)?;
        let document = Document::read(&blob).ok()?;
        let models = document.all_models().map(|model| self.blobs.get(&model));
        let models = models.collect::<Option<_>>()?;
        Some(OutcomeSource::Blobs {
            blob,
            document: Box::new(document),
            models,
        })
    }

    /// Returns what the round before `base` shows of who corrupts sums, if it shows more than was known.
    fn searched(&self, base: &RoundBase) -> Option<Notice> {
        let changed = base.voids != self.base.voids;
        Notice::searched(base.round, &base.voids).filter(|_| changed)
    }

    /// Moves the silo to the new round; durable once the silo has committed the records.
    fn adopt(
        &mut self,
        block: Hash,
        base: Arc<RoundBase>,
        settled: &Settled,
        own: OwnState,
    ) -> WorkResult {
        let round = base.round;
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
        while self.kept.len() > self.config.member.epoch.protocol.keep_rounds as usize {
            self.kept.pop_front();
        }
        let secret = self.secret_of_void(settled);
        let kept = self.kept.iter().chain(&self.void);
        let mut retain: Vec<Hash> = kept.flatten().copied().collect();
        retain.push(own.personal.hash);
        // A stable sort, because it is fast on a few sorted runs.
        retain.sort();
        retain.dedup();
        let searched = self.searched(&base);
        (self.base, self.own, self.round) = (base, own, CurrentRound::default());
        (self.trained, self.again) = (None, None);
        // With the blobs that are not retained this is forgotten on the disk, too.
        (self.prepared, self.opening) = (None, None);
        self.checks.advance(round);
        let mut records = vec![
            JournalRecord::Adopted(adopted),
            JournalRecord::Protocol(protocol::Record::Applied { round }),
        ];
        records.extend(secret);
        WorkResult {
            line: None,
            records,
            retain: Some((retain, self.blobs.mark())),
            notices: [notice].into_iter().chain(searched).collect(),
            answer: Ok(Answer::Applied {
                round,
                ends: self.config.strategy.ends(&self.base.state),
                result: Ok(()),
            }),
        }
    }
}

fn assemble(config: &SiloConfig, source: OutcomeSource) -> Result<Arc<Settled>, String> {
    match source {
        OutcomeSource::Settled(settled) => Ok(settled),
        OutcomeSource::Blobs {
            blob,
            document,
            models,
        } => {
            let gate = outcome_gate(config);
            let models = models.into_iter().map(|model| gate.admit(model));
            let models = models
                .collect::<Result<_, _>>()
                .map_err(|error| error.to_string())?;
            Ok(Arc::new(Settled::assemble(blob, *document, models)))
        }
    }
}

/// Returns whether an outcome is of this round.
///
/// # Errors
/// The round that it is of, in a sentence.
fn of_round(settled: &Settled, round: u64) -> Result<(), String> {
    match settled.document.round {
        same if same == round => Ok(()),
        other => Err(format!(
            "expected an outcome of round {round}, found one of round {other}"
        )),
    }
}

/// The silo's own state after the last of these rounds, whose outcome this is; `own` and `trained` are
/// its state and its last training before.
fn own_after(
    config: &SiloConfig,
    settled: &Settled,
    rounds: &[FinalRound],
    own: OwnState,
    trained: Option<LastTraining>,
) -> OwnState {
    let document = &settled.document;
    let round = document.round;
    // After a restart the protocol does not know the position in the manifest; the outcome does.
    let contributed = trained.as_ref().filter(|trained| trained.round == round);
    let find = |trained: &LastTraining| {
        let mut entries = document.entries.iter();
        entries.position(|entry| *entry == trained.blob)
    };
    let known = rounds.last().and_then(|last| last.position);
    let position = match &document.masked {
        Some(note) => {
            let authors = note.authors.iter().zip(&note.left_out);
            let own = authors.enumerate();
            let mut own = own.filter(|(_, (by, left_out))| **by == config.member.me && !**left_out);
            own.next().map(|(at, _)| at)
        }
        None => known.or_else(|| contributed.and_then(find)),
    };
    // The personal state is adopted only if its training went into an outcome.
    let entered = |trained: &LastTraining| {
        let earlier = |final_: &FinalRound| final_.round == trained.round;
        let earlier = rounds.iter().find(|final_| earlier(final_));
        if trained.round == round {
            position.is_some()
        } else {
            earlier.is_some_and(|final_| final_.position.is_some())
        }
    };
    let trained = trained.filter(entered).map(|trained| trained.personal);
    // If the coalitions keep their numbers, a silo without an entry stays in its own.
    let mut after = rounds.iter().filter(|final_| final_.round > own.round);
    let empty = after.clone().count() == 1 && document.entries.is_empty();
    let stays = empty || after.all(|final_| config.strategy.keeps_numbers(final_.round));
    adopt(config, settled, own, trained, position, stays)
}
