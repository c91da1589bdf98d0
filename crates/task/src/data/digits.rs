//! A benchmark on the optical digits of UCI. Files give the partition into silos, the start weights
//! and the order of every silo's rows in every round, so that every system does the same work.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::{DataError, Rows};
use crate::file;

/// Widths of the perceptron the start weights are for.
pub const WIDTHS: [usize; 3] = [64, 128, 10];

/// The files of one partition.
pub struct Digits {
    /// Rows of every silo.
    pub silos: Vec<Arc<Rows>>,
    /// Rows that all silos test on.
    pub test: Arc<Rows>,
    /// Layer by layer: weights (out, in), then biases.
    pub start: Vec<f32>,
    /// By silo, then by round: the order of the silo's rows.
    pub orders: Vec<Vec<Vec<u32>>>,
}

#[derive(Deserialize)]
struct DigitSizes {
    sizes: Vec<usize>,
    test_n: usize,
    dim: usize,
}

/// Reads the partition into `silos`, from `digits8_bench/` under `folder`.
///
/// # Errors
/// [`DataError`]: no folder, a file that is absent or of the wrong size.
pub fn digits(folder: Option<&Path>, silos: usize) -> Result<Digits, DataError> {
    let hint = "The folder digits8_bench holds digits_S.json, digits_S_X.f32, digits_S_y.u8, \
                order_SxR.u16 and w0.f32 for S silos and R rounds; `rota data list digits8-bench` says more.";
    let folder = folder.ok_or(DataError::NoFolder {
        source_name: "digits8-bench",
        hint,
    })?;
    let folder = folder.join("digits8_bench");
    let damaged = |path: &Path, reason: &str| DataError::File {
        path: path.to_owned(),
        reason: reason.to_owned(),
        hint: format!(". {hint}"),
    };
    let read = |name: &str| {
        let path = folder.join(name);
        match file::read(&path, file::DATA) {
            Ok(bytes) => Ok((path, bytes)),
            Err(error) => Err(damaged(&path, &error.to_string())),
        }
    };
    let (path, json) = read(&format!("digits_{silos}.json"))?;
    let sizes: DigitSizes =
        serde_json::from_slice(&json).map_err(|error| damaged(&path, &error.to_string()))?;
    let rows: usize = sizes.sizes.iter().sum();
    if sizes.sizes.len() != silos || sizes.dim != WIDTHS[0] {
        return Err(damaged(
            &path,
            "expected this number of silos and 64 pixels, found another",
        ));
    }

    let (path, pixels) = read(&format!("digits_{silos}_X.f32"))?;
    if pixels.len() != 4 * sizes.dim * (rows + sizes.test_n) {
        return Err(damaged(&path, "its size is not the one in the json file"));
    }
    let (path, labels) = read(&format!("digits_{silos}_y.u8"))?;
    if labels.len() != rows + sizes.test_n || labels.iter().any(|&label| label > 9) {
        return Err(damaged(
            &path,
            "its size is not the one in the json file, or a label is above 9",
        ));
    }
    let mut part = {
        let (mut pixels, mut labels) = (floats(&pixels), labels.iter().map(|&l| f32::from(l)));
        move |rows: usize| {
            let targets = labels.by_ref().take(rows).collect();
            let features = pixels.by_ref().take(rows * WIDTHS[0]).collect();
            Arc::new(Rows::new(WIDTHS[0], features, targets))
        }
    };
    let parts = sizes.sizes.iter().map(|&size| part(size)).collect();
    let test = part(sizes.test_n);

    let (path, start) = read("w0.f32")?;
    let start: Vec<f32> = floats(&start).collect();
    let expected: usize = WIDTHS.windows(2).map(|pair| (pair[0] + 1) * pair[1]).sum();
    if start.len() != expected {
        return Err(damaged(
            &path,
            "expected the weights of a 64-128-10 perceptron, found another number of values",
        ));
    }
    let path = order_file(&folder, silos)
        .ok_or_else(|| damaged(&folder.join(format!("order_{silos}xR.u16")), "no such file"))?;
    let orders =
        file::read(&path, file::DATA).map_err(|error| damaged(&path, &error.to_string()))?;
    let orders = split_orders(&orders, &sizes.sizes).ok_or_else(|| {
        damaged(
            &path,
            "expected a whole number of rounds, each a permutation of every silo's rows",
        )
    })?;
    Ok(Digits {
        silos: parts,
        test,
        start,
        orders,
    })
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes
        .chunks_exact(4)
        .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

fn order_file(folder: &Path, silos: usize) -> Option<PathBuf> {
    let start = format!("order_{silos}x");
    let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let mut found: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found.into_iter().next()
}

/// The file goes by round, then by silo; `None` if it does not fit.
fn split_orders(bytes: &[u8], sizes: &[usize]) -> Option<Vec<Vec<Vec<u32>>>> {
    let round = 2 * sizes.iter().sum::<usize>();
    if round == 0 || !bytes.len().is_multiple_of(round) {
        return None;
    }
    let mut orders = vec![Vec::new(); sizes.len()];
    for bytes in bytes.chunks_exact(round) {
        let mut rows = bytes
            .chunks_exact(2)
            .map(|two| u32::from(u16::from_le_bytes([two[0], two[1]])));
        for (orders, &size) in orders.iter_mut().zip(sizes) {
            let order: Vec<u32> = rows.by_ref().take(size).collect();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            if !sorted.into_iter().eq(0..size as u32) {
                return None;
            }
            orders.push(order);
        }
    }
    Some(orders)
}
