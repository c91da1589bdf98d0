//! `rota federation join` to a federation that runs: an institution signs the agreement in force, with
//! itself in it, before the members admit it.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::federation::{addresses, words};
use agreement::{Agreement, Consent, Invitation, JoinRequest};
use formatting::numbers;
use protocol::{PublicKey, SecretKey};

use super::joining::{JoiningAgreement, keep, own_rows_of, signable_where, unfit};
use super::rows::say;
use super::{NodeCommandError, wrapped};
use crate::cli::{JoinFederation, quoted};

/// How an institution comes to be in the agreement in force.
enum EntryWay {
    /// The institution is in it: the members admitted it, or replaced its key.
    In,
    /// The members have to replace its key.
    Rekey,
    /// The members have to admit it.
    Admit(Vec<String>),
}

/// Signs the agreement in force after this number of changes, and writes the institution's files.
pub(super) fn join(
    options: &JoinFederation,
    invitation: &Invitation,
    key: &SecretKey,
    (changes, now): (u64, &Agreement),
) -> Result<(), NodeCommandError> {
    let first = invitation.agreement().map_err(failed)?;
    if first.epoch.protocol.start != now.epoch.protocol.start {
        return Err(failed(
            "the two agreements in this invitation do not belong together: do not use it, and ask its sender",
        ));
    }
    let (name, way, text) = place(options, invitation, key, now)?;
    let file = format!("the agreement with {name}");
    if let EntryWay::Admit(_) | EntryWay::Rekey = way {
        now.amended(&file, &text, learn::stand_in).map_err(failed)?;
    }
    let signed = Agreement::parse(&file, &text).map_err(failed)?;
    let signed = within(&first, changes, signed);
    let me = signed.epoch.roster.position(&key.public());
    let me = me.ok_or_else(|| failed("the key cannot be a member's"))?;

    show(&signed, changes, &way)?;
    // A member whose key is replaced is in the federation, whatever its agreement is worth.
    signable_where(&signed, !matches!(way, EntryWay::Admit(_)))?;
    let rows = own_rows_of(options)?;
    let joining = JoiningAgreement {
        agreement: &signed,
        text: &invitation.text,
        me,
        again: matches!(way, EntryWay::Rekey) || had_another_key(&first, &name, &key.public()),
    };
    let (joined, fits) = joining.prepare(options, &rows)?;
    let config = joined.config.display().to_string();
    if let Err(why) = fits {
        let again = "join again with the same invitation";
        return Err(unfit(&why, &config, again));
    }
    let at = SystemTime::now();
    let federation = first.epoch.federation;
    let consent = Consent::sign_contents(federation, &signed, key, at)
        .ok_or_else(|| failed("nothing was signed: the clock of this machine is not plausible"))?;
    keep(&consent, &joined.consent, "")?;
    let mut out = io::stdout().lock();
    match way {
        EntryWay::In => {}
        EntryWay::Rekey => {
            let line = "Send the new key to a member, which proposes it (--stolen where somebody else may \
                        have the old one):";
            writeln!(out, "{}", wrapped(line))?;
            let name = quoted(&name);
            writeln!(
                out,
                "  rota federation rekey {name} {} --lost",
                key.public()
            )?;
        }
        EntryWay::Admit(addresses) => {
            let contents = signed.contents();
            let contents = contents.ok_or_else(|| failed("the agreement has no contents"))?;
            let since = at.duration_since(UNIX_EPOCH);
            let request = JoinRequest {
                name,
                key: key.public(),
                addresses,
                rows: options.rows,
                federation,
                contents,
                at: since.map_or(0, |since| since.as_secs()),
            };
            let line = "Send this line to whoever invited you: a member proposes with it to admit this \
                        institution, and sees that it has signed and that its rows fit.";
            writeln!(out, "{}", wrapped(line))?;
            writeln!(out, "  rota federation admit {}", request.token(key))?;
        }
    }
    Ok(next(&mut out, &config)?)
}

/// Prints the agreement that is signed, in words.
fn show(signed: &Agreement, changes: u64, way: &EntryWay) -> Result<(), NodeCommandError> {
    let after = match changes {
        0 => String::new(),
        changes => format!(", after {}", numbers::plural(changes as usize, "change")),
    };
    let with = match way {
        EntryWay::In => "",
        EntryWay::Rekey => ", with this key",
        EntryWay::Admit(_) => ", with this institution in it",
    };
    let header = format!("This federation runs. Its agreement in force{after}{with}:");
    say(&[header, String::new()])?;
    say(&words(signed))
}

/// Prints what the institution does next.
fn next(out: &mut impl Write, config: &str) -> io::Result<()> {
    writeln!(out, "Next:")?;
    writeln!(out, "  rota check --config {config}")?;
    writeln!(out, "  rota run --config {config} --wait-for-admission")?;
    let line = "The node has to run while the members decide: they approve only an institution whose node \
                has answered them. If the agreement is changed otherwise before that, the node says so, and \
                contributes after `rota federation sign`.";
    writeln!(out, "{}", wrapped(line))
}

/// The institution's name, how it comes to be in the agreement, and the text of that one.
fn place(
    options: &JoinFederation,
    invitation: &Invitation,
    key: &SecretKey,
    now: &Agreement,
) -> Result<(String, EntryWay, String), NodeCommandError> {
    let public = key.public();
    let roster = &now.epoch.roster;
    let (name, way, text) = match roster.position(&public) {
        Some(me) => {
            let text = now.to_toml().map_err(failed)?;
            (roster.name(me).to_owned(), EntryWay::In, text)
        }
        None => {
            let name = options.name.as_ref().or(invitation.to.as_ref());
            let name = name.cloned().ok_or_else(|| {
                NodeCommandError::Usage(
                    "--name NAME is missing: the name that this institution is to have in the federation"
                        .into(),
                )
            })?;
            if roster.silos().iter().any(|silo| silo.name == name) {
                let text = now.rekeyed(&name, public).map_err(failed)?;
                (name, EntryWay::Rekey, text)
            } else {
                let mut all = Vec::new();
                for address in &options.address {
                    all.extend(addresses(address).map_err(NodeCommandError::Usage)?);
                }
                let text = now.admitting(&name, public, options.rows, all.clone());
                (name, EntryWay::Admit(all), text.map_err(failed)?)
            }
        }
    };
    match invitation.to.as_ref().filter(|to| **to != name) {
        Some(to) => Err(NodeCommandError::Usage(format!(
            "this invitation is for {to}, and the key or --name is that of {name}: use the key of {to}, or \
             the invitation for {name}"
        ))),
        None => Ok((name, way, text)),
    }
}

/// Returns whether the first agreement has an institution of this name with another key, which the members replaced.
fn had_another_key(first: &Agreement, name: &str, key: &PublicKey) -> bool {
    let mut founders = first.epoch.roster.silos().iter();
    founders.any(|silo| silo.name == name && silo.key != *key)
}

/// The agreement as one of the federation of `first`, behind this number of changes.
fn within(first: &Agreement, changes: u64, agreement: Agreement) -> Agreement {
    let mut epoch = (*agreement.epoch).clone();
    (epoch.federation, epoch.number) = (first.epoch.federation, changes);
    Agreement {
        epoch: Arc::new(epoch),
        ..agreement
    }
}

fn failed(error: impl std::fmt::Display) -> NodeCommandError {
    NodeCommandError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::North;

    #[test]
    fn a_founder_with_a_new_key_has_held_out_rows_before() {
        let first = North::agreement(&[]);
        let [north, other] = [0, 1].map(|at| first.epoch.roster.silos()[at].clone());
        assert!(!had_another_key(&first, &north.name, &north.key));
        assert!(had_another_key(&first, &north.name, &other.key));
        assert!(!had_another_key(&first, "newcomer", &other.key));
    }
}
