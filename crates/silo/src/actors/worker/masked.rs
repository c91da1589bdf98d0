//! A silo's work in secure-aggregation rounds: training and keys, masking, checking the vectors of others, and opening
//! the sums of a final round.

use std::sync::Arc;

use actix::{Context, Recipient};
use bytes::Bytes;
use protocol::message::{
    Blob, ListDocument, MaskedEntry, MaskedManifest, MaskedVector, PublicKeys,
};
use protocol::work::{Answer, FinalMasked, MaskedList, WorkError};
use protocol::{Hash, MemberIndex, codec};

use super::part::refused;
use super::{NeededBlobs, WorkerActor};
use crate::actors::messages::WorkResult;
use crate::environment::WorkSize;
use crate::needed::VOID_KEPT;
use crate::notice::Notice;
use crate::outcome::Settled;
use crate::record::JournalRecord;
use crate::rounds::{
    Combined, LastTraining, MaskedVectorBytes, OpeningRound, PreparedInput, PreparedRound,
    PreparedSummand, SumBasis, check_keys, check_transcripts, combine, mask, public, read_list,
    ready, shape, summand, transcript_bytes, wrong_transcript,
};
use crate::site::LedgerLine;

/// The silo sits a round out.
fn not_prepared(round: u64, reason: String) -> WorkResult {
    let result = Err(reason);
    Answer::Prepared { round, result }.into()
}

impl WorkerActor {
    /// Prepares what the silo adds to the sum, and keeps it with a secret. Done once for an epoch and round.
    pub(super) fn prepare(
        &mut self,
        round: u64,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        if let Err(reason) = self.site.allow(round, self.base.blob_size()) {
            return reply.do_send(not_prepared(round, reason));
        }
        if let Some(answer) = self.prepared_before(round) {
            return reply.do_send(answer);
        }
        let (config, base, blobs) = (self.config.clone(), self.base.clone(), self.blobs.clone());
        let summand = summand(SumBasis {
            config: &config,
            base: &base,
        });
        let drawn = summand.and_then(|summand| Ok((summand.draw(&mut *self.secrets)?, summand)));
        let (drawn, summand) = match drawn {
            Ok(drawn) => drawn,
            Err(reason) => return reply.do_send(not_prepared(round, reason)),
        };
        let (training, train) = self.training();
        let work = summand.effort(&config, training);
        let job = move || {
            let of = SumBasis {
                config: &config,
                base: &base,
            };
            summand.prepare(of, drawn, Box::new(train), &|blob| blobs.to_file(blob))
        };
        let began = self.clock.now();
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = worker.in_time(round, result);
            let seconds = worker.clock.since(began).as_secs_f64();
            match result.and_then(|result| worker.prepared(round, seconds, result)) {
                Ok(answer) => answer,
                Err(reason) => not_prepared(round, reason),
            }
        });
    }

    /// The answer about a round that is prepared already. It has its line every time: the ledger may have
    /// refused it the first time.
    fn prepared_before(&self, round: u64) -> Option<WorkResult> {
        let prepared = self.prepared.as_ref().filter(|last| last.round == round)?;
        let keys = prepared.keys(&self.config);
        let result = keys.map(|keys| public(keys.public()));
        let kept = self.trained.as_ref().filter(|last| last.round == round);
        let line = kept.and_then(|kept| self.line(round, kept.blob));
        let answer = WorkResult::from(Answer::Prepared { round, result });
        Some(WorkResult { line, ..answer })
    }

    /// The line of what was prepared, by the hash of its blob. The secret is in the blob, so that the hash
    /// says nothing of the model.
    fn line(&self, round: u64, blob: Hash) -> Option<LedgerLine> {
        self.site.line(&self.config.member.epoch, round, blob)
    }

    /// Keeps what was prepared, so that all that is sent follows from it, also after a restart.
    fn prepared(
        &mut self,
        round: u64,
        seconds: f64,
        of: PreparedSummand,
    ) -> Result<WorkResult, String> {
        let (hash, blob) = (of.hash, of.blob);
        let personal = of.personal.unwrap_or_else(|| self.own.personal.clone());
        let prepared = PreparedRound {
            round,
            secret: of.secret,
            input: of.input,
        };
        let notice = Notice::Trained {
            round,
            loss: of.loss,
            samples: of.samples,
            seconds,
            metrics: of.metrics,
        };
        // Asked for again while it was under way: the first counts.
        if let Some(answer) = self.prepared_before(round) {
            return Ok(answer);
        }
        let keys = prepared.keys(&self.config)?;
        let kept = [(hash, blob), (personal.hash, personal.params.document())];
        self.store(kept.into_iter())
            .map_err(|error| error.to_string())?;
        let record = JournalRecord::Prepared {
            round,
            blob: hash.0,
            personal: personal.hash.0,
        };
        let result = Ok(public(keys.public()));
        self.prepared = Some(Arc::new(prepared));
        self.trained = Some(LastTraining {
            round,
            blob: hash,
            personal,
        });
        Ok(WorkResult {
            records: vec![record],
            line: self.line(round, hash),
            retain: None,
            notices: vec![notice],
            answer: Ok(Answer::Prepared { round, result }),
        })
    }

    /// Checks the keys of a member.
    pub(super) fn check_keys(
        &mut self,
        (round, keys, from): (u64, PublicKeys, MemberIndex),
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let work = WorkSize::Open { signatures: 1 };
        let job = move || check_keys(&keys).map_err(WorkError::Refused);
        self.run(ctx, reply, work, job, move |_, result| {
            let result = result.unwrap_or_else(refused);
            Answer::KeysChecked {
                round,
                from,
                result,
            }
            .into()
        });
    }

    /// Masks the silo's model for a list.
    pub(super) fn mask(
        &mut self,
        list: Arc<MaskedList>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base, root) = (self.config.clone(), self.base.clone(), list.root);
        let (prepared, blobs) = (self.prepared.clone(), self.blobs.clone());
        let prepared = prepared.filter(|prepared| prepared.round == list.round);
        let bytes = self.base.blob_size();
        let job = move || {
            let lost =
                "what this silo trained for the round, or the secret behind its keys, is lost";
            let prepared = prepared.ok_or_else(|| lost.to_owned())?;
            let masked = mask(&config, &base, &list, &prepared)?;
            let vector = blobs.to_file(masked.vector);
            Ok::<_, String>(MaskedVectorBytes { vector, ..masked })
        };
        let round = self.base.next();
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = result.map_or_else(refused, |result| result.map_err(WorkError::Refused));
            let clipped = result.as_ref().map_or(0, |masked| masked.clipped);
            let result = result.and_then(|masked| worker.masked(root, masked));
            let mut answer = WorkResult::from(Answer::Masked { list: root, result });
            if clipped > 0 {
                let coordinates = clipped;
                answer.notices.push(Notice::Clipped { round, coordinates });
            }
            answer
        });
    }

    /// Stores a masked vector with its transcript.
    fn masked(&self, list: Hash, masked: MaskedVectorBytes) -> Result<MaskedVector, WorkError> {
        let name = |blob: &Bytes| Blob {
            hash: Hash::of(blob),
            size: blob.len() as u64,
        };
        let (vector, transcript) = (name(&masked.vector), name(&masked.transcript));
        let kept = [
            (vector.hash, masked.vector),
            (transcript.hash, masked.transcript),
        ];
        self.store(kept.into_iter())
            .map_err(|_| WorkError::Unavailable)?;
        Ok(MaskedVector {
            list,
            vector,
            transcript,
        })
    }

    /// The blobs that a manifest for this list needs; an error if the list cannot have such a manifest.
    pub(super) fn needs_masked(
        &self,
        list: &MaskedList,
        manifest: &MaskedManifest,
        holders: &[MemberIndex],
    ) -> Result<NeededBlobs, WorkError> {
        let mut blobs = Vec::new();
        for entry in &manifest.entries {
            let sum = list.sums.iter().find(|sum| sum.has(entry.member));
            let Some(sum) = sum else {
                let why = format!("member {} is no author of a sum", entry.member);
                return Err(WorkError::Refused(why));
            };
            let vector = shape(&self.config, &self.base, sum)
                .map_err(WorkError::Refused)?
                .bytes();
            let parts = [
                (entry.vector, vector, "vector"),
                (entry.transcript, transcript_bytes(list), "transcript"),
            ];
            for (blob, expected, what) in parts {
                if blob.size != expected as u64 {
                    return Err(WorkError::Refused(format!(
                        "expected a {what} of {expected} bytes of member {}, found {}",
                        entry.member, blob.size
                    )));
                }
                blobs.push((blob.hash, blob.size));
            }
        }
        Ok(NeededBlobs {
            blobs,
            from: holders.to_vec(),
        })
    }

    /// Checks the transcripts of a manifest, and keeps list and manifest: the vectors are here.
    pub(super) fn verify(
        &mut self,
        list: Arc<MaskedList>,
        manifest: Arc<MaskedManifest>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, blobs) = (self.config.clone(), self.blobs.clone());
        let bytes = (manifest.entries.len() * transcript_bytes(&list)) as u64;
        let (document, root) = (list.document(&config.member.epoch), manifest.root());
        let held = self.checks.transcripts(&self.round.transcripts);
        let whole = Arc::clone(&manifest);
        let job = move || {
            let ready = ready(&config.member.epoch, &list).map_err(WorkError::Refused)?;
            let blob = |entry: &MaskedEntry| blobs.get(&entry.transcript.hash);
            check_transcripts(&config, &ready, &manifest, &held, blob).map(|_| ())
        };
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = result.unwrap_or_else(refused);
            let result = result.and_then(|()| {
                // A lead has single vectors checked before there is a manifest.
                let kept = [(document.root(), document.blob()), (root, whole.blob())];
                let kept = kept.into_iter().filter(|_| whole.entries.len() > 1);
                worker.store(kept).map_err(|_| WorkError::Unavailable)
            });
            let notices = match &result {
                Err(WorkError::Refused(_)) => worker.wrong_transcript(&document, &whole),
                _ => Vec::new(),
            };
            let manifest = root;
            WorkResult {
                notices,
                ..Answer::Verified { manifest, result }.into()
            }
        });
    }

    /// Returns what a lead found of a single vector, with the blobs that prove it to others.
    fn wrong_transcript(&self, document: &ListDocument, manifest: &MaskedManifest) -> Vec<Notice> {
        let [entry] = &manifest.entries[..] else {
            return Vec::new();
        };
        let (list, transcript) = (document.blob(), self.blobs.get(&entry.transcript.hash));
        let epoch = &self.config.member.epoch;
        let wrong = transcript
            .filter(|bytes| wrong_transcript(epoch, entry.member, &list, bytes).is_some());
        let notice = wrong.map(|transcript| Notice::WrongTranscript { list, transcript });
        notice.into_iter().collect()
    }

    /// The list and manifest of a final round, if they are here.
    fn list_and_manifest(&self, of: &FinalMasked) -> Option<(MaskedList, MaskedManifest)> {
        let list = read_list(&self.blobs.get(&of.round.list)?, of.threshold)?;
        let manifest = MaskedManifest::read(&self.blobs.get(&of.round.manifest)?)?;
        Some((list, manifest))
    }

    /// The blobs that opening a final round needs: list and manifest and, once these are here, what they name.
    pub(super) fn needs_opening(
        &self,
        of: &FinalMasked,
        holders: &[MemberIndex],
    ) -> Result<NeededBlobs, WorkError> {
        if self
            .opening
            .as_ref()
            .is_some_and(|opening| opening.of == *of)
        {
            return Ok(NeededBlobs::default());
        }
        match self.list_and_manifest(of) {
            Some((list, manifest)) => self.needs_masked(&list, &manifest, holders),
            None => Ok(NeededBlobs {
                blobs: vec![
                    (of.round.list, codec::LIMIT as u64),
                    (of.round.manifest, codec::LIMIT as u64),
                ],
                from: holders.to_vec(),
            }),
        }
    }

    /// A final round with everything that opening it needs, read on a job's thread.
    fn opening_round(
        &self,
        of: Arc<FinalMasked>,
    ) -> impl FnOnce() -> Result<Arc<OpeningRound>, WorkError> + Send + 'static {
        let known = self.opening.clone().filter(|opening| opening.of == *of);
        let (config, blobs) = (self.config.clone(), self.blobs.clone());
        let held = self.checks.transcripts(&self.round.transcripts);
        move || match known {
            Some(known) => Ok(known),
            None => {
                let blob = |hash: &Hash| blobs.get(hash);
                let read = OpeningRound::read(&config, (*of).clone(), &held, blob);
                read.map(Arc::new)
            }
        }
    }

    /// Unlocks the silo's shares of the masks of a final round.
    pub(super) fn unmask(
        &mut self,
        of: Arc<FinalMasked>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, block) = (self.config.clone(), of.block);
        let prepared = self.prepared.clone();
        let prepared = prepared.filter(|prepared| prepared.round == of.round.round);
        let bytes = (of.round.ready.len() * 32) as u64;
        let opening = self.opening_round(of);
        let job = move || {
            let lost = || WorkError::Refused("the secret behind this silo's keys is lost".into());
            let prepared = prepared.ok_or_else(lost)?;
            let keys = prepared.keys(&config).map_err(WorkError::Refused)?;
            let round = opening()?;
            let bytes = round.unlock(&keys).map_err(WorkError::Refused)?;
            Ok((round, bytes))
        };
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            let result = result.unwrap_or_else(refused).map(|(round, bytes)| {
                worker.opening = Some(round);
                bytes
            });
            Answer::Unmasked { block, result }.into()
        });
    }

    /// Opens the sums of a final round, and keeps the outcome.
    pub(super) fn combine(
        &mut self,
        of: Arc<FinalMasked>,
        unmaskings: Vec<(MemberIndex, Vec<u8>)>,
        reply: Recipient<WorkResult>,
        ctx: &mut Context<Self>,
    ) {
        let (config, base, blobs) = (self.config.clone(), self.base.clone(), self.blobs.clone());
        let (block, round) = (of.block, of.round.round);
        let bytes = of.round.ready.len() as u64 * base.blob_size();
        let opening = self.opening_round(of);
        let job = move || {
            let opening = opening()?;
            let vector = |entry: &MaskedEntry| blobs.get(&entry.vector.hash);
            let lay = |bytes| blobs.to_file(bytes);
            let combined = combine(&config, &base, &opening, &unmaskings, vector, lay);
            Ok((opening, combined))
        };
        let work = WorkSize::Models { bytes };
        self.run(ctx, reply, work, job, move |worker, result| {
            let (opening, combined) = match result.unwrap_or_else(refused) {
                Ok(opened) => opened,
                Err(error) => {
                    let result = Err(error);
                    let unproven = Vec::new();
                    return Answer::Combined {
                        block,
                        unproven,
                        result,
                    }
                    .into();
                }
            };
            let Combined { unproven, result } = combined;
            let note = result.as_ref().ok();
            let note = note.and_then(|settled| settled.document.masked.clone());
            let notes = note.into_iter().flat_map(|note| note.sums);
            let sums = notes.zip(&opening.list.sums);
            let void = sums.filter_map(|(note, sum)| {
                Some(Notice::VoidSum {
                    round,
                    authors: sum.members().collect(),
                    why: note.void?,
                })
            });
            let void = void.collect();
            worker.opening = Some(opening);
            let settled = result.map(Arc::new);
            let result = settled.and_then(|settled| worker.settled(round, settled));
            let mut answer = WorkResult::from(Answer::Combined {
                block,
                unproven,
                result,
            });
            answer.notices = void;
            answer
        });
    }
    /// Keeps the silo's secret of a round that is being adopted, with the blobs of the round, if its sum was
    /// void: from it others can see whether this silo corrupted the sum. The record goes behind the adoption.
    /// With noise nothing is kept: a disclosure would be a release with this silo's noise alone.
    pub(super) fn secret_of_void(&mut self, settled: &Settled) -> Option<JournalRecord> {
        let (round, me) = (settled.document.round, self.config.member.me);
        let note = settled.document.masked.as_ref()?;
        let mut own = note.authors.iter().zip(&note.left_out);
        own.find(|(by, left_out)| **by == me && **left_out)?;
        let prepared = self.prepared.as_ref().filter(|last| last.round == round)?;
        match prepared.input {
            PreparedInput::Model(_) => {}
            PreparedInput::Noised(_) => return None,
        }
        let kept = self.trained.as_ref().filter(|last| last.round == round)?;
        let (blob, personal) = (kept.blob.0, kept.personal.hash.0);
        let names = settled.names.iter().copied().chain([kept.blob]);
        self.void.push_back(names.collect());
        while self.void.len() > VOID_KEPT {
            self.void.pop_front();
        }
        Some(JournalRecord::Prepared {
            round,
            blob,
            personal,
        })
    }
}
