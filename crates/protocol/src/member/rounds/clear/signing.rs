//! Signing for a manifest. The signature says that this member's entry and row stand in it unchanged,
//! and that this member, where it is an auditor of the view, keeps all of its models.

use std::sync::Arc;

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::consensus::views::View;
use crate::member::rounds::clear::manifests::per_view;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Body, ContributionList, Entry, MemberScores, RoundManifest};
use crate::refusal::Refusal;
use crate::work::{Request, WorkError};

/// Scoring the entries of a contribution list, and signing for a manifest. Borrows what that depends on.
pub(in crate::member) struct Signing<'a> {
    pub(in crate::member) config: &'a Config,
    pub(in crate::member) out: &'a mut Outbox,
    pub(in crate::member) chain: &'a Chain,
    pub(in crate::member) view: &'a View,
    pub(in crate::member) round: &'a mut Round,
    pub(in crate::member) participation: &'a ParticipationState,
}

impl Member {
    /// Lends what scoring and signing depend on.
    pub(in crate::member) fn signing(&mut self) -> Signing<'_> {
        Signing {
            config: &self.config,
            out: &mut self.out,
            chain: &self.consensus.chain,
            view: &self.consensus.view,
            round: &mut self.rounds.round,
            participation: &self.consensus.participation,
        }
    }
}

impl Round {
    /// Keeps a manifest of the view's lead.
    pub(in crate::member) fn keep_manifest(
        &mut self,
        config: &Config,
        view: &View,
        root: Hash,
        manifest: Arc<RoundManifest>,
    ) {
        let most = per_view(config.epoch.roster.faulty());
        self.manifests.keep(root, manifest, view.number, most);
    }
}

impl Signing<'_> {
    /// The lead takes no more contributions: scores its entries, or signs for them.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn contribution_list(
        &mut self,
        round: u64,
        contribution_list: ContributionList,
    ) -> Result<(), Refusal> {
        let Some(plan) = self.round.plan().filter(|plan| plan.round == round) else {
            return Ok(());
        };
        let cross_evaluate = plan.cross_evaluate;
        self.round
            .check_entries(self.config, &contribution_list.entries)?;
        let listed = self.round.own.listed(&contribution_list.entries);
        self.round.own.model_released |= listed || !self.round.own.has_contributed();
        if !cross_evaluate {
            self.include(RoundManifest {
                entries: contribution_list.entries,
                scores: None,
            });
        } else if listed {
            self.round.own.scoring.requested = Some(contribution_list.entries);
        }
        Ok(())
    }

    /// Measures the losses that are missing, and sends the scores once there are none.
    pub(in crate::member) fn score(&mut self) {
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
                self.out.push(Effect::Work(Request::Evaluate {
                    round,
                    entries: missing,
                    holders,
                }));
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
        let (message, frame) =
            self.config
                .sign(round, 0, Body::Scores(MemberScores { entry, losses }));
        self.out.send(self.view.lead, &message, &frame);
    }

    /// Losses were measured, or could not be.
    ///
    /// # Errors
    /// The rule that the lead of the view broke.
    pub(in crate::member) fn evaluated(
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
            // The lead sends its contribution list again with its next heartbeat.
            Err(WorkError::Unavailable) => scoring.requested = None,
            Err(WorkError::Refused(reason)) => {
                scoring.requested = None;
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// Keeps a manifest, and plans to sign for it if this member's entry and row are in it unchanged.
    pub(in crate::member) fn include(&mut self, manifest: RoundManifest) {
        let root = manifest.root();
        let listed = self.round.own.listed(&manifest.entries);
        let agreed = listed && self.agrees(&manifest);
        self.round.own.model_released |= agreed;
        self.round
            .keep_manifest(self.config, self.view, root, Arc::new(manifest));
        let most = per_view(self.config.epoch.roster.faulty());
        let view = self.view.number;
        if agreed
            && !self.participation.listening()
            && self.round.manifests.may_sign(&root, view, most)
        {
            self.round.signing = Some(root);
        }
    }

    /// A manifest of the view's lead: checks its form and signs for it.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn manifest(
        &mut self,
        round: u64,
        manifest: RoundManifest,
    ) -> Result<(), Refusal> {
        let Some(plan) = self.round.plan().filter(|plan| plan.round == round) else {
            return Ok(());
        };
        let k = manifest.entries.len();
        let square = manifest.scores.as_ref().is_none_or(|rows| {
            let finite = |row: &Vec<f64>| row.len() == k && row.iter().all(|loss| loss.is_finite());
            rows.len() == k && rows.iter().all(finite)
        });
        if manifest.scores.is_some() != plan.cross_evaluate || !square {
            return Err(Refusal::ManifestShape);
        }
        self.round.check_entries(self.config, &manifest.entries)?;
        self.include(manifest);
        Ok(())
    }

    /// Signs for the manifest, as an auditor of the view once all of its models are here. Under `full` all
    /// members are auditors, so that the round's data outlive the lead and the authors.
    pub(in crate::member) fn sign(&mut self) {
        if self.participation.listening() {
            self.round.signing = None;
        }
        let Some(root) = self.round.signing else {
            return;
        };
        let Some(manifest) = self.round.manifests.get(&root).cloned() else {
            self.round.signing = None;
            return;
        };
        let missing = self.round.models.missing(&manifest.entries);
        if !missing.is_empty() && self.view.audits(self.config, self.chain) {
            return self.hold(missing);
        }
        self.round.signing = None;
        let (message, frame) =
            self.config
                .sign(self.round.number, 0, Body::Inclusion { manifest: root });
        self.out.send(self.view.lead, &message, &frame);
        self.round.own.signed_in(self.view.number);
    }

    /// Fetches models to keep them, one request at a time.
    fn hold(&mut self, entries: Vec<Entry>) {
        if !std::mem::replace(&mut self.round.models.fetching, true) {
            let (round, holders) = (self.round.number, self.config.holders(self.view.lead));
            self.out.push(Effect::Work(Request::Hold {
                round,
                entries,
                holders,
            }));
        }
    }

    /// Models were fetched to be kept, or could not be.
    pub(in crate::member) fn held(
        &mut self,
        round: u64,
        blobs: &[Hash],
        result: Result<(), WorkError>,
    ) {
        if round != self.round.number {
            return;
        }
        self.round.models.fetching = false;
        match result {
            Ok(()) => self.round.models.hold(blobs.iter().copied()),
            // The lead sends the manifest again with its next heartbeat.
            Err(WorkError::Unavailable) => self.round.signing = None,
            Err(WorkError::Refused(reason)) => {
                self.round.signing = None;
                self.out
                    .refuse(self.view.lead, round, Refusal::Work(reason));
            }
        }
    }

    /// Whether this member's row of the manifest equals its losses bit by bit.
    fn agrees(&self, manifest: &RoundManifest) -> bool {
        let Some(rows) = &manifest.scores else {
            return true;
        };
        let own = self
            .round
            .own
            .entry()
            .and_then(|own| manifest.position(&own.id));
        let mine = self.round.own.scoring.row(&manifest.entries);
        own.zip(mine).is_some_and(|(at, mine)| {
            mine.iter()
                .zip(&rows[at])
                .all(|(a, b)| a.to_bits() == b.to_bits())
        })
    }
}
