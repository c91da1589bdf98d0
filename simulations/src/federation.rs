//! The federation of a scenario: roster, parameter set, keys and learners, made from the scenario and its
//! seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use agreement::{AgreedWork, PrivacyOf, StatusFor, silo_seed};
use learn::Study;
use methods::Learner;
use methods::Strategy;
use methods::strategy::{
    Names, OwnRadius, StrategyConfig, StrategyError, build, equip, largest_contribution,
};
use protocol::parameters::{Epoch, Genesis, Privacy, ProtocolParameters, RoundMode};
use protocol::roster::{Silo, quorum};
use protocol::{Hash, MemberIndex, SecretKey, member};
use silo::{SiloConfig, genesis_outcome};

use crate::byzantine::{lying, worse_coalitions};
use crate::error::RunError;
use crate::scenario::{Fault, Scenario};
use bare::Behaviour;
use bare::random::Random;

/// Roster, parameter set, keys and learners of a federation that is ready to run.
#[derive(Clone)]
pub struct Federation {
    /// Roster and parameter set in force.
    pub epoch: Arc<Epoch>,
    /// The configuration of every member's silo.
    pub members: Vec<SiloConfig>,
    /// The Byzantine members.
    pub faulty: BTreeSet<MemberIndex>,
    /// Those of them that break the protocol, so that they may never finish. The others lie about what
    /// they learned and follow it.
    pub breaking: BTreeSet<MemberIndex>,
    /// Seed that everything random follows from.
    pub seed: u64,
}

impl Federation {
    /// The federation of `scenario` over the silos of `study`, without Byzantine members. Its keys
    /// follow from the scenario's seed: good for trying out, but no secrets.
    ///
    /// # Errors
    /// [`RunError::Setup`]: the strategy, the learners or the parameter set do not fit together.
    pub fn of(scenario: &Scenario, study: &Study) -> Result<Self, RunError> {
        Self::new(scenario, study, &scenario.strategy, &[])
    }

    /// The federation of `scenario` over the silos of `study`, under `strategy`.
    /// # Errors
    /// [`RunError::Setup`], as for [`Self::of`], and a fault that names no member.
    pub fn new(
        scenario: &Scenario,
        study: &Study,
        strategy: &StrategyConfig,
        faults: &[Fault],
    ) -> Result<Self, RunError> {
        let refused = |error: &dyn std::fmt::Display| RunError::Setup(error.to_string());
        let n = study.silos.len();
        let built = build(strategy, n).map_err(|error| match error {
            StrategyError::TooManyCoalitions { .. } => {
                RunError::Setup(format!("{}: `coalitions`: {error}", scenario.file))
            }
            error => RunError::Setup(format!("{}, strategy: {error}", scenario.file)),
        })?;
        let built: Arc<dyn Strategy> = built.into();
        let radius = OwnRadius::from(scenario.protocol.radius.clone());
        let learners = lies(&study.silos, faults)
            .and_then(|lies| lying(&study.silos, &lies, scenario.seed))
            .map_err(|what| RunError::Setup(format!("{}: {what}", scenario.file)))?
            .into_iter()
            .map(|learner| equip(&*built, learner, &radius))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| RunError::Setup(format!("{}, strategy: {error}", scenario.file)))?;
        let mut random = Random::new(scenario.seed, "keys");
        let keys: Vec<_> = (0..n)
            .map(|_| SecretKey::from_bytes(&random.bytes()))
            .collect();
        let first = learners
            .first()
            .ok_or(RunError::Setup("there are no silos".into()))?;
        let numbers = &scenario.protocol;
        if let Some((path, what)) = scenario.privacy_fault(strategy) {
            let (file, name) = (&scenario.file, strategy.name());
            return Err(RunError::Setup(format!(
                "{file}, strategy {name}: `{path}` {what}"
            )));
        }
        // Differentially private sums are divided by the rows that the institutions declare.
        let declared = numbers.rows_declared || scenario.is_noised();
        let least = u64::from(scenario.is_noised());
        let silos = silos(study, &keys, declared, least);
        let protocol = protocol(scenario, strategy, &*built, &**first, &silos)?;
        let epoch =
            Epoch::simulated(&Genesis { silos, protocol }).map_err(|error| refused(&error))?;
        let epoch = Arc::new(epoch);
        let members = learners
            .into_iter()
            .zip(keys)
            .zip(epoch.roster.members())
            .map(|((learner, key), me)| SiloConfig {
                // Drawn anew for every start.
                member: member::Config::new(epoch.clone(), me, key, [0; 32]),
                learner,
                strategy: built.clone(),
                initial_seed: scenario.seed,
                max_model_norm: numbers.max_model_norm.unwrap_or(f64::INFINITY),
                max_weight: numbers.max_weight,
                encoding: strategy.encoding,
                radius: numbers.radius.clone().into(),
                seed: silo_seed(scenario.seed, me),
                journal_lost: false,
                personal: None,
                former: Vec::new(),
                past: Vec::new(),
            })
            .collect();
        let mut federation = Self {
            epoch,
            members,
            faulty: BTreeSet::new(),
            breaking: BTreeSet::new(),
            seed: scenario.seed,
        };
        federation.corrupt(faults, &built)?;
        Ok(federation)
    }

    /// Makes the members Byzantine whom faults name.
    fn corrupt(&mut self, faults: &[Fault], honest: &Arc<dyn Strategy>) -> Result<(), RunError> {
        for fault in faults {
            if let Fault::Byzantine { member, behaviour } = fault {
                let member = self.member(member)?;
                self.faulty.insert(member);
                if fault.needs_network() {
                    self.breaking.insert(member);
                }
                if *behaviour == Behaviour::WorseCoalition {
                    let strategy = worse_coalitions(honest.clone());
                    self.members[member.at()].strategy = strategy;
                }
            }
        }
        Ok(())
    }

    /// This federation, whose members sign by keyed hashes; all ids stay.
    pub(crate) fn with_simulated_signatures(&self) -> Self {
        let mut federation = self.clone();
        for silo in &mut federation.members {
            silo.member.key = silo.member.key.clone().simulated();
        }
        federation
    }

    /// The member with that name, or at that position from 0.
    pub(crate) fn member(&self, name: &str) -> Result<MemberIndex, RunError> {
        let silos = self.epoch.roster.silos().iter();
        let names: Vec<_> = silos.map(|silo| silo.name.as_str()).collect();
        let position = position(&names, name);
        let member = position.map(|at| MemberIndex(at as u16));
        member.map_err(|what| RunError::Setup(format!("a fault names an unknown {what}")))
    }
}

/// The random bytes that a member draws at its nth start, from 1.
pub(crate) fn life(seed: u64, member: MemberIndex, start: u64) -> [u8; 32] {
    let start = [seed, member.0.into(), start].map(u64::to_le_bytes);
    Hash::labelled("life", &[&start[0], &start[1], &start[2]]).0
}

/// The silos that lie about what they learn, by position, and how each lies.
///
/// # Errors
/// A clause: a fault names an unknown silo.
pub fn lies(
    silos: &[learn::StudySilo],
    faults: &[Fault],
) -> Result<Vec<(usize, Behaviour)>, String> {
    let names: Vec<_> = silos.iter().map(|silo| silo.name.as_str()).collect();
    let lie = |fault: &Fault| match fault {
        Fault::Byzantine { member, behaviour } if behaviour.is_of_learning() => Some(
            position(&names, member)
                .map(|at| (at, *behaviour))
                .map_err(|what| format!("a fault names an unknown {what}")),
        ),
        _ => None,
    };
    faults.iter().filter_map(lie).collect()
}

/// The position of the silo with that name, or with that position from 0. The error names the silo
/// and what is known.
pub fn position(names: &[&str], name: &str) -> Result<usize, String> {
    let by_name = names.iter().position(|own| *own == name);
    let by_position = || name.parse().ok().filter(|&at: &usize| at < names.len());
    by_name.or_else(by_position).ok_or_else(|| {
        let names = names.join(", ");
        format!("silo {name:?}: expected one of {names}, or a position from 0")
    })
}
/// The roster: the silos of a study with their keys.
fn silos(study: &Study, keys: &[SecretKey], rows_declared: bool, least: u64) -> Vec<Silo> {
    let silo = |(silo, key): (&learn::StudySilo, &SecretKey)| Silo {
        name: silo.name.clone(),
        key: key.public(),
        rows: Some((silo.rows.train as u64).max(least)).filter(|rows| rows_declared && *rows > 0),
    };
    study.silos.iter().zip(keys).map(silo).collect()
}

/// The parameter set of a scenario's federation of these members under a strategy, with the learner of the first.
fn protocol(
    scenario: &Scenario,
    config: &StrategyConfig,
    strategy: &dyn Strategy,
    first: &dyn Learner,
    silos: &[Silo],
) -> Result<ProtocolParameters, RunError> {
    let n = silos.len();
    let numbers = &scenario.protocol;
    let work = AgreedWork {
        task: &scenario.task,
        strategy: config,
        max_model_norm: numbers.max_model_norm,
        max_weight: numbers.max_weight,
        status: StatusFor::Own,
        seed: scenario.seed,
        continues: None,
        questions: &[],
        serving: None,
    };
    let work = work.encode();
    let largest = largest_contribution(strategy, first);
    let patience = numbers.patience_for(n, largest, scenario.network.bandwidth_mbit);
    let shown = strategy.names() == Names::Shown;
    let privacy = match &scenario.privacy {
        Some(table) => {
            let of = PrivacyOf {
                members: silos.iter().map(|silo| &silo.name[..]).collect(),
                names_shown: shown,
                rounds: scenario.rounds,
                min_contributions: numbers.min_contributions.unwrap_or(quorum(n) as u16),
            };
            let privacy = table.privacy(&of);
            privacy.map_err(|(key, what)| RunError::Setup(format!("`{key}` {what}")))?
        }
        None => Privacy::clear(shown),
    };
    Ok(ProtocolParameters {
        name: scenario.name.clone(),
        work: work.map_err(|error| RunError::Setup(error.to_string()))?,
        start: genesis_outcome(strategy, first, scenario.seed).0,
        rounds: scenario.rounds,
        heartbeat_ms: numbers.heartbeat.0.as_millis() as u64,
        patience,
        view_timeout: numbers.view_timeout_for(n, patience),
        min_contributions: match privacy.mode() {
            // Fewer are refused with the parameter set.
            RoundMode::Masked(_) | RoundMode::Noised(..) => {
                numbers.min_contributions.unwrap_or(quorum(n) as u16)
            }
            RoundMode::Clear | RoundMode::Named => numbers.min_contributions_for(n),
        },
        rotation: numbers.rotation.0,
        verification: numbers.verification.0,
        privacy,
        blob_limit: largest,
        keep_rounds: numbers.keep_rounds,
        discovery: false,
    })
}
