//! Whether the institution's own policy lets its node contribute under the agreement in force.

use agreement::DeltaDoubt;
use protocol::MemberIndex;

use super::Finding;
use crate::federation::first_under;
use crate::institution::{Configured, Data};
use crate::policy::{LedgerStatus, ProposedRounds};

/// Returns what the policy refuses, what is to be said of δ, and how the ledger stands.
pub(super) fn policy(
    configured: &Configured,
    me: Option<MemberIndex>,
    rows: Option<usize>,
) -> Vec<Finding> {
    let agreement = &configured.agreement;
    let start = first_under(agreement);
    let limit = agreement.epoch.protocol.blob_limit;
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
        let remedy = "the node would vote but contribute nothing: agree on something else, or change [policy] in \
                      node.toml";
        Finding::bad("policy", refusal.why).remedy(remedy)
    });
    let few = rows.and_then(|rows| configured.site.few_rows(agreement, rows as u64));
    let few = few.map(|why| {
        let remedy =
            "sign no agreement with noise on so few rows, or lower `min-rows` in node.toml";
        Finding::bad("policy", why).remedy(remedy)
    });
    let doubt = DeltaDoubt::of(&agreement.epoch);
    let doubt = doubt.map(|doubt| Finding::note("delta", doubt.to_string()));
    let source = configured.site.source.as_ref();
    // A ledger that cannot be read is among the refusals.
    let ledger = source.and_then(|source| Some((source, source.read().ok()?)));
    let ledger = ledger.map(|(source, contents)| {
        Finding::good("ledger", LedgerStatus::of(source, &contents).text())
    });
    let uncounted = configured.site.uncounted(agreement);
    let uncounted = uncounted.map(|why| Finding::note("ledger", why));
    let found = refused.chain(few).chain(doubt).chain(ledger);
    found.chain(uncounted).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;
    use std::time::Duration;

    use ledger::{LedgerFile, Source, SourceUnit};

    use super::*;
    use crate::check::{CheckOptions, CheckResult, Level, check};
    use crate::fixture::North;

    /// Returns what a check of north finds under an agreement, with this policy and an empty ledger of rows.
    fn checked(agreement: &str, policy: &str) -> CheckResult {
        let north = North::new();
        let at = |name: &str| north.folder.path().join(name);
        fs::write(at("federation.toml"), agreement).unwrap();
        let silo = fs::read_to_string(at("node.toml")).unwrap();
        fs::write(at("node.toml"), format!("{silo}\n{policy}")).unwrap();
        let source = Source {
            name: "patients".into(),
            unit: SourceUnit::Row,
        };
        LedgerFile::create(&at("patients.ledger"), &source, &[1; 16]).unwrap();
        let configured = Configured::load(&at("node.toml")).unwrap();
        let options = CheckOptions {
            network: false,
            rehearse: false,
            patience: Duration::from_secs(1),
        };
        check(&configured, &options).unwrap()
    }

    /// The findings about policy and ledger.
    fn findings(found: &CheckResult) -> Vec<(&'static str, Level, &str)> {
        let findings = found.findings.iter();
        let about = findings.filter(|one| ["policy", "ledger"].contains(&one.topic));
        about
            .map(|one| (one.topic, one.level, &one.text[..]))
            .collect()
    }

    const NOISED: &str = "noise-multiplier = 20.0\nmin-authors = 3";

    #[test]
    fn a_check_lists_every_key_that_refuses_and_how_the_ledger_stands() {
        assert_eq!(findings(&checked(&North::text(&[]), "")), []);
        let policy = "[policy]\nledger = \"patients.ledger\"\nallowed-modes = [\"differential-privacy\"]\nmin-rows = 500\n";
        let found = checked(&North::text(&[]), policy);
        let found = findings(&found);
        let topics: Vec<_> = found
            .iter()
            .map(|(topic, level, _)| (*topic, *level))
            .collect();
        assert_eq!(
            topics,
            [
                ("policy", Level::Bad),
                ("policy", Level::Bad),
                ("ledger", Level::Good)
            ]
        );
        assert!(found[0].2.contains("(`allowed-modes`)"), "{found:?}");
        assert!(found[1].2.contains("(`min-rows`)"), "{found:?}");
        let ledger = found[2].2;
        assert!(
            ledger.starts_with("patients (unit row): 0 contributions; epsilon "),
            "{ledger}"
        );
        assert!(ledger.contains("epsilon_alone"), "{ledger}");
    }

    #[test]
    fn a_check_of_noised_rounds_says_how_many_the_ledger_has_room_for() {
        let stops = |found: &CheckResult| {
            let lines = found.owner.iter();
            let room = lines.filter(|line| line.contains("the ledger here has room for"));
            room.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let enough = checked(
            &North::noised(NOISED),
            "[policy]\nledger = \"patients.ledger\"\nepsilon = 100.0\n",
        );
        assert_eq!(findings(&enough).len(), 1, "{:?}", findings(&enough));
        let all = "the ledger here has room for all of the 6 rounds to come";
        assert_eq!(stops(&enough), [all]);
        let little = checked(
            &North::noised(NOISED),
            "[policy]\nledger = \"patients.ledger\"\nepsilon = 0.3\n",
        );
        let found = findings(&little);
        assert_eq!(found[0].0, "policy", "{found:?}");
        assert!(
            found[0].2.contains("after 6 rounds more of this agreement"),
            "{found:?}"
        );
        let [room] = &stops(&little)[..] else {
            panic!("{:?}", little.owner);
        };
        let fits = found[0].2.split("`: ").nth(1).unwrap();
        let fits = fits.strip_suffix(" of them would fit").unwrap();
        assert!(fits != "0" && fits != "6", "{fits}");
        assert_eq!(
            *room,
            format!("the ledger here has room for {fits} of the 6 rounds to come")
        );
        // Without a ledger nothing is known of its room.
        assert!(stops(&checked(&North::noised(NOISED), "")).is_empty());
    }
}
