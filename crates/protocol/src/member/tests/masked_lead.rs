//! Single steps of the lead of a masked round, with all their effects.

use super::masked::{group, mask, masked};
use super::masked_one::{
    inclusions, key_list, keys, list, manifest, manifest_of, prepare, two_groups,
};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use super::toy::vector;
use crate::evidence::Evidence;
use crate::message::{Content, MaskedManifest, MaskedRound, MaskedVector, Phase, Proposal};
use crate::parameters::Epoch;
use crate::parameters::privacy::{Circle, Voids};
use crate::refusal::Omission;

fn checks_keys(one: &One, from: MemberIndex) -> Effect {
    let (round, keys) = (1, keys(one, from).public);
    Effect::Work(Request::CheckKeys { round, keys, from })
}

fn keys_checked(one: &mut One, from: MemberIndex) -> Vec<Effect> {
    let (round, result) = (1, Ok(()));
    one.step(Input::Done(Answer::KeysChecked {
        round,
        from,
        result,
    }))
}

/// A lead of view 1 that has its own keys.
fn leading(epoch: Arc<Epoch>) -> One {
    leading_after(epoch, &Voids::default())
}

/// The same after these void sums.
pub(super) fn leading_after(epoch: Arc<Epoch>, voids: &Voids) -> One {
    let me = epoch.lead(1);
    let mut one = One::of(epoch, me);
    one.plan_with(|plan| plan.voids = voids.clone());
    prepare(&mut one);
    keys_checked(&mut one, me);
    one
}

/// Takes the keys of these members, and gives the last effects.
pub(super) fn take_keys(one: &mut One, some: &[MemberIndex]) -> Vec<Effect> {
    let mut last = Vec::new();
    for &by in some {
        let body = Body::Keys(keys(one, by));
        assert_eq!(one.hear(by, 1, 0, body), [checks_keys(one, by)]);
        last = keys_checked(one, by);
    }
    last
}

/// A lead that has sent the list of all members.
fn gathering(epoch: Arc<Epoch>) -> One {
    let mut one = leading(epoch);
    let others = one.others();
    take_keys(&mut one, &others);
    one
}

/// A manifest of one vector.
fn alone(by: MemberIndex, vector: MaskedVector) -> MaskedManifest {
    MaskedManifest {
        list: vector.list,
        entries: vec![vector.entry(by)],
    }
}

fn verifies_one(one: &One, by: MemberIndex, members: &[MemberIndex]) -> Effect {
    let list = list(one, members);
    let manifest = Arc::new(alone(by, vector(by.at(), list.root)));
    Effect::Work(Request::Verify {
        list,
        manifest,
        holders: vec![by],
    })
}

/// The vector of a member for a list of these comes, the own one from its work.
fn hear_vector(one: &mut One, by: MemberIndex, members: &[MemberIndex]) -> Vec<Effect> {
    let list = list(one, members).root;
    let vector = vector(by.at(), list);
    if by == one.me {
        let result = Ok(vector);
        return one.step(Input::Done(Answer::Masked { list, result }));
    }
    one.hear(by, 1, 0, Body::MaskedVector(vector))
}

/// What was found of the vector of a member.
fn verified(
    one: &mut One,
    by: MemberIndex,
    members: &[MemberIndex],
    result: Result<(), crate::effects::WorkError>,
) -> Vec<Effect> {
    let list = list(one, members).root;
    let manifest = alone(by, vector(by.at(), list)).root();
    one.step(Input::Done(Answer::Verified { manifest, result }))
}

/// Takes the right vectors of these members, and gives the last effects.
fn take_vectors(one: &mut One, some: &[MemberIndex]) -> Vec<Effect> {
    let (all, mut last) = (one.all(), Vec::new());
    for &by in some {
        assert_eq!(hear_vector(one, by, &all), [verifies_one(one, by, &all)]);
        last = verified(one, by, &all, Ok(()));
    }
    last
}

/// A lead that has sent the manifest of all members and has signed for it.
fn sealing(epoch: Arc<Epoch>) -> One {
    let mut one = gathering(epoch);
    let all = one.all();
    take_vectors(&mut one, &all);
    let (manifest, result) = (manifest(&one).root(), Ok(()));
    one.step(Input::Done(Answer::Verified { manifest, result }));
    one
}

fn includes(one: &mut One, by: MemberIndex, manifest: Hash) -> Vec<Effect> {
    one.hear(by, 1, 0, Body::Inclusion { manifest })
}

#[test]
fn the_list_of_all_that_are_ready_then_the_sheet_and_the_block_follow_the_last_answers() {
    let mut one = leading(masked(4, 5));
    let (all, others) = (one.all(), one.others());
    let receipt = |one: &One, to: MemberIndex| {
        let entry = keys(one, to).id(&one.epoch.federation, 1, to);
        one.sends(to, 0, 1, Body::Receipt { entry })
    };
    let listed = take_keys(&mut one, &others);
    let named: Vec<_> = (0..4).map(|i| (format!("silo {i}"), 1)).collect();
    let expected = [
        receipt(&one, others[2]),
        one.publishes(1, 1, Body::KeyList(key_list(&one, &all))),
        one.leading_report(1, Phase::Masking),
        Effect::Persist(Record::Circle(Circle(named))),
        Effect::Work(Request::Mask {
            list: list(&one, &all),
        }),
    ];
    assert_eq!(listed, expected);
    let last = take_vectors(&mut one, &all);
    let own = Effect::Work(Request::Verify {
        list: list(&one, &all),
        manifest: Arc::new(manifest(&one)),
        holders: others.clone(),
    });
    let expected = [
        one.publishes(1, 1, Body::MaskedManifest(manifest(&one))),
        one.leading_report(1, Phase::Including),
        own,
    ];
    assert_eq!(last, expected);
    let (root, result) = (manifest(&one).root(), Ok(()));
    let verified = Answer::Verified {
        manifest: root,
        result,
    };
    assert_eq!(one.step(Input::Done(verified)), []);
    assert_eq!(includes(&mut one, others[0], root), []);
    assert_eq!(includes(&mut one, others[1], root), []);
    let round = MaskedRound {
        round: 1,
        plan: plan(),
        state: one.epoch.protocol.start,
        list: list(&one, &all).root,
        ready: all,
        manifest: root,
        inclusions: inclusions(&one, &manifest(&one), 1),
    };
    let proposal = Proposal {
        block: one.block(1, one.epoch.id, Content::Masked(round)),
        parent: None,
        skipped: Vec::new(),
    };
    let expected = one.proposes(1, &proposal);
    let effects = includes(&mut one, others[2], root);
    assert_eq!(effects[..2], expected);
}

#[test]
fn two_vectors_for_one_list_are_evidence_and_the_first_counts() {
    let mut one = gathering(masked(4, 5));
    let (all, by) = (one.all(), one.others()[0]);
    let (list, checks) = (list(&one, &all).root, verifies_one(&one, by, &all));
    assert_eq!(hear_vector(&mut one, by, &all), [checks]);
    // The same one again is none.
    assert_eq!(hear_vector(&mut one, by, &all), []);
    let (first, second) = (vector(by.at(), list), vector(99, list));
    let signed = |vector| one.sealed(by, 1, 0, Body::MaskedVector(vector)).0;
    let expected = one.accuses(&signed(first), &signed(second));
    let heard = one.hear(by, 1, 0, Body::MaskedVector(second));
    assert_eq!(heard, expected);
    verified(&mut one, by, &all, Ok(()));
    let rest: Vec<_> = all.iter().copied().filter(|of| *of != by).collect();
    let last = take_vectors(&mut one, &rest);
    let manifest = one.publishes(1, 1, Body::MaskedManifest(manifest(&one)));
    assert_eq!(last.first(), Some(&manifest));
}

#[test]
fn vectors_for_two_lists_and_two_outcomes_of_two_blocks_are_no_evidence() {
    let one = gathering(masked(4, 5));
    let (by, list) = (one.others()[0], list(&one, &one.all()).root);
    let of = |list| {
        let vector = Body::MaskedVector(vector(by.at(), list));
        one.sealed(by, 1, 0, vector).0
    };
    assert_eq!(Evidence::of(&of(list), &of(Hash([1; 32]))), None);
    let vote = |block: u8, outcome: u8| {
        let (block, outcome) = (Hash([block; 32]), Hash([outcome; 32]));
        one.sealed(by, 0, 1, Body::Outcome { block, outcome }).0
    };
    assert_eq!(Evidence::of(&vote(1, 1), &vote(2, 2)), None);
    assert!(Evidence::of(&vote(1, 1), &vote(1, 2)).is_some());
}

#[test]
fn two_contributions_of_keys_are_evidence() {
    let mut one = leading(masked(4, 5));
    let by = one.others()[0];
    take_keys(&mut one, &[by]);
    let second = crate::message::Keys {
        public: super::toy::public(9, 9),
        ..keys(&one, by)
    };
    let signed = |keys| one.sealed(by, 1, 0, Body::Keys(keys)).0;
    let (first, other) = (signed(keys(&one, by)), signed(second));
    let reason = "two different contributions in round 1".into();
    let mut expected = vec![refused(by, 1, Refusal::Contradiction(reason))];
    expected.extend(one.accuses(&first, &other));
    assert_eq!(one.hear(by, 1, 0, Body::Keys(second)), expected);
}

#[test]
fn vectors_for_other_lists_and_of_members_that_are_no_authors_are_not_looked_at() {
    let mut one = leading(two_groups());
    // One of the other group is not ready.
    let other = if one.me.at() < 3 { 3..7 } else { 0..3 };
    let [silent, holder, ..] = other.map(MemberIndex).collect::<Vec<_>>()[..] else {
        panic!("a group has more than two members")
    };
    let ready = one.without(silent);
    let rest: Vec<_> = ready.iter().copied().filter(|by| *by != one.me).collect();
    take_keys(&mut one, &rest);
    one.pass(20_000);
    assert_eq!(hear_vector(&mut one, holder, &ready), []);
    let group = if one.me.at() < 3 { 0..3 } else { 3..7 };
    let mut group = group.map(MemberIndex);
    let author = group.find(|by| *by != one.me).unwrap();
    let false_list = Body::MaskedVector(vector(author.at(), Hash([1; 32])));
    assert_eq!(one.hear(author, 1, 0, false_list), []);
    let checks = verifies_one(&one, author, &ready);
    assert_eq!(hear_vector(&mut one, author, &ready), [checks]);
}

#[test]
fn signatures_for_other_sheets_and_of_members_that_are_no_authors_do_not_count() {
    let mut one = sealing(masked(4, 5));
    let (root, others) = (manifest(&one).root(), one.others());
    assert_eq!(includes(&mut one, others[0], Hash([1; 32])), []);
    assert_eq!(includes(&mut one, others[1], root), []);
    assert_eq!(includes(&mut one, others[2], root), []);
    // Only now all have signed.
    assert!(!includes(&mut one, others[0], root).is_empty());
}

#[test]
fn authors_that_do_not_sign_for_the_sheet_are_not_in_the_next_list() {
    let mut one = sealing(two_groups());
    let (root, group) = (manifest(&one).root(), one.me.at() < 3);
    let silent = MemberIndex(if group { 3 } else { 0 });
    for by in one.others().into_iter().filter(|by| *by != silent) {
        assert_eq!(includes(&mut one, by, root), []);
    }
    let effects = one.pass(60_000);
    let ready = one.without(silent);
    let next = one.publishes(1, 1, Body::KeyList(key_list(&one, &ready)));
    assert!(effects.contains(&next), "{effects:?}");
}

#[test]
fn a_signature_of_a_member_without_a_vector_is_not_in_the_block() {
    let epoch = epoch_with(7, 5, |protocol| {
        mask(protocol, 7, vec![group(0..3)]);
    });
    let mut one = gathering(epoch);
    let all = one.all();
    let (mine, me) = (one.me.at() < 3, one.me);
    let authors: Vec<_> = (0..3).map(MemberIndex).collect();
    take_vectors(&mut one, &authors);
    let manifest = manifest_of(&one, &all);
    let (root, result) = (manifest.root(), Ok(()));
    if mine {
        let verified = Answer::Verified {
            manifest: root,
            result,
        };
        one.step(Input::Done(verified));
    }
    let holder = one.others().into_iter().find(|by| by.at() >= 3).unwrap();
    assert_eq!(includes(&mut one, holder, root), []);
    let mut last = Vec::new();
    for by in authors.into_iter().filter(|by| *by != me) {
        last = includes(&mut one, by, root);
    }
    let proposed = last.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Proposed(message)) => Some(message.body.clone()),
        _ => None,
    });
    let Some(Body::Proposal(proposal)) = proposed else {
        panic!("the block is proposed: {last:?}")
    };
    let masked = proposal.block.masked().unwrap();
    assert_eq!(masked.inclusions, inclusions(&one, &manifest, 1));
}

/// Sixteen members in five groups. In every list a vector of another group is wrong.
#[test]
fn a_lead_makes_four_lists_in_a_view_and_votes_against_it_then() {
    let groups = || (0..5).map(|at| group(3 * at..3 * at + 3)).collect();
    let mut one = gathering(epoch_with(16, 5, |protocol| mask(protocol, 16, groups())));
    let own = (one.me.0 / 3) % 5;
    let mut ready = one.all();
    let others = (0..5).filter(|at| *at != own);
    for (nth, at) in others.enumerate() {
        let wrong = MemberIndex(3 * at);
        let sums = list(&one, &ready);
        let authors = sums.sums.iter().flat_map(|sum| &sum.authors);
        let authors: Vec<_> = authors.map(|(by, _)| *by).collect();
        let mut last = Vec::new();
        for by in authors {
            hear_vector(&mut one, by, &ready);
            let result = match by == wrong {
                true => Err(no("a transcript is wrong")),
                false => Ok(()),
            };
            last = verified(&mut one, by, &ready, result);
        }
        if nth == 3 {
            let (missing, reason) = (1, Omission::Vector);
            let reason = Refusal::TooFewLeft { missing, reason };
            last.extend(one.pass(60_000));
            let against = Effect::Report(Report::Nullifying { view: 1, reason });
            assert!(last.contains(&against), "{last:?}");
            return;
        }
        ready.retain(|by| *by != wrong);
        let next = one.publishes(1, 1, Body::KeyList(key_list(&one, &ready)));
        assert!(last.contains(&next), "list {}: {last:?}", nth + 2);
    }
}
