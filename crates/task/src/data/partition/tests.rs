//! Properties of every partition, and of single ones.

use proptest::prelude::*;

use super::*;

/// Rows of every combination of classes and domains, `each` to train on and `tests` to test on.
fn rows(classes: u32, domains: u32, each: usize, tests: usize) -> Vec<Traits> {
    let mut rows = Vec::new();
    for number in 0..each + tests {
        for class in 0..classes {
            for domain in 0..domains {
                rows.push(Traits {
                    class,
                    domain,
                    user: class % 3,
                    test: number >= each,
                });
            }
        }
    }
    rows
}

fn names(what: &str, count: usize) -> Vec<String> {
    (0..count).map(|at| format!("{what}{at}")).collect()
}

fn divided(
    config: &PartitionConfig,
    rows: &[Traits],
    silos: usize,
    seed: u64,
) -> Result<Vec<PartitionedSilo>, String> {
    let count = |of: &dyn Fn(&Traits) -> u32| {
        rows.iter()
            .map(of)
            .max()
            .map_or(0, |most| most as usize + 1)
    };
    let population = RowsToPartition {
        rows,
        classes: count(&|row| row.class),
        domains: &names("domain ", count(&|row| row.domain)),
        users: &names("user ", count(&|row| row.user)),
    };
    let silos = config.fixed(&population).unwrap_or(silos);
    config.divide(&population, silos, seed)
}

/// Returns the number of rows of a silo that are so.
fn count(rows: &[Traits], part: &PartitionedSilo, of: impl Fn(&Traits) -> bool) -> usize {
    part.rows
        .iter()
        .filter(|&&at| of(&rows[at as usize]))
        .count()
}

fn any_partition() -> impl Strategy<Value = PartitionConfig> {
    prop_oneof![
        Just(PartitionConfig::Iid),
        (0.2f64..5.0).prop_map(|alpha| PartitionConfig::Dirichlet { alpha, rows: 2 }),
        (20usize..40, any::<bool>()).prop_map(|(count, equal)| PartitionConfig::Shards {
            count,
            shares: if equal {
                ShardShares::Equal
            } else {
                ShardShares::HalfNormal
            },
        }),
        (1usize..4).prop_map(|silos| PartitionConfig::Domains { silos }),
        (0.5f64..5.0).prop_map(|alpha| PartitionConfig::Mixed(MixedShares::Alpha(alpha))),
        Just(PartitionConfig::Mixed(MixedShares::Given(vec![
            vec![0.5, 0.3, 0.2],
            vec![0.0, 0.1, 0.9],
        ]))),
        (0.05f64..0.5, 0.05f64..0.5).prop_map(|(a, b)| PartitionConfig::ThreeClients { a, b }),
        Just(PartitionConfig::Users { rows: 1 }),
    ]
}

proptest! {
    #[test]
    fn every_row_is_in_one_silo_at_most_and_a_seed_repeats_silos(
        config in any_partition(), silos in 2usize..7, seed in any::<u64>(),
    ) {
        let rows = rows(4, 3, 20, 6);
        let parts = divided(&config, &rows, silos, seed).unwrap();
        let mut seen = vec![false; rows.len()];
        for part in &parts {
            prop_assert!(part.rows.is_sorted());
            prop_assert!(!part.rows.is_empty());
            for &row in &part.rows {
                prop_assert!(!std::mem::replace(&mut seen[row as usize], true), "row {} twice", row);
            }
        }
        prop_assert_eq!(&parts, &divided(&config, &rows, silos, seed).unwrap());
        let uses_all = matches!(
            config,
            PartitionConfig::Iid
                | PartitionConfig::Dirichlet { .. }
                | PartitionConfig::Domains { .. }
                | PartitionConfig::Users { .. }
        );
        prop_assert!(!uses_all || seen.iter().all(|&seen| seen), "{:?} leaves rows out", config);
    }
}

#[test]
fn another_seed_gives_other_silos() {
    let rows = rows(4, 3, 20, 0);
    let of = |seed| divided(&PartitionConfig::Iid, &rows, 4, seed).unwrap();
    assert_ne!(of(1), of(2));
}

#[test]
fn iid_silos_are_equally_large_in_both_parts() {
    let rows = rows(10, 1, 10, 3);
    let parts = divided(&PartitionConfig::Iid, &rows, 4, 1).unwrap();
    let sizes = |test: bool| -> Vec<usize> {
        let size = |part| count(&rows, part, |row| row.test == test);
        parts.iter().map(size).collect()
    };
    assert_eq!(sizes(false), [25; 4]);
    assert!(sizes(true).iter().all(|&size| size == 7 || size == 8));
    assert_eq!(parts[3].name, "silo 4");
}

#[test]
fn dirichlet_shares_hold_for_test_rows_and_small_alphas_skew() {
    let rows = rows(10, 1, 400, 200);
    let largest = |alpha: f64| {
        let config = PartitionConfig::Dirichlet { alpha, rows: 10 };
        let parts = divided(&config, &rows, 5, 3).unwrap();
        let mut sum = 0.0;
        for class in 0..10 {
            let of = |part: &PartitionedSilo, test| {
                count(&rows, part, |row| row.class == class && row.test == test)
            };
            for part in &parts {
                assert!(
                    of(part, false).abs_diff(2 * of(part, true)) <= 3,
                    "twice as many, but for rounding"
                );
            }
            sum += parts.iter().map(|part| of(part, false)).max().unwrap() as f64 / 400.0;
        }
        sum / 10.0
    };
    let (concentrated, even) = (largest(0.1), largest(100.0));
    assert!(concentrated > 0.6 && even < 0.3, "{concentrated} {even}");
}

#[test]
fn dirichlet_partitions_give_every_silo_its_rows_or_are_refused() {
    let rows = rows(2, 1, 50, 0);
    let config = PartitionConfig::Dirichlet {
        alpha: 0.5,
        rows: 15,
    };
    for seed in 0..20 {
        let parts = divided(&config, &rows, 4, seed).unwrap();
        assert!(parts.iter().all(|part| part.rows.len() >= 15));
    }
    let error = divided(
        &PartitionConfig::Dirichlet {
            alpha: 0.5,
            rows: 26,
        },
        &rows,
        4,
        1,
    )
    .unwrap_err();
    assert!(
        error.contains("each of 4 silos at least 26 rows (the best draw gives"),
        "{error}"
    );
}

#[test]
fn equal_shards_have_few_classes() {
    // McMahan et al.: two shards of one class each.
    let rows = rows(10, 1, 40, 20);
    let config = PartitionConfig::Shards {
        count: 20,
        shares: ShardShares::Equal,
    };
    for part in divided(&config, &rows, 10, 5).unwrap() {
        let classes = |test| {
            (0..10)
                .filter(|&class| {
                    count(&rows, &part, |row| row.class == class && row.test == test) > 0
                })
                .collect::<Vec<_>>()
        };
        assert!(classes(false).len() <= 2);
        assert_eq!(
            classes(false),
            classes(true),
            "the same shards of the test rows"
        );
        assert_eq!(part.rows.len(), 2 * (20 + 10));
    }
}

#[test]
fn half_normal_shards_differ_in_number() {
    let rows = rows(10, 1, 100, 0);
    let config = PartitionConfig::Shards {
        count: 100,
        shares: ShardShares::HalfNormal,
    };
    let parts = divided(&config, &rows, 10, 5).unwrap();
    let sizes: Vec<usize> = parts.iter().map(|part| part.rows.len()).collect();
    assert!(
        sizes.iter().all(|size| size % 10 == 0 && *size >= 10),
        "{sizes:?}"
    );
    assert!(
        sizes.iter().max() >= sizes.iter().min().map(|size| 3 * size).as_ref(),
        "{sizes:?}"
    );
    assert!(sizes.iter().sum::<usize>() <= 1000);
    assert!(
        divided(&config, &rows, 101, 1)
            .unwrap_err()
            .contains("use more shards")
    );
}

#[test]
fn every_domain_has_its_own_silos() {
    let rows = rows(2, 3, 10, 4);
    let parts = divided(&PartitionConfig::Domains { silos: 2 }, &rows, 99, 1).unwrap();
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let expected = [
        "domain 0 1",
        "domain 0 2",
        "domain 1 1",
        "domain 1 2",
        "domain 2 1",
        "domain 2 2",
    ];
    assert_eq!(names, expected);
    for (place, part) in parts.iter().enumerate() {
        assert_eq!(
            count(&rows, part, |row| row.domain as usize == place / 2
                && !row.test),
            10
        );
        assert_eq!(
            count(&rows, part, |row| row.domain as usize == place / 2
                && row.test),
            4
        );
        assert_eq!(part.rows.len(), 14);
    }
    let one = divided(&PartitionConfig::Domains { silos: 1 }, &rows, 9, 1).unwrap();
    assert_eq!(one[2].name, "domain 2");
}

#[test]
fn mixed_silos_have_the_given_shares_of_all_domains() {
    let rows = rows(1, 2, 100, 50);
    let shares = vec![vec![0.8, 0.2], vec![0.2, 0.8], vec![0.5, 0.5]];
    let config = PartitionConfig::Mixed(MixedShares::Given(shares));
    let parts = divided(&config, &rows, 9, 1).unwrap();
    let of = |part: &PartitionedSilo, domain, test| {
        count(&rows, part, |row| row.domain == domain && row.test == test)
    };
    let train: Vec<_> = parts
        .iter()
        .map(|part| (of(part, 0, false), of(part, 1, false)))
        .collect();
    // 66 each: 52.8, 13.2 and 33 of the first domain are 99 of 100.
    assert_eq!(train, [(53, 13), (13, 53), (33, 33)]);
    assert!(
        parts
            .iter()
            .all(|part| of(part, 0, true) + of(part, 1, true) == 33)
    );
    let drawn = PartitionConfig::Mixed(MixedShares::Alpha(0.5));
    let parts = divided(&drawn, &rows, 4, 1).unwrap();
    let sizes: Vec<usize> = parts
        .iter()
        .map(|part| count(&rows, part, |row| !row.test))
        .collect();
    assert!(
        sizes.iter().all(|&size| size == sizes[0] && size > 10),
        "{sizes:?}"
    );
}

#[test]
fn three_clients_share_the_classes_as_in_hcct() {
    let rows = rows(10, 1, 100, 10);
    let config = PartitionConfig::ThreeClients { a: 0.1, b: 0.3 };
    let parts = divided(&config, &rows, 9, 1).unwrap();
    let found: Vec<_> = parts
        .iter()
        .map(|part| {
            let of = |low: bool, test| {
                count(&rows, part, |row| {
                    (row.class < 5) == low && row.test == test
                })
            };
            (
                part.name.as_str(),
                of(true, false),
                of(false, false),
                of(true, true),
            )
        })
        .collect();
    assert_eq!(
        found,
        [("A", 50, 0, 5), ("B", 150, 0, 15), ("C", 0, 500, 0)]
    );
}

#[test]
fn users_with_too_few_rows_are_left_out() {
    let mut rows = rows(3, 1, 6, 0);
    rows.truncate(16);
    let parts = divided(&PartitionConfig::Users { rows: 6 }, &rows, 9, 1).unwrap();
    let found: Vec<_> = parts
        .iter()
        .map(|part| (part.name.as_str(), part.rows.len()))
        .collect();
    assert_eq!(found, [("user 0", 6)]);
}

#[test]
fn settings_out_of_range_are_refused_with_what_was_expected() {
    let rows = rows(4, 2, 10, 0);
    let error = |config: PartitionConfig| divided(&config, &rows, 4, 1).unwrap_err();
    assert_eq!(
        error(PartitionConfig::Dirichlet {
            alpha: 0.0,
            rows: 1
        }),
        "`alpha` of a partition must be above 0, not 0"
    );
    assert!(error(PartitionConfig::ThreeClients { a: 0.7, b: 0.7 }).contains("at most 1 together"));
    assert!(
        error(PartitionConfig::Domains { silos: 0 })
            .contains("`silos` of a partition must be at least 1")
    );
    let shares = vec![vec![0.5, 0.5], vec![0.5, 0.6]];
    let error = error(PartitionConfig::Mixed(MixedShares::Given(shares)));
    assert!(
        error.contains("(of domain 0, domain 1), found [0.5, 0.6] for silo 2"),
        "{error}"
    );
    let none = RowsToPartition {
        rows: &rows,
        classes: 4,
        domains: &[],
        users: &[],
    };
    let error = |config: PartitionConfig| config.divide(&none, 2, 1).unwrap_err();
    assert!(error(PartitionConfig::Domains { silos: 1 }).contains("the rows have none"));
    assert!(error(PartitionConfig::Users { rows: 1 }).contains("the rows have none"));
    assert!(error(PartitionConfig::Mixed(MixedShares::Alpha(1.0))).contains("the rows have none"));
}
