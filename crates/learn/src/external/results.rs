//! Files of numbers that a program writes and that are no model: outputs of a part, and of a trial.

use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::programs::{Trouble, read_bytes};
use task::external::{OUTPUTS, Trial};

/// Most bytes of outputs for one row, 4 for each number.
const ROW: usize = 1 << 16;

fn wrong(what: impl std::fmt::Display) -> Trouble {
    Trouble::Broken(format!("the outputs that it gave are refused: {what}"))
}

/// The numbers of a tensor, and its shape.
fn numbers(found: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f32>), Trouble> {
    let tensor = found
        .tensor(name)
        .map_err(|_| wrong(format!("there is no tensor {name:?}")))?;
    if tensor.dtype() != Dtype::F32 {
        return Err(wrong(format!(
            "{name:?} must be F32, it is {:?}",
            tensor.dtype()
        )));
    }
    let four = |bytes: &[u8]| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let values = tensor.data().chunks_exact(4).map(four).collect();
    Ok((tensor.shape().to_vec(), values))
}

fn parsed(bytes: &[u8]) -> Result<SafeTensors<'_>, Trouble> {
    SafeTensors::deserialize(bytes).map_err(|error| wrong(format!("no safetensors file: {error}")))
}

/// The tensors `outputs` (rows × k) and `targets` (rows × t) of a file.
pub(super) fn outputs_in(path: &Path, rows: usize) -> Result<(Vec<f32>, Vec<f32>), Trouble> {
    let bytes = read_bytes(path, rows.saturating_mul(ROW))?;
    let found = parsed(&bytes)?;
    let values = |name: &str| {
        let (shape, values) = numbers(&found, name)?;
        let fits = shape.first() == Some(&rows) && shape.iter().product::<usize>() >= rows;
        if fits {
            Ok(values)
        } else {
            Err(wrong(format!(
                "{name:?} must be F32 with {rows} rows, it is F32 {shape:?}"
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
    let dimension = |&size: &f32| (size.fract() == 0.0 && size >= 0.0).then_some(size as usize);
    let inputs: Option<Vec<usize>> = inputs.iter().map(dimension).collect();
    let inputs = inputs.ok_or_else(|| wrong("\"inputs\" must hold whole numbers"))?;
    Ok(Trial { inputs, outputs })
}
