//! Boosted trees of a question, as files that other programs run.
//!
//! Both files take the same features: a column of numbers as it is, one of categories as columns of 0 and 1 called
//! `COLUMN=LEVEL`, and a condition as 0 or 1; missing values are NaN. They compare in single precision, as the sites did
//! when they counted their rows, so every row reaches the same leaf.

use std::borrow::Cow;

use questions::kinds::trees::{BinnedColumn, BoostedTree, TreeNode, TreeSplit, TreesOutcome};
use serde_json::{Value as Json, json};

use super::error::ExportError;
use crate::onnx::{Attribute, OnnxGraph, Value};

/// Place of a node without a parent, in XGBoost's files.
const NO_PARENT: i64 = 2_147_483_647;
/// Version of XGBoost whose fields are written; later ones read them.
const XGBOOST: [u32; 3] = [2, 1, 0];

/// A split as `feature < threshold`.
struct ThresholdSplit {
    feature: usize,
    threshold: f32,
    /// The node if it holds, and the other one.
    children: [usize; 2],
    /// True if a missing value goes where it holds.
    missing_below: bool,
}

/// The features by their names, with the place of the first one of each column.
fn features(columns: &[BinnedColumn]) -> (Vec<String>, Vec<usize>) {
    let (mut names, mut places) = (Vec::new(), Vec::new());
    for column in columns {
        places.push(names.len());
        match column.has_levels() {
            true => {
                let levels = column.levels.iter();
                names.extend(levels.map(|level| format!("{}={level}", column.name)));
            }
            false => names.push(column.name.clone()),
        }
    }
    (names, places)
}

/// The trees to write: where there are none, some that add nothing, because files without trees are refused.
fn written(found: &TreesOutcome) -> Cow<'_, [BoostedTree]> {
    let nothing = || TreeNode {
        split: None,
        depth: 0,
        rows: found.rows,
        hessian: 0.0,
        value: 0.0,
    };
    match found.trees.is_empty() {
        true => {
            let one = BoostedTree {
                nodes: vec![nothing()],
            };
            Cow::Owned(vec![one; found.bases.len()])
        }
        false => Cow::Borrowed(&found.trees),
    }
}

fn threshold(split: &TreeSplit, columns: &[BinnedColumn], places: &[usize]) -> ThresholdSplit {
    let column = &columns[split.column];
    let place = places[split.column];
    match column.has_levels() {
        // Rows of the level have 1 there, and those of another one, or of none, have less.
        true => ThresholdSplit {
            feature: place + split.bin,
            threshold: 0.5,
            children: [split.right, split.left],
            missing_below: true,
        },
        false => ThresholdSplit {
            feature: place,
            // Behind the last edge all known values are below.
            threshold: column.edges.get(split.bin).copied().unwrap_or(f32::MAX),
            children: [split.left, split.right],
            missing_below: false,
        },
    }
}

/// Trees as an ONNX file, with the operator `TreeEnsembleRegressor` of `ai.onnx.ml` 3.
///
/// The input `features` is rows × features in double precision, NaN where a value is missing. The output is
/// `prediction`, rows × 1 in the unit of the outcome; or `probabilities`, rows × 2, first that the condition does not
/// hold, and `class`, 1 where it holds more probably than not. Of an outcome of several levels, `probabilities` are rows ×
/// levels and `class` is the number of the most probable one, from 0. The metadata `rota.columns` have the names of the
/// features, and `rota.classes` the levels.
///
/// # Errors
/// [`ExportError::TooLarge`]: more than 2 GiB.
pub fn onnx_of_trees(found: &TreesOutcome) -> Result<Vec<u8>, ExportError> {
    let (names, places) = features(&found.columns);
    let mut graph = OnnxGraph::new("boosted trees");
    let doc = format!("{}; NaN where a value is missing", names.join(", "));
    let input = graph.input("features", names.len(), &doc);
    let input = graph.single(&input);
    let score = ensemble(&mut graph, found, &places, &input);
    let along = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))];
    let axis = [("axis", Attribute::Int(1))];
    if !found.classes.is_empty() {
        let probabilities = graph.node("Softmax", &[&score], &axis);
        let class = graph.node("ArgMax", &[&probabilities], &along);
        let doc = found.classes.join(", ");
        graph.output("probabilities", &probabilities, found.classes.len(), &doc);
        graph.index_output("class", &class, "number of the most probable level, from 0");
    } else if found.is_probability {
        let opposite = graph.node("Neg", &[&score], &[]);
        let sides = [&opposite, &score].map(|score| graph.node("Sigmoid", &[score], &[]));
        let probabilities = graph.node("Concat", &[&sides[0], &sides[1]], &axis);
        let class = graph.node("ArgMax", &[&probabilities], &along);
        let doc = format!("not {}, {}", found.outcome, found.outcome);
        graph.output("probabilities", &probabilities, 2, &doc);
        graph.index_output("class", &class, "1 where it holds more probably than not");
    } else {
        let value = graph.double(&score);
        graph.double_output("prediction", &value, 1, &found.outcome);
    }
    let known = "names are texts";
    let mut properties = vec![
        ("rota.columns", serde_json::to_string(&names).expect(known)),
        ("rota.outcome", found.outcome.clone()),
    ];
    if !found.classes.is_empty() {
        let classes = serde_json::to_string(&found.classes).expect(known);
        properties.push(("rota.classes", classes));
    }
    let about = format!("Gradient-boosted trees for {}", found.outcome);
    graph
        .encode(&about, &properties)
        .ok_or(ExportError::TooLarge)
}

fn ensemble(graph: &mut OnnxGraph, found: &TreesOutcome, places: &[usize], input: &Value) -> Value {
    let (mut trees, mut ids, mut features) = (Vec::new(), Vec::new(), Vec::new());
    let (mut modes, mut values) = (Vec::new(), Vec::new());
    let (mut below, mut above, mut missing) = (Vec::new(), Vec::new(), Vec::new());
    let (mut leaf_trees, mut leaves, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    let mut targets = Vec::new();
    for (at, tree) in written(found).iter().enumerate() {
        for (id, node) in tree.nodes.iter().enumerate() {
            trees.push(at);
            ids.push(id);
            let split = node.split.as_ref();
            let split = split.map(|split| threshold(split, &found.columns, places));
            modes.push(if split.is_some() { "BRANCH_LT" } else { "LEAF" });
            if split.is_none() {
                leaf_trees.push(at);
                leaves.push(id);
                weights.push(node.value as f32);
                targets.push(at % found.bases.len());
            }
            let split = split.unwrap_or(ThresholdSplit {
                feature: 0,
                threshold: 0.0,
                children: [0, 0],
                missing_below: false,
            });
            features.push(split.feature);
            values.push(split.threshold);
            below.push(split.children[0]);
            above.push(split.children[1]);
            missing.push(usize::from(split.missing_below));
        }
    }
    let bases: Vec<f32> = found.bases.iter().map(|base| *base as f32).collect();
    let scores = Attribute::Int(found.bases.len() as i64);
    let attributes = [
        ("nodes_treeids", Attribute::Ints(&trees)),
        ("nodes_nodeids", Attribute::Ints(&ids)),
        ("nodes_featureids", Attribute::Ints(&features)),
        ("nodes_modes", Attribute::Texts(&modes)),
        ("nodes_values", Attribute::Floats(&values)),
        ("nodes_truenodeids", Attribute::Ints(&below)),
        ("nodes_falsenodeids", Attribute::Ints(&above)),
        ("nodes_missing_value_tracks_true", Attribute::Ints(&missing)),
        ("target_treeids", Attribute::Ints(&leaf_trees)),
        ("target_nodeids", Attribute::Ints(&leaves)),
        ("target_ids", Attribute::Ints(&targets)),
        ("target_weights", Attribute::Floats(&weights)),
        ("base_values", Attribute::Floats(&bases)),
        ("n_targets", scores),
    ];
    graph.tree_node("TreeEnsembleRegressor", &[input], &attributes)
}

/// Trees as a model of XGBoost in JSON, which `xgboost.Booster(model_file=…)` loads.
///
/// Its objective is `binary:logistic`, `multi:softprob` or `reg:squarederror`. Such a file has one base score for all
/// levels of an outcome, so theirs are added to the leaves of the first tree of each. Names of features may not hold `[`, `]` or `<` there:
/// they are written as `(`, `)` and `below`.
pub fn xgboost_of_trees(found: &TreesOutcome) -> String {
    let (names, places) = features(&found.columns);
    let names: Vec<String> = names.iter().map(|name| allowed(name)).collect();
    let (scores, first) = (found.bases.len(), found.bases[0]);
    let several = !found.classes.is_empty();
    let (name, base) = match found.is_probability {
        true if several => ("multi:softprob", 0.0),
        // It is written as a probability.
        true => ("binary:logistic", 1.0 / (1.0 + (-first).exp())),
        false => ("reg:squarederror", first),
    };
    let classes = if several { scores } else { 0 }.to_string();
    let objective = match several {
        true => json!({ "name": name, "softmax_multiclass_param": { "num_class": classes } }),
        false => json!({ "name": name, "reg_loss_param": { "scale_pos_weight": "1" } }),
    };
    let trees = written(found);
    let count = trees.len();
    let trees: Vec<Json> = trees
        .iter()
        .enumerate()
        .map(|(id, tree)| {
            let added = match several && id < scores {
                true => found.bases[id],
                false => 0.0,
            };
            one_tree(id, (tree, added), found, &places, names.len())
        })
        .collect();
    let model = json!({
        "learner": {
            "attributes": {},
            "feature_names": names,
            "feature_types": vec!["float"; names.len()],
            "gradient_booster": {
                "model": {
                    "gbtree_model_param": {
                        "num_parallel_tree": "1",
                        "num_trees": count.to_string(),
                    },
                    "iteration_indptr": (0..=count).step_by(scores).collect::<Vec<_>>(),
                    "tree_info": (0..count).map(|tree| tree % scores).collect::<Vec<_>>(),
                    "trees": trees,
                },
                "name": "gbtree",
            },
            "learner_model_param": {
                "base_score": format!("{:E}", base as f32),
                "boost_from_average": "0",
                "num_class": classes,
                "num_feature": names.len().to_string(),
                "num_target": "1",
            },
            "objective": objective,
        },
        "version": XGBOOST,
    });
    format!("{model}\n")
}

fn allowed(name: &str) -> String {
    name.replace('<', "below")
        .replace('[', "(")
        .replace(']', ")")
}

/// A tree, to the leaves of which a number is added.
fn one_tree(
    id: usize,
    (tree, added): (&BoostedTree, f64),
    found: &TreesOutcome,
    places: &[usize],
    features: usize,
) -> Json {
    let count = tree.nodes.len();
    let mut parents = vec![NO_PARENT; count];
    let mut children = [vec![-1; count], vec![-1; count]];
    let (mut indices, mut missing_left) = (vec![0; count], vec![0; count]);
    let (mut conditions, mut gains) = (vec![0f32; count], vec![0f32; count]);
    for (at, node) in tree.nodes.iter().enumerate() {
        let Some(split) = &node.split else {
            // A leaf has its value in the place of the threshold.
            conditions[at] = (node.value + added) as f32;
            continue;
        };
        let below = threshold(split, &found.columns, places);
        for (side, child) in children.iter_mut().zip(below.children) {
            side[at] = child as i64;
            parents[child] = at as i64;
        }
        indices[at] = below.feature;
        conditions[at] = below.threshold;
        missing_left[at] = u8::from(below.missing_below);
        gains[at] = split.gain as f32;
    }
    let single = |of: fn(&TreeNode) -> f64| {
        let nodes = tree.nodes.iter();
        nodes.map(|node| of(node) as f32).collect::<Vec<f32>>()
    };
    let [left, right] = children;
    json!({
        "base_weights": single(|node| node.value),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": missing_left,
        "id": id,
        "left_children": left,
        "loss_changes": gains,
        "parents": parents,
        "right_children": right,
        "split_conditions": conditions,
        "split_indices": indices,
        "split_type": vec![0; count],
        "sum_hessian": single(|node| node.hessian),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": features.to_string(),
            "num_nodes": count.to_string(),
            "size_leaf_vector": "1",
        },
    })
}
