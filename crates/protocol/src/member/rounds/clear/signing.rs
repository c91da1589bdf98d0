//! Signing for a sheet. The signature says that this member's entry and row stand in it unchanged,
//! and that this member, where it is an auditor of the view, keeps all of its models.

use std::sync::Arc;

use crate::effects::Effect;
use crate::hash::Hash;
use crate::member::consensus::chain::Chain;
use crate::member::consensus::outbox::Outbox;
use crate::member::consensus::participation::ParticipationState;
use crate::member::consensus::views::View;
use crate::member::rounds::clear::sheets::per_view;
use crate::member::rounds::round::Round;
use crate::member::{Config, Member};
use crate::message::{Body, Bundle, Entry, Scores, Sheet};
use crate::refusal::Refusal;
use crate::work::{Request, WorkError};

/// Scoring the entries of a bundle, and signing for a sheet. Borrows what that depends on.
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
    /// Keeps a sheet of the view's lead.
    pub(in crate::member) fn keep_sheet(
        &mut self,
        config: &Config,
        view: &View,
        root: Hash,
        sheet: Arc<Sheet>,
    ) {
        let most = per_view(config.epoch.roster.faulty());
        self.sheets.keep(root, sheet, view.number, most);
    }
}

impl Signing<'_> {
    /// The lead takes no more contributions: scores its entries, or signs for them.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn bundle(&mut self, round: u64, bundle: Bundle) -> Result<(), Refusal> {
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
        let (message, frame) = self
            .config
            .seal(round, 0, Body::Scores(Scores { entry, losses }));
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
            // The lead sends its bundle again with its next beat.
            Err(WorkError::Unavailable) => scoring.requested = None,
            Err(WorkError::Refused(reason)) => {
                scoring.requested = None;
                return Err(Refusal::Work(reason));
            }
        }
        Ok(())
    }

    /// Keeps a sheet, and plans to sign for it if this member's entry and row are in it unchanged.
    pub(in crate::member) fn include(&mut self, sheet: Sheet) {
        let root = sheet.root();
        let listed = self.round.own.listed(&sheet.entries);
        let agreed = listed && self.agrees(&sheet);
        self.round.own.model_released |= agreed;
        self.round
            .keep_sheet(self.config, self.view, root, Arc::new(sheet));
        let most = per_view(self.config.epoch.roster.faulty());
        let view = self.view.number;
        if agreed
            && !self.participation.listening()
            && self.round.sheets.may_sign(&root, view, most)
        {
            self.round.signing = Some(root);
        }
    }

    /// A sheet of the view's lead: checks its form and signs for it.
    ///
    /// # Errors
    /// The rule that its lead broke.
    pub(in crate::member) fn sheet(&mut self, round: u64, sheet: Sheet) -> Result<(), Refusal> {
        let Some(plan) = self.round.plan().filter(|plan| plan.round == round) else {
            return Ok(());
        };
        let k = sheet.entries.len();
        let square = sheet.scores.as_ref().is_none_or(|rows| {
            let finite = |row: &Vec<f64>| row.len() == k && row.iter().all(|loss| loss.is_finite());
            rows.len() == k && rows.iter().all(finite)
        });
        if sheet.scores.is_some() != plan.cross_evaluate || !square {
            return Err(Refusal::SheetShape);
        }
        self.round.check_entries(self.config, &sheet.entries)?;
        self.include(sheet);
        Ok(())
    }

    /// Signs for the sheet, as an auditor of the view once all of its models are here. Under `full` all
    /// members are auditors, so that the round's data outlive the lead and the authors.
    pub(in crate::member) fn sign(&mut self) {
        if self.participation.listening() {
            self.round.signing = None;
        }
        let Some(root) = self.round.signing else {
            return;
        };
        let Some(sheet) = self.round.sheets.get(&root).cloned() else {
            self.round.signing = None;
            return;
        };
        let missing = self.round.models.missing(&sheet.entries);
        if !missing.is_empty() && self.view.audits(self.config, self.chain) {
            return self.hold(missing);
        }
        self.round.signing = None;
        let (message, frame) =
            self.config
                .seal(self.round.number, 0, Body::Inclusion { sheet: root });
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
            // The lead sends the sheet again with its next beat.
            Err(WorkError::Unavailable) => self.round.signing = None,
            Err(WorkError::Refused(reason)) => {
                self.round.signing = None;
                self.out
                    .refuse(self.view.lead, round, Refusal::Work(reason));
            }
        }
    }

    /// Returns true if this member's row of the sheet equals its losses bit by bit.
    fn agrees(&self, sheet: &Sheet) -> bool {
        let Some(rows) = &sheet.scores else {
            return true;
        };
        let own = self
            .round
            .own
            .entry()
            .and_then(|own| sheet.position(&own.id));
        let mine = self.round.own.scoring.row(&sheet.entries);
        own.zip(mine).is_some_and(|(at, mine)| {
            mine.iter()
                .zip(&rows[at])
                .all(|(a, b)| a.to_bits() == b.to_bits())
        })
    }
}
