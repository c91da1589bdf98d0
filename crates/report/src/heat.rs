//! Matrices as fields of one colour in steps.

use maud::{Markup, html};

use super::svg::px;

/// Steps of the scale, from the ground to the full colour.
pub(crate) const STEPS: usize = 9;

/// Returns how strong the colour of a step is.
pub(crate) fn opacity(step: usize) -> f64 {
    (100.0 * step as f64 / (STEPS - 1) as f64).round() / 100.0
}

/// The cells of each step as one path: a hundred silos have ten thousand cells. `step` is that of a row
/// and a column.
pub(crate) fn field(n: usize, cell: f64, step: impl Fn(usize, usize) -> usize) -> Markup {
    let mut paths = vec![String::new(); STEPS];
    for row in 0..n {
        let steps: Vec<usize> = (0..n).map(|column| step(row, column)).collect();
        let mut column = 0;
        while column < n {
            let own = steps[column].min(STEPS - 1);
            let run = steps[column..]
                .iter()
                .take_while(|&&other| other == steps[column]);
            let run = run.count();
            let (x, y) = (px(cell * column as f64), px(cell * row as f64));
            let wide = px(cell * run as f64);
            paths[own].push_str(&format!("M{x} {y}h{wide}v{cell}h-{wide}z"));
            column += run;
        }
    }
    let side = px(cell * n as f64);
    html! {
        rect.under x="0" y="0" width=(side) height=(side) {}
        @for (step, path) in paths.iter().enumerate().skip(1).filter(|(_, path)| !path.is_empty()) {
            path.heat opacity=(opacity(step)) d=(path) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_step_are_one_piece_and_step_one_is_ground() {
        let step = |row: usize, column: usize| if row == column { 0 } else { 4 };
        let drawn = field(3, 5.0, step).into_string();
        assert_eq!(drawn.matches("<path").count(), 1);
        assert_eq!(drawn.matches('M').count(), 4, "{drawn}");
        assert!(
            drawn.contains("opacity=\"0.5\"") && drawn.contains("M5 0h10v5h-10z"),
            "{drawn}"
        );
        assert_eq!((opacity(0), opacity(STEPS - 1)), (0.0, 1.0));
    }
}
