//! Conic programs, solved by the interior-point solver clarabel.

use std::ops::Range;

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSolver, IPSolver, SolverStatus,
    SupportedConeT::{self, ExponentialConeT, NonnegativeConeT, SecondOrderConeT},
};

/// Relative duality gap and residuals of a solved program.
const TOLERANCE: f64 = 1e-9;

/// Reduced tolerance, where the solver stalls; a worse solution is an error.
pub(super) const REDUCED: f64 = 1e-5;

/// `minimise Σ costᵢ xᵢ + ½ Σ curveᵢ xᵢ²` over free variables `x`, with affine expressions of them
/// in cones.
#[derive(Default)]
pub(super) struct Conic {
    costs: Vec<f64>,
    curves: Vec<f64>,
    /// `A` in triplets and `b`: expressions are `b − Ax`.
    rows: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<f64>,
    constants: Vec<f64>,
    cones: Vec<SupportedConeT<f64>>,
}

/// An optimum.
pub(super) struct Optimum {
    /// The values of the variables.
    pub(super) variables: Vec<f64>,
    /// The solver's dual value: a lower bound of the optimum, as far as its dual point is feasible.
    pub(super) bound: f64,
    /// True if [`TOLERANCE`] was reached, not only [`REDUCED`].
    pub(super) full: bool,
}

/// `Σ coefficient · variable + constant`.
pub(super) struct Affine {
    pub(super) terms: Vec<(usize, f64)>,
    pub(super) constant: f64,
}

impl Affine {
    /// From variables with their coefficients.
    pub(super) fn of(terms: impl IntoIterator<Item = (usize, f64)>) -> Self {
        let terms = terms.into_iter().collect();
        Self {
            terms,
            constant: 0.0,
        }
    }

    /// Adds a constant.
    pub(super) fn plus(mut self, constant: f64) -> Self {
        self.constant += constant;
        self
    }
}

impl Conic {
    /// Adds variables with the given cost and curvature (≥ 0); returns their indices.
    pub(super) fn variables(&mut self, count: usize, cost: f64, curve: f64) -> Range<usize> {
        let start = self.costs.len();
        self.costs.resize(start + count, cost);
        self.curves.resize(start + count, curve);
        start..start + count
    }

    /// Requires the expression to be at least 0.
    pub(super) fn at_least_zero(&mut self, expression: Affine) {
        self.push(expression);
        self.cones.push(NonnegativeConeT(1));
    }

    /// Requires the first expression to be at least the Euclidean norm of the others.
    pub(super) fn second_order(&mut self, expressions: impl IntoIterator<Item = Affine>) {
        let start = self.constants.len();
        for expression in expressions {
            self.push(expression);
        }
        self.cones
            .push(SecondOrderConeT(self.constants.len() - start));
    }

    /// Requires `exp(exponent) ≤ above`.
    pub(super) fn exponential(&mut self, exponent: Affine, above: Affine) {
        self.push(exponent);
        self.push(Affine::of([]).plus(1.0));
        self.push(above);
        self.cones.push(ExponentialConeT());
    }

    fn push(&mut self, expression: Affine) {
        let row = self.constants.len();
        for (column, coefficient) in expression.terms {
            self.rows.push(row);
            self.columns.push(column);
            self.values.push(-coefficient);
        }
        self.constants.push(expression.constant);
    }

    /// Solves the program on one thread; the result is reproducible on one machine.
    ///
    /// # Errors
    /// The status of the solver, if it found no solution.
    pub(super) fn solve(self) -> Result<Optimum, String> {
        let variables = self.costs.len();
        let curved: Vec<usize> = (0..variables).filter(|&at| self.curves[at] > 0.0).collect();
        let curves = curved.iter().map(|&at| self.curves[at]).collect();
        let quadratic =
            CscMatrix::new_from_triplets(variables, variables, curved.clone(), curved, curves);
        let expressions = CscMatrix::new_from_triplets(
            self.constants.len(),
            variables,
            self.rows,
            self.columns,
            self.values,
        );
        let settings = DefaultSettings {
            verbose: false,
            max_threads: 1,
            max_step_fraction: 0.9,
            direct_solve_method: "qdldl".into(),
            tol_gap_abs: TOLERANCE,
            tol_gap_rel: TOLERANCE,
            tol_feas: TOLERANCE,
            reduced_tol_gap_abs: REDUCED,
            reduced_tol_gap_rel: REDUCED,
            reduced_tol_feas: REDUCED,
            ..DefaultSettings::default()
        };
        let mut solver = DefaultSolver::new(
            &quadratic,
            &self.costs,
            &expressions,
            &self.constants,
            &self.cones,
            settings,
        )
        .map_err(|error| error.to_string())?;
        solver.solve();
        let solution = solver.solution;
        let full = match solution.status {
            SolverStatus::Solved => true,
            SolverStatus::AlmostSolved => false,
            other => return Err(other.to_string()),
        };
        Ok(Optimum {
            variables: solution.x,
            bound: solution.obj_val_dual,
            full,
        })
    }
}
