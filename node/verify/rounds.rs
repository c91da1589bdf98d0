//! Computes final rounds again, as far as their manifests and models are still here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use agreement::Agreement;
use learn::TaskStudy;
use methods::Params;
use protocol::message::{Learning, RoundManifest};
use protocol::work::FinalMasked;
use protocol::{Hash, MemberIndex, SecretKey, member};
use serde::Serialize;
use silo::outcome::{Document, read_manifest};
use silo::rounds::read_unmaskings;
use silo::{Adopted, Replay, SiloConfig};
use task::TaskConfig;

use crate::equipment::Equipment;
use crate::model::{GivenStart, find_start};
use crate::store;

/// Rounds that could not be computed again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct NotComputed {
    /// The first of them.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// Why.
    pub why: String,
}

impl NotComputed {
    /// Adds a round, to those before it if the reason is the same.
    pub(super) fn add(all: &mut Vec<Self>, round: u64, why: &str) {
        match all.last_mut() {
            Some(last) if last.why == why && last.to + 1 == round => last.to = round,
            _ => all.push(Self {
                from: round,
                to: round,
                why: why.to_owned(),
            }),
        }
    }
}

/// The rounds that were computed again, and the others.
#[derive(Debug, Default)]
pub(super) struct Computed {
    pub(super) again: Vec<u64>,
    pub(super) not: Vec<NotComputed>,
    /// Members that a plan named and whose contributions are not in the round, where the plan names
    /// some members only.
    pub(super) left_out: BTreeMap<u64, Vec<String>>,
}

impl Computed {
    /// Adds the rounds of the next epoch.
    pub(super) fn add(&mut self, next: Self) {
        self.again.extend(next.again);
        self.not.extend(next.not);
        self.left_out.extend(next.left_out);
    }

    fn skip(&mut self, round: u64, why: &str) {
        NotComputed::add(&mut self.not, round, why);
    }
}

/// Returns what the rounds of an agreement are computed with: nobody's rows, and a key that is nobody's.
///
/// # Errors
/// Why this agreement's rounds cannot be computed here, as a sentence.
pub(super) fn config(
    agreement: &Agreement,
    me: MemberIndex,
    state: &Path,
    data: Option<&Path>,
) -> Result<SiloConfig, String> {
    let start = start(agreement, me, state)?;
    let equipment = Equipment::stand_in(agreement, me, start.as_ref());
    let equipment = equipment.or_else(|error| {
        if matches!(agreement.task, TaskConfig::External(_)) {
            return Err(error);
        }
        let silos = agreement.epoch.roster.len();
        let study = agreement.task.study(Some(silos), data, agreement.seed)?;
        let silo = study.silos.into_iter().next();
        let none = || task::data::DataError::Config("the task has no silo".into());
        let silo = silo.ok_or_else(none)?;
        let radius = Default::default();
        Equipment::new(agreement, silo, study.metric, start.as_ref(), &radius)
    });
    let learner = equipment.map_err(|error| error.to_string())?.equipped;
    // Nothing is signed with it.
    let key = SecretKey::from_bytes(&[1; 32]);
    Ok(SiloConfig {
        member: member::Config::new(agreement.epoch.clone(), me, key, [0; 32]),
        learner,
        strategy: agreement.strategy.clone(),
        initial_seed: agreement.seed,
        max_model_norm: agreement.max_model_norm.unwrap_or(f64::INFINITY),
        max_weight: agreement.max_weight,
        encoding: agreement.strategy_config.encoding,
        radius: Default::default(),
        seed: 0,
        journal_lost: false,
        personal: None,
        former: Vec::new(),
        past: Vec::new(),
    })
}

fn start(agreement: &Agreement, me: MemberIndex, state: &Path) -> Result<Option<Params>, String> {
    let Some(sought) = GivenStart::of(agreement) else {
        return Ok(None);
    };
    let family = Equipment::of_family(agreement, me, None).map_err(|error| error.to_string())?;
    let family = family.plain.learner.layout();
    let found = find_start(&sought, None, state, &PathBuf::new(), &family);
    found.map(Some).map_err(|error| error.to_string())
}

/// Why a round is not computed again whose models are here.
pub(super) const NO_STATE: &str = "the outcome of the round before is not kept here any more";

/// A round that members agreed on.
pub(super) enum CheckedRound<'a> {
    /// With all models, and the hash of its block.
    Clear(Hash, &'a Learning),
    /// With sums alone. Its outcome may not be known.
    Masked {
        of: Box<FinalMasked>,
        outcome: Option<Hash>,
    },
}

impl CheckedRound<'_> {
    pub(super) fn round(&self) -> u64 {
        match self {
            Self::Clear(_, learning) => learning.round,
            Self::Masked { of, .. } => of.round.round,
        }
    }

    /// Its block. A round that was done again after a recovery has another one.
    fn block(&self) -> Hash {
        match self {
            Self::Clear(block, _) => *block,
            Self::Masked { of, .. } => of.block,
        }
    }

    fn outcome(&self) -> Option<Hash> {
        match self {
            Self::Clear(_, learning) => Some(learning.outcome),
            Self::Masked { outcome, .. } => *outcome,
        }
    }

    fn signers(&self) -> Vec<MemberIndex> {
        let inclusions = match self {
            Self::Clear(_, learning) => &learning.inclusions,
            Self::Masked { of, .. } => &of.round.inclusions,
        };
        inclusions.iter().map(|(by, _)| *by).collect()
    }

    /// Computes it again on the state before it, if that is known. Gives why that is not possible here, if it is not.
    ///
    /// # Errors
    /// What is wrong, as a sentence.
    fn compute(
        &self,
        state: Option<&mut Replay<'_>>,
        folder: &Path,
        adopted: &Adopted,
    ) -> Result<Option<&'static str>, String> {
        let blob = |hash: &Hash| store::blob(folder, hash);
        let here = |hash: &Hash| blob(hash).is_some();
        match self {
            Self::Clear(_, learning) => {
                let Some(manifest) = manifest(folder, adopted, learning) else {
                    return Ok(Some(
                        "sheets and models are not kept here any more, or this silo did not compute them",
                    ));
                };
                let Some(state) = state else {
                    return Ok(Some(NO_STATE));
                };
                if !manifest
                    .entries
                    .iter()
                    .all(|entry| here(&entry.fields.blob))
                {
                    return Ok(Some("the models of their entries are not all here"));
                }
                let (entries, signers) = (manifest.entries.len(), learning.inclusions.len());
                if entries != signers {
                    return Err(format!(
                        "round {}: the sheet has {entries} entries, and {signers} members signed it",
                        learning.round
                    ));
                }
                state.round(learning, &manifest, blob)?;
            }
            Self::Masked { of, outcome } => {
                let Some(outcome) = outcome else {
                    return Ok(Some("no quorum's votes for their outcome are here yet"));
                };
                let all = adopted.blobs.iter().map(|hash| Hash(*hash));
                let unmaskings = all.filter_map(|hash| read_unmaskings(&blob(&hash)?)).next();
                let named = adopted.blobs.iter().all(|hash| here(&Hash(*hash)));
                let Some(unmaskings) = unmaskings.filter(|_| named) else {
                    return Ok(Some(
                        "masked vectors and unmaskings are not kept here any more, or this silo did not open \
                         the sums",
                    ));
                };
                let Some(state) = state else {
                    return Ok(Some(NO_STATE));
                };
                state.masked(of, &unmaskings, *outcome, blob)?;
            }
        }
        Ok(None)
    }
}

/// Computes the rounds of a chain again, oldest first.
///
/// # Errors
/// The first that gives something else than what was agreed on, as a sentence.
pub(super) fn compute(
    config: &SiloConfig,
    folder: &Path,
    learnings: &[CheckedRound<'_>],
    adopted: &[Adopted],
) -> Result<Computed, String> {
    let epoch = &config.member.epoch;
    let first = Replay::new(config);
    let (start, agreed) = (first.outcome(), epoch.protocol.start);
    if epoch.number == 0 && start != agreed {
        return Err(format!(
            "the start of the federation: agreed {agreed}, computed {start}"
        ));
    }
    let blob = |hash: &Hash| store::blob(folder, hash);
    let mut computed = Computed::default();
    // A later epoch goes on from the last outcome of the one before.
    let mut outcome = epoch.began.outcome;
    let mut before = (epoch.began.round == 0).then_some(first);
    for learning in learnings {
        let round = learning.round();
        let state = before.take();
        let state = state.map_or_else(|| Replay::after(config, &outcome, blob), Ok);
        outcome = learning.outcome().unwrap_or(outcome);
        let signers = learning.signers();
        if let Some(named) = state.as_ref().ok().and_then(Replay::participants) {
            let missing = named.into_iter().filter(|member| !signers.contains(member));
            let names = missing.map(|member| epoch.roster.name(member).to_owned());
            computed.left_out.insert(round, names.collect());
        }
        let block = learning.block();
        let Some(adopted) = adopted.iter().find(|of| of.block == block.0) else {
            let keep = epoch.protocol.keep_rounds as usize;
            let rounds = adopted.iter().map(|adopted| adopted.round).collect();
            computed.skip(round, not_noted(round, &rounds, keep));
            continue;
        };
        let mut state = state.ok();
        if let Some(why) = learning.compute(state.as_mut(), folder, adopted)? {
            computed.skip(round, why);
            continue;
        }
        computed.again.push(round);
        before = state;
    }
    Ok(computed)
}

/// Why the journal does not say what the silo adopted in a round. It says so for the last rounds only,
/// whoever was there; and a silo that has several final rounds before it adopts the last of them.
fn not_noted(round: u64, adopted: &BTreeSet<u64>, keep: usize) -> &'static str {
    if adopted.contains(&round) {
        return "a recovery continued without it, and the round was repeated with another block";
    }
    // Adoptions of void rounds are noted longer than those of the last rounds.
    let recent = adopted.iter().rev().take(keep).copied();
    let earlier = recent.min().is_some_and(|first| first < round);
    let later = adopted.range(round..).next().is_some();
    match (earlier, later) {
        (true, true) => {
            "this silo heard of a newer final round before it adopted this one, and adopted the newer one"
        }
        (false, true) => "the journal keeps what was adopted for the last rounds only",
        (_, false) => "this silo has not adopted it yet",
    }
}

/// The manifest of a round, among the blobs of the round.
fn manifest(folder: &Path, adopted: &Adopted, learning: &Learning) -> Option<RoundManifest> {
    let document = store::blob(folder, &Hash(adopted.outcome))?;
    let document = Document::read(&document).ok()?;
    let models: Vec<Hash> = document.all_models().collect();
    let others = adopted.blobs.iter().map(|hash| Hash(*hash));
    let mut others = others.filter(|hash| {
        hash.0 != adopted.outcome && !models.contains(hash) && !document.entries.contains(hash)
    });
    others.find_map(|hash| {
        let manifest = read_manifest(&store::blob(folder, &hash)?)?;
        (manifest.root() == learning.manifest).then_some(manifest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_silo_is_said_to_have_been_away_when_its_journal_is_only_trimmed() {
        let kept = BTreeSet::from([4, 5, 8]);
        let said = |round| not_noted(round, &kept, 3);
        assert!(said(1).contains("for the last rounds only"));
        assert_eq!(said(3), said(1));
        assert!(said(6).contains("adopted the newer one"));
        assert_eq!(said(7), said(6));
        assert!(said(9).contains("not adopted it yet"));
        // A node that has adopted nothing.
        assert_eq!(not_noted(1, &BTreeSet::new(), 3), said(9));
        // Round 2 is noted because it was void; two rounds are kept.
        let kept = BTreeSet::from([2, 5, 8]);
        assert!(not_noted(3, &kept, 2).contains("for the last rounds only"));
        // The same round with another block.
        assert!(said(5).contains("repeated with another block"));
    }
}
