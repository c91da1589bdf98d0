//! Laplace's rule of succession, for the losses of any model of classes.

/// The loss of a row, or the sum of several, as if there were one row more of each class than these `rows`. `any` is what
/// it would be with each of the `classes` in its place, added up. A row counts `n/(n + c)`, and each class in its place
/// `1/(n + c)`: seven rows of one class are no reason for certainty.
pub(crate) fn with_one_more_of_each(loss: f64, any: f64, rows: f64, classes: f64) -> f64 {
    (rows * loss + any) / (rows + classes)
}

/// Checks the mean loss over seven rows of one of two classes, of a model that is as sure of it as this.
#[cfg(test)]
pub(crate) fn certainty_costs_one_row_more_of_each(mean: impl Fn(f64) -> f64) {
    let (more, less) = (libm::log(0.9), libm::log(0.1));
    assert!((mean(0.9) + (8.0 * more + less) / 9.0).abs() < 1e-12);
    // The rule of succession has the least loss.
    let best = mean(8.0 / 9.0);
    for other in [0.5, 0.8, 0.93, 0.999] {
        assert!(mean(other) > best, "{other}");
    }
}
