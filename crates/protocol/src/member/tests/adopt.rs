//! What follows when blocks become final: adoption, the next round, completion.

use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::certificate::Verdict;
use crate::effects::{FinalRound, WorkError};

/// A member that knows round 1 of `rounds` to be final.
fn finished(rounds: u64) -> One {
    let epoch = epoch_with(4, rounds, |_| {});
    let mut one = One::of(epoch.clone(), epoch.lead(0)).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    one.settle(&proposal, Ok(outcome()));
    assert!(one.member.consensus.ballots.has_notarized(1));
    one.add_certificate(&one.certificate(1, Verdict::Final(proposal.block.hash())));
    one
}

pub(super) fn applied(one: &mut One, round: u64, result: Result<(), WorkError>) -> Vec<Effect> {
    one.step(Input::Done(Answer::Applied {
        round,
        ends: false,
        result,
    }))
}

/// The request to adopt the outcome of round 1.
fn adopts(one: &One) -> Effect {
    let (block, _) = one.member.consensus.chain.history.last().unwrap();
    let contribution = one.manifest_of_round_1();
    let rounds = vec![FinalRound {
        round: 1,
        block: block.hash(),
        outcome: outcome(),
        position: contribution,
    }];
    Effect::Work(Request::Apply {
        rounds,
        holders: one.others(),
    })
}

impl One {
    /// The position of its entry in the manifest of all members in round 1.
    fn manifest_of_round_1(&self) -> Option<usize> {
        let (before, _) = One::restart(self.epoch.clone(), self.me, vec![]);
        before
            .manifest(&self.all())
            .position(&before.entry(self.me).id)
    }
}

#[test]
fn an_outcome_that_cannot_be_adopted_is_tried_again_after_a_beat() {
    let mut one = finished(5);
    let again = adopts(&one);
    // Votes of views up to the final block are dropped.
    assert_eq!(
        (one.member.consensus.ballots.highest(), one.member.view()),
        (0, 2)
    );
    assert_eq!(applied(&mut one, 1, Err(WorkError::Unavailable)), []);
    assert_eq!(one.at(999), []);
    assert_eq!([one.at(1000), one.at(1001)].concat(), [again.clone()]);
    let reason = Refusal::Work("damaged".into());
    let effects = applied(&mut one, 1, Err(no("damaged")));
    assert_eq!(effects, [refused(one.me, 1, reason)]);
    assert_eq!([one.at(2000), one.at(2001)].concat(), [again]);
    let plan = one.plans(2, outcome());
    assert_eq!(applied(&mut one, 1, Ok(())), [plan]);
    assert_eq!(applied(&mut one, 1, Ok(())), []);
}

#[test]
fn after_the_last_round_a_member_is_complete_and_sends_complete_with_the_next_beat() {
    let mut one = finished(1);
    let complete = Effect::Report(Report::Complete { last: 1 });
    assert_eq!(applied(&mut one, 1, Ok(())), [complete]);
    assert!(one.member.complete());
    assert_eq!(one.at(999), []);
    let others = one.others();
    let complete = |one: &One, to| one.sends(to, 1, 0, Body::Complete);
    let sent: Vec<_> = others.iter().map(|&to| complete(&one, to)).collect();
    assert_eq!(one.at(1000), sent);
    // Then no timer runs, and Complete is sent to members that become reachable.
    assert_eq!(one.member.deadline(), None);
    assert_eq!(one.at(100_000), []);
    let (peer, round_trip) = (others[1], Duration::from_millis(20));
    let sent = complete(&one, peer);
    assert_eq!(one.step(Input::Up { peer, round_trip }), [sent]);
    let (lead, view) = (one.epoch.lead(2), one.member.view());
    let mut misplaced = one.proposal(view, &[]);
    misplaced.block.view += 1;
    let refusal = refused(lead, 0, Refusal::BlockMisplaced);
    assert_eq!(one.propose(view, &misplaced), [refusal]);
    // It votes no more, and answers votes of later views with the last final certificate.
    let proof = envelope::sign_certificate(
        &one.epoch,
        one.member.consensus.chain.tip.proof.as_ref().unwrap(),
    );
    let answer = Effect::Send {
        to: peer,
        frame: proof,
    };
    assert_eq!(one.hear(peer, 0, 2, Body::Nullify), [answer]);
}

#[test]
fn complete_of_another_member_is_reported_once_and_a_member_that_lags_asks_it() {
    let mut one = finished(1);
    applied(&mut one, 1, Ok(()));
    let member = one.others()[0];
    let said = Effect::Report(Report::MemberComplete { member });
    assert_eq!(one.hear(member, 1, 0, Body::Complete), [said.clone()]);
    assert_eq!(one.hear(member, 1, 0, Body::Complete), []);
    let epoch = epoch_with(4, 1, |_| {});
    let mut one = One::of(epoch.clone(), epoch.lead(0));
    assert_eq!(
        one.hear(member, 2, 0, Body::Complete),
        [],
        "of no last round"
    );
    let asks = one.asks(2, member, 0, 1);
    assert_eq!(one.hear(member, 1, 0, Body::Complete), [said, asks]);
}

#[test]
fn a_strategy_may_end_the_federation_before_the_last_round_of_the_charter() {
    let mut one = finished(5);
    let ended = Input::Done(Answer::Applied {
        round: 1,
        ends: true,
        result: Ok(()),
    });
    let complete = Effect::Report(Report::Complete { last: 1 });
    assert_eq!(one.step(ended), [complete]);
    assert!(one.member.complete());
    // Nobody plans or trains; the others hear of it with the next heartbeat.
    let others = one.others();
    let sent = others.iter().map(|&to| one.sends(to, 1, 0, Body::Complete));
    let sent: Vec<_> = sent.collect();
    assert_eq!(one.at(1000), sent);
    assert_eq!(one.at(100_000), []);
    // A member that has less asks for what is missing, whichever round it was.
    let epoch = epoch_with(4, 5, |_| {});
    let mut behind = One::of(epoch.clone(), epoch.lead(0));
    let member = behind.others()[0];
    let said = Effect::Report(Report::MemberComplete { member });
    let asks = behind.asks(2, member, 0, 1);
    assert_eq!(behind.hear(member, 1, 0, Body::Complete), [said, asks]);
    assert!(!behind.member.complete());
}

#[test]
fn a_restarted_member_adopts_the_final_rounds_that_it_had_not_adopted() {
    let mut one = finished(5);
    let (block, proof) = one.member.consensus.chain.history[0].clone();
    let proof = proof.unwrap();
    let kept = Record::Final {
        blocks: vec![block.clone()],
        proof: proof.clone(),
    };
    let rounds = vec![FinalRound {
        round: 1,
        block: block.hash(),
        outcome: outcome(),
        position: None,
    }];
    // The blocks stand in the final records, so their own records are not needed.
    let start = Start::Kept(vec![kept.clone(), Record::Block(block.clone())]);
    let (next, effects) = One::start(one.epoch.clone(), one.me, start);
    assert!(next.member.consensus.chain.block(&block.hash()).is_none());
    let apply = Effect::Work(Request::Apply {
        rounds,
        holders: one.others(),
    });
    assert_eq!(effects, [next.entered(2, 2), apply]);
    // With the adoption in the journal it goes on with the next round.
    let start = Start::Kept(vec![kept, Record::Applied { round: 1 }]);
    let (next, effects) = One::start(one.epoch.clone(), one.me, start);
    assert_eq!(effects, [next.entered(2, 2), next.plans(2, outcome())]);
    // With all rounds adopted it is complete.
    one = finished(1);
    let (block, proof) = one.member.consensus.chain.history[0].clone();
    let kept = Record::Final {
        blocks: vec![block],
        proof: proof.unwrap(),
    };
    let start = Start::Kept(vec![kept, Record::Applied { round: 1 }]);
    let (_, effects) = One::start(one.epoch.clone(), one.me, start);
    assert_eq!(effects, [Effect::Report(Report::Complete { last: 1 })]);
}

#[test]
fn a_recorded_certificate_restores_the_view_after_a_restart() {
    let one = One::follower(4);
    let kept = Record::Certified(one.certificate(4, Verdict::Nullified));
    let (vote, _) = one.sealed(one.me, 0, 7, Body::Nullify);
    let start = Start::Kept(vec![kept.clone()]);
    let (next, _) = One::start(one.epoch.clone(), one.me, start);
    assert_eq!(next.member.view(), 5);
    let start = Start::Kept(vec![kept, Record::Vote(vote)]);
    let (next, _) = One::start(one.epoch, one.me, start);
    assert_eq!(next.member.view(), 7);
}

#[test]
fn voters_for_an_outcome_are_asked_for_it_first() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let last = one.others()[1];
    let mut voters: Vec<_> = one.all().into_iter().filter(|&m| m != last).collect();
    voters.sort_unstable();
    let proof = one.certificate_by(1, Verdict::Final(proposal.block.hash()), &voters);
    one.has_cast(&proof);
    let effects = one.add_certificate(&proof);
    let mut asked = one.others();
    asked.retain(|&m| m != last);
    asked.push(last);
    assert!(
        matches!(effects.last(), Some(Effect::Work(Request::Apply { holders, .. })) if *holders == asked)
    );
}
