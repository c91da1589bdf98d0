//! `rota federation print`: the agreement in force as a page to print.

use std::io::{self, Write};
use std::time::SystemTime;

use crate::chain::{FinalChain, Who};
use crate::clock;
use crate::federation::print::{Printed, page};
use crate::federation::{OwnSide, consents_beside};
use crate::institution::{Configured, Membership, SetupError, SignatureState, standing};
use crate::store::has_journal;

use super::{NodeCommandError, quietly, vacant, write};
use crate::cli::PrintAgreement;

/// Writes the page.
pub(crate) fn run(options: &PrintAgreement) -> Result<(), NodeCommandError> {
    vacant(&options.out, options.force)?;
    let config = options.node.file()?;
    let configured = Configured::load(&config).map_err(SetupError::from)?;
    let (state, federation) = (configured.state.clone(), configured.federation.clone());
    let beside = consents_beside(&federation, &configured.agreement);
    let (_, place) = standing(configured)?;
    let Membership::Member(present) = place else {
        return Err(NodeCommandError::Failed(format!(
            "the institution of {} is no member of its federation",
            config.display()
        )));
    };
    let agreement = &present.institution.agreement;
    let chain = has_journal(&state)
        .then(|| quietly(|| FinalChain::read(&state, Some(&federation))))
        .transpose()?;
    let now = clock::to_second(SystemTime::now());
    let consents = match agreement.epoch.number {
        0 => beside.lines(agreement),
        _ => Vec::new(),
    };
    let own = OwnSide {
        spending: Some(present.spending()),
        ..OwnSide::default()
    };
    let name = agreement.epoch.roster.name(present.institution.me);
    let text = page(&Printed {
        agreement,
        me: present.institution.me,
        own: &own,
        consent: &consent(&present.signature, name, chain.as_ref()),
        uncounted: present.institution.site.uncounted(agreement).as_deref(),
        consents: &consents,
        chain: chain.as_ref(),
        date: now.get(..10).unwrap_or(&now),
        config: &config,
    });
    write(&options.out, &text)?;
    let line = format!("written: {}", options.out.display());
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}

/// Returns how the institution of this name stands to the agreement, in a sentence without a full stop.
fn consent(signature: &SignatureState, name: &str, chain: Option<&FinalChain>) -> String {
    match signature {
        SignatureState::Signed(consent) => format!("signed on {}", consent.time()),
        SignatureState::Approved => {
            let changes = chain.map_or(&[][..], |chain| &chain.blocks).iter();
            let last = changes.rev().find(|link| link.change.is_some());
            let own = |by: &Who| *by == Who::Name(name.to_owned());
            let late = last.is_some_and(|link| !link.approved.iter().any(own));
            let late = match late {
                true => ", after the quorum that its block names",
                false => "",
            };
            format!("approved the change that brought this agreement into force{late}")
        }
        SignatureState::Policy => {
            "signed or approved an earlier agreement, and its policy lets the changes since then \
                                   continue"
                .into()
        }
        SignatureState::Owed(owed) => owed.line(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::ChainLink;

    fn chain(approved: &[&str]) -> FinalChain {
        let who = |name: &&str| Who::Name((*name).to_owned());
        let mut chain = FinalChain::default();
        chain.blocks.push(ChainLink {
            change: Some(vec!["200 rounds".into()]),
            approved: approved.iter().map(who).collect(),
            ..ChainLink::default()
        });
        chain
    }

    #[test]
    fn approvals_of_a_change_after_its_quorum_are_printed_as_such() {
        let said = |by: &[&str]| consent(&SignatureState::Approved, "north", Some(&chain(by)));
        assert!(said(&["south", "north"]).ends_with("into force"));
        assert!(said(&["south", "east"]).ends_with("after the quorum that its block names"));
    }
}
