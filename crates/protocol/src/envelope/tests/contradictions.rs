//! Kinds of messages that bind their sender, and what contradicts them.

use super::*;
use crate::evidence::Evidence;
use crate::message::Message;

/// A message of member 2 in the first round or view.
fn message(epoch: &Epoch, body: Body) -> Message {
    let scope = body.kind().scope();
    let (round, view) = (u64::from(scope.round), u64::from(scope.view));
    sign(epoch, &key(2), round, view, MemberIndex(2), body).0
}

#[test]
fn every_kind_that_binds_can_be_contradicted_and_no_other() {
    let epoch = epoch("a");
    let (one, other) = (Hash::of(b"one"), Hash::of(b"other"));
    let contradiction = |one: &Body, other: &Body| {
        let (one, other) = (one.clone(), other.clone());
        Evidence::of(&message(&epoch, one), &message(&epoch, other))
    };
    let finalize = Body::Finalize { block: one };
    let both = bodies(&epoch, one).into_iter().zip(bodies(&epoch, other));
    for (one, other) in both {
        let kind = one.kind();
        let found = contradiction(&one, &other).or_else(|| contradiction(&one, &finalize));
        assert_eq!(
            found.is_some(),
            kind.binds(),
            "{kind:?}: see `shows_conflict`"
        );
        // The words for the last pair are those for every kind that has none of its own.
        let last = found.is_some_and(|found| found.kind() == "nullify-and-finalize");
        assert_eq!(
            last,
            kind == Kind::Nullify,
            "{kind:?}: see `charge` and `kind`"
        );
    }
}
