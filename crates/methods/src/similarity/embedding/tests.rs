#![allow(clippy::unwrap_used)]

use std::num::NonZeroU32;
use std::sync::Arc;

use super::*;
use crate::TensorSpec;
use crate::similarity::{CompareError, gram};

/// Eleven layers and the statistics of a normalisation; every value tells where it is from.
fn layout() -> Arc<Layout> {
    let mut tensors: Vec<_> = (0..11)
        .flat_map(|layer| {
            [
                TensorSpec::new(format!("layer{layer}.weight"), [2, 1], Role::Weight),
                TensorSpec::new(format!("layer{layer}.bias"), [1], Role::Bias),
            ]
        })
        .collect();
    tensors.push(TensorSpec::new("layer1.mean", [1], Role::Buffer));
    tensors.push(TensorSpec::new("count", [1], Role::Buffer));
    Layout::by_depth(tensors).unwrap()
}

/// Tensor `name` holds `10·N` and so on for its layer `N`, plus 1 for a bias; buffers −1.
fn model(layout: &Arc<Layout>) -> Params {
    Params::build(layout, |values| {
        for (index, tensor) in layout.tensors().iter().enumerate() {
            let number = tensor
                .name
                .split('.')
                .next()
                .unwrap()
                .trim_start_matches("layer");
            let value = match tensor.role {
                Role::Weight => 10.0 * number.parse::<f32>().unwrap(),
                Role::Bias => 10.0 * number.parse::<f32>().unwrap() + 1.0,
                Role::Buffer => -1.0,
            };
            values[layout.range(index)].fill(value);
        }
    })
}

fn columns(rows: &Vectors<'_>, row: usize) -> Vec<f64> {
    let mut values = Vec::new();
    rows.read_f64(row, 0..rows.columns(), &mut values);
    values
}

fn selected(part: Part) -> Result<Vec<f64>, EmbeddingError> {
    let layout = layout();
    let embedding = Embedding {
        part,
        ..Embedding::default()
    };
    Ok(columns(&embedding.rows(&[&model(&layout)], &[])?, 0))
}

fn named(names: &[&str]) -> Part {
    Part::Named(names.iter().map(ToString::to_string).collect())
}

#[test]
fn buffers_are_never_compared() {
    let all = selected(Part::All).unwrap();
    assert_eq!(all.len(), 33);
    assert!(all.iter().all(|&value| value >= 0.0));
}

#[test]
fn last_layers_are_the_last_in_depth() {
    let tensors = ["features", "classifier"]
        .map(|layer| TensorSpec::new(format!("{layer}.weight"), [1], Role::Weight));
    let embedding = Embedding {
        part: Part::Last(1),
        ..Embedding::default()
    };
    // In the file: the classifier, then the features.
    let known = Layout::by_depth(tensors.to_vec()).unwrap();
    let model = Params::from_values(&known, &[5.0, 1.0]);
    assert_eq!(columns(&embedding.rows(&[&model], &[]).unwrap(), 0), [5.0]);
    let unknown = Layout::new(tensors.to_vec()).unwrap();
    let model = Params::from_values(&unknown, &[5.0, 1.0]);
    let refused = embedding.rows(&[&model], &[]).unwrap_err().to_string();
    assert!(refused.contains("name them"), "{refused}");
    assert!(
        refused.contains("\"classifier\", \"features\""),
        "{refused}"
    );
}

#[test]
fn parts_select_the_named_values() {
    assert_eq!(selected(Part::Last(1)).unwrap(), [101.0, 100.0, 100.0]);
    // In the order of the file, in which layer10 comes before layer9.
    assert_eq!(
        selected(Part::Last(2)).unwrap(),
        [101.0, 100.0, 100.0, 91.0, 90.0, 90.0]
    );
    assert_eq!(selected(Part::Last(11)), selected(Part::All));
    let part = named(&["layer3.bias", "layer1", "layer1.weight"]);
    assert_eq!(selected(part).unwrap(), [11.0, 10.0, 10.0, 31.0]);
}

#[test]
fn errors_about_unknown_parts_list_the_known_ones() {
    for name in ["layer11", "count", "layer1.mean", ""] {
        let error = selected(named(&[name])).unwrap_err();
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
        assert!(
            error.to_string().contains("\"layer9\", \"layer10\""),
            "{error}"
        );
    }
    for asked in [0, 12] {
        let error = selected(Part::Last(asked)).unwrap_err();
        assert!(
            matches!(error, EmbeddingError::Last { layers: 11, .. }),
            "{error}"
        );
    }
    assert_eq!(selected(named(&[])), Err(EmbeddingError::Nothing));
}

#[test]
fn models_that_do_not_compare_are_refused() {
    let layout = layout();
    let (one, other) = (model(&layout), Params::empty());
    let embedding = Embedding::default();
    let none = embedding.rows(&[], &[]).unwrap_err();
    assert_eq!(none, EmbeddingError::Vectors(VectorsError::Empty));
    let error = embedding.rows(&[&one, &other], &[]).unwrap_err();
    assert!(
        matches!(error, EmbeddingError::Layout { model: 1, .. }),
        "{error}"
    );
    assert_eq!(
        embedding.rows(&[&other], &[]).unwrap_err(),
        EmbeddingError::Nothing
    );
    let update = Embedding {
        update: true,
        ..Embedding::default()
    };
    let error = update.rows(&[&one, &one], &[&one]).unwrap_err();
    assert_eq!(
        error,
        EmbeddingError::Starts {
            models: 2,
            starts: 1
        }
    );
    let error = update.rows(&[&one], &[&other]).unwrap_err();
    assert!(
        matches!(error, EmbeddingError::Layout { model: 0, .. }),
        "{error}"
    );
}

#[test]
fn an_update_is_measured_from_its_own_start() {
    let layout = layout();
    let start = model(&layout);
    let moved = |by: f32| {
        let values: Vec<_> = start.values().iter().map(|value| value + by).collect();
        Params::from_values(&layout, &values)
    };
    let (a, b, c) = (moved(1.0), moved(3.0), moved(-2.0));
    let update = Embedding {
        update: true,
        part: Part::Last(3),
        sketch: None,
    };
    let rows = update.rows(&[&a, &b], &[&start, &c]).unwrap();
    assert_eq!(columns(&rows, 0), [1.0; 9]);
    assert_eq!(columns(&rows, 1), [5.0; 9]);
    assert_eq!(gram(&rows).unwrap().values(), [9.0, 45.0, 45.0, 225.0]);
    // Starts are there, but are not asked for.
    let rows = Embedding::default().rows(&[&a], &[&start]).unwrap();
    assert!(columns(&rows, 0).contains(&102.0));
}

#[test]
fn errors_name_the_column_among_the_compared_values() {
    let layout = layout();
    let mut values = model(&layout).values().to_vec();
    let range = layout.range(layout.position("layer10.weight").unwrap());
    values[range.start] = f32::NAN;
    let bad = Params::from_values(&layout, &values);
    let last = Embedding {
        part: Part::Last(1),
        ..Embedding::default()
    };
    let rows = last.rows(&[&bad], &[]).unwrap();
    assert_eq!(
        gram(&rows),
        Err(CompareError::NotFinite { row: 0, column: 1 })
    );
}

#[test]
fn a_sketch_uses_the_chosen_part_only() {
    let layout = layout();
    let model = model(&layout);
    let sketch = Sketch {
        columns: NonZeroU32::new(5).unwrap(),
        seed: 3,
    };
    let last = Embedding {
        part: Part::Last(1),
        ..Embedding::default()
    };
    let plain = last.rows(&[&model], &[]).unwrap();
    let sketched = Embedding {
        sketch: Some(sketch),
        ..last
    }
    .rows(&[&model], &[])
    .unwrap();
    assert_eq!(columns(&sketched, 0), columns(&sketch.of(&plain), 0));
    assert_eq!(sketched.columns(), 5);
}

#[test]
fn embeddings_are_read_from_and_written_to_files() {
    let read = |text: &str| serde_json::from_str::<Embedding>(text);
    assert_eq!(read("{}").unwrap(), Embedding::default());
    let full = r#"{"part":{"last":2},"update":true,"sketch":{"columns":64,"seed":7}}"#;
    let embedding = Embedding {
        part: Part::Last(2),
        update: true,
        sketch: Some(Sketch {
            columns: NonZeroU32::new(64).unwrap(),
            seed: 7,
        }),
    };
    assert_eq!(read(full).unwrap(), embedding);
    assert_eq!(serde_json::to_string(&embedding).unwrap(), full);
    assert_eq!(
        read(r#"{"part":{"named":["fc"]}}"#).unwrap().part,
        named(&["fc"])
    );
    assert!(read(r#"{"sketch":{"columns":0,"seed":7}}"#).is_err());
    assert!(read(r#"{"parts":"all"}"#).is_err());
}
