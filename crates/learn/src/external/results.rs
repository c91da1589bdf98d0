//! Files of numbers that a program writes and that are no model: outputs of a part, and of a trial.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::programs::{Trouble, read_bytes};
use task::external::{OUTPUTS, Trial};

/// Most bytes of outputs for one row, 8 for each number.
const ROW: usize = 1 << 17;

fn wrong(what: impl std::fmt::Display) -> Trouble {
    Trouble::Broken(format!("the outputs that it gave are refused: {what}"))
}

/// The numbers of a tensor, and its shape.
fn numbers(found: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f64>), Trouble> {
    let tensor = found
        .tensor(name)
        .map_err(|_| wrong(format!("there is no tensor {name:?}")))?;
    let values = match tensor.dtype() {
        Dtype::F32 => {
            let (each, _) = tensor.data().as_chunks();
            each.iter()
                .map(|&bytes| f32::from_le_bytes(bytes).into())
                .collect()
        }
        Dtype::F64 => {
            let (each, _) = tensor.data().as_chunks();
            each.iter()
                .map(|&bytes| f64::from_le_bytes(bytes))
                .collect()
        }
        other => {
            return Err(wrong(format!(
                "{name:?} must be F32 or F64, it is {other:?}"
            )));
        }
    };
    Ok((tensor.shape().to_vec(), values))
}

fn parsed(bytes: &[u8]) -> Result<SafeTensors<'_>, Trouble> {
    SafeTensors::deserialize(bytes).map_err(|error| wrong(format!("no safetensors file: {error}")))
}

/// The tensors `outputs` (rows × k) and `targets` (rows × t) of a file.
pub(super) fn outputs_in(path: &Path, rows: usize) -> Result<(Vec<f64>, Vec<f64>), Trouble> {
    let bytes = read_bytes(path, rows.saturating_mul(ROW))?;
    let found = parsed(&bytes)?;
    let values = |name: &str| {
        let (shape, values) = numbers(&found, name)?;
        let fits = shape.first() == Some(&rows) && shape.iter().product::<usize>() >= rows;
        if fits {
            Ok(values)
        } else {
            Err(wrong(format!(
                "{name:?} must have {rows} rows, it is {shape:?}"
            )))
        }
    };
    let (outputs, targets) = (values("outputs")?, values("targets")?);
    if targets.iter().any(|target| !target.is_finite()) {
        return Err(wrong("a target is not finite"));
    }
    Ok((outputs, targets))
}

/// The tensors `inputs` (the dimensions of a batch) and `outputs` of a file.
pub(super) fn trial_in(path: &Path) -> Result<Trial, Trouble> {
    let bytes = read_bytes(path, ROW)?;
    let found = parsed(&bytes)?;
    let (inputs, mut outputs) = (numbers(&found, "inputs")?.1, numbers(&found, "outputs")?.1);
    outputs.truncate(OUTPUTS);
    let outputs = outputs.into_iter().map(|value| value as f32).collect();
    let dimension = |&size: &f64| (size.fract() == 0.0 && size >= 0.0).then_some(size as usize);
    let inputs: Option<Vec<usize>> = inputs.iter().map(dimension).collect();
    let inputs = inputs.ok_or_else(|| wrong("\"inputs\" must hold whole numbers"))?;
    Ok(Trial { inputs, outputs })
}
