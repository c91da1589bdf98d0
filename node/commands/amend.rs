//! `rota federation change`, `admit`, `evict`, `leave`, `rekey`, `approve` and `changes`: changes of
//! the agreement while the federation runs.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use rota::agreement::{Agreement, read_configuration};
use rota::federation::{addresses, recomputed};
use rota::institution::{Amendments, Institution, KnownAmendment, present};
use rota::protocol::message::Amendment;

use super::{CommandError, wrapped};
use crate::cli::{Amend, Here};

/// Carries out one of the subcommands.
pub(crate) fn amend(options: &Amend) -> Result<(), CommandError> {
    match options {
        Amend::Change { file, here } => {
            let standing = Standing::of(&here.config)?;
            let text = read_configuration(file)?;
            let amendment = standing.amended(&file.display().to_string(), &text)?;
            standing.propose(amendment, here)
        }
        Amend::Admit {
            name,
            key,
            address,
            rows,
            here,
        } => {
            let standing = Standing::of(&here.config)?;
            let mut all = Vec::new();
            for address in address {
                all.extend(addresses(address).map_err(CommandError::Usage)?);
            }
            let text = standing.agreement.admitting(name, *key, *rows, all);
            standing.propose_text(text.map_err(failed)?, here)
        }
        Amend::Evict { name, here } => {
            let standing = Standing::of(&here.config)?;
            let text = standing.agreement.without(name);
            standing.propose_text(text.map_err(failed)?, here)
        }
        Amend::Rekey { name, key, here } => {
            let standing = Standing::of(&here.config)?;
            let text = standing.agreement.rekeyed(name, *key);
            standing.propose_text(text.map_err(failed)?, here)
        }
        Amend::Leave { here } => {
            let standing = Standing::of(&here.config)?;
            let amendment = standing.agreement.leaving(standing.institution.me);
            standing.propose(amendment, here)
        }
        Amend::Approve { id, here } => approve(id, here),
        Amend::Changes { config } => changes(config),
    }
}

fn failed(error: impl std::fmt::Display) -> CommandError {
    CommandError::Failed(error.to_string())
}

/// An institution, the agreement in force, and its folder of amendments.
struct Standing {
    institution: Institution,
    agreement: Agreement,
    amendments: Amendments,
}

impl Standing {
    /// Of the member with this configuration, by its journal; the node may be running.
    fn of(config: &Path) -> Result<Self, CommandError> {
        let institution = present(config)?;
        Ok(Self {
            amendments: Amendments::of(&institution.state),
            agreement: institution.agreement.clone(),
            institution,
        })
    }

    fn amended(&self, file: &str, text: &str) -> Result<Amendment, CommandError> {
        let amendment = self.agreement.amended(file, text).map_err(failed)?;
        // Options of the strategy may change, but not what it starts from.
        let new = Agreement::parse(file, text).map_err(failed)?;
        recomputed(&new).map_err(CommandError::Failed)?;
        Ok(amendment)
    }

    fn propose_text(&self, text: String, here: &Here) -> Result<(), CommandError> {
        let amendment = self.amended("the amended agreement", &text)?;
        self.propose(amendment, here)
    }

    /// Approves an amendment of one's own, after showing it.
    fn propose(&self, amendment: Amendment, here: &Here) -> Result<(), CommandError> {
        let epoch = &self.agreement.epoch;
        amendment.check(epoch).map_err(failed)?;
        let known = KnownAmendment {
            epoch: epoch.id,
            needed: amendment.needed(epoch) as u64,
            approved: Vec::new(),
            amendment,
        };
        let mut out = BufWriter::new(io::stdout().lock());
        self.show(&mut out, &known)?;
        out.flush()?;
        if !agreed(here, "Propose it")? {
            return Ok(());
        }
        self.amendments.keep(&known)?;
        self.approve(&known)
    }

    fn approve(&self, known: &KnownAmendment) -> Result<(), CommandError> {
        if let Some(why) = known.unspoken() {
            return Err(CommandError::Failed(why));
        }
        self.amendments.approve(&known.id())?;
        let mut out = io::stdout().lock();
        let id = known.id();
        writeln!(
            out,
            "{} approves the amendment {id}; its node tells the others while it runs.",
            self.institution
                .agreement
                .epoch
                .roster
                .name(self.institution.me)
        )?;
        if known.needed > 1 {
            let line = format!(
                "It needs {} approvals. The others see it with `rota federation changes` and approve it \
                 with `rota federation approve {id}`.",
                known.needed
            );
            writeln!(out, "{}", wrapped(&line))?;
        }
        Ok(())
    }

    /// Prints what an amendment changes.
    fn show(&self, out: &mut impl Write, known: &KnownAmendment) -> Result<(), CommandError> {
        writeln!(out, "amendment {}", known.id())?;
        // Its text may be one that only newer programs read.
        let lines = match known.unspoken() {
            Some(why) => vec![why],
            None => known.lines(&self.agreement).map_err(CommandError::Failed)?,
        };
        if lines.is_empty() {
            writeln!(out, "  nothing that is shown in words changes")?;
        }
        for line in lines {
            writeln!(out, "  {line}")?;
        }
        let roster = &self.agreement.epoch.roster;
        let names: Vec<_> = known.approved.iter().map(|by| roster.name(*by)).collect();
        let by = match names.is_empty() {
            true => "nobody yet, as far as this node knows".to_owned(),
            false => names.join(", "),
        };
        Ok(writeln!(
            out,
            "  approved by {by}; {} needed",
            known.needed
        )?)
    }
}

/// Whether to go on.
pub(crate) fn agreed(here: &Here, question: &str) -> Result<bool, CommandError> {
    if here.yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(CommandError::Usage(
            "nobody can be asked here: read the lines above and add --yes".into(),
        ));
    }
    let mut out = io::stderr().lock();
    write!(out, "{question} for this institution? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn approve(id: &str, here: &Here) -> Result<(), CommandError> {
    let standing = Standing::of(&here.config)?;
    let now = standing.agreement.epoch.id;
    let known = standing.amendments.known().into_iter();
    let mut found = known.filter(|known| known.epoch == now && known.id().starts_with(id));
    let (Some(known), None) = (found.next(), found.next()) else {
        return Err(CommandError::Failed(format!(
            "this node knows no amendment {id} of the agreement in force; `rota federation changes` \
             prints those that it knows"
        )));
    };
    let mut out = BufWriter::new(io::stdout().lock());
    standing.show(&mut out, &known)?;
    out.flush()?;
    drop(out);
    match agreed(here, "Approve it")? {
        true => standing.approve(&known),
        false => Ok(()),
    }
}

fn changes(config: &Path) -> Result<(), CommandError> {
    let standing = Standing::of(config)?;
    let epoch = &standing.agreement.epoch;
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(
        out,
        "{}: {} of the agreement so far",
        epoch.charter.name,
        rota::report::numbers::plural(epoch.number as usize, "change")
    )?;
    let approved = standing.amendments.approved();
    let known = standing.amendments.known().into_iter();
    let known: Vec<_> = known.filter(|known| known.epoch == epoch.id).collect();
    if known.is_empty() {
        writeln!(out, "no amendment is proposed")?;
    }
    for known in known {
        standing.show(&mut out, &known)?;
        let own = match approved.contains(&known.id()) {
            true => "  approved here".to_owned(),
            false => format!(
                "  not approved here: rota federation approve {}",
                known.id()
            ),
        };
        writeln!(out, "{own}")?;
    }
    Ok(out.flush()?)
}
