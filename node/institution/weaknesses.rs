//! What an agreement in force does not protect its members against, as a node says it when it starts.

use agreement::confusing;
use protocol::Epoch;

/// A roster too small to tolerate a Byzantine member, and names that people would confuse.
pub(super) fn weaknesses(epoch: &Epoch) -> Vec<String> {
    let small = match epoch.roster.len() {
        1 => Some(
            "this federation has one member: it learns alone, and no other member checks its work",
        ),
        2 => Some(
            "with 2 members this federation has no protection against a Byzantine member, and \
             no round becomes final while one of the two is down",
        ),
        3 => Some(
            "with 3 members this federation has no protection against a Byzantine member, and \
             no round becomes final while two of them are down",
        ),
        _ => None,
    };
    let small = small.map(str::to_owned).into_iter();
    small.chain(confusing(epoch.roster.silos())).collect()
}
