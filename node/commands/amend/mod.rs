//! `rota federation change`, `ask`, `answers`, `admit`, `evict`, `leave`, `rekey`, `approve`, `withdraw` and `changes`:
//! changes of the agreement while the federation runs.

mod answer_page;
mod answers;
mod show;

use std::io::{self, Write};
use std::time::SystemTime;

use crate::answers::answered;
use crate::federation::{addresses, examined, tried};
use crate::institution::short_id::{shown, typed};
use crate::institution::{
    AmendmentFolder, AmendmentWord, FoundAmendments, Institution, KnownAmendment, Owed,
    present_and_contributed,
};
use agreement::{Agreement, JoinRequest, read_configuration};
use protocol::PublicKey;
use protocol::message::Amendment;

use super::{NodeCommandError, wrapped};
use crate::cli::{Amend, Here, NodePlace};
use crate::prompt::Prompt;
use crate::spending::ContributionHistory;

/// Carries out one of the subcommands.
pub(crate) fn amend(options: &Amend) -> Result<(), NodeCommandError> {
    match options {
        Amend::Change { file, here } => {
            let standing = AgreementInForce::of(&here.node)?;
            let text = read_configuration(file)?;
            let amendment = standing.amended(&file.display().to_string(), &text)?;
            let new =
                examined(&standing.agreement, &amendment).map_err(NodeCommandError::Failed)?;
            if standing.agreement.difference(&new).is_empty() {
                return Err(NodeCommandError::Failed(format!(
                    "{} has the same contents as the agreement in force, so nothing was proposed",
                    file.display()
                )));
            }
            standing.propose(amendment, here)
        }
        Amend::Admit {
            name,
            key,
            address,
            rows,
            here,
        } => {
            let standing = AgreementInForce::of(&here.node)?;
            let text = standing.admitting(name, *key, address, *rows)?;
            standing.propose_text(text, here)
        }
        Amend::Ask { question, here } => {
            let asked = crate::answers::file::read(question);
            let asked = asked.map_err(|error| NodeCommandError::Usage(error.to_string()))?;
            let standing = AgreementInForce::of(&here.node)?;
            let agreement = &standing.agreement;
            if let Some(number) = answered(&standing.institution.state, agreement, &asked) {
                return Err(failed(format!(
                    "what is asked is the answer to question {number}, which is stored: `rota federation answers` prints \
                     it, and nothing was proposed"
                )));
            }
            let text = agreement.asking(asked).map_err(failed)?;
            standing.propose_text(text, here)
        }
        Amend::Answers {
            json,
            csv,
            html,
            export,
            question,
            node,
        } => {
            let standing = AgreementInForce::of(node)?;
            let institution = &standing.institution;
            let found = answers::found(&institution.state, &standing.agreement)?;
            if let Some(page) = html {
                answer_page::write_page(page, &found)?;
            }
            if let Some(file) = export {
                answers::export(&found, file, *question)?;
            }
            answers::print(&found, (*json, *csv))
        }
        Amend::Evict { name, here } => {
            let standing = AgreementInForce::of(&here.node)?;
            let text = standing.agreement.without(name);
            standing.propose_text(text.map_err(failed)?, here)
        }
        Amend::Rekey {
            name,
            key,
            stolen,
            here,
            ..
        } => {
            let standing = AgreementInForce::of(&here.node)?;
            let text = standing.agreement.rekeyed(name, *key).map_err(failed)?;
            let mut amendment = standing.amended("the amended agreement", &text)?;
            if *stolen {
                let silos = standing.agreement.epoch.roster.silos().iter();
                let old = silos.filter(|silo| silo.name == *name);
                amendment.stolen = old.map(|silo| silo.key).collect();
            }
            standing.propose(amendment, here)
        }
        Amend::Leave { here } => {
            let standing = AgreementInForce::of(&here.node)?;
            let amendment = standing.agreement.leaving(standing.institution.me);
            standing.propose(amendment, here)
        }
        Amend::Approve { id, text, here } => {
            AgreementInForce::of(&here.node)?.approve(id, *text, here)
        }
        Amend::Withdraw { id, here } => AgreementInForce::of(&here.node)?.withdraw(id, here),
        Amend::Changes { text, node } => AgreementInForce::of(node)?.changes(*text),
    }
}

fn failed(error: impl std::fmt::Display) -> NodeCommandError {
    NodeCommandError::Failed(error.to_string())
}

/// An institution, the agreement in force, and what is known of changes.
struct AgreementInForce {
    institution: Institution,
    agreement: Agreement,
    amendments: AmendmentFolder,
    found: FoundAmendments,
    /// The rounds to which it contributed.
    contributed: Option<ContributionHistory>,
    /// The signature that the institution owes to the agreement in force.
    owed: Option<Box<Owed>>,
}

impl AgreementInForce {
    /// Of the member with this configuration, by its journal; the node may be running.
    fn of(node: &NodePlace) -> Result<Self, NodeCommandError> {
        let (institution, contributed, owed) = present_and_contributed(&node.file()?)?;
        let amendments = AmendmentFolder::of(&institution.state);
        Ok(Self {
            found: amendments.found(),
            amendments,
            agreement: institution.agreement.clone(),
            institution,
            contributed,
            owed,
        })
    }

    /// The text of the agreement with another institution: the one whose request `name` is, or one of
    /// this name with the key, the addresses and the rows given.
    fn admitting(
        &self,
        name: &str,
        key: Option<PublicKey>,
        address: &[String],
        rows: Option<u64>,
    ) -> Result<String, NodeCommandError> {
        match (JoinRequest::is_meant(name), key) {
            (true, None) if address.is_empty() && rows.is_none() => self.requested(name),
            (true, _) => Err(NodeCommandError::Usage(
                "a request has key, address and rows itself: give nothing after it".into(),
            )),
            (false, None) => Err(NodeCommandError::Usage(format!(
                "the key of {name} is missing: give the line that it sends (`rota federation \
                 join` prints it), or its name, key and address"
            ))),
            (false, Some(key)) => {
                let mut all = Vec::new();
                for address in address {
                    all.extend(addresses(address).map_err(NodeCommandError::Usage)?);
                }
                let text = self.agreement.admitting(name, key, rows, all);
                text.map_err(failed)
            }
        }
    }

    /// The text of the agreement with the institution that sent this line, and the line.
    fn requested(&self, line: &str) -> Result<String, NodeCommandError> {
        let request = JoinRequest::read(line).map_err(failed)?;
        let text = request.text(&self.agreement).map_err(failed)?;
        Ok(JoinRequest::beside(&text, line))
    }

    /// The institution's name.
    fn name(&self) -> &str {
        self.agreement.epoch.roster.name(self.institution.me)
    }

    fn amended(&self, file: &str, text: &str) -> Result<Amendment, NodeCommandError> {
        self.agreement
            .amended(file, text, learn::stand_in)
            .map_err(failed)
    }

    fn propose_text(&self, text: String, here: &Here) -> Result<(), NodeCommandError> {
        let amendment = self.amended("the amended agreement", &text)?;
        self.propose(amendment, here)
    }

    /// Approves an amendment of one's own, after showing it.
    fn propose(&self, amendment: Amendment, here: &Here) -> Result<(), NodeCommandError> {
        let epoch = &self.agreement.epoch;
        amendment.check(epoch).map_err(failed)?;
        let known = KnownAmendment {
            epoch: epoch.id,
            needed: amendment.needed(epoch) as u64,
            approved: Vec::new(),
            amendment,
        };
        self.approve_known(&known, false, (here, "Propose it"))
    }

    /// The amendments of the agreement in force that are known, those with a word of this institution
    /// among them.
    fn known(&self) -> Vec<KnownAmendment> {
        self.found.of(&self.agreement.epoch)
    }

    /// The known amendment that somebody typed the id of.
    fn find(&self, id: &str) -> Result<KnownAmendment, NodeCommandError> {
        let known = self.known();
        let hash = typed(id, known.iter().map(KnownAmendment::hash)).map_err(|why| {
            NodeCommandError::Failed(format!(
                "the amendment {why}; `rota federation changes` prints the changes of the agreement in \
                 force that this node knows"
            ))
        })?;
        let mut known = known.into_iter();
        let found = known.find(|known| known.hash() == hash);
        found.ok_or_else(|| failed("the amendment is not known any more"))
    }

    fn approve(&self, id: &str, text: bool, here: &Here) -> Result<(), NodeCommandError> {
        self.approve_known(&self.find(id)?, text, (here, "Approve it"))
    }

    /// Approves an amendment, after showing it: what was shown is what is signed.
    fn approve_known(
        &self,
        known: &KnownAmendment,
        text: bool,
        (here, question): (&Here, &str),
    ) -> Result<(), NodeCommandError> {
        self.print(known, text)?;
        if let Some(why) = known.unspoken() {
            return Err(NodeCommandError::Failed(why));
        }
        self.try_out(&known.amendment)?;
        if !agreed(here, question)? {
            return Ok(());
        }
        self.amendments.keep(known).map_err(failed)?;
        self.say(known, true)?;
        let mut out = io::stdout().lock();
        let id = shown(&known.hash());
        let line = format!(
            "{} approves the amendment {id}; its node sends the approval to the others when it runs. Until the \
             change is final, `rota federation withdraw {id}` takes it back.",
            self.name()
        );
        writeln!(out, "{}", wrapped(&line))?;
        if known.needed > 1 {
            writeln!(out, "{}", wrapped(&self.approvals(known, &id)))?;
        }
        if let Some(owed) = &self.owed {
            let line = format!("This approval is no signature: {}.", owed.line());
            writeln!(out, "{}", wrapped(&line))?;
        }
        Ok(())
    }

    /// Returns how many approvals there are with that of this institution, and what happens next.
    fn approvals(&self, known: &KnownAmendment, id: &str) -> String {
        let KnownAmendment {
            approved, needed, ..
        } = known;
        let others = approved.iter().filter(|by| **by != self.institution.me);
        let have = others.count() as u64 + 1;
        let epoch = &self.agreement.epoch;
        let mut unheard = known.unheard(epoch);
        unheard.retain(|name| *name != self.name());
        let certified = match epoch.protocol.privacy.masked() {
            Some(_) => ", once the outcome of the last round is certified",
            None => "",
        };
        let connected = match known.amendment.new_keys(epoch).is_empty() {
            true => "",
            false => " after every node with a new key has connected",
        };
        let waits = format!("{connected}{certified}");
        what_follows((have, *needed), &unheard, id, &waits)
    }

    /// Fails if no institution may accept the amendment, or this one's node could not live under it.
    fn try_out(&self, amendment: &Amendment) -> Result<(), NodeCommandError> {
        let new = examined(&self.agreement, amendment).map_err(NodeCommandError::Failed)?;
        let wrong = tried(&self.institution, &new);
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(NodeCommandError::Failed(format!(
                "this institution's node could not run under the new agreement, so it was not approved: {}",
                wrong.join("; ")
            )))
        }
    }

    /// Keeps what this institution says to an amendment, where its node finds it.
    fn say(&self, known: &KnownAmendment, stands: bool) -> Result<(), NodeCommandError> {
        let about = (known.epoch, &known.amendment);
        let word = AmendmentWord::after(&self.found.words, about, stands, SystemTime::now());
        self.amendments.say(&word).map_err(failed)
    }

    fn withdraw(&self, id: &str, here: &Here) -> Result<(), NodeCommandError> {
        let known = self.find(id)?;
        let hash = known.hash();
        let (word, id) = (self.found.word(&hash), shown(&hash));
        if !word.map_or(known.approved.contains(&self.institution.me), |word| {
            word.stands
        }) {
            return Err(NodeCommandError::Failed(format!(
                "{} does not approve the amendment {id}, so there is nothing to withdraw",
                self.name()
            )));
        }
        self.print(&known, false)?;
        if !agreed(here, "Withdraw the approval")? {
            return Ok(());
        }
        self.say(&known, false)?;
        let line = format!(
            "{} withdraws its approval of the amendment {id}; its node sends that to the others when it runs. If \
             the change is final already, or becomes final before that, it stays in force, and only another change \
             undoes it. `rota federation approve {id}` approves it again.",
            self.name()
        );
        Ok(writeln!(io::stdout().lock(), "{}", wrapped(&line))?)
    }
}

/// Returns the next step when so many of the needed institutions approve, and those in `unheard`, whose approval is
/// needed too, do not. `waits` is what the change waits for once it is approved.
fn what_follows((have, needed): (u64, u64), unheard: &[&str], id: &str, waits: &str) -> String {
    let missing = match unheard {
        [] if have >= needed => {
            return format!(
                "{have} of {needed} approvals: the change takes effect with one of the next blocks{waits}."
            );
        }
        [] => String::new(),
        unheard => format!("; {} {}", show::UNHEARD, unheard.join(", ")),
    };
    format!(
        "{have} of {needed} approvals so far{missing}. The others see the change with `rota federation changes` and \
         approve it with `rota federation approve {id}`."
    )
}

/// Returns whether to go on.
pub(crate) fn agreed(here: &Here, question: &str) -> Result<bool, NodeCommandError> {
    if here.yes {
        return Ok(true);
    }
    let mut ask = Prompt::at_terminal().ok_or_else(|| {
        let why = "nobody can be asked here: read the lines above and add --yes";
        NodeCommandError::Usage(why.into())
    })?;
    Ok(ask.says_yes(&format!("{question} for this institution?"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_the_last_approval_none_is_asked_for() {
        let said = |have, unheard: &[&str]| what_follows((have, 3), unheard, "ab12", " soon");
        let open = "2 of 3 approvals so far. The others see the change with";
        assert!(said(2, &[]).starts_with(open));
        for have in [3, 4] {
            let said = said(have, &[]);
            assert!(said.ends_with("takes effect with one of the next blocks soon."));
            assert!(!said.contains("so far") && !said.contains("approve "));
        }
        let said = said(3, &["north"]);
        assert!(
            said.contains("so far; ") && said.contains(" north."),
            "{said}"
        );
    }
}
