//! Value by value over all models: what coordinate median and trimmed mean have in common.

use std::ops::Range;

use multiversion::multiversion;
use rayon::prelude::*;

use super::network::{Cell, LANES, Network, Row};

/// Values per piece of work for one thread; a multiple of [`LANES`].
const BLOCK: usize = LANES << 6;

/// Values (over all models) from which more than one thread pays.
const PARALLEL: usize = 1 << 17;

/// Fills `into` value by value: the `rows`, one per model and as long as `into`, are brought into
/// order at every place, as far as the positions `wanted` need it; `finish` makes one value of
/// each of [`LANES`] columns.
pub(super) fn by_value<T: Cell>(
    into: &mut [f32],
    rows: &[&[f32]],
    wanted: Range<usize>,
    finish: impl Fn(&[Row<T>]) -> Row<f32> + Sync,
) {
    let network = Network::new(rows.len(), wanted);
    let work = into.len() * rows.len();
    let columns = || vec![[T::default(); LANES]; rows.len()];
    // Columns do not depend on each other: the result is the same in any order.
    let fill = |columns: &mut Vec<Row<T>>, (block, into): (usize, &mut [f32])| {
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

/// Loads the columns from `start` on, zeros beyond the last value.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn load<T: Cell>(columns: &mut [Row<T>], rows: &[&[f32]], start: usize) {
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

/// A loop of its own, of known length: that is what the compiler makes vectors of.
#[inline(always)]
fn load_row<T: Cell>(column: &mut Row<T>, values: &Row<f32>, model: usize) {
    for (cell, value) in column.iter_mut().zip(values) {
        *cell = T::of(*value, model);
    }
}
