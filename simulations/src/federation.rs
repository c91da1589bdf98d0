//! A federation as its members agreed on it, made from a scenario and its seed.

use std::collections::BTreeSet;
use std::sync::Arc;

use agreement::{Work, silo_seed};
use learn::Study;
use methods::Strategy;
use methods::strategy::{Names, StrategyConfig, StrategyError, build, largest_contribution};
use protocol::charter::{Charter, Epoch, Genesis, Rotation, Verification};
use protocol::roster::Silo;
use protocol::{MemberIndex, SecretKey, member};
use silo::{SiloConfig, genesis_outcome};

use crate::error::RunError;
use crate::random::Random;
use crate::scenario::{Fault, Scenario};

/// Roster, charter, keys and learners of a federation that is about to run.
pub struct Federation {
    /// Roster and charter in force.
    pub epoch: Arc<Epoch>,
    /// Every member, ready to be brought to life.
    pub members: Vec<SiloConfig>,
    pub(crate) faulty: BTreeSet<MemberIndex>,
    pub(crate) seed: u64,
}

impl Federation {
    /// The federation of `scenario` over the silos of `study`, nobody misbehaving. Its keys follow
    /// from the scenario's seed: good for trying out, and no secrets.
    ///
    /// # Errors
    /// [`RunError::Setup`]: what does not go together.
    pub fn of(scenario: &Scenario, study: &Study) -> Result<Self, RunError> {
        Self::new(scenario, study, &scenario.strategy, &[])
    }

    /// The federation of `scenario` over the silos of `study`, under `strategy`.
    pub(crate) fn new(
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
        let learners = study
            .silos
            .iter()
            .map(|silo| built.equip(silo.learner.clone()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| RunError::Setup(format!("{}, strategy: {error}", scenario.file)))?;
        let mut random = Random::new(scenario.seed, "keys");
        let keys: Vec<_> = (0..n)
            .map(|_| SecretKey::from_bytes(&random.bytes()))
            .collect();
        let first = learners
            .first()
            .ok_or(RunError::Setup("there are no silos".into()))?;
        let silos = study
            .silos
            .iter()
            .zip(&keys)
            .map(|(silo, key)| Silo {
                name: silo.name.clone(),
                key: key.public(),
            })
            .collect();
        let numbers = &scenario.charter;
        let work = Work {
            task: &scenario.task,
            strategy,
            norm: numbers.norm,
            seed: scenario.seed,
        };
        let charter = Charter {
            name: scenario.name.clone(),
            work: work.encode().map_err(|error| refused(&error))?,
            start: genesis_outcome(&**first, scenario.seed).0,
            rounds: scenario.rounds,
            beat_ms: numbers.beat.0.as_millis() as u64,
            patience: numbers.patience,
            limit: numbers.limit_for(n),
            minimum: numbers.minimum_for(n),
            rotation: Rotation::EveryRound,
            verification: Verification::Full,
            names_shown: built.names() == Names::Shown,
            blob_limit: largest_contribution(&*built, &**first),
            keep: numbers.keep,
            discovery: false,
        };
        let epoch = Epoch::first(&Genesis { silos, charter }).map_err(|error| refused(&error))?;
        let epoch = Arc::new(epoch);
        let members = learners
            .into_iter()
            .zip(keys)
            .zip(epoch.roster.members())
            .map(|((learner, key), me)| SiloConfig {
                // Drawn again for every life.
                member: member::Config::new(epoch.clone(), me, key, [0; 32]),
                learner,
                strategy: built.clone(),
                initial_seed: scenario.seed,
                norm: numbers.norm.unwrap_or(f64::INFINITY),
                radius: numbers.radius.clone().into(),
                seed: silo_seed(scenario.seed, me),
                journal_lost: false,
            })
            .collect();
        let mut federation = Self {
            epoch,
            members,
            faulty: BTreeSet::new(),
            seed: scenario.seed,
        };
        for fault in faults {
            if let Fault::Byzantine { member, .. } = fault {
                let member = federation.member(member)?;
                federation.faulty.insert(member);
            }
        }
        Ok(federation)
    }

    /// The member of that name, or at that place from 0.
    pub(crate) fn member(&self, name: &str) -> Result<MemberIndex, RunError> {
        let silos = self.epoch.roster.silos().iter();
        let names: Vec<_> = silos.map(|silo| silo.name.as_str()).collect();
        let place = place(&names, name);
        let member = place.map(|at| MemberIndex(at as u16));
        member.map_err(|what| RunError::Setup(format!("a fault names {what}")))
    }
}

/// Where the silo of that name stands, or of that place from 0; else what is wrong.
fn place(names: &[&str], name: &str) -> Result<usize, String> {
    let by_name = names.iter().position(|own| *own == name);
    let by_place = || name.parse().ok().filter(|&at: &usize| at < names.len());
    by_name.or_else(by_place).ok_or_else(|| {
        let names = names.join(", ");
        format!("silo {name:?}: there are {names}, or 0, 1, ...")
    })
}

/// Who of a study takes part.
pub(crate) struct Division {
    /// Those who do, as a study.
    pub(crate) inside: Study,
    /// Their places in the whole study.
    pub(crate) members: Vec<usize>,
    /// The places of those who do not.
    pub(crate) others: Vec<usize>,
}

/// The silos that take part, and those that do not.
pub(crate) fn divide(scenario: &Scenario, study: &Study) -> Result<Division, RunError> {
    let names: Vec<_> = study.silos.iter().map(|silo| silo.name.as_str()).collect();
    let outside: Result<BTreeSet<usize>, String> = scenario
        .outside
        .iter()
        .map(|name| place(&names, name))
        .collect();
    let outside = outside
        .map_err(|what| RunError::Setup(format!("{}: `outside` names {what}", scenario.file)))?;
    let all = 0..study.silos.len();
    let (others, members): (Vec<_>, Vec<_>) = all.partition(|at| outside.contains(at));
    if members.is_empty() {
        return Err(RunError::Setup(format!(
            "{}: `outside` names all silos, nobody is left to take part",
            scenario.file
        )));
    }
    let silos = members.iter().map(|&at| study.silos[at].clone());
    Ok(Division {
        inside: Study {
            silos: silos.collect(),
            ..study.clone()
        },
        members,
        others,
    })
}
