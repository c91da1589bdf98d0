//! One round of the loop.

use std::ops::ControlFlow;
use std::sync::Arc;

use protocol::message::RoundManifest;
use protocol::refusal::Refusal;
use protocol::{MemberIndex, Report};
use silo::outcome::Settled;
use silo::rounds::{
    Contributed, LastTraining, OwnState, Personal, RoundBase, adopt, check, contribute, decide,
    settle,
};
use silo::{Notice, SiloConfig};

use super::Direct;
use super::manifest::ListedContribution;
use crate::contributions::{AuthorMerges, Contributions, CrossLosses};
use crate::error::RunError;
use crate::record::RoundRecord;

impl Direct<'_> {
    /// Runs one round, and adopts its outcome.
    pub(super) fn round(&mut self) -> Result<(), RunError> {
        let contributed = self.contributions()?;
        let entries = self.admitted(contributed);
        let (entries, signed) = self.manifest(entries)?;
        let settled = self.settled(&entries, &signed)?;
        self.blobs += self.fetched(&entries, &signed);
        self.heavy(&signed);
        self.finish(entries, &signed, &settled)
    }

    /// Returns what the members that the plan names contribute, trained on all threads.
    fn contributions(&mut self) -> Result<Vec<(usize, Contributed)>, RunError> {
        let (base, round) = (self.base.clone(), self.base.next());
        let named = base.plan(&self.config).participants.clone();
        let members: Vec<usize> = match named {
            Some(named) => named.into_iter().map(usize::from).collect(),
            None => (0..self.silos.len()).collect(),
        };
        let jobs = members.iter().map(|&at| {
            let silo = &self.silos[at];
            let (config, own, rest) = (silo.config.clone(), silo.own.clone(), silo.rest.clone());
            let base = base.clone();
            move || {
                let go_on = &mut |_| ControlFlow::Continue(());
                let (coalition, personal) = (own.coalition, &own.personal);
                contribute(&config, &base, coalition, personal, rest.as_ref(), go_on)
            }
        });
        // A panic is a failed training, as it is for a silo.
        let trained: Vec<_> = jobs.map(|job| self.threads.start(job)).collect();
        let (mut contributed, mut failed) = (Vec::new(), None);
        for (at, trained) in members.iter().copied().zip(trained) {
            match silo::threads::wait(&trained).and_then(|trained| trained) {
                Ok(mut own) => {
                    self.silos[at].rest = own.rest.take();
                    let (loss, samples, seconds) = (own.loss(), own.samples, 0.0);
                    let metrics = own.further();
                    let trained = Notice::Trained {
                        round,
                        loss,
                        samples,
                        seconds,
                        metrics,
                    };
                    self.notice(at, trained);
                    contributed.push((at, own));
                }
                Err(reason) => {
                    let reported = reason.clone();
                    let report = Report::TrainingFailed { round, reason };
                    self.notice(at, Notice::Protocol(report));
                    failed = Some(reported);
                }
            }
        }
        if let Some(reason) = failed {
            self.enough(members.len() - contributed.len(), reason)?;
        }
        Ok(contributed)
    }

    /// Fails if training failed at so many silos that a round cannot reach its minimum.
    pub(super) fn enough(&self, failed: usize, reason: String) -> Result<(), RunError> {
        let members = self.silos.len();
        let minimum = usize::from(self.federation.epoch.protocol.min_contributions);
        if members - failed >= minimum {
            Ok(())
        } else {
            Err(RunError::Training {
                round: self.base.next(),
                minimum,
                silos: failed,
                members,
                reason,
            })
        }
    }

    /// The contributions that may enter the manifest; what is wrong with the others is reported.
    fn admitted(&mut self, contributed: Vec<(usize, Contributed)>) -> Vec<ListedContribution> {
        let (base, round) = (self.base.clone(), self.base.next());
        let weights = base.plan(&self.config).weights;
        let mut listed = Vec::with_capacity(contributed.len());
        for (member, own) in contributed {
            let one =
                ListedContribution::new(&self.silos[member].config, round, weights, member, own);
            let fits = base.fits(&self.config, &one.entry.fields);
            let fits = fits.and_then(|()| {
                let entry = one.model_entry();
                self.config.strategy.admit_after(&base.state, &entry, round)
            });
            match fits {
                Ok(()) => listed.push(one),
                Err(reason) => self.refused(member, reason),
            }
        }
        listed.sort_by_key(|one| one.entry.id);
        listed
    }

    /// A contribution, or what its author has to say about the others, cannot be used.
    pub(super) fn refused(&mut self, member: usize, reason: String) {
        let report = Report::Refused {
            member: MemberIndex(member as u16),
            round: self.base.next(),
            reason: Refusal::Work(reason),
        };
        self.notice(member, Notice::Protocol(report));
    }

    /// The outcome of the decision about a manifest.
    fn settled(
        &self,
        entries: &[ListedContribution],
        signed: &RoundManifest,
    ) -> Result<Settled, RunError> {
        let (config, base) = (&self.config, &self.base);
        let manifest = base.manifest(signed, |nth, _| Ok(entries[nth].own.admitted.clone()));
        let manifest = manifest.map_err(|what| self.failed(what))?;
        let decision = decide(config, base, &manifest).map_err(|what| self.failed(what))?;
        check(config, base, &manifest, &decision).map_err(|what| self.failed(what))?;
        settle(config, base, signed, &manifest, &decision, |blob| blob)
            .map_err(|what| self.failed(what))
    }

    /// Reports an entry that has more than half of the weight of all.
    fn heavy(&mut self, signed: &RoundManifest) {
        if let Some((entry, total)) = signed.heaviest() {
            let report = Report::HeavyEntry {
                round: self.base.next(),
                rows: entry.fields.weight.unwrap_or(0),
                total,
                member: entry.fields.member,
            };
            self.notice(0, Notice::Protocol(report));
        }
    }

    /// Returns how the authors are merged into groups, where they are.
    fn merges(
        &self,
        entries: &[ListedContribution],
        signed: &RoundManifest,
    ) -> Option<AuthorMerges> {
        let base = &self.base;
        let manifest = || {
            let manifest = base.manifest(signed, |nth, _| Ok(entries[nth].own.admitted.clone()));
            manifest.ok()
        };
        let strategy = &self.config.strategy;
        let tree = strategy.merge_tree(&base.state, &manifest, base.next())?;
        let authors: Vec<_> = entries.iter().map(|one| one.index()).collect();
        Some(AuthorMerges::new(tree, &authors))
    }

    /// Keeps what is to be kept of the contributions.
    fn keep(&mut self, entries: &[ListedContribution], signed: &RoundManifest) {
        if self.kept_contributions.is_none() && self.basis.is_none() {
            return;
        }
        let round = self.base.next();
        let merges = self.merges(entries, signed);
        let rows = signed.scores.iter().flatten().cloned().map(Some);
        let rows = entries.iter().zip(rows.chain(std::iter::repeat(None)));
        if let Some(basis) = &mut self.basis {
            let rows = rows.clone().map(|(one, row)| (one.index(), row));
            let losses = CrossLosses::new(round, rows.collect());
            basis.note(round, losses, merges.clone());
        }
        if let Some(kept) = &mut self.kept_contributions {
            let each = rows.map(|(one, row)| (one.index(), one.own.document.clone(), row));
            let mut contributions = Contributions::new(round, each.collect());
            contributions.merges = merges;
            kept.push(contributions);
        }
    }

    /// Keeps what is to be kept of the contributions; all members adopt the outcome.
    fn finish(
        &mut self,
        entries: Vec<ListedContribution>,
        signed: &RoundManifest,
        settled: &Settled,
    ) -> Result<(), RunError> {
        let round = self.base.next();
        self.keep(&entries, signed);
        let mut authors: Vec<_> = entries.iter().map(|one| one.index()).collect();
        authors.sort_unstable();
        let mut after: Vec<Option<(usize, LastTraining)>> = vec![None; self.silos.len()];
        for (position, one) in entries.into_iter().enumerate() {
            after[one.member] = Some((position, one.trained(round)));
        }
        let keeps = self.config.strategy.keeps_numbers(round) || signed.entries.is_empty();
        self.adopted(authors, after, keeps, settled)
    }

    /// All members adopt the outcome of a round of these authors. `after` has for each silo the position of
    /// its entry, and its training.
    pub(super) fn adopted(
        &mut self,
        authors: Vec<MemberIndex>,
        after: Vec<Option<(usize, LastTraining)>>,
        keeps: bool,
        settled: &Settled,
    ) -> Result<(), RunError> {
        let round = self.base.next();
        let settled = Arc::new(settled.clone());
        let jobs = self.silos.iter().zip(after).map(|(silo, after)| {
            let (config, before) = (silo.config.clone(), silo.own.clone());
            let settled = settled.clone();
            move || next(&config, &settled, before, after, keeps)
        });
        // Only a choice between several models is work.
        let owns: Vec<OwnState> = match settled.state.models.len() {
            0 | 1 => jobs.map(|job| job()).collect(),
            _ => self
                .threads
                .all(jobs.collect::<Vec<_>>())
                .map_err(|what| self.failed(what))?,
        };
        let assignment: Arc<[u32]> = settled.document.assignment.as_slice().into();
        for (at, own) in owns.into_iter().enumerate() {
            let adopted = Notice::Adopted {
                round,
                outcome: settled.hash,
                state: settled.state.clone(),
                assignment: assignment.clone(),
                coalition: own.coalition,
                model: settled.state.models[own.coalition as usize].clone(),
                personal: own.personal.params.clone(),
            };
            self.notice(at, adopted);
            self.silos[at].own = own;
        }
        let led = None;
        self.rounds.push(RoundRecord {
            round,
            authors,
            led,
        });
        let keep = self.federation.epoch.protocol.keep_rounds as usize;
        self.kept.push_back(settled.names.clone());
        while self.kept.len() > keep {
            self.kept.pop_front();
        }
        self.base = Arc::new(RoundBase::new(&self.config, &settled));
        Ok(())
    }
}

/// A silo's own state after an outcome; `after` is the position of its entry, and its training for it.
fn next(
    config: &SiloConfig,
    settled: &Settled,
    before: OwnState,
    after: Option<(usize, LastTraining)>,
    keeps: bool,
) -> OwnState {
    let (position, trained): (_, Option<Personal>) = match after {
        Some((position, trained)) => (Some(position), Some(trained.personal)),
        None => (None, None),
    };
    adopt(config, settled, before, trained, position, keeps)
}
