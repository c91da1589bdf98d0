//! ONNX graphs, run by tract (with the feature of that name) and by onnxruntime, give what our own
//! forward pass gives.

#[cfg(feature = "tract")]
use tract_onnx::prelude::*;

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::export::onnx as graph_of;

/// The outputs of an ONNX file for these rows, by tract: the first, and how many there are.
#[cfg(feature = "tract")]
fn run(bytes: &[u8], rows: &[Vec<f64>]) -> Option<(Vec<f64>, usize)> {
    let (count, width) = (rows.len(), rows[0].len());
    let values = rows.concat();
    let input = Tensor::from_shape(&[count, width], &values).unwrap();
    let model = tract_onnx::onnx()
        .model_for_read(&mut &bytes[..])
        .unwrap()
        .with_input_fact(0, f64::fact([count, width]).into())
        .unwrap();
    let model = model.into_optimized().unwrap().into_runnable().unwrap();
    let outputs = model.run(tvec!(input.into())).unwrap();
    let first = outputs[0].cast_to::<f64>().unwrap();
    let first = first.to_plain_array_view::<f64>().unwrap();
    Some((first.iter().copied().collect(), outputs.len()))
}

#[cfg(not(feature = "tract"))]
fn run(_: &[u8], _: &[Vec<f64>]) -> Option<(Vec<f64>, usize)> {
    None
}

/// The first output of an ONNX file for these rows, by onnxruntime, where a Python (`ROTA_PYTHON`, or
/// python3) has it.
pub(super) fn run_in_python(bytes: &[u8], rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    const SCRIPT: &str = "
session = onnxruntime.InferenceSession(sys.argv[1])
found = session.run(None, {'features': rows.astype(numpy.float64)})[0]
";
    by_python("onnxruntime", "m.onnx", bytes, rows, SCRIPT)
}

/// The predictions of a model of XGBoost for these rows, where a Python has it.
pub(super) fn xgboost_in_python(model: &str, rows: &[Vec<f64>]) -> Option<Vec<f64>> {
    const SCRIPT: &str = "
found = xgboost.Booster(model_file=sys.argv[1]).inplace_predict(rows)
";
    by_python("xgboost", "m.json", model.as_bytes(), rows, SCRIPT)
}

/// The numbers `found` of a script with a package, for the model in `sys.argv[1]` and `rows`.
fn by_python(
    package: &str,
    name: &str,
    bytes: &[u8],
    rows: &[Vec<f64>],
    script: &str,
) -> Option<Vec<f64>> {
    let program = std::env::var_os("ROTA_PYTHON").unwrap_or_else(|| "python3".into());
    let mut python = std::process::Command::new(program);
    let has = std::process::Command::new(python.get_program())
        .args(["-c", &format!("import numpy, {package}")])
        .output()
        .is_ok_and(|found| found.status.success());
    if !has {
        crate::skipped::skipped(&format!(
            "in part: needs a Python with numpy and {package} (ROTA_PYTHON)"
        ));
        return None;
    }
    // Tests run beside each other.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    let folder = folder(&format!("{package}-{call}"));
    let (model, numbers) = (folder.join(name), folder.join("rows.json"));
    std::fs::write(&model, bytes).unwrap();
    // NaN becomes null.
    std::fs::write(&numbers, serde_json::to_vec(rows).unwrap()).unwrap();
    let script = format!(
        "import json, sys, numpy, {package}
rows = json.load(open(sys.argv[2]))
rows = numpy.array([[numpy.nan if cell is None else cell for cell in row] for row in rows])
{script}
print(json.dumps(found.ravel().tolist()))
"
    );
    let done = python
        .args(["-c", &script])
        .arg(model)
        .arg(numbers)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

/// The largest difference between our predictions and those of the runtimes, relative to the largest
/// number; `python` asks onnxruntime, too.
fn difference(task: &TableTask, seed: u64, count: usize, python: bool) -> f64 {
    let (card, model) = card(task, seed);
    let rows = rows(card.columns.len(), count, seed);
    let ours = Predictor::new(card.clone(), &model).unwrap().predict(&rows);
    let bytes = graph_of(&card, &model).unwrap();
    let theirs = run(&bytes, &rows).map(|(theirs, outputs)| {
        let classes = matches!(card.output, Output::Classes { .. });
        assert_eq!(outputs, if classes { 2 } else { 1 });
        theirs
    });
    let ours: Vec<f64> = ours.concat();
    assert!(ours.iter().all(|value| value.is_finite()));
    let most = ours
        .iter()
        .fold(1e-3, |most: f64, value| most.max(value.abs()));
    let python = python.then(|| run_in_python(&bytes, &rows)).flatten();
    let all = [theirs, python].into_iter().flatten();
    let apart = all.map(|theirs| {
        assert_eq!(ours.len(), theirs.len());
        let apart = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs());
        apart.fold(0.0, f64::max) / most
    });
    apart.fold(0.0, f64::max)
}

#[test]
fn a_graph_takes_numbers_far_from_zero() {
    for standardise in ["federation", "silo"] {
        let (card, model) = predictions::minute(standardise);
        let rows: Vec<Vec<f64>> = [1.0, 30.0, 59.0]
            .map(|second| vec![1.7e12 + 1e3 * second])
            .to_vec();
        let ours = Predictor::new(card.clone(), &model).unwrap().predict(&rows);
        let bytes = graph_of(&card, &model).unwrap();
        let tract = run(&bytes, &rows).map(|(theirs, _)| theirs);
        for theirs in [tract, run_in_python(&bytes, &rows)].into_iter().flatten() {
            for (ours, theirs) in ours.concat().iter().zip(theirs) {
                assert!((ours - theirs).abs() < 1e-4, "{ours} {theirs}");
            }
        }
    }
}

#[test]
fn a_graph_takes_the_parts_of_dates_as_predictions_do() {
    const STAYS: &str = r#"
target = { name = "days", unit = "d" }
[[feature]]
name = "admitted"
type = "date"
since = "2020-01-01"
parts = ["weekday", "days", "day-of-year", "month", "year"]
missing = "mean"
[[feature]]
name = "age"
"#;
    let task = task(STAYS, "{ linear = { loss = \"squared\" } }", "silo");
    let (card, model) = card(&task, 11);
    let bytes = graph_of(&card, &model).unwrap();
    let names: Vec<&str> = card.columns.iter().map(|own| own.name.as_str()).collect();
    let written = names.join(", ");
    assert!(
        bytes
            .windows(written.len())
            .any(|found| found == written.as_bytes())
    );
    let predictor = Predictor::new(card.clone(), &model).unwrap();
    let file = folder("dates").join("rows.csv");
    std::fs::write(&file, "admitted,age\n2024-02-29,60\n,50\n").unwrap();
    let (format, local) = <(crate::data::Format, crate::schema::LocalNames)>::default();
    let rows = predictor.read(&file, &format, &local, &[], BadRows::Refuse);
    let rows: Vec<Vec<f64>> = rows.unwrap().numbers().map(<[f64]>::to_vec).collect();
    let at = |name: &str| names.iter().position(|own| *own == name).unwrap();
    for (name, expected) in [
        ("admitted", 1520.0),
        ("admitted year", 2024.0),
        ("admitted month=February", 1.0),
        ("admitted weekday=Thursday", 1.0),
        ("admitted weekday=Friday", 0.0),
    ] {
        assert_eq!(rows[0][at(name)], expected, "{name}");
        assert!(rows[1][at(name)].is_nan(), "{name}");
    }
    let ours = predictor.predict(&rows).concat();
    let tract = run(&bytes, &rows).map(|(theirs, _)| theirs);
    for theirs in [tract, run_in_python(&bytes, &rows)].into_iter().flatten() {
        for (ours, theirs) in ours.iter().zip(theirs) {
            assert!((ours - theirs).abs() < 2e-6 * ours.abs().max(1.0));
        }
    }
}

/// Says so where tract runs no graph.
fn without_tract() {
    if cfg!(not(feature = "tract")) {
        crate::skipped::skipped(
            "in part: tract runs no graph without `--features tract` (`just onnx`)",
        );
    }
}

#[test]
fn graphs_of_tables_equal_the_forward_pass() {
    without_tract();
    let number = CLINIC.replace(
        "{ name = \"outcome\", classes = [\"home\", \"died\"] }",
        "{ name = \"days\", unit = \"days\" }",
    );
    let several = CLINIC.replace(
        "{ name = \"outcome\", classes = [\"home\", \"died\"] }",
        "{ name = [\"first\", \"second\", \"third\"], unit = \"days\" }",
    );
    let three = CLINIC.replace("\"died\"]", "\"died\", \"moved\"]");
    let times = CLINIC.replace(
        "{ name = \"outcome\", classes = [\"home\", \"died\"] }",
        "{ event = \"died\", time = \"days\" }",
    );
    let layers =
        "{ network = { layers = [{ dense = 8 }, \"norm\", \"relu\", { dropout = 0.5 }] } }";
    let cases = [
        (number.as_str(), "{ linear = { loss = \"absolute\" } }"),
        (&number, "{ mlp = { hidden = [7, 5] } }"),
        (&number, layers),
        (&several, "{ mlp = { hidden = [6] } }"),
        (CLINIC, "\"logistic\""),
        (CLINIC, "{ mlp = { hidden = [6] } }"),
        (CLINIC, "{ mlp = { hidden = [] } }"),
        (&three, "{ mlp = { hidden = [6] } }"),
        (&three, layers),
        (&times, "\"cox\""),
        (&times, "{ mlp = { hidden = [6] } }"),
    ];
    for (schema, model) in cases {
        for standardise in ["silo", "federation", "none"] {
            let apart = difference(&task(schema, model, standardise), 5, 9, false);
            assert!(apart < 2e-6, "{model}, {standardise}: {apart}");
        }
    }
}

/// The schema of images with this number of values, to be sorted into classes, or with a mask.
fn images(numbers: usize, target: &str) -> String {
    let names: Vec<String> = (0..numbers).map(|at| format!("\"p{at}\"")).collect();
    let names = names.join(", ");
    format!("{target}\n[[feature]]\nname = [{names}]\nmissing = \"mean\"\n")
}

#[test]
fn graphs_of_networks_equal_the_forward_pass() {
    without_tract();
    let digits = "target = { name = \"digit\", classes = [\"0\", \"1\", \"2\", \"3\"] }";
    let mask: Vec<String> = (0..16 * 16).map(|at| format!("\"m{at}\"")).collect();
    let mask = format!("target = {{ name = [{}], mask = true }}", mask.join(", "));
    let network = |layers: &str, image: [usize; 3], more: &str| {
        format!("{{ network = {{ layers = {layers}, image = {image:?}{more} }} }}")
    };
    let groups = ", norm = { group = 2 }, width = 0.125";
    let cases = [
        ("\"fedavg-cnn\"", [3, 32, 32], ", width = 0.1", digits),
        ("\"leaf-femnist\"", [1, 28, 28], ", width = 0.1", digits),
        (
            "\"leaf-femnist-padded\"",
            [1, 28, 28],
            ", width = 0.1",
            digits,
        ),
        ("\"leaf-celeba\"", [3, 84, 84], ", width = 0.2", digits),
        (
            "\"leaf-celeba-padded\"",
            [3, 84, 84],
            ", width = 0.2",
            digits,
        ),
        ("\"hcct-digits\"", [3, 28, 28], ", width = 0.05", digits),
        ("\"hcct-cifar\"", [3, 32, 32], ", width = 0.1", digits),
        ("\"resnet18\"", [3, 64, 64], ", width = 0.0625", digits),
        ("\"resnet18-small\"", [3, 32, 32], groups, digits),
        (
            "\"resnet50-small\"",
            [3, 16, 16],
            ", width = 0.0625",
            digits,
        ),
        ("\"unet\"", [1, 16, 16], ", width = 0.0625", &*mask),
        (
            "[{ conv = { channels = 4, kernel = 3, stride = 2 } }, \"relu\", { max-pool = { size = 3, \
             stride = 2, padding = 1, ceil = true } }, { up-conv = 3 }, \"average-pool\"]",
            [2, 15, 11],
            "",
            digits,
        ),
    ];
    for (layers, image, more, target) in cases {
        let schema = images(image.iter().product(), target);
        let task = task(&schema, &network(layers, image, more), "silo");
        let apart = difference(&task, 3, 3, true);
        assert!(apart < 2e-5, "{layers}: {apart}");
    }
}
