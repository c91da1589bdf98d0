//! Collecting contributions: receipts, and closing the set with a bundle.

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::rounds::inbox::AdmissionState;
use crate::message::{Body, Bundle, Contribution, Entry, EntryFields, Message, Sheet};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::work::{Request, WorkError};

use super::Leading;
use super::gathered::RoundStage;

impl Leading<'_> {
    /// Checks contributions, gives receipts, and closes the set when it is time.
    pub(in crate::member) fn collect_contributions(&mut self) {
        let Some(plan) = self.round.plan().cloned() else {
            return;
        };
        if self.take_over_sheet() {
            return;
        }
        let Some(gathered) = &self.gathered else {
            return;
        };
        let looked_at = |message: &Message| match self.round.inbox.admissions.get(&message.sender) {
            None | Some(AdmissionState::Usable) => false,
            Some(_) => true,
        };
        let due: Vec<_> = self
            .round
            .inbox
            .contributions
            .values()
            .filter(|message| !gathered.receipts.contains_key(&message.sender))
            .filter(|message| !looked_at(message))
            .cloned()
            .collect();
        for message in due {
            self.look_at(&message, plan.round);
        }
        if self.closing() {
            self.close(plan.cross_evaluate);
        }
    }

    /// Has a contribution checked, or accepts it once that is done.
    fn look_at(&mut self, message: &Message, round: u64) {
        let from = message.sender;
        if let Some(reason) = self.objection(message) {
            self.round
                .inbox
                .admissions
                .insert(from, AdmissionState::Refused);
            return self.out.refuse(from, round, reason);
        }
        let (id, check) = match &message.body {
            Body::Contribution(contribution) => (
                contribution.entry(&self.config.epoch.federation, round).id,
                // Fetched from each author, even if another has contributed the same model: an
                // author that only copied the hash cannot give it.
                Request::Admit {
                    round,
                    fields: contribution.fields.clone(),
                    from,
                },
            ),
            Body::Keys(keys) => (
                keys.id(&self.config.epoch.federation, round, from),
                Request::CheckKeys {
                    round,
                    keys: keys.public,
                    from,
                },
            ),
            _ => return,
        };
        match self.round.inbox.admissions.get(&from) {
            Some(_) => self.accept(from, id),
            None => {
                self.round
                    .inbox
                    .admissions
                    .insert(from, AdmissionState::Pending);
                self.out.push(Effect::Work(check));
            }
        }
    }

    /// Closes the set: sends the bundle, or the list of a masked round.
    fn close(&mut self, cross_evaluate: bool) {
        let Some(gathered) = &self.gathered else {
            return;
        };
        let members: Vec<_> = gathered.receipts.keys().copied().collect();
        if self.config.masked().is_some() {
            return self.issue_list(&members);
        }
        let federation = self.config.epoch.federation;
        let entry = |member| match &self.round.inbox.contributions.get(member)?.body {
            Body::Contribution(own) => Some(own.entry(&federation, self.round.number)),
            _ => None,
        };
        let mut entries: Vec<_> = members.iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.id);
        self.issue_bundle(entries, cross_evaluate);
    }

    /// What is wrong with a contribution, before its model is fetched, or its keys are checked.
    fn objection(&self, message: &Message) -> Option<Refusal> {
        let plan = self.round.plan()?;
        if !self.round.participates(message.sender) {
            return Some(Refusal::NotAParticipant(message.sender));
        }
        let (got, ours) = match &message.body {
            Body::Keys(keys) => (keys.plan, plan.plan),
            Body::Contribution(contribution) => (contribution.plan, plan.plan),
            _ => return None,
        };
        if got != ours {
            return Some(Refusal::WrongPlan { got, ours });
        }
        match &message.body {
            Body::Contribution(contribution) => self.objection_to_model(message, contribution),
            _ => None,
        }
    }

    /// What is wrong with the entry of a contributed model.
    fn objection_to_model(
        &self,
        message: &Message,
        contribution: &Contribution,
    ) -> Option<Refusal> {
        let (plan, fields) = (self.round.plan()?, &contribution.fields);
        let (got, limit) = (fields.size, self.config.epoch.charter.blob_limit);
        if got > limit {
            return Some(Refusal::ModelTooLarge { got, limit });
        }
        let needed = plan.blob_size;
        if got != needed {
            return Some(Refusal::ModelSize { got, needed });
        }
        let shown = self.config.epoch.charter.shows_names();
        if fields.member != shown.then_some(message.sender) {
            return Some(Refusal::EntryName);
        }
        if fields.weight.is_some() != plan.weights {
            return Some(Refusal::EntryFields);
        }
        let (got, most) = (
            fields.weight?,
            self.config.epoch.roster.rows(message.sender),
        );
        (got > most).then_some(Refusal::TooManyRows { got, most })
    }

    /// A contributed model was fetched and checked, or could not be.
    pub(in crate::member) fn admitted(
        &mut self,
        round: u64,
        from: MemberIndex,
        fields: &EntryFields,
        result: Result<(), WorkError>,
    ) {
        if result.is_ok() && round == self.round.number {
            // Models that were fetched to be checked are kept.
            self.round.models.hold([fields.blob]);
        }
        self.keys_checked(round, from, result);
    }

    /// A contribution was checked: its model, or its keys in a masked round.
    pub(in crate::member) fn keys_checked(
        &mut self,
        round: u64,
        from: MemberIndex,
        result: Result<(), WorkError>,
    ) {
        let refused = self.round.inbox.admissions.get(&from) == Some(&AdmissionState::Refused);
        if round != self.round.number || refused {
            return;
        }
        let admission = match result {
            Ok(()) => AdmissionState::Usable,
            Err(WorkError::Unavailable) => AdmissionState::Retry,
            Err(WorkError::Refused(reason)) => {
                self.out.refuse(from, round, Refusal::Work(reason));
                AdmissionState::Refused
            }
        };
        self.round.inbox.admissions.insert(from, admission);
    }

    /// The contribution counts: its author gets a receipt of this view.
    fn accept(&mut self, member: MemberIndex, id: Hash) {
        let Some(gathered) = &mut self.gathered else {
            return;
        };
        gathered.receipts.insert(member, id);
        self.give_receipt(member);
    }

    pub(in crate::member) fn give_receipt(&mut self, member: MemberIndex) {
        let Some(&entry) = self
            .gathered
            .as_ref()
            .and_then(|gathered| gathered.receipts.get(&member))
        else {
            return;
        };
        let body = Body::Receipt { entry };
        let (message, frame) = self.config.seal(0, self.view.number, body);
        self.out.send(member, &message, &frame);
    }

    /// A contribution came again: its author seems to lack the receipt.
    pub(in crate::member) fn repeat_receipt(&mut self, member: MemberIndex) {
        if member != self.config.me {
            self.give_receipt(member);
        }
    }

    /// Whether to close the set, without those who are missing.
    fn closing(&mut self) -> bool {
        let ready = self
            .gathered
            .iter()
            .flat_map(|gathered| gathered.receipts.keys().copied());
        let ready: Vec<_> = ready.collect();
        let masked = self.config.masked().is_some();
        if masked && !self.may_list(&ready) {
            if self.timing().waiting().patience_over() {
                self.report_missing(&ready);
            }
            return false;
        }
        let Some(gathered) = &self.gathered else {
            return false;
        };
        let refused = |member: &MemberIndex| {
            self.round.inbox.admissions.get(member) == Some(&AdmissionState::Refused)
        };
        let mut missing = self
            .round
            .participants()
            .iter()
            .filter(|member| !gathered.receipts.contains_key(member) && !refused(member))
            .filter(|member| !self.timing().waiting().sits_out(**member));
        if gathered.receipts.len() < self.round.fewest(self.config) {
            return false;
        }
        if gathered.receipts.is_empty() {
            // A round without entries leaves the models as they are: only after D and patience.
            return self.now >= self.view.entered + self.timing().phase()
                && self.timing().waiting().patience_over();
        }
        if missing.clone().next().is_none() {
            return true;
        }
        if self.now < self.view.entered + self.timing().phase() {
            return false;
        }
        missing.all(|&member| self.timing().waiting().excused(member))
            || self.timing().waiting().patience_over()
    }

    /// Sends the bundle. Without cross-evaluation it is the sheet too.
    pub(in crate::member) fn issue_bundle(&mut self, entries: Vec<Entry>, cross_evaluate: bool) {
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::Bundle(Bundle {
            entries: entries.clone(),
        });
        let (message, frame) = self.config.seal(round, view, body);
        if cross_evaluate {
            self.set_stage(RoundStage::Scoring {
                entries,
                since: self.now,
            });
        } else {
            self.start_including(Sheet {
                entries,
                scores: None,
            });
        }
        self.out.publish(message, frame);
    }
}
