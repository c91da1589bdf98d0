//! Rounds while it is searched by halves who corrupts sums with noise, and after one was left alone (M9).

use super::masked_lead::{leading_after, take_keys};
use super::masked_one::{key_list, list_after, prepare, refuses};
use super::noised::noised;
use super::one::*;
use super::prelude::*;
use super::table::TestFederation;
use crate::parameters::privacy::{CorrupterSearch, Voids};

fn members(some: impl IntoIterator<Item = u16>) -> Vec<MemberIndex> {
    some.into_iter().map(MemberIndex).collect()
}

fn among(suspects: std::ops::Range<u16>) -> Voids {
    Voids {
        rounds: vec![1],
        search: CorrupterSearch::Among(members(suspects)),
    }
}

fn alone(member: u16) -> Voids {
    Voids {
        rounds: vec![4],
        search: CorrupterSearch::Alone(MemberIndex(member)),
    }
}

/// A member of seven, with sums of three at least, that has contributed its keys after these void sums, and does
/// not lead soon. It is not the last one.
fn contributed(voids: &Voids) -> One {
    let epoch = noised(7, 5, 3);
    let mut views = 0..20;
    let me = views.find_map(|view| {
        let lead = epoch.lead(view);
        (lead != epoch.lead(1) && lead.0 != 6).then_some(lead)
    });
    let mut one = One::of(epoch, me.unwrap());
    one.plan_with(|plan| plan.voids = voids.clone());
    prepare(&mut one);
    one
}

#[test]
fn in_a_search_a_vector_is_masked_for_a_list_of_two_sums_with_half_of_the_suspects_each() {
    let voids = among(0..7);
    let mut one = contributed(&voids);
    let list = list_after(&one, &voids, &one.all());
    let sums = list.sums.iter().map(|sum| sum.members().collect());
    let sums: Vec<Vec<_>> = sums.collect();
    assert_eq!(sums, [members(0..4), members(4..7)]);
    let body = Body::KeyList(key_list(&one, &one.all()));
    let asked = one.hear_lead(1, body);
    assert_eq!(asked, [Effect::Work(Request::Mask { list })]);
}

#[test]
fn with_too_few_ready_for_two_sums_a_search_has_one() {
    let voids = among(0..7);
    let mut one = contributed(&voids);
    let lead = one.epoch.lead(1);
    let others = one.others().into_iter().filter(|by| *by != lead);
    let five: BTreeSet<_> = [one.me, lead].into_iter().chain(others).take(5).collect();
    let five: Vec<_> = five.into_iter().collect();
    let list = list_after(&one, &voids, &five);
    assert_eq!(list.sums.len(), 1);
    let body = Body::KeyList(key_list(&one, &five));
    let asked = one.hear_lead(1, body);
    assert_eq!(asked, [Effect::Work(Request::Mask { list })]);
}

#[test]
fn whoever_is_left_alone_trains_nothing_and_draws_no_noise() {
    let epoch = noised(7, 5, 3);
    for (me, left_out) in [(3, true), (2, false)] {
        let mut one = One::of(epoch.clone(), MemberIndex(me));
        let prepares = Effect::Work(Request::Prepare { round: 1 });
        let expected = if left_out { vec![] } else { vec![prepares] };
        assert_eq!(one.plan_with(|plan| plan.voids = alone(3)), expected);
    }
}

#[test]
fn a_list_with_the_one_that_is_left_alone_is_refused_and_one_without_it_is_answered() {
    let voids = alone(6);
    let one = contributed(&voids);
    let body = Body::KeyList(key_list(&one, &one.all()));
    refuses(one, body, Refusal::NotAParticipant(MemberIndex(6)));
    let mut one = contributed(&voids);
    let (body, list) = (
        Body::KeyList(key_list(&one, &members(0..6))),
        list_after(&one, &voids, &members(0..6)),
    );
    let asked = one.hear_lead(1, body);
    assert_eq!(asked, [Effect::Work(Request::Mask { list })]);
}

#[test]
fn a_lead_lists_all_others_at_once_and_does_not_wait_for_the_one_that_is_left_alone() {
    let epoch = noised(7, 5, 3);
    let left_out = if epoch.lead(1).0 == 6 { 5 } else { 6 };
    let mut one = leading_after(epoch, &alone(left_out));
    let others = one.others().into_iter();
    let others: Vec<_> = others.filter(|by| by.0 != left_out).collect();
    let all: Vec<_> = one.without(MemberIndex(left_out));
    let lists = Body::KeyList(key_list(&one, &all));
    let effects = take_keys(&mut one, &others);
    assert!(effects.contains(&one.publishes(1, 1, lists)), "{effects:?}");
}

#[test]
fn rounds_go_on_without_the_one_that_is_left_alone_and_it_votes_and_adopts() {
    // The first round is planned before.
    let mut table = TestFederation::of(noised(7, 3, 3), false);
    table.voids = |_| alone(3);
    table.pass(300);
    for i in 0..7 {
        assert_eq!(table.finals(i).len(), 3, "{i}");
        let history = table.members[i]
            .as_ref()
            .unwrap()
            .consensus
            .chain
            .history
            .iter();
        let rounds = history.filter_map(|(block, _)| block.masked());
        let ready: Vec<_> = rounds.map(|round| round.ready.clone()).collect();
        let without = members([0, 1, 2, 4, 5, 6]);
        assert_eq!(ready, [members(0..7), without.clone(), without]);
    }
    let contributed = |record: &Record| match record {
        Record::Contributed(message) => Some(message.round),
        _ => None,
    };
    let contributed: Vec<_> = table.journal[3].iter().filter_map(contributed).collect();
    assert_eq!(contributed, [1]);
    let voted = |record: &&Record| match record {
        Record::Vote(message) => message.body.kind() == Kind::Outcome,
        _ => false,
    };
    assert_eq!(table.journal[3].iter().filter(voted).count(), 3);
    table.chains_agree();
}

#[test]
fn rounds_of_two_sums_become_final_with_all_members() {
    let mut table = TestFederation::of(noised(7, 3, 3), false);
    table.voids = |_| among(2..6);
    table.pass(300);
    for i in 0..7 {
        assert_eq!(table.finals(i).len(), 3, "{i}");
    }
    table.chains_agree();
}
