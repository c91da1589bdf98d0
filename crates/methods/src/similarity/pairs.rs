//! Sums over pairs of rows in plain `f64`: the same bits on every machine.

use multiversion::multiversion;
use rayon::prelude::*;

use super::Vectors;
use super::blocks;

/// A pair of rows.
pub(super) type RowPair = (u32, u32);

/// Writes one sum for every pair; the rows are dense, `depth` values each.
pub(super) type PairKernel = fn(values: &[Lanes], rows: usize, pairs: &[RowPair], sums: &mut [f64]);

/// Target number of values of a block.
const BLOCK_VALUES: usize = 1 << 18;

/// Number of rows of a block that fit into a core's level-2 cache.
const TILE: usize = 64;

/// Number of rows that fit into the level-1 cache and are processed at once.
const FEW: usize = 4;

/// Number of pairs that one thread processes at once.
const CHUNK: usize = 1 << 12;

/// Partial sums of a sum: column `c` of a block goes to lane `c mod LANES`. Changing it changes the
/// result's last bits.
const LANES: usize = 16;

type Lanes = [f64; LANES];

/// All pairs `(i, j)` with `j ≤ i < n`. Ordered so that a few rows stay in the level-1 cache
/// while a tile of rows is read from the level-2 cache.
pub(super) fn all(n: usize) -> Vec<RowPair> {
    let n = n as u32;
    let mut pairs = Vec::with_capacity((n as usize) * (n as usize + 1) / 2);
    for top in (0..n).step_by(TILE) {
        let end = n.min(top + TILE as u32);
        for left in (0..end).step_by(FEW) {
            for row in top.max(left)..end {
                pairs.extend((left..(left + FEW as u32).min(row + 1)).map(|column| (row, column)));
            }
        }
    }
    pairs
}

/// The kernel's sum over all columns for every pair.
pub(super) fn sums<T>(rows: &Vectors<'_, T>, pairs: &[RowPair], kernel: PairKernel) -> Vec<f64>
where
    T: Copy + Into<f64> + Sync,
{
    let n = rows.len();
    let block = (BLOCK_VALUES / n / LANES * LANES).clamp(16 * LANES, 32 * LANES);
    blocks::sum(
        rows.columns(),
        block,
        pairs.len(),
        Vec::new,
        |values, columns, sums: &mut [f64]| {
            let depth = columns.len().next_multiple_of(LANES);
            values.clear();
            for row in 0..n {
                rows.read_f64(row, columns.clone(), values);
                // Zero padding does not change any of the sums.
                values.resize((row + 1) * depth, 0.0);
            }
            let (values, _) = values.as_chunks();
            let pairs = pairs.par_chunks(CHUNK);
            sums.par_chunks_mut(CHUNK)
                .zip(pairs)
                .for_each(|(sums, pairs)| kernel(values, n, pairs, sums));
        },
    )
}

/// `Σ a·b`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
pub(super) fn products(values: &[Lanes], rows: usize, pairs: &[RowPair], sums: &mut [f64]) {
    each(values, rows, pairs, sums, |a, b| a * b);
}

/// `Σ (a − b)²`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
pub(super) fn squares(values: &[Lanes], rows: usize, pairs: &[RowPair], sums: &mut [f64]) {
    each(values, rows, pairs, sums, |a, b| (a - b) * (a - b));
}

/// `Σ |a − b|`.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
pub(super) fn distances(values: &[Lanes], rows: usize, pairs: &[RowPair], sums: &mut [f64]) {
    each(values, rows, pairs, sums, |a, b| (a - b).abs());
}

// Inlined into the functions above, whose vector instructions it is compiled for.
#[inline(always)]
fn each(
    values: &[Lanes],
    rows: usize,
    pairs: &[RowPair],
    sums: &mut [f64],
    term: impl Fn(f64, f64) -> f64,
) {
    let depth = values.len() / rows;
    let row = |row: u32| &values[row as usize * depth..][..depth];
    let add = |lanes: &mut Lanes, a: &Lanes, b: &Lanes| {
        for lane in 0..LANES {
            lanes[lane] += term(a[lane], b[lane]);
        }
    };
    let mut done = 0;
    while done < pairs.len() {
        let (first, _) = pairs[done];
        // One row with four others: it is loaded once, and the additions are independent.
        match pairs[done..] {
            [(_, a), (second, b), (third, c), (fourth, d), ..]
                if [second, third, fourth] == [first; 3] =>
            {
                let mut lanes = [[0f64; LANES]; 4];
                let others = row(a).iter().zip(row(b)).zip(row(c)).zip(row(d));
                for (x, (((a, b), c), d)) in row(first).iter().zip(others) {
                    add(&mut lanes[0], x, a);
                    add(&mut lanes[1], x, b);
                    add(&mut lanes[2], x, c);
                    add(&mut lanes[3], x, d);
                }
                for (sum, lanes) in sums[done..].iter_mut().zip(&lanes) {
                    *sum = total(lanes);
                }
                done += 4;
            }
            _ => {
                let mut lanes = [0f64; LANES];
                for (a, b) in row(first).iter().zip(row(pairs[done].1)) {
                    add(&mut lanes, a, b);
                }
                sums[done] = total(&lanes);
                done += 1;
            }
        }
    }
}

/// The sum over the lanes, by halving. Never inlined: inlining makes the compiler choose narrower
/// vectors in the loops above.
#[inline(never)]
fn total(lanes: &Lanes) -> f64 {
    let mut lanes = *lanes;
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            lanes[lane] += lanes[lane + width];
        }
    }
    lanes[0]
}
