//! Models that the silos would serve under a strategy.

use std::collections::{BTreeMap, BTreeSet};

use methods::serving::Candidate;
use task::metrics::MetricName;

use super::comparison::{Against, ServedGain, ServedSummary};
use super::result::{SiloModel, StoredSilo, UnitResult};
use super::row_draws::SharedDraws;
use super::scope::{ReferenceResults, difference, metric_results};
use super::spread::Spread;
use crate::statistic::{BY_CHANCE, TELLING};

impl ServedSummary {
    /// `None` where it was not measured.
    pub(super) fn of(
        metrics: &[MetricName],
        results: &[&UnitResult],
        references: &ReferenceResults<'_>,
    ) -> Option<Self> {
        let mut silos = results.iter().flat_map(|one| &one.silos);
        if !silos.any(|silo| silo.served.is_some()) {
            return None;
        }
        let mut candidates = BTreeMap::<String, f64>::new();
        let members = results.iter().flat_map(|one| one.scope(false));
        for served in members.filter_map(|silo| silo.served.as_ref()) {
            let key = serde_json::to_value(served.candidate).unwrap_or_default();
            let key = key.as_str().unwrap_or_default().to_owned();
            *candidates.entry(key).or_default() += 1.0 / results.len() as f64;
        }
        let seconds = Spread::of(results.iter().map(|one| one.seconds.2));
        let gain = |outside| ServedGain::of(metrics[0], results, outside, references.draws);
        Some(Self {
            metrics: metric_results(metrics, results, SiloModel::Served),
            own: metric_results(metrics, results, SiloModel::Own),
            inside: gain(false),
            outside: gain(true),
            against: Against::all(metrics[0], results, SiloModel::Served, references),
            candidates,
            seconds: seconds.map_or(0.0, |seconds| seconds.mean),
        })
    }
}

impl ServedGain {
    fn of(
        metric: MetricName,
        results: &[&UnitResult],
        outside: bool,
        draws: &SharedDraws,
    ) -> Option<Self> {
        let (served, own) = ((results, SiloModel::Served), (results, SiloModel::Own));
        let difference = difference(metric, served, own, outside, draws)?;
        let other = |silo: &&StoredSilo| {
            let served = silo.served.as_ref();
            served.is_some_and(|served| served.candidate != Candidate::Local)
        };
        let silos = || results.iter().flat_map(|one| one.scope(outside));
        let mut units = BTreeMap::<&str, usize>::new();
        for silo in silos() {
            let own = silo.rows.as_ref().map_or(0, |rows| rows.together().len());
            *units.entry(&silo.name).or_default() += own;
        }
        let others: BTreeSet<&str> = silos().filter(other).map(|silo| &*silo.name).collect();
        let telling = |name: &&&str| units.get(**name).is_some_and(|&units| units >= TELLING);
        let not_own = others.iter().filter(telling).count();
        Some(Self {
            difference,
            not_own,
            by_chance: BY_CHANCE * not_own as f64,
        })
    }
}
