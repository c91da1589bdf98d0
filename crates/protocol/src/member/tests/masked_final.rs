//! Who gives shares away once a masked round is final, whose shares are taken, and which votes for outcomes
//! count (M5, M6).

use super::masked_one::{
    contributed_by, key_list, manifest_of, proposal, proposal_of, signed, two_groups,
};
use super::one::*;
use super::prelude::*;
use super::settled_one::final_round;
use super::toy::opening;
use crate::certificate::Verdict;
use crate::member::consensus::participation::ParticipationState;
use crate::message::{Proposal, Unmasking};

/// The block becomes final. Whether its shares are asked for then.
fn unmasks(one: &mut One, proposal: &Proposal) -> bool {
    one.propose(1, proposal);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    one.has_cast(&proof);
    let effects = one.add_certificate(&proof);
    let unmask = |effect: &Effect| matches!(effect, Effect::Work(Request::Unmask { .. }));
    effects.iter().any(unmask)
}

/// A member of seven that knows list and manifest of all but one, who is named second.
fn without_one(is_missing: bool) -> (One, MemberIndex) {
    let epoch = two_groups();
    let follows = |some: std::ops::Range<u16>| {
        let mut some = some.map(MemberIndex);
        some.find(|by| *by != epoch.lead(1)).unwrap()
    };
    let missing = follows(3..7);
    let me = if is_missing { missing } else { follows(0..3) };
    let mut one = contributed_by(epoch.clone(), me);
    let ready = one.without(missing);
    one.hear_lead(1, Body::KeyList(key_list(&one, &ready)));
    let manifest = manifest_of(&one, &ready);
    let (root, result) = (manifest.root(), Ok(()));
    one.hear_lead(1, Body::MaskedManifest(manifest));
    let verified = Answer::Verified {
        manifest: root,
        result,
    };
    one.step(Input::Done(verified));
    (one, missing)
}

#[test]
fn who_was_not_ready_gives_no_shares_away_and_its_shares_are_refused() {
    let (mut one, missing) = without_one(true);
    let block = proposal_of(&one, &one.without(missing), |_| {});
    assert!(!unmasks(&mut one, &block));
    let (mut one, missing) = without_one(false);
    let block = proposal_of(&one, &one.without(missing), |_| {});
    assert!(unmasks(&mut one, &block));
    let block = block.block.hash();
    let opening = opening(missing.at(), block);
    let body = Body::Unmasking(Box::new(Unmasking { block, opening }));
    let refusal = refused(missing, 1, Refusal::Unmasking);
    assert_eq!(one.hear(missing, 1, 0, body), [refusal]);
}

#[test]
fn who_lacks_what_its_key_has_signed_gives_no_shares_away() {
    for outdated in [false, true] {
        let mut one = signed(4);
        if outdated {
            one.member.consensus.participation = ParticipationState::Outdated;
        }
        let block = proposal(&one, |_| {});
        assert_eq!(unmasks(&mut one, &block), !outdated);
    }
}

#[test]
fn a_vote_for_an_outcome_counts_in_the_view_of_its_block_alone() {
    let (mut one, block) = final_round(4);
    let others = one.others();
    let outcome = Hash([1; 32]);
    let vote = || Body::Outcome { block, outcome };
    assert_eq!(one.hear(others[0], 0, 2, vote()), []);
    assert_eq!(one.hear(others[0], 0, 1, vote()), []);
    assert_eq!(one.hear(others[1], 0, 1, vote()), []);
    let verdict = Verdict::Outcome { block, outcome };
    let certificate = one.certificate_by(1, verdict, &others);
    let effects = one.hear(others[2], 0, 1, vote());
    let kept = Effect::Persist(Record::Certified(certificate));
    assert_eq!(effects.first(), Some(&kept));
}

#[test]
fn a_member_votes_for_one_outcome_although_it_computes_another_one_later() {
    let (mut one, block) = final_round(4);
    let computed = |outcome: u8| {
        let (unproven, result) = (Vec::new(), Ok(Hash([outcome; 32])));
        Input::Done(Answer::Combined {
            block,
            unproven,
            result,
        })
    };
    let outcome = Hash([1; 32]);
    let body = Body::Outcome { block, outcome };
    let mut expected = vec![one.persists_vote(1, body.clone())];
    let others = one.others();
    expected.extend(others.iter().map(|to| one.sends(*to, 0, 1, body.clone())));
    assert_eq!(one.step(computed(1)), expected);
    assert_eq!(one.step(computed(2)), []);
}
