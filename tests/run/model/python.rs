//! Exported models in Python, where it has what they need: the snippet of the book with safetensors
//! and NumPy, and onnxruntime.

use std::fs;
use std::process::Command;

use super::hospitals::config;
use super::*;

/// The Python to ask: `ROTA_PYTHON`, or python3.
fn python(modules: &str) -> Option<Command> {
    let program = std::env::var_os("ROTA_PYTHON").unwrap_or_else(|| "python3".into());
    let mut found = Command::new(&program);
    let found = found.args(["-c", &format!("import {modules}")]).output();
    if found.is_ok_and(|found| found.status.success()) {
        return Some(Command::new(program));
    }
    crate::skipped::skipped(format!(
        "needs a Python with {modules} (ROTA_PYTHON names another than python3)"
    ));
    None
}

/// The Python snippet of the book.
fn snippet() -> String {
    let page = fs::read_to_string("docs/take-the-model-home.md").unwrap();
    let (_, rest) = page.split_once("```python\n").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// Runs a script in a folder; its output as a list of lists of numbers.
fn numbers(mut python: Command, folder: &std::path::Path, script: &str) -> Vec<Vec<f64>> {
    fs::write(folder.join("script.py"), script).unwrap();
    let done = python
        .arg("script.py")
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
    let said = text(&done.stdout);
    serde_json::from_str(said.lines().last().unwrap()).unwrap()
}

/// Compares the numbers that Python computes with those of `rota model predict`. The folder has
/// `m.safetensors`.
pub(crate) fn check(hospitals: &TestHospitals, target: &str) {
    let folder = hospitals.folder.join("python");
    fs::create_dir_all(&folder).unwrap();
    // Rows that all get a prediction.
    let rows = "age,pulse,weight,ward\n34,70,80,general\n81,110,62,intensive\n55,,70,\n47,61,99,children\n";
    fs::write(folder.join("rows.csv"), rows).unwrap();
    fs::copy(
        hospitals.folder.join("m.safetensors"),
        folder.join("m.safetensors"),
    )
    .unwrap();
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let (rows, model, out) = (
        file("rows.csv"),
        file("m.safetensors"),
        file("predictions.csv"),
    );
    good(&["model", "predict", &rows, "--model", &model, "--out", &out]);
    let predictions = fs::read_to_string(&out).unwrap();
    let skipped = usize::from(target == "outcome");
    let expected: Vec<Vec<f64>> = predictions
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let numbers = &cells[skipped..cells.len() - 1];
            numbers.iter().map(|cell| cell.parse().unwrap()).collect()
        })
        .collect();
    assert_eq!(expected.len(), 4);
    let close = |found: &[Vec<f64>]| {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            let apart = (found - expected).abs();
            assert!(apart < 2e-6 * expected.abs().max(1.0), "{found} {expected}");
        }
    };
    let said = "\nprint(json.dumps(predict(rows).tolist()))\n";
    if let Some(python) = python("safetensors, numpy") {
        close(&numbers(python, &folder, &format!("{}{said}", snippet())));
    }
    // The same model as ONNX.
    let north = config(&hospitals.configs[0]);
    let onnx = file("m.onnx");
    let mut export = vec!["model", "export", "--config", north, "--out", &onnx];
    if target == "days" {
        export.extend(["--which", "coalition"]);
    }
    good(&export);
    if let Some(python) = python("safetensors, numpy, onnxruntime") {
        let run = "
import onnxruntime
session = onnxruntime.InferenceSession('m.onnx')
rows = session.run(None, {'features': rows.astype(np.float64)})[0]
print(json.dumps(rows.tolist()))
";
        close(&numbers(python, &folder, &format!("{}{run}", snippet())));
    }
}
