//! Polynomials over the scalars: their values, and the value at 0 from t others.

use curve25519_dalek::Scalar;
use zeroize::{Zeroize, Zeroizing};

/// The place of the member at `position` on all polynomials: one more, since the secret lies at 0.
pub(crate) fn place(position: u16) -> Scalar {
    Scalar::from(u64::from(position) + 1)
}

/// The value at `x` of the polynomial with these coefficients, the constant first.
pub(crate) fn value(coefficients: &[Scalar], x: &Scalar) -> Zeroizing<Scalar> {
    let mut value = Zeroizing::new(Scalar::ZERO);
    for coefficient in coefficients.iter().rev() {
        *value = *value * x + coefficient;
    }
    value
}

/// Coefficients that are overwritten when they are dropped.
pub(crate) struct Secrets(Vec<Scalar>);

impl Secrets {
    /// Room for `count` of them, so that no copy is left behind by growing.
    pub(crate) fn with_capacity(count: usize) -> Self {
        Self(Vec::with_capacity(count))
    }

    /// One more.
    pub(crate) fn push(&mut self, scalar: &Scalar) {
        self.0.push(*scalar);
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Scalar] {
        &self.0
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The weights λ of Lagrange's interpolation at 0: for every polynomial p of a degree below the number
/// of places, p(0) = Σ λ_x·p(x). The places are distinct and none is 0.
pub(crate) fn lagrange_at_zero(places: &[Scalar]) -> Vec<Scalar> {
    let weight = |x: &Scalar| {
        let others = || places.iter().filter(|other| *other != x);
        let above: Scalar = others().product();
        let below: Scalar = others().map(|other| other - x).product();
        (above, below)
    };
    let (above, mut below): (Vec<_>, Vec<_>) = places.iter().map(weight).unzip();
    Scalar::invert_batch_alloc(&mut below);
    above.iter().zip(&below).map(|(a, b)| a * b).collect()
}
