//! The group: ristretto255, with its points and scalars as they travel.

use std::fmt;

use curve25519_dalek::ristretto::CompressedRistretto;
use curve25519_dalek::traits::{Identity, VartimeMultiscalarMul};
use curve25519_dalek::{RistrettoPoint, Scalar};

use super::dleq::PrimeGroup;

/// Bytes of a point and of a scalar.
pub const ENCODED: usize = 32;

/// Reason for which bytes are no point or no scalar that may travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    /// No point, or not in its one encoding.
    #[error("these 32 bytes are not the canonical encoding of a point of ristretto255")]
    Point,
    /// The identity, which hides nothing.
    #[error("the point is the identity of the group, which hides nothing")]
    Identity,
    /// Not below the order of the group.
    #[error("these 32 bytes are not a scalar below the order of ristretto255")]
    Scalar,
}

/// A public point other than the identity, with its canonical bytes.
#[derive(Clone, Copy)]
pub struct Point {
    point: RistrettoPoint,
    bytes: [u8; ENCODED],
}

impl Point {
    /// Reads a point.
    ///
    /// # Errors
    ///
    /// If the bytes are not the canonical encoding of a point, or that of the identity.
    pub fn decode(bytes: [u8; ENCODED]) -> Result<Self, PointError> {
        let compressed = CompressedRistretto(bytes);
        let point = compressed.decompress().ok_or(PointError::Point)?;
        if compressed == CompressedRistretto::identity() {
            return Err(PointError::Identity);
        }
        Ok(Self { point, bytes })
    }

    /// A computed point.
    pub(crate) fn new(point: RistrettoPoint) -> Self {
        let bytes = point.compress().to_bytes();
        Self { point, bytes }
    }

    /// The point itself.
    pub(crate) fn point(&self) -> &RistrettoPoint {
        &self.point
    }

    /// The canonical bytes of the point.
    pub fn bytes(&self) -> [u8; ENCODED] {
        self.bytes
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Point {}

impl fmt::Debug for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = self.bytes[..4].iter();
        digits.try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Reads a scalar.
pub(crate) fn decode_scalar(bytes: [u8; ENCODED]) -> Result<Scalar, PointError> {
    let scalar: Option<Scalar> = Scalar::from_canonical_bytes(bytes).into();
    scalar.ok_or(PointError::Scalar)
}

/// The sum of multiples of public points by public scalars. Its time depends on the values.
pub(crate) fn combination(scalars: &[Scalar], points: &[RistrettoPoint]) -> RistrettoPoint {
    RistrettoPoint::vartime_multiscalar_mul(scalars, points)
}

/// ristretto255 as the group of a proof.
#[derive(Debug)]
pub(crate) enum Ristretto {}

impl PrimeGroup for Ristretto {
    type Scalar = Scalar;
    type Element = Point;

    fn scalar(wide: &[u8; 64]) -> Scalar {
        Scalar::from_bytes_mod_order_wide(wide)
    }

    fn encode(element: &Point) -> [u8; ENCODED] {
        element.bytes
    }

    fn multiply(scalar: &Scalar, element: &Point) -> Point {
        Point::new(scalar * element.point)
    }

    fn combine(scalars: &[Scalar], elements: &[Point]) -> Point {
        let points: Vec<_> = elements.iter().map(|element| element.point).collect();
        Point::new(combination(scalars, &points))
    }
}

/// The generator G.
pub(crate) fn generator() -> Point {
    Point::new(curve25519_dalek::constants::RISTRETTO_BASEPOINT_POINT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::masks::testing::ORDER;

    #[test]
    fn the_identity_is_refused() {
        assert_eq!(Point::decode([0; 32]), Err(PointError::Identity));
        let identity = RistrettoPoint::identity().compress().to_bytes();
        assert_eq!(Point::decode(identity), Err(PointError::Identity));
    }

    #[test]
    fn points_that_are_not_canonical_are_refused() {
        // 2²⁵⁵ − 19 + 0 as a second encoding of 0, a negative field element, the highest bit, no
        // square root.
        let mut modulus = [0xff; 32];
        (modulus[0], modulus[31]) = (0xed, 0x7f);
        let mut negative = generator().bytes();
        negative[0] ^= 1;
        let mut high = generator().bytes();
        high[31] |= 0x80;
        for bytes in [modulus, negative, high, [0xff; 32]] {
            assert_eq!(Point::decode(bytes), Err(PointError::Point), "{bytes:x?}");
        }
        let point = Point::decode(generator().bytes()).unwrap();
        assert_eq!(point, generator());
    }

    #[test]
    fn scalars_that_are_not_canonical_are_refused() {
        assert_eq!(decode_scalar(ORDER), Err(PointError::Scalar));
        assert_eq!(decode_scalar([0xff; 32]), Err(PointError::Scalar));
        let mut below = ORDER;
        below[0] -= 1;
        assert_eq!(decode_scalar(below), Ok(-Scalar::ONE));
    }
}
