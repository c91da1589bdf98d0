//! The learners: implementations of [`methods::Learner`].

mod constant;
mod scale;
mod table;
mod training;

use std::sync::Arc;

use methods::{Layout, LearnError, Params};

pub use constant::ConstantLearner;
pub use table::TableLearner;

pub(crate) use scale::column_scale;
pub(crate) use table::{TrainingScript, family_layout};

/// Refuses a model of another layout.
pub(crate) fn fits(layout: &Arc<Layout>, model: &Params) -> Result<(), LearnError> {
    if model.layout() == layout {
        return Ok(());
    }
    Err(LearnError::Layout {
        expected: layout.describe(),
        got: model.layout().describe(),
    })
}
