//! Collecting scores and inclusions: the manifest that a decision rests on.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::effects::{Effect, Report};
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::ByMember;
use crate::message::{Body, Entry, MemberScores, Message, RoundManifest};
use crate::refusal::{Omission, Refusal};
use crate::roster::MemberIndex;
use crate::time::Time;

use super::stage::ClearStage;
use crate::member::rounds::lead::LeadTiming;
use crate::member::rounds::lead::Leading;
use crate::member::rounds::lead::gathered::{Gathered, RoundStage};

impl Leading<'_> {
    /// Waits for the inclusions of a manifest.
    pub(in crate::member) fn start_including(&mut self, manifest: RoundManifest) {
        let root = manifest.root();
        let manifest = Arc::new(manifest);
        self.round
            .keep_manifest(self.config, self.view, root, manifest.clone());
        self.round.manifests.need(&root);
        let (since, signed) = (self.now, BTreeMap::new());
        self.set_stage(RoundStage::Clear(ClearStage::Including {
            manifest,
            root,
            since,
            signed,
        }));
    }

    /// Takes a member's losses, which are kept in case this member leads the round.
    pub(in crate::member) fn scores(
        &mut self,
        sender: MemberIndex,
        round: u64,
        scores: MemberScores,
    ) {
        if round != self.round.number {
            return;
        }
        let ascending = scores.losses.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let finite = scores.losses.iter().all(|(_, loss)| loss.is_finite());
        // Before the plan is known there are no participants, and so no scores.
        if !ascending || !finite || scores.losses.len() > self.round.participants().len() {
            return self.out.refuse(sender, round, Refusal::Scores);
        }
        self.round.inbox.scores.insert(sender, scores);
    }

    /// Sends the manifest once all scores are here, or those missing are not waited for any longer.
    ///
    /// # Errors
    /// Why this member votes against its own view: too many scores are missing.
    pub(in crate::member) fn collect_scores(&mut self) -> Result<(), Refusal> {
        let Some(Gathered {
            stage: RoundStage::Clear(ClearStage::Scoring { entries, since }),
            ..
        }) = &self.gathered
        else {
            return Ok(());
        };
        let (entries, since) = (entries.clone(), *since);
        let Some(gathered) = &self.gathered else {
            return Ok(());
        };
        let patient = self.now < self.timing().scores_due(&entries, since);
        if self.round.inbox.scores.len() < entries.len() && patient {
            return Ok(());
        }
        let scored = |entry: &Entry| {
            let author = gathered
                .receipts
                .iter()
                .find(|(_, own)| **own == entry.id)?
                .0;
            let scores = self
                .round
                .inbox
                .scores
                .get(author)
                .filter(|scores| scores.entry == entry.id)?;
            scores
                .row(&entries)
                .map(|_| (entry.clone(), scores.clone()))
        };
        let rows: Vec<_> = entries.iter().filter_map(scored).collect();
        if rows.len() < entries.len() && patient {
            return Ok(());
        }
        let kept: Vec<_> = rows.iter().map(|(entry, _)| entry.clone()).collect();
        if kept.len() < entries.len() {
            self.leave_out(&entries, &kept, Omission::Scores)?;
        }
        let scores: Vec<Vec<f64>> = rows
            .iter()
            .filter_map(|(_, scores)| scores.row(&kept))
            .collect();
        self.issue_manifest(RoundManifest {
            entries: kept,
            scores: Some(scores),
        });
        Ok(())
    }

    /// Sends the manifest.
    pub(in crate::member) fn issue_manifest(&mut self, manifest: RoundManifest) {
        let (round, view) = (self.round.number, self.view.number);
        let (message, frame) = self
            .config
            .sign(round, view, Body::Manifest(manifest.clone()));
        self.start_including(manifest);
        self.out.publish(message, frame);
    }

    /// Leaves out the authors of entries that are not `kept`.
    ///
    /// # Errors
    /// Why this member votes against its own view: that is not allowed.
    fn leave_out(
        &mut self,
        entries: &[Entry],
        kept: &[Entry],
        reason: Omission,
    ) -> Result<(), Refusal> {
        let fewest = self.round.fewest(self.config);
        let most = self.config.epoch.roster.faulty() + 1;
        let Some(gathered) = &mut self.gathered else {
            return Ok(());
        };
        let staying = gathered.authors(kept);
        let members: Vec<_> = gathered
            .authors(entries)
            .into_iter()
            .filter(|member| !staying.contains(member))
            .collect();
        gathered.reissues += 1;
        let many = gathered.reissues > most;
        if kept.len() < fewest || many {
            let missing = members.len();
            return Err(Refusal::TooFewLeft { missing, reason });
        }
        let (view, round) = (self.view.number, self.round.number);
        self.out.push(Effect::Report(Report::LeftOut {
            view,
            round,
            members,
            reason,
        }));
        Ok(())
    }

    /// An author's signature over the manifest.
    pub(in crate::member) fn inclusion(&mut self, message: &Message, manifest: Hash) {
        if message.round != self.round.number {
            return;
        }
        self.sealed(message, manifest);
        let Some(gathered) = &mut self.gathered else {
            return;
        };
        if let RoundStage::Clear(ClearStage::Including {
            root,
            signed,
            manifest: full,
            ..
        }) = &mut gathered.stage
            && *root == manifest
            && gathered
                .receipts
                .get(&message.sender)
                .is_some_and(|own| full.position(own).is_some())
        {
            signed.insert(message.sender, message.signature);
        }
    }

    /// Decides once all inclusions are here, or issues the manifest again without those missing.
    ///
    /// # Errors
    /// Why this member votes against its own view: too many inclusions are missing.
    pub(in crate::member) fn collect_inclusions(&mut self) -> Result<(), Refusal> {
        let Some(Gathered {
            stage:
                RoundStage::Clear(ClearStage::Including {
                    manifest,
                    root,
                    since,
                    signed,
                }),
            ..
        }) = &self.gathered
        else {
            return Ok(());
        };
        let waiting = self.now
            < self
                .timing()
                .inclusions_due(&manifest.entries, signed, *since);
        if signed.len() < manifest.entries.len() && waiting {
            return Ok(());
        }
        let (manifest, root, signed) = (manifest.clone(), *root, signed.clone());
        if signed.len() >= manifest.entries.len() {
            let inclusions = signed.into_iter().collect();
            self.decide(manifest, root, inclusions);
            return Ok(());
        }
        let Some(gathered) = &self.gathered else {
            return Ok(());
        };
        let kept: Vec<_> = manifest
            .entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| {
                gathered
                    .receipts
                    .iter()
                    .any(|(m, own)| *own == entry.id && signed.contains_key(m))
            })
            .map(|(at, _)| at)
            .collect();
        let entries: Vec<_> = kept
            .iter()
            .map(|&at| manifest.entries[at].clone())
            .collect();
        self.leave_out(&manifest.entries, &entries, Omission::Inclusion)?;
        match &manifest.scores {
            None => self.issue_contribution_list(entries, false),
            Some(rows) => {
                let scores = kept
                    .iter()
                    .map(|&i| kept.iter().map(|&j| rows[i][j]).collect());
                let scores = Some(scores.collect());
                self.issue_manifest(RoundManifest { entries, scores });
            }
        }
        Ok(())
    }
}

impl LeadTiming<'_> {
    /// When missing scores are not waited for any longer.
    pub(in crate::member) fn scores_due(&self, entries: &[Entry], since: Time) -> Time {
        let silent = |member: &MemberIndex| {
            let scores = self.round.inbox.scores.get(member);
            scores.is_none_or(|scores| scores.row(entries).is_none())
        };
        self.answers_due(entries, silent, since)
    }

    /// When missing inclusions are not waited for any longer. They get as long as scores, because
    /// a member fetches all models before it signs.
    pub(in crate::member) fn inclusions_due(
        &self,
        entries: &[Entry],
        signed: &ByMember<Signature>,
        since: Time,
    ) -> Time {
        let silent = |member: &MemberIndex| !signed.contains_key(member);
        self.answers_due(entries, silent, since)
    }

    /// When authors that owe something are not waited for any longer: patience (at least D) after
    /// `since`, or D if all of them are marked absent.
    fn answers_due(
        &self,
        entries: &[Entry],
        owes: impl Fn(&MemberIndex) -> bool,
        since: Time,
    ) -> Time {
        let listed = |id: &Hash| entries.iter().any(|entry| entry.id == *id);
        // Asked after every event: what takes longest comes last.
        let waits = |(member, id): (&MemberIndex, &Hash)| {
            owes(member) && !self.waiting().marked_absent(*member) && listed(id)
        };
        let waits = self
            .gathered
            .is_some_and(|gathered| gathered.receipts.iter().any(waits));
        let phase = self.phase();
        if !waits {
            since + phase
        } else {
            since + phase.max(self.view.config.epoch.patience())
        }
    }
}
