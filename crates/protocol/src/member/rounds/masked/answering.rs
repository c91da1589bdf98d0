//! A member's part of a masked round before its block is final: answering the lists of leads (M2, M3),
//! and signing for manifests of masked vectors (M4).

use std::sync::Arc;

use crate::effects::{Effect, Record, Report};
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::consensus::views::View;
use crate::member::rounds::masked::kept::ManifestCheck;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Block, Body, KeyList, MaskedManifest, MaskedVector};
use crate::parameters::privacy::{Circle, Sum};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::work::{MaskedList, Request, WorkError};

/// Answering lists, and signing for masked manifests. Borrows what that depends on.
pub(in crate::member) struct Masking<'a> {
    config: &'a Config,
    out: &'a mut Outbox,
    chain: &'a Chain,
    view: &'a View,
    round: &'a mut Round,
    participation: &'a ParticipationState,
    circle: &'a mut Option<Circle>,
}

impl Member {
    /// Lends what a masked round depends on before its block is final.
    pub(in crate::member) fn masking(&mut self) -> Masking<'_> {
        Masking {
            config: &self.config,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            round: &mut self.rounds.round,
            participation: &self.consensus.participation,
            circle: &mut self.rounds.circle,
        }
    }
}

impl Masking<'_> {
    /// The lead of the view says who is ready.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn list(&mut self, round: u64, keys: KeyList) -> Result<(), Refusal> {
        let (number, view) = (self.round.number, self.view.number);
        let Some(plan) = self.round.plan().filter(|_| round == number) else {
            return Ok(());
        };
        let Some(state) = self.chain.state_before(round) else {
            return Ok(());
        };
        let plan = plan.plan;
        if self.config.masked().is_none() {
            return Err(Refusal::OtherMode);
        }
        let epoch = &self.config.epoch;
        let ready = keys.members();
        let sums = self.round.sums(self.config, &ready);
        let root = keys.root(epoch, round, &plan, &state, &sums);
        if self.round.masks.of_view(view).list(&root).is_some() {
            self.send_vector(root);
            return Ok(());
        }
        let fewest = self.config.fewest_ready();
        if ready.len() < fewest || sums.is_empty() {
            return Err(Refusal::ListTooSmall {
                ready: ready.len(),
                fewest,
            });
        }
        if let Some(other) = keys.ready.iter().find(|ready| ready.keys.plan != plan) {
            let (got, ours) = (other.keys.plan, plan);
            return Err(Refusal::WrongPlan { got, ours });
        }
        if let Some(&member) = ready.iter().find(|by| !self.round.participates(**by)) {
            return Err(Refusal::NotAParticipant(member));
        }
        let own = keys
            .ready
            .iter()
            .find(|ready| ready.member == self.config.me);
        let foreign = own.is_some_and(|own| !self.round.own.signed_keys(own));
        if foreign {
            return Err(Refusal::ForeignKeys);
        }
        if !self.round.masks.may_follow(&ready) {
            return Err(Refusal::ListFollows);
        }
        let threshold = self.config.threshold(ready.len());
        self.round.masks.add(Arc::new(MaskedList {
            round,
            plan,
            state,
            root,
            keys,
            sums,
            threshold,
        }));
        Ok(())
    }

    /// Masks this member's vector for the last list, if it is an author of a sum of it.
    pub(in crate::member) fn mask(&mut self) {
        if self.participation.listening() || !self.chain.settled() {
            return;
        }
        let Some(list) = self.round.masks.of_view(self.view.number).last().cloned() else {
            return;
        };
        let own = list.sums.iter().find(|sum| sum.has(self.config.me));
        let known = self.round.masks.vectors.contains_key(&list.root);
        let Some(sum) = own.filter(|_| !known && self.round.own.has_contributed()) else {
            return;
        };
        self.round.masks.vectors.insert(list.root, None);
        let noised = self
            .config
            .masked()
            .is_some_and(|masked| masked.noise().is_some());
        if !noised && !self.in_circle(sum) {
            return;
        }
        self.out.push(Effect::Work(Request::Mask { list }));
    }

    /// Whether a sum without noise has the authors of the first one that this member answered (M3). Noted
    /// durably if it is the first.
    fn in_circle(&mut self, sum: &Sum) -> bool {
        let circle = sum.circle(&self.config.epoch.roster);
        match &self.circle {
            Some(other) if *other != circle => {
                let before = other.clone();
                let report = Report::OtherCircle {
                    before,
                    now: circle,
                };
                self.out.push(Effect::Report(report));
                return false;
            }
            Some(_) => {}
            None => {
                self.out
                    .push(Effect::Persist(Record::Circle(circle.clone())));
                *self.circle = Some(circle);
            }
        }
        true
    }

    /// These blocks are about to be final. If one is a change with which all concerned agree that this
    /// member answers sums of another circle, that is durable before the change is (M3).
    pub(in crate::member) fn note_consent(&mut self, blocks: &[Block]) {
        let change = blocks.iter().find_map(Block::change);
        let (epoch, me) = (&self.config.epoch, self.config.me);
        let freed = change
            .zip(self.circle.as_ref())
            .is_some_and(|(change, circle)| change.frees(epoch, epoch.roster.name(me), circle));
        if freed {
            *self.circle = None;
            let none = Circle(Vec::new());
            self.out.push(Effect::Persist(Record::Circle(none)));
        }
    }

    /// This member's vector was masked, or could not be: then it sits the round out (M1).
    pub(in crate::member) fn masked(
        &mut self,
        list: Hash,
        result: Result<MaskedVector, WorkError>,
    ) {
        let Some(kept) = self.round.masks.vectors.get_mut(&list) else {
            return;
        };
        match result {
            Ok(vector) => {
                *kept = Some(vector);
                self.send_vector(list);
            }
            // Asked for again when the list comes again.
            Err(WorkError::Unavailable) => drop(self.round.masks.vectors.remove(&list)),
            Err(WorkError::Refused(reason)) => {
                let round = self.round.number;
                let report = Report::TrainingFailed { round, reason };
                self.out.push(Effect::Report(report));
            }
        }
    }

    /// Sends this member's vector for a list to the lead, if it is masked.
    fn send_vector(&mut self, list: Hash) {
        if let Some(Some(vector)) = self.round.masks.vectors.get(&list)
            && !self.participation.listening()
            && self.chain.settled()
        {
            let body = Body::MaskedVector(*vector);
            let (message, frame) = self.config.sign(self.round.number, 0, body);
            self.out.send(self.view.lead, &message, &frame);
        }
    }

    /// The lead of the view has all vectors: plans to sign for them if this member's own is unchanged.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn manifest(
        &mut self,
        round: u64,
        manifest: MaskedManifest,
    ) -> Result<(), Refusal> {
        if round != self.round.number || !self.chain.settled() {
            return Ok(());
        }
        let (me, root) = (self.config.me, manifest.root());
        let masks = self.round.masks.of_view(self.view.number);
        let Some(list) = masks.list(&manifest.list).cloned() else {
            return Ok(());
        };
        if !manifest.authors().eq(authors(&list)) {
            return Err(Refusal::OtherAuthors);
        }
        let own = manifest.entries.iter().find(|entry| entry.member == me);
        let vector = masks.vectors.get(&list.root).copied().flatten();
        let agreed = own.is_some() && own.copied() == vector.map(|vector| vector.entry(me));
        if masks.keep(root, Arc::new(manifest)) && agreed && !self.participation.listening() {
            masks.signing = Some(root);
        }
        Ok(())
    }

    /// Signs for the manifest, once all vectors and transcripts are kept here and right (M4).
    pub(in crate::member) fn sign(&mut self) {
        let masks = self.round.masks.of_view(self.view.number);
        let Some(root) = masks.signing else {
            return;
        };
        if self.participation.listening() || !self.chain.settled() {
            masks.signing = None;
            return;
        }
        match masks.checks.get(&root) {
            Some(ManifestCheck::Held) => {}
            None => {
                let holders = self.config.holders(self.view.lead);
                let manifest = masks.manifest(&root).cloned();
                return manifest.into_iter().for_each(|manifest| {
                    masks.verify(manifest, root, holders.clone(), self.out);
                });
            }
            Some(_) => return,
        }
        self.round.masks.signing = None;
        let body = Body::Inclusion { manifest: root };
        let (message, frame) = self.config.sign(self.round.number, 0, body);
        self.out.send(self.view.lead, &message, &frame);
    }
}

/// The authors of the sums of a list, ascending.
pub(in crate::member) fn authors(list: &MaskedList) -> Vec<MemberIndex> {
    let sums = list.sums.iter().flat_map(|sum| &sum.authors);
    let mut authors: Vec<_> = sums.map(|(author, _)| *author).collect();
    authors.sort_unstable();
    authors
}
