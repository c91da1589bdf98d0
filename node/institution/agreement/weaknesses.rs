//! Weaknesses of an agreement in force, as a node reports them when it starts.

use agreement::{Agreement, DeltaDoubt, confusing};
use protocol::MemberIndex;

use crate::events::NodeEvent;
use crate::federation::{beyond, undeclared};

/// A roster too small to tolerate a Byzantine member, names that people would confuse, a large δ, members that may
/// claim any number of rows, and own training rows, of which there are `own`, that are more than was
/// declared; each with its event.
pub(in crate::institution) fn weaknesses(
    agreement: &Agreement,
    me: MemberIndex,
    own: u64,
) -> Vec<(NodeEvent, String)> {
    let roster = &agreement.epoch.roster;
    let small = match roster.len() {
        1 => Some(
            "this federation has one member: it learns alone, and no other member checks its work",
        ),
        2 => Some(
            "with 2 members this federation has no protection against a Byzantine member, and no round becomes \
             final while one of the two is down",
        ),
        3 => Some(
            "with 3 members this federation has no protection against a Byzantine member, and \
             no round becomes final while two of them are down",
        ),
        _ => None,
    };
    let small = small.map(str::to_owned).into_iter();
    let delta = DeltaDoubt::of(&agreement.epoch).map(|doubt| doubt.to_string());
    let roster = small.chain(confusing(roster.silos())).chain(delta);
    let rows = undeclared(agreement).into_iter();
    let rows = rows.chain(beyond(agreement, me, own));
    let roster = roster.map(|why| (NodeEvent::Weakness { why: why.clone() }, why));
    let rows = rows.map(|why| (NodeEvent::Rows { why: why.clone() }, why));
    roster.chain(rows).collect()
}
