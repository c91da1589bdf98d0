//! `rota federation join` and `sign`: takes part in a federation, and signs its agreement.

use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::federation::{OwnSide, addresses, draft_words, words_for};
use crate::identity;
use crate::institution::{Configured, Data, Membership, SetupError, standing};
use crate::model::GivenStart;
use crate::store::snapshot;
use agreement::{Agreement, ConfigError, Consent, Invitation};
use formatting::numbers;
use protocol::{PublicKey, SecretKey};
use task::data::OwnRows;
use task::file;

use super::answered::{AnsweredRows, add_kept};
use super::counted::LedgerPlan;
use super::joining::{
    JoiningAgreement, SigningSecret, consents, keep, keep_signed, own_rows_of, signable_where,
    unfit,
};
use super::names::write_names;
use super::refused::say_refused;
use super::rows::{Doubts, say};
use super::{NodeCommandError, earlier, identity::line, newcomer, write};
use crate::cli::{JoinFederation, SignAgreement};
use crate::prompt::Prompt;

/// Writes the files of a new member, and signs the agreement.
pub(crate) fn join(options: &JoinFederation) -> Result<(), NodeCommandError> {
    let invitation = invitation(&options.invitation)?;
    let key = identity::read(&options.identity)?;
    let public = key.public();
    let agreement = match invitation.agreement() {
        Ok(agreement) => agreement,
        Err(why) => return Err(too_early(options, &invitation, &public, &why)?),
    };
    // One that runs is joined through a change of its agreement, unless a founder is late.
    let founder = |changes: u64| changes == 0 && agreement.epoch.roster.position(&public).is_some();
    let in_force = invitation
        .agreement_in_force()
        .map_err(SetupError::from)?
        .filter(|(changes, _)| !founder(*changes));
    if let Some((changes, now)) = in_force {
        return newcomer::join(options, &invitation, &key, (changes, &now));
    }
    let roster = &agreement.epoch.roster;
    let Some(me) = roster.position(&public) else {
        return Err(stranger(options, &invitation, &public));
    };
    let name = roster.name(me).to_owned();
    if let Some(to) = invitation.to.as_ref().filter(|to| **to != name) {
        return Err(NodeCommandError::Usage(format!(
            "this invitation is for {to}, and the key in {} is that of {name}: use the key of {to}, or \
             the invitation for {name}",
            options.identity.display()
        )));
    }
    let rows = own_rows_of(options)?;
    say(&words_for(&agreement, &OwnSide::of_founder(&agreement)))?;
    signable_where(&agreement, invitation.in_force.is_some())?;
    let joining = JoiningAgreement {
        agreement: &agreement,
        text: &invitation.text,
        me,
        again: false,
    };
    let (joined, fits) = joining.prepare(options, &rows)?;
    let config = joined.config.display();
    if let Err(why) = fits {
        let again = format!("rota federation sign --config {config}");
        return Err(unfit(&why, &config.to_string(), &again));
    }
    signed(&agreement, &key, &joined.consent)?;
    let mut out = io::stdout().lock();
    if GivenStart::of(&agreement).is_some_and(|start| !start.is_fetched()) {
        writeln!(
            out,
            "This federation starts from a model: put the file start.safetensors, which you get with the \
             invitation, beside {}",
            joined.federation.display()
        )?;
    }
    writeln!(out, "Next:")?;
    writeln!(out, "  rota check --config {config}")?;
    Ok(writeln!(out, "  rota run --config {config}")?)
}

/// Signs the agreement in force: the one that `node.toml` names, until it is changed.
pub(crate) fn sign(options: &SignAgreement) -> Result<(), NodeCommandError> {
    let config = options.node.file()?;
    let configured = Configured::load(&config).map_err(SetupError::from)?;
    let federation = configured.federation.clone();
    let (first, place) = standing(configured)?;
    let Membership::Member(present) = place else {
        return Err(NodeCommandError::Present(
            SetupError::NotAMember {
                key: first.key.public(),
                identity: first.configured.identity,
                federation,
            }
            .into(),
        ));
    };
    let own = OwnSide {
        spending: Some(present.spending()),
        ..OwnSide::default()
    };
    let institution = &present.institution;
    let agreement = &institution.agreement;
    let changes = agreement.epoch.number;
    let name = agreement.epoch.roster.name(institution.me);
    if let Some(unfit) = &agreement.unfit {
        return Err(NodeCommandError::Failed(format!(
            "nobody can take part under the agreement in force, so there is nothing to sign: {}. \
             `rota federation change` proposes a correction",
            unfit.why
        )));
    }
    if changes > 0 {
        let line = format!(
            "The agreement in force, after {}:",
            numbers::plural(changes as usize, "change")
        );
        say(&[line, String::new()])?;
    }
    say(&words_for(agreement, &own))?;
    // A federation that runs goes on, although its bound may not hold. A node that only tried to start has noted
    // nothing.
    let runs = snapshot(&institution.state).is_ok_and(|state| !state.records.is_empty());
    signable_where(agreement, runs || changes > 0)?;
    let mut drawn = None;
    let (mut train, mut profile) = (None, None);
    let mut rows = match &institution.data {
        Data::Rows(rows) => {
            let mut rows = (**rows).clone();
            add_names(agreement, options, &mut rows)?;
            Some(rows)
        }
        Data::Share { .. } | Data::Program => None,
    };
    if let Some(rows) = &mut rows {
        let secret = drawn.insert(SigningSecret::of(agreement, &institution.identity, runs)?);
        let place = (&*institution.folder, secret.key());
        let mut ask = Prompt::at_terminal();
        let (name, doubts) = (Some(name), Doubts::Say);
        let answered = AnsweredRows::of(agreement, rows, name, place, doubts, ask.as_mut())?;
        *rows = answered.rows;
        let fit = answered.fits.map_err(|why| {
            NodeCommandError::Failed(format!(
                "{why}. Nothing was signed. Correct the file, or translate names and codes in \
                 [data.rows.names] of {}, or with the options above",
                config.display()
            ))
        })?;
        profile = Some(fit.profile);
        if let Some(few) = institution.site.few_rows(agreement, fit.split.train as u64) {
            say(&[format!("note: {few}")])?;
        }
        train = Some(fit.split.train as u64);
    }
    earlier::compare(institution)?;
    let ledger = LedgerPlan::of_node(&config, &present, &options.counted)?;
    if !consents(options.yes, name)? {
        return Err(NodeCommandError::Failed("nothing was signed".into()));
    }
    if let Some(secret) = drawn {
        secret.keep()?;
    }
    let reads = rows.as_ref().map(|rows| write_names(&config, rows));
    let reads_anew = reads.transpose()?.unwrap_or_default();
    let named = ledger.named_in(&config)?;
    ledger.carry_out()?;
    if let Some(text) = named {
        write(&config, &text)?;
    }
    if let Some(profile) = &profile {
        keep_signed(&institution.state, profile)?;
    }
    let names = rows.as_ref().map(|rows| &rows.names);
    say_refused(&config, (agreement, institution.me), train, names)?;
    let file = first.consent_file(changes);
    signed(agreement, &institution.key, &file)?;
    let line = match ledger {
        LedgerPlan::Keep if reads_anew && runs => {
            "Its node reads the rows so when it starts: start it again if it runs."
        }
        LedgerPlan::Keep if changes == 0 => return Ok(()),
        LedgerPlan::Keep => "Its node contributes under this agreement, at once if it runs.",
        _ => "Its node looks for the ledger when it starts: start it again if it runs.",
    };
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}

/// Adds the names and answers of the options to those of `node.toml`.
fn add_names(
    agreement: &Agreement,
    options: &SignAgreement,
    rows: &mut OwnRows,
) -> Result<(), NodeCommandError> {
    let names = &mut rows.names;
    let new = options.ignore.iter();
    let new = new.filter(|name| !names.ignore.contains(name)).cloned();
    let new: Vec<String> = new.collect();
    names.ignore.extend(new);
    options.names.add_to(names);
    add_kept(agreement, &options.keep, rows)
}

/// The invitation in an argument: a token, a file with one, `federation.toml`, or `-`.
fn invitation(argument: &str) -> Result<Invitation, NodeCommandError> {
    let path = Path::new(argument);
    let text = match argument {
        "-" => file::read_text_from(io::stdin().lock(), file::CONFIGURATION)?,
        // A token may be longer than a path can be.
        _ if argument.len() < 4096 && path.is_file() => agreement::read_configuration(path)?,
        token => return Ok(Invitation::read(token)?),
    };
    // It may stand in a mail.
    if text.trim_start().starts_with("rota-") || text.contains("rota-invite-") {
        return Ok(Invitation::read(&text)?);
    }
    let agreement = Agreement::parse(argument, &text);
    agreement.map_err(SetupError::from)?;
    Ok(Invitation {
        to: None,
        text,
        in_force: None,
    })
}

/// Returns what a member whose key nobody knows has to send back, and why it cannot join.
fn stranger(
    options: &JoinFederation,
    invitation: &Invitation,
    key: &PublicKey,
) -> NodeCommandError {
    let back = match back(options, invitation, key) {
        Ok(back) => back,
        Err(error) => return error,
    };
    NodeCommandError::Failed(format!(
        "the key in {} is not in this agreement. If it is to be, send this line to whoever invited you, \
         and join with the invitation that comes back:\n{back}",
        options.identity.display()
    ))
}

/// The line `NAME KEY ADDRESS`, with `--rows N` behind it where they are given.
fn back(
    options: &JoinFederation,
    invitation: &Invitation,
    key: &PublicKey,
) -> Result<String, NodeCommandError> {
    for address in &options.address {
        addresses(address).map_err(NodeCommandError::Usage)?;
    }
    let name = options.name.as_ref().or(invitation.to.as_ref());
    let name = name.map_or("NAME", String::as_str);
    let mut all = options.address.clone();
    if all.is_empty() {
        all.push("ADDRESS".into());
    }
    Ok(line(name, key, &all, options.rows))
}

/// The answer to an invitation whose members are not complete yet: shows what stands already.
fn too_early(
    options: &JoinFederation,
    invitation: &Invitation,
    key: &PublicKey,
    why: &ConfigError,
) -> Result<NodeCommandError, NodeCommandError> {
    let draft = agreement::Draft::parse("the invitation", &invitation.text)?;
    say(&draft_words(&draft))?;
    Ok(if draft.members.iter().any(|member| member.key == *key) {
        NodeCommandError::Failed(format!(
            "members are missing in this agreement, so it cannot be signed yet: wait for the next \
             invitation ({why})"
        ))
    } else {
        stranger(options, invitation, key)
    })
}

/// Signs, and says where the consent is.
fn signed(agreement: &Agreement, key: &SecretKey, file: &Path) -> Result<(), NodeCommandError> {
    let Some(consent) = Consent::sign(agreement, key, SystemTime::now()) else {
        let why = "the clock of this machine is not plausible, or the key is not in the agreement";
        return Err(NodeCommandError::Failed(format!(
            "nothing was signed: {why}"
        )));
    };
    let next = match agreement.epoch.number {
        0 => ". Send that file to whoever drafted the agreement",
        _ => "",
    };
    keep(&consent, file, next)
}
