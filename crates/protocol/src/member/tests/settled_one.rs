//! Single steps of one member once a masked round is final, with all their effects.

use super::amendments::longer;
use super::masked_one::{proposal, signed};
use super::one::*;
use super::prelude::*;
use super::toy::{opening, outcome};
use crate::certificate::Verdict;
use crate::effects::{FinalMasked, WorkError};
use crate::message::{Content, MaskedRound, Proposal, Unmasking};
use crate::parameters::privacy::threshold;

/// The round of all members is final in view 1.
pub(super) fn final_round(n: u16) -> (One, Hash) {
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
        unreachable!("a secure-aggregation round was built")
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
fn no_shares_are_given_away_for_a_round_that_is_only_proposed() {
    let mut one = signed(4);
    let proposal = proposal(&one, |_| {});
    let effects = one.propose(1, &proposal);
    let unmasks = |effect: &Effect| matches!(effect, Effect::Work(Request::Unmask { .. }));
    // It is voted for, and no more.
    assert!(
        !effects.is_empty() && !effects.iter().any(unmasks),
        "{effects:?}"
    );
}

#[test]
fn no_shares_are_given_away_for_a_round_that_is_only_notarised() {
    let mut one = signed(4);
    let proposal = proposal(&one, |_| {});
    one.propose(1, &proposal);
    let notarised = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
    one.has_cast(&notarised);
    let effects = one.add_certificate(&notarised);
    assert!(
        !effects
            .iter()
            .any(|effect| matches!(effect, Effect::Work(_))),
        "{effects:?}"
    );
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
    // What failed is tried again in the step after the heartbeat.
    let later = [one.at(1000), one.at(1001)].concat();
    let works = |effect: &Effect| matches!(effect, Effect::Work(_));
    assert!(!later.iter().any(works), "{later:?}");
    // With another one that holds, the rest is enough.
    let own = Ok(opening(one.me.at(), block));
    let effects = one.step(Input::Done(Answer::Unmasked { block, result: own }));
    assert!(effects.iter().any(works), "{effects:?}");
}

#[test]
fn two_votes_for_outcomes_of_a_block_are_evidence() {
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
    // What it voted for is sent again with the next heartbeat.
    let sends = one.sends(one.others()[0], 0, 1, body);
    assert!(one.at(1000).contains(&sends));
}

#[test]
fn a_lead_waits_for_the_outcome_and_a_proposal_before_it_is_known_waits() {
    let (mut one, block) = final_round(4);
    assert_eq!((one.member.view(), one.member.round()), (2, 1));
    let next = Content::Masked(MaskedRound {
        round: 2,
        state: Hash([5; 32]),
        inclusions: Default::default(),
        ..of(&one, block).round.clone()
    });
    let proof = one.certificate(1, Verdict::Final(block));
    let proposal = Proposal {
        block: one.block(2, block, next),
        parent: Some(proof),
        skipped: Vec::new(),
    };
    assert_eq!(one.propose(2, &proposal), []);
}

/// A member of n that knows the outcome of the final round.
pub(super) fn settled(n: u16) -> (One, Hash, Hash) {
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
    assert_eq!(one.member.consensus.chain.checkpoint(), one.epoch.began);
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
    assert_eq!(one.member.consensus.chain.checkpoint(), expected);
    // One after another outcome is refused.
    let Content::Change(change) = &mut proposal.block.content else {
        unreachable!("a change was built")
    };
    change.after = crate::Checkpoint {
        outcome: Hash([1; 32]),
        ..expected
    };
    let why = change.check(&one.epoch, &one.member.consensus.chain.checkpoint());
    assert!(
        matches!(why, Err(crate::change::ChangeError::After { .. })),
        "{why:?}"
    );
}

#[test]
fn a_recovery_goes_on_from_the_last_round_whose_outcome_a_member_has() {
    let (mut one, block) = final_round(7);
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

#[test]
fn three_members_do_not_go_on_with_masked_rounds() {
    let (mut one, _) = final_round(4);
    let lost = vec![one.others()[0]];
    let abandon = false;
    let effects = one.step(Input::Recover { lost, abandon });
    let why = crate::parameters::ParametersError::TooFewToMask { members: 3 };
    let why = Refusal::Change(crate::change::ChangeError::ProtocolParameters(why));
    assert_eq!(effects, [refused(one.me, 0, why)]);
}
