//! A model as an ONNX graph that takes encoded rows and gives predictions.

use methods::Params;

use super::card::{Card, Output};
use super::error::ExportError;
use super::predictor::Predictor;
use crate::models::Loss;
use crate::onnx::{Attribute, OnnxGraph, Value};

/// A model and its card as an ONNX file of opset 17.
///
/// The input `features` is rows × columns in double precision, in the order of the card's columns:
/// categories as columns of 0 and 1, numbers in their own units, NaN where a value is missing. The
/// graph fills and scales. The output is `prediction`, rows × numbers in the target's unit in double
/// precision; or `risk`, rows × 1, for a time to an event; or
/// `probabilities`, rows × classes, and `class`, the position of the largest for each row; or for a
/// mask `probabilities`, rows × pixels. The metadata have the card as JSON under `rota.card`.
///
/// # Errors
/// [`ExportError`]: tensors other than those of the card, a model of more than 2 GiB.
pub fn onnx(card: &Card, model: &Params) -> Result<Vec<u8>, ExportError> {
    let predictor = Predictor::new(card.clone(), model)?;
    let (family, loss) = predictor.family();
    let mut graph = OnnxGraph::new(&card.origin.federation);
    let names: Vec<&str> = card
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    let doc = format!("{}; NaN where a value is missing", names.join(", "));
    let input = graph.input("features", names.len(), &doc);
    let features = prepared(&mut graph, card, &input);
    let outputs = family.graph(&mut graph, predictor.params(), &features);
    match (&card.output, loss) {
        (
            Output::Numbers {
                names,
                unit,
                deviation,
                mean,
            },
            _,
        ) => {
            let mut value = graph.double(&outputs);
            if (*deviation, *mean) != (1.0, 0.0) {
                let unit = graph.doubles("target.deviation", &[], &[*deviation]);
                let mean = graph.doubles("target.mean", &[], &[*mean]);
                value = graph.node("Mul", &[&value, &unit], &[]);
                value = graph.node("Add", &[&value, &mean], &[]);
            }
            let doc = format!("{}, in {unit}", names.join(", "));
            graph.double_output("prediction", &value, names.len(), &doc);
        }
        (Output::Classes { classes, .. }, loss) => {
            let probabilities = match loss {
                Loss::Logistic => {
                    let opposite = graph.node("Neg", &[&outputs], &[]);
                    let first = graph.node("Sigmoid", &[&opposite], &[]);
                    let second = graph.node("Sigmoid", &[&outputs], &[]);
                    graph.node("Concat", &[&first, &second], &[("axis", Attribute::Int(1))])
                }
                _ => graph.node("Softmax", &[&outputs], &[("axis", Attribute::Int(1))]),
            };
            let attributes = [("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(0))];
            let class = graph.node("ArgMax", &[&probabilities], &attributes);
            let doc = classes.join(", ");
            graph.output("probabilities", &probabilities, classes.len(), &doc);
            graph.index_output(
                "class",
                &class,
                "position of the largest probability, from 0",
            );
        }
        (Output::Survival { event, .. }, _) => {
            let value = graph.double(&outputs);
            let doc = format!("risk score for {event}: logarithm of the relative hazard");
            graph.double_output("risk", &value, 1, &doc);
        }
        (Output::Mask { names }, _) => {
            let value = graph.node("Sigmoid", &[&outputs], &[]);
            graph.output("probabilities", &value, names.len(), "one for each pixel");
        }
    }
    let known = "a card is texts, numbers and lists";
    let properties = [
        ("rota.card", serde_json::to_string(card).expect(known)),
        ("rota.columns", serde_json::to_string(&names).expect(known)),
        ("rota.federation-id", card.origin.id.clone()),
        ("rota.hash", card.hash.clone()),
    ];
    let bytes = graph.encode(&card.origin.about, &properties);
    bytes.ok_or(ExportError::TooLarge)
}

/// The features as the model takes them, scaled in double precision, as in the federation.
fn prepared(graph: &mut OnnxGraph, card: &Card, input: &Value) -> Value {
    let width = card.columns.len();
    let all = |of: fn(&super::CardColumn) -> f64| card.columns.iter().map(of).collect::<Vec<f64>>();
    let fills = graph.doubles("features.fill", &[1, width], &all(|column| column.fill));
    let missing = graph.node("IsNaN", &[input], &[]);
    let mut value = graph.node("Where", &[&missing, &fills, input], &[]);
    let (means, deviations) = (all(|column| column.mean), all(|column| column.deviation));
    if means.iter().any(|mean| *mean != 0.0) || deviations.iter().any(|one| *one != 1.0) {
        let means = graph.doubles("features.mean", &[1, width], &means);
        let deviations = graph.doubles("features.deviation", &[1, width], &deviations);
        value = graph.node("Sub", &[&value, &means], &[]);
        value = graph.node("Div", &[&value, &deviations], &[]);
    }
    graph.single(&value)
}
