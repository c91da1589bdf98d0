//! `rota federation add`, `invite`, `show` and `check`: adds members to an agreement, prints it as one
//! line or in words, and checks it.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::federation::{
    addresses, begins, consents_beside, draft_words, own_rows, undeclared, words,
};
use crate::institution::{Configured, Data, Membership, SetupError, agreement_in, standing};
use crate::split_key;
use crate::store::has_journal;
use agreement::{
    Agreement, DeltaDoubt, Draft, InForce, Invitation, Joining, confusing, read_configuration,
};
use formatting::numbers;
use task::data::OwnRows;

use super::added;
use super::answered::{AnsweredRows, add_kept};
use super::rows::Doubts;
use super::{NodeCommandError, wrapped, write};
use crate::cli::{AddMember, CheckAgreement, Invite, NodePlace};
use crate::prompt::Prompt;

/// A line `NAME KEY ADDRESS… --rows N`; the name may have spaces, and quotation marks around it, and the
/// rows may be missing.
///
/// # Errors
/// A clause: what is missing or wrong.
pub fn joining(line: &str) -> Result<Joining, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let key = |word: &&&str| agreement::public_key(word).is_some();
    let at = words
        .iter()
        .position(|word| key(&word))
        .filter(|at| *at > 0);
    let at = at.ok_or("a name and a key of 64 hexadecimal digits are needed")?;
    let rest = &words[at + 1..];
    let (places, rows) = match rest {
        [places @ .., "--rows", rows] => {
            let rows = rows.parse().map_err(|_| "--rows needs a number")?;
            (places, Some(rows))
        }
        places => (places, None),
    };
    let mut all = Vec::new();
    for address in places {
        all.extend(addresses(address)?);
    }
    Ok(Joining {
        rows,
        name: words[..at].join(" ").trim_matches(['\'', '"']).to_owned(),
        key: agreement::public_key(words[at]).ok_or("a key is needed")?,
        addresses: all,
    })
}

/// Writes what the text of an agreement is so far, and what to do next.
///
/// # Errors
/// `out` cannot be written to.
pub fn status(out: &mut impl Write, file: &Path, text: &str) -> io::Result<()> {
    let shown = file.display();
    match Agreement::parse(&shown.to_string(), text) {
        Ok(agreement) => {
            writeln!(out, "federation {:#}", agreement.epoch.federation)?;
            if let Some(line) = undeclared(&agreement) {
                let line = format!("nobody can sign this yet: {line}");
                writeln!(out, "{}", wrapped(&line))?;
            }
            if let Err(why) = begins(&agreement) {
                for line in format!("nobody can sign this yet: {why}").lines() {
                    writeln!(out, "{}", wrapped(line))?;
                }
            }
            let members = numbers::plural(agreement.epoch.roster.len(), "member");
            writeln!(
                out,
                "{members} so far. Add the next with\n  rota federation add NAME KEY ADDRESS --file {shown}\nor, \
                 when all are there, send them the line that this prints, with which they join:\n  rota \
                 federation invite --file {shown}"
            )
        }
        Err(why) => {
            writeln!(out, "not complete yet: {why}")?;
            writeln!(
                out,
                "Every member makes a key with `rota identity new --out identity.key --name NAME \
                 --address HOST:PORT` and sends you the line that it prints. Add it with\n  rota \
                 federation add NAME KEY ADDRESS --file {shown}"
            )
        }
    }
}

/// Adds a member.
pub fn add(options: &AddMember) -> Result<(), NodeCommandError> {
    let members = added::members(&options.member, options.rows)?;
    let file = &options.file;
    let mut text = read_configuration(file)?;
    for member in &members {
        text = Draft::add(&file.display().to_string(), &text, member)?;
    }
    write(file, &text)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let names: Vec<_> = members.iter().map(|member| &*member.name).collect();
    writeln!(out, "added: {}", names.join(", "))?;
    status(&mut out, file, &text)?;
    Ok(out.flush()?)
}

/// Prints an agreement as one line.
pub fn invite(options: &Invite) -> Result<(), NodeCommandError> {
    let (text, in_force) = invited_to(options)?;
    let invitation = Invitation {
        to: options.name.clone(),
        text,
        in_force,
    };
    let token = invitation.token()?;
    if let Some(InForce { changes, .. }) = &invitation.in_force {
        let id = invitation.agreement()?.epoch.federation;
        let whom = options.name.as_deref().unwrap_or("institutions that join");
        eprintln!(
            "the line on standard output is for {whom}: it carries the agreement in force, after {}, of the \
             federation {id:#}. `rota federation join` prints what to send back",
            numbers::plural(*changes as usize, "change")
        );
        return Ok(writeln!(io::stdout().lock(), "{token}")?);
    }
    let hint = match invitation.agreement() {
        Ok(agreement) => {
            begins(&agreement).map_err(|why| {
                NodeCommandError::Failed(format!(
                    "nobody could sign this, so there is no invitation: {why}"
                ))
            })?;
            let silos = agreement.epoch.roster.silos();
            let unknown = |name: &&String| silos.iter().all(|silo| silo.name != **name);
            if let Some(name) = options.name.as_ref().filter(unknown) {
                let names: Vec<_> = silos.iter().map(|silo| &*silo.name).collect();
                eprintln!(
                    "note: {name} is not in the agreement yet; there are {}. `rota federation join` will \
                     print what to send back",
                    names.join(", ")
                );
            }
            format!(
                "the line on standard output is for {}; the federation's id is {:#}",
                options.name.as_deref().unwrap_or("all members"),
                agreement.epoch.federation
            )
        }
        Err(why) => format!("members are still missing ({why}); nobody can sign this yet"),
    };
    eprintln!("{hint}");
    Ok(writeln!(io::stdout().lock(), "{token}")?)
}

/// The text of the first agreement, and the one in force where the federation runs.
fn invited_to(options: &Invite) -> Result<(String, Option<InForce>), NodeCommandError> {
    if let Some(file) = &options.file {
        return Ok((read_configuration(file)?, None));
    }
    let Some(config) = options.node.found()? else {
        return Ok((read_configuration(Path::new("federation.toml"))?, None));
    };
    let configured = Configured::load(&config).map_err(SetupError::from)?;
    let text = read_configuration(&configured.federation)?;
    if !has_journal(&configured.state) {
        return Ok((text, None));
    }
    let (_, place) = standing(configured)?;
    let Membership::Member(present) = place else {
        return Err(NodeCommandError::Failed(format!(
            "the institution of {} is no member of its federation, so it invites nobody",
            config.display()
        )));
    };
    let agreement = &present.institution.agreement;
    if let Some(unfit) = &agreement.unfit {
        return Err(NodeCommandError::Failed(format!(
            "nobody can take part under the agreement in force, so there is nothing to invite to: {}",
            unfit.why
        )));
    }
    let changes = agreement.epoch.number;
    let now = match changes {
        0 => text.clone(),
        _ => agreement.to_toml().map_err(NodeCommandError::Failed)?,
    };
    Ok((text, Some(InForce { changes, text: now })))
}

/// Prints an agreement in words, and who has signed it.
pub fn show(file: &Path) -> Result<(), NodeCommandError> {
    let text = read_configuration(file)?;
    let name = file.display().to_string();
    let mut out = BufWriter::new(io::stdout().lock());
    match Agreement::parse(&name, &text) {
        Ok(agreement) => {
            for line in words(&agreement) {
                writeln!(out, "{}", wrapped(&line))?;
            }
            writeln!(out, "\nSignatures beside this file:")?;
            for line in consents_beside(file, &agreement).lines(&agreement) {
                writeln!(out, "  {line}")?;
            }
        }
        Err(why) => {
            // Not even a draft: the first error is the one to correct.
            let Ok(draft) = Draft::parse(&name, &text) else {
                return Err(SetupError::from(why).into());
            };
            for line in draft_words(&draft) {
                writeln!(out, "{}", wrapped(&line))?;
            }
            writeln!(out, "\nnot complete yet: {why}")?;
        }
    }
    Ok(out.flush()?)
}

/// Checks an agreement, and rows against it.
pub fn check(options: &CheckAgreement) -> Result<(), NodeCommandError> {
    let file = &options.file;
    let agreement = agreement_in(file)?;
    let epoch = &agreement.epoch;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(
        out,
        "{}: {}, {}",
        epoch.protocol.name,
        numbers::plural(epoch.roster.len(), "member"),
        numbers::plural(epoch.protocol.rounds as usize, "round")
    )?;
    writeln!(out, "id {:#}", epoch.federation)?;
    for line in confusing(epoch.roster.silos()) {
        writeln!(out, "{}", wrapped(&format!("warning: {line}")))?;
    }
    let start = begins(&agreement);
    if let Ok(said) = &start {
        writeln!(out, "{said}")?;
    }
    for line in consents_beside(file, &agreement).lines(&agreement) {
        writeln!(out, "{line}")?;
    }
    let doubt = DeltaDoubt::of(epoch);
    if let Some(doubt) = doubt.filter(|doubt| !doubt.is_refused()) {
        writeln!(out, "{}", wrapped(&format!("warning: {doubt}")))?;
    }
    out.flush()?;
    start.map_err(|why| NodeCommandError::Failed(why.to_string()))?;
    let mut key = None;
    let (mut rows, folder): (OwnRows, _) = match (&options.config, options.data.as_slice()) {
        (None, []) => return Ok(()),
        (None, files) => (
            own_rows(files, &options.ignore, options.marks.clone().into())?,
            std::path::PathBuf::new(),
        ),
        (Some(config), _) => {
            let config = NodePlace::at(config).file()?;
            let configured = Configured::load(&config)?;
            let found = configured.agreement.epoch.federation;
            if found != epoch.federation {
                return Err(NodeCommandError::Failed(format!(
                    "{} names another agreement, {found} and not {}",
                    config.display(),
                    epoch.federation
                )));
            }
            if split_key::is_needed(&agreement.task) {
                key = match split_key::read(&configured.identity) {
                    Ok(key) => Some(key),
                    Err(why) => {
                        writeln!(out, "{}", wrapped(&why.to_string()))?;
                        None
                    }
                };
            }
            match configured.data {
                Data::Rows(rows) => (*rows, configured.folder),
                Data::Share { .. } | Data::Program => {
                    writeln!(out, "{} has no rows of its own", config.display())?;
                    return Ok(out.flush()?);
                }
            }
        }
    };
    out.flush()?;
    options.names.add_to(&mut rows.names);
    add_kept(&agreement, &options.keep, &mut rows)?;
    let (mut ask, place) = (Prompt::at_terminal(), (&*folder, key.as_ref()));
    let answered = AnsweredRows::of(&agreement, &rows, None, place, Doubts::Say, ask.as_mut())?;
    let options = answered.options_beside(&rows);
    answered.fits?;
    if !options.is_empty() {
        let line = "Nothing was written. `join` and `sign` write the same answers into node.toml:";
        writeln!(io::stdout().lock(), "{line}\n  {options}")?;
    }
    Ok(())
}
