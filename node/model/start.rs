//! Finds the model that a federation starts from, where it is a given one: of an earlier federation
//! that it continues, or what the proposer's program held.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use agreement::{Agreement, public_key};
use learn::export::start_model;
use methods::strategy::shared_part;
use methods::{Layout, Params};
use protocol::Hash;
use task::TaskConfig;
use task::external::StartFrom;

use super::held::HeldRounds;
use crate::store::{self, AGREEMENT};

/// Name of the file of a start model, beside the agreement and in the state folder.
pub const START: &str = "start.safetensors";

/// Reason for which the start model is not here.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No file.
    #[error(
        "this federation starts from {}, which this node does not have: put the file {START} that came with the \
         agreement into {}, or name it{} as `start-model` in node.toml",
        given.whose, beside.display(), given.or
    )]
    Nowhere {
        /// The model.
        given: GivenStart,
        /// The folder of the agreement.
        beside: PathBuf,
    },
    /// A file with another model.
    #[error(
        "{} has a model with the hash {found}, and the agreement starts from one with the hash \
         {agreed}: use the file that came with this agreement", path.display()
    )]
    Another {
        /// The file.
        path: PathBuf,
        /// Hash of the model in the file.
        found: Hash,
        /// The agreed hash.
        agreed: Hash,
    },
    /// A state folder without it.
    #[error(
        "the state in {} does not hold the model with the hash {agreed} that the agreement starts from: \
         use the file {START} that came with the agreement", folder.display()
    )]
    NotHeld {
        /// The folder.
        folder: PathBuf,
        /// The agreed hash.
        agreed: Hash,
    },
    /// A file or folder that cannot be used.
    #[error("the start model: {0}")]
    Unusable(String),
}

/// A model that an agreement starts from and does not describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenStart {
    /// Hash of its canonical safetensors document.
    pub model: Hash,
    /// Origin of the model, as text.
    whose: String,
    /// Alternative to naming a file, as text.
    or: &'static str,
    /// True if nodes fetch it from other members.
    is_fetched: bool,
}

impl GivenStart {
    /// That of an agreement; `None` where the first state follows from task, strategy and seed, or from
    /// the program of every member.
    pub fn of(agreement: &Agreement) -> Option<Self> {
        if let Some(continues) = &agreement.continues {
            return Some(Self {
                model: continues.model,
                whose: format!("a model of {continues}"),
                or: ", or the state folder of the node that took part in the earlier federation,",
                is_fetched: false,
            });
        }
        let TaskConfig::External(task) = &agreement.task else {
            return None;
        };
        let model = match task.start() {
            // 64 hexadecimal digits, as public keys are.
            StartFrom::Proposer => Hash(public_key(task.model.as_deref()?)?.0),
            StartFrom::Tensors | StartFrom::Learner => return None,
        };
        Some(Self {
            model,
            whose: "the values that the proposer's program held".into(),
            or: "",
            is_fetched: true,
        })
    }

    /// Returns whether a node that has no file of it fetches it from other members.
    pub fn is_fetched(&self) -> bool {
        self.is_fetched
    }
}

/// The model that the federation starts from, with the agreed hash: from `given`, a file or the state
/// folder of an earlier node; otherwise from the node's own `state`, or from beside the agreement.
/// `family` is the layout of the agreed model family.
///
/// # Errors
/// [`StartError`].
pub fn find_start(
    start: &GivenStart,
    given: Option<&Path>,
    state: &Path,
    beside: &Path,
    family: &Arc<Layout>,
) -> Result<Params, StartError> {
    let agreed = start.model;
    if let Some(given) = given {
        return if given.is_dir() {
            in_state(given, agreed, family)
        } else {
            in_file(given, agreed, family)
        };
    }
    let places = [state.join(START), beside.join(START)];
    let place = places.iter().find(|place| place.exists());
    let place = place.ok_or_else(|| StartError::Nowhere {
        given: start.clone(),
        beside: if beside == Path::new("") {
            ".".into()
        } else {
            beside.to_owned()
        },
    })?;
    in_file(place, agreed, family)
}

/// Keeps a copy of the start model in the state folder: every start of the node needs it.
///
/// # Errors
/// An error of the system.
pub fn keep_start(state: &Path, start: &Params) -> Result<(), store::StoreOpenError> {
    store::keep_file(state, START, &start.document())
}

fn in_file(path: &Path, agreed: Hash, family: &Layout) -> Result<Params, StartError> {
    let most = family.document_len() as u64;
    let model = start_model(path, most).map_err(|error| StartError::Unusable(error.to_string()))?;
    let found = Hash(model.hash());
    if found == agreed {
        Ok(model)
    } else {
        Err(StartError::Another {
            path: path.to_owned(),
            found,
            agreed,
        })
    }
}

fn in_state(folder: &Path, agreed: Hash, family: &Arc<Layout>) -> Result<Params, StartError> {
    let unusable = |error: String| StartError::Unusable(error);
    let earlier = Agreement::load_kept(&folder.join(AGREEMENT))
        .map_err(|error| unusable(error.to_string()))?;
    let held = HeldRounds::read(folder, &earlier).map_err(|error| unusable(error.to_string()))?;
    let models = held.rounds.iter().rev().flat_map(|round| &round.models);
    for model in models {
        // A blob may be gone, or of a round that agreed on a scale only.
        let Some(blob) = store::blob(folder, &model.hash) else {
            continue;
        };
        let Ok(model) = learn::export::tensors_of(&blob) else {
            continue;
        };
        let shared = shared_part(family, &model);
        if Hash(shared.hash()) == agreed {
            return Ok(shared);
        }
    }
    Err(StartError::NotHeld {
        folder: folder.to_owned(),
        agreed,
    })
}
