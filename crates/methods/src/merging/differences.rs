//! What distinguishes the clients' gradients: their directions, less the mean of these.

use super::UtilityError;
use super::utility::cosines;
use crate::Matrix;

/// Squared lengths below this are rounding: no difference is left.
const NOTHING: f64 = 1e-12;

/// The inner products (clients × clients) of what distinguishes the clients: gradients of length
/// one, less the mean of these.
///
/// The length of an update grows with the number of steps, and so with the number of rows, so it says
/// little of what a client has learned. What all updates have in common (a common part of all true
/// models, and the way from the start to it) tells no two of them apart, and hides what does: beside
/// it all angles are small. A client that did not move has the direction 0.
///
/// From inner products `gram` of the gradients, with `C_kl` their cosines:
/// `⟨u_k − ū, u_l − ū⟩ = C_kl − C̄_k − C̄_l + C̄`, with the means of rows and of all.
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
    let (_, cosines) = cosines(gram)?;
    let count = n as f64;
    let means: Vec<f64> = (0..n)
        .map(|k| cosines.row(k).iter().sum::<f64>() / count)
        .collect();
    let all = means.iter().sum::<f64>() / count;
    let centred = Matrix::from_fn(n, n, |k, l| cosines[(k, l)] - (means[k] + means[l]) + all);
    let kept: Vec<bool> = (0..n).map(|k| centred[(k, k)] > NOTHING).collect();
    let entry = |k: usize, l: usize| match kept[k] && kept[l] {
        true => centred[(k, l)],
        false => 0.0,
    };
    Ok(Matrix::from_fn(n, n, entry))
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
    fn they_are_those_of_unit_vectors_less_their_mean() {
        // Unit vectors (1, 0, 0), (0, 1, 0), (0, 0, 1) have the mean (1, 1, 1)/3.
        let expected = [
            [2.0 / 3.0, -1.0 / 3.0, -1.0 / 3.0],
            [-1.0 / 3.0, 2.0 / 3.0, -1.0 / 3.0],
            [-1.0 / 3.0, -1.0 / 3.0, 2.0 / 3.0],
        ];
        let units = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        near(&of(&units), &expected);
        // Ten times the rows, ten times the steps: the same.
        let longer = [[10.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 300.0]];
        near(&of(&longer), &expected);
    }

    #[test]
    fn a_common_part_does_not_hide_that_two_are_opposite() {
        let found = of(&[[100.0, 1.0, 0.0], [100.0, 1.1, 0.0], [100.0, -1.0, 0.0]]);
        let cosine = |k, l| found[(k, l)] / (found[(k, k)] * found[(l, l)]).sqrt();
        assert!(cosine(0, 1) > 0.9 && cosine(0, 2) < -0.9 && cosine(1, 2) < -0.9);
    }

    #[test]
    fn equal_directions_and_no_moves_differ_in_nothing() {
        near(&of(&[[1.0, 2.0, 2.0]; 3]), &[[0.0; 3]; 3]);
        near(&of(&[[0.0; 3]; 3]), &[[0.0; 3]; 3]);
        // One of two that did not move is opposite to the other, as seen from their mean.
        let still = of(&[[0.0; 3], [3.0, 0.0, 0.0]]);
        assert!(still[(0, 0)] > 0.2 && still[(0, 1)] < -0.2);
    }
}
