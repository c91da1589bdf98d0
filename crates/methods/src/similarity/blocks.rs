//! Parallel sums over blocks of columns, added in a fixed order.

use std::ops::Range;

use rayon::prelude::*;

/// Memory for the sums of single blocks, in bytes per thread.
const PARTS: usize = 16 << 20;

/// Number of sums that one thread adds at once.
const CHUNK: usize = 1 << 12;

/// Computes `size` sums over all columns. `work` writes the sums over one block of at most `block`
/// columns; the blocks are added in order, in `f64`. `scratch` creates the workspace of `work`.
///
/// Many blocks with few sums are computed at once, or few blocks with many sums, for which `work`
/// should run in parallel itself. The number of blocks affects memory, not the result.
pub(super) fn sum<P, S>(
    columns: usize,
    block: usize,
    size: usize,
    scratch: impl Fn() -> S + Sync + Send,
    work: impl Fn(&mut S, Range<usize>, &mut [P]) + Sync + Send,
) -> Vec<f64>
where
    P: Copy + Default + Into<f64> + Send + Sync,
{
    if size == 0 {
        return Vec::new();
    }
    let blocks = columns.div_ceil(block);
    let memory = rayon::current_num_threads() * PARTS;
    let wave = (memory / (size * size_of::<P>())).clamp(1, blocks.max(1));
    let mut sums = vec![0f64; size];
    let mut parts = vec![P::default(); wave * size];
    for first in (0..blocks).step_by(wave) {
        let parts = &mut parts[..wave.min(blocks - first) * size];
        parts
            .par_chunks_mut(size)
            .enumerate()
            .for_each_init(&scratch, |scratch, (index, part)| {
                let start = (first + index) * block;
                work(scratch, start..columns.min(start + block), part);
            });
        sums.par_chunks_mut(CHUNK)
            .enumerate()
            .for_each(|(chunk, sums)| {
                for part in parts.chunks_exact(size) {
                    let part = &part[chunk * CHUNK..][..sums.len()];
                    for (sum, &value) in sums.iter_mut().zip(part) {
                        *sum += value.into();
                    }
                }
            });
    }
    sums
}
