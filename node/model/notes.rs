//! Notes of a node about its models beside the journal: how it prepares rows, and which model it serves.
//!
//! Each note begins with the hash of its own text, so that one changed bit is noticed: another fill, or
//! another round, would predict otherwise and look as good.

use std::path::Path;

use formatting::numbers::plural;
use learn::export::HeldOut;
use methods::Params;
use methods::serving::{Candidate, ComparedOn, Measured, PersonalParts, Tuned};
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

/// The choice of a silo whose members agreed to decide together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DecisionNote {
    /// By its own rows and the sums of so many silos.
    Together {
        /// Silos in the sums of the candidate that most have.
        silos: u64,
    },
    /// By its own rows alone.
    Alone {
        /// Reason, in a sentence without a full stop.
        why: String,
    },
}

impl DecisionNote {
    /// In words, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Together { silos } => {
                format!(
                    "decided together, by the sums of {}",
                    plural(*silos as usize, "silo")
                )
            }
            Self::Alone { why } => format!("decided alone, because {why}"),
        }
    }
}

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
    /// Decision of the members, where they agreed to decide together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<DecisionNote>,
    /// Origin of the personal parts of the model.
    #[serde(default)]
    pub personal: PersonalParts,
    /// Tuning of the silo's local model, where it was tuned.
    pub local: Option<Tuned>,
    /// Metrics of the served model on the silo's held-out rows.
    pub held_out: Option<HeldOut>,
    /// Hash of the model's tensors, which are in a file beside this note; `None` where the silo predicts
    /// with several models.
    pub model: Option<String>,
}

/// Note about the model that a silo serves, with that model.
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

/// Returns how the silo prepares rows, if its node noted it.
///
/// # Errors
/// [`ModelError`]: a note that cannot be read.
pub fn preparation(folder: &Path) -> Result<Option<Preparation>, ModelError> {
    read(folder, PREPARATION).map_err(|why| ModelError::Note {
        path: folder.join(PREPARATION),
        why,
    })
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
/// [`ModelError::Served`]: note and model are not both there as they were written. The node was stopped
/// between the two, or something changed one of them.
pub fn served(folder: &Path) -> Result<Option<Noted>, ModelError> {
    let damaged = |name: &str, why: String| ModelError::Served {
        path: folder.join(name),
        why,
    };
    let model = store::kept_file(folder, MODEL);
    let model = model.map_err(|why| unusable(folder, why.to_string()))?;
    let served: ServedNote = match (read(folder, SERVED), &model) {
        (Ok(Some(served)), _) => served,
        (Ok(None), None) => return Ok(None),
        (Ok(None), Some(_)) => {
            let why = format!("it is gone, and the model that it is about, {MODEL}, is here");
            return Err(damaged(SERVED, why));
        }
        (Err(why), _) => return Err(damaged(SERVED, why)),
    };
    let Some(hash) = &served.model else {
        let model = None;
        return Ok(Some(Noted { served, model }));
    };
    match &model {
        None => Err(unusable(folder, "it is gone".into())),
        Some(bytes) if format!("{:#}", Hash::of(bytes)) != *hash => {
            let why = format!("it is not the model that {SERVED} is about, or it was changed");
            Err(unusable(folder, why))
        }
        Some(_) => Ok(Some(Noted { served, model })),
    }
}

/// Returns what is noted about the model that the silo serves, without that model; `None` where nothing can be read.
pub fn served_note(folder: &Path) -> Option<ServedNote> {
    read(folder, SERVED).ok().flatten()
}

/// That the file of the served model cannot be used.
pub(super) fn unusable(folder: &Path, why: String) -> ModelError {
    let path = folder.join(MODEL);
    ModelError::Served { path, why }
}

/// Text before the hash of a note's text, which has no such line.
const BEFORE_HASH: &[u8] = b"{\n  \"hash\": \"";
/// Text behind the hash.
const BEHIND_HASH: &[u8] = b"\",";

/// A note as text, behind the hash of that text.
fn json<T: Serialize>(note: &T) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(note).expect("a note is texts, numbers and lists");
    text.push(b'\n');
    let hash = format!("{:#}", Hash::of(&text));
    [BEFORE_HASH, hash.as_bytes(), BEHIND_HASH, &text[1..]].concat()
}

/// The text of a note without the hash that it begins with; `None` if it has another one. A note of an earlier
/// version of the program has none.
fn without_hash(bytes: Vec<u8>) -> Option<Vec<u8>> {
    let Some((hash, rest)) = bytes
        .strip_prefix(BEFORE_HASH)
        .and_then(|rest| rest.split_at_checked(64))
    else {
        return Some(bytes);
    };
    let text = [b"{", rest.strip_prefix(BEHIND_HASH)?].concat();
    (format!("{:#}", Hash::of(&text)).as_bytes() == hash).then_some(text)
}

/// Reads a note; `None` where there is none.
///
/// # Errors
/// A clause: what is wrong with it.
fn read<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<Option<T>, String> {
    let bytes = store::kept_file(folder, name).map_err(|why| why.to_string())?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let text = without_hash(bytes).ok_or("its text does not have the hash that it begins with")?;
    let note = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
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
            decided: Some(DecisionNote::Together { silos: 4 }),
            local: None,
            personal: PersonalParts::Trained,
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
        let said = served(folder).unwrap_err().to_string();
        assert!(said.contains("served.safetensors: it is not the model"));
        // One of an earlier version of the program, without a hash.
        keep_served(folder, &note, Some(&model)).unwrap();
        let plain = serde_json::to_vec_pretty(&note).unwrap();
        std::fs::write(folder.join(SERVED), plain).unwrap();
        assert_eq!(served(folder).unwrap().unwrap().served, note);
    }

    #[test]
    fn a_changed_bit_of_a_note_is_noticed_or_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let mut note = Preparation::none(2);
        note.fills = vec![0.1 + 0.2, 61.5];
        keep_preparation(folder, &note).unwrap();
        assert_eq!(preparation(folder).unwrap(), Some(note.clone()));
        let whole = std::fs::read(folder.join(PREPARATION)).unwrap();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                std::fs::write(folder.join(PREPARATION), bytes).unwrap();
                match preparation(folder) {
                    Ok(found) => assert_eq!(found, Some(note.clone()), "bit {bit} of byte {at}"),
                    Err(why) => assert!(why.to_string().contains("start the node"), "{why}"),
                }
            }
        }
        for few in 0..whole.len() {
            std::fs::write(folder.join(PREPARATION), &whole[..few]).unwrap();
            assert!(preparation(folder).is_err(), "{few} bytes");
        }
    }
}
