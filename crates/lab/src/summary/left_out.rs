//! The members that rounds were finished without, although they had contributed or were about to.

use std::collections::BTreeMap;

use protocol::roster::Roster;
use protocol::{MemberIndex, Report};

use super::LeftOutMembers;

/// Reason for which a round is without a member that its lead did not name: it closed before the member's model
/// was there.
const CLOSED: &str = "its model arrived after the lead had closed the round, or the lead did not wait for it \
                      because it was absent in the round before";

/// Reason for which a round is without a member whose model its lead had.
const UNKEPT: &str = "the lead had signed a receipt for its model, and left it out";

/// Whom the leads left out, in the order of rounds, and why.
pub(super) fn left_out<'a>(
    reports: impl Iterator<Item = (MemberIndex, &'a Report)>,
    roster: &Roster,
) -> Vec<LeftOutMembers> {
    let name = |member: MemberIndex| roster.name(member).to_owned();
    let mut finals = BTreeMap::new();
    let (mut named, mut late) = (Vec::new(), Vec::new());
    for (by, report) in reports {
        match report {
            Report::Final {
                round, view, lead, ..
            } => {
                finals.insert(*round, (*view, *lead));
            }
            Report::Late { round, .. } => late.push((*round, by, CLOSED)),
            Report::ReceiptUnkept { round, .. } => late.push((*round, by, UNKEPT)),
            Report::LeftOut {
                view,
                round,
                members,
                reason,
            } => named.push(LeftOutMembers {
                round: *round,
                view: *view,
                lead: name(by),
                members: members.iter().map(|&member| name(member)).collect(),
                reason: reason.to_string(),
            }),
            _ => {}
        }
    }
    let known = |round: u64, member: &String| {
        let mut named = named.iter().filter(|left| left.round == round);
        named.any(|left| left.members.contains(member))
    };
    let mut closed = BTreeMap::<(u64, &str), Vec<String>>::new();
    for (round, by, why) in late {
        let member = name(by);
        if !known(round, &member) {
            closed.entry((round, why)).or_default().push(member);
        }
    }
    let unnamed = closed.into_iter().filter_map(|((round, why), members)| {
        let &(view, lead) = finals.get(&round)?;
        Some(LeftOutMembers {
            round,
            view,
            lead: name(lead),
            members,
            reason: why.into(),
        })
    });
    let mut all: Vec<LeftOutMembers> = unnamed.collect();
    all.splice(0..0, named);
    all.sort_by_key(|left| left.round);
    all
}
