//! The lead: decision, outcome, proposal, and manifests taken over from earlier views.

use super::lead::{admits, with};
use super::one::*;
use super::prelude::*;
use super::table::epoch;
use crate::certificate::{Checked, Verdict};
use crate::effects::{Case, WorkError};
use crate::message::{Phase, Proposal};

fn case(one: &One, authors: &[MemberIndex]) -> Case {
    let (manifest, decision) = (one.manifest(authors), b"decision".to_vec());
    let root = manifest.root();
    Case::new(1, root, manifest.into(), decision.into())
}

fn decided(one: &mut One, result: Result<Vec<u8>, WorkError>) -> Vec<Effect> {
    let manifest = one.manifest(&one.all()).root();
    one.step(Input::Done(Answer::Decided { manifest, result }))
}

fn settled(one: &mut One, result: Result<Hash, WorkError>) -> Vec<Effect> {
    let case = case(one, &one.all()).id();
    one.step(Input::Done(Answer::Settled { case, result }))
}

/// Takes the lead of a view to the decision: all authors have signed.
fn deciding(one: &mut One, view: u64) {
    if one.member.rounds.round.own.entry().is_none() {
        one.plan();
        one.train();
    }
    one.admit(one.me, Ok(()));
    for other in one.others() {
        one.take_in(other);
    }
    let manifest = one.manifest(&one.all()).root();
    for other in one.others() {
        one.hear(other, 1, 0, Body::Inclusion { manifest });
    }
    assert_eq!(one.member.view(), view);
}

/// The effects of a lead that proposes and votes for its own proposal.
fn proposes(one: &One, view: u64, proposal: &Proposal, checked: Checked) -> Vec<Effect> {
    let mut expected = one.proposes(view, proposal);
    expected.push(one.leading_report(view, Phase::Voting));
    let mut votes = one.notarizes(&proposal.block, checked);
    // Its own vote is not sent to itself.
    let own = |effect: &Effect| matches!(effect, Effect::Send { to, .. } if *to == one.me);
    votes.retain(|effect| !own(effect));
    expected.extend(votes);
    expected
}

#[test]
pub(super) fn after_the_decision_the_outcome_is_computed_and_the_proposal_durable_before_it_is_sent()
 {
    let mut one = with(4, 0);
    deciding(&mut one, 1);
    let settle = Effect::Work(Request::Settle {
        case: case(&one, &one.all()),
        holders: one.others(),
    });
    // A decision on another manifest is ignored.
    let (manifest, result) = (Hash::of(b"another"), Ok(b"decision".to_vec()));
    assert_eq!(
        one.step(Input::Done(Answer::Decided { manifest, result })),
        []
    );
    let ours = Ok(b"decision".to_vec());
    assert_eq!(decided(&mut one, ours.clone()), [settle]);
    assert_eq!(decided(&mut one, ours), []);
    let proposal = one.proposal(1, &one.all());
    let expected = proposes(&one, 1, &proposal, CHECKED);
    assert_eq!(settled(&mut one, Ok(outcome())), expected);
    // Its own proposal is ignored when others pass it on.
    let body = Body::Proposal(Box::new(proposal));
    assert_eq!(one.hear(one.me, 0, 1, body), []);
}

#[test]
pub(super) fn a_lead_that_cannot_decide_or_compute_the_outcome_votes_against_its_view() {
    for error in [WorkError::Unavailable, no("no")] {
        let mut one = with(4, 0);
        deciding(&mut one, 1);
        let work = "decide";
        let reason = Refusal::CouldNot {
            work,
            error: error.clone(),
        };
        let expected = one.nullifies(1, reason);
        assert_eq!(decided(&mut one, Err(error.clone())), expected);
        let mut one = with(4, 0);
        deciding(&mut one, 1);
        decided(&mut one, Ok(b"decision".to_vec()));
        let work = "compute the outcome";
        let expected = one.nullifies(
            1,
            Refusal::CouldNot {
                work,
                error: error.clone(),
            },
        );
        assert_eq!(settled(&mut one, Err(error)), expected);
    }
}

#[test]
pub(super) fn a_lead_that_lacks_a_nullification_does_not_propose() {
    let mut one = One::leading(4, 3);
    one.skip(2);
    deciding(&mut one, 3);
    decided(&mut one, Ok(b"decision".to_vec()));
    let expected = one.nullifies(3, Refusal::ViewsUnknown);
    assert_eq!(settled(&mut one, Ok(outcome())), expected);
}

#[test]
pub(super) fn a_proposal_carries_the_last_eight_nullifications() {
    for skipped in [3, 8, 11] {
        let view = skipped + 1;
        let mut one = One::leading(4, view);
        for view in 1..=skipped {
            one.skip(view);
        }
        deciding(&mut one, view);
        decided(&mut one, Ok(b"decision".to_vec()));
        let mut proposal = one.proposal(view, &one.all());
        let carried = skipped.saturating_sub(8) + 1..=skipped;
        let carried = carried.map(|view| one.certificate(view, Verdict::Nullified));
        proposal.skipped = carried.collect();
        let expected = one.proposes(view, &proposal);
        assert_eq!(settled(&mut one, Ok(outcome()))[..2], expected);
    }
}

#[test]
pub(super) fn a_proposal_carries_the_certificate_of_the_last_final_block() {
    let mut one = One::leading(4, 2).signed();
    one.finish_round(&one.all());
    one.plan();
    one.train();
    one.admit(one.me, Ok(()));
    for other in one.others() {
        one.hear(other, 2, 0, Body::Contribution(one.contribution(other)));
        one.admit(other, Ok(()));
    }
    let manifest = one.manifest(&one.all());
    let root = manifest.root();
    for other in one.others() {
        one.hear(other, 2, 0, Body::Inclusion { manifest: root });
    }
    let result = Ok(b"decision".to_vec());
    one.step(Input::Done(Answer::Decided {
        manifest: root,
        result,
    }));
    let proposal = one.proposal(2, &one.all());
    assert!(proposal.parent.is_some());
    let decision = b"decision".to_vec().into();
    let case = Case::new(2, root, manifest.into(), decision).id();
    let result = Ok(outcome());
    let effects = one.step(Input::Done(Answer::Settled { case, result }));
    assert_eq!(effects, proposes(&one, 2, &proposal, CHECKED));
}

#[test]
pub(super) fn a_notarised_block_that_is_not_final_after_d_gets_an_empty_one_on_top() {
    let mut one = One::leading(4, 2);
    one.now = Time::since_start(Duration::from_millis(250));
    let block = Hash::of(b"a block");
    let notarised = one.certificate(1, Verdict::Notarised(block));
    let effects = one.add_certificate(&notarised);
    let expected = [
        one.entered(2, 1),
        one.progress(2, Phase::Waiting, 0),
        one.leading_report(2, Phase::Waiting),
    ];
    assert_eq!(effects[effects.len() - 3..], expected);
    // The failed view doubled D, so a heartbeat falls before its end.
    let finalize = Body::Finalize { block };
    let lead = one.epoch.lead(1);
    let expected = [
        one.progress(2, Phase::Waiting, 1),
        one.sends(lead, 0, 1, finalize),
    ];
    assert_eq!(one.pass(1249), expected);
    let empty = one.empty(2, &notarised);
    let expected = proposes(&one, 2, &empty, Checked::Structure);
    assert_eq!(one.pass(1250), expected);
}

#[test]
pub(super) fn a_waiting_lead_continues_when_the_block_is_final() {
    let mut one = One::leading(4, 2).signed();
    let proposal = one.proposal(1, &one.all());
    let hash = proposal.block.hash();
    one.propose(1, &proposal);
    one.add_certificate(&one.certificate(1, Verdict::Notarised(hash)));
    let effects = one.add_certificate(&one.certificate(1, Verdict::Final(hash)));
    assert_eq!(one.member.round(), 2);
    assert!(effects.contains(&one.leading_report(2, Phase::Collecting)));
}

/// The lead of view 2, in view 1, in which the manifest of all members was proposed. It holds all
/// models, or only its own.
fn proposed(holds: bool) -> One {
    let one = One::leading(4, 2);
    let mut one = if holds {
        one.signed()
    } else {
        let mut one = one.contributed();
        one.hear_lead(1, one.contribution_list(&one.all()));
        one
    };
    one.propose(1, &one.proposal(1, &one.all()));
    one
}

#[test]
pub(super) fn a_sheet_that_was_proposed_is_taken_over_with_its_inclusions() {
    let mut one = proposed(true);
    let nullified = one.certificate(1, Verdict::Nullified);
    let mut expected = one.leaves_by(&nullified);
    expected.extend([
        one.progress(2, Phase::Collecting, 0),
        one.publishes(1, 2, one.contribution_list(&one.all())),
        Effect::Work(Request::Decide {
            round: 1,
            manifest: one.manifest(&one.all()).into(),
            holders: one.others(),
        }),
        one.leading_report(2, Phase::Deciding),
    ]);
    assert_eq!(one.add_certificate(&nullified), expected);
    // No member has to sign again.
    decided(&mut one, Ok(b"decision".to_vec()));
    let mut proposal = one.proposal(2, &one.all());
    proposal.skipped = vec![nullified];
    let expected = proposes(&one, 2, &proposal, CHECKED);
    assert_eq!(settled(&mut one, Ok(outcome())), expected);
}

#[test]
pub(super) fn an_outcome_is_not_computed_twice() {
    let mut one = proposed(true);
    let proposal = one.proposal(1, &one.all());
    one.check(&proposal, Ok(()));
    one.settle(&proposal, Ok(outcome()));
    one.skip(1);
    let effects = decided(&mut one, Ok(b"decision".to_vec()));
    assert!(matches!(effects[0], Effect::Persist(Record::Proposed(_))));
}

#[test]
pub(super) fn receipts_of_a_past_round_do_not_count() {
    // The lead of view 3 collects for round 1 when the final certificate of view 1 arrives.
    let mut one = One::leading(4, 3).contributed();
    let proposal = one.proposal(1, &one.all());
    let block = proposal.block.clone();
    one.member.consensus.chain.keep(block.hash(), block);
    one.skip(2);
    let x = one.others()[0];
    let effects = one.take_in(x);
    assert_eq!(effects, [super::lead::receipt(&one, x, 3)]);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    one.add_certificate(&proof);
    let (round, result) = (1, Ok(()));
    one.step(Input::Done(Answer::Applied {
        round,
        ends: false,
        result,
    }));
    one.plan();
    let body = Body::Contribution(one.contribution(x));
    assert_eq!(one.hear(x, 2, 0, body), [admits(&one, x)]);
}

/// The effects of the lead of view 2 that collects again.
fn collects(one: &One) -> Vec<Effect> {
    let mut expected = one.leaves_by(&one.certificate(1, Verdict::Nullified));
    expected.extend([
        one.progress(2, Phase::Collecting, 0),
        one.leading_report(2, Phase::Collecting),
        admits(one, one.me),
    ]);
    expected
}

#[test]
pub(super) fn a_sheet_whose_models_are_not_all_here_is_not_taken_over() {
    let mut one = proposed(false);
    let mut expected = collects(&one);
    // It still fetches them, so that it can serve them to others.
    let hold = Effect::Work(Request::Hold {
        round: 1,
        entries: one.entries(&one.others()),
        holders: one.others(),
    });
    expected.insert(expected.len() - 2, hold);
    assert_eq!(one.skip(1), expected);
}

#[test]
pub(super) fn a_sheet_is_taken_over_once_its_models_are_here() {
    let mut one = proposed(false);
    one.skip(1);
    let x = one.others()[0];
    one.take_in(x);
    // The receipt of this view is covered.
    let effects = one.hold_all();
    assert!(effects.contains(&one.leading_report(2, Phase::Deciding)));
}

#[test]
pub(super) fn a_sheet_that_lacks_a_receipt_of_the_view_is_not_taken_over() {
    let one = One::leading(4, 2);
    let mut one = one.contributed();
    let x = one.others().into_iter().find(|&x| x != one.epoch.lead(1));
    let x = x.unwrap();
    let authors = one.without(x);
    one.hear_lead(1, one.contribution_list(&authors));
    one.propose(1, &one.proposal(1, &authors));
    one.skip(1);
    one.take_in(x);
    assert_eq!(one.hold_all(), []);
}

#[test]
pub(super) fn a_sheet_that_has_not_enough_entries_now_is_not_taken_over() {
    let epoch = epoch(5, 5);
    for waited_for in [false, true] {
        let mut one = One::of(epoch.clone(), epoch.lead(2)).contributed();
        one.hold_all();
        let (lead, peer) = (epoch.lead(1), epoch.lead(3));
        let mut authors = vec![one.me, lead, epoch.lead(4)];
        authors.sort_unstable();
        one.member.rounds.absences.set(peer, 2);
        one.hear_lead(1, one.contribution_list(&authors));
        one.propose(1, &one.proposal(1, &authors));
        if waited_for {
            one.member.rounds.absences.set(peer, 1);
        }
        let effects = one.skip(1);
        let taken = effects.contains(&one.leading_report(2, Phase::Deciding));
        assert_eq!(taken, !waited_for);
    }
}

#[test]
pub(super) fn a_sheet_on_which_work_failed_is_not_taken_over() {
    let mut one = proposed(true);
    one.skip(1);
    decided(&mut one, Err(WorkError::Unavailable));
    assert!(one.member.rounds.round.proposed.is_none());
}

#[test]
pub(super) fn a_proposal_is_sent_again_to_members_that_have_not_voted_and_after_a_restart() {
    let mut one = with(4, 0);
    deciding(&mut one, 1);
    decided(&mut one, Ok(b"decision".to_vec()));
    settled(&mut one, Ok(outcome()));
    let proposal = one.proposal(1, &one.all());
    let body = Body::Proposal(Box::new(proposal.clone()));
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let (block, checked) = (proposal.block.hash(), CHECKED);
    one.hear(x, 0, 1, Body::Notarize { block, checked });
    let vote = Body::Notarize { block, checked };
    let expected = [
        one.progress(1, Phase::Voting, 1),
        one.sends(y, 1, 1, one.contribution_list(&one.all())),
        one.sends(z, 1, 1, one.contribution_list(&one.all())),
        one.sends(y, 0, 1, body.clone()),
        one.sends(z, 0, 1, body.clone()),
        one.sends(one.epoch.lead(2), 0, 1, vote),
    ];
    assert_eq!(one.pass(1000), expected);
    // After a restart it sends the same proposal.
    let (message, frame) = one.sealed(one.me, 0, 1, body);
    let kept = Start::Kept(vec![Record::Proposed(message)]);
    let (one, effects) = One::start(one.epoch, one.me, kept);
    let expected = [
        one.entered(1, 1),
        one.progress(1, Phase::Voting, 0),
        Effect::Publish { frame },
        one.plans(1, one.epoch.protocol.start),
        one.leading_report(1, Phase::Voting),
    ];
    assert_eq!(effects, expected);
}
