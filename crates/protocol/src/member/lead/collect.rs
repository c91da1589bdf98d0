//! Collecting contributions: receipts, and closing the set with a bundle.

use crate::effects::Effect;
use crate::member::Mutation;
use crate::member::inbox::Admission;
use crate::message::{Body, Bundle, Contribution, Entry, EntryFields, Message, Sheet};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::work::{Request, WorkError};

use super::Leading;
use crate::member::stage::Stage;

impl Leading<'_> {
    /// Checks contributions, gives receipts, and closes the set when it is time.
    pub(super) fn collect_contributions(&mut self) {
        let Some(plan) = self.round.plan().cloned() else {
            return;
        };
        if self.take_over_sheet() {
            return;
        }
        let Some(lead) = &self.lead else { return };
        let looked_at = |message: &Message| match self.round.inbox.admissions.get(&message.sender) {
            None | Some(Admission::Usable) => false,
            Some(_) => true,
        };
        let due: Vec<_> = self
            .round
            .inbox
            .contributions
            .values()
            .filter(|message| !lead.receipts.contains_key(&message.sender))
            .filter(|message| !looked_at(message))
            .cloned()
            .collect();
        for message in due {
            let Body::Contribution(contribution) = &message.body else {
                continue;
            };
            let from = message.sender;
            if let Some(reason) = self.objection(&message, contribution) {
                self.round.inbox.admissions.insert(from, Admission::Refused);
                self.out.refuse(from, plan.round, reason);
                continue;
            }
            match self.round.inbox.admissions.get(&from) {
                Some(_) => self.accept(from, contribution),
                // Fetched from each author, even if another has contributed the same model: an
                // author that only copied the hash cannot give it.
                None => {
                    self.round.inbox.admissions.insert(from, Admission::Pending);
                    self.out.push(Effect::Work(Request::Admit {
                        round: plan.round,
                        fields: contribution.fields.clone(),
                        from,
                    }));
                }
            }
        }
        if self.closing() {
            let Some(lead) = &self.lead else { return };
            let mut entries: Vec<_> = lead.receipts.values().cloned().collect();
            entries.sort_by_key(|entry| entry.id);
            self.issue_bundle(entries, plan.cross_evaluate);
        }
    }

    /// What is wrong with a contribution, before its model is fetched.
    fn objection(&self, message: &Message, contribution: &Contribution) -> Option<Refusal> {
        let plan = self.round.plan()?;
        let fields = &contribution.fields;
        if !self.round.participates(message.sender)
            && !self.config.broken(Mutation::UninvitedContribution)
        {
            return Some(Refusal::NotAParticipant(message.sender));
        }
        let (got, ours) = (contribution.plan, plan.plan);
        if got != ours && !self.config.broken(Mutation::ContributionOfAnyPlan) {
            return Some(Refusal::WrongPlan { got, ours });
        }
        let (got, limit) = (fields.size, self.config.epoch.charter.blob_limit);
        if got > limit {
            return Some(Refusal::ModelTooLarge { got, limit });
        }
        let needed = plan.blob_size;
        if got != needed && !self.config.broken(Mutation::ModelOfAnySize) {
            return Some(Refusal::ModelSize { got, needed });
        }
        let shown = self.config.epoch.charter.names_shown;
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
        let admitted = got <= most || self.config.broken(Mutation::ContributionOfAnyRows);
        (!admitted).then_some(Refusal::TooManyRows { got, most })
    }

    /// A contributed model was fetched and checked, or could not be.
    pub(in crate::member) fn admitted(
        &mut self,
        round: u64,
        from: MemberIndex,
        fields: &EntryFields,
        result: Result<(), WorkError>,
    ) {
        let refused = self.round.inbox.admissions.get(&from) == Some(&Admission::Refused);
        if round != self.round.number || refused {
            return;
        }
        let admission = match result {
            Err(WorkError::Refused(_)) if self.config.broken(Mutation::BadModelAdmitted) => {
                Admission::Usable
            }
            Ok(()) => {
                // Models that were fetched to be checked are kept.
                self.round.models.hold([fields.blob]);
                Admission::Usable
            }
            Err(WorkError::Unavailable) => Admission::Retry,
            Err(WorkError::Refused(reason)) => {
                self.out.refuse(from, round, Refusal::Work(reason));
                Admission::Refused
            }
        };
        self.round.inbox.admissions.insert(from, admission);
    }

    /// The contribution counts: its author gets a receipt of this view.
    fn accept(&mut self, member: MemberIndex, contribution: &Contribution) {
        let entry = contribution.entry(&self.config.epoch.federation, self.round.number);
        let Some(lead) = &mut self.lead else { return };
        lead.receipts.insert(member, entry);
        self.give_receipt(member);
    }

    pub(super) fn give_receipt(&mut self, member: MemberIndex) {
        let Some(entry) = self
            .lead
            .as_ref()
            .and_then(|lead| lead.receipts.get(&member))
        else {
            return;
        };
        let body = Body::Receipt { entry: entry.id };
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
    fn closing(&self) -> bool {
        let Some(lead) = &self.lead else { return false };
        let refused = |member: &MemberIndex| {
            self.round.inbox.admissions.get(member) == Some(&Admission::Refused)
        };
        let mut missing = self
            .round
            .participants()
            .iter()
            .filter(|member| !lead.receipts.contains_key(member) && !refused(member))
            .filter(|member| !self.timing().waiting().sits_out(**member));
        if lead.receipts.len() < self.round.fewest(self.config)
            && !self.config.broken(Mutation::ClosesWithTooFew)
        {
            return false;
        }
        if lead.receipts.is_empty() {
            // A round without entries leaves the models as they are: only after D and patience.
            return self.now >= self.view.entered + self.timing().phase()
                && self.timing().waiting().patience_over();
        }
        if missing.clone().next().is_none() {
            return true;
        }
        if self.config.broken(Mutation::ClosesAtOnce) {
            return true;
        }
        if self.now < self.view.entered + self.timing().phase() {
            return false;
        }
        missing.all(|&member| self.timing().waiting().excused(member))
            || self.timing().waiting().patience_over()
    }

    /// Sends the bundle. Without cross-evaluation it is the sheet too.
    pub(super) fn issue_bundle(&mut self, entries: Vec<Entry>, cross_evaluate: bool) {
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::Bundle(Bundle {
            entries: entries.clone(),
        });
        let (message, frame) = self.config.seal(round, view, body);
        if cross_evaluate {
            self.set_stage(Stage::Scoring {
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
