//! The run of a node in one epoch, step by step.

use std::sync::Arc;

use protocol::member::KEPT;
use silo::{Checks, SiloEnvironment};
use tokio::runtime;

use super::beside::Beside;
use super::connection::Between;
use super::part::EpochPart;
use super::running::{goodbye, run_silo};
use super::shared::NodeShared;
use super::{Begin, EpochEnd, GOODBYE, network_runtime};
use crate::institution::agreement::amendments::AmendmentFolder;
use crate::institution::error::NodeError;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::EndSignal;
use crate::institution::start::announce::print_note;
use crate::institution::start::audit_log;
use crate::institution::start::start_model::{WithStart, fetch};
use crate::pool::Workers;
use crate::secrets::SystemSecrets;
use crate::store::{self, Note, OpenedStore};

/// Runs a node in one epoch: it looks at what the institution signed and has, keeps that, connects, and
/// runs its silo until the epoch or the node ends.
///
/// # Errors
/// [`NodeError`]: why it did not start, or what stopped it.
pub(super) fn run(
    begin: Begin<'_>,
    opened: OpenedStore,
    mut signal: EndSignal,
    output: &OutputLines,
) -> Result<EpochEnd, NodeError> {
    // After a change the node runs without a signature, and contributes nothing.
    let number = begin.present.institution.agreement.epoch.number;
    if number == 0 && begin.first.is_first_member() {
        begin.first.consented()?;
    }
    if !fetch(begin.present, network_runtime, &mut signal, output)? {
        return Ok(EpochEnd::Left);
    }
    let part = EpochPart::of(begin.present)?;
    let warnings = keep(&begin, &part, &opened.notes, output)?;
    let beside = Beside::start(&begin, &part, &opened.blobs, warnings, output)?;
    run_beside(&begin, &part, opened, beside, signal, output)
}

/// Keeps beside the journal what the epoch rests on. The warnings about the state folder, which are
/// printed, come back.
fn keep(
    begin: &Begin<'_>,
    part: &EpochPart,
    notes: &[Note],
    output: &OutputLines,
) -> Result<Vec<String>, NodeError> {
    let institution = &begin.present.institution;
    let epoch = &institution.agreement.epoch;
    let amendments = AmendmentFolder::of(&institution.state);
    amendments.only_of(epoch.id, &begin.present.in_force);
    amendments.at_most(KEPT * epoch.roster.len());
    match begin.first.agreement.to_toml() {
        Ok(agreed) => store::keep_agreement(&institution.state, &agreed)?,
        Err(why) => tracing::warn!("the agreement is not kept beside the journal: {why}"),
    }
    let mut warnings = Vec::new();
    for note in notes {
        warnings.push(print_note(output, note));
    }
    part.keep(institution)?;
    Ok(warnings)
}

/// Runs the silo between its network, its journal and those who are told what it reports, and then ends
/// what runs beside it. Where it fails, the sockets are gone before the state folder is free for another
/// process.
fn run_beside(
    begin: &Begin<'_>,
    part: &EpochPart,
    opened: OpenedStore,
    beside: Beside,
    signal: EndSignal,
    output: &OutputLines,
) -> Result<EpochEnd, NodeError> {
    let institution = &begin.present.institution;
    let epoch = &institution.agreement.epoch;
    let member = part.member(institution, begin.options.follow_recovery)?;
    let serving = part.serving(institution, begin.held.as_ref());
    let columns = part.columns(institution);
    let role = part.role(begin.present, member, begin.lost)?;
    let shared = NodeShared::of(begin, part, serving);
    let (health, reporter) = (beside.health, beside.reporter);
    let between = Between {
        log: audit_log::open(institution, opened.journal.log_note(), (output, &health))?,
        leaving: shared.leaving.clone(),
        reporter: reporter.clone(),
        peers: beside.peers.clone(),
    };
    let wires = (beside.commands, beside.events);
    let (network, logged) = between.join(institution, &beside.runtime, wires);
    let feed = shared
        .told(begin, columns, (&health, &reporter), output)
        .feed();
    let watch = shared.watch(begin, part, (health, &reporter), beside.sockets);
    let start = part.start();
    let pool = Workers::all_cores();
    let site = institution.site.site();
    let inner = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let OpenedStore { journal, blobs, .. } = opened;
    let (heartbeat, print_work) = (epoch.heartbeat(), output.clone());
    let ended = silo::block_on(inner, async move {
        let environment = SiloEnvironment {
            network,
            journal: Box::new(journal),
            blobs: Arc::new(WithStart { blobs, start }),
            pool,
            checks: Checks::new(false),
            feed,
            origin: tokio::time::Instant::now(),
            site,
            secrets: Box::new(SystemSecrets),
        };
        run_silo(role, environment, watch, signal, (heartbeat, print_work)).await
    });
    reporter.end(&beside.ending, GOODBYE);
    goodbye(beside.runtime, logged, beside.ended);
    ended
}
