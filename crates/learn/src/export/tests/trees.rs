//! Boosted trees as files give every row the score that the question's answer gives it.

use questions::kinds::trees::{Trees, TreesOutcome};
use questions::table::{CellColumn, RowTable};
use questions::{AgreedColumns, FederatedQuestion, Kind, Outcome, QuestionRules};
use serde_json::Value as Json;

use super::graphs::{run_in_python, xgboost_in_python};
use crate::export::{onnx_of_trees, xgboost_of_trees};

/// Ages of which every fifth is missing, stages, and an outcome that depends on both.
const STAGES: [&str; 3] = ["I", "II", "III"];
/// Levels of an outcome.
const GRADES: [&str; 3] = ["low", "medium", "high"];

fn age(row: usize) -> Option<f64> {
    (!row.is_multiple_of(5)).then_some(20.0 + (row * 37 % 71) as f64 + 0.1)
}

fn stage(row: usize) -> usize {
    row * 13 % 3
}

fn table(rows: usize) -> RowTable {
    let risk = |row: usize| {
        let old = age(row).map_or(2, |age| (age / 20.0) as usize);
        old + 2 * usize::from(stage(row) == 1) + row * 7 % 4
    };
    let column = |of: &dyn Fn(usize) -> f64| (0..rows).map(of).collect::<Vec<f64>>();
    let mut table = RowTable::new(rows)
        .with("dose", &column(&|row| (row % 11) as f64))
        .with("risk", &column(&|row| risk(row) as f64))
        .with("ill", &column(&|row| f64::from(u8::from(risk(row) > 5))));
    table.insert("age", CellColumn::Numbers((0..rows).map(age).collect()));
    let stages = (0..rows).map(|row| Some(STAGES[stage(row)].to_owned()));
    table.insert("stage", CellColumn::Words(stages.collect()));
    let grades = (0..rows).map(|row| Some(GRADES[(risk(row) / 3).min(2)].to_owned()));
    table.insert("grade", CellColumn::Words(grades.collect()));
    table
}

/// Trees of the rows, grown by the question.
fn grown(outcome: &str, trees: usize) -> TreesOutcome {
    let kind = Trees {
        outcome: outcome.to_owned(),
        columns: ["age", "stage", "dose < 4"].map(str::to_owned).to_vec(),
        trees,
        depth: 3,
        rate: 0.3,
        lambda: 1.0,
        min_rows: 20,
        min_hessian: 1e-3,
        bins: 16,
        edges: Default::default(),
        held_out: 0.0,
    };
    let ranges = [("age", [20.0, 100.0]), ("risk", [0.0, 12.0])];
    let grades = GRADES.map(str::to_owned).to_vec();
    let levels = STAGES.map(str::to_owned).to_vec();
    let agreed = AgreedColumns {
        ranges: ranges.map(|(name, range)| (name.to_owned(), range)).into(),
        levels: [("stage".to_owned(), levels), ("grade".to_owned(), grades)].into(),
    };
    let question = FederatedQuestion {
        rules: QuestionRules {
            smallest_cell: 1,
            ..QuestionRules::default()
        },
        ..FederatedQuestion::new(Kind::Trees(kind), agreed)
    };
    let asked = questions::ask(&question, &[table(400)], |_, _, _| Ok(())).unwrap();
    match asked.end.unwrap() {
        Outcome::Trees(found) => found,
        other => panic!("{other:?}"),
    }
}

/// The values of a row, as a question reads them.
fn values(row: usize) -> [Option<f64>; 3] {
    let few = f64::from(u8::from(row % 11 < 4));
    [age(row), Some(stage(row) as f64), Some(few)]
}

/// The features of a row, as files take them, and its score.
fn rows(found: &TreesOutcome) -> Vec<(Vec<f64>, f64)> {
    let row = |row: usize| {
        let few = f64::from(u8::from(row % 11 < 4));
        let score = found.score(&values(row));
        let mut features = vec![age(row).unwrap_or(f64::NAN)];
        features.extend((0..3).map(|level| f64::from(u8::from(level == stage(row)))));
        features.push(few);
        (features, score)
    };
    (0..60).map(row).collect()
}

fn probability(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}

/// The score of a row by the fields of a file of XGBoost, without the base: that of this class where there are some.
fn walked(model: &Json, row: &[f64], class: usize) -> f64 {
    let booster = &model["learner"]["gradient_booster"]["model"];
    let trees = booster["trees"].as_array().unwrap();
    let classes = booster["tree_info"].as_array().unwrap();
    let own = trees
        .iter()
        .zip(classes)
        .filter(|(_, of)| of.as_u64() == Some(class as u64));
    let one = |tree: &Json| {
        let number = |field: &str, at: usize| tree[field][at].as_f64().unwrap();
        let mut at = 0;
        while number("left_children", at) >= 0.0 {
            let value = row[number("split_indices", at) as usize] as f32;
            let below = if value.is_nan() {
                number("default_left", at) == 1.0
            } else {
                f64::from(value) < number("split_conditions", at)
            };
            let side = if below {
                "left_children"
            } else {
                "right_children"
            };
            let next = number(side, at) as usize;
            assert_eq!(number("parents", next), at as f64);
            at = next;
        }
        number("split_conditions", at)
    };
    own.map(|(tree, _)| one(tree)).sum()
}

#[test]
fn files_of_xgboost_send_every_row_to_its_leaf() {
    for outcome in ["ill = 1", "risk"] {
        let found = grown(outcome, 12);
        let missing = found.trees.iter().flat_map(|tree| &tree.nodes);
        assert!(
            missing
                .filter_map(|node| node.split)
                .any(|split| split.column == 1)
        );
        let model: Json = serde_json::from_str(&xgboost_of_trees(&found)).unwrap();
        for (row, score) in rows(&found) {
            let walked = found.bases[0] + walked(&model, &row, 0);
            assert!((walked - score).abs() < 1e-5, "{walked} {score}");
        }
        let names = &model["learner"]["feature_names"];
        let expected = ["age", "stage=I", "stage=II", "stage=III", "dose below 4"];
        assert_eq!(names, &serde_json::json!(expected));
    }
}

#[test]
fn xgboost_predicts_what_trees_of_a_question_predict() {
    for (outcome, trees) in [("ill = 1", 12), ("risk", 12), ("ill = 1", 0)] {
        let found = first(grown(outcome, trees.max(1)), trees);
        let rows = rows(&found);
        let features: Vec<Vec<f64>> = rows.iter().map(|(row, _)| row.clone()).collect();
        let Some(theirs) = xgboost_in_python(&xgboost_of_trees(&found), &features) else {
            return;
        };
        for ((_, score), theirs) in rows.iter().zip(theirs) {
            let ours = match found.is_probability {
                true => probability(*score),
                false => *score,
            };
            assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
        }
    }
}

#[test]
fn onnx_predicts_what_trees_of_a_question_predict() {
    for (outcome, trees) in [("ill = 1", 12), ("risk", 12), ("risk", 0)] {
        let found = first(grown(outcome, trees.max(1)), trees);
        let rows = rows(&found);
        let features: Vec<Vec<f64>> = rows.iter().map(|(row, _)| row.clone()).collect();
        let bytes = onnx_of_trees(&found).unwrap();
        let Some(theirs) = run_in_python(&bytes, &features) else {
            return;
        };
        for (at, (_, score)) in rows.iter().enumerate() {
            let (ours, theirs) = match found.is_probability {
                true => (probability(*score), theirs[2 * at + 1]),
                false => (*score, theirs[at]),
            };
            assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
        }
    }
}

#[test]
fn files_of_several_levels_have_trees_and_bases_of_each() {
    for count in [8, 0] {
        let mut found = grown("grade", count.max(1));
        assert_eq!(found.classes, GRADES);
        assert_eq!(found.count(), count.max(1));
        found.trees.truncate(3 * count);
        let model: Json = serde_json::from_str(&xgboost_of_trees(&found)).unwrap();
        let learner = &model["learner"];
        assert_eq!(learner["objective"]["name"], "multi:softprob");
        assert_eq!(learner["learner_model_param"]["num_class"], "3");
        let rounds = &learner["gradient_booster"]["model"]["iteration_indptr"];
        assert_eq!(rounds.as_array().unwrap().len(), count.max(1) + 1);
        let rows = rows(&found);
        let features: Vec<Vec<f64>> = rows.iter().map(|(row, _)| row.clone()).collect();
        for (at, row) in features.iter().enumerate() {
            let scores = found.scores(&values(at));
            for (class, score) in scores.iter().enumerate() {
                let walked = walked(&model, row, class);
                assert!((walked - score).abs() < 1e-5, "{walked} {score}");
            }
            let sum: f64 = found.probabilities(&values(at)).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
        let ours: Vec<f64> = (0..features.len())
            .flat_map(|row| found.probabilities(&values(row)))
            .collect();
        let onnx = run_in_python(&onnx_of_trees(&found).unwrap(), &features);
        let xgboost = xgboost_in_python(&xgboost_of_trees(&found), &features);
        for theirs in [onnx, xgboost].into_iter().flatten() {
            assert_eq!(theirs.len(), ours.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                assert!((ours - theirs).abs() < 1e-5, "{ours} {theirs}");
            }
        }
    }
}

/// An answer with its first trees alone.
fn first(mut found: TreesOutcome, trees: usize) -> TreesOutcome {
    found.trees.truncate(trees);
    found
}
