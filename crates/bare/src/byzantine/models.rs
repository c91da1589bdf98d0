//! Contributions of models that are corrupted.

use bytes::Bytes;
use protocol::Hash;
use protocol::message::{Body, Contribution, EntryFields};

use super::{Actions, Attacker, Deviation, OutgoingFrame};

/// What is wrong with a model.
#[derive(Clone, Copy)]
pub(super) enum Corrupt {
    /// The last value of the model is not a number.
    Nan,
    /// The first tensor of the model has another shape, or another name.
    Shape,
}

/// Contributes a corrupted model of the same size in place of its own, and serves it. In a run
/// without models its contributions are honest.
pub(super) struct CorruptedModel {
    how: Corrupt,
    corrupted: Vec<(Hash, Bytes)>,
}

impl CorruptedModel {
    pub(super) fn new(how: Corrupt) -> Self {
        Self {
            how,
            corrupted: Vec::new(),
        }
    }

    /// The contribution with a corrupted model.
    fn corrupt(&mut self, attacker: &Attacker, own: &Contribution) -> Option<Contribution> {
        let blobs = attacker.blobs.as_ref()?;
        let mut model = blobs(&own.fields.blob)?.to_vec();
        match self.how {
            Corrupt::Nan => {
                let last = model.len().checked_sub(4)?;
                model[last..].copy_from_slice(&f32::NAN.to_le_bytes());
            }
            Corrupt::Shape => reshape(&mut model)?,
        }
        let model = Bytes::from(model);
        let blob = Hash::of(&model);
        if self.blob(&blob).is_none() {
            self.corrupted.push((blob, model));
        }
        let fields = EntryFields {
            blob,
            ..own.fields.clone()
        };
        Some(Contribution {
            fields,
            ..own.clone()
        })
    }
}

impl Deviation for CorruptedModel {
    fn send(
        &mut self,
        attacker: &mut Attacker,
        outgoing: &OutgoingFrame<'_>,
        actions: &mut Actions,
    ) -> bool {
        let Some(message) = outgoing.message else {
            return false;
        };
        let Body::Contribution(own) = &message.body else {
            return false;
        };
        let Some(corrupted) = self.corrupt(attacker, own) else {
            return false;
        };
        let body = Body::Contribution(corrupted);
        actions.send(
            outgoing.to,
            attacker.sign(message.round, message.view, body),
        );
        actions.misdeeds += 1;
        true
    }

    fn blob(&self, hash: &Hash) -> Option<Bytes> {
        let mut corrupted = self.corrupted.iter();
        let found = corrupted.find(|(corrupted, _)| corrupted == hash);
        found.map(|(_, model)| model.clone())
    }
}

/// Gives the first tensor of a safetensors document one dimension more if the header has padding to
/// spare, otherwise another name.
fn reshape(model: &mut [u8]) -> Option<()> {
    let length = usize::try_from(u64::from_le_bytes(model.get(..8)?.try_into().ok()?)).ok()?;
    let header = model.get_mut(8..8 + length)?;
    let at = header.windows(9).position(|part| part == b"\"shape\":[")? + 9;
    let padded = header.ends_with(b"  ");
    if padded && header[at] != b']' {
        header.copy_within(at..length - 2, at + 2);
        header[at..at + 2].copy_from_slice(b"1,");
    } else {
        header[2] = if header[2] == b'x' { b'y' } else { b'x' };
    }
    Some(())
}
