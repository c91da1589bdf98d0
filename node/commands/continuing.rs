//! `rota federation continue`: the agreement of a federation that starts from a model of an earlier
//! one.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::federation::{self, Changes, GivenUp, StartModel};
use crate::institution::{Configured, Membership, SetupError, standing};
use crate::model::{ModelError, START};
use crate::split_key::is_needed;
use agreement::{Agreement, public_key};
use formatting::numbers;
use methods::serving::mean_of_coalitions;
use methods::strategy::shared_part;
use protocol::Hash;
use protocol::parameters::Group;
use task::TaskConfig;

use super::model::NodeModels;
use super::{NodeCommandError, vacant, wrapped, write};
use crate::cli::ContinueFederation;

/// Writes the agreement of a federation that goes on from a model of an earlier one, and the model.
pub(crate) fn continue_from(options: &ContinueFederation) -> Result<(), NodeCommandError> {
    let out = &options.out;
    let beside = out.with_file_name(START);
    vacant(out, options.force)?;
    vacant(&beside, options.force)?;
    let (earlier, start) = match (&options.model, &options.earlier) {
        (Some(model), Some(earlier)) => of_file(model, earlier)?,
        _ => of_node(&options.node.file()?, options)?,
    };
    let changes = Changes {
        name: options.name.clone(),
        rounds: options.rounds,
        strategy: options.strategy.clone(),
        joining: options.members.clone(),
        leaving: options.without.clone(),
        given_up: match (options.give_up_masks, options.give_up_noise) {
            (true, _) => Some(GivenUp::Masks),
            (false, true) => Some(GivenUp::Noise),
            (false, false) => None,
        },
    };
    let agreement = federation::continued(&earlier, &start, &changes)?;
    let text = agreement.to_toml().map_err(NodeCommandError::Toml)?;
    write(out, &text)?;
    super::model::write(&beside, &start.model.document())?;
    let mut console = BufWriter::new(io::stdout().lock());
    writeln!(
        console,
        "written: {} and {}",
        out.display(),
        beside.display()
    )?;
    writeln!(console, "federation {:#}", agreement.epoch.federation)?;
    writeln!(
        console,
        "It continues from round {} of {} ({:#}), for {} more, with the strategy {}.",
        start.round,
        numbers::plain(&start.name),
        start.federation,
        numbers::plural(agreement.epoch.protocol.rounds as usize, "round"),
        agreement.strategy_config.name()
    )?;
    if let Some(line) = agreement.protects_less() {
        writeln!(
            console,
            "{}",
            wrapped(&format!("{line}. Everybody signs that, or does not."))
        )?;
    }
    if let Some(line) = rows_change_sides(&earlier, &agreement) {
        writeln!(console, "{}", wrapped(line))?;
    }
    writeln!(
        console,
        "Give every member both files, side by side. Each reads the agreement with `rota federation show \
         {}`, names it in its node.toml, signs it with `rota federation sign`, and gives its node a new \
         state folder.",
        out.display()
    )?;
    Ok(console.flush()?)
}

/// Returns what it means for results that the earlier federation held out other rows.
fn rows_change_sides(earlier: &Agreement, agreement: &Agreement) -> Option<&'static str> {
    let anew = is_needed(&agreement.task) && !is_needed(&earlier.task);
    anew.then_some(
        "Rows are held out anew, by a keyed hash of each. The model that it starts from was trained on some of \
         those that are held out now, so the first results on held-out rows are too good.",
    )
}

/// The start from a model that a node's state holds.
fn of_node(
    config: &Path,
    options: &ContinueFederation,
) -> Result<(Agreement, StartModel), NodeCommandError> {
    let node = NodeModels::load(config)?;
    let summed = summed(config)?;
    let agreement = node.institution.configured.agreement;
    let round = node.held.round(options.round)?;
    let models = node.held.models(round, &node.equipment.equipped.layout())?;
    let model = match (options.coalition, options.global) {
        (Some(number), _) => {
            let at = number.checked_sub(1).map(|at| at as usize);
            at.and_then(|at| models.get(at).cloned())
                .ok_or(ModelError::NoCoalition {
                    coalition: number,
                    round: round.round,
                    of: models.len(),
                })?
        }
        (None, true) => {
            let mean = mean_of_coalitions(&models, &round.assignment);
            mean.unwrap_or_else(|| models[round.coalition as usize].clone())
        }
        (None, false) if models.len() > 1 => {
            return Err(NodeCommandError::Several {
                round: round.round,
                count: models.len(),
            });
        }
        (None, false) => models[0].clone(),
    };
    let family = node.equipment.plain.learner.layout();
    let start = StartModel {
        model: shared_part(&family, &model),
        federation: agreement.epoch.federation,
        name: agreement.epoch.protocol.name.clone(),
        round: round.round,
        block: round.block,
        summed,
    };
    Ok((agreement, start))
}

/// The groups whose models were added up in the federation of a node, under all of its agreements.
fn summed(config: &Path) -> Result<Vec<Group>, NodeCommandError> {
    let configured = Configured::load(config).map_err(SetupError::from)?;
    let (first, place) = standing(configured)?;
    Ok(match place {
        Membership::Member(present) => {
            let now = &present.institution.agreement;
            Agreement::summed(present.earlier.iter().chain([now]))
        }
        Membership::Left | Membership::Outside => Agreement::summed([&first.agreement]),
    })
}

/// The start from an exported model.
fn of_file(model: &Path, earlier: &Path) -> Result<(Agreement, StartModel), NodeCommandError> {
    let agreement = Agreement::load(earlier).map_err(SetupError::from)?;
    if let TaskConfig::External(_) = agreement.task {
        return Err(NodeCommandError::Failed(
            "a model of the members' programs is exported without a card, which would say where it \
             comes from: name the node that holds it with --config, instead of --model and --earlier"
                .into(),
        ));
    }
    let summed = Agreement::summed([&agreement]);
    if !summed.is_empty() {
        return Err(NodeCommandError::Failed(
            "models were added up in groups in this federation, and only a node knows whether its groups changed: \
             name one that took part with --config, instead of --model and --earlier"
                .into(),
        ));
    }
    let (card, tensors) = super::model::exported(model)?;
    let agreed = format!("{:#}", agreement.epoch.federation);
    if card.origin.id != agreed {
        return Err(NodeCommandError::Earlier {
            model: card.origin.id,
            file: earlier.into(),
            agreed,
        });
    }
    // 64 hexadecimal digits, as public keys are.
    let block = public_key(&card.origin.block).map_or(Hash([0; 32]), |key| Hash(key.0));
    let start = StartModel {
        model: tensors,
        federation: agreement.epoch.federation,
        name: card.origin.federation,
        round: card.origin.round,
        block,
        summed,
    };
    Ok((agreement, start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::North;

    #[test]
    fn results_on_rows_that_were_trained_on_are_said_to_be_too_good() {
        let keyed = North::noised("noise-multiplier = 20.0\nmin-authors = 3");
        let [keyed, drawn] =
            [keyed.clone(), keyed.replacen(", keyed = true", "", 1)].map(|text| North::read(&text));
        assert!(rows_change_sides(&drawn, &keyed).is_some());
        assert_eq!(rows_change_sides(&keyed, &keyed), None);
    }
}
