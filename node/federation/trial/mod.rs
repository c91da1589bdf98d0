//! Tries an agreement before it is proposed or approved: could this institution's node live under it?
//!
//! A federation whose agreement no node can start under is at an end, so two questions are asked
//! beforehand. [`examined`] is asked of every amendment and needs nobody's rows: a running node answers
//! it, too. [`tried`] reads the institution's own rows and state as its node would.

use std::sync::Arc;

use agreement::{Agreement, DeltaDoubt};
use methods::params::{Gate, GateError};
use methods::strategy::largest_contribution;
use methods::{Layout, Params};
use protocol::Hash;
use protocol::message::Amendment;
use silo::outcome::Document;
use silo::{Adopted, JournalRecord, genesis_outcome};

use super::start::{FirstError, first_under};
use crate::equipment::Equipment;
use crate::institution::config::Institution;
use crate::store;

/// The agreement that an amendment of `agreement`, which is in force, would bring into force, if an
/// institution may accept it as far as can be told without its rows: see
/// [`Agreement::examine`]; besides, the addresses are such that nodes can use them, δ is not too large for the
/// declared rows, and the strategy starts from where the federation started.
///
/// # Errors
/// The first thing that is wrong, with its key and what to do, in a sentence.
pub fn examined(agreement: &Agreement, amendment: &Amendment) -> Result<Agreement, String> {
    let new = agreement.examine(amendment, learn::stand_in);
    let new = new.map_err(|error| error.to_string())?;
    match DeltaDoubt::of(&new.epoch) {
        Some(doubt) if !doubt.may_follow(&agreement.epoch) => return Err(doubt.to_string()),
        _ => {}
    }
    let silos = new.epoch.roster.silos().iter();
    for (silo, addresses) in silos.zip(&new.addresses) {
        for address in addresses {
            mesh::check(address).map_err(|error| {
                format!("`addresses` of {} holds {error}: correct it", silo.name)
            })?;
        }
    }
    // A model that is continued is another start, which only those know that have it.
    let same = new.epoch.protocol.work == agreement.epoch.protocol.work;
    if !same && new.continues.is_none() {
        starts(&new)?;
    }
    Ok(new)
}

/// Returns whether the strategy begins with the state that the federation began with, where that can be
/// computed here.
fn starts(new: &Agreement) -> Result<(), String> {
    match first_under(new) {
        Ok(first) => same_start(new, first.start),
        Err(
            error @ (FirstError::Strategy(_)
            | FirstError::Model(_)
            | FirstError::Limit { .. }
            | FirstError::Memory { .. }),
        ) => Err(error.to_string()),
        // Its node knows, with the rows or the program.
        Err(FirstError::Data(_) | FirstError::Programs | FirstError::OwnData) => Ok(()),
    }
}

fn same_start(new: &Agreement, found: Hash) -> Result<(), String> {
    let start = new.epoch.protocol.start;
    if found == start {
        Ok(())
    } else {
        Err(format!(
            "`strategy` cannot change like this: with these options the federation would have started \
             from {found}, and it started from {start}; keep the options that make its models"
        ))
    }
}

/// Tries whether an institution's node could live under another agreement than the one in force, which
/// `institution` has: with its own rows or program, its strategy, and the newest models in its state.
/// Gives what would keep it from that, a sentence each with key and remedy; nothing if it could, or if
/// it is no member any more.
pub fn tried(institution: &Institution, new: &Agreement) -> Vec<String> {
    let roster = &new.epoch.roster;
    let Some(me) = roster.position(&institution.key.public()) else {
        return Vec::new();
    };
    let then = institution.under(new.clone(), me);
    let adopted = newest(institution);
    let (rounds, last) = (new.epoch.protocol.rounds, adopted.as_ref());
    let mut wrong = Vec::new();
    if let Some(last) = last.filter(|last| last.round > rounds) {
        wrong.push(format!(
            "`rounds` is {rounds}, and round {} is final already: set it to {0} or more",
            last.round
        ));
    }
    let equipped = then
        .start()
        .and_then(|start| then.equipment(start.as_ref()));
    let equipment = match equipped {
        Ok(equipment) => equipment,
        Err(error) => {
            wrong.push(format!(
                "this institution's node could not take part under it: {error}"
            ));
            return wrong;
        }
    };
    wrong.extend(sized(new, &equipment));
    let found = genesis_outcome(&*new.strategy, &*equipment.equipped, new.seed).0;
    wrong.extend(same_start(new, found).err());
    if let Some(last) = last {
        let layout = equipment.equipped.layout();
        wrong.extend(goes_on(institution, new, last, &layout));
    }
    if let Some(programs) = &equipment.programs {
        programs.end();
    }
    wrong
}

/// Returns whether the parameter set allows what this institution would send.
fn sized(new: &Agreement, equipment: &Equipment) -> Option<String> {
    let size = largest_contribution(&*new.strategy, &*equipment.equipped);
    let limit = new.epoch.protocol.blob_limit;
    (size > limit).then(|| {
        format!(
            "`protocol.blob-limit` is {limit}, and a contribution of this institution has {size} bytes: \
             set it to {size} or more"
        )
    })
}

/// The newest round in the journal, if there is one. A journal that cannot be read is not the fault of
/// the agreement.
fn newest(institution: &Institution) -> Option<Adopted> {
    if !store::has_journal(&institution.state) {
        return None;
    }
    let records = store::snapshot(&institution.state).ok()?.records;
    let adopted = |record| match record {
        JournalRecord::Adopted(adopted) => Some(adopted),
        _ => None,
    };
    records.into_iter().rev().find_map(adopted)
}

/// Returns whether rounds can go on from the models of the newest one. Blobs that are not here are fetched by a
/// node, and say nothing.
fn goes_on(
    institution: &Institution,
    new: &Agreement,
    last: &Adopted,
    layout: &Arc<Layout>,
) -> Option<String> {
    let round = last.round;
    let blob = |hash: &Hash| store::blob(&institution.state, hash);
    let document = Document::read(&blob(&Hash(last.outcome))?).ok()?;
    let bound = new.max_model_norm.unwrap_or(f64::INFINITY);
    let gate = Gate {
        layout: layout.clone(),
        norm: bound,
    };
    let admit =
        |model: &Hash| -> Option<Result<Params, GateError>> { Some(gate.admit(blob(model)?)) };
    let mut refused = document
        .models
        .iter()
        .filter_map(admit)
        .filter_map(Result::err);
    refused.next().map(|error| match error {
        GateError::Norm { norm, .. } => format!(
            "`protocol.max-model-norm` is {bound}, and a model of round {round} has the norm {norm:.3}: \
             what members train from it would be refused; set it well above {norm:.3}"
        ),
        error => format!(
            "`strategy` cannot continue from the models of round {round}: {error}; keep the options that \
             make its models"
        ),
    })
}

#[cfg(test)]
mod tests;
