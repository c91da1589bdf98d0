//! Known results and cases computed by hand.

use super::*;

const FOUR: [[f64; 3]; 4] = [
    [1.0, 0.0, 0.0],
    [0.9, 0.2, 0.0],
    [0.0, 1.0, 0.1],
    [-0.1, 0.8, 0.3],
];
const SAMPLES: [u64; 4] = [100, 50, 80, 40];

/// The pairs of clients in the order in which Algorithm 2 tests them.
const PAIRS: [[usize; 2]; 6] = [[0, 1], [0, 2], [1, 2], [0, 3], [1, 3], [2, 3]];

#[test]
fn a_tree_can_be_cut_at_every_number_of_groups() {
    let tree = utility(&FOUR, &SAMPLES, &Alpha::Own).tree();
    assert_eq!(tree.cut(4), [0, 1, 2, 3]);
    assert_eq!(tree.cut(3), [0, 0, 1, 2]);
    assert_eq!(tree.cut(2), [0, 0, 1, 1]);
    assert_eq!(tree.cut(1), [0; 4]);
    assert_eq!((tree.cut(0), tree.cut(9)), (tree.cut(1), tree.cut(4)));
    // As Algorithm 2 with as many groups; and its own number has the largest total.
    let utility = utility(&FOUR, &SAMPLES, &Alpha::Own);
    for groups in 1..=4 {
        let merged = utility.merge(Until::Groups(groups)).unwrap().grouping;
        assert_eq!(tree.cut(groups), merged.assignment);
    }
    let best = utility.merge(Until::NoGain).unwrap().grouping;
    assert!(close(tree.most(), best.total, 1e-12));
}

struct KnownMerging {
    alpha: Alpha,
    initial: [f64; 4],
    first: [f64; 6],
    merges: &'static [([usize; 2], f64)],
    assignment: [u32; 4],
    utilities: [f64; 4],
    total: f64,
}

/// Known results of the four clients with each α.
const KNOWN: [KnownMerging; 6] = [
    KnownMerging {
        alpha: Alpha::Common(0.0),
        initial: [1.0, 1.0, 1.0, 1.0],
        first: [
            -0.013570584890428616,
            -0.5940610619642746,
            -0.4763160564729394,
            -0.834324764170612,
            -0.5375520431421634,
            -0.023295609289631036,
        ],
        merges: &[],
        assignment: [0, 1, 2, 3],
        utilities: [1.0, 1.0, 1.0, 1.0],
        total: 4.0,
    },
    KnownMerging {
        alpha: Alpha::Common(1.0),
        initial: [0.99, 0.98, 0.9875, 0.975],
        first: [
            0.003096081776237991,
            -0.5826721730753857,
            -0.45920067185755475,
            -0.8136104784563261,
            -0.5147742653643856,
            -0.002462275956297555,
        ],
        merges: &[([0, 1], 0.003096081776237991)],
        assignment: [0, 0, 1, 2],
        utilities: [0.9909636617563164, 0.9821324200199215, 0.9875, 0.975],
        total: 3.935596081776238,
    },
    KnownMerging {
        alpha: Alpha::Common(20.0),
        initial: [0.8, 0.6, 0.75, 0.5],
        first: [
            0.31976274844290486,
            -0.3662832841864967,
            -0.13400836416524697,
            -0.4200390498848977,
            -0.08199648758660794,
            0.3933710573770357,
        ],
        merges: &[([2, 3], 0.3933710573770357), ([0, 1], 0.31976274844290486)],
        assignment: [0, 0, 1, 1],
        utilities: [
            0.8642969950896499,
            0.8554657533532549,
            0.8297515612519585,
            0.8136194961250772,
        ],
        total: 3.3631338058199405,
    },
    KnownMerging {
        alpha: Alpha::Common(60.0),
        initial: [0.4, -0.19999999999999996, 0.25, -0.5],
        first: [
            0.9864294151095713,
            0.08927227136905891,
            0.5506070204501375,
            0.40853237868653103,
            0.8291146235245033,
            1.226704390710369,
        ],
        merges: &[([2, 3], 1.226704390710369), ([0, 1], 0.9864294151095713)],
        assignment: [0, 0, 1, 1],
        utilities: [
            0.5976303284229831,
            0.5887990866865882,
            0.4964182279186251,
            0.48028616279174385,
        ],
        total: 2.1631338058199403,
    },
    KnownMerging {
        alpha: Alpha::Common(200.0),
        initial: [-1.0, -3.0, -1.5, -4.0],
        first: [
            3.319762748442905,
            1.6837167158135031,
            2.9467608666039835,
            3.308532378686531,
            4.018003512413392,
            4.143371057377036,
        ],
        merges: &[
            ([2, 3], 4.143371057377036),
            ([0, 1], 3.319762748442905),
            ([0, 2], 1.9137319301740332),
        ],
        assignment: [0, 0, 0, 0],
        utilities: [
            0.011165694502096257,
            0.134392447716975,
            -0.08277135448910689,
            -0.18592105173599094,
        ],
        total: -0.12313426400602656,
    },
    KnownMerging {
        alpha: Alpha::Own,
        initial: [0.0, 0.0, 0.0, 0.0],
        first: [
            0.9864294151095714,
            0.40593893803572556,
            0.5236839435270606,
            0.1656752358293881,
            0.4624479568578366,
            0.9767043907103691,
        ],
        merges: &[([0, 1], 0.9864294151095714), ([2, 3], 0.9767043907103691)],
        assignment: [0, 0, 1, 1],
        utilities: [
            0.33096366175631653,
            0.6554657533532549,
            0.3297515612519585,
            0.6469528294584106,
        ],
        total: 1.9631338058199406,
    },
];

#[test]
fn four_clients_give_the_known_groups() {
    for known in KNOWN {
        let utility = utility(&FOUR, &SAMPLES, &known.alpha);
        let alone = utility.grouping(&[0, 1, 2, 3]);
        for (a, b) in alone.utilities.iter().zip(known.initial) {
            assert!(close(*a, b, 1e-12), "{alone:?}");
        }
        for ([j, i], benefit) in PAIRS.into_iter().zip(known.first) {
            assert!(close(utility.benefit(&[j], &[i]), benefit, 1e-12));
            assert!(close(utility.benefit(&[i], &[j]), benefit, 1e-12));
        }
        let merged = utility.merge(Until::NoGain).unwrap();
        assert_eq!(merged.merges.len(), known.merges.len());
        for (merge, (groups, benefit)) in merged.merges.iter().zip(known.merges) {
            assert_eq!(merge.groups, *groups);
            assert!(close(merge.benefit, *benefit, 1e-12), "{merge:?}");
        }
        // Here the greedy grouping is the best one.
        let best = utility.exhaustive();
        for grouping in [merged.grouping, best] {
            assert_eq!(grouping.assignment, known.assignment);
            assert!(close(grouping.total, known.total, 1e-12));
            for (a, b) in grouping.utilities.iter().zip(known.utilities) {
                assert!(close(*a, b, 1e-12), "{grouping:?}");
            }
        }
    }
}

#[test]
fn two_equal_clients_join_within_the_known_angle() {
    let benefit = |alpha: Alpha, degrees: f64, samples: u64| {
        let angle = degrees.to_radians();
        let gradients = [[1.0, 0.0], [libm::cos(angle), libm::sin(angle)]];
        utility(&gradients, &[samples; 2], &alpha).benefit(&[0], &[1])
    };
    let known = [
        (Alpha::Common(1.0), 8.0, 185, 0.0005335059250537455),
        (Alpha::Common(1.0), 9.0, 185, -0.0007599271283387221),
        (Alpha::Own, 119.0, 50, 0.015076725921408629),
        (Alpha::Own, 121.0, 50, -0.015152879793065843),
        (Alpha::Common(50.0), 80.0, 100, 0.03208888623795603),
    ];
    for (alpha, degrees, samples, expected) in known {
        assert!(close(benefit(alpha, degrees, samples), expected, 1e-12));
    }
    // cos(φ/2) = 1 − α/(2n): 8.43° for α = 1 and 185 samples; 120° for α = n.
    assert!(benefit(Alpha::Common(1.0), 8.42, 185) > 0.0);
    assert!(benefit(Alpha::Common(1.0), 8.44, 185) < 0.0);
    assert!(benefit(Alpha::Own, 120.0 - 1e-9, 7) > 0.0);
    assert!(benefit(Alpha::Own, 120.0 + 1e-9, 7) < 0.0);
}

#[test]
fn greedy_merging_can_miss_the_best_grouping() {
    // Clients 1 and 3 point the same way, so they are joined first; later they pull 2 away from 0.
    let gradients = [
        [0.0, 2.0],
        [-4.0, 0.0],
        [-2.0, 2.0],
        [-2.0, 0.0],
        [-1.0, -4.0],
    ];
    let utility = utility(&gradients, &[10, 90, 40, 60, 40], &Alpha::Own);
    let merged = utility.merge(Until::NoGain).unwrap();
    let order: Vec<_> = merged.merges.iter().map(|merge| merge.groups).collect();
    assert_eq!(order, [[1, 3], [1, 2], [0, 1]]);
    assert_eq!(merged.grouping.assignment, [0, 0, 0, 0, 1]);
    assert!(close(merged.grouping.total, 1.965043956270608, 1e-12));
    let best = utility.exhaustive();
    assert_eq!(best.assignment, [0, 1, 0, 1, 1]);
    assert!(close(best.total, 2.2034262014861308, 1e-12));
}

#[test]
fn ties_between_benefits_go_to_the_first_pair() {
    // Powers of two, so that nothing is rounded.
    let same = utility(&[[2.0]; 4], &[8; 4], &Alpha::Own);
    let merges = same.merge(Until::NoGain).unwrap().merges;
    let order: Vec<_> = merges.iter().map(|merge| merge.groups).collect();
    assert_eq!(order, [[0, 1], [0, 2], [0, 3]]);
    assert!(merges.iter().all(|merge| merge.benefit == 1.0));
    // Client 2 is as near to 0 as to 1, and 3 as near to 2 as 2 is to either.
    let cosines = [
        [1.0, -0.9, 0.2, -0.5],
        [-0.9, 1.0, 0.2, -0.5],
        [0.2, 0.2, 1.0, 0.2],
        [-0.5, -0.5, 0.2, 1.0],
    ];
    let gram = Matrix::from_rows(&cosines).unwrap();
    let utility = Utility::new(&gram, &[10; 4], &Alpha::Own).unwrap();
    assert_eq!(utility.benefit(&[0], &[2]), utility.benefit(&[2], &[3]));
    let merges = utility.merge(Until::NoGain).unwrap().merges;
    assert_eq!(merges[0].groups, [0, 2]);
}

#[test]
fn clients_with_the_same_classes_are_grouped() {
    // Softmax regression at zero weights: the gradient of class c is the mean of
    // (1/10 − [y = c])·x over the samples (x, y); the features of a class are around a point of
    // its own. Two clients have a few samples of the first five classes, the third many of the
    // others.
    const CLASSES: usize = 10;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let mut gradient = |classes: std::ops::Range<usize>, samples: u64| -> Vec<f64> {
        let mut gradient = vec![0.0; CLASSES * CLASSES];
        for sample in 0..samples as usize {
            let label = classes.start + sample % classes.len();
            for feature in 0..CLASSES {
                let x = f64::from(u8::from(feature == label)) + 0.5 * signed(&mut random);
                for class in 0..CLASSES {
                    let error = 0.1 - f64::from(u8::from(class == label));
                    gradient[class * CLASSES + feature] += error * x / samples as f64;
                }
            }
        }
        gradient
    };
    let samples = [40, 50, 300];
    let gradients = [gradient(0..5, 40), gradient(0..5, 50), gradient(5..10, 300)];
    let utility = utility(&gradients, &samples, &Alpha::Own);
    let merged = utility.merge(Until::NoGain).unwrap();
    assert_eq!(merged.grouping.assignment, [0, 0, 1]);
    assert_eq!(utility.exhaustive().assignment, [0, 0, 1]);
}

#[test]
fn gradients_without_a_direction_have_cosine_zero() {
    let alpha = Alpha::Common(30.0);
    // Opposite gradients of equal pull cancel: cosines with no direction are 0.
    let opposite = utility(&[[0.3, -0.7], [-0.3, 0.7]], &[10, 10], &alpha);
    let merged = opposite.merge(Until::Groups(1)).unwrap();
    assert_eq!(merged.grouping.utilities, [-1.5, -1.5]);
    assert_eq!(merged.merges[0].benefit, 1.0);
    // A zero gradient leaves the group's direction alone; it has nothing to lose.
    let idle = utility(&[[0.0, 0.0], [3.0, 4.0]], &[10, 20], &alpha);
    assert_eq!(idle.grouping(&[0, 1]).utilities, [-3.0, -0.5]);
    let merged = idle.merge(Until::NoGain).unwrap();
    assert_eq!(merged.grouping.utilities, [-1.0, 0.0]);
}

#[test]
fn one_client_is_one_group() {
    let utility = utility(&[[1.0, 2.0]], &[5], &Alpha::Own);
    let merged = utility.merge(Until::NoGain).unwrap();
    assert_eq!(
        (merged.grouping.assignment, merged.merges),
        (vec![0], vec![])
    );
    assert_eq!(utility.exhaustive().total, 0.0);
}

#[test]
fn a_newcomer_joins_the_group_of_largest_benefit_if_positive() {
    let gradients = [
        [1.0, 0.0, 0.0],
        [0.0, 1.0, 0.0],
        [1.0, 0.1, 0.0],
        [0.1, 1.0, 0.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.1, 1.0],
    ];
    let utility = utility(&gradients, &[10; 6], &Alpha::Common(2.0));
    // Groups may have any numbers.
    let mut assignment = vec![7, 3, 7];
    let admitted = utility.admit(&assignment);
    assert_eq!(admitted.group, Some(3));
    assert!(close(
        admitted.benefits[&3],
        utility.benefit(&[1], &[3]),
        1e-12
    ));
    assert!(close(
        admitted.benefits[&7],
        utility.benefit(&[0, 2], &[3]),
        1e-12
    ));
    // The next newcomer fits no group; the one after fits that newcomer.
    assignment.push(3);
    assert_eq!(utility.admit(&assignment).group, None);
    assignment.push(8);
    assert_eq!(utility.admit(&assignment).group, Some(8));
    // Without groups there is none to join; ties go to the first group.
    assert_eq!(utility.admit(&[]).group, None);
    let tied = super::utility(&[[1.0], [1.0], [1.0]], &[4; 3], &Alpha::Own);
    assert_eq!(tied.admit(&[5, 2]).group, Some(2));
}

#[test]
fn unusable_input_is_refused() {
    let new = |rows: &[[f64; 2]; 2], samples: &[u64], alpha: Alpha| {
        Utility::new(&Matrix::from_rows(rows).unwrap(), samples, &alpha).unwrap_err()
    };
    let fine = [[1.0, 0.5], [0.5, 1.0]];
    let sizes = UtilityError::Sizes {
        rows: 2,
        columns: 2,
        samples: 3,
    };
    assert_eq!(new(&fine, &[1; 3], Alpha::Own), sizes);
    let empty = Utility::new(&Matrix::zeros(0, 0), &[], &Alpha::Own);
    assert_eq!(empty.unwrap_err(), UtilityError::Empty);
    assert_eq!(
        new(&fine, &[1, 0], Alpha::Own),
        UtilityError::NoSamples { client: 1 }
    );
    for bad in [f64::NAN, f64::INFINITY, 1e101] {
        let error = UtilityError::NotFinite { row: 0, column: 1 };
        assert_eq!(new(&[[1.0, bad], [0.5, 1.0]], &[1; 2], Alpha::Own), error);
    }
    for (bad, row, column) in [
        ([[1.0, 0.5], [0.4, 1.0]], 1, 0),
        ([[1.0, 1.1], [1.1, 1.0]], 1, 0),
        ([[0.0, 0.1], [0.1, 1.0]], 1, 0),
        ([[1.0, 0.0], [0.0, -1.0]], 1, 1),
    ] {
        assert_eq!(
            new(&bad, &[1; 2], Alpha::Own),
            UtilityError::NotGram { row, column }
        );
    }
    for bad in [-1.0, f64::INFINITY] {
        assert_eq!(
            new(&fine, &[1; 2], Alpha::Common(bad)),
            UtilityError::Alpha(bad)
        );
    }
    assert!(matches!(
        new(&fine, &[1; 2], Alpha::Common(f64::NAN)),
        UtilityError::Alpha(_)
    ));
    let alphas = UtilityError::Alphas {
        alphas: 1,
        clients: 2,
    };
    assert_eq!(new(&fine, &[1; 2], Alpha::Each(vec![1.0])), alphas);
    let two = utility(&[[1.0], [2.0]], &[1; 2], &Alpha::Own);
    for groups in [0, 3] {
        let error = GroupsError { groups, clients: 2 };
        assert_eq!(two.merge(Until::Groups(groups)), Err(error));
    }
}
