//! Parts that all drawings use: coordinates, linear scales, ticks, colours of coalitions.

use maud::{Markup, html};

/// A coordinate: a tenth of a unit is enough.
pub fn px(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The CSS class of a coalition's colour; grey without a coalition. There are seven colours, which
/// repeat, so the coalition's letter is always shown too.
pub fn colour(coalition: Option<usize>) -> String {
    match coalition {
        Some(index) => format!("k{}", index % 7),
        None => "k-none".to_owned(),
    }
}

/// A drawing of that size in a box that scrolls sideways where the window is narrow.
pub fn drawing(label: &str, width: f64, height: f64, content: Markup) -> Markup {
    shrinking(label, (width, height), 0.8, content)
}

/// A drawing of that size, drawn at no less than this share of its width.
pub fn shrinking(label: &str, (width, height): (f64, f64), least: f64, content: Markup) -> Markup {
    framed((label, ""), (width, height), (least, None), content)
}

/// A drawing as [`drawing`], with a sentence that says what it shows, for those who cannot see it; hardly
/// larger than its size, so that small drawings do not have large letters.
pub fn described(label: &str, said: &str, size: (f64, f64), content: Markup) -> Markup {
    framed((label, said), size, (0.8, Some(1.15)), content)
}

/// A drawing of that size, drawn at no less and no more than these shares of its width.
fn framed(
    (label, said): (&str, &str),
    (width, height): (f64, f64),
    (least, most): (f64, Option<f64>),
    content: Markup,
) -> Markup {
    let mut style = format!("min-width:{}px", px(width * least));
    if let Some(most) = most {
        style.push_str(&format!(";max-width:{}px", px(width * most)));
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            svg role="img" viewBox=(format!("0 0 {} {}", px(width), px(height))) style=(style) {
                title { (label) }
                @if !said.is_empty() { desc { (said) } }
                (content)
            }
        }
    }
}

/// Moves heights, ascending, apart until each is so far from the next, and none is below `floor`, as far
/// as there is room above it.
pub fn spaced(heights: &mut [f64], apart: f64, floor: f64) {
    for at in 1..heights.len() {
        heights[at] = heights[at].max(heights[at - 1] + apart);
    }
    let mut most = floor;
    for height in heights.iter_mut().rev() {
        *height = height.min(most);
        most = *height - apart;
    }
}

/// A map from values to coordinates, linear or logarithmic.
#[derive(Debug, Clone, Copy)]
pub struct AxisScale {
    from: f64,
    to: f64,
    start: f64,
    end: f64,
    log: bool,
}

impl AxisScale {
    /// Maps `from..=to` to `start..=end`; an empty range of values goes to the middle.
    pub fn new((from, to): (f64, f64), (start, end): (f64, f64)) -> AxisScale {
        AxisScale {
            from,
            to,
            start,
            end,
            log: false,
        }
    }

    /// Maps a frame of values to `start..=end`.
    pub fn framed(frame: &AxisFrame, ends: (f64, f64)) -> AxisScale {
        if frame.log {
            AxisScale {
                log: true,
                ..AxisScale::new((frame.low.log10(), frame.high.log10()), ends)
            }
        } else {
            AxisScale::new((frame.low, frame.high), ends)
        }
    }

    /// The coordinate of a value.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.log10() } else { value };
        let span = self.to - self.from;
        let part = if span > 0.0 {
            (value - self.from) / span
        } else {
            0.5
        };
        px(self.start + part * (self.end - self.start))
    }

    /// About `wanted` round values in the range.
    pub fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.log {
            let (first, last) = (self.from.ceil() as i32, self.to.floor() as i32);
            let every = ((last - first) as usize).div_ceil(wanted.max(1)).max(1);
            return (first..=last)
                .step_by(every)
                .map(|power| 10f64.powi(power))
                .collect();
        }
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
pub fn tick_text(ticks: &[f64], value: f64) -> String {
    if let [a, b, ..] = ticks
        && (b / a - (b / a).round()).abs() < 1e-9
        && (*a < 1.0 / 1024.0 || *b >= 1e5)
        && (b / a) >= 9.9
    {
        return format!("1e{}", value.log10().round());
    }
    let step = match ticks {
        [a, b, ..] => b - a,
        _ => 1.0,
    };
    let decimals = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    crate::numbers::value(value, decimals)
}

/// The smallest and the largest finite value, with a margin.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
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

/// The values that an axis shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AxisFrame {
    /// The smallest.
    pub low: f64,
    /// The largest.
    pub high: f64,
    /// True if the axis is logarithmic: for values over more than four powers of ten.
    pub log: bool,
    /// Values above it that would flatten all others: how many, and the largest.
    pub above: Option<(usize, f64)>,
}

impl AxisFrame {
    /// Times the median from which on a value would flatten the others.
    const ABSURD: f64 = 1e3;
    /// The largest ratio of values on a linear axis.
    const LINEAR: f64 = 1e4;

    /// The frame of these values; `None` if none is finite.
    pub fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let mut finite: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        finite.sort_by(f64::total_cmp);
        let mut sizes: Vec<f64> = finite.iter().map(|value| value.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let median = *sizes.get(sizes.len() / 2)?;
        let most = if median > 0.0 {
            Self::ABSURD * median
        } else {
            f64::INFINITY
        };
        let above: Vec<f64> = finite
            .iter()
            .copied()
            .filter(|value| *value > most)
            .collect();
        let shown = || finite.iter().copied().filter(|value| *value <= most);
        let (low, high) = range(shown())?;
        let (least, largest) = (
            shown().fold(f64::INFINITY, f64::min),
            shown().fold(0.0, f64::max),
        );
        let log = least > 0.0 && largest / least > Self::LINEAR;
        Some(Self {
            low: if log { least / 1.3 } else { low },
            high: if log { largest * 1.3 } else { high },
            log,
            above: above.last().map(|last| (above.len(), *last)),
        })
    }

    /// The value, or the edge of the frame that it is beyond.
    pub fn inside(&self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_map_their_ends_and_accept_an_empty_range() {
        let scale = AxisScale::new((10.0, 20.0), (0.0, 100.0));
        assert_eq!([10.0, 15.0, 20.0].map(|v| scale.at(v)), [0.0, 50.0, 100.0]);
        assert_eq!(AxisScale::new((3.0, 3.0), (0.0, 100.0)).at(3.0), 50.0);
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = AxisScale::new((0.3, 9.7), (0.0, 1.0)).ticks(5);
        assert_eq!(ticks, [2.0, 4.0, 6.0, 8.0]);
        assert_eq!(tick_text(&ticks, 4.0), "4");
        let fine = AxisScale::new((0.0, 0.1), (0.0, 1.0)).ticks(5);
        assert_eq!(fine.len(), 6);
        assert_eq!(tick_text(&fine, 0.02), "0.02");
    }

    #[test]
    fn one_absurd_value_does_not_flatten_the_rest() {
        let frame =
            AxisFrame::of([40.0, 45.0, 50.0, 1.2e28].into_iter()).unwrap_or_else(|| panic!());
        assert!(frame.high < 60.0 && !frame.log, "{frame:?}");
        assert_eq!(frame.above, Some((1, 1.2e28)));
        assert!((frame.inside(1e28) - frame.high).abs() < 1e-9);
        assert_eq!(AxisFrame::of([f64::NAN].into_iter()), None);
    }

    #[test]
    fn values_over_many_powers_of_ten_have_a_logarithmic_axis() {
        let frame =
            AxisFrame::of([1e2, 1e9, 1e18, 1e22, 1e28].into_iter()).unwrap_or_else(|| panic!());
        assert!(frame.log, "{frame:?}");
        let scale = AxisScale::framed(&frame, (0.0, 100.0));
        let ticks = scale.ticks(5);
        assert!(ticks.len() > 2 && ticks.len() < 9, "{ticks:?}");
        assert_eq!(tick_text(&ticks, 1e10), "1e10");
        assert!(scale.at(1e9) > 10.0 && scale.at(1e9) < 60.0);
    }

    #[test]
    fn labels_are_moved_apart_and_back_above_the_floor() {
        let mut heights = [10.0, 12.0, 95.0, 96.0];
        spaced(&mut heights, 14.0, 100.0);
        assert_eq!(heights, [10.0, 24.0, 86.0, 100.0]);
    }

    #[test]
    fn ranges_leave_out_what_is_not_finite() {
        assert_eq!(range([f64::NAN, f64::INFINITY].into_iter()), None);
        let (low, high) = range([1.0, f64::NAN, 2.0].into_iter()).unwrap_or_default();
        assert!(low < 1.0 && high > 2.0 && high < 2.1);
    }
}
