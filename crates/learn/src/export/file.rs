//! Models as safetensors files, with the card in the metadata.

use std::fs::File;
use std::io::Cursor;
use std::path::Path;

use methods::Params;
use serde_json::{Map, Value, json};

use super::card::{Card, FORMAT, Output, digits};
use super::error::ExportError;
use super::tensors::TensorFile;
use crate::file;

/// Key of the card in the metadata.
const CARD: &str = "rota.card";
/// Key of the hash of the card's text: a card in which one digit changed would predict otherwise.
const CARD_HASH: &str = "rota.card-hash";

/// A model and its card as one safetensors file. The tensors have the names and shapes of the
/// agreed model; the metadata have the card as JSON under `rota.card`, and the essentials in keys of
/// their own. Equal arguments give equal bytes.
pub fn safetensors(card: &Card, model: &Params) -> Vec<u8> {
    let layout = model.layout();
    let mut header = Map::new();
    let mut start = 0;
    for (at, tensor) in layout.tensors().iter().enumerate() {
        let end = start + 4 * layout.range(at).len();
        let info = json!({
            "dtype": "F32", "shape": tensor.shape, "data_offsets": [start, end],
        });
        header.insert(tensor.name.clone(), info);
        start = end;
    }
    header.insert("__metadata__".into(), metadata(card));
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut text);
    bytes.extend(model.values().iter().flat_map(|value| value.to_le_bytes()));
    bytes
}

fn metadata(card: &Card) -> Value {
    let origin = &card.origin;
    let text = serde_json::to_string(card).expect("a card is texts, numbers and lists");
    let hash = hash_of(&text);
    let target = match &card.output {
        Output::Classes { name, .. } => name.clone(),
        Output::Numbers { names, .. } | Output::Mask { names } => names.join(", "),
        Output::Survival { event, time, .. } => format!("{event}, {time}"),
    };
    json!({
        "format": "pt",
        CARD: text,
        CARD_HASH: hash,
        "rota.model": origin.which,
        "rota.federation": origin.federation,
        "rota.federation-id": origin.id,
        "rota.round": origin.round.to_string(),
        "rota.block": origin.block,
        "rota.certificate": origin.certificate,
        "rota.target": target,
        "rota.hash": card.hash,
        "rota.created": card.created,
    })
}

/// Reads a model and its card.
///
/// # Errors
/// [`ExportError::File`]: not a file that [`safetensors()`] wrote, or one that was changed since.
pub fn read(path: &Path) -> Result<(Card, Params), ExportError> {
    let wrong = |why: String| ExportError::File {
        path: path.to_owned(),
        why,
    };
    let tensors = opened(path).map_err(wrong)?;
    let metadata = tensors.metadata();
    let card = metadata.get(CARD).ok_or_else(|| {
        wrong(
            "it has no model card: expected a file that `rota model export` wrote, with the card in \
             its metadata, or of a simulation that was kept one of those in `exported/`"
                .into(),
        )
    })?;
    // A file of an earlier version of the program has none.
    if metadata
        .get(CARD_HASH)
        .is_some_and(|hash| *hash != hash_of(card))
    {
        return Err(wrong(
            "its model card was changed since it was written: export the model again".into(),
        ));
    }
    let raw: Value = serde_json::from_str(card).map_err(|error| wrong(damaged(&error)))?;
    let format = raw["format"].as_u64().unwrap_or(0);
    if format > FORMAT.into() {
        return Err(wrong(format!(
            "its card has format {format}, and this program reads formats up to {FORMAT}: use a newer \
             version of Rota"
        )));
    }
    let card: Card = serde_json::from_value(raw).map_err(|error| wrong(damaged(&error)))?;
    // Before as many numbers are read as the file has.
    let mut shapes = card.tensors.clone();
    shapes.sort();
    if tensors.shapes() != shapes {
        return Err(wrong(
            "its tensors are not those of its card: export the model again".into(),
        ));
    }
    let model = tensors.model().map_err(wrong)?;
    let found = digits(&model.hash());
    if found != card.hash {
        return Err(wrong(format!(
            "its tensors have the hash {found}, and its card is of a model with the hash {}: export the \
             model again",
            card.hash
        )));
    }
    Ok((card, model))
}

/// Reads the tensors of any safetensors file of single precision, from which a federation is to
/// start: an exported model, or a model of a node's state. A file whose tensors have more than `most` bytes is not
/// read.
///
/// # Errors
/// [`ExportError::File`].
pub fn start_model(path: &Path, most: u64) -> Result<Params, ExportError> {
    let wrong = |why: String| ExportError::File {
        path: path.to_owned(),
        why,
    };
    let tensors = opened(path).map_err(wrong)?;
    if tensors.size() > most {
        return Err(wrong(format!(
            "its tensors have {} bytes, and those of the agreed model at most {most}",
            tensors.size()
        )));
    }
    tensors.model().map_err(wrong)
}

/// The tensors of a file, none of which is read yet.
fn opened(path: &Path) -> Result<TensorFile<File>, String> {
    let (file, size) = file::open(path, file::MODEL).map_err(|error| error.to_string())?;
    TensorFile::of(file, size)
}

/// Reads the tensors of the bytes of a safetensors file of single precision.
///
/// # Errors
/// A description of the fault in the bytes.
pub fn tensors_of(bytes: &[u8]) -> Result<Params, String> {
    TensorFile::of(Cursor::new(bytes), bytes.len() as u64)?.model()
}

fn hash_of(card: &str) -> String {
    digits(blake3::hash(card.as_bytes()).as_bytes())
}

fn damaged(error: &serde_json::Error) -> String {
    format!("its model card cannot be read ({error}): export the model again")
}
