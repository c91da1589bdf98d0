//! Count sketches: random projections that preserve inner products in expectation.

use std::borrow::Cow;
use std::num::NonZeroU32;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Vectors;

/// A count sketch (Charikar, Chen & Farach-Colton 2002): every column is added, with a random
/// sign, to one random column of the sketch.
///
/// The inner product of two sketches has the mean `⟨x, y⟩` over all seeds and the variance
/// `(‖x‖²·‖y‖² + ⟨x, y⟩² − 2·Σ x_c²·y_c²) / m` for `m` columns; so its standard deviation is at
/// most `√(2/m)·‖x‖·‖y‖`. The map is linear: sketches of updates are differences of sketches.
///
/// A function of the seed and of the number of columns, the same on every machine: silos with
/// the same seed can compare sketches that each computed from its local model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Sketch {
    /// Number of columns of the sketch.
    pub columns: NonZeroU32,
    /// Seed of the random projection, the same for all silos.
    pub seed: u64,
}

/// Number of columns whose positions are drawn at once.
const BLOCK: usize = 1 << 16;

impl Sketch {
    /// The sketches of all rows. Memory: `n·m` numbers in `f64`, then `f32`.
    pub fn of(&self, rows: &Vectors<'_>) -> Vectors<'static> {
        let width = self.columns.get() as usize;
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let mut sketches = vec![0f64; rows.len() * width];
        for start in (0..rows.columns()).step_by(BLOCK) {
            let columns = start..rows.columns().min(start + BLOCK);
            let places: Vec<_> = columns.clone().map(|_| place(&mut random, width)).collect();
            sketches.par_chunks_mut(width).enumerate().for_each_init(
                || Vec::with_capacity(columns.len()),
                |values, (row, sketch)| {
                    values.clear();
                    rows.read_f64(row, columns.clone(), values);
                    for (value, (column, sign)) in values.iter().zip(&places) {
                        sketch[*column] += sign * value;
                    }
                },
            );
        }
        let values = sketches
            .chunks_exact(width)
            .map(|sketch| Cow::Owned(sketch.iter().map(|&value| value as f32).collect()))
            .collect();
        Vectors::select(values, Vec::new(), std::iter::once(0..width).collect())
    }
}

/// Draws a column and a sign. The bias of the column is below `m/2³¹`.
fn place(random: &mut ChaCha8Rng, columns: usize) -> (usize, f64) {
    let word = random.next_u32();
    let column = (u64::from(word >> 1) * columns as u64) >> 31;
    (column as usize, if word & 1 == 0 { 1.0 } else { -1.0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::similarity::gram_f64;

    fn sketch(columns: u32, seed: u64) -> Sketch {
        Sketch {
            columns: NonZeroU32::new(columns).unwrap(),
            seed,
        }
    }

    fn values(rows: &Vectors<'_>) -> Vec<f64> {
        let mut values = Vec::new();
        for row in 0..rows.len() {
            rows.read_f64(row, 0..rows.columns(), &mut values);
        }
        values
    }

    #[test]
    fn every_column_is_added_to_one_column_of_the_sketch() {
        // A row with a single one shows where that column goes.
        let d = 200;
        let unit = |at: usize| {
            (0..d)
                .map(|c| f32::from(u8::from(c == at)))
                .collect::<Vec<_>>()
        };
        let units: Vec<_> = (0..d).map(unit).collect();
        let sketches = sketch(7, 1).of(&Vectors::new(&units).unwrap());
        assert_eq!((sketches.len(), sketches.columns()), (d, 7));
        let mut hits = [0; 7];
        for row in values(&sketches).chunks(7) {
            assert_eq!(row.iter().map(|value| value.abs()).sum::<f64>(), 1.0);
            hits[row.iter().position(|&value| value != 0.0).unwrap()] += 1;
        }
        assert!(hits.iter().all(|hits| (10..50).contains(hits)), "{hits:?}");
    }

    #[test]
    fn products_have_the_stated_mean_and_variance() {
        let models = [
            [1.0f32, 2.0, 3.0, 4.0, -1.0, 0.5],
            [2.0, -1.0, 1.0, 0.0, 1.0, 3.0],
        ];
        let rows = Vectors::new(&models).unwrap();
        let exact = gram_f64(&rows).unwrap();
        let (m, seeds) = (4, 20_000);
        let products: Vec<f64> = (0..seeds)
            .map(|seed| gram_f64(&sketch(m, seed).of(&rows)).unwrap()[(0, 1)])
            .collect();
        let mean = products.iter().sum::<f64>() / seeds as f64;
        let spread: f64 = products
            .iter()
            .map(|product| (product - mean) * (product - mean))
            .sum();
        let fourth: f64 = models[0]
            .iter()
            .zip(&models[1])
            .map(|(x, y)| f64::from(x * y))
            .map(|product| product * product)
            .sum();
        let product = exact[(0, 1)];
        let variance =
            (exact[(0, 0)] * exact[(1, 1)] + product * product - 2.0 * fourth) / f64::from(m);
        // Five standard errors of the mean; the variance within a twentieth.
        assert!(
            (mean - product).abs() < 5.0 * (variance / seeds as f64).sqrt(),
            "{mean} {product}"
        );
        let found = spread / (seeds - 1) as f64;
        assert!((found / variance - 1.0).abs() < 0.05, "{found} {variance}");
    }

    #[test]
    fn sketches_depend_on_the_seed_alone() {
        let d = 2 * BLOCK + 77;
        let models: Vec<Vec<f32>> = (0..3)
            .map(|row| {
                (0..d)
                    .map(|c| ((c * 31 + row * 17) % 101) as f32 - 50.0)
                    .collect()
            })
            .collect();
        let together = Vectors::new(&models).unwrap();
        let bits = |threads, seed| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            values(&pool.install(|| sketch(33, seed).of(&together)))
        };
        assert_eq!(bits(1, 5), bits(3, 5));
        assert_ne!(bits(1, 5), bits(1, 6));
        // A silo that sketches its model by itself gets the same.
        let alone = values(&sketch(33, 5).of(&Vectors::new(&models[1..2]).unwrap()));
        assert_eq!(alone, bits(1, 5)[33..66]);
    }

    #[test]
    fn positions_of_a_seed_are_fixed() {
        let mut random = ChaCha8Rng::seed_from_u64(42);
        let places: Vec<_> = (0..6).map(|_| place(&mut random, 1000)).collect();
        let expected = [
            (224, -1.0),
            (681, -1.0),
            (146, 1.0),
            (950, 1.0),
            (772, 1.0),
            (427, 1.0),
        ];
        assert_eq!(places, expected);
    }
}
