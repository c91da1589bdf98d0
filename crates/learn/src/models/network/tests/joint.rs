//! Steps on rows with models of their own that are normalised together.

use super::*;
use crate::models::Model;
use methods::learner::RowsOfModel;
use task::model::ConvConfig;
use task::model::LayerConfig;

/// A convolution and a dense layer, each with batch normalisation.
fn normalised() -> NetworkModel {
    let conv = LayerConfig::Conv(ConvConfig {
        channels: 3,
        kernel: 3,
        stride: 1,
        padding: None,
        bias: true,
    });
    let config = listed(
        vec![
            conv,
            LayerConfig::Norm,
            LayerConfig::Relu,
            LayerConfig::Dense(4),
            LayerConfig::Norm,
            LayerConfig::Relu,
        ],
        Some([1, 5, 5]),
    );
    network(&config, LastLayer::Dense(2))
}

fn start(network: &NetworkModel, seed: u64) -> Params {
    params(network, seed)
}

fn step(network: &NetworkModel, parts: &[(&Params, &[u32])], data: &Rows) -> (Vec<Params>, f64) {
    let parts: Vec<RowsOfModel<'_>> = parts
        .iter()
        .map(|&(model, rows)| RowsOfModel { model, rows })
        .collect();
    let (models, loss) = network
        .joint_step(&parts, data, Loss::Softmax, 1.0, 1)
        .unwrap();
    let layout = parts[0].model.layout();
    let models = models.into_iter().map(|named| {
        Params::build(layout, |into| {
            for (name, values) in named {
                into[layout.range(layout.position(&name).unwrap())].copy_from_slice(&values);
            }
        })
    });
    (models.collect(), loss)
}

fn data() -> Rows {
    rows(12, 25, 1, |draw| f64::from(draw > 0.5))
}

#[test]
fn parts_with_one_model_take_the_step_of_all_rows_together() {
    on_every_device(&normalised()).iter().for_each(parts_of_one);
}

fn parts_of_one(network: &NetworkModel) {
    let (model, data) = (start(network, 3), data());
    let (loss, whole) = trained(network, &model, &data, Loss::Softmax, &PLAIN, 1, 1);
    let (first, second): (Vec<u32>, Vec<u32>) = ((0..5).collect(), (5..12).collect());
    let (parts, joint) = step(network, &[(&model, &first), (&model, &second)], &data);
    assert!((loss - joint).abs() < 1e-6, "{loss} {joint}");
    for (index, tensor) in model.layout().tensors().iter().enumerate() {
        for at in model.layout().range(index) {
            let of = |params: &Params| f64::from(params.values()[at]);
            let moved = of(&whole) - of(&model);
            let moves = match tensor.role {
                // Running statistics are those of all rows.
                Role::Buffer => {
                    assert_eq!(of(&parts[0]), of(&parts[1]));
                    of(&parts[0]) - of(&model)
                }
                Role::Weight | Role::Bias => parts.iter().map(|part| of(part) - of(&model)).sum(),
            };
            assert!(
                (moved - moves).abs() < 1e-5,
                "{} {moved} {moves}",
                tensor.name
            );
        }
    }
}

#[test]
fn a_joint_step_goes_against_the_gradient_of_the_joint_loss() {
    on_every_device(&normalised()).iter().for_each(joint_step);
}

fn joint_step(network: &NetworkModel) {
    let (one, other, data) = (start(network, 3), start(network, 4), data());
    let (first, second): (Vec<u32>, Vec<u32>) = ((0..5).collect(), (5..12).collect());
    let joint =
        |one: &Params, other: &Params| step(network, &[(one, &first), (other, &second)], &data);
    let (stepped, _) = joint(&one, &other);
    let mut moved = 0;
    for (index, tensor) in one.layout().tensors().iter().enumerate() {
        if tensor.role == Role::Buffer {
            continue;
        }
        let range = one.layout().range(index);
        for at in range.clone().step_by(range.len().div_ceil(4)) {
            let h = 1.0 / 256.0;
            let off = |by: f32| {
                let one = Params::build(one.layout(), |into| {
                    into.copy_from_slice(one.values());
                    into[at] += by;
                });
                joint(&one, &other).1
            };
            let slope = (off(h) - off(-h)) / (2.0 * f64::from(h));
            let went = f64::from(one.values()[at]) - f64::from(stepped[0].values()[at]);
            let close = (slope - went).abs() < 2e-3 + 0.05 * went.abs();
            assert!(close, "{} {at}: {slope} {went}", tensor.name);
            moved += usize::from(went.abs() > 1e-2);
        }
    }
    assert!(moved > 5, "{moved} values moved");
}

#[test]
fn rows_that_do_not_influence_each_other_need_no_joint_step() {
    let config = listed(
        vec![LayerConfig::Dense(4), LayerConfig::Relu],
        Some([1, 5, 5]),
    );
    let network = network(&config, LastLayer::Dense(2));
    let (model, data) = (start(&network, 3), data());
    let parts = [RowsOfModel {
        model: &model,
        rows: &[0, 1],
    }];
    assert!(
        network
            .joint_step(&parts, &data, Loss::Softmax, 1.0, 1)
            .is_none()
    );
}
