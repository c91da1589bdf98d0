//! Means over seeds.

use serde::Serialize;

/// A mean over seeds and its standard deviation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation over seeds; 0 for one seed.
    pub sd: f64,
}

impl Spread {
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if count > 1.0 {
            (squares / (count - 1.0)).sqrt()
        } else {
            0.0
        };
        Some(Self { mean, sd })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_leaves_out_what_is_no_number() {
        let spread = Spread::of([1.0, 3.0, f64::NAN]);
        assert_eq!(
            spread,
            Some(Spread {
                mean: 2.0,
                sd: 2.0f64.sqrt()
            })
        );
        assert_eq!(Spread::of([]), None);
    }
}
