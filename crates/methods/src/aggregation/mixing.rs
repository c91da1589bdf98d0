//! Nearest-neighbour mixing.

use super::AggregationError;
use super::buffers::with_buffers;
use super::distance::pairwise;
use super::models::Models;
use crate::params::{Params, weighted_mean};

/// Every model replaced by the mean of its `n − f` nearest, itself among them (NNM, Allouah et al.
/// 2023): honest models come closer to each other, so that a robust rule errs less where silos
/// differ. Of equally near models those with the smaller values are taken.
///
/// Buffers are not mixed: the distance does not see what is in them, and one bad buffer would
/// spread to all.
pub(super) fn mixed(models: &Models, byzantine: usize) -> Result<Vec<Params>, AggregationError> {
    let distances = pairwise(models);
    let count = models.len();
    (0..count)
        .map(|own| {
            let mut order: Vec<usize> = (0..count).collect();
            order.sort_by(|&a, &b| {
                let distances = distances[(own, a)].total_cmp(&distances[(own, b)]);
                distances.then_with(|| models.by_values(a, b))
            });
            order.truncate(count - byzantine);
            order.sort_unstable();
            let mean = weighted_mean(&models.chosen(&order))?;
            let kept = models.models()[own].values();
            Ok(with_buffers(mean, |range, into| {
                into.copy_from_slice(&kept[range]);
            }))
        })
        .collect()
}
