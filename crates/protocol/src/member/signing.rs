//! Signing for a sheet: one's own entry and row are in it unchanged, and all of its models are kept
//! here.

use std::sync::Arc;

use super::sheets::per_view;
use super::{Member, Mutation};
use crate::effects::{Effect, WorkError};
use crate::hash::Hash;
use crate::message::{Body, Entry, Sheet};
use crate::refusal::Refusal;

impl Member {
    /// Keeps a sheet. If one's own entry and row are in it unchanged, signs for it as soon as all
    /// of its blobs are here.
    pub(super) fn include(&mut self, sheet: Sheet) {
        let root = sheet.root();
        let agreed = self.listed(&sheet.entries) && self.agrees(&sheet);
        self.round.open |= agreed;
        self.keep_sheet(root, Arc::new(sheet));
        let (view, most) = (self.view.number, self.sheets_per_view());
        if agreed && !self.sync.listening() && self.round.sheets.may_sign(&root, view, most) {
            self.round.signing = Some(root);
        }
    }

    /// Keeps a sheet of the view's lead.
    pub(super) fn keep_sheet(&mut self, root: Hash, sheet: Arc<Sheet>) {
        let (view, most) = (self.view.number, self.sheets_per_view());
        self.round.sheets.keep(root, sheet, view, most);
    }

    fn sheets_per_view(&self) -> usize {
        per_view(self.config.epoch.roster.faulty())
    }

    /// Signs for the sheet of the view once its blobs are here: a signature says that its member
    /// can give others everything that the sheet consists of, whatever becomes of the lead and of
    /// the authors.
    pub(super) fn sign(&mut self) {
        let Some(root) = self.round.signing else {
            return;
        };
        let Some(sheet) = self.round.sheets.get(&root).cloned() else {
            self.round.signing = None;
            return;
        };
        let missing = self.round.not_held(&sheet.entries);
        if !missing.is_empty() {
            return self.hold(missing);
        }
        self.round.signing = None;
        let (message, frame) = self.seal(self.round.number, 0, Body::Inclusion { sheet: root });
        self.send(self.view.lead, &message, &frame);
    }

    /// Asks for blobs, once at a time.
    fn hold(&mut self, entries: Vec<Entry>) {
        if !std::mem::replace(&mut self.round.holding, true) {
            let (round, holders) = (self.round.number, self.holders());
            self.out.push(Effect::Hold {
                round,
                entries,
                holders,
            });
        }
    }

    pub(super) fn held(&mut self, round: u64, blobs: &[Hash], result: Result<(), WorkError>) {
        if round != self.round.number {
            return;
        }
        self.round.holding = false;
        match result {
            Ok(()) => self.round.hold(blobs.iter().copied()),
            // The lead sends its sheet again with its next beat.
            Err(WorkError::Unavailable) => self.round.signing = None,
            Err(WorkError::Refused(reason)) => {
                self.round.signing = None;
                self.refuse(self.view.lead, round, Refusal::Work(reason));
            }
        }
    }

    /// Whether one's own entry is among these, unchanged.
    pub(super) fn listed(&self, entries: &[Entry]) -> bool {
        self.round.own_entry().is_some_and(|own| {
            entries
                .binary_search_by(|entry| entry.id.cmp(&own.id))
                .is_ok_and(|at| entries[at] == *own)
        })
    }

    /// Whether one's own row of a sheet is what one said, to the bit.
    fn agrees(&self, sheet: &Sheet) -> bool {
        let Some(rows) = &sheet.scores else {
            return true;
        };
        let own = self
            .round
            .own_entry()
            .and_then(|own| sheet.position(&own.id));
        let mine = self.round.row(&sheet.entries);
        self.broken(Mutation::ForgedScore)
            || own.zip(mine).is_some_and(|(at, mine)| {
                mine.iter()
                    .zip(&rows[at])
                    .all(|(a, b)| a.to_bits() == b.to_bits())
            })
    }
}
