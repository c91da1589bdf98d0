//! Timers, and how many refusals are reported.

use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::message::Phase;

/// Times between two heartbeats.
const OFF: u64 = 250;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A member of ten, which leads none of the first nine views, after `failed` failed views.
fn after(failed: u64, timeout: u32) -> One {
    let epoch = epoch_with(10, 5, |protocol| protocol.view_timeout = timeout);
    let mut one = One::of(epoch.clone(), epoch.lead(0));
    one.now = Time::since_start(Duration::from_millis(OFF));
    for view in 1..=failed {
        one.skip(view);
    }
    one
}

fn progress(one: &mut One, view: u64) -> Vec<Effect> {
    // The counter grows with every message.
    let counter = one.now.elapsed().as_millis() as u64;
    let phase = Phase::Collecting;
    one.hear_lead(view, Body::Progress { phase, counter })
}

#[test]
pub(super) fn d_doubles_with_every_failed_view_up_to_sixteen_times() {
    let phase = |failed| after(failed, 100).member.timing().phase();
    let phases = [0, 1, 2, 3, 4, 5, 6].map(phase);
    let half_heartbeats = [1, 2, 4, 8, 16, 16, 16];
    let expected = half_heartbeats.map(|n| Duration::from_millis(500) * n);
    assert_eq!(phases, expected);
}

#[test]
pub(super) fn a_lead_is_voted_down_after_silence_of_three_beats_or_twice_d() {
    for (failed, silence) in [(0, 3), (1, 3), (2, 4), (3, 8), (4, 16), (5, 16), (6, 16)] {
        let (mut one, view) = (after(failed, 100), failed + 1);
        // The silence span runs from the beginning of the view.
        progress(&mut one, view);
        assert_eq!(one.pass(OFF + 1000 * silence - 1), []);
        let (lead, silence) = (one.name(view), seconds(silence));
        let expected = one.nullifies(view, Refusal::Silent { lead, silence });
        let at = OFF + silence.as_millis() as u64;
        assert_eq!(one.pass(at), expected, "after {failed} failed views");
    }
}

#[test]
pub(super) fn a_final_round_resets_d() {
    let mut one = One::follower(4).signed();
    one.skip(1);
    assert_eq!(one.member.timing().phase(), seconds(1));
    let mut proposal = one.proposal(2, &one.all());
    proposal.skipped = vec![one.certificate(1, crate::certificate::Verdict::Nullified)];
    one.propose(2, &proposal);
    let block = proposal.block.hash();
    one.add_certificate(&one.certificate(2, crate::certificate::Verdict::Final(block)));
    assert_eq!(one.member.view(), 3);
    assert_eq!(one.member.timing().phase(), Duration::from_millis(500));
}

#[test]
pub(super) fn progress_of_another_view_does_not_count() {
    let mut one = after(0, 100);
    one.pass(2000 + OFF);
    progress(&mut one, 2);
    progress(&mut one, 1);
    assert_eq!(one.pass(5000 + OFF - 1), []);
    let (lead, silence) = (one.name(1), seconds(3));
    let expected = one.nullifies(1, Refusal::Silent { lead, silence });
    assert_eq!(one.pass(5000 + OFF), expected);
    // A lead of a later view, heard before, does not shorten its own time; it was heard already.
    let mut one = after(0, 100);
    progress(&mut one, 2);
    one.pass(2000 + OFF);
    one.skip(1);
    assert_eq!(one.pass(5000 + OFF - 1), []);
}

#[test]
pub(super) fn progress_with_an_old_counter_does_not_count() {
    let mut one = after(0, 100);
    let old = |one: &mut One, counter| {
        let phase = Phase::Collecting;
        one.hear_lead(1, Body::Progress { phase, counter })
    };
    old(&mut one, 3);
    one.pass(2000 + OFF);
    old(&mut one, 2);
    old(&mut one, 3);
    let (lead, silence) = (one.name(1), seconds(3));
    let expected = one.nullifies(1, Refusal::Silent { lead, silence });
    assert_eq!(one.pass(3000 + OFF), expected);
}

#[test]
pub(super) fn a_lead_that_votes_against_its_view_before_proposing_is_followed() {
    let mut one = after(0, 100);
    let other = one.others().into_iter().find(|&by| by != one.epoch.lead(1));
    assert_eq!(one.hear(other.unwrap(), 0, 1, Body::Nullify), []);
    let lead = one.name(1);
    let expected = one.nullifies(1, Refusal::GaveUp { lead });
    assert_eq!(one.hear_lead(1, Body::Nullify), expected);
    // After its proposal the lead's own vote is not followed.
    let mut one = One::follower(4).signed();
    one.propose(1, &one.proposal(1, &one.all()));
    assert_eq!(one.hear_lead(1, Body::Nullify), []);
}

#[test]
pub(super) fn a_lead_with_progress_is_voted_down_after_the_view_timeout() {
    // n = 10, f = 3, patience 20: at least 60 heartbeats and seven times D.
    for (failed, timeout) in [(0, 64), (4, 116), (6, 116)] {
        let (mut one, view) = (after(failed, 64), failed + 1);
        let entered = one.member.consensus.view.entered.elapsed().as_millis() as u64;
        let due = entered + 1000 * timeout;
        for second in (1..timeout).map(|second| entered + 1000 * second + 100) {
            one.pass(second);
            assert_eq!(progress(&mut one, view), []);
        }
        assert_eq!(one.pass(due - 1), []);
        let (lead, timeout) = (one.name(view), seconds(timeout));
        let expected = one.nullifies(view, Refusal::Slow { lead, timeout });
        // A heartbeat may fall on the same time.
        assert_eq!(one.pass(due)[..3], expected);
    }
}

#[test]
pub(super) fn a_view_is_nullified_once() {
    let mut one = after(0, 100);
    one.pass(3000 + OFF);
    assert!(one.member.consensus.ballots.has_nullified(1));
    let vote = |effect: &Effect| matches!(effect, Effect::Persist(_));
    let later = one.pass(200_000);
    assert!(!later.iter().any(vote));
}

#[test]
pub(super) fn d_follows_the_qth_smallest_round_trip() {
    let mut one = One::follower(4);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let up = |one: &mut One, peer, millis| {
        let round_trip = Duration::from_millis(millis);
        one.step(Input::Up { peer, round_trip });
        one.member.timing().phase().as_millis()
    };
    // The member itself counts with a round trip of zero.
    assert_eq!(up(&mut one, x, 10), 500);
    assert_eq!(up(&mut one, y, 400), 1600);
    assert_eq!(up(&mut one, z, 300), 1200);
    assert_eq!(up(&mut one, x, 350), 1400);
    assert_eq!(up(&mut one, y, 9000), 1400);
    assert_eq!(up(&mut one, z, 9000), 16_000, "at most 16 beats");
    // D0 is at least half a heartbeat.
    assert_eq!(up(&mut one, z, 0), 1400);
    assert_eq!(up(&mut one, x, 0), 500);
}

#[test]
pub(super) fn at_most_eight_refusals_of_a_member_are_reported_in_a_view() {
    let mut one = One::follower(4);
    let byzantine = [one.epoch.lead(2), one.epoch.lead(3)];
    let lie = |one: &mut One, from: MemberIndex, view: u64| {
        let entry = Hash::of(b"an entry");
        one.hear(from, 0, view, Body::Receipt { entry }).len()
    };
    let said =
        |one: &mut One, from, view| -> Vec<_> { (0..10).map(|_| lie(one, from, view)).collect() };
    let few = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0];
    assert_eq!(said(&mut one, byzantine[0], 1), few);
    assert_eq!(said(&mut one, byzantine[1], 1), few);
    one.skip(1);
    assert_eq!(said(&mut one, byzantine[1], 2), few);
}

#[test]
pub(super) fn the_deadline_is_the_next_span_that_ends() {
    let mut one = after(0, 100);
    let at = |millis| Some(Time::since_start(Duration::from_millis(millis)));
    assert_eq!(one.member.deadline(), at(1000), "the beat");
    one.pass(2999);
    assert_eq!(
        one.member.deadline(),
        at(3000),
        "the silence of the lead of view 1"
    );
    one.pass(3000);
    assert_eq!(
        one.member.deadline(),
        at(4000),
        "only beats once it has voted against the view"
    );
    // While it collects, a lead wakes at the end of D and of patience.
    let mut one = One::leading(4, 1);
    one.plan();
    assert_eq!(one.member.deadline(), at(500));
    one.pass(19_500);
    assert_eq!(one.member.deadline(), at(20_000));
}

#[test]
pub(super) fn a_member_that_misses_rounds_is_excused_for_twice_as_long_each_time() {
    // Of ten members one misses every round and can be reached; another cannot be reached.
    let epoch = epoch_with(10, 50, |_| {});
    let mut one = One::of(epoch.clone(), epoch.lead(0));
    let (slow, dead) = (one.others()[0], one.others()[1]);
    let absent = [slow, dead];
    one.step(Input::Down { peer: dead });
    let mut waited = Vec::new();
    while one.member.view() < 10 {
        let round = one.member.round();
        one.plan();
        one.train();
        if !one.member.lead_timing().waiting().marked_absent(slow) {
            waited.push(round);
        }
        assert_eq!(
            one.member.lead_timing().waiting().marked_absent(dead),
            round > 1,
            "round {round}"
        );
        let authors = one.all().into_iter().filter(|by| !absent.contains(by));
        one.finish_round(&authors.collect::<Vec<_>>());
    }
    assert_eq!(waited, [1, 3, 7]);
    // A member that contributed is waited for in the next round.
    one.step(Input::Time);
    assert!(one.member.lead_timing().waiting().marked_absent(slow));
}
