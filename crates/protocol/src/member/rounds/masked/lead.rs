//! The lead of a masked round: the list of who is ready, the vectors that are masked for it, the manifest
//! of these, and the block.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::effects::{Effect, Report};
use crate::evidence::Evidence;
use crate::hash::Hash;
use crate::identity::Signature;
use crate::member::ByMember;
use crate::member::consensus::stage::BlockDraft;
use crate::member::rounds::lead::LeadTiming;
use crate::member::rounds::lead::gathered::RoundStage;
use crate::member::rounds::masked::answering::authors;
use crate::member::rounds::masked::kept::{LISTS, ManifestCheck};
use crate::member::rounds::masked::stage::{Gathering, MaskedStage, SigningSum};
use crate::message::{
    Body, Content, KeyList, ListDocument, MaskedEntry, MaskedManifest, MaskedRound, MaskedVector,
    Message, Ready,
};
use crate::refusal::{Omission, Refusal};
use crate::roster::MemberIndex;
use crate::time::Time;
use crate::work::{MaskedList, Request};

use crate::member::rounds::lead::Leading;
use crate::member::rounds::lead::collect::Admission;

impl Leading<'_> {
    /// Whether a list of these members, ascending, has a sum, and enough of them to open it.
    fn may_list(&self, ready: &[MemberIndex]) -> bool {
        !self.round.sums(self.config, ready).is_empty() && ready.len() >= self.config.fewest_ready()
    }

    /// What this lead needs to know of the keys of a contribution.
    pub(in crate::member) fn keys_admission(&self, message: &Message) -> Option<Admission> {
        let Body::Keys(keys) = &message.body else {
            return None;
        };
        let (round, from) = (message.round, message.sender);
        Some(Admission {
            id: keys.id(&self.config.epoch.federation, round, from),
            plan: keys.plan,
            objection: None,
            check: Request::CheckKeys {
                round,
                keys: keys.public,
                from,
            },
        })
    }

    /// Goes on with a masked round. Gives a block to propose.
    ///
    /// # Errors
    /// Why this member votes against its own view.
    pub(in crate::member) fn go_on_masked(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        match self.gathered.as_ref().map(|gathered| &gathered.stage) {
            Some(RoundStage::Masked(MaskedStage::Masking(_))) => self.collect_vectors()?,
            Some(RoundStage::Masked(MaskedStage::SigningSum(_))) => return self.sign_masked(),
            _ => {}
        }
        Ok(None)
    }

    /// What members have not answered in a masked round.
    pub(in crate::member) fn unanswered_masked(&self) -> Option<(Body, Vec<MemberIndex>)> {
        let RoundStage::Masked(stage) = &self.gathered.as_ref()?.stage else {
            return None;
        };
        Some(match stage {
            MaskedStage::Masking(gathering) => {
                let body = Body::KeyList(gathering.list.keys.clone());
                let silent = |by: &MemberIndex| !gathering.vectors.contains_key(by);
                let others = self.config.others().into_iter();
                (body, others.filter(silent).collect())
            }
            MaskedStage::SigningSum(sealing) => {
                let body = Body::MaskedManifest((*sealing.manifest).clone());
                let silent = |by: &MemberIndex| !sealing.signed.contains_key(by);
                let others = self.config.others().into_iter();
                (body, others.filter(silent).collect())
            }
        })
    }

    /// What the block of a masked round rests on.
    pub(in crate::member) fn list_and_manifest_of(&self, content: &Content) -> Vec<Body> {
        let Content::Masked(masked) = content else {
            return Vec::new();
        };
        let masks = &self.round.masks;
        let list = masks
            .list(&masked.list)
            .map(|list| Body::KeyList(list.keys.clone()));
        let manifest = masks.manifest(&masked.manifest);
        let manifest = manifest.map(|manifest| Body::MaskedManifest((**manifest).clone()));
        list.into_iter().chain(manifest).collect()
    }

    /// Whether the set may be closed with these members; once patience is over, says whom a list lacks.
    pub(in crate::member) fn may_close_with(&mut self, ready: &[MemberIndex]) -> bool {
        let may = self.may_list(ready);
        if !may && self.timing().waiting().patience_over() {
            self.report_missing(ready);
        }
        may
    }

    /// Reports, once in a view, whom the groups of the agreement lack.
    fn report_missing(&mut self, ready: &[MemberIndex]) {
        let roster = &self.config.epoch.roster;
        let Some(masked) = self.config.masked() else {
            return;
        };
        let members = masked.missing(roster, ready);
        let Some(gathered) = &mut self.gathered else {
            return;
        };
        if gathered.missing.replace(members.clone()) != Some(members.clone()) {
            let round = self.round.number;
            self.out
                .push(Effect::Report(Report::GroupsIncomplete { round, members }));
        }
    }

    /// Sends the list of these members.
    pub(in crate::member) fn issue_list(&mut self, ready: &[MemberIndex]) {
        let Some(list) = self.list_of(ready) else {
            return;
        };
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::KeyList(list.keys.clone());
        let (message, frame) = self.config.sign(round, view, body);
        self.set_stage(RoundStage::Masked(MaskedStage::Masking(Gathering {
            list: Arc::new(list),
            since: self.now,
            vectors: BTreeMap::new(),
        })));
        self.out.publish(message, frame);
    }

    fn list_of(&self, members: &[MemberIndex]) -> Option<MaskedList> {
        let (epoch, round) = (&self.config.epoch, self.round.number);
        let (plan, state) = (self.round.plan()?.plan, self.chain.state_before(round)?);
        let ready = members.iter().map(|&member| {
            let message = self.round.inbox.contributions.get(&member)?;
            match message.body {
                Body::Keys(keys) => Some(Ready {
                    member,
                    keys,
                    signature: message.signature,
                }),
                _ => None,
            }
        });
        let keys = KeyList {
            ready: ready.collect::<Option<_>>()?,
        };
        let document = ListDocument {
            federation: epoch.federation,
            epoch: epoch.id,
            round,
            plan,
            state,
            keys,
            sums: self.round.sums(self.config, members),
        };
        let threshold = self.config.threshold(members.len());
        Some(MaskedList::new(document, threshold))
    }

    /// A masked vector. The first one of an author for the list counts; gives evidence against an author
    /// of two.
    pub(in crate::member) fn vector(&mut self, message: Message) -> Option<Evidence> {
        let Some(RoundStage::Masked(MaskedStage::Masking(gathering))) =
            self.gathered.as_mut().map(|gathered| &mut gathered.stage)
        else {
            return None;
        };
        let (author, Body::MaskedVector(vector)) = (message.sender, &message.body) else {
            return None;
        };
        let expected = authors(&gathering.list).binary_search(&author).is_ok();
        if vector.list != gathering.list.root || !expected {
            return None;
        }
        if let Some((earlier, ..)) = gathering.vectors.get(&author) {
            return Evidence::of(earlier, &message);
        }
        let manifest = alone(author, vector);
        let root = manifest.root();
        gathering.vectors.insert(author, (message, root, self.now));
        None
    }

    /// Has the vectors checked, and sends the manifest once all are here and right. If some are missing too
    /// long, or wrong, makes a new list without their authors.
    ///
    /// # Errors
    /// Why this member votes against its own view: too few are left.
    fn collect_vectors(&mut self) -> Result<(), Refusal> {
        let view = self.view.number;
        let Some(RoundStage::Masked(MaskedStage::Masking(gathering))) =
            self.gathered.as_ref().map(|gathered| &gathered.stage)
        else {
            return Ok(());
        };
        let (list, authors) = (gathering.list.clone(), authors(&gathering.list));
        let masks = self.round.masks.of_view(view);
        let (mut held, mut wrong) = (Vec::new(), Vec::new());
        for (&author, (message, root, _)) in &gathering.vectors {
            let Body::MaskedVector(vector) = &message.body else {
                continue;
            };
            match masks.checks.get(root) {
                Some(ManifestCheck::Held) => held.push(vector.entry(author)),
                Some(ManifestCheck::Refused(reason)) => {
                    wrong.push((author, (message.clone(), reason.clone())));
                }
                Some(ManifestCheck::Running | ManifestCheck::Stalled) => {}
                None => masks.verify(
                    Arc::new(alone(author, vector)),
                    *root,
                    vec![author],
                    self.out,
                ),
            }
        }
        if held.len() == authors.len() {
            self.issue_masked_manifest(list, held);
            return Ok(());
        }
        let (due, over) = self.timing().vectors_due(gathering);
        let answered = held.len() + wrong.len() == authors.len();
        // Whose vector is on its way to this lead is not silent.
        let sent: Vec<_> = gathering.vectors.keys().copied().collect();
        let coming = |author: &MemberIndex| {
            let right = !wrong.iter().any(|(by, _)| by == author);
            self.now < over && right && sent.contains(author)
        };
        let stays: Vec<_> = authors.iter().copied().filter(coming).collect();
        let has = |author: &MemberIndex| held.iter().any(|entry| entry.member == *author);
        let gone = |author: &MemberIndex| !has(author) && !stays.contains(author);
        let silent: Vec<_> = authors.into_iter().filter(gone).collect();
        // A wrong vector comes at once, and again in the next view: where the round cannot do without it, views
        // take as long as with a silent author, and members do not mask for one after another without a pause.
        if self.now < due && (!answered || self.rest_without(&list, &silent).is_none()) {
            return Ok(());
        }
        let round = self.round.number;
        for (author, (vector, reason)) in wrong {
            self.out.refuse(author, round, Refusal::Work(reason));
            let vector = Box::new(vector);
            self.out
                .push(Effect::Report(Report::WrongVector { vector }));
        }
        self.list_without(&list, silent, Omission::Vector)
    }

    /// Sends a new list without members that were silent (M4).
    ///
    /// # Errors
    /// Why this member votes against its own view: too few are left, or there were enough lists.
    fn list_without(
        &mut self,
        list: &MaskedList,
        silent: Vec<MemberIndex>,
        reason: Omission,
    ) -> Result<(), Refusal> {
        let (rest, slowest) = (self.rest_without(list, &silent), self.slowest());
        let Some(gathered) = &mut self.gathered else {
            return Ok(());
        };
        gathered.slowest = gathered.slowest.or(Some(slowest));
        gathered.reissues += 1;
        let Some(rest) = rest else {
            let missing = silent.len();
            return Err(Refusal::TooFewLeft { missing, reason });
        };
        let (view, round) = (self.view.number, self.round.number);
        self.out.push(Effect::Report(Report::LeftOut {
            view,
            round,
            members: silent,
            reason,
        }));
        self.issue_list(&rest);
        Ok(())
    }

    /// Those of a list without these members, if another list of this view can be theirs.
    fn rest_without(&self, list: &MaskedList, silent: &[MemberIndex]) -> Option<Vec<MemberIndex>> {
        let staying = list.keys.members().into_iter();
        let rest: Vec<_> = staying.filter(|member| !silent.contains(member)).collect();
        let lists = self
            .gathered
            .as_ref()
            .map_or(0, |gathered| gathered.reissues + 1);
        let enough = self.may_list(&rest) && rest.len() >= self.round.fewest(self.config);
        (lists < LISTS && enough).then_some(rest)
    }

    /// How long the slowest answer to the list took.
    fn slowest(&self) -> Duration {
        let Some(RoundStage::Masked(MaskedStage::Masking(gathering))) =
            self.gathered.as_ref().map(|gathered| &gathered.stage)
        else {
            return Duration::ZERO;
        };
        let took = gathering
            .vectors
            .values()
            .map(|(.., at)| *at - gathering.since);
        took.max().unwrap_or_default()
    }

    fn issue_masked_manifest(&mut self, list: Arc<MaskedList>, entries: Vec<MaskedEntry>) {
        let slowest = self.slowest();
        if let Some(gathered) = &mut self.gathered {
            gathered.slowest = gathered.slowest.or(Some(slowest));
        }
        let manifest = MaskedManifest {
            list: list.root,
            entries,
        };
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::MaskedManifest(manifest.clone());
        let (message, frame) = self.config.sign(round, view, body);
        self.set_stage(RoundStage::Masked(MaskedStage::SigningSum(SigningSum {
            list,
            root: manifest.root(),
            manifest: Arc::new(manifest),
            since: self.now,
            signed: BTreeMap::new(),
        })));
        self.out.publish(message, frame);
    }

    /// Drafts the block once all authors have signed for the manifest, or makes a new list without those
    /// who did not in time.
    ///
    /// # Errors
    /// Why this member votes against its own view: too few are left.
    fn sign_masked(&mut self) -> Result<Option<BlockDraft>, Refusal> {
        let Some(RoundStage::Masked(MaskedStage::SigningSum(sealing))) =
            self.gathered.as_ref().map(|gathered| &gathered.stage)
        else {
            return Ok(None);
        };
        if sealing.signed.len() == sealing.manifest.entries.len() {
            return Ok(self.draft_masked(sealing));
        }
        if self.now < self.timing().signatures_due(sealing) {
            return Ok(None);
        }
        let list = sealing.list.clone();
        let silent = sealing
            .manifest
            .authors()
            .filter(|by| !sealing.signed.contains_key(by));
        let silent = silent.collect();
        self.list_without(&list, silent, Omission::Inclusion)?;
        Ok(None)
    }

    fn draft_masked(&self, sealing: &SigningSum) -> Option<BlockDraft> {
        let round = self.round.number;
        let content = Content::Masked(MaskedRound {
            round,
            plan: self.round.plan()?.plan,
            state: self.chain.state_before(round)?,
            list: sealing.list.root,
            ready: sealing.list.keys.members(),
            manifest: sealing.root,
            inclusions: sealing.signed.clone().into_iter().collect(),
        });
        let (parent, proof) = (self.chain.tip.hash, self.chain.tip.proof.clone());
        Some(BlockDraft {
            content,
            parent,
            proof,
        })
    }

    /// An author's signature over the manifest of masked vectors.
    pub(in crate::member) fn sealed(&mut self, message: &Message, manifest: Hash) {
        if let Some(RoundStage::Masked(MaskedStage::SigningSum(sealing))) =
            self.gathered.as_mut().map(|gathered| &mut gathered.stage)
            && sealing.root == manifest
            && sealing.manifest.authors().any(|by| by == message.sender)
        {
            sealing.signed.insert(message.sender, message.signature);
        }
    }
}

/// A manifest of one vector, as which a lead has it checked.
fn alone(author: MemberIndex, vector: &MaskedVector) -> MaskedManifest {
    MaskedManifest {
        list: vector.list,
        entries: vec![vector.entry(author)],
    }
}

impl LeadTiming<'_> {
    /// When the spans end that a lead waits for in a masked round.
    pub(in crate::member) fn deadlines_masked(&self) -> Vec<Time> {
        match self.gathered.map(|gathered| &gathered.stage) {
            Some(RoundStage::Masked(MaskedStage::Masking(gathering))) => {
                let (due, over) = self.vectors_due(gathering);
                vec![due, over]
            }
            Some(RoundStage::Masked(MaskedStage::SigningSum(sealing))) => {
                vec![self.signatures_due(sealing)]
            }
            _ => Vec::new(),
        }
    }

    /// When members that have sent no vector are not waited for any longer, and when vectors that were sent
    /// and are not here are not.
    fn vectors_due(&self, gathering: &Gathering) -> (Time, Time) {
        let over = self.masked_over(gathering.since);
        let silent = authors(&gathering.list).into_iter();
        let silent = silent.filter(|by| !gathering.vectors.contains_key(by));
        let silent: Vec<_> = silent.collect();
        if silent.is_empty() {
            (over, over)
        } else {
            (self.masked_due(silent.into_iter(), gathering.since), over)
        }
    }

    /// When missing signatures for a manifest of masked vectors are not waited for any longer.
    fn signatures_due(&self, sealing: &SigningSum) -> Time {
        let signed: &ByMember<Signature> = &sealing.signed;
        let silent = sealing
            .manifest
            .authors()
            .filter(|by| !signed.contains_key(by));
        self.masked_due(silent, sealing.since)
    }

    /// When these silent members are not waited for any longer: after D if all are marked absent and this is the
    /// first list of the view.
    fn masked_due(&self, mut silent: impl Iterator<Item = MemberIndex>, since: Time) -> Time {
        let first = self.gathered.is_none_or(|gathered| gathered.reissues == 0);
        if first && silent.all(|member| self.waiting().marked_absent(member)) {
            since + self.phase()
        } else {
            self.masked_over(since)
        }
    }

    /// Patience (at least D) after `since`. Later lists of a view are waited for as long as the slowest
    /// answer to the first one took, at least D.
    fn masked_over(&self, since: Time) -> Time {
        let phase = self.phase();
        let gathered = self.gathered.filter(|gathered| gathered.reissues > 0);
        let longest = match gathered.and_then(|gathered| gathered.slowest) {
            Some(slowest) => slowest,
            None => self.view.config.epoch.patience(),
        };
        since + longest.max(phase)
    }
}
