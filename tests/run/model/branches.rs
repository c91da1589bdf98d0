//! Models whose strategy trains something else than the agreed network: they come out as that network.

use std::fs;

use serde_json::Value;

use super::hospitals::{OUTCOME, config, scenario};
use super::*;

/// A convolution over the six numbers of a row, as if they were the pixels of a picture.
const CONVOLUTION: &str = "{ network = { layers = [{ conv = { channels = 3, kernel = 3 } }, 'relu', { dense = 5 }, 'relu'], image = [1, 2, 3] } }";

/// Rows that all get a prediction.
const ROWS: &str =
    "age,pulse,weight,ward\n34,70,80,general\n81,110,62,intensive\n55,,70,\n47,61,99,children\n";

/// The tensors of a safetensors file, in the order of their names: name and shape.
fn tensors(file: &str) -> Vec<(String, Vec<u64>)> {
    let bytes = fs::read(file).unwrap();
    let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let tensors = header.as_object().unwrap().iter();
    let tensors = tensors.filter(|(name, _)| *name != "__metadata__");
    let shape = |of: &Value| {
        of["shape"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one.as_u64().unwrap())
            .collect()
    };
    let mut tensors: Vec<_> = tensors
        .map(|(name, of)| (name.clone(), shape(of)))
        .collect();
    tensors.sort();
    tensors
}

/// Runs a federation, exports what every hospital serves and its coalition's model, and predicts with the
/// files alone, as the node does. The predictions of north, south and east with their own coalition's model,
/// and the tensors of that model.
fn taken_out(
    name: &str,
    model: &str,
    strategy: &str,
    table: &str,
) -> (Vec<String>, Vec<(String, Vec<u64>)>) {
    let hospitals = TestHospitals::new(
        name,
        &scenario(
            model,
            strategy,
            OUTCOME,
            &format!("metric = 'roc-auc'\nstandardise = 'federation'\n{table}"),
        ),
    );
    // The old are in the north, so that its rows can be told from others.
    for (silo, name) in hospitals::NAMES.iter().enumerate() {
        let rows = hospitals::rows(silo);
        let old = |row: &&str| row.split(',').nth(1).unwrap().parse().unwrap_or(0) >= 55;
        let (head, rows) = rows.split_once('\n').unwrap();
        let own: Vec<&str> = rows.lines().filter(|row| old(row) == (silo == 0)).collect();
        let file = hospitals.path(&format!("{name}/rows.csv"));
        fs::write(file, format!("{head}\n{}\n", own.join("\n"))).unwrap();
    }
    TestHospitals::run(&hospitals.configs);
    let rows = hospitals.path("rows.csv");
    fs::write(&rows, ROWS).unwrap();
    let mut found = Vec::new();
    let mut shapes = Vec::new();
    for (silo, path) in hospitals::NAMES.iter().zip(&hospitals.configs) {
        for which in ["coalition", "served"] {
            let file = |end: &str| hospitals.path(&format!("{silo}-{which}.{end}"));
            let (model, onnx) = (file("safetensors"), file("graph.onnx"));
            for out in [&model, &onnx] {
                good(&[
                    "model",
                    "export",
                    "--config",
                    config(path),
                    "--which",
                    which,
                    "--out",
                    out,
                ]);
            }
            let (by_file, by_node) = (file("by-file.csv"), file("by-node.csv"));
            good(&[
                "model", "predict", &rows, "--model", &model, "--out", &by_file,
            ]);
            good(&[
                "model",
                "predict",
                &rows,
                "--config",
                config(path),
                "--which",
                which,
                "--out",
                &by_node,
            ]);
            let predicted = fs::read_to_string(&by_file).unwrap();
            assert_eq!(predicted, fs::read_to_string(&by_node).unwrap());
            assert_eq!(predicted.lines().count(), 5);
            if which == "coalition" {
                found.push(predicted);
                shapes.push(tensors(&model));
            }
        }
    }
    assert!(shapes.iter().all(|one| *one == shapes[0]), "{shapes:?}");
    if model.contains("mlp") {
        let north = hospitals.path("north-served.safetensors");
        fs::copy(north, hospitals.path("m.safetensors")).unwrap();
        python::check(&hospitals, "outcome");
    }
    (found, shapes.swap_remove(0))
}

/// Returns whether two of these are the same but for rounding; the third row has a gap, which every hospital fills with
/// its own median.
fn same(one: &str, other: &str) -> bool {
    let numbers = |csv: &str| -> Vec<f64> {
        let lines = csv.lines().skip(1).enumerate();
        let lines = lines.filter(|(row, _)| *row != 2);
        lines
            .map(|(_, line)| line.split(',').nth(1).unwrap().parse().unwrap())
            .collect()
    };
    let (one, other) = (numbers(one), numbers(other));
    assert_eq!((one.len(), other.len()), (3, 3));
    one.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-5)
}

#[test]
fn convolution_branches_become_one_network_for_every_silo() {
    let (of_each, shapes) = taken_out(
        "model-branches",
        CONVOLUTION,
        "name = 'fedcg'\ndomains = 3\ngiven = true\nstudent-rate = 1.0",
        "domains = [0, 1, 1]",
    );
    let (plain, agreed) = taken_out("model-plain", CONVOLUTION, "name = 'fedavg'", "");
    // The network that was agreed on, not its branches.
    assert_eq!(shapes, agreed);
    assert!(
        agreed.iter().any(|(_, shape)| shape.len() == 4),
        "{agreed:?}"
    );
    // Of FedAvg all have one model; of FedCG every hospital has the domains in the shares of its own rows.
    for (at, one) in of_each.iter().enumerate() {
        assert!(
            of_each[..at].iter().all(|other| !same(one, other)),
            "{of_each:?}"
        );
    }
    assert!(plain.iter().all(|one| same(one, &plain[0])), "{plain:?}");
}

#[test]
fn a_stochastic_model_comes_out_as_a_network_without_draws() {
    let network = "{ mlp = { hidden = [6] } }";
    let (of_each, shapes) = taken_out("model-stochastic", network, "name = 'fedsr'", "");
    let (plain, agreed) = taken_out("model-certain", network, "name = 'fedavg'", "");
    assert_eq!(shapes, agreed);
    // All have one model, though every silo's own rows shift the units of its hidden layer.
    assert!(
        of_each.iter().all(|one| same(one, &of_each[0])),
        "{of_each:?}"
    );
    assert!(!same(&of_each[0], &plain[0]));
}
