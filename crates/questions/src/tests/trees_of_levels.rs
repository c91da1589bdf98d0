//! Boosted trees of an outcome with several levels: those of scikit-learn on the same bins, and those of one table.

use super::data::heart;
use super::trees::{bits, grown, pooled, synthetic, within};
use super::*;
use crate::kinds::trees::Trees;

/// Ten trees of each level.
fn trees(outcome: &str, columns: &[&str]) -> Trees {
    Trees {
        trees: 10,
        ..super::trees::trees(outcome, columns)
    }
}

/// Levels of the synthetic rows' outcome, and of a column.
fn known() -> AgreedColumns {
    agreed(
        &[("dose", [0.0, 100.0]), ("weight", [50.0, 90.0])],
        &[("stage", &["I", "II", "III"]), ("ill", &["0", "1"])],
    )
}

#[test]
fn trees_of_four_kinds_of_pain_are_those_of_scikit_learn() {
    let Some(sites) = heart() else { return };
    let columns = [
        "age10",
        "sex = 1",
        "trestbps20",
        "thalach25",
        "exang = 1",
        "oldpeak",
    ];
    let known = agreed(
        &[
            ("age10", [-6.0, 6.0]),
            ("trestbps20", [-8.0, 8.0]),
            ("thalach25", [-8.0, 8.0]),
            ("oldpeak", [-10.0, 10.0]),
        ],
        &[("cp", &["1", "2", "3", "4"])],
    );
    let found = grown(&trees("cp", &columns), &known, &sites);
    assert_eq!(
        (found.trees.len(), found.count(), found.rows),
        (40, 10, 854.0)
    );
    assert_eq!(found.classes, ["1", "2", "3", "4"]);
    // HistGradientBoostingClassifier of scikit-learn 1.9.1, whose gradients have single precision.
    for (trees, loss) in [
        (0, 1.126_790_405_680_791_6),
        (1, 1.077_332_461_399_527_7),
        (5, 0.976_325_972_931_493_6),
        (10, 0.923_953_197_680_539_5),
    ] {
        within(found.losses[trees].trained, loss, 1e-6);
    }
    for (row, expected) in [
        ([0.8, 1.0, 0.75, 0.4, 0.0, 2.3], SCORES[0]),
        ([1.2, 1.0, 1.5, -1.28, 1.0, 1.5], SCORES[1]),
        ([-1.8, 1.0, 0.0, 1.88, 0.0, 3.5], SCORES[2]),
    ] {
        let values = row.map(Some);
        for (found, expected) in found.scores(&values).into_iter().zip(expected) {
            within(found, expected, 1e-6);
        }
    }
    let leaves = found.trees.iter().map(|tree| {
        let leaves = tree.nodes.iter().filter(|node| node.split.is_none());
        leaves.count()
    });
    let expected = [
        [7, 8, 8, 8],
        [7, 8, 8, 8],
        [7, 8, 6, 8],
        [7, 8, 7, 8],
        [5, 7, 7, 8],
        [5, 7, 7, 7],
        [5, 8, 7, 7],
        [5, 8, 8, 7],
        [5, 8, 6, 8],
        [5, 8, 7, 7],
    ];
    assert_eq!(leaves.collect::<Vec<usize>>(), expected.concat());
}

/// The raw scores of three rows.
const SCORES: [[f64; 4]; 3] = [
    [
        -0.364_371_551_829_271_8,
        -0.877_958_530_136_434_5,
        0.179_567_417_753_443_81,
        0.788_599_209_265_577_9,
    ],
    [
        -2.037_883_419_386_094_6,
        -0.666_932_416_303_669_8,
        0.141_487_392_012_977_03,
        1.940_183_085_558_718_8,
    ],
    [
        -0.350_643_626_010_245_7,
        -0.061_954_931_482_221_955,
        0.699_496_565_931_436_4,
        0.559_953_294_308_806,
    ],
];

#[test]
fn trees_of_levels_are_bit_by_bit_those_of_pooled_rows() {
    let sites = synthetic(7, 90);
    for held_out in [0.0, 0.25] {
        let kind = Trees {
            held_out,
            trees: 5,
            ..trees("stage", &["dose", "weight", "ill = 1"])
        };
        let question = FederatedQuestion {
            rules: WITHOUT_LIMITS,
            ..FederatedQuestion::new(Kind::Trees(kind), known())
        };
        let apart = asked(&question, &sites);
        let together = asked(&question, &[pooled(&sites)]);
        assert_eq!(bits(&apart.rounds), bits(&together.rounds));
        assert_eq!(apart.end, together.end);
        // Trees of all levels grow in the same rounds: counts, outcomes, the levels of each, and the last loss.
        let Ok(Outcome::Trees(found)) = &apart.end else {
            panic!("{:?}", apart.end)
        };
        assert_eq!(found.trees.len() % 3, 0);
        assert!(apart.rounds.len() <= 3 + 3 * found.count());
        let lengths = apart.rounds.iter().map(|round| round.layout.len() as u64);
        let Kind::Trees(kind) = &question.kind else {
            panic!()
        };
        let most = 4 + kind.most_in_all(&question.agreed, 630.0);
        assert!(lengths.sum::<u64>() <= most);
    }
}

#[test]
fn trees_of_two_levels_predict_what_trees_of_a_condition_do() {
    let sites = synthetic(4, 120);
    let columns = ["dose", "weight", "stage"];
    let condition = grown(&trees("ill = 1", &columns), &known(), &sites);
    let levels = grown(&trees("ill", &columns), &known(), &sites);
    assert_eq!(levels.classes, ["0", "1"]);
    within(levels.bases[0] + levels.bases[1], 0.0, 1e-15);
    within(levels.bases[1] - levels.bases[0], condition.bases[0], 1e-12);
    within(levels.losses[0].trained, condition.losses[0].trained, 1e-9);
    // The first split is the same: gradients of one level are those of the other with another sign.
    let split = |tree: usize| {
        levels.trees[tree].nodes[0]
            .split
            .map(|one| (one.column, one.bin))
    };
    let of_condition = condition.trees[0].nodes[0].split;
    assert_eq!(split(0), split(1));
    assert_eq!(split(1), of_condition.map(|one| (one.column, one.bin)));
    let row = [Some(40.0), Some(60.0), Some(1.0)];
    let probabilities = levels.probabilities(&row);
    within(probabilities[0] + probabilities[1], 1.0, 1e-12);
    let scores = levels.scores(&row);
    within(
        probabilities[1],
        1.0 / (1.0 + libm::exp(scores[0] - scores[1])),
        1e-12,
    );
}

#[test]
fn a_level_with_few_rows_or_none_stops_the_question() {
    let sites = synthetic(2, 60);
    let mut wider = known();
    let levels = words(&["I", "II", "III", "IV"]);
    wider.levels.insert("stage".to_owned(), levels);
    let kind = Kind::Trees(trees("stage", &["dose"]));
    let why = stopped(kind, &wider, &sites).to_string();
    assert!(
        why.starts_with("rows of level \"IV\" of the outcome: 0") && why.contains("join it"),
        "{why}"
    );
    let mut one = known();
    one.levels.insert("stage".to_owned(), words(&["I"]));
    let question = FederatedQuestion::new(Kind::Trees(trees("stage", &["dose"])), one);
    let why = question.inputs().unwrap_err().to_string();
    assert!(
        why.contains("has 1 levels") && why.contains("name a condition"),
        "{why}"
    );
}
