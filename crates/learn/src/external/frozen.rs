//! Tensors that a program has besides the shared model and does not train, such as those of a
//! pretrained model under adapters: they stay where they are, and must be the same at every member.

/// What is agreed about a program's frozen tensors.
#[derive(Clone)]
pub(super) enum Frozen {
    /// Nothing.
    Open,
    /// They have this digest, or there are none.
    Agreed(Option<String>),
}

impl Frozen {
    /// Compares with the digest that a program says.
    ///
    /// # Errors
    /// A clause about the program: its frozen tensors are others than the agreed ones.
    pub(super) fn check(&self, found: Option<&str>) -> Result<(), String> {
        let Self::Agreed(agreed) = self else {
            return Ok(());
        };
        match (agreed.as_deref(), found) {
            (agreed, found) if agreed == found => Ok(()),
            (None, found) => Err(format!(
                "it has frozen tensors, and the agreement does not say which: write frozen = {:?} into \
                 [task.external]",
                found.unwrap_or_default()
            )),
            (Some(agreed), None) => Err(format!(
                "it has no frozen tensors, and the agreement names some, with the digest {agreed}"
            )),
            (Some(agreed), Some(found)) => Err(format!(
                "its frozen tensors are others than the agreed ones: they have the digest {found:?}, \
                 the agreed ones {agreed:?}; every member needs the same pretrained model"
            )),
        }
    }
}
