//! Check that the institutions that an amendment admits have signed what it brings into force.

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
    let Ok(new) = Agreement::parse_kept("the amendment", &text) else {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::fixture::{North, key};

    #[test]
    fn a_request_of_the_year_10000_is_unreadable_with_its_author() {
        let agreement = North::agreement(&[]);
        let newcomer = key(77);
        let bare = agreement.admitting("archive", newcomer.public(), Some(40), Vec::new());
        let bare = bare.unwrap();
        let dated = |at| {
            let request = JoinRequest {
                name: "archive".into(),
                key: newcomer.public(),
                addresses: Vec::new(),
                rows: Some(40),
                federation: agreement.epoch.federation,
                contents: North::read(&bare).contents().unwrap(),
                at,
            };
            let text = JoinRequest::beside(&bare, &request.token(&newcomer));
            let amendment = agreement.amended("f.toml", &text, learn::stand_in).unwrap();
            newcomers(&agreement, &amendment).concat()
        };
        assert!(dated(1_772_366_400).contains("on 2026-03-01T12:00:00Z"));
        for at in [253_402_300_800, u64::MAX] {
            let said = dated(at);
            assert!(
                said.starts_with("archive has not signed this agreement"),
                "{said}"
            );
            assert!(said.contains("after the year 9999"), "{said}");
        }
    }
}
