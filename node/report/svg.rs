//! Parts that all drawings use: coordinates, linear scales, ticks, colours of coalitions.

use maud::{Markup, html};

/// A coordinate: a tenth of a unit is enough.
pub(crate) fn px(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The CSS class of a coalition's colour; grey without a coalition. There are seven colours, which
/// repeat, so the coalition's letter is always shown too.
pub(crate) fn colour(coalition: Option<usize>) -> String {
    match coalition {
        Some(index) => format!("k{}", index % 7),
        None => "k-none".to_owned(),
    }
}

/// A drawing of that size in a box that scrolls sideways where the window is narrow.
pub(crate) fn drawing(label: &str, width: f64, height: f64, content: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            svg role="img" viewBox=(format!("0 0 {} {}", px(width), px(height)))
                style=(format!("min-width:{}px", px(width * 0.8))) {
                title { (label) }
                (content)
            }
        }
    }
}

/// A linear map from values to coordinates.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// Maps `from..=to` to `start..=end`; an empty range of values goes to the middle.
    pub(crate) fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> Scale {
        Scale {
            from,
            to,
            start,
            end,
        }
    }

    /// The coordinate of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let span = self.to - self.from;
        let part = if span > 0.0 {
            (value - self.from) / span
        } else {
            0.5
        };
        px(self.start + part * (self.end - self.start))
    }

    /// About `wanted` round values in the range.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        let span = self.to - self.from;
        if !(span > 0.0 && span.is_finite()) {
            return vec![self.from];
        }
        let step = round_step(span / wanted.max(1) as f64);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step + 1e-9).floor() as i64;
        (first..=last).map(|tick| tick as f64 * step).collect()
    }
}

/// The one of 1, 2, 5, 10, 20, … that is nearest to `step` from below, or a little above it.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let steps = [10.0, 5.0, 2.0, 1.0].map(|factor| factor * power);
    steps
        .into_iter()
        .find(|round| *round <= step * 1.4)
        .unwrap_or(power)
}

/// A tick's value, as short as its step allows.
pub(crate) fn tick_text(ticks: &[f64], value: f64) -> String {
    let step = match ticks {
        [a, b, ..] => b - a,
        _ => 1.0,
    };
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    super::numbers::value(value, decimals)
}

/// The smallest and the largest finite value, with a margin.
pub(crate) fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
    if low > high {
        return None;
    }
    let margin = match high - low {
        0.0 => (low.abs() * 0.05).max(0.5),
        span => span * 0.04,
    };
    Some((low - margin, high + margin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_map_their_ends_and_accept_an_empty_range() {
        let scale = Scale::new((10.0, 20.0), (0.0, 100.0));
        assert_eq!([10.0, 15.0, 20.0].map(|v| scale.at(v)), [0.0, 50.0, 100.0]);
        assert_eq!(Scale::new((3.0, 3.0), (0.0, 100.0)).at(3.0), 50.0);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = Scale::new((0.3, 9.7), (0.0, 1.0)).ticks(5);
        assert_eq!(ticks, [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(tick_text(&ticks, 4.0), "4");
        let fine = Scale::new((0.0, 0.1), (0.0, 1.0)).ticks(5);
        assert_eq!(fine.len(), 6);
        assert_eq!(tick_text(&fine, 0.02), "0.02");
    }

    #[test]
    fn ranges_leave_out_what_is_not_finite() {
        assert_eq!(range([f64::NAN, f64::INFINITY].into_iter()), None);
        let (low, high) = range([1.0, f64::NAN, 2.0].into_iter()).unwrap_or_default();
        assert!(low < 1.0 && high > 2.0 && high < 2.1);
    }
}
