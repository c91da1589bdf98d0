//! Bundles, and scoring their entries on this member's own data.

use std::collections::BTreeMap;

use super::Mutation;
use super::signing::Signing;
use crate::effects::Effect;
use crate::hash::Hash;
use crate::message::{Body, Bundle, Entry, Scores, Sheet};
use crate::refusal::Refusal;
use crate::work::WorkError;

/// This member's losses of the round's entries.
#[derive(Default)]
pub(super) struct Scoring {
    /// Measured losses, by the model's hash.
    losses: BTreeMap<Hash, f64>,
    /// The entries of a bundle whose scores the lead waits for.
    requested: Option<Vec<Entry>>,
    /// An [`Effect::Evaluate`] is not answered yet.
    evaluating: bool,
}

impl Scoring {
    /// The losses of these entries in their order, if all were measured.
    pub(super) fn row(&self, entries: &[Entry]) -> Option<Vec<f64>> {
        entries
            .iter()
            .map(|entry| self.losses.get(&entry.fields.blob).copied())
            .collect()
    }
}

impl Signing<'_> {
    /// The lead takes no more contributions: scores its entries, or signs for them.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(super) fn bundle(&mut self, round: u64, bundle: Bundle) -> Result<(), Refusal> {
        let Some(plan) = self.round.plan().filter(|plan| plan.round == round) else {
            return Ok(());
        };
        let cross_evaluate = plan.cross_evaluate;
        self.round.check_entries(self.config, &bundle.entries)?;
        let listed = self.round.own.listed(&bundle.entries);
        self.round.own.model_released |= listed || !self.round.own.has_contributed();
        if !cross_evaluate {
            self.include(Sheet {
                entries: bundle.entries,
                scores: None,
            });
        } else if listed {
            self.round.own.scoring.requested = Some(bundle.entries);
        }
        Ok(())
    }

    /// Measures the losses that are missing, and sends the scores once there are none.
    pub(super) fn score(&mut self) {
        let (round, scoring) = (self.round.number, &mut self.round.own.scoring);
        let Some(entries) = scoring.requested.clone() else {
            return;
        };
        let missing: Vec<_> = entries
            .iter()
            .filter(|entry| !scoring.losses.contains_key(&entry.fields.blob))
            .cloned()
            .collect();
        if !missing.is_empty() {
            if !std::mem::replace(&mut scoring.evaluating, true) {
                let holders = self.config.holders(self.view.lead);
                self.out.push(Effect::Evaluate {
                    round,
                    entries: missing,
                    holders,
                });
            }
            return;
        }
        scoring.requested = None;
        let mut losses: Vec<_> = entries
            .iter()
            .filter_map(|entry| {
                let blob = entry.fields.blob;
                scoring.losses.get(&blob).map(|&loss| (blob, loss))
            })
            .collect();
        losses.sort_by_key(|(blob, _)| *blob);
        losses.dedup_by_key(|(blob, _)| *blob);
        let Some(entry) = self.round.own.entry().map(|entry| entry.id) else {
            return;
        };
        let (message, frame) = self
            .config
            .seal(round, 0, Body::Scores(Scores { entry, losses }));
        if self.config.broken(Mutation::ScoresPublished) {
            return self.out.publish(message, frame);
        }
        self.out.send(self.view.lead, &message, &frame);
    }

    /// Losses were measured, or could not be.
    ///
    /// # Errors
    /// The rule that the lead of the view broke.
    pub(super) fn evaluated(
        &mut self,
        round: u64,
        result: Result<Vec<(Hash, f64)>, WorkError>,
    ) -> Result<(), Refusal> {
        if round != self.round.number {
            return Ok(());
        }
        let scoring = &mut self.round.own.scoring;
        scoring.evaluating = false;
        match result {
            Ok(losses) => {
                // Models that were fetched to be evaluated are kept.
                self.round.models.hold(losses.iter().map(|(blob, _)| *blob));
                scoring.losses.extend(losses);
            }
            // The lead sends its bundle again with its next beat.
            Err(WorkError::Unavailable) => scoring.requested = None,
            Err(WorkError::Refused(reason)) => {
                scoring.requested = None;
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }
}
