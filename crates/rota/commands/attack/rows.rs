//! `rota attack membership` and `rota attack canary`: what models and sums tell of single rows.

use std::path::Path;

use lab::attack::{
    CanaryOptions, MembershipOptions, OwnMembership, canary as audit, membership as attack,
};
use node::cli::NodePlace;
use node::commands::model::own_losses;
use report::attack as pages;
use simulations::{Options, Scenario};

use super::{has_noise, overrides, print};
use crate::cli::{AttackCanary, AttackHow, AttackMembership, data_folder, typed};
use crate::commands::{CommandError, write};
use crate::progress::say;

pub(super) fn membership(options: &AttackMembership) -> Result<(), CommandError> {
    let AttackMembership {
        scenario,
        config,
        shadows,
        targets,
        page,
        how,
    } = options;
    if let Some(config) = config {
        return own(&NodePlace::at(config).file()?, page.as_deref(), how);
    }
    let scenario = loaded(scenario.as_deref().unwrap_or_default(), how)?;
    announce(how, &format!("training {} federations", shadows + targets));
    let size = MembershipOptions {
        shadows: *shadows,
        targets: *targets,
    };
    let found = attack(&scenario, &data(how), size)?;
    if let Some(file) = page {
        write(file, &pages::membership(&found, &typed()))?;
    }
    print(&found, how.json, || found.lines())
}

/// The attack on a node's local model.
fn own(config: &Path, page: Option<&Path>, how: &AttackHow) -> Result<(), CommandError> {
    let losses = own_losses(config)?;
    let found = OwnMembership::of(&losses.about, &losses.train, &losses.held_out);
    let found = found.ok_or_else(|| {
        CommandError::usage(
            "this node has no held-out rows to compare its training rows with, or its model has no finite \
             losses: agree on a part of the rows for tests (`split` of `[task.table]`)",
        )
    })?;
    if let Some(file) = page {
        write(file, &pages::own(&found, &typed()))?;
    }
    print(&found, how.json, || found.lines())
}

pub(super) fn canary(options: &AttackCanary) -> Result<(), CommandError> {
    let AttackCanary {
        scenario,
        canaries,
        runs,
        page,
        how,
    } = options;
    let scenario = loaded(scenario, how)?;
    if !has_noise(&scenario) {
        return Err(CommandError::usage(
            "this scenario has no noise, so no epsilon is claimed that could be audited: add `[privacy]` with \
             `mode = \"differential-privacy\"`",
        ));
    }
    announce(how, &format!("simulating {runs} federations"));
    let size = CanaryOptions {
        canaries: *canaries,
        runs: *runs,
    };
    let found = audit(&scenario, &data(how), size)?;
    if let Some(file) = page {
        write(file, &pages::canary(&found, &typed()))?;
    }
    print(&found, how.json, || found.lines())
}

fn loaded(scenario: &str, how: &AttackHow) -> Result<Scenario, CommandError> {
    Ok(Scenario::load(scenario)?.with(&overrides(how))?)
}

fn data(how: &AttackHow) -> Options<'static> {
    Options {
        data: data_folder(how.data.as_deref()),
        references: false,
        ..Options::default()
    }
}

/// Says on standard error what takes a while.
fn announce(how: &AttackHow, what: &str) {
    if !how.quiet {
        // Standard error may be closed; that is no reason to fail.
        let _ = say(what);
    }
}
