//! Judging proposals: which are voted for (R1), and which are refused (R2).

use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::certificate::{Certificate, Checked, Verdict};
use crate::effects::Case;
use crate::message::{Content, Learning, Phase, Proposal};
use crate::parameters::Privacy;

fn learning(proposal: &mut Proposal) -> &mut Learning {
    match &mut proposal.block.content {
        Content::Learning(learning) => learning,
        _ => panic!("a learning block"),
    }
}

pub(super) fn checks(case: Case, holders: Vec<MemberIndex>) -> Effect {
    Effect::Work(Request::Check { case, holders })
}

pub(super) fn settles(case: Case, holders: Vec<MemberIndex>) -> Effect {
    Effect::Work(Request::Settle { case, holders })
}

/// A member that holds the manifest of all members refuses a proposal of view 1 with this change.
fn refuses(change: impl FnOnce(&One, &mut Proposal), reason: Refusal) {
    let mut one = One::follower(4).signed();
    let mut proposal = one.proposal(1, &one.all());
    change(&one, &mut proposal);
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, reason));
    // It is refused once, and not voted for later.
    assert_eq!(one.propose(1, &proposal), []);
    assert_eq!(one.step(Input::Time), []);
}

#[test]
pub(super) fn a_proposal_is_checked_then_recomputed_then_voted_for_once() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    let (case, holders) = (one.case(&proposal), one.holders(1));
    let check = checks(case.clone(), holders.clone());
    assert_eq!(one.propose(1, &proposal), [check]);
    assert_eq!(one.propose(1, &proposal), []);
    assert_eq!(one.check(&proposal, Ok(())), [settles(case, holders)]);
    let votes = one.notarizes(&proposal.block, CHECKED);
    assert_eq!(one.settle(&proposal, Ok(outcome())), votes);
    assert_eq!(one.propose(1, &proposal), []);
    assert_eq!(one.settle(&proposal, Ok(outcome())), []);
}

#[test]
pub(super) fn a_proposal_before_its_plan_and_sheet_waits_for_them() {
    let mut one = One::follower(4);
    let proposal = one.proposal(1, &one.all());
    assert_eq!(one.propose(1, &proposal), []);
    one.plan();
    one.train();
    one.hold_all();
    let effects = one.hear_lead(1, one.contribution_list(&one.all()));
    let manifest = one.manifest(&one.all()).root();
    let inclusion = one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { manifest });
    let check = checks(one.case(&proposal), one.holders(1));
    assert_eq!(effects, [inclusion, check]);
}

#[test]
pub(super) fn messages_of_leads_are_refused_from_other_members() {
    let (epoch, counter) = (One::follower(4).epoch, 1);
    let wrong = epoch.lead(2);
    for view in [1, 2] {
        let said = |one: &One| {
            vec![
                Body::Receipt {
                    entry: one.entry(one.me).id,
                },
                one.contribution_list(&one.all()),
                Body::Manifest(one.manifest(&one.all())),
                Body::Progress {
                    phase: Phase::Waiting,
                    counter,
                },
                Body::Proposal(Box::new(one.proposal(view, &one.all()))),
            ]
        };
        let from = if view == 1 { wrong } else { epoch.lead(1) };
        for nth in 0..5 {
            let mut one = One::follower(4).contributed();
            let body = said(&one).swap_remove(nth);
            let (kind, lead) = (body.kind(), one.name(view));
            let round = u64::from(kind.scope().round);
            let reason = Refusal::NotTheLead { kind, view, lead };
            let effects = one.hear(from, round, view, body);
            assert_eq!(effects, [refused(from, round, reason)]);
            // Nor does it count when its view begins.
            let later = one.skip(1);
            let entered = one.leaves_by(&one.certificate(1, Verdict::Nullified));
            let contributes = one.contributes(one.epoch.lead(2));
            assert_eq!(later, [entered, vec![contributes]].concat());
        }
    }
}

#[test]
pub(super) fn messages_of_a_later_lead_are_kept_until_its_view_begins() {
    let mut one = One::follower(4).contributed();
    let receipt = |one: &One| Body::Receipt {
        entry: one.entry(one.me).id,
    };
    // Messages of earlier views, and of views more than two cycles ahead, are ignored.
    one.skip(1);
    let (far, stranger) = (2 + 2 * 4 + 1, one.epoch.lead(3));
    assert_eq!(one.hear(stranger, 0, 1, receipt(&one)), []);
    assert_eq!(one.hear(stranger, 0, far, receipt(&one)), []);
    // A receipt of the next view counts as soon as that view begins.
    assert_eq!(one.hear_lead(3, receipt(&one)), []);
    let contribution_list = one.contribution_list(&one.all());
    assert_eq!(one.hear_lead(3, contribution_list.clone()), []);
    assert_eq!(one.hear_lead(3, contribution_list), []);
    // Only the last message of a kind is kept.
    assert_eq!(one.member.consensus.view.early.len(), 2);
    let effects = one.skip(2);
    let entered = one.leaves_by(&one.certificate(2, Verdict::Nullified));
    let hold = Effect::Work(Request::Hold {
        round: 1,
        entries: one
            .entries(&one.all())
            .into_iter()
            .filter(|entry| *entry != one.entry(one.me))
            .collect(),
        holders: one.holders(3),
    });
    let contributes = one.contributes(one.epoch.lead(3));
    assert_eq!(effects, [entered, vec![contributes, hold]].concat());
    assert_eq!(one.member.rounds.receipt, Some(one.entry(one.me).id));
}

#[test]
pub(super) fn a_block_of_another_view_or_epoch_than_its_proposal_is_refused() {
    let changes: [fn(&mut Proposal); 2] =
        [|p| p.block.view = 2, |p| p.block.epoch = Hash::of(b"other")];
    for change in changes {
        let mut one = One::follower(4).signed();
        let mut proposal = one.proposal(1, &one.all());
        change(&mut proposal);
        let said = refused(one.epoch.lead(1), 0, Refusal::BlockMisplaced);
        let votes = one.nullifies(1, Refusal::BlockMisplaced);
        assert_eq!(one.propose(1, &proposal), [vec![said], votes].concat());
        assert!(
            one.member
                .consensus
                .chain
                .block(&proposal.block.hash())
                .is_none()
        );
    }
}

/// A member in view 2, which knows that a block of view 1 is notarised.
fn notarised() -> (One, Certificate) {
    let mut one = One::follower(4).signed();
    let block = one.proposal(1, &one.all()).block;
    let certificate = one.certificate(1, Verdict::Notarised(block.hash()));
    one.add_certificate(&certificate);
    (one, certificate)
}

#[test]
pub(super) fn an_empty_block_on_a_notarised_one_is_voted_for_at_once() {
    let (mut one, notarised) = notarised();
    let empty = one.empty(2, &notarised);
    let votes = one.notarizes(&empty.block, Checked::Structure);
    assert_eq!(one.propose(2, &empty), votes);
}

#[test]
pub(super) fn an_empty_block_without_a_notarisation_is_refused() {
    let (mut one, notarised) = notarised();
    let mut empty = one.empty(2, &notarised);
    empty.parent = None;
    let reason = Refusal::NothingNotarised;
    assert_eq!(one.propose(2, &empty), one.refuses_lead(2, reason));
}

#[test]
pub(super) fn an_empty_block_with_the_notarisation_of_another_parent_is_refused() {
    let (mut one, notarised) = notarised();
    let mut empty = one.empty(2, &notarised);
    empty.block.parent = Hash::of(b"another block");
    let reason = Refusal::ParentUnproven;
    assert_eq!(one.propose(2, &empty), one.refuses_lead(2, reason));
    // A nullification of the parent's view does not do.
    let (mut one, notarised) = self::notarised();
    let mut empty = one.empty(2, &notarised);
    empty.parent = Some(one.certificate(1, Verdict::Nullified));
    let passed_on = one.passes_on(&one.certificate(1, Verdict::Nullified));
    let refusal = one.refuses_lead(2, Refusal::ParentUnproven);
    assert_eq!(one.propose(2, &empty), [passed_on, refusal].concat());
    // Nor does its final certificate.
    let (mut one, notarised) = self::notarised();
    let mut empty = one.empty(2, &notarised);
    let proof = one.certificate(1, Verdict::Final(empty.block.parent));
    empty.parent = Some(proof.clone());
    let mut expected = one.passes_on(&proof);
    let missing = Some(empty.block.parent);
    expected.push(one.asks_for(2, one.others()[1], (0, 2), missing));
    expected.extend(one.refuses_lead(2, Refusal::ParentUnproven));
    assert_eq!(one.propose(2, &empty), expected);
}

#[test]
pub(super) fn a_parent_that_is_not_of_an_earlier_view_is_refused() {
    // `receive` would add the certificates in the proposal first and leave the view; so it is bypassed.
    let mut one = One::follower(4).signed();
    let parent = one.certificate(1, Verdict::Notarised(Hash::of(b"of the same view")));
    let body = Body::Proposal(Box::new(one.empty(1, &parent)));
    let (message, _) = one.sealed(one.epoch.lead(1), 0, 1, body);
    one.member.proposal(message);
    let effects = one.step(Input::Time);
    assert_eq!(effects, one.refuses_lead(1, Refusal::SkipUnproven));
}

#[test]
pub(super) fn a_round_on_another_parent_than_the_last_final_block_is_refused() {
    let change = |_: &One, proposal: &mut Proposal| proposal.block.parent = Hash::of(b"another");
    refuses(change, Refusal::ParentNotFinal);
    // A block that is only notarised is not enough, even with further certificates of its proposer.
    let (mut one, notarised) = notarised();
    let mut proposal = one.proposal(2, &one.all());
    proposal.block.parent = notarised.verdict.block().unwrap();
    proposal.parent = Some(notarised);
    let reason = Refusal::ParentNotFinal;
    assert_eq!(one.propose(2, &proposal), one.refuses_lead(2, reason));
}

#[test]
fn a_view_that_is_only_known_to_be_notarised_is_not_skipped() {
    let (mut one, _) = notarised();
    let proposal = one.proposal(2, &one.all());
    let asks = one.asks(1, one.epoch.lead(2), 0, 1);
    assert_eq!(one.propose(2, &proposal), [asks]);
}

#[test]
pub(super) fn a_proposal_of_another_round_is_refused() {
    let wrong = |one: &One, proposal: &mut Proposal, round: u64| {
        let manifest = one.manifest(&one.all()).root();
        let sign = |&by: &MemberIndex| {
            let (message, _) = one.sealed(by, round, 0, Body::Inclusion { manifest });
            (by, message.signature)
        };
        learning(proposal).round = round;
        learning(proposal).inclusions = one.all().iter().map(sign).collect();
    };
    let reason = |got| Refusal::WrongRound { got, now: 1 };
    refuses(|one, proposal| wrong(one, proposal, 2), reason(2));
}

#[test]
pub(super) fn a_proposal_with_another_plan_is_refused() {
    let (got, ours) = (Hash::of(b"another plan"), plan());
    let change = |_: &One, proposal: &mut Proposal| learning(proposal).plan = got;
    refuses(change, Refusal::WrongPlan { got, ours });
}

#[test]
pub(super) fn a_sheet_without_exactly_one_signature_for_each_entry_is_refused() {
    let change = |one: &One, proposal: &mut Proposal| {
        *proposal = one.proposal_of(1, &one.manifest(&one.all()), &one.others());
    };
    let (signers, entries) = (3, 4);
    refuses(change, Refusal::Signers { signers, entries });
    let mut one = One::follower(4).signed();
    let manifest = one.manifest(&one.without(one.epoch.lead(1)));
    one.hear_lead(1, one.contribution_list(&one.without(one.epoch.lead(1))));
    let proposal = one.proposal_of(1, &manifest, &one.all());
    let (signers, entries) = (4, 3);
    let reason = Refusal::Signers { signers, entries };
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, reason));
}

#[test]
pub(super) fn a_signature_of_a_member_that_the_plan_does_not_name_is_refused() {
    let mut one = One::follower(4);
    let (left_out, other) = (one.epoch.lead(3), one.epoch.lead(2));
    let named = one.without(left_out);
    one.plan_with(|plan| plan.participants = Some(named.clone()));
    one.train();
    one.hear_lead(1, one.contribution_list(&named));
    let proposal = one.proposal_of(1, &one.manifest(&named), &one.without(other));
    let reason = Refusal::NotAParticipant(left_out);
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, reason));
}

#[test]
pub(super) fn shown_names_that_are_not_those_of_the_signers_are_refused() {
    let epoch = epoch_with(4, 5, |protocol| protocol.privacy = Privacy::ClearWithNames);
    let (me, lead) = (epoch.lead(0), epoch.lead(1));
    for good in [true, false] {
        let mut one = One::of(epoch.clone(), me).contributed();
        let mut manifest = one.manifest(&one.all());
        if !good {
            let of = one.entry(lead).id;
            let forged = manifest.entries.iter_mut().find(|entry| entry.id == of);
            forged.unwrap().fields.member = Some(one.epoch.lead(2));
        }
        one.hold_all();
        let entries = manifest.entries.clone();
        one.hear_lead(
            1,
            Body::ContributionList(crate::message::ContributionList { entries }),
        );
        let proposal = one.proposal_of(1, &manifest, &one.all());
        let effects = one.propose(1, &proposal);
        if good {
            assert_eq!(effects, [checks(one.case(&proposal), one.holders(1))]);
        } else {
            assert_eq!(effects, one.refuses_lead(1, Refusal::WrongNames));
        }
    }
}

#[test]
pub(super) fn two_proposals_of_a_view_are_evidence_and_are_voted_against() {
    let mut one = One::follower(4).signed();
    let lead = one.epoch.lead(1);
    let first = one.proposal(1, &one.all());
    let mut second = first.clone();
    learning(&mut second).decision = b"another".to_vec();
    one.propose(1, &first);
    let signed = |proposal: &Proposal| {
        let body = Body::Proposal(Box::new(proposal.clone()));
        one.sealed(lead, 0, 1, body).0
    };
    let mut expected = one.accuses(&signed(&first), &signed(&second));
    let reason = Refusal::Contradiction("two proposals in view 1".into());
    expected.push(refused(lead, 0, reason.clone()));
    expected.extend(one.nullifies(1, reason));
    assert_eq!(one.propose(1, &second), expected);
}

/// A member in view 3, which does not know how view 1 ended.
fn in_view_3() -> (One, Proposal) {
    let mut one = One::follower(4).signed();
    one.skip(2);
    let proposal = one.proposal(3, &one.all());
    (one, proposal)
}

#[test]
pub(super) fn the_nullification_of_a_skipped_view_is_asked_for_once_per_beat() {
    let (mut one, proposal) = in_view_3();
    let lead = one.epoch.lead(3);
    let entry = one.entry(one.me).id;
    one.hear_lead(3, Body::Receipt { entry });
    assert_eq!(one.propose(3, &proposal), [one.asks(1, lead, 0, 1)]);
    assert_eq!(one.at(999), []);
    let again = one.asks(1, lead, 0, 1);
    assert_eq!([one.at(1000), one.at(1001)].concat(), [again]);
    // The answer brings the missing nullification.
    let mut answer = one.answer(1);
    let nullified = one.certificate(1, Verdict::Nullified);
    answer.certificates = vec![nullified.clone()];
    let mut expected = one.passes_on(&nullified);
    expected.push(checks(one.case(&proposal), one.holders(3)));
    let response = Body::SyncResponse(Box::new(answer));
    assert_eq!(one.hear(lead, 0, 0, response), expected);
}

#[test]
pub(super) fn certificates_inside_a_proposal_are_added_before_it_is_judged() {
    let (mut one, mut proposal) = in_view_3();
    let nullified = one.certificate(1, Verdict::Nullified);
    proposal.skipped = vec![nullified.clone(), one.certificate(2, Verdict::Nullified)];
    let mut expected = one.passes_on(&nullified);
    expected.push(checks(one.case(&proposal), one.holders(3)));
    assert_eq!(one.propose(3, &proposal), expected);
}

#[test]
pub(super) fn a_member_restarted_after_its_vote_does_not_vote_again() {
    let one = One::follower(4);
    let (first, second) = (one.proposal(1, &one.all()), one.proposal(1, &one.others()));
    let block = first.block.hash();
    let vote = Body::Notarize {
        block,
        checked: CHECKED,
    };
    let (message, _) = one.sealed(one.me, 0, 1, vote);
    let kept = Start::Kept(vec![Record::Vote(message)]);
    let (one, _) = One::start(one.epoch, one.me, kept);
    let mut one = one.signed();
    one.hear_lead(1, one.contribution_list(&one.others()));
    assert_eq!(one.propose(1, &second), []);
}
