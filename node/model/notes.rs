//! What a node notes about its models beside the journal: how it prepares rows, and which model it
//! serves.

use std::path::Path;

use learn::export::HeldOut;
use methods::Params;
use methods::serving::{Candidate, ComparedOn, Measured, Tuned};
use protocol::Hash;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use task::data::Preparation;

use super::ModelError;
use crate::store::{self, StoreOpenError};

/// Name of the note about the preparation of rows.
const PREPARATION: &str = "preparation.json";
/// Name of the note about the model that is served.
const SERVED: &str = "served.json";
/// Name of the file of that model.
const MODEL: &str = "served.safetensors";

/// The model that a silo serves.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ServedNote {
    /// The round after which it was chosen.
    pub round: u64,
    /// The choice.
    pub candidate: Candidate,
    /// The rows that the choice is based on.
    pub on: ComparedOn,
    /// The comparison; empty where there was none.
    pub measured: Vec<Measured>,
    /// How the silo's own model was chosen, where it was tuned.
    pub local: Option<Tuned>,
    /// Metrics of the served model on the silo's held-out rows.
    pub held_out: Option<HeldOut>,
    /// Hash of the model's tensors, which are in a file beside this note; `None` where the silo predicts
    /// with several models.
    pub model: Option<String>,
}

/// What is noted about the model that a silo serves.
#[derive(Debug, Clone, PartialEq)]
pub struct Noted {
    /// The note.
    pub served: ServedNote,
    /// The bytes of the model; `None` where the silo predicts with several.
    pub model: Option<Vec<u8>>,
}

/// Notes how the silo prepares rows.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn keep_preparation(folder: &Path, preparation: &Preparation) -> Result<(), StoreOpenError> {
    store::keep_file(folder, PREPARATION, &json(preparation))
}

/// How the silo prepares rows, if its node noted it.
///
/// # Errors
/// [`ModelError`]: a note that cannot be read.
pub fn preparation(folder: &Path) -> Result<Option<Preparation>, ModelError> {
    read(folder, PREPARATION)
}

/// Notes which model the silo serves, and keeps it: first the model, then the note that names it.
///
/// # Errors
/// [`StoreOpenError`]: an error of the system.
pub fn keep_served(
    folder: &Path,
    served: &ServedNote,
    model: Option<&Params>,
) -> Result<(), StoreOpenError> {
    if let Some(model) = model {
        store::keep_file(folder, MODEL, &model.document())?;
    }
    store::keep_file(folder, SERVED, &json(served))
}

/// The model that the silo serves, if its node has chosen one.
///
/// # Errors
/// [`ModelError`]: a note that cannot be read. One whose model is another is as none: the node was
/// stopped between the two, and will write both again.
pub fn served(folder: &Path) -> Result<Option<Noted>, ModelError> {
    let Some(served) = read::<ServedNote>(folder, SERVED)? else {
        return Ok(None);
    };
    let Some(hash) = &served.model else {
        let model = None;
        return Ok(Some(Noted { served, model }));
    };
    let model = store::kept_file(folder, MODEL)?;
    let model = model.filter(|model| format!("{:#}", Hash::of(model)) == *hash);
    Ok(model.is_some().then_some(Noted { served, model }))
}

/// What is noted about the model that the silo serves, without that model; `None` where nothing can be read.
pub fn served_note(folder: &Path) -> Option<ServedNote> {
    read(folder, SERVED).ok().flatten()
}

fn json<T: Serialize>(note: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(note).expect("a note is texts, numbers and lists");
    text.push(b'\n');
    text
}

fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, ModelError> {
    let Some(bytes) = store::kept_file(folder, name)? else {
        return Ok(None);
    };
    let note = serde_json::from_slice(&bytes).map_err(|error| ModelError::Note {
        path: folder.join(name),
        why: error.to_string(),
    })?;
    Ok(Some(note))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use methods::{Layout, Role, TensorSpec};

    use super::*;

    #[test]
    fn a_note_is_read_back_with_the_model_that_it_names_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(served(folder).unwrap(), None);
        let layout = Layout::new(vec![TensorSpec::new("w", [1], Role::Weight)]).unwrap();
        let model = Params::from_values(&layout, &[2.0]);
        let note = ServedNote {
            round: 3,
            candidate: Candidate::FineTuned,
            on: ComparedOn::Folds,
            local: None,
            measured: Vec::new(),
            held_out: None,
            model: Some(format!("{:#}", Hash(model.hash()))),
        };
        keep_served(folder, &note, Some(&model)).unwrap();
        let found = served(folder).unwrap().unwrap();
        assert_eq!(found.served, note);
        assert_eq!(found.model, Some(model.document().to_vec()));
        // A crash between a later model and its note.
        let other = Params::from_values(&layout, &[3.0]);
        store::keep_file(folder, MODEL, &other.document()).unwrap();
        assert_eq!(served(folder).unwrap(), None);
        std::fs::write(folder.join(SERVED), "{").unwrap();
        let said = served(folder).unwrap_err().to_string();
        assert!(
            said.contains("served.json: ") && said.contains("remove the file"),
            "{said}"
        );
    }
}
