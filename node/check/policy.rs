//! Whether the institution's own policy lets its node contribute under the agreement in force.

use protocol::MemberIndex;

use super::Finding;
use crate::federation::first;
use crate::institution::{Configured, Data};
use crate::policy::{LedgerStatus, ProposedRounds};

/// What the policy refuses, and how the ledger stands.
pub(super) fn policy(
    configured: &Configured,
    me: Option<MemberIndex>,
    rows: Option<usize>,
) -> Vec<Finding> {
    let agreement = &configured.agreement;
    let silos = agreement.epoch.roster.silos().iter();
    let silos: Vec<_> = silos.map(|silo| silo.name.clone()).collect();
    let start = first(
        &agreement.task,
        &agreement.strategy_config,
        agreement.seed,
        &silos,
    );
    let limit = agreement.epoch.charter.blob_limit;
    let names = match &configured.data {
        Data::Rows(rows) => Some(&rows.names),
        Data::Share { .. } | Data::Program => None,
    };
    let refusals = configured.site.refusals(&ProposedRounds {
        agreement,
        me,
        rows: rows.map(|rows| rows as u64),
        bytes: start.map_or(limit, |start| start.largest),
        names,
    });
    let refused = refusals.into_iter().map(|refusal| {
        let remedy = "the node would vote, and contribute nothing: agree on something else, or change \
                      [policy] in silo.toml";
        Finding::bad("policy", refusal.why).remedy(remedy)
    });
    let source = configured.site.source.as_ref();
    // A ledger that cannot be read is among the refusals.
    let ledger = source.and_then(|source| Some((source, source.read().ok()?)));
    let ledger = ledger.map(|(source, contents)| {
        Finding::good("ledger", LedgerStatus::of(source, &contents).text())
    });
    refused.chain(ledger).collect()
}
