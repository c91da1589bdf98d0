//! Tensors that a program has besides the shared model and does not train, such as those of a
//! pretrained model under adapters, or masks: they stay where they are, and must be the same at every
//! member.

use std::collections::BTreeMap;

/// Agreement about a program's frozen tensors.
#[derive(Clone)]
pub(super) enum Frozen {
    /// Nothing.
    Open,
    /// The tensors have this digest, or there are none; with the digests of each, where they are known.
    Agreed(Option<String>, BTreeMap<String, String>),
    /// The tensors have this digest, as those of the first silo of a simulation; with the digests of each,
    /// where they are known.
    Like(Option<String>, BTreeMap<String, String>),
}

impl Frozen {
    /// The agreed digest.
    pub(super) fn digest(&self) -> Option<String> {
        match self {
            Self::Open => None,
            Self::Agreed(digest, _) | Self::Like(digest, _) => digest.clone(),
        }
    }

    /// The digests of each tensor, where they are known.
    pub(super) fn each(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        match self {
            Self::Open => &NONE,
            Self::Agreed(_, each) | Self::Like(_, each) => each,
        }
    }

    /// The name of the first tensor, where it is known.
    fn first(&self) -> Option<&String> {
        self.each().keys().next()
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
            Self::Agreed(agreed, first) => (agreed, apart(first, each, "agreed")),
            Self::Like(agreed, first) => (agreed, apart(first, each, "at the first silo")),
        };
        match (agreed.as_deref(), found) {
            (agreed, found) if agreed == found => Ok(()),
            (None, found) => Err(format!(
                "it has frozen tensors, and the agreement does not say which: write frozen = {:?} into \
                 [task.external]",
                found.unwrap_or_default()
            )),
            (Some(agreed), None) => Err(format!(
                "it has no frozen tensors, and the agreement names some{}, with the digest {agreed}",
                self.first()
                    .map_or_else(String::new, |name| format!(" ({name:?} is the first)"))
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

/// The first tensor that differs, as a clause; nothing where none is known. `known` has the digests that are
/// expected, and `whose` says where they come from.
fn apart(
    known: &BTreeMap<String, String>,
    found: &BTreeMap<String, String>,
    whose: &str,
) -> String {
    if known.is_empty() || found.is_empty() {
        return String::new();
    }
    let names = known.keys().chain(found.keys());
    let apart = names.filter(|name| known.get(*name) != found.get(*name));
    match apart.min() {
        None => String::new(),
        Some(name) if !found.contains_key(name) => format!("{name:?} is missing; "),
        Some(name) if !known.contains_key(name) => format!("{name:?} is none that is {whose}; "),
        Some(name) => format!("{name:?} has other values than {whose}; "),
    }
}
