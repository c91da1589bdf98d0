//! Who leads when, under every policy.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::identity::SecretKey;
use crate::parameters::{Epoch, Genesis, ProtocolParameters};
use crate::roster::Silo;

fn epoch(n: u16, rotation: Rotation) -> Epoch {
    let silo = |at: u16| Silo {
        name: format!("silo {at}"),
        key: SecretKey::from_bytes(blake3::hash(&at.to_le_bytes()).as_bytes()).public(),
        rows: None,
    };
    let protocol = ProtocolParameters {
        rounds: 100,
        view_timeout: 200,
        min_contributions: n,
        rotation,
        blob_limit: 1,
        keep_rounds: 1,
        ..ProtocolParameters::small("turns")
    };
    let silos = (0..n).map(silo).collect();
    Epoch::first_in(1, &Genesis { silos, protocol }).unwrap()
}

fn everybody(epoch: &Epoch) -> Vec<MemberIndex> {
    epoch.roster.members().collect()
}

fn leads(turns: &Turns, epoch: &Epoch, views: std::ops::RangeInclusive<u64>) -> Vec<u16> {
    views.map(|view| turns.lead(epoch, view).0).collect()
}

#[test]
fn any_n_views_after_a_final_round_have_n_leads_except_under_fixed() {
    for policy in Rotation::ALL {
        for n in [1, 2, 4, 7, 50] {
            let epoch = epoch(n, policy);
            let mut turns = epoch.turns();
            for round in 1..20u64 {
                let view = turns.since + 1 + round % 3 * u64::from(n / 2);
                turns.advance(&epoch, view, &everybody(&epoch));
                for from in 1..5 {
                    // A cycle of `every-round` ends where a multiple of n does.
                    let from = match policy {
                        Rotation::EveryRound => (view / u64::from(n) + from) * u64::from(n),
                        _ => view + from,
                    };
                    let mut found = leads(&turns, &epoch, from..=from + u64::from(n) - 1);
                    found.sort_unstable();
                    found.dedup();
                    let all = if policy == Rotation::Fixed { 1 } else { n };
                    assert_eq!(found.len(), usize::from(all), "{policy} {n}");
                }
            }
        }
    }
}

#[test]
fn on_failure_the_lead_of_a_final_round_goes_on_and_a_failed_view_passes_to_the_next() {
    let epoch = epoch(5, Rotation::OnFailure);
    let mut turns = epoch.turns();
    let order = leads(&turns, &epoch, 1..=5);
    turns.advance(&epoch, 1, &[]);
    assert_eq!(leads(&turns, &epoch, 2..=6), order);
    turns.advance(&epoch, 2, &[]);
    assert_eq!(leads(&turns, &epoch, 3..=7), order);
    // Views 3 and 4 fail.
    turns.advance(&epoch, 5, &[]);
    assert_eq!(turns.lead(&epoch, 6).0, order[2]);
    assert_eq!(turns.lead(&epoch, 7).0, order[3]);
    assert_eq!(turns.lead(&epoch, 9).0, order[0]);
}

#[test]
fn every_k_rounds_the_lead_changes_and_a_failed_view_begins_k_anew() {
    let epoch = epoch(4, Rotation::EveryRounds(3));
    let mut turns = epoch.turns();
    let order = leads(&turns, &epoch, 1..=4);
    let mut led = Vec::new();
    for view in 1..=7 {
        led.push(turns.lead(&epoch, view).0);
        turns.advance(&epoch, view, &[]);
    }
    let [a, b, c, d] = order[..] else {
        panic!("four leads")
    };
    assert_eq!(led, [a, a, a, b, b, b, c]);
    // View 8, in which the third would lead its second round, fails.
    let mut led = Vec::new();
    for view in 9..=12 {
        led.push(turns.lead(&epoch, view).0);
        turns.advance(&epoch, view, &[]);
    }
    assert_eq!(led, [d, d, d, a]);
}

#[test]
fn under_fixed_the_first_silo_leads_and_another_member_collects_votes_too() {
    let epoch = epoch(4, Rotation::Fixed);
    let mut turns = epoch.turns();
    let mut others = Vec::new();
    for view in 1..20 {
        assert_eq!(turns.lead(&epoch, view), MemberIndex(0));
        let [lead, other] = turns.collectors(&epoch, view)[..] else {
            panic!("two collectors")
        };
        assert_eq!(lead, MemberIndex(0));
        others.push(other.0);
        turns.advance(&epoch, view, &[]);
    }
    others.sort_unstable();
    others.dedup();
    assert_eq!(others, [1, 2, 3]);
    assert_eq!(
        epoch_of_one().turns().collectors(&epoch_of_one(), 3).len(),
        1
    );
}

fn epoch_of_one() -> Epoch {
    epoch(1, Rotation::Fixed)
}

#[test]
fn a_member_that_lost_views_seldom_leads_first_until_it_has_contributed_again() {
    let epoch = epoch(4, Rotation::Reliability);
    let mut turns = epoch.turns();
    let all = everybody(&epoch);
    // How often each member leads the view after a final round.
    let run = |turns: &mut Turns, authors: &[MemberIndex], rounds| {
        let mut first = [0; 4];
        for _ in 0..rounds {
            let view = turns.since + 1;
            first[turns.lead(&epoch, view).at()] += 1;
            turns.advance(&epoch, view, authors);
        }
        first
    };
    let equal = run(&mut turns, &all, 400);
    assert!(
        equal.iter().all(|&times| (60..140).contains(&times)),
        "{equal:?}"
    );
    // One lost view takes half of the trust, and six rounds without contributions all of it.
    let bad = turns.lead(&epoch, turns.since + 1);
    turns.advance(&epoch, turns.since + 2, &all);
    assert_eq!(turns.trust()[bad.at()], FULL_TRUST - LOST_VIEW + 1);
    let others: Vec<_> = all.iter().copied().filter(|&one| one != bad).collect();
    run(&mut turns, &others, 6);
    assert_eq!(turns.trust()[bad.at()], 0);
    let without = run(&mut turns, &others, 400);
    // 1 lot of 193.
    assert!(without[bad.at()] < 12, "{without:?}");
    run(&mut turns, &all, 6);
    assert!(turns.trust().iter().all(|&trust| trust == FULL_TRUST));
}

#[test]
fn the_leads_of_every_policy_are_pinned() {
    // Other leads would be another protocol.
    let pinned = Rotation::ALL.map(|policy| {
        let epoch = epoch(7, policy);
        let mut turns = epoch.turns();
        turns.advance(&epoch, 1, &[MemberIndex(2), MemberIndex(3)]);
        turns.advance(&epoch, 4, &[MemberIndex(2), MemberIndex(6)]);
        leads(&turns, &epoch, 5..=9)
    });
    assert_eq!(pinned, PINNED);
}

const PINNED: [[u16; 5]; 5] = [
    [4, 6, 1, 2, 5],
    [0, 5, 4, 1, 6],
    [0, 1, 3, 5, 2],
    [2, 3, 5, 6, 4],
    [0, 0, 0, 0, 0],
];
