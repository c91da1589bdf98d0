//! Coordinate-wise statistics over all models, for the coordinate median and the trimmed mean.

use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

use super::network::{LANES, LaneRow, SortableCell, SortingNetwork};

/// Values per piece of work for one thread; a multiple of [`LANES`].
const BLOCK: usize = LANES << 6;

/// Number of values (over all models) from which several threads are faster than one.
const PARALLEL: usize = 1 << 17;

/// Computes every value of `into` from the values of all models at that position.
///
/// `rows` has one slice per model, each as long as `into`. The column of values at every position is
/// sorted as far as the positions `wanted` of the column need it; `finish` computes one value from
/// each of [`LANES`] sorted columns.
pub(super) fn by_value<T: SortableCell>(
    into: &mut [f32],
    rows: &[&[f32]],
    wanted: Range<usize>,
    finish: impl Fn(&[LaneRow<T>]) -> LaneRow<f32> + Sync,
) {
    let network = SortingNetwork::new(rows.len(), wanted);
    let work = into.len() * rows.len();
    let columns = || vec![[T::default(); LANES]; rows.len()];
    // Columns are independent of each other, so the number of threads does not change the result.
    let fill = |columns: &mut Vec<LaneRow<T>>, (block, into): (usize, &mut [f32])| {
        for (part, into) in into.chunks_mut(LANES).enumerate() {
            load(columns, rows, block * BLOCK + part * LANES);
            network.sort(columns);
            into.copy_from_slice(&finish(columns)[..into.len()]);
        }
    };
    if work < PARALLEL {
        let mut columns = columns();
        into.chunks_mut(BLOCK)
            .enumerate()
            .for_each(|block| fill(&mut columns, block));
    } else {
        into.par_chunks_mut(BLOCK)
            .enumerate()
            .for_each_init(columns, fill);
    }
}

/// Loads the columns from `start` on, padded with zeros.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn load<T: SortableCell>(columns: &mut [LaneRow<T>], rows: &[&[f32]], start: usize) {
    for (model, (column, row)) in columns.iter_mut().zip(rows).enumerate() {
        let values = &row[start..];
        match values.first_chunk() {
            Some(values) => load_row(column, values, model),
            None => {
                let mut padded = [0.0; LANES];
                padded[..values.len()].copy_from_slice(values);
                load_row(column, &padded, model);
            }
        }
    }
}

/// A separate loop of constant length, so that the compiler vectorises it.
#[inline(always)]
fn load_row<T: SortableCell>(column: &mut LaneRow<T>, values: &LaneRow<f32>, model: usize) {
    for (cell, value) in column.iter_mut().zip(values) {
        *cell = T::of(*value, model);
    }
}
