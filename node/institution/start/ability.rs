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

use super::equipment::LearningProgram;
use crate::equipment::Equipment;
use crate::federation::examined;
use crate::institution::agreement::in_force::Present;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::locked;

/// Most answers about amendments that are remembered.
const ANSWERS: usize = 64;

/// What a node learns with.
pub(in crate::institution) struct Living {
    /// The model that the federation starts from, where it is a given one.
    pub(in crate::institution) start: Option<Params>,
    /// The node's rows, model and strategy.
    pub(in crate::institution) equipment: Equipment,
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

    /// Returns what contradicts the agreement, as a silo would find it.
    fn misfit(&self, agreement: &Agreement) -> Option<SpawnError> {
        let (strategy, learner) = (&*agreement.strategy, &*self.equipment.equipped);
        let protocol = &agreement.epoch.protocol;
        if strategy.names() == Names::Shown && !protocol.shows_names() {
            return Some(SpawnError::Names(strategy.name()));
        }
        let size = largest_contribution(strategy, learner);
        let limit = protocol.blob_limit;
        if size > limit {
            return Some(SpawnError::Limit { size, limit });
        }
        let ours = genesis_outcome(strategy, learner, agreement.seed).0;
        let agreed = protocol.start;
        (ours != agreed).then_some(SpawnError::Start { agreed, ours })
    }
}

/// Returns what a node learns with under the agreement in force; the inner error says why it can learn nothing
/// under it, so that it only listens and votes on changes.
///
/// # Errors
/// [`NodeError`]: what is wrong with the institution's own files, under every agreement so far.
pub(in crate::institution) fn living(
    present: &Present,
) -> Result<Result<Living, String>, NodeError> {
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

/// Returns whether the institution's files are good for one of the agreements before, so that the change is what
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
pub(in crate::institution) fn examine(agreement: &Agreement) -> Examine {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use protocol::message::Amendment;

    use super::*;
    use crate::fixture::{self, North};
    use crate::institution::agreement::in_force::{Membership, place};

    /// The amendment that this text describes, whatever may change.
    fn by_hand(text: String) -> Amendment {
        let new = Agreement::parse("by-hand.toml", &text).unwrap();
        Amendment {
            format: new.epoch.format,
            silos: new.epoch.roster.silos().to_vec(),
            protocol: new.epoch.protocol.clone(),
            text: text.into_bytes(),
            stolen: Vec::new(),
        }
    }

    /// North after changes to agreements of these texts.
    fn after(north: &North, texts: impl IntoIterator<Item = String>) -> Present {
        let first = &north.institution.agreement.epoch;
        let epochs = fixture::amended(first, texts.into_iter().map(by_hand));
        match place(&north.institution, &epochs, &[]) {
            Membership::Member(present) => *present,
            Membership::Left | Membership::Outside => panic!("north is no member"),
        }
    }

    /// Returns what the node says: nothing where it lives, why it only listens, or why it does not start.
    fn said(present: &Present) -> Result<Option<String>, String> {
        let found = living(present).map_err(|why| why.to_string())?;
        Ok(found.err())
    }

    /// An agreement that all may accept, and under which the rows of nobody can be read: the task lists
    /// more domains than there are members.
    fn without_south(north: &North) -> String {
        north.institution.agreement.without("south").unwrap()
    }

    #[test]
    fn a_node_whose_rows_do_not_fit_after_a_change_listens_and_says_why() {
        let north = North::new();
        assert_eq!(said(&after(&north, [])), Ok(None));
        let longer = || North::text(&[("rounds = 6", "rounds = 9")]);
        let present = after(&north, [longer()]);
        let lives = living(&present)
            .unwrap()
            .unwrap_or_else(|why| panic!("{why}"));
        assert!(lives.equipment.own_rows && lives.equipment.equipped.samples() > 0);
        let present = after(&north, [longer(), without_south(&north)]);
        assert!(present.institution.agreement.unfit.is_none());
        let why = said(&present).unwrap().unwrap();
        assert!(why.contains("domains"), "{why}");
        // Another change may undo that.
        let undone = [without_south(&north), North::text(&[])];
        assert_eq!(said(&after(&north, undone)), Ok(None));
    }

    #[test]
    fn files_that_fit_no_agreement_so_far_are_the_institutions_to_correct() {
        let north = North::new();
        fs::remove_file(north.folder.path().join("rows.csv")).unwrap();
        let longer = North::text(&[("rounds = 6", "rounds = 9")]);
        for texts in [vec![], vec![longer], vec![without_south(&north)]] {
            let changes = texts.len();
            let why = said(&after(&north, texts)).unwrap_err();
            let named = why.contains("rows.csv") || why.contains("domains");
            assert!(named, "{changes}: {why}");
        }
    }

    #[test]
    fn a_node_listens_under_an_agreement_that_none_may_accept() {
        let north = North::new();
        let seed = North::text(&[("seed = 1 ", "seed = 2 ")]);
        let why = said(&after(&north, [seed.clone()])).unwrap().unwrap();
        assert!(
            why.contains("cannot change") && why.contains("`seed`"),
            "{why}"
        );
        assert_eq!(said(&after(&north, [seed, North::text(&[])])), Ok(None));
    }

    #[test]
    fn a_limit_that_the_models_do_not_fit_stops_a_node_at_first_and_makes_it_listen_later() {
        let north = North::new();
        let small = North::agreement(&[("blob-limit = 392", "blob-limit = 391")]);
        let mut present = after(&north, []);
        let me = present.institution.me;
        // As the institution's local model may be larger than the one that all can compute.
        present.institution = present.institution.under(small.clone(), me);
        let why = said(&present).unwrap_err();
        assert!(why.contains("391"), "{why}");
        let mut present = after(&north, [North::text(&[("rounds = 6", "rounds = 9")])]);
        let mut epoch = (*present.institution.agreement.epoch).clone();
        epoch.protocol = small.epoch.protocol.clone();
        present.institution.agreement.epoch = epoch.into();
        let why = said(&present).unwrap().unwrap();
        assert!(why.contains("391"), "{why}");
    }
}
