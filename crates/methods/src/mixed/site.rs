//! The numbers that one site contributes to a round, for one model.

use super::symmetric::{from_triangle, product, triangle};
use super::{Prior, SiteMode, Varying};
use crate::matrix::Matrix;

/// Shape of the numbers that a site sends of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumsShape {
    /// Coefficients p, with the intercept.
    pub width: usize,
    /// Coefficients that vary.
    pub varying: Varying,
    /// `true` if W is sent whole (its upper triangle row by row), otherwise its diagonal.
    pub whole: bool,
    /// True if there is noise to estimate.
    pub noise: bool,
}

impl SumsShape {
    fn parts(self) -> [usize; 4] {
        let p = self.width;
        let information = if self.whole { p * (p + 1) / 2 } else { p };
        let varying = match self.varying {
            Varying::Nothing => 0,
            Varying::Intercept => 1,
            Varying::OneStrength | Varying::Slopes => p,
        };
        [p, information, varying, if self.noise { 3 } else { 0 }]
    }

    /// Numbers in all.
    pub fn len(self) -> usize {
        let [p, information, varying, noise] = self.parts();
        1 + p + information + 2 * varying + noise
    }

    /// Never: there is a score.
    pub fn is_empty(self) -> bool {
        false
    }
}

/// Numbers of one site for one model, or the sum over sites.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteSums {
    shape: SumsShape,
    numbers: Vec<f64>,
}

impl SiteSums {
    /// The numbers of a site. `information` is the sum S of the round before with the precision of the slopes,
    /// inverted; `None` in the first round, where the terms that need it are 0.
    pub fn of(
        shape: SumsShape,
        prior: Prior<'_>,
        mode: &SiteMode,
        information: Option<&Matrix>,
    ) -> Self {
        let (p, strengths) = (shape.width, prior.strengths);
        let curvature = &mode.curvature;
        let roots: Vec<f64> = strengths.iter().map(|t| t.sqrt()).collect();
        // W = M − M·r·A⁻¹·r·M.
        let scaled = Matrix::from_fn(p, p, |row, column| {
            roots[row] * mode.inner[(row, column)] * roots[column]
        });
        let taken = product(&product(curvature, &scaled), curvature);
        let information_here = Matrix::from_fn(p, p, |row, column| {
            curvature[(row, column)] - 0.5 * (taken[(row, column)] + taken[(column, row)])
        });
        let explained = |inverse: &Matrix| {
            let through = product(&product(&information_here, inverse), &information_here);
            (0..p)
                .map(move |at| through[(at, at)])
                .collect::<Vec<f64>>()
        };
        let explained = information.map_or_else(|| vec![0.0; p], explained);
        let [_, _, varying, _] = shape.parts();
        // G = I − W·diag T.
        let left = Matrix::from_fn(p, p, |row, column| {
            let identity = f64::from(u8::from(row == column));
            identity - information_here[(row, column)] * strengths[column]
        });
        let trace = information.map_or(0.0, |inverse| {
            let through = product(
                &product(&product(inverse, &left), curvature),
                &transposed(&left),
            );
            (0..p).map(|at| through[(at, at)]).sum::<f64>()
        });
        let mut numbers = vec![mode.conditional - mode.freedom() - trace];
        numbers.extend(&mode.score);
        if shape.whole {
            numbers.extend(triangle(&information_here));
        } else {
            numbers.extend((0..p).map(|at| information_here[(at, at)]));
        }
        numbers.extend((0..varying).map(|at| strengths[at] * mode.score[at] * mode.score[at]));
        numbers.extend((0..varying).map(|at| strengths[at] * explained[at]));
        if shape.noise {
            numbers.extend([mode.residual, mode.freedom(), trace]);
        }
        Self { shape, numbers }
    }

    /// Of these numbers; `None` for another number of them, or one that is not finite.
    pub fn read(shape: SumsShape, numbers: &[f64]) -> Option<Self> {
        let holds = numbers.len() == shape.len() && numbers.iter().all(|number| number.is_finite());
        holds.then(|| Self {
            shape,
            numbers: numbers.to_vec(),
        })
    }

    /// The numbers, in their order: [predictive](Self::predictive), score, W, T·z², T·diag(W·S⁻¹·W), and for a model with noise
    /// squared residuals, `p − tr A⁻¹`, `tr(S⁻¹·G·M·Gᵀ)`.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// Returns whether a site can have these numbers, or several together, each moved by `rounding` at most: no size
    /// beyond all bounds, nothing negative that is a square or a variance, and no entry of W larger than its diagonal
    /// allows.
    pub fn is_plausible(&self, rounding: f64) -> bool {
        let diagonal = self.diagonal();
        let not_negative = diagonal
            .iter()
            .chain(self.squares())
            .chain(self.explained())
            .chain(self.noise());
        let slack = SLACK + rounding;
        let roots = diagonal
            .iter()
            .map(|entry| (entry.max(0.0) + rounding).sqrt());
        let roots: Vec<f64> = roots.collect();
        let bounded = self.whole().is_none_or(|whole| {
            let entries =
                (0..roots.len()).flat_map(|row| (0..row).map(move |column| (row, column)));
            let mut entries = entries.map(|(row, column)| {
                whole[(row, column)].abs() <= roots[row] * roots[column] * (1.0 + SLACK) + slack
            });
            entries.all(|holds| holds)
        });
        let mut sizes = self.numbers.iter().map(|number| number.abs());
        bounded
            && sizes.all(|size| size <= LARGEST)
            && not_negative.into_iter().all(|&number| number >= -slack)
    }

    /// Adds the numbers of another site.
    ///
    /// # Panics
    /// If it has another shape.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.shape, other.shape, "sums of one model and round");
        let pairs = self.numbers.iter_mut().zip(&other.numbers);
        pairs.for_each(|(sum, number)| *sum += number);
    }

    fn part(&self, at: usize) -> &[f64] {
        let [p, information, varying, noise] = self.shape.parts();
        let lengths = [1, p, information, varying, varying, noise];
        let start: usize = lengths[..at].iter().sum();
        &self.numbers[start..start + lengths[at]]
    }

    /// The log likelihood given each site's coefficients, less the effective number of coefficients that its rows
    /// determine, `p − tr A⁻¹ + tr(S⁻¹·G·M·Gᵀ)`: about what new rows of the same sites would have (Vaida & Blanchard
    /// 2005).
    pub fn predictive(&self) -> f64 {
        self.part(0)[0]
    }

    /// z.
    pub fn score(&self) -> &[f64] {
        self.part(1)
    }

    /// W, where it is whole.
    pub fn whole(&self) -> Option<Matrix> {
        let entries = self.shape.whole.then(|| self.part(2))?;
        from_triangle(entries, self.shape.width)
    }

    /// The diagonal of W.
    pub fn diagonal(&self) -> Vec<f64> {
        let (p, part) = (self.shape.width, self.part(2));
        if !self.shape.whole {
            return part.to_vec();
        }
        let mut at = 0;
        let place = |row: usize| {
            let here = at;
            at += p - row;
            part[here]
        };
        (0..p).map(place).collect()
    }

    /// T·z² of the coefficients that may vary, from the intercept on.
    pub fn squares(&self) -> &[f64] {
        self.part(3)
    }

    /// T·diag(W·S⁻¹·W) of the same.
    pub fn explained(&self) -> &[f64] {
        self.part(4)
    }

    /// Squared residuals, `p − tr A⁻¹` and `tr(S⁻¹·G·M·Gᵀ)`; nothing without noise.
    pub fn noise(&self) -> &[f64] {
        self.part(5)
    }
}

/// The largest size of a number, far above what a site can have.
const LARGEST: f64 = 1e30;
/// Remainder that rounding may leave of a number that is 0.
const SLACK: f64 = 1e-6;

fn transposed(matrix: &Matrix) -> Matrix {
    Matrix::from_fn(matrix.columns(), matrix.rows(), |row, column| {
        matrix[(column, row)]
    })
}
