//! The unit square in which ROC curves and calibration are drawn.

use maud::{Markup, html};

use super::super::svg::{AxisScale, px};

/// The side of the square with its texts.
pub(super) const SIZE: f64 = 260.0;
const LEFT: f64 = 40.0;
const BOTTOM: f64 = 36.0;

/// Both scales, from 0 to 1.
pub(super) fn scales() -> (AxisScale, AxisScale) {
    (
        AxisScale::new((0.0, 1.0), (LEFT, SIZE - 8.0)),
        AxisScale::new((0.0, 1.0), (SIZE - BOTTOM, 8.0)),
    )
}

/// A unit square with a diagonal.
pub(super) fn axes(below: &str, beside: &str) -> Markup {
    let (x, y) = scales();
    html! {
        @for tick in [0.0, 0.25, 0.5, 0.75, 1.0] {
            line.grid x1=(x.at(tick)) x2=(x.at(tick)) y1=(y.at(0.0)) y2=(y.at(1.0)) {}
            line.grid x1=(x.at(0.0)) x2=(x.at(1.0)) y1=(y.at(tick)) y2=(y.at(tick)) {}
        }
        @for tick in [0.0, 0.5, 1.0] {
            text.tick x=(x.at(tick)) y=(px(y.at(0.0) + 14.0)) text-anchor="middle" { (tick) }
            text.tick x=(px(LEFT - 5.0)) y=(px(y.at(tick) + 4.0)) text-anchor="end" { (tick) }
        }
        line.axis x1=(x.at(0.0)) x2=(x.at(1.0)) y1=(y.at(0.0)) y2=(y.at(1.0)) {}
        text.tick x=(x.at(0.5)) y=(SIZE - 6.0) text-anchor="middle" { (below) }
        text.tick text-anchor="middle" transform=(format!("translate(11 {}) rotate(-90)", y.at(0.5))) { (beside) }
    }
}
