//! Numbers in sentences.

/// A number with four significant digits at most.
pub(super) fn short(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || !size.is_finite() {
        return number.to_string();
    }
    let after = (3 - size.log10().floor() as i32).clamp(0, 12);
    let text = format!("{number:.0$}", after.unsigned_abs() as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_four_digits_and_no_empty_ones() {
        let texts = [0.0, 5.0, 0.025, 55.26789, 1234.6, 123_456.7, -0.113].map(short);
        assert_eq!(
            texts,
            ["0", "5", "0.025", "55.27", "1235", "123457", "-0.113"]
        );
    }
}
