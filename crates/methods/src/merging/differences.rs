//! Differences between the clients' gradients: each relative to their mean.

use super::UtilityError;
use super::utility::cosines;
use crate::Matrix;

/// Squared lengths below this are rounding: no difference is left.
const NOTHING: f64 = 1e-12;

/// The inner products (clients × clients) of what distinguishes the clients: their gradients, none
/// longer than the median, less the mean of these, and each of length one.
///
/// The part that all updates have in common (a common part of all true models, and the way from the start to it)
/// tells no two of them apart, and hides what does: beside it all angles are small. An update that is
/// longer than most, as after ten times the steps on ten times the rows, would be most of the mean. One
/// that is shorter stays so: clients that learned little are alike in that.
///
/// From inner products `gram` of the gradients, with lengths `l_k`, their cosines `C_kl`, and
/// `G_kl = min(l_k, m)·min(l_l, m)·C_kl` with the median `m` of the lengths (the upper of two):
/// `⟨h_k − h̄, h_l − h̄⟩ = G_kl − Ḡ_k − Ḡ_l + Ḡ`, with the means of rows and of all.
///
/// # Errors
/// [`UtilityError`] unless there is a client and `gram` is finite and, up to rounding, a Gram matrix.
pub fn differences(gram: &Matrix) -> Result<Matrix, UtilityError> {
    let n = gram.rows();
    if n == 0 {
        return Err(UtilityError::Empty);
    }
    if !gram.is_square() {
        return Err(UtilityError::Sizes {
            rows: n,
            columns: gram.columns(),
            samples: n,
        });
    }
    let (lengths, cosines) = cosines(gram)?;
    let mut sorted = lengths.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted[n / 2];
    // In units of the median, so that no length is too small or too large for what follows.
    let part = |length: f64| match median > 0.0 {
        true => (length / median).min(1.0),
        false => 0.0,
    };
    let parts: Vec<f64> = lengths.into_iter().map(part).collect();
    let products = Matrix::from_fn(n, n, |k, l| cosines[(k, l)] * (parts[k] * parts[l]));
    let count = n as f64;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
    let means: Vec<f64> = (0..n).map(|k| mean(products.row(k))).collect();
    let all = mean(&means);
    let centred = Matrix::from_fn(n, n, |k, l| products[(k, l)] - (means[k] + means[l]) + all);
    let squares: Vec<f64> = (0..n).map(|k| centred[(k, k)]).collect();
    Ok(Matrix::from_fn(n, n, |k, l| {
        if k == l {
            return f64::from(squares[k] > NOTHING);
        }
        match squares[k].min(squares[l]) > NOTHING {
            true => (centred[(k, l)] / (squares[k] * squares[l]).sqrt()).clamp(-1.0, 1.0),
            false => 0.0,
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::similarity::{Vectors, gram_f64};

    fn of(vectors: &[[f32; 3]]) -> Matrix {
        let vectors = Vectors::new(vectors).expect("they have one length");
        differences(&gram_f64(&vectors).expect("they are finite")).expect("it is a Gram matrix")
    }

    fn near(a: &Matrix, b: &[[f64; 3]]) {
        for (k, row) in b.iter().enumerate() {
            for (l, value) in row.iter().enumerate() {
                assert!((a[(k, l)] - value).abs() < 1e-9, "{k}, {l}: {a:?}");
            }
        }
    }

    #[test]
    fn they_are_the_cosines_of_gradients_less_their_mean() {
        // (1, 0, 0), (0, 1, 0), (0, 0, 1) have the mean (1, 1, 1)/3: products of 2/3 and −1/3.
        let expected = [[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]];
        let units = [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]];
        near(&of(&units), &expected);
        // After ten times the steps it is the same, and the scale of all does not matter.
        let longer = [[20.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]];
        near(&of(&longer), &expected);
        near(&of(&longer.map(|row| row.map(|x| 1e-20 * x))), &expected);
        near(&of(&longer.map(|row| row.map(|x| 1e20 * x))), &expected);
    }

    #[test]
    fn those_who_learned_little_are_alike() {
        let found = of(&[
            [0.1, 0.0, 0.0],
            [0.0, 0.1, 0.0],
            [0.0, 5.0, 5.0],
            [5.0, 5.0, 0.0],
        ]);
        assert!(found[(0, 1)] > 0.9 && found[(0, 2)] < 0.0 && found[(0, 3)] < 0.0);
    }

    #[test]
    fn a_common_part_does_not_hide_that_two_are_opposite() {
        let found = of(&[[100.0, 1.0, 0.0], [100.0, 1.1, 0.0], [100.0, -1.0, 0.0]]);
        assert!(found[(0, 1)] > 0.9 && found[(0, 2)] < -0.9 && found[(1, 2)] < -0.9);
    }

    #[test]
    fn equal_directions_and_no_moves_differ_in_nothing() {
        near(&of(&[[1.0, 2.0, 2.0]; 3]), &[[0.0; 3]; 3]);
        near(&of(&[[0.0; 3]; 3]), &[[0.0; 3]; 3]);
        // One of two that did not move is opposite to the other, as seen from their mean.
        near(
            &of(&[[0.0; 3], [3.0, 0.0, 0.0], [3.0, 0.0, 0.0]]),
            &[[1.0, -1.0, -1.0], [-1.0, 1.0, 1.0], [-1.0, 1.0, 1.0]],
        );
    }
}
