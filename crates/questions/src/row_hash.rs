//! A hash of a row's values, by which rows are held out or dealt to folds: the same at whatever site a row is.

use crate::table::CellValue;

/// 2⁵³, the numbers that 53 bits make.
const UNIT: f64 = 9_007_199_254_740_992.0;

/// A number from 0 to below 1 that follows from these values of a row alone, so rows with equal ones have the same.
pub(crate) fn part_of(row: impl Iterator<Item = CellValue>) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for value in row {
        // So that 0 and −0 are one value; no number is written as all ones.
        let bits = value
            .known()
            .map_or(u64::MAX, |number| (number + 0.0).to_bits());
        for byte in bits.to_le_bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    // The last step of splitmix64 spreads every bit over all (Steele, Lea & Flood 2014).
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    (hash >> 11) as f64 / UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_from_values_alone_and_are_spread_evenly() {
        let part = |values: &[f64]| part_of(values.iter().copied().map(CellValue::Known));
        assert_eq!(part(&[0.0, 2.0]).to_bits(), part(&[-0.0, 2.0]).to_bits());
        assert_ne!(part(&[2.0, 0.0]).to_bits(), part(&[0.0, 2.0]).to_bits());
        let missing = part_of([CellValue::Missing].into_iter());
        assert_ne!(missing.to_bits(), part(&[0.0]).to_bits());
        let parts = (0..10_000).map(|row| part(&[f64::from(row), 1.0]));
        let mut tenths = [0; 10];
        parts.for_each(|part| tenths[(part * 10.0) as usize] += 1);
        assert!(
            tenths.iter().all(|rows| (880..1120).contains(rows)),
            "{tenths:?}"
        );
    }
}
