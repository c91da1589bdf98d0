//! Levels of verification: what auditors and others do before they vote, and which notarisations count.

use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::certificate::{Certificate, Checked, Verdict, Vote};
use crate::parameters::{Epoch, Verification};
use crate::work::WorkError;

const INCLUSION: Checked = Checked::Outcome(Verification::Inclusion);

/// Seven members, of which three check.
fn epoch() -> Arc<Epoch> {
    epoch_with(7, 5, |protocol| {
        protocol.verification = Verification::Committee(3);
    })
}

/// A member that does not lead view 1, and is one of its auditors or not; it has signed for the manifest.
fn signed(auditor: bool) -> One {
    let epoch = epoch();
    let drawn = epoch.auditors(&epoch.id, 1);
    let mut members = epoch.roster.members();
    let me = members.find(|me| *me != epoch.lead(1) && drawn.contains(me) == auditor);
    One::of(epoch.clone(), me.unwrap()).contributed()
}

fn keep(one: &One) -> Effect {
    Effect::Work(Request::Keep {
        round: 1,
        outcome: outcome(),
        holders: one.holders(1),
    })
}

fn kept(one: &mut One, result: Result<(), WorkError>) -> Vec<Effect> {
    one.step(Input::Done(Answer::Kept {
        round: 1,
        outcome: outcome(),
        result,
    }))
}

#[test]
fn an_auditor_fetches_the_models_and_checks_and_others_sign_at_once() {
    let mut one = signed(true);
    let contribution_list = one.contribution_list(&one.all());
    let effects = one.hear_lead(1, contribution_list);
    assert!(
        matches!(effects[..], [Effect::Work(Request::Hold { .. })]),
        "{effects:?}"
    );
    one.hold_all();
    let proposal = one.proposal(1, &one.all());
    let effects = one.propose(1, &proposal);
    assert!(
        matches!(effects[..], [Effect::Work(Request::Check { .. })]),
        "{effects:?}"
    );
    one.check(&proposal, Ok(()));
    let votes = one.notarizes(&proposal.block, CHECKED);
    assert_eq!(one.settle(&proposal, Ok(outcome())), votes);

    let mut one = signed(false);
    let contribution_list = one.contribution_list(&one.all());
    let effects = one.hear_lead(1, contribution_list);
    assert!(matches!(effects[..], [Effect::Send { .. }]), "{effects:?}");
}

#[test]
fn a_member_that_does_not_check_votes_once_it_keeps_the_outcome_and_says_so() {
    let mut one = signed(false);
    one.hear_lead(1, one.contribution_list(&one.all()));
    let proposal = one.proposal(1, &one.all());
    assert_eq!(one.propose(1, &proposal), [keep(&one)]);
    // Not here yet: asked for again after a heartbeat.
    assert_eq!(kept(&mut one, Err(WorkError::Unavailable)), []);
    one.pass(1100);
    let again = one.at(1200);
    assert!(again.contains(&keep(&one)), "{again:?}");
    let votes = one.notarizes(&proposal.block, INCLUSION);
    assert_eq!(kept(&mut one, Ok(())), votes);
}

#[test]
fn an_outcome_that_is_none_is_voted_against() {
    let mut one = signed(false);
    one.hear_lead(1, one.contribution_list(&one.all()));
    one.propose(1, &one.proposal(1, &one.all()));
    let reason = Refusal::Work("another layout".into());
    let expected = one.refuses_lead(1, reason);
    assert_eq!(kept(&mut one, Err(no("another layout"))), expected);
}

#[test]
fn a_member_that_was_left_out_against_a_receipt_refuses_at_every_level() {
    let mut one = signed(false);
    let entry = one.entry(one.me).id;
    one.hear_lead(1, Body::Receipt { entry });
    let others = one.others();
    one.hear_lead(1, one.contribution_list(&others));
    let proposal = one.proposal(1, &others);
    assert_eq!(
        one.propose(1, &proposal),
        one.refuses_lead(1, Refusal::LeftOut)
    );
}

/// A notarisation by these members, of which some say that they checked everything.
fn notarisation(
    one: &One,
    block: Hash,
    voters: &[MemberIndex],
    full: &[MemberIndex],
) -> Certificate {
    let votes = voters.iter().map(|&member| {
        let checked = if full.contains(&member) {
            CHECKED
        } else {
            INCLUSION
        };
        let body = Body::Notarize { block, checked };
        let signature = one.sealed(member, 0, 1, body).0.signature;
        Vote {
            member,
            checked,
            signature,
        }
    });
    Certificate {
        view: 1,
        verdict: Verdict::Notarised(block),
        votes: votes.collect(),
    }
}

#[test]
fn a_notarisation_counts_only_with_the_votes_of_two_thirds_of_the_auditors() {
    let mut one = signed(false);
    one.hear_lead(1, one.contribution_list(&one.all()));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let block = proposal.block.hash();
    let drawn = one.epoch.auditors(&one.epoch.id, 1);
    let others: Vec<_> = one
        .all()
        .into_iter()
        .filter(|by| !drawn.contains(by))
        .collect();
    let ascending = |mut voters: Vec<MemberIndex>| {
        voters.sort_unstable();
        voters
    };
    // One auditor is too few, whatever the others say.
    let few = ascending([&others[..], &drawn[..1]].concat());
    let certificate = notarisation(&one, block, &few, &few);
    assert_eq!(one.add_certificate(&certificate), []);
    // Auditors that did not check are none.
    let voters = ascending([&others[..3], &drawn[..2]].concat());
    let certificate = notarisation(&one, block, &voters, &drawn[..1]);
    assert_eq!(one.add_certificate(&certificate), []);
    assert_eq!(one.member.view(), 1);
    // Two of three are enough.
    let certificate = notarisation(&one, block, &voters, &drawn[..2]);
    one.has_cast(&certificate);
    let effects = one.add_certificate(&certificate);
    assert_eq!(one.member.view(), 2);
    let finalize = |effect: &Effect| matches!(effect, Effect::Persist(Record::Vote(vote)) if vote.body == Body::Finalize { block });
    assert!(effects.iter().any(finalize), "{effects:?}");
}

#[test]
fn a_collector_waits_for_the_votes_of_auditors() {
    let epoch = epoch();
    let me = epoch.lead(2);
    let mut one = One::of(epoch.clone(), me).contributed();
    one.hear_lead(1, one.contribution_list(&one.all()));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let block = proposal.block.hash();
    let drawn = epoch.auditors(&epoch.id, 1);
    let vote = |one: &mut One, by: MemberIndex, checked: Checked| {
        one.hear(by, 0, 1, Body::Notarize { block, checked })
    };
    let others: Vec<_> = one
        .others()
        .into_iter()
        .filter(|by| !drawn.contains(by))
        .collect();
    for &by in &others {
        vote(&mut one, by, INCLUSION);
    }
    // More than a quorum, of which no auditor has checked.
    for &by in drawn.iter().filter(|by| **by != me) {
        vote(&mut one, by, INCLUSION);
    }
    assert_eq!(one.member.view(), 1);
    let certified = |effects: &[Effect]| {
        effects
            .iter()
            .any(|effect| matches!(effect, Effect::Report(Report::Certified(_))))
    };
    let mut two = One::of(epoch.clone(), me).contributed();
    two.hear_lead(1, two.contribution_list(&two.all()));
    two.propose(1, &proposal);
    let mut found = false;
    for &by in &others {
        found |= certified(&vote(&mut two, by, INCLUSION));
    }
    assert!(!found);
    for by in drawn.into_iter().filter(|by| *by != me) {
        found |= certified(&vote(&mut two, by, CHECKED));
    }
    assert!(found);
    assert_eq!(two.member.view(), 2);
}

#[test]
fn a_vote_that_claims_to_have_checked_an_empty_block_does_not_keep_it_from_being_notarised() {
    let epoch = epoch();
    let me = epoch.lead(2);
    let drawn = epoch.auditors(&epoch.id, 1);
    // There is no outcome to check: the honest votes say so, and only the structure is checked.
    for false_claim in [CHECKED, INCLUSION] {
        for auditor in [true, false] {
            let mut one = One::of(epoch.clone(), me);
            let others = one.others();
            let liar = others.iter().find(|by| drawn.contains(by) == auditor);
            let liar = *liar.unwrap();
            let block = Hash::of(b"an empty block");
            let checked = false_claim;
            one.hear(liar, 0, 1, Body::Notarize { block, checked });
            let checked = Checked::Structure;
            for &by in others.iter().filter(|by| **by != liar) {
                one.hear(by, 0, 1, Body::Notarize { block, checked });
            }
            let known = one.member.consensus.chain.newest_notarised();
            let votes = &known
                .expect("a notarisation of a quorum of honest votes")
                .votes;
            assert!(votes.iter().all(|vote| vote.member != liar), "{votes:?}");
        }
    }
}
