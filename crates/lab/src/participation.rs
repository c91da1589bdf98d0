//! Division of the silos of a study into those that take part in a federation and those outside.

use std::collections::BTreeSet;

use learn::Study;

use simulations::scenario::Scenario;
use simulations::{RunError, position};
use task::TaskConfig;

/// The silos that take part, and those that do not.
pub(crate) struct ParticipatingSilos {
    /// The silos that take part, as a study.
    pub(crate) study: Study,
    /// Positions of these silos in the whole study.
    pub(crate) members: Vec<usize>,
    /// The positions of those that stay outside.
    pub(crate) others: Vec<usize>,
}

/// Splits the silos of `study` by the key `unseen` of the scenario. Silos without training rows stay
/// outside, too, unless they add noise and it is by chance that they have none.
///
/// # Errors
/// [`RunError::Setup`]: an unknown silo is named, or no silo is left to take part.
pub(crate) fn participation(
    scenario: &Scenario,
    study: &Study,
) -> Result<ParticipatingSilos, RunError> {
    let names: Vec<_> = study.silos.iter().map(|silo| silo.name.as_str()).collect();
    let mut outside = BTreeSet::new();
    for name in &scenario.outside {
        let group = |silo: &learn::StudySilo| silo.group.as_ref() == Some(name);
        let all = study.silos.iter().enumerate();
        let of_group: Vec<usize> = all
            .filter(|(_, silo)| group(silo))
            .map(|(at, _)| at)
            .collect();
        outside.extend(&of_group);
        if of_group.is_empty() {
            let at = position(&names, name).map_err(|what| {
                RunError::Setup(format!(
                    "{}: `unseen` names an unknown {what}{}",
                    scenario.file,
                    groups(study)
                ))
            })?;
            outside.insert(at);
        }
    }
    let only_test = study.silos.iter().enumerate();
    // Where a hash or a date holds rows out, a silo without training rows contributes its noise.
    let stays = matches!(&scenario.task, TaskConfig::Table(task)
        if scenario.is_noised() && task.split.may_leave_none());
    let only_test = only_test.filter(|(_, silo)| silo.rows.train == 0 && !stays);
    outside.extend(only_test.map(|(at, _)| at));
    let all = 0..study.silos.len();
    let (others, members): (Vec<_>, Vec<_>) = all.partition(|at| outside.contains(at));
    if members.is_empty() {
        return Err(RunError::Setup(format!(
            "{}: all silos are `unseen` or have no training rows, but at least one must take part",
            scenario.file
        )));
    }
    let silos = members.iter().map(|&at| study.silos[at].clone());
    Ok(ParticipatingSilos {
        study: Study {
            silos: silos.collect(),
            ..study.clone()
        },
        members,
        others,
    })
}

/// Returns what groups there are, for an error.
fn groups(study: &Study) -> String {
    let groups: BTreeSet<&str> = study
        .silos
        .iter()
        .filter_map(|silo| silo.group.as_deref())
        .collect();
    if groups.is_empty() {
        String::new()
    } else {
        let groups: Vec<&str> = groups.into_iter().collect();
        format!(", or of the groups {}", groups.join(", "))
    }
}
