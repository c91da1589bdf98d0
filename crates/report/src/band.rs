//! The median over silos, with the band that holds the middle half of them.

use maud::{Markup, html};

/// The quartiles of these values, at least one (linear between ranks).
pub(crate) fn quartiles(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|part| {
        let at = part * (values.len() - 1) as f64;
        let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
        low + at.fract() * (high - low)
    })
}

/// The median as a line, and the quartiles as a band: places from left to right, each with the
/// heights of lower quartile, median and upper quartile.
pub(crate) fn drawn(places: &[(f64, [f64; 3])]) -> Markup {
    let joined = |places: &mut dyn Iterator<Item = (f64, f64)>| -> String {
        let each = places.map(|(x, y)| format!("{x} {y}"));
        each.collect::<Vec<_>>().join("L")
    };
    let lower = joined(&mut places.iter().map(|(x, [low, _, _])| (*x, *low)));
    let upper = joined(&mut places.iter().rev().map(|(x, [_, _, high])| (*x, *high)));
    let median = joined(&mut places.iter().map(|(x, [_, middle, _])| (*x, *middle)));
    html! {
        @if !places.is_empty() {
            path.band d=(format!("M{lower}L{upper}Z")) { title { "middle half of the silos" } }
            path.median d=(format!("M{median}")) { title { "median of all silos" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_linear_between_ranks() {
        assert_eq!(quartiles(&mut [4.0, 1.0, 3.0, 2.0]), [1.75, 2.5, 3.25]);
        assert_eq!(quartiles(&mut [7.0]), [7.0; 3]);
    }

    #[test]
    fn the_band_goes_there_below_and_back_above() {
        let drawn = drawn(&[(0.0, [3.0, 2.0, 1.0]), (5.0, [6.0, 5.0, 4.0])]).into_string();
        assert!(drawn.contains("d=\"M0 3L5 6L5 4L0 1Z\""), "{drawn}");
        assert!(drawn.contains("d=\"M0 2L5 5\""), "{drawn}");
        assert_eq!(super::drawn(&[]).into_string(), "");
    }
}
