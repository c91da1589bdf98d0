//! Chooses one of the models that a state folder holds, with all that is known about it.

use std::path::Path;

use agreement::Agreement;
use learn::export::{Card, CardParts, Coalition, ExportError, HeldOut, Origin, Output};
use methods::Params;
use methods::params::Gate;
use methods::serving::{Candidate, Measured, PersonalParts, is_never_trained, mean_of_coalitions};
use protocol::MemberIndex;
use task::TaskConfig;
use task::data::Preparation;

use super::ModelError;
use super::held::{HeldRound, HeldRounds};
use super::notes::{self, Noted};
use crate::equipment::Equipment;
use formatting::numbers;

/// A model of the silo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Which {
    /// The one that the silo serves; before it has chosen one, that of its coalition.
    #[default]
    Served,
    /// That of a coalition, by its number from 1; by default the silo's own coalition.
    Coalition(Option<u32>),
    /// The mean of all coalitions' models.
    Global,
}

/// A model and its round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Choice {
    /// The model.
    pub which: Which,
    /// The round; by default the last.
    pub round: Option<u64>,
    /// True if the coalition's model may take the place of a served one that cannot be used.
    pub instead: bool,
}

/// A chosen model.
#[derive(Debug, Clone)]
pub struct ChosenModel {
    /// The model, in the layout of the agreed family.
    pub model: Params,
    /// Where the model comes from.
    pub origin: Origin,
    /// Metrics of the model on the silo's held-out rows.
    pub held_out: Option<HeldOut>,
    /// The comparison behind the choice; empty where there was none.
    pub comparison: Vec<Measured>,
    /// The choice, if this is the model that the silo serves.
    pub served: Option<Candidate>,
}

/// Chooses a model of the state in `folder`.
///
/// # Errors
/// [`ModelError`]: no such round or coalition, a blob that is missing, a served model that is not what
/// the node wrote, a strategy that has no single model.
pub fn choose(
    folder: &Path,
    held: &HeldRounds,
    agreement: &Agreement,
    me: MemberIndex,
    equipment: &Equipment,
    choice: Choice,
) -> Result<ChosenModel, ModelError> {
    let round = held.round(choice.round)?;
    let silo = numbers::plain(agreement.epoch.roster.name(me));
    let mut why = "";
    if choice.which == Which::Served {
        match served(folder, round, agreement, &silo, equipment) {
            Ok(Some(served)) => return Ok(served),
            Ok(None) => why = "; no model has been chosen to be served after this round",
            Err(ModelError::Served { .. } | ModelError::NotChosen { .. }) if choice.instead => {
                why = ", in place of the one that it serves, which cannot be used";
            }
            Err(why) => return Err(why),
        }
    }
    let equipped = &equipment.equipped;
    let models = held.models(round, &equipped.layout())?;
    let initial = equipped.initial_personal(agreement.seed);
    let personal = personal_of(held, round, equipment, initial)?;
    let asked = asked(choice.which, round, models.len())?;
    let mean = match asked {
        None => mean_of_coalitions(&models, &round.assignment),
        Some(_) => None,
    };
    // The mean of one is that one.
    let at = asked.unwrap_or(round.coalition);
    let model = mean.as_ref().or(models.get(at as usize));
    let model = model.and_then(|model| equipped.deployed(model, &personal));
    let model = model.ok_or(ModelError::Several(agreement.strategy.name()))?;
    let (which, mut about) = described(asked, round, models.len(), &silo);
    about += why;
    let whole = models.get(at as usize).map(|model| (model, &personal));
    if whole.is_some_and(|whole| is_never_trained(&**equipped, whole, agreement.seed)) {
        about += PersonalParts::NeverTrained.words();
    }
    Ok(ChosenModel {
        origin: origin(agreement, round, asked, &silo, which, about),
        held_out: equipment.held_out(&model),
        model,
        comparison: Vec::new(),
        served: None,
    })
}

/// The model that the silo chose to serve after a round, with its note. `None` where it chose none: before the
/// last round, or because it predicts with several models.
fn served(
    folder: &Path,
    round: &HeldRound,
    agreement: &Agreement,
    silo: &str,
    equipment: &Equipment,
) -> Result<Option<ChosenModel>, ModelError> {
    let found = notes::served(folder)?.filter(|noted| noted.served.round == round.round);
    let Some(Noted {
        served: note,
        model,
    }) = found
    else {
        return if round.round < agreement.epoch.protocol.rounds {
            Ok(None)
        } else {
            Err(ModelError::NotChosen {
                round: round.round,
                path: folder.to_owned(),
            })
        };
    };
    let Some(model) = model else {
        return Ok(None);
    };
    let gate = Gate {
        layout: equipment.plain.learner.layout(),
        norm: f64::INFINITY,
    };
    let model = gate.admit(model.into());
    let model = model.map_err(|error| notes::unusable(folder, error.to_string()))?;
    let about = format!(
        "The model that {silo} serves after round {}: {}{}",
        round.round,
        note.candidate.words(),
        note.personal.words()
    );
    let coalition = (note.candidate != Candidate::Global).then_some(round.coalition);
    let coalition = coalition.filter(|_| !note.candidate.is_own());
    Ok(Some(ChosenModel {
        origin: origin(agreement, round, coalition, silo, "served", about),
        held_out: note.held_out.or_else(|| equipment.held_out(&model)),
        model,
        comparison: note.measured,
        served: Some(note.candidate),
    }))
}

/// The coalition whose model is meant, from 0, of `of` coalitions; `None` for the mean of all.
fn asked(which: Which, round: &HeldRound, of: usize) -> Result<Option<u32>, ModelError> {
    Ok(match which {
        Which::Coalition(Some(number)) => match number.checked_sub(1) {
            Some(at) if (at as usize) < of => Some(at),
            _ => {
                return Err(ModelError::NoCoalition {
                    coalition: number,
                    round: round.round,
                    of,
                });
            }
        },
        Which::Served | Which::Coalition(None) => Some(round.coalition),
        Which::Global => None,
    })
}

/// The kind of a model that was not chosen to be served, and a sentence about it without a full stop.
/// `asked` is its coalition, from 0, of `of` coalitions.
fn described(
    asked: Option<u32>,
    round: &HeldRound,
    of: usize,
    silo: &str,
) -> (&'static str, String) {
    match asked {
        None => (
            "global",
            format!(
                "The mean of all coalitions' models after round {}",
                round.round
            ),
        ),
        Some(at) => {
            let own = at == round.coalition;
            let whose = if own {
                format!("which {silo} belongs to")
            } else {
                format!("which {silo} does not belong to")
            };
            (
                "coalition",
                format!(
                    "The model of coalition {} of {of} after round {}, {whose}",
                    at + 1,
                    round.round
                ),
            )
        }
    }
}

/// The silo's personal state of a round. A node keeps only that of the last one; for an earlier round
/// any will do where the strategy's models do not depend on it.
fn personal_of(
    held: &HeldRounds,
    round: &HeldRound,
    equipment: &Equipment,
    initial: Params,
) -> Result<Params, ModelError> {
    let found = held.personal(round, initial.clone());
    let Err(ModelError::Gone { .. }) = found else {
        return found;
    };
    let equipped = &equipment.equipped;
    let last = held.round(None)?;
    let last = held.personal(last, initial.clone())?;
    let models = held.models(round, &equipped.layout())?;
    let with = |personal: &Params| equipped.deployed(&models[0], personal);
    if with(&initial) == with(&last) {
        Ok(initial)
    } else {
        Err(ModelError::Personal { round: round.round })
    }
}

fn origin(
    agreement: &Agreement,
    round: &HeldRound,
    coalition: Option<u32>,
    silo: &str,
    which: &str,
    about: String,
) -> Origin {
    let epoch = &agreement.epoch;
    let certificate = round.certificate.map(|hash| format!("{hash:#}"));
    Origin {
        which: which.into(),
        about,
        federation: epoch.protocol.name.clone(),
        id: format!("{:#}", epoch.federation),
        members: epoch.roster.len(),
        strategy: agreement.strategy_config.name().into(),
        round: round.round,
        rounds: epoch.protocol.rounds,
        coalition: coalition.map(|at| Coalition {
            number: at + 1,
            of: round.models.len(),
            contributions: round
                .models
                .get(at as usize)
                .map_or(0, |model| model.contributions),
        }),
        block: format!("{:#}", round.block),
        outcome: format!("{:#}", round.outcome),
        certificate: certificate.unwrap_or_default(),
        silo: silo.to_owned(),
        continues: agreement.continues.as_ref().map(ToString::to_string),
    }
}

impl ChosenModel {
    /// The card of this model, with the date `created` as RFC 3339 has it.
    ///
    /// # Errors
    /// [`ModelError`]: a task without a table, or one whose preparation nobody knows.
    pub fn card(
        &self,
        folder: &Path,
        agreement: &Agreement,
        equipment: &Equipment,
        created: String,
    ) -> Result<Card, ModelError> {
        let task = agreement.task_of_rows().map_err(ExportError::from)?;
        let TaskConfig::Table(task) = task else {
            return Err(ExportError::NoTable.into());
        };
        let noted: Option<Preparation> = notes::preparation(folder)?;
        let own = equipment.plain.preparation.as_deref().cloned();
        let mut origin = self.origin.clone();
        if noted.is_none() {
            origin.about += "; the node's note of how it fills in and scales rows is gone, so that follows from its \
                             rows as they are now";
        }
        let preparation = noted.or(own.filter(|_| equipment.own_rows));
        let preparation = preparation.ok_or(ModelError::Preparation)?;
        let mut card = Card::new(CardParts {
            task: &task,
            preparation: &preparation,
            model: &self.model,
            origin,
            created,
        })?;
        if let Output::Classes { classes, .. } = &card.output
            && let [_, second] = &classes[..]
        {
            card.threshold = equipment.threshold(&self.model, second);
        }
        card.held_out = self.held_out.clone();
        card.comparison = self.comparison.clone();
        card.served = self.served;
        Ok(card)
    }
}
