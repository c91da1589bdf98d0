//! Role of a silo: it learns, or it only listens and votes on changes of the agreement.

use std::sync::Arc;
use std::time::Instant;

use agreement::{ServingTable, silo_seed};
use bytes::Bytes;
use methods::learner::Task;
use methods::serving::ServeConfig;
use protocol::{Hash, member};
use silo::{SiloConfig, SiloEnvironment, SiloHandle, SpawnError};

use super::ability::Living;
use crate::equipment::Equipment;
use crate::institution::agreement::in_force::Present;
use crate::institution::config::Institution;
use crate::institution::serve::Serving;
use crate::institution::serve::choice::ComparisonJob;
use crate::model::{self, HeldRounds, ModelError};

/// Role of a silo.
pub(in crate::institution) enum NodeRole {
    /// The silo takes part in rounds.
    Learner(Box<SiloConfig>),
    /// The silo votes on changes only; whether its journal was lost, and what members of former epochs are
    /// answered.
    Bystander(Box<member::Config>, bool, Vec<(Hash, Bytes)>),
}

impl NodeRole {
    pub(in crate::institution) fn spawn(
        self,
        environment: SiloEnvironment,
    ) -> Result<SiloHandle, SpawnError> {
        match self {
            Self::Learner(config) => silo::spawn(*config, environment),
            Self::Bystander(member, lost, former) => {
                silo::bystand(*member, lost, former, environment)
            }
        }
    }
}

/// The silo of an institution that learns.
///
/// # Errors
/// [`ModelError`]: the personal state of a backup is not as it was put back.
pub(in crate::institution) fn silo_config(
    present: &Present,
    living: &Living,
    member: member::Config,
    lost: bool,
) -> Result<SiloConfig, ModelError> {
    let institution = &present.institution;
    let agreement = &institution.agreement;
    let equipped = &living.equipment.equipped;
    let initial = equipped.initial_personal(agreement.seed);
    let personal = model::kept_personal(&institution.state, initial.layout())?;
    Ok(SiloConfig {
        member,
        learner: equipped.clone(),
        strategy: Arc::clone(&agreement.strategy),
        initial_seed: agreement.seed,
        max_model_norm: agreement.max_model_norm.unwrap_or(f64::INFINITY),
        max_weight: agreement.max_weight,
        encoding: agreement.strategy_config.encoding,
        radius: institution.radius.clone().into(),
        seed: silo_seed(institution.seed, institution.me),
        journal_lost: lost,
        personal,
        former: present.former.clone(),
        past: present.past.clone(),
    })
}

/// Returns what chooses the model that the institution serves. `held` is what its state held when it started; a
/// new node has no round yet.
pub(in crate::institution) fn serving(
    institution: &Institution,
    equipment: Equipment,
    held: Option<&HeldRounds>,
) -> Serving {
    let agreement = &institution.agreement;
    let strategy = &agreement.strategy_config;
    let agreed = agreement.serving.as_ref();
    let serving = Serving::new(ComparisonJob {
        equipment,
        strategy: Arc::clone(&agreement.strategy),
        task: Task::Train(strategy.training.clone()),
        initial_seed: agreement.seed,
        seed: silo_seed(institution.seed, institution.me),
        first: strategy.first_training(),
        last: agreement.epoch.protocol.rounds,
        learning: agreement.learning_rounds(),
        folds: folds(institution),
        together: agreed.map(ServingTable::rounds),
        adapted: agreement.epoch.protocol.privacy.is_noised(),
        state: institution.state.clone(),
        began: Instant::now(),
    });
    if let Some(Err(why)) = held.map(|held| serving.resume(held)) {
        tracing::warn!("no model is chosen to be served: {why}");
    }
    serving
}

/// Parts into which the institution divides its rows to compare models: as agreed, where the members decide together.
fn folds(institution: &Institution) -> usize {
    let own = institution.serve.folds;
    let Some(agreed) = &institution.agreement.serving else {
        return own;
    };
    if institution.serve != ServeConfig::default() && own != agreed.folds {
        tracing::warn!(
            "`serve` in node.toml has {own} folds, and the members agreed to decide together by {}: these count",
            agreed.folds
        );
    }
    agreed.folds
}
