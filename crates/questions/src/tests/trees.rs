//! Boosted trees: those of scikit-learn on the same bins, and those of one table with all rows.

use super::data::{heart, heart_ranges};
use super::*;
use crate::kinds::trees::{Trees, TreesOutcome};
use crate::table::{CellColumn, CellValue};
use crate::{QuestionMode, QuestionRound};

/// Twenty trees of three levels.
pub(super) fn trees(outcome: &str, columns: &[&str]) -> Trees {
    Trees {
        outcome: outcome.to_owned(),
        columns: words(columns),
        trees: 20,
        depth: 3,
        rate: 0.1,
        lambda: 1.0,
        min_rows: 20,
        min_hessian: 1e-3,
        bins: 32,
        edges: Default::default(),
        held_out: 0.0,
    }
}

pub(super) fn grown(kind: &Trees, agreed: &AgreedColumns, sites: &[RowTable]) -> TreesOutcome {
    match answer(Kind::Trees(kind.clone()), agreed, sites) {
        Outcome::Trees(found) => found,
        other => panic!("{other:?}"),
    }
}

fn score(found: &TreesOutcome, row: &[f64]) -> f64 {
    let values: Vec<Option<f64>> = row.iter().copied().map(Some).collect();
    found.score(&values)
}

#[track_caller]
pub(super) fn within(found: f64, expected: f64, apart: f64) {
    assert!((found - expected).abs() <= apart, "{found} {expected}");
}

#[test]
fn trees_of_four_hospitals_are_those_of_scikit_learn() {
    let Some(sites) = heart() else { return };
    let columns = [
        "age10",
        "sex = 1",
        "trestbps20",
        "thalach25",
        "exang = 1",
        "oldpeak",
        "cp = 4",
    ];
    let found = grown(&trees("num > 0", &columns), &heart_ranges(), &sites);
    assert_eq!((found.trees.len(), found.rows), (20, 854.0));
    // HistGradientBoostingClassifier of scikit-learn 1.9.1, whose gradients have single precision.
    for (trees, loss) in [
        (0, 0.689_182_062_329_909_2),
        (1, 0.652_110_085_885_511_1),
        (5, 0.553_963_402_883_264_3),
        (10, 0.490_815_843_668_115_54),
        (20, 0.434_809_001_891_059_1),
    ] {
        within(found.losses[trees].trained, loss, 2e-8);
    }
    for (row, expected) in [
        (
            [0.8, 1.0, 0.75, 0.4, 0.0, 2.3, 0.0],
            0.149_044_432_775_445_9,
        ),
        (
            [1.2, 1.0, 1.5, -1.28, 1.0, 1.5, 1.0],
            1.981_032_709_856_160_6,
        ),
        ([0.2, 1.0, 0.0, -1.0, 1.0, 1.2, 1.0], 1.700_678_439_698_752),
        (
            [1.0, 1.0, -0.75, -1.88, 1.0, 0.0, 1.0],
            1.486_524_840_577_321_3,
        ),
        (
            [0.7, 1.0, -0.5, -1.88, 1.0, 0.0, 0.0],
            0.607_966_921_528_951_8,
        ),
    ] {
        within(score(&found, &row), expected, 1e-7);
    }
    let leaves = found.trees.iter().map(|tree| {
        let leaves = tree.nodes.iter().filter(|node| node.split.is_none());
        leaves.count()
    });
    let expected = [8, 8, 8, 8, 8, 8, 8, 8, 7, 7, 7, 8, 8, 7, 8, 7, 7, 7, 8, 6];
    assert_eq!(leaves.collect::<Vec<_>>(), expected);
}

#[test]
fn trees_of_a_number_are_those_of_scikit_learn() {
    let Some(sites) = heart() else { return };
    let columns = [
        "age10",
        "sex = 1",
        "trestbps20",
        "exang = 1",
        "oldpeak",
        "cp = 4",
    ];
    let found = grown(&trees("thalach", &columns), &heart_ranges(), &sites);
    // HistGradientBoostingRegressor of scikit-learn 1.9.1.
    within(found.losses[20].trained, 21.639_642_938_114_015, 2e-6);
    for (row, expected) in [
        ([0.8, 1.0, 0.75, 0.0, 2.3, 0.0], 140.252_807_958_366_25),
        ([0.2, 1.0, 0.0, 1.0, 1.2, 1.0], 124.135_280_135_770_8),
        ([0.7, 1.0, -0.5, 1.0, 0.0, 0.0], 121.965_647_064_776_56),
    ] {
        within(score(&found, &row), expected, 1e-5);
    }
}

/// Rows of a generator by Knuth: a number, some of which are missing, a level, and an outcome that depends on both.
pub(super) fn synthetic(sites: usize, rows: usize) -> Vec<RowTable> {
    let mut state = 7u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let mut site = |_| {
        let (mut dose, mut stage, mut weight, mut ill) = (vec![], vec![], vec![], vec![]);
        for _ in 0..rows {
            let (a, b, c) = (draw(), draw(), draw());
            let level = ["I", "II", "III"][(b * 3.0) as usize];
            let risk =
                if level == "II" { 0.6 } else { 0.2 } + 0.3 * a - if c < 0.2 { 0.2 } else { 0.0 };
            dose.push(Some(100.0 * a).filter(|_| c >= 0.2));
            stage.push(Some(level.to_owned()));
            weight.push(50.0 + (40.0 * draw()).floor());
            ill.push(f64::from(u8::from(draw() < risk)));
        }
        let mut table = RowTable::new(rows)
            .with("weight", &weight)
            .with("ill", &ill);
        table.insert("dose", CellColumn::Numbers(dose));
        table.insert("stage", CellColumn::Words(stage));
        table
    };
    (0..sites).map(&mut site).collect()
}

fn synthetic_ranges() -> AgreedColumns {
    agreed(
        &[("dose", [0.0, 100.0]), ("weight", [50.0, 90.0])],
        &[("stage", &["I", "II", "III"])],
    )
}

/// One table with the rows of all, in another order.
pub(super) fn pooled(sites: &[RowTable]) -> RowTable {
    let rows = sites.iter().map(RowTable::rows).sum();
    let names: Vec<String> = sites[0].names().map(str::to_owned).collect();
    names.iter().fold(RowTable::new(rows), |mut all, name| {
        let each = sites.iter().rev().map(|site| site.cells(name).unwrap());
        let (mut numbers, mut levels) = (Vec::new(), Vec::new());
        for cells in each {
            match cells {
                CellColumn::Numbers(cells) => numbers.extend(cells.clone()),
                CellColumn::Words(cells) => levels.extend(cells.clone()),
            }
        }
        let cells = match levels.is_empty() {
            true => CellColumn::Numbers(numbers),
            false => CellColumn::Words(levels),
        };
        all.insert(name, cells);
        all
    })
}

/// The opened numbers of all rounds but that of counts.
pub(super) fn bits(rounds: &[QuestionRound]) -> Vec<Vec<u64>> {
    let of = |round: &QuestionRound| -> Vec<u64> {
        let numbers = round.sum.numbers.iter();
        numbers.map(|number| number.to_bits()).collect()
    };
    rounds[1..].iter().map(of).collect()
}

#[test]
fn trees_of_sites_are_bit_by_bit_those_of_pooled_rows() {
    let sites = synthetic(7, 90);
    for (outcome, held_out) in [("ill = 1", 0.0), ("ill = 1", 0.25), ("weight", 0.2)] {
        let columns: &[&str] = match outcome {
            "weight" => &["dose", "stage"],
            _ => &["dose", "stage", "weight"],
        };
        let kind = Trees {
            held_out,
            trees: 8,
            ..trees(outcome, columns)
        };
        let question = FederatedQuestion {
            rules: WITHOUT_LIMITS,
            ..FederatedQuestion::new(Kind::Trees(kind), synthetic_ranges())
        };
        let apart = asked(&question, &sites);
        let together = asked(&question, &[pooled(&sites)]);
        assert_eq!(bits(&apart.rounds), bits(&together.rounds));
        assert_eq!(apart.end, together.end);
        assert!(apart.end.is_ok() && apart.rounds.len() > 20);
    }
}

#[test]
fn one_of_two_sisters_is_asked_for() {
    let kind = Trees {
        trees: 2,
        ..trees("ill = 1", &["dose", "stage", "weight"])
    };
    let question = FederatedQuestion::new(Kind::Trees(kind), synthetic_ranges());
    let found = asked(&question, &synthetic(7, 90));
    // Bins of a node: 33 + 4 + 33, each with a gradient, a hessian and rows.
    let lengths: Vec<usize> = found
        .rounds
        .iter()
        .map(|round| round.layout.len())
        .collect();
    let node = 3 * 70;
    let tree = [node + 1, node, 2 * node];
    assert_eq!(lengths[1..], [&[3][..], &tree, &tree, &[1]].concat());
    let Ok(Outcome::Trees(found)) = found.end else {
        panic!()
    };
    // Nodes are children of those before them, with the rows of their parents.
    for tree in &found.trees {
        for node in &tree.nodes {
            let Some(split) = node.split else { continue };
            let [left, right] = [split.left, split.right].map(|child| tree.nodes[child]);
            assert_eq!(left.rows + right.rows, node.rows);
            assert!(left.rows >= 20.0 && right.rows >= 20.0 && split.gain > 0.0);
        }
    }
}

/// The best split of rows at the root of a first tree, from the rows themselves: column, left side, gain.
fn best_of_rows(rows: &[(Option<f64>, usize, f64)]) -> (usize, Vec<bool>, f64) {
    let mean = rows.iter().map(|row| row.2).sum::<f64>() / rows.len() as f64;
    let quality = |side: &[bool], is: bool| {
        let of = rows.iter().zip(side).filter(|(_, left)| **left == is);
        let (g, n) = of.fold((0.0, 0.0), |(g, n), (row, _)| (g + mean - row.2, n + 1.0));
        (g * g / (n * mean * (1.0 - mean) + 1.0), n)
    };
    let mut best = (0, Vec::new(), 0.0);
    let mut sides: Vec<(usize, Vec<bool>)> = (1..=32)
        .map(|cut| {
            let below = |row: &(Option<f64>, usize, f64)| {
                row.0
                    .is_some_and(|x| x < 100.0 / 32.0 * f64::from(cut) || cut == 32)
            };
            (0, rows.iter().map(below).collect())
        })
        .collect();
    sides.extend((0..3).map(|level| (1, rows.iter().map(|row| row.1 == level).collect())));
    for (column, side) in sides {
        let ((left, few), (right, rest)) = (quality(&side, true), quality(&side, false));
        let gain = left + right - quality(&vec![true; rows.len()], true).0;
        if few >= 20.0 && rest >= 20.0 && gain > best.2 + 1e-12 {
            best = (column, side, gain);
        }
    }
    best
}

#[test]
fn the_first_split_is_the_best_of_all_rows() {
    for size in [60, 75, 90, 140] {
        let all = pooled(&synthetic(3, size));
        let (Some(CellColumn::Numbers(dose)), Some(CellColumn::Words(stage))) =
            (all.cells("dose"), all.cells("stage"))
        else {
            panic!()
        };
        let Some(CellColumn::Numbers(ill)) = all.cells("ill") else {
            panic!()
        };
        let level = |level: &Option<String>| level.as_ref().unwrap().len() - 1;
        let rows: Vec<_> = (0..all.rows())
            .map(|row| (dose[row], level(&stage[row]), ill[row].unwrap()))
            .collect();
        let (column, side, gain) = best_of_rows(&rows);
        let kind = Trees {
            trees: 1,
            depth: 1,
            ..trees("ill = 1", &["dose", "stage"])
        };
        let found = grown(&kind, &synthetic_ranges(), &[all]);
        let split = found.trees[0].nodes[0].split.unwrap();
        assert_eq!(split.column, column);
        within(split.gain, gain, 1e-9);
        let left = side.iter().filter(|left| **left).count();
        assert_eq!(found.trees[0].nodes[split.left].rows, left as f64);
    }
}

#[test]
fn missing_values_have_a_bin_of_their_own() {
    // The outcome holds where the dose is missing, and nothing else tells of it.
    let rows = 120;
    let missing = |row: usize| row.is_multiple_of(3);
    let dose = (0..rows).map(|row| Some((row * 7 % 100) as f64).filter(|_| !missing(row)));
    let ill = (0..rows).map(|row| f64::from(u8::from(missing(row))));
    let mut table = RowTable::new(rows).with("ill", &ill.collect::<Vec<_>>());
    table.insert("dose", CellColumn::Numbers(dose.collect()));
    let kind = Trees {
        trees: 1,
        ..trees("ill = 1", &["dose"])
    };
    let found = grown(&kind, &synthetic_ranges(), &[table]);
    let root = found.trees[0].nodes[0].split.unwrap();
    assert_eq!(root.bin, 31, "all known values go to the left");
    assert_eq!(found.trees[0].nodes[root.right].rows, 40.0);
    assert!(found.score(&[None]) > found.score(&[Some(50.0)]));
    assert_eq!(found.importance()[0].share, 1.0);
}

#[test]
fn of_equal_splits_the_first_column_and_bin_is_taken() {
    let mut table = pooled(&synthetic(3, 90));
    let copy = table.cells("weight").unwrap().clone();
    table.insert("copy", copy);
    let mut agreed = synthetic_ranges();
    agreed.ranges.insert("copy".to_owned(), [50.0, 90.0]);
    let of = |columns: &[&str]| {
        grown(
            &trees("ill = 1", columns),
            &agreed,
            std::slice::from_ref(&table),
        )
    };
    let (one, both) = (of(&["weight"]), of(&["weight", "copy"]));
    assert_eq!(one.trees, both.trees);
    assert_eq!(both.importance().len(), 1);
}

#[test]
fn held_out_rows_are_in_no_tree_and_their_loss_is_measured() {
    let sites = synthetic(4, 200);
    let kind = Trees {
        held_out: 0.25,
        trees: 40,
        rate: 0.5,
        ..trees("ill = 1", &["dose", "stage", "weight"])
    };
    let found = grown(&kind, &synthetic_ranges(), &sites);
    assert_eq!(found.rows + found.held_out_rows, 800.0);
    assert!((150.0..250.0).contains(&found.held_out_rows), "{found:?}");
    assert_eq!(found.trees[0].nodes[0].rows, found.rows);
    let trained: Vec<f64> = found.losses.iter().map(|loss| loss.trained).collect();
    assert!(trained.windows(2).all(|pair| pair[1] < pair[0]));
    // So many steps of so large a rate overfit.
    let held_out = |trees: usize| found.losses[trees].held_out.unwrap();
    let best = found.best().unwrap();
    assert!(best > 0 && best < 30, "{best}");
    assert!(held_out(best) < held_out(0) && held_out(40) > held_out(best));
}

#[test]
fn rows_alike_but_for_the_outcome_are_on_one_side() {
    let kind = Trees {
        held_out: 0.5,
        ..trees("ill = 1", &["dose"])
    };
    let trained = |row: [f64; 2]| kind.trains_on(&row.map(CellValue::Known));
    let sides: Vec<[bool; 2]> = (0..100)
        .map(|dose| [0.0, 1.0].map(|ill| trained([f64::from(dose), ill])))
        .collect();
    assert!(sides.iter().all(|[healthy, ill]| healthy == ill));
    assert!(sides.contains(&[true; 2]) && sides.contains(&[false; 2]));
}

#[test]
fn trees_end_where_no_split_lowers_the_loss() {
    let mut table = RowTable::new(100).with(
        "ill",
        &(0..100).map(|row| f64::from(row % 2)).collect::<Vec<_>>(),
    );
    table.insert("dose", CellColumn::Numbers(vec![Some(5.0); 100]));
    let found = grown(&trees("ill = 1", &["dose"]), &synthetic_ranges(), &[table]);
    assert_eq!((found.trees.len(), found.losses.len()), (0, 1));
    within(found.losses[0].trained, libm::log(2.0), 1e-10);
}

#[test]
fn options_of_trees_that_cannot_be_are_named() {
    let good = trees("ill = 1", &["dose", "stage"]);
    let wrong: [(Trees, &str); 9] = [
        (
            Trees {
                trees: 0,
                ..good.clone()
            },
            "`trees` must be 1 to",
        ),
        (
            Trees {
                depth: 11,
                ..good.clone()
            },
            "`depth` must be 1 to 10",
        ),
        (
            Trees {
                rate: 1.5,
                ..good.clone()
            },
            "`rate` must be above 0",
        ),
        (
            Trees {
                min_rows: 5,
                ..good.clone()
            },
            "`min-rows` must be 20 or more",
        ),
        (
            Trees {
                held_out: 0.9,
                ..good.clone()
            },
            "`held-out` must be",
        ),
        (
            Trees {
                columns: Vec::new(),
                ..good.clone()
            },
            "need `columns`",
        ),
        (
            Trees {
                columns: words(&["dose", "dose"]),
                ..good.clone()
            },
            "asked for twice",
        ),
        (
            Trees {
                columns: words(&["age"]),
                ..good.clone()
            },
            "[ranges]",
        ),
        (
            Trees {
                edges: [("dose".to_owned(), vec![3.0, 3.0])].into(),
                ..good.clone()
            },
            "ascending",
        ),
    ];
    let of = |kind: Trees| FederatedQuestion::new(Kind::Trees(kind), synthetic_ranges());
    assert!(of(good.clone()).inputs().is_ok());
    for (kind, says) in wrong {
        let why = of(kind).inputs().unwrap_err().to_string();
        assert!(why.contains(says), "{why}");
    }
    let coarse = FederatedQuestion {
        exponent: 3,
        ..of(good)
    };
    assert!(
        coarse
            .inputs()
            .unwrap_err()
            .to_string()
            .contains("`exponent`")
    );
}

#[test]
fn few_rows_or_outcomes_end_a_question_before_trees_grow() {
    let ends = |sites: &[RowTable], kind: Trees| {
        let question = FederatedQuestion {
            mode: QuestionMode::Clear,
            ..FederatedQuestion::new(Kind::Trees(kind), synthetic_ranges())
        };
        let found = asked(&question, sites);
        assert_eq!(found.rounds.len(), 2);
        found.end.unwrap_err().to_string()
    };
    let kind = trees("ill = 1", &["dose"]);
    let why = ends(&synthetic(1, 39), kind.clone());
    assert!(
        why.contains("rows to grow trees from: 39, at least 40"),
        "{why}"
    );
    let never = trees("ill = 2", &["dose"]);
    let why = ends(&synthetic(1, 80), never);
    assert!(why.contains("rows in which the outcome holds"), "{why}");
    let few = Trees {
        held_out: 0.01,
        ..kind
    };
    let why = ends(&synthetic(1, 80), few);
    assert!(why.contains("`held-out`"), "{why}");
}

#[test]
fn edges_are_bins_of_a_column_without_an_agreed_range() {
    let kind = Trees {
        trees: 1,
        depth: 1,
        edges: [("dose".to_owned(), vec![20.0, 50.0])].into(),
        ..trees("ill = 1", &["dose"])
    };
    let found = grown(&kind, &agreed(&[], &[]), &synthetic(4, 100));
    assert_eq!(found.columns[0].known_bins(), 3);
    assert!(found.trees[0].nodes[0].split.is_some());
}
