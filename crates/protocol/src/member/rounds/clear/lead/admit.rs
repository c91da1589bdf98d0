//! What a contributed model must be, and the contribution list that closes the set.

use super::stage::ClearStage;
use crate::member::rounds::lead::Leading;
use crate::member::rounds::lead::collect::Admission;
use crate::member::rounds::lead::gathered::RoundStage;
use crate::message::{
    Body, Contribution, ContributionList, Entry, EntryFields, Message, RoundManifest,
};
use crate::refusal::Refusal;
use crate::roster::MemberIndex;
use crate::work::{Request, WorkError};

impl Leading<'_> {
    /// What this lead needs to know of a contributed model.
    pub(in crate::member) fn model_admission(&self, message: &Message) -> Option<Admission> {
        let Body::Contribution(contribution) = &message.body else {
            return None;
        };
        let (round, from) = (message.round, message.sender);
        Some(Admission {
            id: contribution.entry(&self.config.epoch.federation, round).id,
            plan: contribution.plan,
            objection: self.objection_to_model(message, contribution),
            // Fetched from each author, even if another has contributed the same model: an
            // author that only copied the hash cannot give it.
            check: Request::Admit {
                round,
                fields: contribution.fields.clone(),
                from,
            },
        })
    }

    /// What is wrong with the entry of a contributed model.
    fn objection_to_model(
        &self,
        message: &Message,
        contribution: &Contribution,
    ) -> Option<Refusal> {
        let (plan, fields) = (self.round.plan()?, &contribution.fields);
        let (got, limit) = (fields.size, self.config.epoch.protocol.blob_limit);
        if got > limit {
            return Some(Refusal::ModelTooLarge { got, limit });
        }
        let needed = plan.blob_size;
        if got != needed {
            return Some(Refusal::ModelSize { got, needed });
        }
        let shown = self.config.epoch.protocol.shows_names();
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

    /// Closes the set with a contribution list of these members' entries.
    pub(in crate::member) fn contribution_list_up(&mut self, ready: &[MemberIndex]) {
        let Some(plan) = self.round.plan() else {
            return;
        };
        let cross_evaluate = plan.cross_evaluate;
        let federation = self.config.epoch.federation;
        let entry = |member| match &self.round.inbox.contributions.get(member)?.body {
            Body::Contribution(own) => Some(own.entry(&federation, self.round.number)),
            _ => None,
        };
        let mut entries: Vec<_> = ready.iter().filter_map(entry).collect();
        entries.sort_by_key(|entry| entry.id);
        self.issue_contribution_list(entries, cross_evaluate);
    }

    /// Sends the contribution list. Without cross-evaluation it is the manifest too.
    pub(in crate::member) fn issue_contribution_list(
        &mut self,
        entries: Vec<Entry>,
        cross_evaluate: bool,
    ) {
        let (round, view) = (self.round.number, self.view.number);
        let body = Body::ContributionList(ContributionList {
            entries: entries.clone(),
        });
        let (message, frame) = self.config.sign(round, view, body);
        if cross_evaluate {
            self.set_stage(RoundStage::Clear(ClearStage::Scoring {
                entries,
                since: self.now,
            }));
        } else {
            self.start_including(RoundManifest {
                entries,
                scores: None,
            });
        }
        self.out.publish(message, frame);
    }
}
