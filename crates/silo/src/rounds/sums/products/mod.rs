//! Products of columns: what a silo's units add to the sums of products, and the model that is solved from the
//! opened sum. The formulas are those of [`privacy::least_squares`].

use std::ops::Range;
use std::sync::Arc;

use methods::learner::{LeastSquares, UnitGradients, UnitRows};
use methods::{Layout, Params, Role};
use privacy::least_squares::{RowNorms, RowProducts};
use protocol::parameters::Release;

use super::SumBasis;
use super::units::{NoisySum, UnitNumbers};

/// How a model is solved from one sum.
pub(super) struct SolvedOnce {
    products: RowProducts,
    /// The agreed ridge; without one it follows from the noise.
    ridge: Option<f64>,
}

impl SolvedOnce {
    /// That of an agreement, for linear models of so many numbers.
    ///
    /// # Errors
    /// The agreed numbers are out of range, or there are too many features.
    pub(super) fn new(release: Release, numbers: usize) -> Result<Self, String> {
        let Release::Once {
            rows_norm,
            targets_within,
            ridge,
        } = release
        else {
            return Err("the model is not solved at once".into());
        };
        let norms = RowNorms::new(rows_norm.value(), targets_within.value());
        let norms = norms.map_err(|error| error.to_string())?;
        let products = RowProducts::new(numbers.saturating_sub(1), norms).map_err(|error| {
            format!("{error}; choose `mechanism = \"gradients\"`, or fewer columns")
        })?;
        Ok(Self {
            products,
            ridge: ridge.map(|ridge| ridge.value()),
        })
    }

    /// Returns the number of numbers that a sum has.
    fn numbers(&self) -> usize {
        self.products.numbers()
    }

    /// Gives `with` the numbers of every unit.
    ///
    /// # Errors
    /// The learner's model is none that least squares finds, or its rows cannot be used.
    fn units(
        &self,
        units: &dyn UnitGradients,
        unit: UnitRows,
        with: &mut dyn FnMut(&[f64]),
    ) -> Result<(), String> {
        let mut numbers = vec![0.0; self.numbers()];
        let given = linear(units)?.unit_rows(unit, &mut |rows| {
            numbers.fill(0.0);
            for (features, target) in rows {
                self.products.add(features, *target, &mut numbers);
            }
            with(&numbers);
        });
        given.map_err(|error| error.to_string())
    }

    /// The model of an opened sum of so many rows, in steps of this size, where every number has noise with
    /// this standard deviation.
    ///
    /// # Errors
    /// A number of it is not finite.
    fn solved(
        &self,
        layout: &Arc<Layout>,
        (sum, rows): (&[i64], u64),
        step: f64,
        noise: f64,
    ) -> Result<Params, String> {
        let ridge = self
            .ridge
            .unwrap_or_else(|| self.products.ridge(noise, rows));
        let solved = self.products.solve(sum, step, rows, ridge);
        let solved: Vec<_> = solved.into_iter().map(|value| value as f32).collect();
        if !solved.iter().all(|value| value.is_finite()) {
            return Err("the model that follows from the sum is not finite".into());
        }
        let (weights, intercept) = places(layout)?;
        Ok(Params::build(layout, |values| {
            values[weights].copy_from_slice(&solved[..solved.len() - 1]);
            values[intercept].copy_from_slice(&solved[solved.len() - 1..]);
        }))
    }
}

impl UnitNumbers for SolvedOnce {
    fn count(&self) -> usize {
        self.numbers()
    }

    fn check(&self, of: SumBasis<'_>, units: &dyn UnitGradients) -> Result<(), String> {
        check(units, &of.base.gate.layout)
    }

    fn each(
        &self,
        start: &Params,
        units: &dyn UnitGradients,
        unit: UnitRows,
        add: &mut dyn FnMut(&[f64]),
    ) -> Result<f64, String> {
        self.units(units, unit, add)?;
        let loss = units.unit_gradients(start, UnitRows::One, &mut |_| {});
        loss.map_err(|error| error.to_string())
    }

    fn model(&self, of: SumBasis<'_>, sum: &NoisySum<'_>) -> Result<Params, String> {
        let told = (sum.total, sum.rows);
        self.solved(&of.base.gate.layout, told, sum.step, sum.noise)
    }
}

fn linear(units: &dyn UnitGradients) -> Result<&dyn LeastSquares, String> {
    let none = "the model is none that is solved from one sum: choose a linear model with squared loss or the \
                logistic one, or `mechanism = \"gradients\"`";
    units.least_squares().ok_or_else(|| none.into())
}

/// Returns where the weights of a linear model lie, and its intercept.
fn places(layout: &Layout) -> Result<(Range<usize>, Range<usize>), String> {
    let place = |role| {
        let mut tensors = layout.tensors().iter();
        let at = tensors.position(|tensor| tensor.role == role);
        at.map(|at| layout.range(at))
    };
    let both = place(Role::Weight).zip(place(Role::Bias));
    let both = both.filter(|(_, bias)| layout.tensors().len() == 2 && bias.len() == 1);
    both.ok_or_else(|| {
        let what = layout.describe();
        format!("expected a model of weights and an intercept, found one of {what}")
    })
}

/// Returns whether a silo's models are solved from one sum.
///
/// # Errors
/// They are not, or consist of something else than weights and an intercept.
fn check(units: &dyn UnitGradients, layout: &Layout) -> Result<(), String> {
    linear(units)?;
    places(layout).map(|_| ())
}

#[cfg(test)]
mod tests;
