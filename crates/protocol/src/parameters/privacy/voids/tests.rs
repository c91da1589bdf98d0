//! The budget of voids, and the search by halves.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::identity::SecretKey;
use crate::parameters::privacy::{Group, Noise, Real, Release, Sums, Unit};
use crate::roster::Silo;

fn members(some: impl IntoIterator<Item = u16>) -> Vec<MemberIndex> {
    some.into_iter().map(MemberIndex).collect()
}

fn roster(n: u16) -> Roster {
    let silo = |at: u16| Silo {
        name: format!("silo {at}"),
        key: SecretKey::from_bytes(&[at as u8 + 1; 32]).public(),
        rows: Some(10),
    };
    Roster::simulated((0..n).map(silo).collect()).unwrap()
}

/// Sums with noise of so many authors at least.
fn noised(fewest: u16) -> Masked {
    let noise = Noise {
        release: Release::Steps,
        unit: Unit::Row,
        clip: Real::new(1.0),
        z: Real::new(20.0),
        delta: Real::new(1e-5),
    };
    Masked {
        colluders: 1,
        smallest_sum: fewest,
        shows: Vec::new(),
        sums: Sums::Noised(noise),
    }
}

/// A federation whose sums are void as its members say.
struct SearchedFederation {
    masked: Masked,
    roster: Roster,
    voids: Voids,
    void_rounds: usize,
}

impl SearchedFederation {
    fn new(n: u16, fewest: u16) -> Self {
        Self {
            masked: noised(fewest),
            roster: roster(n),
            voids: Voids::default(),
            void_rounds: 0,
        }
    }

    /// The authors of the sums of a round of these members.
    fn sums(&self, ready: &[MemberIndex]) -> Vec<Vec<MemberIndex>> {
        let sums = self.masked.sums(&self.voids, &self.roster, ready);
        sums.iter().map(|sum| sum.members().collect()).collect()
    }

    /// A round of these members, in which the sums with one of `corrupters` are void. Whom the search left out is not
    /// ready. Gives whether there was a round.
    fn round(&mut self, ready: &[MemberIndex], corrupters: &[MemberIndex]) -> bool {
        let left_out = self.voids.left_out();
        let ready = ready.iter().copied().filter(|by| Some(*by) != left_out);
        let ready: Vec<_> = ready.collect();
        let sums = self.masked.sums(&self.voids, &self.roster, &ready);
        let void = |sum: &Sum| corrupters.iter().any(|by| sum.has(*by));
        self.void_rounds += usize::from(sums.iter().any(void));
        let opened = sums.iter().map(|sum| (sum, void(sum)));
        self.voids = self.voids.after(&self.masked, &self.roster, opened);
        let authors: usize = sums.iter().map(|sum| sum.authors.len()).sum();
        let groups = self.masked.noise().is_none();
        assert!(sums.is_empty() || authors == ready.len() || groups);
        let fewest = self.masked.fewest_authors();
        assert!(sums.iter().all(|sum| sum.authors.len() >= fewest));
        !sums.is_empty()
    }

    /// A round of all members.
    fn whole_round(&mut self, corrupters: &[u16]) -> bool {
        let all: Vec<_> = self.roster.members().collect();
        self.round(&all, &members(corrupters.iter().copied()))
    }
}

#[test]
fn halves_have_half_of_the_suspects_and_half_of_the_ready_each() {
    let all = members(0..7);
    let [first, second] = halves(&members([1, 2, 5]), &all);
    assert_eq!(first, members([0, 1, 2, 3]));
    assert_eq!(second, members([4, 5, 6]));
    // Suspects that are not ready are in neither.
    let [first, second] = halves(&members([1, 2, 5]), &members([0, 2, 3, 4]));
    assert_eq!((first, second), (members([0, 2]), members([3, 4])));
    let [first, second] = halves(&all, &all);
    assert_eq!((first, second), (members(0..4), members(4..7)));
}

#[test]
fn one_that_spoils_every_sum_is_alone_after_four_void_rounds_of_eight_and_the_others_go_on() {
    let mut federation = SearchedFederation::new(8, 3);
    let all = members(0..8);
    assert_eq!(federation.sums(&all), std::slice::from_ref(&all));
    for (suspects, sums) in [
        (members(0..8), [members(0..4), members(4..8)]),
        (
            members(4..8),
            [members([0, 1, 4, 5]), members([2, 3, 6, 7])],
        ),
        (
            members(6..8),
            [members([0, 1, 2, 6]), members([3, 4, 5, 7])],
        ),
    ] {
        assert!(federation.whole_round(&[6]));
        assert_eq!(federation.voids.search, CorrupterSearch::Among(suspects));
        assert_eq!(federation.sums(&all), sums);
    }
    assert!(federation.whole_round(&[6]));
    let expected = Voids {
        rounds: vec![4],
        search: CorrupterSearch::Alone(MemberIndex(6)),
    };
    assert_eq!(federation.voids, expected);
    assert!(!federation.voids.suspended(0, 8));
    for _ in 0..20 {
        assert!(federation.whole_round(&[6]));
    }
    assert_eq!(federation.voids, expected);
}

#[test]
fn a_good_round_shows_nothing_and_costs_nothing() {
    let mut federation = SearchedFederation::new(8, 4);
    federation.whole_round(&[6]);
    let before = federation.voids.clone();
    for _ in 0..20 {
        assert!(federation.whole_round(&[]));
    }
    assert_eq!(federation.voids, before);
}

#[test]
fn two_void_sums_of_a_round_end_the_search_and_the_third_void_round_all_sums() {
    let mut federation = SearchedFederation::new(8, 4);
    for rounds in [1, 2] {
        assert!(federation.whole_round(&[0, 6]));
        assert_eq!(federation.voids.rounds, [rounds]);
    }
    assert_eq!(federation.voids.search, CorrupterSearch::Several);
    // One sum again, as before the search.
    assert_eq!(federation.sums(&members(0..8)), [members(0..8)]);
    assert!(federation.whole_round(&[6]));
    assert_eq!(federation.voids.search, CorrupterSearch::Several);
    assert!(!federation.whole_round(&[6]));
    assert!(federation.voids.suspended(0, 8));
}

#[test]
fn a_void_sum_without_a_suspect_ends_the_search() {
    let mut federation = SearchedFederation::new(8, 3);
    for (corrupter, suspects) in [(6, 0..8), (1, 0..4), (6, 2..4)] {
        federation.whole_round(&[corrupter]);
        assert_eq!(
            federation.voids.search,
            CorrupterSearch::Among(members(suspects))
        );
    }
    let without_3 = members([0, 1, 2, 4, 5, 6, 7]);
    assert_eq!(
        federation.sums(&without_3),
        [members([0, 1, 2, 4]), members([5, 6, 7])]
    );
    federation.round(&without_3, &members([6]));
    assert_eq!(federation.voids.search, CorrupterSearch::Several);
    assert!(federation.voids.suspended(0, 8));
}

#[test]
fn one_that_two_colluders_left_alone_is_cleared_by_the_next_void_sum_and_sums_end() {
    let mut federation = SearchedFederation::new(8, 3);
    // 1 and 6 collude. 5 is honest, and an author of all void sums.
    for (corrupter, suspects) in [(6, 0..8), (6, 4..8), (1, 4..6)] {
        federation.whole_round(&[corrupter]);
        assert_eq!(
            federation.voids.search,
            CorrupterSearch::Among(members(suspects))
        );
    }
    federation.whole_round(&[6]);
    assert_eq!(federation.voids.left_out(), Some(MemberIndex(5)));
    assert!(federation.whole_round(&[6]));
    assert_eq!(federation.voids.search, CorrupterSearch::Several);
    assert_eq!(federation.voids.left_out(), None);
    assert!(!federation.whole_round(&[6]));
}

#[test]
fn nobody_is_searched_without_noise_or_where_half_of_the_members_are_too_few() {
    let all = members(0..7);
    let mut few = SearchedFederation::new(7, 4);
    for round in 1..=3 {
        assert!(few.whole_round(&[2]));
        let rounds = vec![round];
        let search = CorrupterSearch::Idle;
        assert_eq!(few.voids, Voids { rounds, search });
    }
    assert_eq!(few.sums(&all), Vec::<Vec<_>>::new());
    let group = |some: std::ops::Range<u16>| Group {
        authors: some.map(|at| (format!("silo {at}"), 1)).collect(),
    };
    let mut groups = SearchedFederation::new(7, 3);
    groups.masked.sums = Sums::Groups(vec![group(0..3), group(3..7)]);
    for round in 1..=3 {
        assert!(groups.whole_round(&[2]));
        let rounds = vec![round, 0];
        let search = CorrupterSearch::Idle;
        assert_eq!(groups.voids, Voids { rounds, search });
    }
    assert_eq!(groups.sums(&all), [members(3..7)]);
}

#[test]
fn rounds_with_too_few_for_two_sums_spend_the_budget_of_the_search() {
    let mut federation = SearchedFederation::new(8, 4);
    let six = members(2..8);
    for _ in 0..4 {
        assert_eq!(federation.sums(&six), std::slice::from_ref(&six));
        assert!(federation.round(&six, &members([6])));
    }
    assert_eq!(federation.voids.search, CorrupterSearch::Among(six.clone()));
    assert!(!federation.round(&six, &members([6])));
    assert!(federation.voids.suspended(0, 8));
}

/// Federations of 6 to 20 with so many members that corrupt sums at drawn places, and who of them corrupts, and who is absent, in each
/// of 40 rounds.
fn drawn(corrupters: usize) -> impl Strategy<Value = (u16, u16, Vec<u16>, Vec<(u8, u64)>)> {
    (6_u16..=20).prop_flat_map(move |n| {
        let places = proptest::sample::subsequence((0..n).collect::<Vec<_>>(), corrupters);
        let rounds = proptest::collection::vec((any::<u8>(), any::<u64>()), 40);
        (Just(n), 2..=n / 2, places, rounds)
    })
}

/// Of n members those that are ready, at least so many.
fn ready(n: u16, fewest: u16, absent: u64) -> Vec<MemberIndex> {
    let mut ready = members(0..n);
    let mut rest = absent;
    while ready.len() > usize::from(fewest) && rest.is_multiple_of(3) {
        rest /= 3;
        ready.remove(rest as usize % ready.len());
    }
    ready
}

proptest! {
    #[test]
    fn one_spoiler_is_alone_within_its_void_rounds_and_no_sum_is_void_then(
        (n, fewest, corrupter, rounds) in drawn(1)
    ) {
        let corrupter = MemberIndex(corrupter[0]);
        let mut federation = SearchedFederation::new(n, fewest);
        for (corrupts, absent) in rounds {
            let ready = ready(n, 2 * fewest, absent);
            // It spares half of the sums.
            let corrupts = if corrupts % 2 == 0 { vec![corrupter] } else { Vec::new() };
            // It was never suspended, and never another one was left alone.
            prop_assert!(federation.round(&ready, &corrupts));
            let left_out = federation.voids.left_out();
            prop_assert!(left_out.is_none_or(|by| by == corrupter));
        }
        let most = usize::from(most_searched(n.into()));
        prop_assert!(federation.void_rounds <= most);
    }

    #[test]
    fn one_that_spoils_all_is_alone_after_one_void_round_and_one_for_each_time_that_n_is_halved(
        (n, fewest, corrupter, _) in drawn(1)
    ) {
        let mut federation = SearchedFederation::new(n, fewest);
        for _ in 0..most_searched(n.into()) {
            federation.whole_round(&corrupter);
        }
        prop_assert_eq!(federation.voids.left_out(), Some(MemberIndex(corrupter[0])));
    }

    /// Whatever two do, an agreement loses one void round more than a search may need, and then all sums.
    #[test]
    fn two_spoilers_void_no_more_rounds_than_a_search_may_need_and_one(
        (n, fewest, corrupters, rounds) in drawn(2)
    ) {
        let mut federation = SearchedFederation::new(n, fewest);
        for (corrupts, absent) in rounds {
            let ready = ready(n, 2 * fewest, absent);
            let corrupting = |at: &usize| (corrupts >> at) & 1 == 1;
            let corrupts = (0..2).filter(corrupting).map(|at| MemberIndex(corrupters[at]));
            let corrupts: Vec<_> = corrupts.collect();
            let (before, opened) = (federation.voids.clone(), federation.round(&ready, &corrupts));
            // Sums end only where it is known that more than one corrupts them, or the search's budget is spent.
            prop_assert!(opened || !matches!(before.search, CorrupterSearch::Alone(_) | CorrupterSearch::Idle));
        }
        let most = usize::from(BUDGET.max(most_searched(n.into()) + 1));
        prop_assert!(federation.void_rounds <= most);
    }
}
