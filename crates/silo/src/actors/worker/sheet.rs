//! The sheet of the round under way, together with its models.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use methods::{Params, Sheet};
use protocol::Hash;
use protocol::effects::WorkError;
use protocol::message::Sheet as SignedSheet;

use super::{CurrentRound, WorkerActor};
use crate::checks::{Checks, Shared};
use crate::rounds::RoundBase;

/// A signed sheet and its models. Shared by all jobs that need them, so that every model passes the
/// gate once.
pub(super) struct SheetModels {
    signed: Arc<SignedSheet>,
    base: Arc<RoundBase>,
    checks: Arc<Checks>,
    /// For every entry the result of the gate, and the document of its model.
    models: OnceLock<Vec<(Shared<Params>, Bytes)>>,
    sheet: OnceLock<Result<Sheet, String>>,
}

impl SheetModels {
    /// Returns whether the documents of all models are here.
    pub(super) fn are_loaded(&self) -> bool {
        self.models.get().is_some()
    }

    /// The sheet that the strategy gets: every model has passed the gate.
    pub(super) fn sheet(&self) -> Result<&Sheet, WorkError> {
        let models = self.models.get().ok_or(WorkError::Unavailable)?;
        let sheet = || {
            self.base.sheet(&self.signed, |nth, entry| {
                let (gated, document) = &models[nth];
                let largest = || self.checks.largest(&entry.fields.blob);
                gated.compute(|| self.base.admit(document.clone(), largest()))
            })
        };
        let sheet = self.sheet.get_or_init(sheet).as_ref();
        sheet.map_err(|why| WorkError::Refused(why.clone()))
    }
}

impl CurrentRound {
    /// Returns whether all models of this sheet are known to be here.
    pub(super) fn has(&self, sheet: &Arc<SignedSheet>) -> bool {
        let known = self.sheet.as_ref();
        known.is_some_and(|known| Arc::ptr_eq(&known.signed, sheet))
    }
}

impl WorkerActor {
    /// A sheet whose models are all stored here.
    pub(super) fn sheet_models(&mut self, signed: &Arc<SignedSheet>) -> Arc<SheetModels> {
        if let Some(known) = self.round.sheet.as_ref().filter(|_| self.round.has(signed)) {
            return known.clone();
        }
        let models = Arc::new(SheetModels {
            signed: signed.clone(),
            base: self.base.clone(),
            checks: self.checks.clone(),
            models: OnceLock::new(),
            sheet: OnceLock::new(),
        });
        self.round.sheet = Some(models.clone());
        models
    }

    /// The models of a signed sheet with their documents loaded, for a job that needs them.
    pub(super) fn loaded_sheet(&mut self, signed: &Arc<SignedSheet>) -> Arc<SheetModels> {
        let sheet = self.sheet_models(signed);
        if !sheet.are_loaded() {
            let models = signed.entries.iter().map(|entry| {
                let blob: &Hash = &entry.fields.blob;
                Some((self.gated(blob), self.blobs.get(blob)?))
            });
            if let Some(models) = models.collect() {
                sheet.models.get_or_init(|| models);
            }
        }
        sheet
    }
}
