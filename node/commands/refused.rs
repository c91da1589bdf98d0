//! Says what an institution's own policy refuses of the agreement that it signs. A ledger is named in `[policy]`,
//! and a table there has defaults that a file without it has not.

use std::path::Path;

use agreement::Agreement;
use protocol::MemberIndex;
use task::schema::LocalNames;

use super::NodeCommandError;
use super::rows::say;
use crate::federation::first_under;
use crate::institution::policy_of;
use crate::policy::ProposedRounds;

/// Says it of the policy in a `node.toml`, for an institution with so many training rows, whose files name what is
/// agreed like this.
pub(super) fn say_refused(
    config: &Path,
    (agreement, me): (&Agreement, MemberIndex),
    rows: Option<u64>,
    names: Option<&LocalNames>,
) -> Result<(), NodeCommandError> {
    let said = refused(config, (agreement, me), rows, names)?;
    match said.is_empty() {
        true => Ok(()),
        false => say(&said),
    }
}

fn refused(
    config: &Path,
    (agreement, me): (&Agreement, MemberIndex),
    rows: Option<u64>,
    names: Option<&LocalNames>,
) -> Result<Vec<String>, NodeCommandError> {
    let start = first_under(agreement);
    let limit = agreement.epoch.protocol.blob_limit;
    let refusals = policy_of(config)?.refusals(&ProposedRounds {
        agreement,
        me: Some(me),
        rows,
        bytes: start.map_or(limit, |start| start.largest),
        names,
    });
    let said = refusals.into_iter().map(|refusal| {
        format!(
            "warning: {}. The node will vote and contribute nothing: change `{}` in [policy] of {}, or agree on \
             something else",
            refusal.why,
            refusal.key,
            config.display()
        )
    });
    Ok(said.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;
    use crate::fixture::{North, key};
    use crate::policy::make_ledger;

    #[test]
    fn what_a_new_table_of_the_policy_refuses_is_said() {
        let north = North::new();
        let at = |name: &str| north.folder.path().join(name);
        make_ledger(&at("rows.ledger"), "rows", "row".parse().unwrap()).unwrap();
        let silo = fs::read_to_string(at("node.toml")).unwrap();
        let ledger = "\n[policy]\nledger = \"rows.ledger\"\n";
        fs::write(at("node.toml"), format!("{silo}{ledger}")).unwrap();
        let said = |text: &str| {
            let agreement = North::read(text);
            let me = agreement.epoch.roster.position(&key(9).public()).unwrap();
            refused(&at("node.toml"), (&agreement, me), Some(12), None).unwrap()
        };
        let noised = North::noised("noise-multiplier = 20.0\nmin-authors = 3\n");
        assert_eq!(said(&noised), [""; 0]);
        let few = said(&noised.replace("rows = 120", "rows = 12")).concat();
        for part in ["requires at least 20", "change `min-rows` in [policy]"] {
            assert!(few.contains(part), "{few}");
        }
    }
}
