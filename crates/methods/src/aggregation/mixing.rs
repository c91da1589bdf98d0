//! Nearest-neighbour mixing (Allouah et al. 2023).

use rayon::prelude::*;

use super::buffers::with_buffers;
use super::distance::pairwise;
use super::models::Models;
use crate::params::{Params, mean_block};

/// Values per block: a block of a hundred models fits into the level-2 cache while all means are
/// computed. It does not affect the result.
const BLOCK: usize = 1 << 10;

/// Replaces every model by the mean of its `n − f` nearest, itself included (NNM, Allouah et al.
/// 2023). Honest models come closer to each other, so that a robust rule errs less where silos
/// differ. Ties go to the models with the smaller values.
///
/// Buffers are not mixed: distances ignore them, so one bad buffer would spread to all models.
pub(super) fn mixed(models: &Models, byzantine: usize) -> Vec<Params> {
    let means = means(models, &neighbours(models, byzantine));
    let own = models.models().iter().map(|model| model.values());
    means
        .into_iter()
        .zip(own)
        .map(|(mean, own)| {
            let mean = Params::from_values(models.layout(), &mean);
            with_buffers(mean, |range, into| into.copy_from_slice(&own[range]))
        })
        .collect()
}

/// The `n − f` nearest of every model, in the order of the models.
fn neighbours(models: &Models, byzantine: usize) -> Vec<Vec<usize>> {
    let distances = pairwise(models);
    let nearest = |own| {
        let mut order: Vec<usize> = (0..models.len()).collect();
        order.sort_by(|&a, &b| {
            let distances = distances[(own, a)].total_cmp(&distances[(own, b)]);
            distances.then_with(|| models.by_values(a, b))
        });
        order.truncate(models.len() - byzantine);
        order.sort_unstable();
        order
    };
    (0..models.len()).map(nearest).collect()
}

/// The weighted mean of each group of models: all groups block by block, because each takes nearly
/// all models, and reading them costs more than adding them up.
fn means(models: &Models, groups: &[Vec<usize>]) -> Vec<Vec<f32>> {
    let len = models.layout().len();
    let mut means = vec![vec![0f32; len]; groups.len()];
    let mut parts: Vec<_> = means
        .iter_mut()
        .map(|mean| mean.chunks_mut(BLOCK))
        .collect();
    // The same block of all means is one piece of work.
    let blocks: Vec<Vec<&mut [f32]>> = (0..len.div_ceil(BLOCK))
        .map(|_| parts.iter_mut().filter_map(Iterator::next).collect())
        .collect();
    let groups: Vec<_> = groups
        .iter()
        .map(|group| {
            let chosen = models.chosen(group);
            let total: f64 = chosen.iter().map(|(_, weight)| weight).sum();
            let rows = chosen
                .into_iter()
                .map(|(model, weight)| (model.values(), weight));
            (rows.collect::<Vec<_>>(), total)
        })
        .collect();
    let sums = || vec![0f64; BLOCK];
    blocks
        .into_par_iter()
        .enumerate()
        .for_each_init(sums, |sums, (block, means)| {
            for (into, (rows, total)) in means.into_iter().zip(&groups) {
                mean_block(into, sums, rows, block * BLOCK, *total);
            }
        });
    means
}
