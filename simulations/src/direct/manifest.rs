//! The manifest of a round: its entries in the order of their ids, and the losses of all models at the authors.

use std::collections::BTreeMap;
use std::sync::Arc;

use methods::ModelEntry;
use protocol::effects::WorkError;
use protocol::message::{Entry, RoundManifest, Scores};
use protocol::{Hash, MemberIndex};
use silo::SiloConfig;
use silo::rounds::{Contributed, LastTraining, Personal, score};

use super::Direct;
use crate::error::RunError;

/// A contribution with its entry.
pub(super) struct ListedContribution {
    pub(super) member: usize,
    pub(super) entry: Entry,
    pub(super) own: Contributed,
}

impl ListedContribution {
    /// The entry that a network would list.
    pub(super) fn new(
        config: &SiloConfig,
        round: u64,
        weights: bool,
        member: usize,
        own: Contributed,
    ) -> Self {
        let (federation, nonce) = (&config.member.epoch.federation, config.member.nonce(round));
        let fields = own.fields(config, weights);
        Self {
            member,
            entry: Entry::new(federation, round, &nonce, fields),
            own,
        }
    }

    pub(super) fn index(&self) -> MemberIndex {
        MemberIndex(self.member as u16)
    }

    /// The entry as strategies see it.
    pub(super) fn model_entry(&self) -> ModelEntry {
        let fields = &self.entry.fields;
        ModelEntry {
            model: self.own.admitted.clone(),
            coalition: fields.coalition,
            weight: fields.weight,
            member: fields.member.map(|member| member.0),
        }
    }

    /// The training that it comes from.
    pub(super) fn trained(&self, round: u64) -> LastTraining {
        LastTraining {
            round,
            blob: self.own.blob,
            personal: Personal::new(self.own.personal.clone()),
        }
    }
}

impl Direct<'_> {
    /// The manifest of these entries, and the entries in it: an author that cannot score is left out.
    pub(super) fn manifest(
        &mut self,
        entries: Vec<ListedContribution>,
    ) -> Result<(Vec<ListedContribution>, RoundManifest), RunError> {
        let listed =
            |entries: &[ListedContribution]| entries.iter().map(|one| one.entry.clone()).collect();
        let cross = self.base.plan(&self.config).cross_evaluate;
        self.minimum(entries.len())?;
        if !cross || entries.is_empty() {
            let signed = RoundManifest {
                entries: listed(&entries),
                scores: None,
            };
            return Ok((entries, signed));
        }
        let all = self.scores(&entries)?;
        let (mut kept, mut scores) = (Vec::new(), Vec::new());
        for (one, result) in entries.into_iter().zip(all) {
            match result {
                Ok(own) => {
                    kept.push(one);
                    scores.push(own);
                }
                Err(reason) => self.refused(one.member, reason),
            }
        }
        self.minimum(kept.len())?;
        let entries: Vec<Entry> = listed(&kept);
        let rows = scores.iter().filter_map(|own| own.row(&entries)).collect();
        let scores = Some(rows);
        Ok((kept, RoundManifest { entries, scores }))
    }

    /// The losses of all entries' models at each of their authors, or why there are none.
    fn scores(
        &self,
        entries: &[ListedContribution],
    ) -> Result<Vec<Result<Scores, String>>, RunError> {
        let models = entries
            .iter()
            .map(|one| (one.own.blob, one.own.admitted.clone()));
        let models: Arc<BTreeMap<_, _>> = Arc::new(models.collect());
        let round = self.base.next();
        let jobs = entries.iter().map(|one| {
            let silo = &self.silos[one.member];
            let (config, own, trained) =
                (silo.config.clone(), silo.own.clone(), one.trained(round));
            let (base, models, entry) = (self.base.clone(), models.clone(), one.entry.id);
            move || {
                let models = models
                    .iter()
                    .map(|(blob, model)| (*blob, Ok(model.clone())));
                score(&config, &base, &own, Some(&trained), models)
                    .map(|losses| Scores { entry, losses })
                    .map_err(|error| match error {
                        WorkError::Refused(why) => why,
                        WorkError::Unavailable => "a model is missing".into(),
                    })
            }
        });
        self.threads
            .all(jobs.collect::<Vec<_>>())
            .map_err(|what| self.failed(what))
    }

    /// Fails if a round may not have so few entries.
    fn minimum(&self, found: usize) -> Result<(), RunError> {
        let named = self.base.plan(&self.config).participants.as_ref();
        let fewest = (self.federation.epoch).fewest(named.map_or(self.silos.len(), Vec::len));
        if found >= fewest {
            Ok(())
        } else {
            Err(self.failed(format!(
                "expected at least {fewest} usable contributions, found {found}"
            )))
        }
    }

    /// Bytes of models that the members of a network send in a round in which every member checks
    /// everything: each fetches every model of the manifest once, except its own and those that are known
    /// from the last rounds. A member without an entry may fetch the outcome besides.
    pub(super) fn fetched(&self, entries: &[ListedContribution], signed: &RoundManifest) -> u64 {
        let mut holders = BTreeMap::<Hash, (u64, u64)>::new();
        for (one, entry) in entries.iter().zip(&signed.entries) {
            let held = holders.entry(one.own.blob).or_default();
            *held = (held.0 + 1, entry.fields.size);
        }
        let members = self.silos.len() as u64;
        let known = |blob: &Hash| self.kept.iter().flatten().any(|kept| kept == blob);
        let fetched = holders.iter().filter(|(blob, _)| !known(blob));
        fetched
            .map(|(_, (held, size))| (members - held) * size)
            .sum()
    }
}
