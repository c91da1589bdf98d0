//! Single steps of one member in masked rounds, with all their effects.

use super::amendments::longer;
use super::masked::{group, mask, masked};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use super::toy::{opening, outcome, public, vector};
use crate::certificate::Verdict;
use crate::charter::Epoch;
use crate::effects::{FinalMasked, MaskedList, WorkError};
use crate::message::{
    Content, KeyList, Keys, MaskedRound, MaskedSheet, Proposal, Ready, Unmasking,
};
use crate::privacy::{Circle, threshold};

/// A member that has contributed its keys to the first round, and does not lead soon.
fn contributed(epoch: Arc<Epoch>) -> One {
    let me = epoch.lead(0);
    let mut one = One::of(epoch, me);
    one.plan();
    prepare(&mut one);
    one
}

fn follower(n: u16) -> One {
    contributed(masked(n, 5))
}

/// Seven members in two groups, so that a list can lack some.
fn of_two_groups() -> One {
    let groups = || vec![group(0..3), group(3..7)];
    contributed(epoch_with(7, 5, |charter| mask(charter, 7, groups())))
}

fn prepare(one: &mut One) -> Vec<Effect> {
    let round = one.member.round();
    let result = Ok(public(one.me.at(), round));
    one.step(Input::Done(Answer::Prepared { round, result }))
}

fn keys(one: &One, member: MemberIndex) -> Keys {
    Keys {
        plan: plan(),
        public: public(member.at(), one.member.round()),
    }
}

fn ready(one: &One, member: MemberIndex, keys: Keys) -> Ready {
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

fn key_list(one: &One, members: &[MemberIndex]) -> KeyList {
    let ready = members
        .iter()
        .map(|&member| ready(one, member, keys(one, member)));
    KeyList {
        ready: ready.collect(),
    }
}

/// What a member makes of a list of these members.
fn list(one: &One, members: &[MemberIndex]) -> Arc<MaskedList> {
    let (epoch, round) = (&one.epoch, one.member.round());
    let masked = epoch.charter.privacy.masked().unwrap();
    let (keys, sums) = (key_list(one, members), masked.sums(&epoch.roster, members));
    let root = keys.root(epoch, round, &plan(), &epoch.charter.start, &sums);
    let threshold = threshold(&epoch.roster, members.len());
    Arc::new(MaskedList {
        round,
        root,
        keys,
        sums,
        threshold,
    })
}

/// The sheet of all vectors for a list of all members.
fn sheet(one: &One) -> MaskedSheet {
    let list = list(one, &one.all()).root;
    let entries = one
        .all()
        .into_iter()
        .map(|by| vector(by.at(), list).entry(by))
        .collect();
    MaskedSheet { list, entries }
}

/// A proposal of a masked round of all members.
fn proposal(one: &One, change: impl FnOnce(&mut MaskedRound)) -> Proposal {
    let sheet = sheet(one);
    let signed = |by: MemberIndex| {
        let body = Body::Inclusion {
            sheet: sheet.root(),
        };
        (by, one.sealed(by, one.member.round(), 0, body).0.signature)
    };
    let mut round = MaskedRound {
        round: one.member.round(),
        plan: plan(),
        state: one.epoch.charter.start,
        list: sheet.list,
        ready: one.all(),
        sheet: sheet.root(),
        inclusions: one.all().into_iter().map(signed).collect(),
    };
    change(&mut round);
    Proposal {
        block: one.block(1, one.epoch.id, Content::Masked(round)),
        parent: None,
        skipped: Vec::new(),
    }
}

/// It has answered the list of all members, and knows the sheet.
fn listed(n: u16) -> One {
    let mut one = follower(n);
    one.hear_lead(1, Body::KeyList(key_list(&one, &one.all())));
    let list = list(&one, &one.all()).root;
    let result = Ok(vector(one.me.at(), list));
    one.step(Input::Done(Answer::Masked { list, result }));
    one.hear_lead(1, Body::MaskedSheet(sheet(&one)));
    one
}

/// The same, with all vectors here and right.
fn signed(n: u16) -> One {
    let mut one = listed(n);
    let (sheet, result) = (sheet(&one).root(), Ok(()));
    one.step(Input::Done(Answer::Verified { sheet, result }));
    one
}

/// The round of all members is final in view 1.
fn final_round(n: u16) -> (One, Hash) {
    let mut one = signed(n);
    let proposal = proposal(&one, |_| {});
    one.propose(1, &proposal);
    let block = proposal.block.hash();
    let proof = one.certificate(1, Verdict::Final(block));
    one.has_cast(&proof);
    one.add_certificate(&proof);
    (one, block)
}

/// What is to be opened of the final round.
fn of(one: &One, block: Hash) -> Arc<FinalMasked> {
    let Content::Masked(round) = proposal(one, |_| {}).block.content else {
        unreachable!("a masked round was built")
    };
    let threshold = threshold(&one.epoch.roster, round.ready.len());
    Arc::new(FinalMasked {
        block,
        round,
        threshold,
    })
}

fn unmasking(by: MemberIndex, block: Hash) -> Body {
    let opening = opening(by.at(), block);
    Body::Unmasking(Box::new(Unmasking { block, opening }))
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
    let root = sheet(&one).root();
    let verifies = Effect::Work(Request::Verify {
        list: list(&one, &one.all()),
        sheet: Arc::new(sheet(&one)),
        holders: one.holders(1),
    });
    // It stalls, and is asked for again after a beat.
    let (sheet, result) = (root, Err(WorkError::Unavailable));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { sheet, result })),
        []
    );
    one.at(1000);
    let again = Body::MaskedSheet(self::sheet(&one));
    assert_eq!(one.hear_lead(1, again), [verifies]);
    let result = Ok(());
    let signs = one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { sheet });
    assert_eq!(
        one.step(Input::Done(Answer::Verified { sheet, result })),
        [signs]
    );
}

#[test]
fn a_masked_round_is_voted_for_once_its_vectors_are_here_and_right() {
    let mut one = listed(4);
    let proposal = proposal(&one, |_| {});
    assert_eq!(one.propose(1, &proposal), []);
    let (sheet, result) = (sheet(&one).root(), Ok(()));
    let mut expected = vec![one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { sheet })];
    expected.extend(one.notarizes(&proposal.block, CHECKED));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { sheet, result })),
        expected
    );
}

#[test]
pub(super) fn a_masked_round_with_wrong_vectors_is_refused() {
    let mut one = listed(4);
    one.propose(1, &proposal(&one, |_| {}));
    let sheet = sheet(&one).root();
    let reason = Refusal::Work("a transcript is wrong".into());
    let expected = one.refuses_lead(1, reason);
    let result = Err(no("a transcript is wrong"));
    assert_eq!(
        one.step(Input::Done(Answer::Verified { sheet, result })),
        expected
    );
}

/// The lead of view 1 sends this, and it is refused.
fn refuses(mut one: One, body: Body, reason: Refusal) {
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
        &crate::message::Sheet {
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
    let mut few = sheet(&one);
    few.entries.pop();
    refuses(one, Body::MaskedSheet(few), Refusal::OtherAuthors);
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
    let (got, ours) = (Hash([1; 32]), one.epoch.charter.start);
    let other = proposal(&one, |round| round.state = got);
    let body = Body::Proposal(Box::new(other));
    refuses(one, body, Refusal::WrongState { got, ours });
}

#[test]
fn the_sums_of_a_final_round_are_opened_and_voted_for_with_t_unmaskings() {
    let (mut one, block) = final_round(4);
    let of = of(&one, block);
    let (holders, me) = (one.others(), one.me);
    // Nothing was given away before.
    let unmasks = Effect::Work(Request::Unmask {
        of: of.clone(),
        holders: holders.clone(),
    });
    let mut again = signed(4);
    again.propose(1, &proposal(&again, |_| {}));
    let proof = again.certificate(1, Verdict::Final(block));
    again.has_cast(&proof);
    assert!(again.add_certificate(&proof).contains(&unmasks));
    let result = Ok(opening(me.at(), block));
    let sends = one.step(Input::Done(Answer::Unmasked { block, result }));
    let own = unmasking(me, block);
    let expected: Vec<_> = holders
        .iter()
        .map(|to| one.sends(*to, 1, 0, own.clone()))
        .collect();
    assert_eq!(sends, expected);
    let [first, second, third] = holders[..] else {
        panic!("four members")
    };
    assert_eq!(one.hear(first, 1, 0, unmasking(first, block)), []);
    let mut unmaskings = vec![(me, opening(me.at(), block))];
    unmaskings.extend([first, second].map(|by| (by, opening(by.at(), block))));
    unmaskings.sort();
    let combines = Request::Combine {
        of: of.clone(),
        unmaskings,
        holders: holders.clone(),
    };
    let heard = one.hear(second, 1, 0, unmasking(second, block));
    assert_eq!(heard, [Effect::Work(combines)]);
    assert_eq!(one.hear(third, 1, 0, unmasking(third, block)), []);
    // The vote is durable before it is sent.
    let (unproven, outcome) = (Vec::new(), outcome(&of));
    let result = Ok(outcome);
    let votes = one.step(Input::Done(Answer::Combined {
        block,
        unproven,
        result,
    }));
    let body = Body::Outcome { block, outcome };
    let mut expected = vec![one.persists_vote(1, body.clone())];
    expected.extend(holders.iter().map(|to| one.sends(*to, 0, 1, body.clone())));
    assert_eq!(votes, expected);
    // Two more make the certificate, with which it is adopted.
    assert_eq!(one.hear(first, 0, 1, body.clone()), []);
    let effects = one.hear(second, 0, 1, body);
    let verdict = Verdict::Outcome { block, outcome };
    let mut voters = vec![me, first, second];
    voters.sort();
    let certificate = one.certificate_by(1, verdict, &voters);
    let mut rest: Vec<_> = holders.clone();
    rest.sort_by_key(|by| !voters.contains(by));
    let expected = [
        Effect::Persist(Record::Certified(certificate.clone())),
        one.passes_on(&certificate)[0].clone(),
        one.passes_on(&certificate)[1].clone(),
        Effect::Work(Request::Apply {
            rounds: vec![crate::effects::FinalRound {
                round: 1,
                block,
                outcome,
                position: None,
            }],
            holders: rest,
        }),
    ];
    assert_eq!(effects, expected);
    assert_eq!(one.member.round(), 2);
}

#[test]
pub(super) fn shares_that_are_unproven_or_of_no_ready_member_are_refused() {
    let (mut one, block) = final_round(4);
    let by = one.others()[0];
    let long = Body::Unmasking(Box::new(Unmasking {
        block,
        opening: vec![0; 32 * 4 + 65],
    }));
    let refused = [refused(by, 1, Refusal::Unmasking)];
    assert_eq!(one.hear(by, 1, 0, long), refused);
    for by in one.others() {
        one.hear(by, 1, 0, unmasking(by, block));
    }
    let (unproven, result) = (vec![by], Err(WorkError::Unavailable));
    let effects = one.step(Input::Done(Answer::Combined {
        block,
        unproven,
        result,
    }));
    assert_eq!(effects, refused);
    // They are not taken again.
    assert_eq!(one.hear(by, 1, 0, unmasking(by, block)), []);
    assert!(
        !one.at(1000)
            .iter()
            .any(|effect| matches!(effect, Effect::Work(_)))
    );
}

#[test]
fn two_votes_for_outcomes_and_two_vectors_for_a_list_are_evidence() {
    let (mut one, block) = final_round(4);
    let by = one.others()[0];
    let vote = |byte| Body::Outcome {
        block,
        outcome: Hash([byte; 32]),
    };
    assert_eq!(one.hear(by, 0, 1, vote(1)), []);
    let (first, _) = one.sealed(by, 0, 1, vote(1));
    let (second, _) = one.sealed(by, 0, 1, vote(2));
    assert_eq!(one.hear(by, 0, 1, vote(2)), one.accuses(&first, &second));
}

#[test]
fn an_outcome_that_others_certify_is_adopted_and_another_own_one_is_said() {
    let (mut one, block) = final_round(4);
    for by in one.others() {
        one.hear(by, 1, 0, unmasking(by, block));
    }
    let (computed, certified) = (Hash([1; 32]), Hash([2; 32]));
    let (unproven, result) = (Vec::new(), Ok(computed));
    one.step(Input::Done(Answer::Combined {
        block,
        unproven,
        result,
    }));
    let verdict = Verdict::Outcome {
        block,
        outcome: certified,
    };
    let certificate = one.certificate_by(1, verdict, &one.others());
    let effects = one.add_certificate(&certificate);
    let says = Effect::Report(Report::OtherOutcome {
        round: 1,
        computed,
        certified,
    });
    assert!(effects.contains(&says), "{effects:?}");
    assert_eq!(one.member.round(), 2);
}

#[test]
fn a_restarted_member_votes_for_no_second_outcome() {
    let (mut one, block) = final_round(4);
    let of = of(&one, block);
    let (certificate, vote) = (one.certificate(1, Verdict::Final(block)), outcome(&of));
    let body = Body::Outcome {
        block,
        outcome: vote,
    };
    let journal = vec![
        Record::Final {
            blocks: vec![proposal(&one, |_| {}).block],
            proof: certificate,
        },
        Record::Vote(one.sealed(one.me, 0, 1, body.clone()).0),
    ];
    let (restarted, _) = One::start(one.epoch.clone(), one.me, Start::Kept(journal));
    one = restarted;
    for by in one.others() {
        one.hear(by, 1, 0, unmasking(by, block));
    }
    let (unproven, result) = (Vec::new(), Ok(Hash([1; 32])));
    assert_eq!(
        one.step(Input::Done(Answer::Combined {
            block,
            unproven,
            result
        })),
        []
    );
    // What it voted for is sent again with the next beat.
    let sends = one.sends(one.others()[0], 0, 1, body);
    assert!(one.at(1000).contains(&sends));
}

#[test]
fn a_member_answers_no_sum_of_others_than_the_first_whatever_the_epoch() {
    let one = follower(4);
    let before = Circle(vec![("silo 0".into(), 1), ("silo 9".into(), 1)]);
    let journal = vec![Record::Circle(before.clone()), Record::Applied { round: 0 }];
    let (mut one, _) = One::start(one.epoch.clone(), one.me, Start::Kept(journal));
    one.plan();
    prepare(&mut one);
    let effects = one.hear_lead(1, Body::KeyList(key_list(&one, &one.all())));
    let now = Circle((0..4).map(|i| (format!("silo {i}"), 1)).collect());
    assert_eq!(
        effects,
        [Effect::Report(Report::OtherCircle { before, now })]
    );
}

#[test]
fn a_lead_waits_for_the_outcome_and_a_proposal_before_it_is_known_waits() {
    let (mut one, block) = final_round(4);
    assert_eq!((one.member.view(), one.member.round()), (2, 1));
    let next = Content::Masked(MaskedRound {
        round: 2,
        state: Hash([5; 32]),
        inclusions: Default::default(),
        ..(*of(&one, block)).round.clone()
    });
    let proof = one.certificate(1, Verdict::Final(block));
    let proposal = Proposal {
        block: one.block(2, block, next),
        parent: Some(proof),
        skipped: Vec::new(),
    };
    assert_eq!(one.propose(2, &proposal), []);
}

/// It knows the outcome of the final round.
fn settled(n: u16) -> (One, Hash, Hash) {
    let (mut one, block) = final_round(n);
    let outcome = outcome(&of(&one, block));
    let verdict = Verdict::Outcome { block, outcome };
    one.add_certificate(&one.certificate_by(1, verdict, &one.others()));
    (one, block, outcome)
}

#[test]
fn a_strategy_ends_the_federation_with_a_certified_outcome() {
    let (mut one, _, _) = settled(4);
    let (round, ends, result) = (1, true, Ok(()));
    let effects = one.step(Input::Done(Answer::Applied {
        round,
        ends,
        result,
    }));
    assert!(
        effects.contains(&Effect::Report(Report::Complete { last: 1 })),
        "{effects:?}"
    );
}

#[test]
fn a_change_follows_the_certified_outcome_of_the_last_round() {
    let (mut one, block) = final_round(4);
    assert_eq!(one.member.chain.checkpoint(), one.epoch.began);
    let amendment = longer(&one.epoch);
    let mut proposal = one.changing(2, &amendment, &one.others());
    // While the outcome is not known here, a change waits.
    assert_eq!(one.propose(2, &proposal), []);
    let (one, _, outcome) = settled(4);
    let expected = crate::Checkpoint {
        round: 1,
        block,
        outcome,
    };
    assert_eq!(one.member.chain.checkpoint(), expected);
    // One after another outcome is refused.
    let Content::Change(change) = &mut proposal.block.content else {
        unreachable!("a change was built")
    };
    change.after = crate::Checkpoint {
        outcome: Hash([1; 32]),
        ..expected
    };
    let why = change.check(&one.epoch, &one.member.chain.checkpoint());
    assert!(
        matches!(why, Err(crate::change::ChangeError::After { .. })),
        "{why:?}"
    );
}

#[test]
fn a_recovery_goes_on_from_the_last_round_whose_outcome_a_member_has() {
    let (mut one, block) = final_round(4);
    let lost = vec![one.others()[0]];
    let abandon = false;
    let effects = one.step(Input::Recover {
        lost: lost.clone(),
        abandon,
    });
    let standing = crate::message::Standing {
        number: 1,
        lost,
        adopted: one.epoch.began,
        view: 1,
        block,
        notarised: 0,
    };
    let (message, _) = one.sealed(one.me, 0, 0, standing.body());
    assert!(
        effects.contains(&Effect::Persist(Record::Standing(message))),
        "{effects:?}"
    );
}

#[test]
fn who_lost_the_journal_votes_for_no_outcome() {
    let (one, block) = final_round(4);
    let (proof, blocks) = (
        one.certificate(1, Verdict::Final(block)),
        vec![proposal(&one, |_| {}).block],
    );
    let (mut lost, _) = One::start(one.epoch.clone(), one.me, Start::Lost);
    let peer = lost.others()[0];
    let round_trip = Duration::from_millis(20);
    lost.step(Input::Up { peer, round_trip });
    let answer = crate::message::SyncResponse {
        blocks,
        proof: Some(proof),
        ..lost.answer(1)
    };
    lost.hear(peer, 0, 0, Body::SyncResponse(Box::new(answer)));
    for by in lost.others() {
        lost.hear(by, 1, 0, unmasking(by, block));
    }
    let (unproven, result) = (Vec::new(), Ok(Hash([1; 32])));
    assert_eq!(
        lost.step(Input::Done(Answer::Combined {
            block,
            unproven,
            result
        })),
        []
    );
}
