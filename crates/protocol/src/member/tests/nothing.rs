//! Members that contribute nothing to a round, and say so.

use super::lead::{closes, with};
use super::one::*;
use super::outcome::three_of_five;
use super::prelude::*;
use crate::message::Phase;

/// A member whose training of round 1 fails, and the effects of that.
fn fails(one: &mut One) -> Vec<Effect> {
    one.plan();
    let (round, result) = (one.member.round(), Err("no data".to_owned()));
    one.step(Input::Done(Answer::Trained { round, result }))
}

fn report(one: &One) -> Effect {
    let (round, reason) = (one.member.round(), "no data".to_owned());
    Effect::Report(Report::TrainingFailed { round, reason })
}

/// The member says to these that it has nothing for a round.
fn says(one: &One, members: &[MemberIndex], round: u64) -> Vec<Effect> {
    let says = |&to: &MemberIndex| one.sends(to, round, 0, Body::Abstain);
    members.iter().map(says).collect()
}

/// Another member says that it has nothing for a round.
fn hears(one: &mut One, from: MemberIndex, round: u64) -> Vec<Effect> {
    one.hear(from, round, 0, Body::Abstain)
}

/// The lead is at work.
fn goes_on(one: &mut One, counter: u64) {
    let phase = Phase::Collecting;
    assert_eq!(one.hear_lead(1, Body::Progress { phase, counter }), []);
}

fn known(member: MemberIndex, round: u64) -> Effect {
    Effect::Report(Report::Nothing { member, round })
}

#[test]
fn a_member_whose_training_failed_says_so_to_all_and_again_every_few_beats() {
    let mut one = One::follower(4);
    let mut expected = vec![report(&one)];
    expected.extend(says(&one, &one.others(), 1));
    assert_eq!(fails(&mut one), expected);
    for heartbeat in 1..=3 {
        assert_eq!(one.pass(1000 * heartbeat), []);
        goes_on(&mut one, heartbeat);
    }
    assert_eq!(one.pass(4000), says(&one, &one.others(), 1));
    // A member that comes back is told at once.
    let peer = one.others()[1];
    let round_trip = Duration::from_millis(20);
    let told = one.step(Input::Up { peer, round_trip });
    assert!(told.ends_with(&says(&one, &[peer], 1)), "{told:?}");
}

#[test]
fn a_member_that_may_not_sign_and_one_in_an_older_format_say_nothing() {
    let mut one = One::in_format(1, 4);
    let failed = report(&one);
    assert_eq!(fails(&mut one), [failed.clone()]);
    goes_on(&mut one, 1);
    assert_eq!(one.pass(2900), []);
    goes_on(&mut one, 2);
    assert_eq!(one.pass(4000), []);
    let epoch = super::table::epoch(4, 5);
    let me = epoch.lead(0);
    let (mut listening, _) = One::start(epoch, me, Start::New);
    assert_eq!(fails(&mut listening), [failed]);
}

#[test]
fn the_lead_waits_for_nobody_who_has_nothing_and_closes_at_once() {
    let mut one = with(4, 2);
    let missing = one.others()[2];
    let mut expected = vec![known(missing, 1)];
    expected.extend(closes(&one, &one.without(missing)));
    assert_eq!(hears(&mut one, missing, 1), expected);
    // Said again, it is no news.
    assert_eq!(hears(&mut one, missing, 1), []);
}

#[test]
fn a_contribution_counts_all_the_same() {
    let mut one = with(7, 4);
    let (author, other) = (one.others()[4], one.others()[5]);
    assert_eq!(hears(&mut one, author, 1), [known(author, 1)]);
    one.take_in(author);
    let all = one.all();
    assert!(one.take_in(other).ends_with(&closes(&one, &all)));
}

#[test]
fn a_set_with_fewer_than_the_fewest_entries_is_not_closed_though_nothing_more_comes() {
    let mut one = with(4, 1);
    for member in [one.others()[1], one.others()[2]] {
        assert_eq!(hears(&mut one, member, 1), [known(member, 1)]);
    }
    let closes = one.publishes(1, 1, one.contribution_list(&[one.me, one.others()[0]]));
    assert!(!one.pass(30_000).contains(&closes));
}

#[test]
fn members_do_not_wait_for_patience_where_those_that_are_missing_have_nothing() {
    let (mut one, proposal) = three_of_five();
    // One may be missing anyway.
    let peer = one.epoch.lead(3);
    let check = Effect::Work(Request::Check {
        case: one.case(&proposal),
        holders: one.holders(1),
    });
    assert_eq!(hears(&mut one, peer, 1), [known(peer, 1), check]);
}

#[test]
fn who_had_nothing_is_waited_for_in_the_next_round() {
    for said in [true, false] {
        let mut one = One::follower(4).contributed();
        let missing = one.others()[2];
        if said {
            hears(&mut one, missing, 1);
        }
        one.hold_all();
        let authors = one.without(missing);
        one.hear_lead(1, one.contribution_list(&authors));
        one.finish_round(&authors);
        assert_eq!(one.member.round(), 2);
        assert_eq!(
            one.member.lead_timing().waiting().marked_absent(missing),
            !said
        );
    }
}

#[test]
fn what_is_said_early_counts_for_its_round_and_what_is_said_late_for_none() {
    let mut one = One::follower(4).contributed();
    let missing = one.others()[2];
    assert_eq!(hears(&mut one, missing, 2), [known(missing, 2)]);
    assert_eq!(hears(&mut one, missing, 3), []);
    assert!(!one.member.lead_timing().waiting().sits_out(missing));
    one.hold_all();
    one.hear_lead(1, one.contribution_list(&one.all()));
    one.finish_round(&one.all());
    assert!(one.member.lead_timing().waiting().sits_out(missing));
    assert_eq!(hears(&mut one, missing, 1), []);
}

/// What a member reports when round 1 is over without it, after this long.
fn over_without(one: &mut One, after: Duration) -> Option<(u64, Option<Duration>, Duration)> {
    one.now = Time::ZERO + after;
    let authors = one.others();
    one.hear_lead(1, one.contribution_list(&authors));
    let effects = one.finish_round(&authors);
    let mut late = effects.into_iter().filter_map(|effect| match effect {
        Effect::Report(Report::Late { round, ready, over }) => Some((round, ready, over)),
        _ => None,
    });
    let found = late.next();
    assert_eq!(late.next(), None);
    found
}

#[test]
fn a_member_that_is_late_learns_by_how_much() {
    let (ready, over) = (Duration::from_millis(1500), Duration::from_millis(2500));
    // Its training goes on.
    let mut one = One::follower(4);
    one.plan();
    assert_eq!(over_without(&mut one, over), Some((1, None, over)));
    // Its model was ready, and did not reach the lead in time.
    let mut one = One::follower(4);
    one.plan();
    one.now = Time::ZERO + ready;
    one.train();
    assert_eq!(over_without(&mut one, over), Some((1, Some(ready), over)));
    // It failed, or was not asked for anything, or is in the round.
    let mut one = One::follower(4);
    fails(&mut one);
    assert_eq!(over_without(&mut one, over), None);
    let mut one = One::follower(4);
    let others = one.others();
    one.plan_with(|plan| plan.participants = Some(others));
    assert_eq!(over_without(&mut one, over), None);
    let mut one = One::follower(4).signed();
    let all = one.all();
    let effects = one.finish_round(&all);
    let late = |effect: &Effect| matches!(effect, Effect::Report(Report::Late { .. }));
    assert!(!effects.iter().any(late));
}

#[test]
fn who_is_left_out_against_a_receipt_is_told_so_and_keeps_it() {
    // With and without its own signature for the round's manifest, and with the receipt of an earlier lead alone.
    for (signs, view) in [(true, 1), (false, 1), (false, 2)] {
        let mut one = One::follower(4).contributed();
        let entry = one.entry(one.me).id;
        one.hear_lead(1, Body::Receipt { entry });
        if signs {
            one.hold_all();
            one.hear_lead(1, one.contribution_list(&one.all()));
        }
        if view == 2 {
            one.skip(1);
        }
        let authors = one.others();
        one.hear_lead(view, one.contribution_list(&authors));
        let effects = one.finish_round(&authors);
        let mut told = effects.iter().filter_map(|effect| match effect {
            Effect::Report(report @ (Report::ReceiptUnkept { .. } | Report::Late { .. })) => {
                Some(report)
            }
            _ => None,
        });
        let lead = one.epoch.lead(1);
        match told.next() {
            Some(Report::ReceiptUnkept {
                round: 1,
                receipt,
                signed,
            }) => {
                assert_eq!((view, *signed), (1, signs));
                assert_eq!((receipt.sender, receipt.view), (lead, 1));
                assert_eq!(receipt.body, Body::Receipt { entry });
            }
            Some(Report::Late { .. }) => assert_eq!(view, 2),
            other => panic!("{other:?}"),
        }
        assert_eq!(told.next(), None);
    }
}
