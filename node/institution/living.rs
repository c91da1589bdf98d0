//! Whether a node can take part in rounds under the agreement in force, and what it learns with.

use std::collections::BTreeMap;
use std::sync::Mutex;

use agreement::Agreement;
use methods::Params;
use methods::strategy::{Names, largest_contribution};
use protocol::Hash;
use protocol::member::Examine;
use silo::{SpawnError, genesis_outcome};
use task::data::DataError;

use super::config::Institution;
use super::error::NodeError;
use super::learning::LearningProgram;
use super::locked;
use super::present::Present;
use crate::equipment::Equipment;
use crate::federation::examined;

/// Most answers about amendments that are remembered.
const ANSWERS: usize = 64;

/// What a node learns with.
pub(super) struct Living {
    /// The model that the federation starts from, where it is a given one.
    pub(super) start: Option<Params>,
    /// The node's rows, model and strategy.
    pub(super) equipment: Equipment,
    _learning: LearningProgram,
}

impl Living {
    fn of(institution: &Institution) -> Result<Self, DataError> {
        let start = institution.start()?;
        let equipment = institution.equipment(start.as_ref())?;
        Ok(Self {
            start,
            _learning: LearningProgram::of(&equipment),
            equipment,
        })
    }

    /// What contradicts the agreement, as a silo would find it.
    fn misfit(&self, agreement: &Agreement) -> Option<SpawnError> {
        let (strategy, learner) = (&*agreement.strategy, &*self.equipment.equipped);
        let charter = &agreement.epoch.charter;
        if strategy.names() == Names::Shown && !charter.shows_names() {
            return Some(SpawnError::Names(strategy.name()));
        }
        let size = largest_contribution(strategy, learner);
        let limit = charter.blob_limit;
        if size > limit {
            return Some(SpawnError::Limit { size, limit });
        }
        let ours = genesis_outcome(strategy, learner, agreement.seed).0;
        let agreed = charter.start;
        (ours != agreed).then_some(SpawnError::Start { agreed, ours })
    }
}

/// What a node learns with under the agreement in force; the inner error says why it can learn nothing
/// under it, so that it only listens and votes on changes.
///
/// # Errors
/// [`NodeError`]: what is wrong with the institution's own files, under every agreement so far.
pub(super) fn living(present: &Present) -> Result<Result<Living, String>, NodeError> {
    let institution = &present.institution;
    let agreement = &institution.agreement;
    if let Some(unfit) = &agreement.unfit {
        return Ok(Err(unfit.why.clone()));
    }
    let first = agreement.epoch.number == 0;
    match Living::of(institution) {
        Ok(living) => match living.misfit(agreement) {
            Some(why) if first => Err(why.into()),
            Some(why) => Ok(Err(why.to_string())),
            None => Ok(Ok(living)),
        },
        Err(why) if !first && lived_before(present) => Ok(Err(why.to_string())),
        Err(why) => Err(why.into()),
    }
}

/// Whether the institution's files are good for one of the agreements before, so that the change is what
/// is wrong.
fn lived_before(present: &Present) -> bool {
    let institution = &present.institution;
    let then = |agreement: &Agreement| {
        let me = agreement.epoch.roster.position(&institution.key.public())?;
        Some(institution.under(agreement.clone(), me))
    };
    let earlier = present.earlier.iter().rev();
    let mut earlier = earlier.filter(|agreement| agreement.unfit.is_none());
    earlier.any(|agreement| then(agreement).is_some_and(|then| Living::of(&then).is_ok()))
}

/// Asks of every amendment whether an institution may accept it after this agreement, once.
pub(super) fn examine(agreement: &Agreement) -> Examine {
    let agreement = agreement.clone();
    let answers: Mutex<BTreeMap<Hash, Result<(), String>>> = Mutex::default();
    Examine::new(move |amendment| {
        let hash = amendment.hash();
        if let Some(answer) = locked(&answers).get(&hash) {
            return answer.clone();
        }
        let answer = examined(&agreement, amendment).map(drop);
        let mut answers = locked(&answers);
        if answers.len() >= ANSWERS {
            answers.clear();
        }
        answers.insert(hash, answer.clone());
        answer
    })
}
