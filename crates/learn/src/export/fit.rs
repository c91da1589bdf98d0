//! The model family of an exported model, and whether tensors are of it.

use std::sync::Arc;

use methods::strategy::REST;
use methods::{Layout, Params};

use super::error::ExportError;
use crate::data::Standardise;
use crate::learners::family_layout;
use crate::models::{Loss, Model};
use crate::schema::Schema;
use crate::study::family;
use task::ModelConfig;

/// A model family with its loss, and a model of it.
pub(super) struct FittedFamily {
    pub(super) family: Box<dyn Model>,
    pub(super) loss: Loss,
    pub(super) params: Params,
}

impl FittedFamily {
    /// A model of this family.
    ///
    /// # Errors
    /// [`ExportError`]: tensors of another model.
    pub(super) fn new(
        schema: &Schema,
        config: &ModelConfig,
        standardise: Standardise,
        model: &Params,
    ) -> Result<Self, ExportError> {
        let (features, target) = (schema.encoded().len(), schema.target());
        let (family, loss) = family(config, features, &target)?;
        let layout = family_layout(&*family, features, &target, standardise);
        let found = model.layout();
        // Models made before the common scale had a rest lack it: it was 0.
        let lacking =
            layout.select(|tensor| tensor.name == REST && found.position(&tensor.name).is_none());
        let rest = Params::zeros(&lacking);
        let here = layout.select(|tensor| lacking.position(&tensor.name).is_none());
        let fits = shapes(&here) == shapes(found);
        let params = Params::gather(&layout, &[model, &rest]).filter(|_| fits);
        let params = params.ok_or_else(|| ExportError::Layout {
            expected: layout.describe(),
            found: found.describe(),
        })?;
        Ok(Self {
            family,
            loss,
            params,
        })
    }
}

fn shapes(layout: &Arc<Layout>) -> Vec<(&str, &[usize])> {
    let tensors = layout.tensors().iter();
    tensors
        .map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice()))
        .collect()
}
