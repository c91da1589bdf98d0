//! The prior over clients from their centralities.

/// Errors of computing a prior.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PriorError {
    /// No clients.
    #[error("a prior needs at least one client")]
    Empty,
    /// A centrality that is NaN or infinite.
    #[error("the centrality of client {client} is not a finite number")]
    NotFinite {
        /// Number of the client, from 0.
        client: usize,
    },
}

/// `p_k ∝ exp(c_k)`: the prior from centralities `c` (TFL, Ma et al. 2024, eq. (6)), a point of
/// the simplex. The largest is subtracted first, so nothing overflows; a client more than about
/// 745 below it gets 0.
///
/// # Errors
/// [`PriorError`]: no clients, or a centrality that is not finite.
pub fn softmax(centrality: &[f64]) -> Result<Vec<f64>, PriorError> {
    if centrality.is_empty() {
        return Err(PriorError::Empty);
    }
    if let Some(client) = centrality.iter().position(|value| !value.is_finite()) {
        return Err(PriorError::NotFinite { client });
    }
    Ok(normalised_exp(centrality))
}

/// `exp(x_k) / Σ exp(x_l)`; the largest `x` is finite.
pub(super) fn normalised_exp(x: &[f64]) -> Vec<f64> {
    let most = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut values: Vec<f64> = x.iter().map(|value| libm::exp(value - most)).collect();
    let total: f64 = values.iter().sum();
    values.iter_mut().for_each(|value| *value /= total);
    values
}

/// The uniform prior: before there is a topology, and the λ of the first round.
pub fn uniform(clients: usize) -> Vec<f64> {
    vec![1.0 / clients as f64; clients]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_priors() {
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        let path = softmax(&[0.0, 0.5, 0.6666666666666666, 0.5, 0.0]).unwrap();
        let known = [
            0.1380228609502245,
            0.22756122669152126,
            0.2688318247165084,
            0.22756122669152126,
            0.1380228609502245,
        ];
        assert!(close(&path, &known), "{path:?}");
        let raw = softmax(&[0.0, 3.0, 4.0, 3.0, 0.0]).unwrap();
        let known = [
            0.010333864010783306,
            0.20756120714778833,
            0.5642098576828567,
            0.20756120714778833,
            0.010333864010783306,
        ];
        assert!(close(&raw, &known), "{raw:?}");
    }

    #[test]
    fn large_centralities_do_not_overflow() {
        assert_eq!(softmax(&[1e300, 0.0, 1e300]), Ok(vec![0.5, 0.0, 0.5]));
        assert_eq!(softmax(&[-1e300]), Ok(vec![1.0]));
        assert_eq!(softmax(&[7.0; 4]), Ok(uniform(4)));
    }

    #[test]
    fn centralities_that_are_not_finite_are_refused() {
        assert_eq!(softmax(&[]), Err(PriorError::Empty));
        for odd in [f64::NAN, f64::INFINITY] {
            let error = PriorError::NotFinite { client: 1 };
            assert_eq!(softmax(&[0.0, odd]), Err(error));
        }
    }
}
