//! A model as a linear combination of others.

use crate::params::{Params, Role, weighted_mean};
use crate::strategy::SettleError;

/// The model with these parts of the models before a round and of its entries: whole numbers, divided by their sum.
///
/// Without negative numbers it is the weighted mean, bit for bit. Buffers, such as running variances, have the parts of
/// the entries alone, negative ones as 0: a step beyond the mean could make a variance negative.
pub(super) fn combined(
    before: &[&Params],
    entries: &[Params],
    row: &[i64],
) -> Result<Params, SettleError> {
    let of_entries = &row[before.len()..];
    let all = before
        .iter()
        .copied()
        .chain(entries)
        .zip(row.iter().map(|&part| part as f64));
    let parts: Vec<(&Params, f64)> = all.filter(|(_, part)| *part != 0.0).collect();
    if parts.iter().all(|(_, part)| *part > 0.0) {
        let alone = row[..before.len()].iter().all(|&part| part == 0);
        let mean = weighted_mean(&parts)?;
        return if alone || of_entries.iter().all(|&part| part == 0) {
            Ok(mean)
        } else {
            with_buffers(mean, entries, of_entries)
        };
    }
    let (first, _) = parts[0];
    let total: f64 = parts.iter().map(|(_, part)| part).sum();
    let model = Params::build(first.layout(), |values| {
        for (at, value) in values.iter_mut().enumerate() {
            let sum: f64 = parts
                .iter()
                .map(|(model, part)| part * f64::from(model.values()[at]))
                .sum();
            *value = (sum / total) as f32;
        }
    });
    with_buffers(model, entries, of_entries)
}

/// The model with the buffers of the mean of the entries.
fn with_buffers(model: Params, entries: &[Params], parts: &[i64]) -> Result<Params, SettleError> {
    let layout = model.layout().clone();
    if layout
        .tensors()
        .iter()
        .all(|tensor| tensor.role != Role::Buffer)
    {
        return Ok(model);
    }
    let parts = entries
        .iter()
        .zip(parts.iter().map(|&part| part.max(0) as f64));
    let parts: Vec<_> = parts.filter(|(_, part)| *part > 0.0).collect();
    if parts.is_empty() {
        return Ok(model);
    }
    let mean = weighted_mean(&parts)?;
    Ok(Params::build(&layout, |values| {
        values.copy_from_slice(model.values());
        for (at, tensor) in layout.tensors().iter().enumerate() {
            if tensor.role == Role::Buffer {
                values[layout.range(at)].copy_from_slice(&mean.values()[layout.range(at)]);
            }
        }
    }))
}
