//! Findings in the models of FedCG besides their predictions: λ and `A`, for reports.

use std::collections::BTreeMap;

use super::shape::{GRAPH, graph_of};
use crate::strategy::{Kept, State};

/// λ of every layer with branches, by `fedcg.lambda` and the name of the layer, and the rows of every `A`
/// one after the other, by `fedcg.adjacency`, and the name of the layer where each has its own. Empty for
/// the models of other strategies.
pub fn findings(state: &State) -> BTreeMap<String, Kept> {
    let mut found = BTreeMap::new();
    let Some(model) = state.models.first() else {
        return found;
    };
    let of = |what: &str, layer: &str| match layer {
        "" => format!("fedcg.{what}"),
        layer => format!("fedcg.{what}.{layer}"),
    };
    for tensor in model.layout().tensors() {
        let values = model.tensor(&tensor.name).unwrap_or_default();
        let mut values = values.iter().map(|&value| f64::from(value));
        if let Some(layer) = graph_of(&tensor.name) {
            found.insert(of("adjacency", layer), Kept::Numbers(values.collect()));
        } else if let Some(layer) = lambda_of(&tensor.name)
            && let Some(lambda) = values.next_back()
        {
            found.insert(of("lambda", layer), Kept::Number(lambda));
        }
    }
    found
}

/// The layer whose λ a tensor of this name is.
fn lambda_of(name: &str) -> Option<&str> {
    let own = name.strip_prefix(GRAPH)?.strip_prefix('.')?;
    match own {
        "lambda" => Some(""),
        own => own.strip_suffix(".lambda"),
    }
}
