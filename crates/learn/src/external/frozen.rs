//! Tensors that a program has besides the shared model and does not train, such as those of a
//! pretrained model under adapters, or masks: they stay where they are, and must be the same at every
//! member.

use std::collections::BTreeMap;

/// What is agreed about a program's frozen tensors.
#[derive(Clone)]
pub(super) enum Frozen {
    /// Nothing.
    Open,
    /// They have this digest, or there are none.
    Agreed(Option<String>),
    /// The same, as the first silo of a simulation has them, with the digests of each.
    Like(Option<String>, BTreeMap<String, String>),
}

impl Frozen {
    /// The agreed digest.
    pub(super) fn digest(&self) -> Option<String> {
        match self {
            Self::Open => None,
            Self::Agreed(digest) | Self::Like(digest, _) => digest.clone(),
        }
    }

    /// Compares with the digest that a program says.
    ///
    /// # Errors
    /// A clause about the program: its frozen tensors are others than the agreed ones.
    pub(super) fn check(
        &self,
        found: Option<&str>,
        each: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let (agreed, which) = match self {
            Self::Open => return Ok(()),
            Self::Agreed(agreed) => (agreed, String::new()),
            Self::Like(agreed, first) => (agreed, apart(first, each)),
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
                "its frozen tensors are others than the agreed ones: {which}they have the digest \
                 {found:?}, the agreed ones {agreed:?}; every member needs the same ones, such as one \
                 pretrained model, or equal masks and tables; those that may differ have to travel with the \
                 model (`buffers` of rota.torch.Learner)"
            )),
        }
    }
}

/// The first tensor that differs from the first silo's, as a clause; nothing where none is known.
fn apart(first: &BTreeMap<String, String>, found: &BTreeMap<String, String>) -> String {
    let names = first.keys().chain(found.keys());
    let apart = names.filter(|name| first.get(*name) != found.get(*name));
    match apart.min() {
        None => String::new(),
        Some(name) if !found.contains_key(name) => format!("{name:?} is missing; "),
        Some(name) if !first.contains_key(name) => {
            format!("{name:?} is one that the first silo has not; ")
        }
        Some(name) => format!("{name:?} has other values than at the first silo; "),
    }
}
