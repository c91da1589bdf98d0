//! Checks of files: agreement, key, consent, permissions.

use std::fs;
use std::path::Path;

use agreement::confusing;
use formatting::numbers::plural;
use protocol::parameters::{Rotation, Verification};
use protocol::{MemberIndex, SecretKey};
use silo::genesis_outcome;

use super::{Finding, PlaceOrError};
use crate::equipment::Equipment;
use crate::federation::{self, consents_beside, follows};
use crate::identity::{self, IdentityError};
use crate::institution::{
    Configured, Data, Membership, Present, SignatureState, Unsigned, consent_in,
};
use crate::model::{GivenStart, StartError, find_start};
use crate::paths::tidy;
use crate::store;

/// The first agreement: that it is well formed, and that its start follows from it; and the rules of the
/// one in force `now`.
pub(super) fn agreement(first: &Configured, now: &Configured) -> Vec<Finding> {
    let epoch = &first.agreement.epoch;
    let file = tidy(&first.federation);
    let file = file.display();
    let start = match follows(&first.agreement) {
        Ok(said) => Finding::good("agreement", said),
        Err(fault) => {
            let said = fault.to_string();
            let sentence = said.lines().next().unwrap_or_default();
            Finding::bad("agreement", sentence)
                .remedy("ask whoever drafted it for a new invitation, and compare the ids")
                .paste(fault.lines())
        }
    };
    let start = match start_model(first) {
        Some(model) => vec![start, model],
        None => vec![start],
    };
    let well = format!(
        "{file} is well formed, with {} and {}",
        plural(epoch.roster.len(), "member"),
        plural(epoch.protocol.rounds as usize, "round")
    );
    let mut findings = vec![Finding::good("agreement", well)];
    findings.extend(start);
    let epoch = &now.agreement.epoch;
    let rotation = epoch.protocol.rotation;
    if rotation != Rotation::EveryRound {
        let words = federation::rotation(rotation, &epoch.roster);
        findings.push(match rotation {
            Rotation::Fixed => Finding::note("agreement", words).remedy(
                "agree on another `rotation`, such as \"on-failure\", if rounds must continue without it",
            ),
            _ => Finding::good("agreement", words),
        });
    }
    let level = epoch.protocol.verification;
    if level != Verification::Full {
        let words = federation::verification(level, &epoch.roster);
        findings.push(match level {
            Verification::Inclusion => Finding::note("agreement", words).remedy(
                "agree on `verification = \"full\"` unless every member trusts every other",
            ),
            _ => Finding::good("agreement", words),
        });
    }
    if let Some((key, what)) = now.agreement.split_fault() {
        findings.push(
            Finding::bad(
                "agreement",
                format!("the epsilon of this agreement does not hold: `{key}` {what}"),
            )
            .remedy("continue in a new federation, which `rota federation continue` writes"),
        );
    }
    if let Some(line) = federation::undeclared(&now.agreement) {
        // Whoever has signed it runs under it.
        findings.push(
            match first.consent.exists() || store::has_journal(&first.state) {
                true => Finding::note("agreement", line),
                false => Finding::bad("agreement", line).remedy(
                    "nobody signs it: ask whoever drafted it to declare the rows of all members",
                ),
            },
        );
    }
    if epoch.roster.faulty() == 0 {
        findings.push(Finding::note(
            "agreement",
            "a federation of fewer than four members has no protection against a member that breaks the rules",
        ));
    }
    let alike = confusing(epoch.roster.silos()).into_iter();
    findings.extend(alike.map(|why| Finding::note("agreement", why)));
    findings
}

/// The model that the federation starts from, where it is a given one: that it is here, and that the
/// start follows from it.
fn start_model(configured: &Configured) -> Option<Finding> {
    let agreement = &configured.agreement;
    let sought = GivenStart::of(agreement)?;
    let any = MemberIndex(0);
    let found = Equipment::of_family(agreement, any, None).map_err(|error| error.to_string());
    let (given, folder) = (configured.start_model.as_deref(), configured.agreed_in());
    let look = |family: &Equipment| {
        let family = family.plain.learner.layout();
        find_start(&sought, given, &configured.state, folder, &family)
    };
    if let Ok(Err(StartError::Nowhere { .. })) = found.as_ref().map(look)
        && sought.is_fetched()
    {
        return Some(Finding::note(
            "agreement",
            "the start model is not here: the node fetches it from the other members before its first round",
        ));
    }
    let found = found.and_then(|family| {
        let model = look(&family);
        let model = model.map_err(|error| error.to_string())?;
        let warm = Equipment::stand_in(agreement, any, Some(&model));
        let warm = warm.map_err(|error| error.to_string())?;
        let computed = genesis_outcome(&*agreement.strategy, &*warm.equipped, agreement.seed).0;
        match agreement.epoch.protocol.start {
            start if start == computed => Ok(start),
            start => Err(format!(
                "`start` is {start}, and the model gives {computed}"
            )),
        }
    });
    Some(match found {
        Ok(start) => Finding::good(
            "agreement",
            format!("the start model is here and gives {start}"),
        ),
        Err(why) => Finding::bad("agreement", why)
            .remedy("ask for start.safetensors, and put it beside federation.toml"),
    })
}

/// The key: readable, for the owner alone, and a member's.
pub(super) fn key(configured: &Configured, running: bool) -> (Option<SecretKey>, Vec<Finding>) {
    let file = tidy(&configured.identity);
    let file = file.display();
    let key = match identity::read(&configured.identity) {
        Ok(key) => key,
        Err(error) => {
            let remedy = match &error {
                IdentityError::Open(_) => format!(
                    "chmod 600 {file}; if somebody else may have read it, make a new key with `rota \
                     identity new` and ask for a new agreement"
                ),
                IdentityError::File { .. } => format!(
                    "name the right file as `identity` in node.toml, or make a key with `rota identity \
                     new --out {file}`"
                ),
                _ => "name the file that `rota identity new` wrote".into(),
            };
            return (
                None,
                vec![Finding::bad("key", error.to_string()).remedy(remedy)],
            );
        }
    };
    let roster = &configured.agreement.epoch.roster;
    let finding = match roster.position(&key.public()) {
        Some(me) => Finding::good(
            "key",
            format!(
                "{file} is that of {}, and only its owner can read it{}",
                roster.name(me),
                if running {
                    "; this institution's node is running with it"
                } else {
                    ""
                }
            ),
        ),
        None => Finding::bad(
            "key",
            format!("{} in {file} is not in the agreement", key.public()),
        )
        .remedy(
            "use the key file that you made for this federation, or ask to be added with this key",
        ),
    };
    (Some(key), vec![finding])
}

/// The signed consent of this institution, and those of the others that are here.
pub(super) fn consent(
    configured: &Configured,
    key: Option<&SecretKey>,
    standing: Option<&PlaceOrError>,
) -> Vec<Finding> {
    let own = key.zip(standing).map(|(key, standing)| match standing {
        Ok((_, Membership::Member(present))) if present.institution.agreement.epoch.number > 0 => {
            changed(present)
        }
        Ok(_) => first(configured, key),
        Err(why) => Finding::note(
            "consent",
            format!("the agreement in force is unknown: {why}"),
        ),
    });
    let others = consents_beside(&configured.federation, &configured.agreement);
    let problems = others.problems.into_iter();
    let problems = problems.map(|why| Finding::note("consent", format!("does not count: {why}")));
    own.into_iter().chain(problems).collect()
}

/// How to sign.
const SIGN: &str = "rota federation sign --config node.toml";

/// The consent to the first agreement.
fn first(configured: &Configured, key: &SecretKey) -> Finding {
    match consent_in(&configured.consent, &configured.agreement, &key.public()) {
        Ok(consent) => Finding::good(
            "consent",
            format!(
                "{} signed this agreement on {}",
                consent.name,
                consent.time()
            ),
        ),
        Err(error @ Unsigned::Missing(_)) => Finding::bad("consent", error.to_string()),
        Err(error) => Finding::bad("consent", error.to_string()).remedy(SIGN),
    }
}

/// The consent to an agreement that was changed.
fn changed(present: &Present) -> Finding {
    let agreement = &present.institution.agreement;
    let number = agreement.epoch.number;
    match &present.signature {
        SignatureState::Signed(consent) if consent.check(agreement).is_ok() => Finding::good(
            "consent",
            format!(
                "{} signed the agreement in force (change {number}) on {}",
                consent.name,
                consent.time()
            ),
        ),
        SignatureState::Signed(_) | SignatureState::Policy => Finding::good(
            "consent",
            format!(
                "[policy] in node.toml accepts all changes since this institution last signed or approved, up to \
                 change {number}"
            ),
        ),
        SignatureState::Approved => Finding::good(
            "consent",
            format!("this institution approved change {number}, the agreement in force"),
        ),
        SignatureState::Owed(owed) => Finding::bad("consent", owed.line()).remedy(SIGN),
    }
}

/// Permissions on state folder and data. Those of the key are part of its own check.
pub(super) fn permissions(configured: &Configured) -> Vec<Finding> {
    let mut findings = Vec::new();
    let state = &tidy(&configured.state);
    if is_open(state) {
        let text = format!("other users of this machine can read {}", state.display());
        findings.push(Finding::note("permissions", text).remedy(format!(
            "chmod -R go= {}; the node does that when it starts, too",
            state.display()
        )));
    }
    if let Data::Rows(rows) = &configured.data {
        for file in &rows.files {
            let file = tidy(&configured.folder.join(file.path()));
            if is_open(&file) {
                let text = format!("other users of this machine can read {}", file.display());
                findings.push(
                    Finding::note("permissions", text)
                        .remedy(format!("chmod 600 {}", file.display())),
                );
            }
        }
    }
    if findings.is_empty() {
        let what = "no other user of this machine can read the key, the rows or the state";
        findings.push(Finding::good("permissions", what));
    }
    findings
}

/// Returns whether other users can read a file or folder that is there.
#[cfg(unix)]
fn is_open(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// On other systems files inherit the permissions of their folder.
#[cfg(not(unix))]
fn is_open(_: &Path) -> bool {
    false
}
