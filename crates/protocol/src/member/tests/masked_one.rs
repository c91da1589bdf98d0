//! Single steps of one member in masked rounds, with all their effects.

use super::masked::{group, mask, masked};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use super::toy::{public, vector};
use crate::effects::{MaskedList, WorkError};
use crate::member::rounds::masked::answering::authors;
use crate::message::{
    Content, KeyList, Keys, ListDocument, MaskedManifest, MaskedRound, Proposal, Ready,
};
use crate::parameters::Epoch;
use crate::parameters::privacy::{Circle, Voids, threshold};

/// A member that has contributed its keys to the first round, and does not lead soon.
fn contributed(epoch: Arc<Epoch>) -> One {
    let me = epoch.lead(0);
    contributed_by(epoch, me)
}

/// This member, once it has contributed its keys to the first round.
pub(super) fn contributed_by(epoch: Arc<Epoch>, me: MemberIndex) -> One {
    let mut one = One::of(epoch, me);
    one.plan();
    prepare(&mut one);
    one
}

pub(super) fn follower(n: u16) -> One {
    contributed(masked(n, 5))
}

/// Seven members in two groups, so that a list can lack some.
pub(super) fn two_groups() -> Arc<Epoch> {
    let groups = || vec![group(0..3), group(3..7)];
    epoch_with(7, 5, |protocol| mask(protocol, 7, groups()))
}

fn of_two_groups() -> One {
    contributed(two_groups())
}

pub(super) fn prepare(one: &mut One) -> Vec<Effect> {
    let round = one.member.round();
    let result = Ok(public(one.me.at(), round));
    one.step(Input::Done(Answer::Prepared { round, result }))
}

pub(super) fn keys(one: &One, member: MemberIndex) -> Keys {
    Keys {
        plan: plan(),
        public: public(member.at(), one.member.round()),
    }
}

pub(super) fn ready(one: &One, member: MemberIndex, keys: Keys) -> Ready {
    let signature = one
        .sealed(member, one.member.round(), 0, Body::Keys(keys))
        .0
        .signature;
    Ready {
        member,
        keys,
        signature,
    }
}

pub(super) fn key_list(one: &One, members: &[MemberIndex]) -> KeyList {
    let ready = members
        .iter()
        .map(|&member| ready(one, member, keys(one, member)));
    KeyList {
        ready: ready.collect(),
    }
}

/// What a member makes of a list of these members.
pub(super) fn list(one: &One, members: &[MemberIndex]) -> Arc<MaskedList> {
    list_after(one, &Voids::default(), members)
}

/// What a member makes of a list of these members after these void sums.
pub(super) fn list_after(one: &One, voids: &Voids, members: &[MemberIndex]) -> Arc<MaskedList> {
    let (epoch, round) = (&one.epoch, one.member.round());
    let masked = epoch.protocol.privacy.masked().unwrap();
    let (keys, sums) = (
        key_list(one, members),
        masked.sums(voids, &epoch.roster, members),
    );
    let document = ListDocument {
        federation: epoch.federation,
        epoch: epoch.id,
        round,
        plan: plan(),
        state: epoch.protocol.start,
        keys,
        sums,
    };
    let threshold = threshold(&epoch.roster, members.len());
    Arc::new(MaskedList::new(document, threshold))
}

/// The manifest of all vectors for a list of all members.
pub(super) fn manifest(one: &One) -> MaskedManifest {
    manifest_of(one, &one.all())
}

/// The manifest of all vectors for a list of these members.
pub(super) fn manifest_of(one: &One, members: &[MemberIndex]) -> MaskedManifest {
    let list = list(one, members);
    let authors = authors(&list).into_iter();
    let entries = authors.map(|by| vector(by.at(), list.root).entry(by));
    MaskedManifest {
        list: list.root,
        entries: entries.collect(),
    }
}

/// Signatures of all authors of a manifest of a round.
pub(super) fn inclusions(one: &One, manifest: &MaskedManifest, round: u64) -> Inclusions {
    let root = manifest.root();
    let signed = manifest.authors().map(|by| {
        let body = Body::Inclusion { manifest: root };
        (by, one.sealed(by, round, 0, body).0.signature)
    });
    signed.collect()
}

/// A proposal of a masked round of all members.
pub(super) fn proposal(one: &One, change: impl FnOnce(&mut MaskedRound)) -> Proposal {
    proposal_of(one, &one.all(), change)
}

/// A proposal of a masked round of these members.
pub(super) fn proposal_of(
    one: &One,
    members: &[MemberIndex],
    change: impl FnOnce(&mut MaskedRound),
) -> Proposal {
    let manifest = manifest_of(one, members);
    let mut round = MaskedRound {
        round: one.member.round(),
        plan: plan(),
        state: one.epoch.protocol.start,
        list: manifest.list,
        ready: members.to_vec(),
        manifest: manifest.root(),
        inclusions: inclusions(one, &manifest, one.member.round()),
    };
    change(&mut round);
    Proposal {
        block: one.block(1, one.epoch.id, Content::Masked(round)),
        parent: None,
        skipped: Vec::new(),
    }
}

/// A member of n that has answered the list of all members.
pub(super) fn answered(n: u16) -> One {
    let mut one = follower(n);
    one.hear_lead(1, Body::KeyList(key_list(&one, &one.all())));
    let list = list(&one, &one.all()).root;
    let result = Ok(vector(one.me.at(), list));
    one.step(Input::Done(Answer::Masked { list, result }));
    one
}

/// A member of n that has answered the list of all members, and knows the manifest.
pub(super) fn listed(n: u16) -> One {
    let mut one = answered(n);
    one.hear_lead(1, Body::MaskedManifest(manifest(&one)));
    one
}

/// A member of n as after `listed`, with all vectors here and right.
pub(super) fn signed(n: u16) -> One {
    let mut one = listed(n);
    let (manifest, result) = (manifest(&one).root(), Ok(()));
    one.step(Input::Done(Answer::Verified { manifest, result }));
    one
}

#[test]
fn keys_are_durable_before_they_are_sent_to_the_lead() {
    let epoch = masked(4, 5);
    let me = epoch.lead(0);
    let mut one = One::of(epoch, me);
    let round = 1;
    let prepares = Effect::Work(Request::Prepare { round });
    assert_eq!(one.plan(), [prepares]);
    let body = Body::Keys(keys(&one, one.me));
    let (message, _) = one.sealed(one.me, round, 0, body.clone());
    let blob = keys(&one, one.me).id(&one.epoch.federation, round, one.me);
    let expected = [
        Effect::Persist(Record::Contributed(message)),
        Effect::Report(Report::Contributed { round, blob }),
        one.sends(one.epoch.lead(1), round, 0, body),
    ];
    assert_eq!(prepare(&mut one), expected);
}

#[test]
fn a_vector_is_masked_once_for_each_list_and_the_sum_is_durable_before() {
    let mut one = follower(4);
    let (body, all) = (
        Body::KeyList(key_list(&one, &one.all())),
        list(&one, &one.all()),
    );
    let named: Vec<_> = (0..4).map(|i| (format!("silo {i}"), 1)).collect();
    let expected = [
        Effect::Persist(Record::Circle(Circle(named))),
        Effect::Work(Request::Mask { list: all.clone() }),
    ];
    assert_eq!(one.hear_lead(1, body.clone()), expected);
    assert_eq!(one.hear_lead(1, body.clone()), []);
    let masked = vector(one.me.at(), all.root);
    let sends = one.sends(one.epoch.lead(1), 1, 0, Body::MaskedVector(masked));
    let (list, result) = (all.root, Ok(masked));
    let done = one.step(Input::Done(Answer::Masked { list, result }));
    assert_eq!(done, [sends.clone()]);
    // Asked again, it sends the same again.
    assert_eq!(one.hear_lead(1, body), [sends]);
}

#[test]
fn a_sheet_is_signed_once_all_vectors_are_here_and_right() {
    let mut one = listed(4);
    let root = manifest(&one).root();
    let verifies = Effect::Work(Request::Verify {
        list: list(&one, &one.all()),
        manifest: Arc::new(manifest(&one)),
        holders: one.holders(1),
    });
    // It stalls, and is asked for again after a heartbeat.
    let (manifest, result) = (root, Err(WorkError::Unavailable));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { manifest, result })),
        []
    );
    one.at(1000);
    let again = Body::MaskedManifest(self::manifest(&one));
    assert_eq!(one.hear_lead(1, again), [verifies]);
    let result = Ok(());
    let signs = one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { manifest });
    assert_eq!(
        one.step(Input::Done(Answer::Verified { manifest, result })),
        [signs]
    );
}

#[test]
fn a_masked_round_is_voted_for_once_its_vectors_are_here_and_right() {
    let mut one = listed(4);
    let proposal = proposal(&one, |_| {});
    assert_eq!(one.propose(1, &proposal), []);
    let (manifest, result) = (manifest(&one).root(), Ok(()));
    let mut expected = vec![one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { manifest })];
    expected.extend(one.notarizes(&proposal.block, CHECKED));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { manifest, result })),
        expected
    );
}

#[test]
pub(super) fn a_masked_round_with_wrong_vectors_is_refused() {
    let mut one = listed(4);
    one.propose(1, &proposal(&one, |_| {}));
    let manifest = manifest(&one).root();
    let reason = Refusal::Work("a transcript is wrong".into());
    let expected = one.refuses_lead(1, reason);
    let result = Err(no("a transcript is wrong"));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { manifest, result })),
        expected
    );
}

/// The lead of view 1 sends this, and it is refused.
pub(super) fn refuses(mut one: One, body: Body, reason: Refusal) {
    let expected = one.refuses_lead(1, reason);
    assert_eq!(one.hear_lead(1, body), expected);
}

#[test]
pub(super) fn messages_of_masked_rounds_are_refused_where_models_are_in_clear() {
    let mut one = One::in_format(3, 4);
    one.plan();
    let other = one.others()[0];
    let body = Body::Keys(keys(&one, other));
    let refused = refused(other, 1, Refusal::OtherMode);
    assert_eq!(one.hear(other, 1, 0, body), [refused]);
    let body = Body::KeyList(key_list(&one, &one.all()));
    refuses(one, body, Refusal::OtherMode);
    let mut one = follower(4);
    let expected = one.refuses_lead(1, Refusal::OtherMode);
    let clear = one.proposal_of(
        1,
        &crate::message::RoundManifest {
            entries: vec![],
            scores: None,
        },
        &[],
    );
    assert_eq!(one.propose(1, &clear), expected);
}

#[test]
pub(super) fn a_list_that_is_too_small_or_without_a_group_is_refused() {
    let one = of_two_groups();
    let (ready, fewest) = (4, 5);
    let few: Vec<_> = (0..4).map(MemberIndex).collect();
    let body = Body::KeyList(key_list(&one, &few));
    refuses(one, body, Refusal::ListTooSmall { ready, fewest });
    let one = of_two_groups();
    let none: Vec<_> = [1, 2, 4, 5, 6].map(MemberIndex).into();
    let (body, ready) = (Body::KeyList(key_list(&one, &none)), 5);
    refuses(one, body, Refusal::ListTooSmall { ready, fewest });
}

#[test]
pub(super) fn a_suspended_group_has_no_sum_and_a_list_without_another_group_is_refused() {
    let of = |suspended: &[usize]| {
        let groups = || vec![group(0..3), group(3..7)];
        let epoch = epoch_with(7, 5, |protocol| mask(protocol, 7, groups()));
        let me = epoch.lead(0);
        let mut one = One::of(epoch, me);
        let rounds = (0..2).map(|at| if suspended.contains(&at) { 3 } else { 0 });
        one.plan_with(|plan| plan.voids.rounds = rounds.collect());
        prepare(&mut one);
        one
    };
    let mut one = of(&[1]);
    let body = Body::KeyList(key_list(&one, &one.all()));
    let asked = one.hear_lead(1, body.clone());
    let sums = |effect: &Effect| match effect {
        Effect::Work(Request::Mask { list }) => Some(list.sums.len()),
        _ => None,
    };
    let author = one.me.at() < 3;
    let found: Vec<_> = asked.iter().filter_map(sums).collect();
    assert_eq!(found, if author { vec![1] } else { Vec::new() });
    let one = of(&[0, 1]);
    let (ready, fewest) = (7, 5);
    refuses(one, body, Refusal::ListTooSmall { ready, fewest });
}

#[test]
pub(super) fn a_list_with_foreign_keys_for_this_member_is_refused() {
    let one = follower(4);
    let mut list = key_list(&one, &one.all());
    // It has signed them, in a journal that was lost, or its twin has.
    let other = Keys {
        public: public(9, 9),
        ..keys(&one, one.me)
    };
    list.ready[one.me.at()] = ready(&one, one.me, other);
    refuses(one, Body::KeyList(list), Refusal::ForeignKeys);
}

#[test]
fn keys_that_are_not_signed_by_their_owners_do_not_open() {
    let one = follower(4);
    let mut list = key_list(&one, &one.all());
    list.ready[0].keys.public = public(9, 9);
    let lead = one.epoch.lead(1);
    let (_, frame) = one.sealed(lead, 1, 1, Body::KeyList(list));
    let opened = envelope::open(
        &one.epoch,
        &crate::identity::Strict,
        &Known::default(),
        &frame,
    );
    assert_eq!(opened, Err(envelope::OpenError::Keys));
}

#[test]
pub(super) fn a_list_that_is_no_part_of_the_one_before_is_refused() {
    let mut one = of_two_groups();
    let few: Vec<_> = (0..6).map(MemberIndex).collect();
    one.hear_lead(1, Body::KeyList(key_list(&one, &few)));
    let body = Body::KeyList(key_list(&one, &one.all()));
    refuses(one, body, Refusal::ListFollows);
}

#[test]
pub(super) fn a_sheet_without_exactly_the_authors_is_refused() {
    let mut one = follower(4);
    one.hear_lead(1, Body::KeyList(key_list(&one, &one.all())));
    let mut few = manifest(&one);
    few.entries.pop();
    refuses(one, Body::MaskedManifest(few), Refusal::OtherAuthors);
}

#[test]
pub(super) fn a_masked_round_with_other_ready_members_is_refused() {
    let one = signed(4);
    let other = proposal(&one, |round| round.ready.truncate(3));
    refuses(one, Body::Proposal(Box::new(other)), Refusal::OtherReady);
}

#[test]
pub(super) fn a_masked_round_from_another_state_is_refused() {
    let one = signed(4);
    let (got, ours) = (Hash([1; 32]), one.epoch.protocol.start);
    let other = proposal(&one, |round| round.state = got);
    let body = Body::Proposal(Box::new(other));
    refuses(one, body, Refusal::WrongState { got, ours });
}

#[test]
fn a_member_answers_no_sum_of_others_than_the_first_whatever_the_epoch() {
    let one = follower(4);
    let before = Circle(vec![("silo 0".into(), 1), ("silo 9".into(), 1)]);
    let journal = vec![Record::Circle(before.clone()), Record::Applied { round: 0 }];
    let (mut one, _) = One::restart(one.epoch.clone(), one.me, journal);
    one.plan();
    prepare(&mut one);
    let effects = one.hear_lead(1, Body::KeyList(key_list(&one, &one.all())));
    let now = Circle((0..4).map(|i| (format!("silo {i}"), 1)).collect());
    assert_eq!(
        effects,
        [Effect::Report(Report::OtherCircle { before, now })]
    );
}
