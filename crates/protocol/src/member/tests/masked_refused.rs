//! What a member does not answer, sign or vote for in masked rounds (M1, M2, M4): every test breaks one rule.

use super::masked::{group, mask};
use super::masked_one::{
    answered, contributed_by, follower, inclusions, key_list, keys, list, listed, manifest,
    manifest_of, prepare, proposal, proposal_of, ready, refuses, signed, two_groups,
};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use super::toy::{public, vector};
use crate::effects::WorkError;
use crate::identity::Strict;
use crate::member::consensus::participation::ParticipationState;
use crate::message::{Content, KeyList, Keys, MaskedManifest, MaskedRound, Proposal};
use crate::parameters::Epoch;

/// One of these members that does not lead the first view.
fn follows(epoch: &Epoch, some: impl IntoIterator<Item = u16>) -> MemberIndex {
    let mut some = some.into_iter().map(MemberIndex);
    some.find(|by| *by != epoch.lead(1)).unwrap()
}

fn members(some: impl IntoIterator<Item = u16>) -> Vec<MemberIndex> {
    some.into_iter().map(MemberIndex).collect()
}

fn lists(one: &One, members: &[MemberIndex]) -> Body {
    Body::KeyList(key_list(one, members))
}

fn masks(one: &One, members: &[MemberIndex]) -> Effect {
    let list = list(one, members);
    Effect::Work(Request::Mask { list })
}

fn proposes(proposal: Proposal) -> Body {
    Body::Proposal(Box::new(proposal))
}

/// The vectors of a manifest are asked for.
fn verifies(one: &One, members: &[MemberIndex]) -> Effect {
    Effect::Work(Request::Verify {
        list: list(one, members),
        manifest: Arc::new(manifest_of(one, members)),
        holders: one.holders(1),
    })
}

// Lists.

#[test]
fn a_list_and_a_sheet_of_another_member_than_the_lead_are_refused() {
    for nth in [0, 1] {
        let mut one = answered(4);
        let (wrong, lead) = (one.epoch.lead(2), one.name(1));
        let said = [
            lists(&one, &one.all()),
            Body::MaskedManifest(manifest(&one)),
        ];
        let body = said[nth].clone();
        let (kind, view) = (body.kind(), 1);
        let reason = Refusal::NotTheLead { kind, view, lead };
        assert_eq!(one.hear(wrong, 1, 1, body), [refused(wrong, 1, reason)]);
    }
}

#[test]
fn keys_of_a_member_that_is_listed_twice_do_not_open() {
    let one = follower(4);
    let mut list = key_list(&one, &one.all());
    list.ready.insert(1, list.ready[0].clone());
    let (_, frame) = one.sealed(one.epoch.lead(1), 1, 1, Body::KeyList(list));
    let opened = envelope::open(&one.epoch, &Strict, &Known::default(), &frame);
    assert_eq!(opened, Err(envelope::OpenError::Keys));
}

#[test]
fn a_list_with_keys_for_another_plan_is_refused() {
    let one = follower(4);
    let (other, got, ours) = (one.others()[0], Hash::of(b"another plan"), plan());
    let foreign = Keys {
        plan: got,
        ..keys(&one, other)
    };
    let mut list = key_list(&one, &one.all());
    list.ready[other.at()] = ready(&one, other, foreign);
    refuses(one, Body::KeyList(list), Refusal::WrongPlan { got, ours });
}

#[test]
fn a_list_with_a_member_that_the_plan_does_not_name_is_refused() {
    let epoch = two_groups();
    let me = follows(&epoch, 0..3);
    let mut one = One::of(epoch, me);
    one.plan_with(|plan| plan.participants = Some(members(0..6)));
    prepare(&mut one);
    let body = lists(&one, &one.all());
    refuses(one, body, Refusal::NotAParticipant(MemberIndex(6)));
}

/// Thirteen members, of whom three are a group: nine are a quorum.
#[test]
fn the_fifth_list_of_a_view_is_refused() {
    let epoch = epoch_with(13, 5, |protocol| mask(protocol, 13, vec![group(0..3)]));
    let me = follows(&epoch, 0..3);
    let mut one = contributed_by(epoch, me);
    for last in [13, 12, 11, 10] {
        let some = members(0..last);
        let effects = one.hear_lead(1, lists(&one, &some));
        assert_eq!(effects.last(), Some(&masks(&one, &some)), "{last}");
    }
    let body = lists(&one, &members(0..9));
    refuses(one, body, Refusal::ListFollows);
}

#[test]
fn a_list_of_fewer_members_with_one_that_was_left_out_is_refused() {
    let epoch = two_groups();
    let me = follows(&epoch, 0..3);
    let mut one = contributed_by(epoch, me);
    one.hear_lead(1, lists(&one, &members(0..6)));
    let body = lists(&one, &members([0, 1, 2, 3, 6]));
    refuses(one, body, Refusal::ListFollows);
}

#[test]
fn a_list_of_the_same_members_with_other_keys_is_refused() {
    let mut one = follower(4);
    one.hear_lead(1, lists(&one, &one.all()));
    let other = one.others()[0];
    let second = Keys {
        public: public(9, 9),
        ..keys(&one, other)
    };
    let mut list = key_list(&one, &one.all());
    list.ready[other.at()] = ready(&one, other, second);
    refuses(one, Body::KeyList(list), Refusal::ListFollows);
}

// Vectors and manifests.

#[test]
fn who_lost_the_secret_behind_its_keys_sits_the_round_out() {
    let mut one = follower(4);
    let (body, all) = (lists(&one, &one.all()), masks(&one, &one.all()));
    let list = list(&one, &one.all()).root;
    // What is not here for a moment is asked for again when the list comes again.
    one.hear_lead(1, body.clone());
    let result = Err(WorkError::Unavailable);
    let failed = one.step(Input::Done(Answer::Masked { list, result }));
    assert_eq!(failed, [all]);
    let (round, reason) = (1, "the secret is lost".to_owned());
    let result = Err(WorkError::Refused(reason.clone()));
    let report = Report::TrainingFailed { round, reason };
    let failed = one.step(Input::Done(Answer::Masked { list, result }));
    assert_eq!(failed, [Effect::Report(report)]);
    assert_eq!(one.hear_lead(1, body), []);
}

#[test]
fn who_only_listens_masks_nothing_sends_no_vector_and_signs_no_sheet() {
    let mut one = follower(4);
    one.member.consensus.participation = ParticipationState::Outdated;
    assert_eq!(one.hear_lead(1, lists(&one, &one.all())), []);

    let mut one = follower(4);
    one.hear_lead(1, lists(&one, &one.all()));
    one.member.consensus.participation = ParticipationState::Outdated;
    let list = list(&one, &one.all()).root;
    let result = Ok(vector(one.me.at(), list));
    let masked = Answer::Masked { list, result };
    assert_eq!(one.step(Input::Done(masked)), []);

    let mut one = listed(4);
    one.member.consensus.participation = ParticipationState::Outdated;
    let (manifest, result) = (manifest(&one).root(), Ok(()));
    let verified = Answer::Verified { manifest, result };
    assert_eq!(one.step(Input::Done(verified)), []);
}

/// The manifest of all with another vector of one member.
fn foreign(one: &One, of: MemberIndex) -> MaskedManifest {
    let mut manifest = manifest(one);
    manifest.entries[of.at()] = vector(99, manifest.list).entry(of);
    manifest
}

#[test]
fn a_sheet_with_another_vector_in_place_of_the_own_one_is_not_signed() {
    let mut one = answered(4);
    let manifest = foreign(&one, one.me);
    assert_eq!(one.hear_lead(1, Body::MaskedManifest(manifest)), []);
    let all = one.all();
    let mut one = answered(4);
    let body = Body::MaskedManifest(self::manifest(&one));
    assert_eq!(one.hear_lead(1, body), [verifies(&one, &all)]);
}

#[test]
fn a_second_sheet_for_a_list_is_not_signed_nor_voted_for() {
    let mut one = listed(4);
    let second = foreign(&one, one.others()[0]);
    assert_eq!(one.hear_lead(1, Body::MaskedManifest(second.clone())), []);
    let proposal = proposal(&one, |round| {
        round.manifest = second.root();
        round.inclusions = inclusions(&one, &second, 1);
    });
    assert_eq!(one.propose(1, &proposal), []);
}

// Blocks.

#[test]
fn a_masked_round_is_refused_where_models_are_in_clear() {
    let mut one = One::in_format(3, 4);
    one.plan();
    let round = MaskedRound {
        round: 1,
        plan: plan(),
        state: one.epoch.protocol.start,
        list: Hash([1; 32]),
        ready: one.all(),
        manifest: Hash([2; 32]),
        inclusions: Inclusions::default(),
    };
    let block = one.block(1, one.epoch.id, Content::Masked(round));
    let proposal = Proposal {
        block,
        parent: None,
        skipped: Vec::new(),
    };
    refuses(one, proposes(proposal), Refusal::OtherMode);
}

#[test]
fn a_masked_round_of_another_number_or_plan_is_refused() {
    let one = signed(4);
    let other = proposal(&one, |round| {
        round.round = 2;
        round.inclusions = inclusions(&one, &manifest(&one), 2);
    });
    let (got, now) = (2, 1);
    refuses(one, proposes(other), Refusal::WrongRound { got, now });
    let one = signed(4);
    let (got, ours) = (Hash::of(b"another plan"), plan());
    let other = proposal(&one, |round| round.plan = got);
    refuses(one, proposes(other), Refusal::WrongPlan { got, ours });
}

#[test]
fn a_masked_round_without_a_signature_of_each_author_is_refused() {
    let one = signed(4);
    let few = proposal(&one, |round| {
        round.inclusions = round.inclusions[..3].iter().copied().collect();
    });
    let (signers, entries) = (3, 4);
    refuses(one, proposes(few), Refusal::Signers { signers, entries });
}

#[test]
fn a_masked_round_with_the_sheet_of_another_list_is_refused() {
    let epoch = two_groups();
    let me = follows(&epoch, 0..3);
    let mut one = contributed_by(epoch, me);
    let (all, few) = (one.all(), members(0..6));
    one.hear_lead(1, lists(&one, &all));
    one.hear_lead(1, Body::MaskedManifest(manifest_of(&one, &all)));
    one.hear_lead(1, lists(&one, &few));
    let manifest = manifest_of(&one, &all);
    let other = proposal_of(&one, &few, |round| {
        round.manifest = manifest.root();
        round.inclusions = inclusions(&one, &manifest, 1);
    });
    refuses(one, proposes(other), Refusal::OtherAuthors);
}

/// A member of seven in two groups that knows the list and the manifest of all others.
fn left_out() -> (One, Vec<MemberIndex>) {
    let epoch = two_groups();
    let me = follows(&epoch, 3..7);
    let mut one = contributed_by(epoch, me);
    let others = one.others();
    one.hear_lead(1, lists(&one, &others));
    one.hear_lead(1, Body::MaskedManifest(manifest_of(&one, &others)));
    (one, others)
}

#[test]
fn a_masked_round_without_a_member_with_a_receipt_is_refused_by_it() {
    let (mut one, others) = left_out();
    let entry = keys(&one, one.me).id(&one.epoch.federation, 1, one.me);
    one.hear_lead(1, Body::Receipt { entry });
    let block = proposal_of(&one, &others, |_| {});
    refuses(one, proposes(block), Refusal::LeftOut);
    // Without a receipt it may be missing.
    let (mut one, others) = left_out();
    let block = proposal_of(&one, &others, |_| {});
    assert_eq!(one.propose(1, &block), [verifies(&one, &others)]);
}

#[test]
fn a_masked_round_of_fewer_members_than_agreed_is_refused() {
    // A quorum of five can open sums, and six are agreed.
    let epoch = epoch_with(7, 5, |protocol| {
        mask(protocol, 7, vec![group(0..3)]);
        protocol.min_contributions = 6;
    });
    let me = follows(&epoch, 0..3);
    let mut one = contributed_by(epoch, me);
    let some = members(0..5);
    one.hear_lead(1, lists(&one, &some));
    one.hear_lead(1, Body::MaskedManifest(manifest_of(&one, &some)));
    let (entries, needed) = (5, 6);
    let block = proposal_of(&one, &some, |_| {});
    refuses(
        one,
        proposes(block),
        Refusal::TooFewEntries { entries, needed },
    );
}

#[test]
fn a_masked_round_without_too_many_members_waits_for_patience() {
    // Of six members four are a quorum, and one may be missing.
    let epoch = epoch_with(6, 5, |protocol| mask(protocol, 6, vec![group(0..3)]));
    let me = follows(&epoch, 0..3);
    let mut one = contributed_by(epoch, me);
    let some = members(0..4);
    one.hear_lead(1, lists(&one, &some));
    one.hear_lead(1, Body::MaskedManifest(manifest_of(&one, &some)));
    let block = proposal_of(&one, &some, |_| {});
    assert_eq!(one.propose(1, &block), []);
    one.now = Time::ZERO + one.epoch.patience();
    let progress = Body::Progress {
        phase: crate::message::Phase::Voting,
        counter: 20,
    };
    let effects = one.hear_lead(1, progress);
    assert_eq!(effects.first(), Some(&verifies(&one, &some)));
}

#[test]
fn a_list_of_nobody_is_refused() {
    let one = follower(4);
    let (ready, fewest) = (0, 3);
    let body = Body::KeyList(KeyList { ready: Vec::new() });
    refuses(one, body, Refusal::ListTooSmall { ready, fewest });
}
