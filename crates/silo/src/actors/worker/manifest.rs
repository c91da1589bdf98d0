//! The manifest of the round under way, together with its models.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use methods::{LoadedManifest, Params};
use protocol::Hash;
use protocol::effects::WorkError;
use protocol::message::RoundManifest;

use super::{CurrentRound, WorkerActor};
use crate::checks::{Checks, Shared};
use crate::rounds::RoundBase;

/// A signed manifest and its models. Shared by all jobs that need them, so that every model passes the
/// gate once.
pub(super) struct ManifestModels {
    signed: Arc<RoundManifest>,
    base: Arc<RoundBase>,
    checks: Arc<Checks>,
    /// For every entry the result of the gate, and the document of its model.
    models: OnceLock<Vec<(Shared<Params>, Bytes)>>,
    manifest: OnceLock<Result<LoadedManifest, String>>,
}

impl ManifestModels {
    /// Returns whether the documents of all models are here.
    pub(super) fn are_loaded(&self) -> bool {
        self.models.get().is_some()
    }

    /// The manifest that the strategy gets: every model has passed the gate.
    pub(super) fn manifest(&self) -> Result<&LoadedManifest, WorkError> {
        let models = self.models.get().ok_or(WorkError::Unavailable)?;
        let manifest = || {
            self.base.manifest(&self.signed, |nth, entry| {
                let (gated, document) = &models[nth];
                let largest = || self.checks.largest(&entry.fields.blob);
                gated.compute(|| self.base.admit(document.clone(), largest()))
            })
        };
        let manifest = self.manifest.get_or_init(manifest).as_ref();
        manifest.map_err(|why| WorkError::Refused(why.clone()))
    }
}

impl CurrentRound {
    /// Returns whether all models of this manifest are known to be here.
    pub(super) fn has(&self, manifest: &Arc<RoundManifest>) -> bool {
        let known = self.manifest.as_ref();
        known.is_some_and(|known| Arc::ptr_eq(&known.signed, manifest))
    }
}

impl WorkerActor {
    /// A manifest whose models are all stored here.
    pub(super) fn manifest_models(&mut self, signed: &Arc<RoundManifest>) -> Arc<ManifestModels> {
        if let Some(known) = self
            .round
            .manifest
            .as_ref()
            .filter(|_| self.round.has(signed))
        {
            return known.clone();
        }
        let models = Arc::new(ManifestModels {
            signed: signed.clone(),
            base: self.base.clone(),
            checks: self.checks.clone(),
            models: OnceLock::new(),
            manifest: OnceLock::new(),
        });
        self.round.manifest = Some(models.clone());
        models
    }

    /// The models of a signed manifest with their documents loaded, for a job that needs them.
    pub(super) fn loaded_manifest(&mut self, signed: &Arc<RoundManifest>) -> Arc<ManifestModels> {
        let manifest = self.manifest_models(signed);
        if !manifest.are_loaded() {
            let models = signed.entries.iter().map(|entry| {
                let blob: &Hash = &entry.fields.blob;
                Some((self.gated(blob), self.blobs.get(blob)?))
            });
            if let Some(models) = models.collect() {
                manifest.models.get_or_init(|| models);
            }
        }
        manifest
    }
}
