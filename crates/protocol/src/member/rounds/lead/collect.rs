//! Collecting contributions: receipts, and closing the set.

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::rounds::inbox::AdmissionState;
use crate::message::{Body, Message};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::work::{Request, WorkError};

use super::Leading;

/// What a lead needs to know of a contribution.
pub(in crate::member) struct Admission {
    /// The id by which a receipt names it.
    pub(in crate::member) id: Hash,
    /// The plan that it follows.
    pub(in crate::member) plan: Hash,
    /// What is wrong with it beside that.
    pub(in crate::member) objection: Option<Refusal>,
    /// How it is checked.
    pub(in crate::member) check: Request,
}

impl Leading<'_> {
    /// Checks contributions, gives receipts, and closes the set when it is time.
    pub(in crate::member) fn collect_contributions(&mut self) {
        let Some(plan) = self.round.plan().cloned() else {
            return;
        };
        if self.take_over_manifest() {
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
            let gathered = self.gathered.iter();
            let ready = gathered.flat_map(|gathered| gathered.receipts.keys().copied());
            let ready: Vec<_> = ready.collect();
            self.kind.close(self, &ready);
        }
    }

    /// Has a contribution checked, or accepts it once that is done.
    fn look_at(&mut self, message: &Message, round: u64) {
        let from = message.sender;
        let Some(admission) = self.kind.admission(self, message) else {
            return;
        };
        if let Some(reason) = self.objection(from, &admission) {
            self.round
                .inbox
                .admissions
                .insert(from, AdmissionState::Refused);
            return self.out.refuse(from, round, reason);
        }
        match self.round.inbox.admissions.get(&from) {
            Some(_) => self.accept(from, admission.id),
            None => {
                self.round
                    .inbox
                    .admissions
                    .insert(from, AdmissionState::Pending);
                self.out.push(Effect::Work(admission.check));
            }
        }
    }

    /// What is wrong with a contribution, before its model is fetched, or its keys are checked.
    fn objection(&self, from: MemberIndex, admission: &Admission) -> Option<Refusal> {
        let plan = self.round.plan()?;
        if !self.round.participates(from) {
            return Some(Refusal::NotAParticipant(from));
        }
        let (got, ours) = (admission.plan, plan.plan);
        if got != ours {
            return Some(Refusal::WrongPlan { got, ours });
        }
        admission.objection.clone()
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
        let (message, frame) = self.config.sign(0, self.view.number, body);
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
        if !self.kind.may_close(self, &ready) {
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
        missing.all(|&member| self.timing().waiting().marked_absent(member))
            || self.timing().waiting().patience_over()
    }
}
