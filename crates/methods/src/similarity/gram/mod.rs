//! Gram matrices: inner products of all pairs of rows.

use faer::linalg::matmul::{matmul, triangular};
use faer::{Accum, MatMut, MatRef, Par};
use multiversion::multiversion;
use rayon::prelude::*;
use triangular::BlockStructure::{Rectangular, TriangularLower};

use super::pairs::{self, RowPair};
use super::{CompareError, Vectors, blocks};
use crate::Matrix;

/// Number of products up to which everything is computed in `f64`, within milliseconds.
const SMALL: usize = 1 << 24;

/// Rows and columns of a tile of the result, the unit of parallel work where there are many rows and
/// few columns.
const TILE: usize = 1 << 10;

/// Columns of a block are a multiple of this, the depth of a step of the matrix product.
const DEPTH: usize = 512;

/// Target number of values of a block.
const BLOCK_VALUES: usize = 1 << 21;

/// The Gram matrix `G_ij = ⟨v_i, v_j⟩`, `n × n`, symmetric.
///
/// Up to 16 million products it is [`gram_f64`]. Beyond, products and the sums of 512 to 4096
/// columns are in `f32`, and the sums of those in `f64`: the error of `G_ij` is mostly below
/// `1e-7·‖v_i‖·‖v_j‖` (smaller with more columns), and ten times that if all rounding errors have
/// the same sign. If the squares of a row overflow or underflow in `f32`, everything is computed in
/// `f64`.
///
/// The bits do not depend on the number of threads, but on the processor.
///
/// Work `n²·d/2`; memory `n²`, and per thread a block of `n` rows and a few matrices of `n²`.
///
/// # Errors
/// [`CompareError`] if a value is not finite.
pub fn gram(rows: &Vectors<'_>) -> Result<Matrix, CompareError> {
    if is_small(rows) {
        return gram_f64(rows);
    }
    let gram = products(rows, false);
    let floor = floor(rows);
    let exact = gram.values().iter().all(|value| value.is_finite())
        && (0..rows.len()).all(|row| gram[(row, row)] >= floor || rows.is_zero(row));
    if exact { Ok(gram) } else { gram_f64(rows) }
}

/// The Gram matrix in plain `f64`: products and sums in a fixed order and not fused, the same bits on
/// every machine. Several times the work of [`gram`] for long rows.
///
/// # Errors
/// [`CompareError`] if a value, or a sum of products, is not finite.
pub fn gram_f64<T: Copy + Into<f64> + Sync>(rows: &Vectors<'_, T>) -> Result<Matrix, CompareError> {
    let all = pairs::all(rows.len());
    let sums = rows.finite(pairs::sums(rows, &all, pairs::products))?;
    Ok(symmetric(rows.len(), &all, &sums))
}

/// Returns whether everything is computed in `f64`.
pub(super) fn is_small(rows: &Vectors<'_>) -> bool {
    let n = rows.len();
    (n * (n + 1) / 2).saturating_mul(rows.columns()) <= SMALL
}

/// The smallest sum of squares that underflow in `f32` does not affect; it loses at most `2⁻¹⁵⁰` per
/// square.
pub(super) fn floor(rows: &Vectors<'_>) -> f64 {
    rows.columns() as f64 * libm::ldexp(1.0, -100)
}

/// A symmetric matrix of the values at `pairs`, zero elsewhere.
pub(super) fn symmetric(n: usize, pairs: &[RowPair], values: &[f64]) -> Matrix {
    let mut matrix = Matrix::zeros(n, n);
    for (&(i, j), &value) in pairs.iter().zip(values) {
        let (i, j) = (i as usize, j as usize);
        matrix[(i, j)] = value;
        matrix[(j, i)] = value;
    }
    matrix
}

/// The Gram matrix of the rows, or of their differences from their mean, by products in `f32`.
pub(super) fn products(rows: &Vectors<'_>, centred: bool) -> Matrix {
    let n = rows.len();
    let side = n.div_ceil(n.div_ceil(TILE));
    let tile = side * side;
    let tiles: Vec<_> = (0..n.div_ceil(side))
        .flat_map(|row| (0..=row).map(move |column| (row, column)))
        .collect();
    let span = |tile: usize| tile * side..n.min((tile + 1) * side);
    let block = (BLOCK_VALUES / n / DEPTH * DEPTH).clamp(DEPTH, 8 * DEPTH);
    let sums = blocks::sum(
        rows.columns(),
        block,
        tiles.len() * tile,
        Vec::new,
        |values, columns, parts: &mut [f32]| {
            let depth = columns.len();
            values.clear();
            for row in 0..n {
                rows.read(row, columns.clone(), values);
            }
            if centred {
                centre(values, depth);
            }
            let band = |tile: usize| {
                let span = span(tile);
                let values = &values[span.start * depth..span.end * depth];
                MatRef::from_row_major_slice(values, span.len(), depth)
            };
            parts
                .par_chunks_mut(tile)
                .zip(&tiles)
                .for_each(|(part, &(row, column))| {
                    multiply(part, band(row), band(column), row == column)
                });
        },
    );
    let mut gram = Matrix::zeros(n, n);
    for (sums, &(row, column)) in sums.chunks_exact(tile).zip(&tiles) {
        let (rows, columns) = (span(row), span(column));
        for (j, sums) in columns.zip(sums.chunks_exact(rows.len())) {
            for (i, &sum) in rows.clone().zip(sums).filter(|(i, _)| *i >= j) {
                gram[(i, j)] = sum;
                gram[(j, i)] = sum;
            }
        }
    }
    gram
}

/// `lhs · rhsᵀ`, column by column; only the lower triangle if the two are the same.
fn multiply(into: &mut [f32], lhs: MatRef<'_, f32>, rhs: MatRef<'_, f32>, same: bool) {
    let (rows, columns) = (lhs.nrows(), rhs.nrows());
    let into = MatMut::from_column_major_slice_mut(&mut into[..rows * columns], rows, columns);
    let (lhs, rhs, replace) = (lhs.as_dyn_stride(), rhs.transpose(), Accum::Replace);
    if same {
        triangular::matmul(
            into,
            TriangularLower,
            replace,
            lhs,
            Rectangular,
            rhs,
            Rectangular,
            1.0,
            Par::Seq,
        );
    } else {
        matmul(into, replace, lhs, rhs, 1.0, Par::Seq);
    }
}

/// Subtracts the mean row from every row. Its rounding does not matter: subtracting any row leaves
/// distances unchanged.
#[multiversion(targets("x86_64+avx512f+avx512vl+avx512dq+avx512bw", "x86_64+avx+avx2"))]
fn centre(values: &mut [f32], depth: usize) {
    let mut mean = vec![0f32; depth];
    for row in values.chunks_exact(depth) {
        for (mean, value) in mean.iter_mut().zip(row) {
            *mean += value;
        }
    }
    let share = depth as f32 / values.len() as f32;
    for mean in &mut mean {
        *mean *= share;
    }
    for row in values.chunks_exact_mut(depth) {
        for (value, mean) in row.iter_mut().zip(&mean) {
            *value -= mean;
        }
    }
}

#[cfg(test)]
mod tests;
