//! Properties for random clients.

use proptest::prelude::*;

use super::reference::{Reference, groupings};
use super::*;

/// Clients in general position: gradients, sample counts and α.
#[derive(Debug, Clone)]
struct Clients {
    gradients: Vec<Vec<f64>>,
    samples: Vec<u64>,
    alpha: Alpha,
}

impl Clients {
    fn utility(&self) -> Utility {
        utility(&self.gradients, &self.samples, &self.alpha)
    }

    fn alphas(&self) -> Vec<f64> {
        match &self.alpha {
            Alpha::Own => self.samples.iter().map(|&n| n as f64).collect(),
            Alpha::Share(share) => self.samples.iter().map(|&n| share * n as f64).collect(),
            Alpha::Common(alpha) => vec![*alpha; self.samples.len()],
            Alpha::Each(alphas) => alphas.clone(),
        }
    }

    fn among(&self, order: &[usize]) -> Self {
        Self {
            gradients: order.iter().map(|&k| self.gradients[k].clone()).collect(),
            samples: order.iter().map(|&k| self.samples[k]).collect(),
            alpha: match &self.alpha {
                Alpha::Each(alphas) => Alpha::Each(order.iter().map(|&k| alphas[k]).collect()),
                alike => alike.clone(),
            },
        }
    }
}

fn clients(count: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Clients> {
    (count, 2..=6usize).prop_flat_map(|(count, length)| {
        let alpha = prop_oneof![
            Just(Alpha::Own),
            (0.0..3.0f64).prop_map(Alpha::Share),
            (0.0..200.0f64).prop_map(Alpha::Common),
            prop::collection::vec(0.0..200.0f64, count).prop_map(Alpha::Each),
        ];
        let gradients = prop::collection::vec(prop::collection::vec(-1.0..1.0f64, length), count);
        let samples = prop::collection::vec(1..300u64, count);
        (gradients, samples, alpha).prop_map(|(gradients, samples, alpha)| Clients {
            gradients,
            samples,
            alpha,
        })
    })
}

/// Groups as lists of members, from an assignment in canonical numbers.
fn groups(assignment: &[u32]) -> Vec<Vec<usize>> {
    let count = assignment.iter().max().map_or(0, |last| last + 1);
    let members = |group| {
        (0..assignment.len())
            .filter(|&k| assignment[k] == group)
            .collect()
    };
    (0..count).map(members).collect()
}

proptest! {
    /// The fast form on inner products does what Algorithm 2 says on vectors, whatever `C` is.
    #[test]
    fn merging_by_sums_is_merging_by_definition(clients in clients(1..=12), constant in -5.0..5.0f64) {
        let alphas = clients.alphas();
        let reference = Reference {
            gradients: &clients.gradients,
            samples: &clients.samples,
            alphas: &alphas,
            constant,
        };
        let (expected, merges) = reference.merge();
        let merged = clients.utility().merge(Until::NoGain).unwrap();
        prop_assert_eq!(groups(&merged.grouping.assignment), expected);
        prop_assert_eq!(merged.merges.len(), merges.len());
        for (merge, expected) in merged.merges.iter().zip(merges) {
            prop_assert_eq!(merge.groups, expected.groups);
            prop_assert!(close(merge.benefit, expected.benefit, 1e-9));
        }
    }

    #[test]
    fn utilities_are_those_of_the_definition(clients in clients(1..=8), keys in prop::collection::vec(0..4u32, 8)) {
        let grouping = clients.utility().grouping(&keys[..clients.samples.len()]);
        let alphas = clients.alphas();
        let reference = Reference {
            gradients: &clients.gradients,
            samples: &clients.samples,
            alphas: &alphas,
            constant: 0.0,
        };
        for members in groups(&grouping.assignment) {
            let own: f64 = members.iter().map(|&k| grouping.utilities[k]).sum();
            prop_assert!(close(own, reference.worth(&members), 1e-11));
        }
        prop_assert!(close(grouping.total, grouping.utilities.iter().sum(), 1e-15));
    }

    #[test]
    fn every_merge_raises_the_total_by_its_benefit(clients in clients(2..=12)) {
        let utility = clients.utility();
        let merged = utility.merge(Until::NoGain).unwrap();
        let mut assignment: Vec<u32> = (0..clients.samples.len() as u32).collect();
        let mut total = utility.grouping(&assignment).total;
        for merge in &merged.merges {
            let [into, from] = merge.groups.map(|group| group as u32);
            prop_assert!(into < from && merge.benefit > 0.0);
            assignment.iter_mut().filter(|own| **own == from).for_each(|own| *own = into);
            let next = utility.grouping(&assignment).total;
            prop_assert!(next > total);
            prop_assert!((next - total - merge.benefit).abs() < 1e-12 * (1.0 + next.abs() + total.abs()));
            total = next;
        }
        prop_assert_eq!(utility.grouping(&assignment), merged.grouping.clone());
        // Nothing that is left gains.
        let left = groups(&merged.grouping.assignment);
        for (i, a) in left.iter().enumerate() {
            prop_assert!(left[..i].iter().all(|b| utility.benefit(a, b) <= 1e-12));
        }
    }

    #[test]
    fn every_fixed_number_of_groups_cuts_the_same_merges(clients in clients(1..=10)) {
        let utility = clients.utility();
        let free = utility.merge(Until::NoGain).unwrap();
        let all = utility.merge(Until::Groups(1)).unwrap();
        prop_assert_eq!(&all.merges[..free.merges.len()], free.merges.as_slice());
        let count = clients.samples.len();
        for left in 1..=count {
            let fixed = utility.merge(Until::Groups(left)).unwrap();
            prop_assert_eq!(fixed.grouping.assignment.iter().max(), Some(&(left as u32 - 1)));
            prop_assert_eq!(fixed.merges.as_slice(), &all.merges[..count - left]);
        }
    }

    #[test]
    fn the_best_of_all_groupings_is_found(clients in clients(1..=7)) {
        let utility = clients.utility();
        let best = utility.exhaustive();
        let most = groupings(clients.samples.len())
            .iter()
            .map(|grouping| utility.grouping(grouping).total)
            .fold(f64::NEG_INFINITY, f64::max);
        prop_assert!(close(best.total, most, 1e-12));
        prop_assert!(utility.merge(Until::NoGain).unwrap().grouping.total <= best.total + 1e-9);
    }

    #[test]
    fn alpha_zero_merges_no_clients_and_a_huge_alpha_all(clients in clients(2..=12)) {
        let merged = |alpha| {
            let clients = Clients { alpha, ..clients.clone() };
            clients.utility().merge(Until::NoGain).unwrap().grouping.assignment
        };
        let alone: Vec<u32> = (0..clients.samples.len() as u32).collect();
        prop_assert_eq!(merged(Alpha::Common(0.0)), alone);
        prop_assert_eq!(merged(Alpha::Common(1e9)), vec![0; clients.samples.len()]);
        prop_assert_eq!(merged(Alpha::Common(1e100)), vec![0; clients.samples.len()]);
    }

    #[test]
    fn identical_gradients_are_one_group(
        gradient in prop::collection::vec(0.1..1.0f64, 1..5),
        samples in prop::collection::vec(1..300u64, 1..20),
        alpha in 1e-3..10.0f64,
        common: bool,
    ) {
        let alpha = if common { Alpha::Common(alpha) } else { Alpha::Own };
        let utility = utility(&vec![gradient; samples.len()], &samples, &alpha);
        let merged = utility.merge(Until::NoGain).unwrap();
        prop_assert_eq!(merged.grouping.assignment, vec![0; samples.len()]);
    }

    #[test]
    fn opposite_gradients_stay_alone_if_volume_counts_little(
        gradient in prop::collection::vec(0.1..1.0f64, 1..5),
        samples in prop::collection::vec(1..300u64, 2),
    ) {
        let opposite = gradient.iter().map(|value| -value).collect();
        let utility = utility(&[gradient, opposite], &samples, &Alpha::Common(0.1));
        prop_assert_eq!(utility.merge(Until::NoGain).unwrap().grouping.assignment, [0, 1]);
    }

    #[test]
    fn the_order_of_clients_does_not_matter(
        clients in clients(2..=10),
        keys in prop::collection::vec(any::<u32>(), 10),
    ) {
        let mut order: Vec<usize> = (0..clients.samples.len()).collect();
        order.sort_by_key(|&k| keys[k]);
        let straight = clients.utility().merge(Until::NoGain).unwrap().grouping;
        let shuffled = clients.among(&order).utility().merge(Until::NoGain).unwrap().grouping;
        let carried: Vec<u32> = order.iter().map(|&k| straight.assignment[k]).collect();
        prop_assert_eq!(crate::coalitions::canonical(&carried), shuffled.assignment);
        prop_assert!(close(straight.total, shuffled.total, 1e-12));
    }

    #[test]
    fn scaling_all_gradients_changes_nothing(clients in clients(2..=8), scale in 1e-9..1e9f64) {
        let mut scaled = clients.clone();
        scaled.gradients.iter_mut().flatten().for_each(|value| *value *= scale);
        let (a, b) = (clients.utility(), scaled.utility());
        let (a, b) = (a.merge(Until::NoGain).unwrap(), b.merge(Until::NoGain).unwrap());
        prop_assert_eq!(a.grouping.assignment, b.grouping.assignment);
        prop_assert!(close(a.grouping.total, b.grouping.total, 1e-12));
    }

    /// Joining raises the total as promised, and no other group would have raised it more.
    #[test]
    fn a_newcomer_joins_the_group_that_raises_the_total_most(clients in clients(2..=9), keys in prop::collection::vec(0..3u32, 8)) {
        let utility = clients.utility();
        let before = &keys[..clients.samples.len() - 1];
        let admitted = utility.admit(before);
        let total = |group: u32| utility.grouping(&[before, &[group]].concat()).total;
        let alone = total(99);
        let most = before.iter().map(|&group| total(group)).fold(alone, f64::max);
        prop_assert!(close(total(admitted.group.unwrap_or(99)), most, 1e-12));
        for (&group, &benefit) in &admitted.benefits {
            prop_assert!(close(total(group) - alone, benefit, 1e-10));
        }
    }
}

/// At every merge, the best of all pairs by the definition; its benefit to the last digits that
/// the sums of 200 clients leave.
#[test]
fn sums_stay_exact_over_many_merges() {
    for (groups, noise, alpha) in [
        (5, 0.5, Alpha::Own),
        (200, 0.0, Alpha::Own),
        (1, 0.3, Alpha::Common(30.0)),
        (40, 1.0, Alpha::Common(300.0)),
    ] {
        let (gradients, samples) = planted(200, groups, noise, 11);
        let utility = utility(&gradients, &samples, &alpha);
        let merged = utility.merge(Until::Groups(1)).unwrap();
        let mut members: Vec<Vec<usize>> = (0..200).map(|k| vec![k]).collect();
        for (step, merge) in merged.merges.iter().enumerate() {
            let [into, from] = merge.groups;
            let benefit = utility.benefit(&members[into], &members[from]);
            assert!(
                close(merge.benefit, benefit, 1e-12),
                "{merge:?}, anew {benefit}"
            );
            if step % 20 == 0 {
                let left: Vec<_> = members
                    .iter()
                    .filter(|members| !members.is_empty())
                    .collect();
                for (i, a) in left.iter().enumerate() {
                    for b in &left[..i] {
                        assert!(utility.benefit(a, b) <= benefit + 1e-12);
                    }
                }
            }
            let gone = std::mem::take(&mut members[from]);
            members[into].extend(gone);
        }
    }
}

#[test]
fn planted_groups_are_found() {
    let (gradients, samples) = planted(120, 6, 0.3, 5);
    let merged = utility(&gradients, &samples, &Alpha::Own)
        .merge(Until::NoGain)
        .unwrap();
    let planted: Vec<u32> = (0..120).map(|k| k % 6).collect();
    assert_eq!(merged.grouping.assignment, planted);
}
