//! Whether the institutions that an amendment admits have signed what it brings into force.

use agreement::{Agreement, JoinRequest};
use protocol::message::Amendment;
use protocol::roster::Silo;

use formatting::numbers::plain;

/// One line for each institution that the amendment admits to `agreement`, which is in force.
pub fn newcomers(agreement: &Agreement, amendment: &Amendment) -> Vec<String> {
    let roster = agreement.epoch.roster.silos();
    let known = |silo: &Silo| {
        roster
            .iter()
            .any(|old| old.key == silo.key || old.name == silo.name)
    };
    let text = String::from_utf8_lossy(&amendment.text);
    let Ok(new) = Agreement::parse("the amendment", &text) else {
        return Vec::new();
    };
    let line = |silo: &Silo| {
        let name = plain(&silo.name);
        match JoinRequest::of(&text, &silo.key, agreement, &new) {
            Some(Ok(request)) => format!(
                "{name} signed this agreement, with itself as a member, on {}, and states that its rows fit.",
                request.time(),
            ),
            Some(Err(why)) => {
                format!("{name} has not signed this agreement, although the text claims it: {why}")
            }
            None => format!(
                "there is no proof that {name} has signed this agreement: until it has, its node only votes. `rota \
                 federation join` prints the line for `rota federation admit` with which it signs"
            ),
        }
    };
    let new = amendment.silos.iter().filter(|silo| !known(silo));
    new.map(line).collect()
}
