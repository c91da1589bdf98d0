//! Eigenvalues of symmetric matrices, by faer on one thread.
//!
//! The same matrix gives the same bits on one machine. Between processors the last bits may differ;
//! bounds computed from them have a margin for that.

use faer::diag::Diag;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Mat, MatRef, Par};

use crate::Matrix;

/// Workspace for decompositions of one size.
pub(super) struct Spectrum {
    values: Diag<f64>,
    vectors: Mat<f64>,
    buffer: MemBuffer,
}

impl Spectrum {
    pub(super) fn new(n: usize) -> Self {
        let scratch = self_adjoint_evd_scratch::<f64>(
            n,
            ComputeEigenvectors::Yes,
            Par::Seq,
            Default::default(),
        );
        Self {
            values: Diag::zeros(n),
            vectors: Mat::zeros(n, n),
            buffer: MemBuffer::new(scratch),
        }
    }

    /// Ascending eigenvalues, and the unit eigenvectors as columns. `None` if a value is not
    /// finite or the iteration does not converge.
    pub(super) fn decompose(&mut self, matrix: &Matrix) -> Option<(Vec<f64>, MatRef<'_, f64>)> {
        self.run(matrix, true)?;
        Some((self.ascending(), self.vectors.as_ref()))
    }

    /// Ascending eigenvalues without eigenvectors.
    pub(super) fn eigenvalues(&mut self, matrix: &Matrix) -> Option<Vec<f64>> {
        self.run(matrix, false)?;
        Some(self.ascending())
    }

    fn run(&mut self, matrix: &Matrix, vectors: bool) -> Option<()> {
        if !matrix.values().iter().all(|value| value.is_finite()) {
            return None;
        }
        let n = matrix.rows();
        self_adjoint_evd(
            MatRef::from_column_major_slice(matrix.values(), n, n),
            self.values.as_mut(),
            vectors.then_some(self.vectors.as_mut()),
            Par::Seq,
            MemStack::new(&mut self.buffer),
            Default::default(),
        )
        .ok()
    }

    fn ascending(&self) -> Vec<f64> {
        self.values.column_vector().iter().copied().collect()
    }
}
