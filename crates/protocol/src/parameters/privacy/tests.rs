//! Tests of the agreement on masked rounds.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::hash::Hash;
use crate::identity::SecretKey;
use crate::parameters::{Epoch, Genesis};
use crate::roster::{Silo, quorum};

fn roster(n: u8) -> Vec<Silo> {
    let silo = |i: u8| Silo {
        name: format!("silo {i}"),
        key: SecretKey::from_bytes(&[i + 1; 32]).public(),
        rows: None,
    };
    (0..n).map(silo).collect()
}

fn group(authors: &[(u8, u64)]) -> Group {
    let authors = authors.iter();
    let authors = authors.map(|(i, weight)| (format!("silo {i}"), *weight));
    Group {
        authors: authors.collect(),
    }
}

fn protocol(n: u8, masked: Masked) -> ProtocolParameters {
    ProtocolParameters {
        start: Hash([0; 32]),
        rounds: 1,
        patience: 4,
        min_contributions: quorum(n.into()) as u16,
        privacy: Privacy::Masked(masked),
        blob_limit: 1,
        keep_rounds: 1,
        ..ProtocolParameters::small("masks")
    }
}

fn agreed(groups: Vec<Group>) -> Masked {
    Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum: 3,
        sums: Sums::Groups(groups),
    }
}

/// Why n members cannot agree on this parameter set; `None` if they can.
fn why(n: u8, protocol: ProtocolParameters) -> Option<ParametersError> {
    Epoch::first(&Genesis {
        silos: roster(n),
        protocol,
    })
    .err()
}

fn of_all(n: u8) -> Masked {
    let all: Vec<_> = (0..n).map(|i| (i, 1)).collect();
    agreed(vec![group(&all)])
}

fn range(key: &'static str, value: u64, allowed: &str) -> Option<ParametersError> {
    let allowed = allowed.to_owned();
    Some(ParametersError::Range {
        key,
        value,
        allowed,
    })
}

#[test]
fn a_masked_federation_begins_in_format_3_and_a_clear_one_in_format_2() {
    let silos = roster(4);
    let masked = Genesis {
        silos,
        protocol: protocol(4, of_all(4)),
    };
    assert_eq!(Epoch::first(&masked).unwrap().format, 3);
    let mut clear = masked.clone();
    clear.protocol.privacy = Privacy::Clear;
    assert_eq!(Epoch::first(&clear).unwrap().format, 2);
    assert_eq!(
        Epoch::first_in(2, &masked).err(),
        Some(ParametersError::MaskedFormat(2))
    );
}

#[test]
fn numbers_that_do_not_protect_authors_are_refused() {
    assert_eq!(why(4, protocol(4, of_all(4))), None);
    let members = 3;
    assert_eq!(
        why(3, protocol(3, of_all(3))),
        Some(ParametersError::TooFewToMask { members })
    );
    let mut unverified = protocol(4, of_all(4));
    unverified.verification = Verification::Committee(3);
    let level = Verification::Committee(3);
    assert_eq!(
        why(4, unverified),
        Some(ParametersError::MaskedUnverified(level))
    );
    let mut few = protocol(7, of_all(7));
    few.min_contributions = 4;
    assert_eq!(
        why(7, few),
        range("min-contributions", 4, "between 5 and 7 with 7 members")
    );
    // A quorum, also where 2f + 1 are fewer.
    let mut few = protocol(6, of_all(6));
    few.min_contributions = 3;
    assert_eq!(
        why(6, few),
        range("min-contributions", 3, "between 4 and 6 with 6 members")
    );
    for (n, colluders, most) in [(4, 2, 1), (7, 3, 2), (7, 0, 2)] {
        let mut masked = of_all(n);
        masked.colluders = colluders;
        let allowed = format!("between 1 and {most} with {n} members in secure-aggregation rounds");
        assert_eq!(
            why(n, protocol(n, masked)),
            range("colluders", colluders.into(), &allowed)
        );
    }
    let mut small = of_all(4);
    small.smallest_sum = 2;
    let allowed = "between 3 and 4 with 4 members in secure-aggregation rounds";
    assert_eq!(
        why(4, protocol(4, small)),
        range("min-sum-size", 2, allowed)
    );
}

#[test]
fn groups_that_do_not_protect_authors_are_refused() {
    let refused = |n, masked: Masked, fewest| {
        let names = masked.groups()[0]
            .authors
            .iter()
            .map(|(name, _)| name.as_str());
        let group = names.collect::<Vec<_>>().join(", ");
        assert_eq!(
            why(n, protocol(n, masked)),
            Some(ParametersError::Group { group, fewest })
        );
    };
    // Two authors; as many as colluders and one; more than half of the weight; no weight; out of order.
    refused(4, agreed(vec![group(&[(0, 1), (1, 1)])]), 3);
    let mut colluding = agreed(vec![group(&[(0, 1), (1, 1), (2, 1)])]);
    colluding.colluders = 2;
    refused(7, colluding, 4);
    refused(4, agreed(vec![group(&[(0, 3), (1, 1), (2, 1)])]), 3);
    refused(4, agreed(vec![group(&[(0, 1), (1, 1), (2, 1), (3, 0)])]), 3);
    refused(4, agreed(vec![group(&[(1, 1), (0, 1), (2, 1)])]), 3);
    let twice = agreed(vec![
        group(&[(0, 1), (1, 1), (2, 1)]),
        group(&[(2, 1), (3, 1), (4, 1)]),
    ]);
    assert_eq!(
        why(7, protocol(7, twice)),
        Some(ParametersError::TwoGroups("silo 2".into()))
    );
    let half = agreed(vec![group(&[(0, 2), (1, 1), (2, 1)])]);
    assert_eq!(why(4, protocol(4, half)), None);
}

fn noise() -> Noise {
    Noise {
        release: Release::Steps,
        unit: Unit::Row,
        clip: Real::new(1.0),
        z: Real::new(20.0),
        delta: Real::new(1e-5),
    }
}

/// n members with noise in sums of so many authors at least, of whom all but `silent` declare their rows.
fn noised(n: u8, smallest_sum: u16, change: impl FnOnce(&mut Noise), silent: usize) -> Genesis {
    let mut noise = noise();
    change(&mut noise);
    let masked = Masked {
        colluders: 1,
        shows: Vec::new(),
        smallest_sum,
        sums: Sums::Noised(noise),
    };
    let mut silos = roster(n);
    let declared = silos.len() - silent;
    silos[..declared]
        .iter_mut()
        .for_each(|silo| silo.rows = Some(10));
    Genesis {
        silos,
        protocol: protocol(n, masked),
    }
}

#[test]
fn noise_that_bounds_nothing_is_refused() {
    let why = |genesis: Genesis| Epoch::first(&genesis).err();
    assert_eq!(why(noised(7, 5, |_| {}, 0)), None);
    // No noise is left of one author that colludes; more authors than a round needs.
    let allowed = "between 2 and 5 with 7 members in secure-aggregation rounds";
    for fewest in [1, 6] {
        assert_eq!(
            why(noised(7, fewest, |_| {}, 0)),
            range("min-authors", fewest.into(), allowed)
        );
    }
    assert_eq!(
        why(noised(7, 8, |_| {}, 0)),
        range("min-authors", 8, "at most the number of members, 7")
    );
    assert_eq!(
        why(noised(7, 5, |_| {}, 1)),
        Some(ParametersError::UndeclaredRows("silo 6".into()))
    );
    type Change = fn(&mut Noise);
    let solved = |rows_norm: f64, targets_within: f64, ridge: f64| Release::Once {
        rows_norm: Real::new(rows_norm),
        targets_within: Real::new(targets_within),
        ridge: Some(Real::new(ridge)),
    };
    assert_eq!(
        why(noised(
            7,
            5,
            |noise| noise.release = solved(2.0, 1.0, 0.1),
            0
        )),
        None
    );
    for (release, of) in [
        (solved(1.0, 1.0, 0.1), "max-row-norm"),
        (solved(f64::NAN, 1.0, 0.1), "max-row-norm"),
        (solved(2.0, 0.0, 0.1), "max-target"),
        (solved(2.0, f64::INFINITY, 0.1), "max-target"),
        (solved(2.0, 1.0, 0.0), "ridge"),
        (solved(2.0, 1.0, -1.0), "ridge"),
    ] {
        let refused = why(noised(7, 5, |noise| noise.release = release, 0));
        let wrong = matches!(refused, Some(ParametersError::Noise { key, .. }) if key == of);
        assert!(wrong, "{of}: {refused:?}");
    }
    let changes: [(Change, &str); 6] = [
        (|noise| noise.clip = Real::new(f64::NAN), "clipping-norm"),
        (|noise| noise.clip = Real::new(0.0), "clipping-norm"),
        (|noise| noise.z = Real::new(0.0), "noise-multiplier"),
        (
            |noise| noise.z = Real::new(f64::INFINITY),
            "noise-multiplier",
        ),
        (|noise| noise.delta = Real::new(0.0), "delta"),
        (|noise| noise.delta = Real::new(0.2), "delta"),
    ];
    for (change, of) in changes {
        let key = match why(noised(7, 5, change, 0)) {
            Some(ParametersError::Noise { key, .. }) => key,
            other => panic!("{of}: {other:?}"),
        };
        assert_eq!(key, of);
    }
}

#[test]
fn a_noised_sum_has_all_ready_members_and_none_has_fewer_than_agreed() {
    let epoch = Epoch::first(&noised(7, 5, |_| {}, 0)).unwrap();
    let masked = epoch.protocol.privacy.masked().unwrap();
    let members = |some: &[u16]| some.iter().copied().map(MemberIndex).collect::<Vec<_>>();
    let sums = |some: &[u16], void_rounds: u8| {
        let rounds = vec![void_rounds];
        let voids = Voids {
            rounds,
            ..Voids::default()
        };
        masked.sums(&voids, &epoch.roster, &members(some))
    };
    let authors = members(&[0, 2, 3, 5, 6]);
    let authors: Vec<_> = authors.into_iter().map(|by| (by, 1)).collect();
    assert_eq!(sums(&[0, 2, 3, 5, 6], 2), [Sum { authors }]);
    assert_eq!(sums(&[0, 2, 3, 5], 0), []);
    assert_eq!(sums(&[0, 2, 3, 5, 6], 3), []);
    assert_eq!(
        masked.missing(&epoch.roster, &members(&[0, 2, 3, 5])),
        members(&[1, 4, 6])
    );
}

#[test]
fn names_of_those_who_are_shown_ascend_and_there_are_none_with_noise() {
    let shows = |names: &[&str]| {
        let mut masked = of_all(4);
        masked.shows = names.iter().map(|name| (*name).to_owned()).collect();
        why(4, protocol(4, masked))
    };
    assert_eq!(shows(&["silo 1", "silo 2"]), None);
    assert_eq!(shows(&["silo 2", "silo 1"]), Some(ParametersError::Shows));
    assert_eq!(shows(&["silo 1", "silo 1"]), Some(ParametersError::Shows));
    let mut genesis = noised(7, 5, |_| {}, 0);
    let Privacy::Masked(masked) = &mut genesis.protocol.privacy else {
        unreachable!("rounds are masked")
    };
    masked.shows = vec!["silo 1".into()];
    assert_eq!(Epoch::first(&genesis).err(), Some(ParametersError::Shows));
}

#[test]
fn members_may_leave_until_there_are_too_few_for_a_noised_sum() {
    let genesis = noised(7, 5, |_| {}, 0);
    let protocol = genesis.protocol;
    let after = |n: usize| {
        let after = protocol.for_members(7, n);
        let silos = genesis.silos[..n].to_vec();
        let roster = Roster::new(silos).unwrap();
        assert_eq!(after.validate(3, &roster), Ok(()), "{n} members");
        after.min_contributions
    };
    // A round needs the authors of its sum, whoever is left.
    assert_eq!([6, 5, 4].map(after), [5, 5, 4]);
}

#[test]
fn a_group_is_a_sum_only_if_all_of_its_members_are_ready() {
    let roster = Roster::new(roster(7)).unwrap();
    let masked = agreed(vec![
        group(&[(0, 1), (2, 2), (4, 1)]),
        group(&[(1, 1), (3, 1), (5, 1)]),
    ]);
    let members = |some: &[u16]| some.iter().copied().map(MemberIndex).collect::<Vec<_>>();
    let authors = |some: &[u16]| {
        let sums = masked.sums(&Voids::default(), &roster, &members(some));
        let of = |sum: Sum| {
            sum.authors
                .into_iter()
                .map(|(by, _)| by.0)
                .collect::<Vec<_>>()
        };
        sums.into_iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(
        authors(&[0, 1, 2, 3, 4, 5, 6]),
        [vec![0, 2, 4], vec![1, 3, 5]]
    );
    assert_eq!(authors(&[0, 1, 2, 4, 6]), [vec![0, 2, 4]]);
    assert_eq!(authors(&[0, 1, 2, 3, 6]), Vec::<Vec<u16>>::new());
    assert_eq!(
        masked.missing(&roster, &members(&[0, 1, 2, 4, 6])),
        members(&[3, 5])
    );
    // A group that names somebody who is no member is over.
    let over = agreed(vec![group(&[(0, 1), (1, 1), (9, 1)])]);
    assert_eq!(
        over.sums(&Voids::default(), &roster, &members(&[0, 1, 2, 3, 4, 5, 6])),
        []
    );
}

#[test]
fn circles_are_equal_where_authors_are_the_same_and_weights_proportional() {
    let before = Roster::new(roster(7)).unwrap();
    let mut silos = roster(7);
    silos.reverse();
    let after = Roster::new(silos).unwrap();
    let circle = |roster: &Roster, authors: &[(u16, u64)]| {
        let authors = authors
            .iter()
            .map(|(by, weight)| (MemberIndex(*by), *weight));
        Sum {
            authors: authors.collect(),
        }
        .circle(roster)
    };
    let one = circle(&before, &[(0, 2), (1, 4), (2, 6)]);
    assert_eq!(one, circle(&after, &[(4, 3), (5, 2), (6, 1)]));
    assert_ne!(one, circle(&before, &[(0, 2), (1, 4), (2, 7)]));
    assert_ne!(one, circle(&before, &[(0, 1), (1, 2), (3, 3)]));
}

#[test]
fn every_quorum_has_t_of_the_ready_and_no_colluders_have() {
    for n in 4..=40u8 {
        let roster = Roster::new(roster(n)).unwrap();
        let (n, q) = (usize::from(n), roster.quorum());
        for ready in q..=n {
            let t = threshold(&roster, ready);
            // Of a quorum at most n - ready are not ready.
            assert_eq!(t, q - (n - ready));
            assert!(t >= 2 * q - n && 2 * q - n > roster.faulty());
        }
    }
}
