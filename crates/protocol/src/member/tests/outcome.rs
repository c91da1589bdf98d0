//! Judging proposals (R1): enough entries, the member's own entry among them, and an outcome that
//! equals the claimed one.

use super::judge::{checks, settles};
use super::one::*;
use super::prelude::*;
use crate::certificate::Verdict;
use crate::effects::WorkError;
use crate::message::{ContributionList, Phase, Proposal, RoundManifest};

#[test]
pub(super) fn a_round_with_fewer_than_the_fewest_entries_is_refused() {
    // A contribution list this short is not kept, so the manifest is put there.
    let mut one = One::follower(4).signed();
    let few = &one.all()[..2];
    let manifest = one.manifest(few);
    let proposal = one.proposal_of(1, &manifest, few);
    one.member
        .rounds
        .round
        .manifests
        .keep(manifest.root(), manifest.into(), 1, 3);
    let (entries, needed) = (2, 3);
    let reason = Refusal::TooFewEntries { entries, needed };
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, reason));
}

/// A member of five, where three entries are enough only after patience. It has a receipt, and a
/// proposal with three entries is here.
pub(super) fn three_of_five() -> (One, Proposal) {
    let mut one = One::follower(5).contributed();
    one.hold_all();
    let entry = one.entry(one.me).id;
    one.hear_lead(1, Body::Receipt { entry });
    let mut authors = vec![one.me, one.epoch.lead(1), one.epoch.lead(2)];
    authors.sort_unstable();
    one.hear_lead(1, one.contribution_list(&authors));
    let proposal = one.proposal(1, &authors);
    assert_eq!(one.propose(1, &proposal), []);
    (one, proposal)
}

#[test]
pub(super) fn a_proposal_without_enough_entries_waits_for_patience() {
    let (mut one, proposal) = three_of_five();
    one.now = Time::since_start(Duration::from_millis(19_999));
    let (phase, counter) = (Phase::Voting, 19);
    assert_eq!(one.hear_lead(1, Body::Progress { phase, counter }), []);
    let patience = Time::ZERO + one.epoch.patience();
    assert_eq!(one.member.deadline(), Some(patience));
    let check = checks(one.case(&proposal), one.holders(1));
    assert_eq!(one.at(20_000), [check]);
}

#[test]
pub(super) fn an_excused_member_does_not_count_as_missing() {
    let (mut one, proposal) = three_of_five();
    // One may be missing anyway; the other is marked absent.
    let peer = one.epoch.lead(3);
    let check = checks(one.case(&proposal), one.holders(1));
    // A link that is down does not excuse by itself.
    assert_eq!(one.step(Input::Down { peer }), []);
    one.member.rounds.absences.set(peer, 0);
    assert_eq!(one.step(Input::Time), [check]);
}

#[test]
pub(super) fn of_few_participants_none_may_be_missing_unless_excused() {
    for marked_absent in [true, false] {
        let mut one = One::follower(4);
        let other = one.epoch.lead(2);
        let mut named = vec![one.me, other];
        named.sort_unstable();
        one.plan_with(|plan| plan.participants = Some(named));
        one.train();
        one.hear_lead(1, one.contribution_list(&[one.me]));
        if marked_absent {
            one.member.rounds.absences.set(other, 2);
        }
        let proposal = one.proposal(1, &[one.me]);
        let check = checks(one.case(&proposal), one.holders(1));
        let expected = if marked_absent { vec![check] } else { vec![] };
        assert_eq!(one.propose(1, &proposal), expected);
    }
}

#[test]
pub(super) fn a_round_without_entries_waits_for_patience_though_all_are_excused() {
    let mut one = One::follower(4);
    let peer = one.epoch.lead(2);
    one.plan_with(|plan| plan.participants = Some(vec![peer]));
    one.member.rounds.absences.set(peer, 2);
    one.hear_lead(1, one.contribution_list(&[]));
    let proposal = one.proposal(1, &[]);
    assert_eq!(one.propose(1, &proposal), []);
    one.now = Time::ZERO + one.epoch.patience();
    let (phase, counter) = (Phase::Voting, 20);
    let check = checks(one.case(&proposal), one.holders(1));
    assert_eq!(one.hear_lead(1, Body::Progress { phase, counter }), [check]);
}

/// A member with a proposal of view 1 that lacks its own entry.
fn without_mine() -> (One, Proposal) {
    let mut one = One::follower(4).contributed();
    one.hear_lead(1, one.contribution_list(&one.others()));
    let proposal = one.proposal(1, &one.others());
    (one, proposal)
}

#[test]
pub(super) fn a_sheet_without_the_own_receipted_entry_is_refused() {
    let (mut one, proposal) = without_mine();
    let receipt = Body::Receipt {
        entry: one.entry(one.me).id,
    };
    one.hear_lead(1, receipt.clone());
    let refusal = one.refuses_lead(1, Refusal::LeftOut);
    assert_eq!(one.propose(1, &proposal), refusal);
    // Without a receipt, or with one of another view or for something else, it may be missing.
    let (mut one, proposal) = without_mine();
    let entry = Hash::of(b"another entry");
    one.hear_lead(1, Body::Receipt { entry });
    let check = checks(one.case(&proposal), one.holders(1));
    assert_eq!(one.propose(1, &proposal), [check]);
    // A receipt during the work counts.
    one.hear_lead(1, receipt);
    one.settle(&proposal, Ok(outcome()));
    assert_eq!(
        one.check(&proposal, Ok(())),
        one.refuses_lead(1, Refusal::LeftOut)
    );
}

#[test]
pub(super) fn a_receipt_during_the_computation_of_the_outcome_counts() {
    let (mut one, proposal) = without_mine();
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    let entry = one.entry(one.me).id;
    assert_eq!(one.hear_lead(1, Body::Receipt { entry }), []);
    let refusal = one.refuses_lead(1, Refusal::LeftOut);
    assert_eq!(one.settle(&proposal, Ok(outcome())), refusal);
}

#[test]
pub(super) fn a_receipt_of_an_earlier_view_does_not_count() {
    let (mut one, _) = without_mine();
    let entry = one.entry(one.me).id;
    one.hear_lead(1, Body::Receipt { entry });
    one.skip(1);
    let mut proposal = one.proposal(2, &one.others());
    proposal.skipped = vec![one.certificate(1, Verdict::Nullified)];
    let check = checks(one.case(&proposal), one.holders(2));
    assert_eq!(one.propose(2, &proposal), [check]);
}

#[test]
pub(super) fn a_decision_that_fails_its_check_is_refused() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let refusal = one.refuses_lead(1, Refusal::Work("a better one exists".into()));
    assert_eq!(
        one.check(&proposal, Err(no("a better one exists"))),
        refusal
    );
    // The outcome is not computed and the block not voted for after that.
    assert_eq!(one.settle(&proposal, Ok(outcome())), []);
}

#[test]
pub(super) fn a_round_whose_outcome_cannot_be_computed_is_refused() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    let refusal = one.refuses_lead(1, Refusal::Work("no".into()));
    assert_eq!(one.settle(&proposal, Err(no("no"))), refusal);
}

#[test]
pub(super) fn another_outcome_than_the_recomputed_one_is_refused() {
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    // An outcome alone is not enough: the decision must be accepted too.
    assert_eq!(one.settle(&proposal, Ok(outcome())), []);
    let mut one = One::follower(4).signed();
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    let (claimed, recomputed) = (outcome(), Hash::of(b"something else"));
    let reason = Refusal::WrongOutcome {
        claimed,
        recomputed,
    };
    let refusal = one.refuses_lead(1, reason);
    assert_eq!(one.settle(&proposal, Ok(recomputed)), refusal);
}

#[test]
pub(super) fn work_that_lacks_a_model_is_tried_again_after_a_beat() {
    let mut one = One::follower(4).signed();
    let entry = one.entry(one.me).id;
    one.hear_lead(1, Body::Receipt { entry });
    let proposal = one.proposal(1, &one.all());
    let (case, holders) = (one.case(&proposal), one.holders(1));
    let (check, settle) = (
        checks(case.clone(), holders.clone()),
        settles(case, holders),
    );
    assert_eq!(one.propose(1, &proposal), [check.clone()]);
    assert_eq!(one.check(&proposal, Err(WorkError::Unavailable)), []);
    assert_eq!(one.at(999), []);
    assert_eq!([one.at(1000), one.at(1001)].concat(), [check]);
    assert_eq!(one.check(&proposal, Ok(())), [settle.clone()]);
    assert_eq!(one.settle(&proposal, Err(WorkError::Unavailable)), []);
    assert_eq!([one.at(2000), one.at(2001)].concat(), [settle]);
    let votes = one.notarizes(&proposal.block, CHECKED);
    assert_eq!(one.settle(&proposal, Ok(outcome())), votes);
}

#[test]
pub(super) fn a_sheet_with_other_scores_has_another_root() {
    let one = One::follower(4);
    let (entries, scores) = (one.entries(&one.all()), Some(vec![vec![0.0; 4]; 4]));
    let scored = RoundManifest { entries, scores };
    assert_ne!(scored.root(), one.manifest(&one.all()).root());
}

#[test]
pub(super) fn a_member_missing_in_the_last_round_is_excused_in_the_next() {
    // Three of five entries; one may be missing anyway.
    for absent in [3, 1] {
        let one = One::follower(5);
        let absent = one.epoch.lead(absent);
        let mut one = one.without_in_round_1(absent);
        let mut authors = vec![one.me, one.epoch.lead(1), one.epoch.lead(2)];
        authors.sort_unstable();
        one.hear_lead(2, one.contribution_list(&authors));
        let proposal = one.proposal(2, &authors);
        let check = checks(one.case(&proposal), one.holders(2));
        let marked_absent = !authors.contains(&absent);
        let expected = if marked_absent { vec![check] } else { vec![] };
        assert_eq!(one.propose(2, &proposal), expected);
    }
}

#[test]
pub(super) fn models_that_were_fetched_to_check_a_proposal_are_held() {
    let mut one = One::follower(4).contributed();
    let hold = one.hear_lead(1, one.contribution_list(&one.all()));
    assert!(matches!(hold[..], [Effect::Work(Request::Hold { .. })]));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let effects = one.check(&proposal, Ok(()));
    let manifest = one.manifest(&one.all()).root();
    let inclusion = one.sends(one.epoch.lead(1), 1, 0, Body::Inclusion { manifest });
    let settle = settles(one.case(&proposal), one.holders(1));
    let both = [
        vec![inclusion.clone(), settle.clone()],
        vec![settle, inclusion],
    ];
    assert!(both.contains(&effects), "{effects:?}");
}

#[test]
fn a_judged_sheet_is_kept_when_leads_send_more_sheets() {
    // It does not have the models, so as lead it does not take the manifest over.
    let mut one = One::follower(4).contributed();
    one.hear_lead(1, one.contribution_list(&one.all()));
    one.propose(1, &one.proposal(1, &one.all()));
    let root = one.manifest(&one.all()).root();
    for view in 1..40 {
        one.skip(view);
        for invented in 0..3 {
            let mut entries = one.entries(&one.all());
            entries[0].fields.coalition = Some(view as u32 * 3 + invented);
            let lead = one.epoch.lead(view + 1);
            if lead != one.me {
                one.hear(
                    lead,
                    1,
                    view + 1,
                    Body::ContributionList(ContributionList { entries }),
                );
            }
        }
    }
    assert!(one.member.rounds.round.manifests.get(&root).is_some());
}
