//! What members say of amendments: which word counts, what is full, what is objected to, new keys, and
//! members that are paused or stand by.

use super::amendments::{admitting, approval, approve, longer, word};
use super::one::*;
use super::prelude::*;
use super::sync::{answers, two_rounds, up};
use super::table::{epoch, epoch_with, key};
use crate::certificate::{Checked, Verdict};
use crate::change::ChangeError;
use crate::message::Amendment;

#[test]
fn a_member_keeps_four_amendments_of_each_other_member_and_says_that_it_keeps_no_more() {
    let mut one = One::follower(4);
    let from = one.others()[0];
    let amendments = [1, 2, 3, 4, 5].map(|more| {
        let mut amendment = longer(&one.epoch);
        amendment.protocol.rounds += more;
        amendment
    });
    let text = |amendment: &Amendment| Body::Amendment(Box::new(amendment.clone()));
    for amendment in &amendments[..4] {
        one.hear(from, 0, 0, approval(amendment));
        let known = one.hear(from, 0, 0, text(amendment));
        assert_eq!(known, [one.knows(amendment, &[from])]);
    }
    let full = refused(from, 0, ChangeError::Full { kept: 4 }.into());
    assert_eq!(one.hear(from, 0, 0, text(&amendments[4])), [full]);
    // Whoever floods others with amendments fills no log.
    let many = (10..40).map(|more| {
        let mut amendment = longer(&one.epoch);
        amendment.protocol.rounds += more;
        one.at(10_000 * more);
        one.hear(from, 0, 0, text(&amendment)).len()
    });
    assert_eq!(many.sum::<usize>(), 7);
    // One that it withdraws makes room.
    let effects = one.hear(from, 0, 0, word(&amendments[1], 2, false));
    assert_eq!(effects, [one.knows(&amendments[1], &[])]);
    let forgotten = |amendment: &Amendment| {
        let amendment = amendment.hash();
        Effect::Report(Report::AmendmentForgotten { amendment })
    };
    let known = one.hear(from, 0, 0, text(&amendments[4]));
    assert_eq!(
        known,
        [forgotten(&amendments[1]), one.knows(&amendments[4], &[])]
    );
    // One more takes the place of that one, which nobody approves, and not at once.
    assert_eq!(one.hear(from, 0, 0, text(&amendments[1])), []);
    one.at(394_000);
    let again = one.hear(from, 0, 0, text(&amendments[1]));
    assert_eq!(
        again,
        [forgotten(&amendments[4]), one.knows(&amendments[1], &[])]
    );
}

#[test]
fn a_member_keeps_so_many_bytes_of_the_amendments_of_each_other_member() {
    let mut one = One::follower(4);
    let epoch = one.epoch.clone();
    let long = |more: u64| {
        let mut amendment = longer(&epoch);
        amendment.protocol.rounds += more;
        amendment.text = vec![b'#'; crate::change::TEXT];
        amendment
    };
    let all = [1, 2, 3, 4].map(long);
    let text = |amendment: &Amendment| Body::Amendment(Box::new(amendment.clone()));
    let [approving, silent] = [one.others()[0], one.others()[1]];
    for amendment in &all[..3] {
        one.hear(approving, 0, 0, approval(amendment));
        let known = one.hear(approving, 0, 0, text(amendment));
        assert_eq!(known, [one.knows(amendment, &[approving])]);
    }
    // With members and rules, four of the longest texts are too much.
    let kept = 4 * crate::change::TEXT;
    let large = refused(approving, 0, ChangeError::Large { kept }.into());
    assert_eq!(one.hear(approving, 0, 0, text(&all[3])), [large]);
    // Another member has a budget of its own, and what nobody approves makes room in it.
    let other = [5, 6, 7, 8].map(long);
    for amendment in &other[..3] {
        let known = one.hear(silent, 0, 0, text(amendment));
        assert_eq!(known, [one.knows(amendment, &[])]);
    }
    let known = one.hear(silent, 0, 0, text(&other[3]));
    let [
        Effect::Report(Report::AmendmentForgotten { amendment }),
        last,
    ] = &known[..]
    else {
        panic!("{known:?}");
    };
    assert!(other[..3].iter().any(|of| of.hash() == *amendment));
    assert_eq!(*last, one.knows(&other[3], &[]));
}

#[test]
fn an_institution_approves_four_amendments_at_a_time_and_is_told_what_is_full() {
    let mut one = One::follower(4);
    let amendments = [1, 2, 3, 4, 5].map(|more| {
        let mut amendment = longer(&one.epoch);
        amendment.protocol.rounds += more;
        amendment
    });
    for amendment in &amendments[..4] {
        let effects = one.step(approve(amendment));
        assert!(effects.contains(&one.knows(amendment, &[one.me])));
    }
    let full = refused(one.me, 0, ChangeError::Full { kept: 4 }.into());
    assert_eq!(one.step(approve(&amendments[4])), [full]);
    let withdraw = Input::Withdraw {
        amendment: amendments[0].hash(),
        number: 2,
    };
    let effects = one.step(withdraw.clone());
    let said = one.sends(one.others()[0], 0, 0, word(&amendments[0], 2, false));
    assert!(effects.contains(&said), "{effects:?}");
    assert!(effects.contains(&one.knows(&amendments[0], &[])));
    assert_eq!(one.step(withdraw), []);
    let effects = one.step(approve(&amendments[4]));
    assert!(effects.contains(&one.knows(&amendments[4], &[one.me])));
}

#[test]
fn what_has_the_text_of_an_approved_amendment_is_not_approved() {
    let mut one = One::follower(4);
    let from = one.others()[0];
    let approved = longer(&one.epoch);
    one.step(approve(&approved));
    let mut other = approved.clone();
    other.protocol.rounds += 1;
    assert_eq!(other.text, approved.text);
    let text = Body::Amendment(Box::new(other.clone()));
    assert_eq!(one.hear(from, 0, 0, text), [one.knows(&other, &[])]);
}

#[test]
fn the_last_word_of_a_member_about_an_amendment_counts() {
    let mut one = One::leading(4, 1);
    let amendment = longer(&one.epoch);
    let others = one.others();
    let text = Body::Amendment(Box::new(amendment.clone()));
    one.hear(others[0], 0, 0, text);
    one.hear(others[0], 0, 0, word(&amendment, 1, true));
    one.hear(others[1], 0, 0, word(&amendment, 3, false));
    // An approval from before the withdrawal comes late, or is sent again by somebody.
    assert_eq!(one.hear(others[1], 0, 0, word(&amendment, 2, true)), []);
    let effects = one.hear(others[2], 0, 0, word(&amendment, 1, true));
    assert_eq!(effects, [one.knows(&amendment, &[others[0], others[2]])]);
    // Approved again, it is enough, and this lead proposes it.
    let effects = one.hear(others[1], 0, 0, word(&amendment, 4, true));
    let proposed = |effect: &Effect| matches!(effect, Effect::Persist(Record::Proposed(_)));
    assert!(effects.iter().any(proposed), "{effects:?}");
}

#[test]
fn a_withdrawn_approval_does_not_count_for_a_lead_nor_for_a_voter() {
    // The lead of view 1 does not propose what had enough approvals a moment ago.
    let epoch = epoch(4, 5);
    let me = epoch.lead(2);
    let (mut one, _) = One::restart(epoch, me, vec![]);
    let amendment = longer(&one.epoch);
    let others = one.others();
    let text = Body::Amendment(Box::new(amendment.clone()));
    one.hear(others[0], 0, 0, text);
    for &by in &others {
        one.hear(by, 0, 0, approval(&amendment));
    }
    let effects = one.hear(others[0], 0, 0, word(&amendment, 2, false));
    let why = ChangeError::Approvals { got: 2, needed: 3 };
    assert_eq!(
        effects,
        [
            one.knows(&amendment, &others[1..]),
            refused(me, 0, why.into())
        ]
    );
    let effects = one.skip(2);
    let proposed = |effect: &Effect| matches!(effect, Effect::Persist(Record::Proposed(_)));
    assert!(!effects.iter().any(proposed), "{effects:?}");
    // A voter that knows of the withdrawal refuses a block that holds the approval.
    let mut one = One::follower(4);
    one.hear(others[0], 0, 0, word(&amendment, 2, false));
    let others = one.others();
    one.hear(others[0], 0, 0, word(&amendment, 2, false));
    let proposal = one.changing(1, &amendment, &others);
    let why = ChangeError::Approvals { got: 2, needed: 3 };
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, why.into()));
}

#[test]
fn withdrawals_that_were_forgotten_do_not_let_older_approvals_count_again() {
    let mut one = One::follower(4);
    let from = one.others()[0];
    let amendments: Vec<_> = (1..=40)
        .map(|more| {
            let mut amendment = longer(&one.epoch);
            amendment.protocol.rounds += more;
            amendment
        })
        .collect();
    for (number, amendment) in (2..).step_by(2).zip(&amendments) {
        one.hear(from, 0, 0, word(amendment, number, false));
    }
    // The first of 40 is forgotten, and its approval had the number 1.
    let text = Body::Amendment(Box::new(amendments[0].clone()));
    one.hear(from, 0, 0, word(&amendments[0], 1, true));
    let effects = one.hear(one.others()[1], 0, 0, text);
    assert_eq!(effects, [one.knows(&amendments[0], &[])]);
    // What it says later counts.
    let effects = one.hear(from, 0, 0, word(&amendments[0], 100, true));
    assert_eq!(effects, [one.knows(&amendments[0], &[from])]);
}

#[test]
fn four_newest_approvals_of_a_member_are_kept_whatever_it_sends() {
    let mut one = One::follower(4);
    let (from, teller) = (one.others()[0], one.others()[1]);
    let amendments = [1, 2, 3, 4, 5].map(|more| {
        let mut amendment = longer(&one.epoch);
        amendment.protocol.rounds += more;
        amendment
    });
    for (number, amendment) in (1..).zip(&amendments) {
        one.hear(from, 0, 0, word(amendment, number, true));
    }
    let text = |amendment: &Amendment| Body::Amendment(Box::new(amendment.clone()));
    let first = one.hear(teller, 0, 0, text(&amendments[0]));
    assert_eq!(first, [one.knows(&amendments[0], &[])]);
    let last = one.hear(teller, 0, 0, text(&amendments[4]));
    assert_eq!(last, [one.knows(&amendments[4], &[from])]);
}

#[test]
fn an_approval_of_a_new_key_is_signed_when_its_node_has_answered() {
    let mut one = One::follower(4);
    let amendment = admitting(&one.epoch, "new");
    let new = key(99).public();
    // Nobody asked for it yet.
    assert_eq!(one.step(Input::Arrived { key: new }), []);
    // The others are shown it at once, and again.
    let text = Body::Amendment(Box::new(amendment.clone()));
    let shown: Vec<_> = one
        .others()
        .into_iter()
        .map(|to| one.sends(to, 0, 0, text.clone()))
        .collect();
    let mut expected = shown.clone();
    expected.extend([one.awaits(&amendment), one.knows(&amendment, &[])]);
    assert_eq!(one.step(approve(&amendment)), expected);
    let again = one.pass(4_000);
    assert!(shown.iter().all(|sent| again.contains(sent)), "{again:?}");
    assert_eq!(one.step(approve(&amendment)), []);
    // Another key changes nothing.
    let key = key(98).public();
    assert_eq!(one.step(Input::Arrived { key }), []);
    let effects = one.step(Input::Arrived { key: new });
    let said = one.sends(one.others()[0], 0, 0, approval(&amendment));
    assert!(effects.contains(&said), "{effects:?}");
    let reported = effects.iter().any(|effect| {
        matches!(effect, Effect::Report(Report::Amendment { approved, awaits, .. })
            if *approved == [one.me] && awaits.is_empty())
    });
    assert!(reported, "{effects:?}");
}

#[test]
fn a_new_key_that_f_plus_1_others_have_heard_need_not_answer_here() {
    let mut one = One::follower(4);
    let (amendment, others) = (admitting(&one.epoch, "new"), one.others());
    one.step(approve(&amendment));
    let said = one.sends(others[2], 0, 0, approval(&amendment));
    let first = one.hear(others[0], 0, 0, approval(&amendment));
    assert!(!first.contains(&said), "one of them may lie: {first:?}");
    let second = one.hear(others[1], 0, 0, approval(&amendment));
    assert!(second.contains(&said), "{second:?}");
}

#[test]
fn a_change_that_the_node_cannot_follow_is_neither_approved_nor_proposed_nor_voted_for() {
    let objecting = |one: &mut One| {
        one.member.config.examine = Examine::new(|amendment| {
            if amendment.text == b"longer" {
                Err("blob-limit = 39 is less than the model's 396 bytes".into())
            } else {
                Ok(())
            }
        });
    };
    let why = || {
        let text = "blob-limit = 39 is less than the model's 396 bytes".to_owned();
        Refusal::Change(ChangeError::Objection(text))
    };
    let mut one = One::follower(4);
    objecting(&mut one);
    let amendment = longer(&one.epoch);
    assert_eq!(one.step(approve(&amendment)), [refused(one.me, 0, why())]);
    let proposal = one.changing(1, &amendment, &one.others());
    assert_eq!(one.propose(1, &proposal), one.refuses_lead(1, why()));
    // As lead, with the approvals of all others.
    let mut one = One::leading(4, 1);
    objecting(&mut one);
    let others = one.others();
    let text = Body::Amendment(Box::new(amendment.clone()));
    let effects = one.hear(others[0], 0, 0, text);
    let said = effects.iter().any(|effect| {
        matches!(effect, Effect::Report(Report::Amendment { objection: Some(why), .. })
            if why.contains("396"))
    });
    assert!(said, "{effects:?}");
    let mut effects = Vec::new();
    for &by in &others {
        effects.extend(one.hear(by, 0, 0, approval(&amendment)));
    }
    let proposed = |effect: &Effect| matches!(effect, Effect::Persist(Record::Proposed(_)));
    assert!(!effects.iter().any(proposed), "{effects:?}");
    // What a quorum has made final is final for it too.
    let mut one = One::follower(4);
    objecting(&mut one);
    let proposal = one.changing(1, &amendment, &others);
    one.propose(1, &proposal);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    let effects = one.add_certificate(&proof);
    assert!(matches!(effects.last(), Some(Effect::EpochOver(_))));
}

#[test]
fn stolen_keys_are_those_of_members_that_are_replaced() {
    let epoch = epoch(4, 5);
    let mut amendment = longer(&epoch);
    let old = amendment.silos[1].key;
    amendment.stolen = vec![old];
    assert_eq!(amendment.check(&epoch), Err(ChangeError::Stolen));
    amendment.silos[1].key = key(77).public();
    assert_eq!(amendment.check(&epoch), Ok(()));
    amendment.stolen = vec![old, old];
    assert_eq!(amendment.check(&epoch), Err(ChangeError::Stolen));
    amendment.stolen = vec![key(78).public()];
    assert_eq!(amendment.check(&epoch), Err(ChangeError::Stolen));
    // Nobody leaves by itself and accuses somebody.
    let mut leaving = Amendment::leaving(&epoch_with(3, 5, |_| {}), MemberIndex(0));
    let three = epoch_with(3, 5, |_| {});
    assert!(leaving.leaver(&three).is_some());
    leaving.stolen = vec![three.roster.silos()[0].key];
    assert_eq!(leaving.leaver(&three), None);
}

#[test]
fn a_member_that_cannot_live_under_the_agreement_votes_on_changes_and_on_nothing_else() {
    let epoch = epoch(4, 5);
    let me = epoch.lead(1);
    let mut config = Config::new(epoch.clone(), me, key(me.0), SEED);
    config.bystander = Some("blob-limit".into());
    let mut effects = Vec::new();
    Member::new(config, Start::Kept(vec![]), Time::ZERO, &mut effects);
    let works = |effect: &Effect| {
        matches!(
            effect,
            Effect::Work(Request::Plan { .. })
                | Effect::Work(Request::Train { .. })
                | Effect::Work(Request::Apply { .. })
        )
    };
    assert!(!effects.iter().any(works), "{effects:?}");
    // It proposes what a quorum approves.
    let mut one = One::leading(4, 1);
    one.member.config.bystander = Some("blob-limit".into());
    let amendment = longer(&one.epoch);
    let others = one.others();
    let text = Body::Amendment(Box::new(amendment.clone()));
    one.hear(others[0], 0, 0, text);
    let mut effects = Vec::new();
    for &by in &others {
        effects.extend(one.hear(by, 0, 0, approval(&amendment)));
    }
    let proposed = |effect: &Effect| matches!(effect, Effect::Persist(Record::Proposed(_)));
    assert!(effects.iter().any(proposed), "{effects:?}");
    // A round that became final elsewhere is not adopted.
    let mut one = One::follower(4).signed();
    one.member.config.bystander = Some("blob-limit".into());
    let view = one.member.view();
    let proposal = one.proposal(view, &one.all());
    let proof = one.certificate(view, Verdict::Final(proposal.block.hash()));
    one.propose(view, &proposal);
    let effects = one.add_certificate(&proof);
    assert!(!effects.iter().any(works), "{effects:?}");
}

#[test]
fn a_paused_member_contributes_nothing_until_its_institution_has_signed() {
    let mut one = One::follower(4);
    one.member.governance.paused = true;
    let trains = |effects: &[Effect]| effects.contains(&Effect::Work(Request::Train { round: 1 }));
    assert!(!trains(&one.plan()));
    assert!(!trains(&one.pass(3_000)));
    // It votes on changes all the same.
    let amendment = longer(&one.epoch);
    let proposal = one.changing(1, &amendment, &one.others());
    let votes = one.notarizes(&proposal.block, Checked::Structure);
    assert!(one.propose(1, &proposal).ends_with(&votes));
    assert!(trains(&one.step(Input::Resume)));
}

#[test]
fn an_amendment_that_waited_takes_the_place_of_one_that_may_not_follow_any_more() {
    let epoch = epoch(4, 5);
    let me = epoch.lead(3);
    let (mut one, _) = One::restart(epoch, me, vec![]);
    let mut short = admitting(&one.epoch, "short");
    short.protocol.rounds = 1;
    let other = admitting(&one.epoch, "other");
    let others = one.others();
    for amendment in [&short, &other] {
        let text = Body::Amendment(Box::new(amendment.clone()));
        one.hear(others[0], 0, 0, text);
        for &by in &others {
            one.hear(by, 0, 0, approval(amendment));
        }
    }
    // Two rounds became final, and the first amendment allows one. This member leads the next view.
    up(&mut one, others[0]);
    let answer = two_rounds(&one);
    let effects = answers(&mut one, others[0], answer);
    assert_eq!((one.member.view(), one.member.lead_now()), (3, me));
    let proposed = effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Proposed(message)) => match &message.body {
            Body::Proposal(proposal) => proposal.block.change(),
            _ => None,
        },
        _ => None,
    });
    let change = proposed.expect("a proposal of the other amendment");
    assert_eq!(change.amendment, other);
    // It says why the first is not proposed.
    let (last, now) = (1, 2);
    let why = Refusal::Change(ChangeError::Rounds { last, now });
    assert!(effects.contains(&refused(me, 0, why)), "{effects:?}");
}

#[test]
fn a_federation_that_is_complete_wakes_up_for_an_approved_change() {
    let complete = || {
        let epoch = epoch_with(4, 1, |_| {});
        let me = epoch.lead(2);
        let mut one = One::of(epoch, me).signed();
        one.finish_round(&one.all());
        assert!(one.member.complete());
        one.pass(2_000);
        assert_eq!(one.member.deadline(), None);
        one
    };
    let more = |one: &One| {
        let mut amendment = longer(&one.epoch);
        amendment.protocol.rounds = 3;
        amendment
    };
    // As lead of the next view it proposes the change.
    let mut one = complete();
    let amendment = more(&one);
    let others = one.others();
    one.step(approve(&amendment));
    // Its own approval is repeated until the epoch is over.
    assert!(one.member.deadline().is_some());
    one.hear(others[0], 0, 0, approval(&amendment));
    let effects = one.hear(others[1], 0, 0, approval(&amendment));
    let by = [one.me, others[0], others[1]];
    let proposal = one.changing(2, &amendment, &by);
    let proposed = one.proposes(2, &proposal);
    assert!(effects.contains(&proposed[0]), "{effects:?}");
    // One that knew of nothing votes for it, and replaces the lead if that dies.
    let one = complete();
    let proposal = one.changing(2, &amendment, &others);
    let lead = one.epoch.lead(2);
    assert_eq!(lead, one.me);
    let mut other = {
        let epoch = one.epoch.clone();
        let me = epoch.lead(3);
        let mut other = One::of(epoch, me).signed();
        other.finish_round(&other.all());
        other.pass(2_000);
        other
    };
    let effects = other.propose(2, &proposal);
    // It collects the votes of this view too.
    let mut votes = other.notarizes(&proposal.block, Checked::Structure);
    votes.retain(|effect| !matches!(effect, Effect::Send { to, .. } if *to == other.me));
    assert!(effects.ends_with(&votes), "{effects:?}");
    let effects = other.pass(60_000);
    let against = |effect: &Effect| matches!(effect, Effect::Report(Report::Nullifying { .. }));
    assert!(effects.iter().any(against), "{effects:?}");
}
