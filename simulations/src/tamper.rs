//! Silos that misbehave by script: an honest silo with a liar between it and the network.

use std::sync::Arc;

use bytes::Bytes;
use protocol::charter::Epoch;
use protocol::envelope::seal;
use protocol::message::{Body, Contribution, EntryFields, Message};
use protocol::net::Command;
use protocol::{Hash, MemberIndex, SecretKey};
use serde::{Deserialize, Serialize};
use silo::Blobs;

use crate::invariants::{Spoken, read};

/// How a silo misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Misdeed {
    /// Contributes a model with a value that is no number.
    Nan,
    /// Contributes a model whose tensors have other shapes.
    WrongShape,
    /// Signs its contributions with another key.
    ForeignSignature,
    /// Says its contributions of earlier rounds again, in place of new ones.
    Replay,
    /// Makes two different contributions.
    Twice,
}

/// The liar.
pub struct Tamper {
    misdeed: Misdeed,
    epoch: Arc<Epoch>,
    me: MemberIndex,
    key: SecretKey,
    honest: Arc<dyn Blobs>,
    bad: Vec<(Hash, Bytes)>,
    first: Option<Bytes>,
}

impl Tamper {
    /// Between the silo `me`, whose key and blobs these are, and the network.
    pub(crate) fn new(
        misdeed: Misdeed,
        epoch: Arc<Epoch>,
        me: MemberIndex,
        key: SecretKey,
        honest: Arc<dyn Blobs>,
    ) -> Self {
        Self {
            misdeed,
            epoch,
            me,
            key,
            honest,
            bad: Vec::new(),
            first: None,
        }
    }

    /// What goes out in place of what the silo says.
    pub fn outgoing(&mut self, command: Command) -> Vec<Command> {
        let Command::Send { to, frame } = &command else {
            return vec![command];
        };
        let Spoken::Message(message) = read(frame) else {
            return vec![command];
        };
        let Message {
            round,
            body: Body::Contribution(own),
            ..
        } = *message
        else {
            return vec![command];
        };
        let to = *to;
        let say = |frame| Command::Send { to, frame };
        match self.misdeed {
            Misdeed::Nan | Misdeed::WrongShape => {
                let instead = self.spoil(&own).unwrap_or(own);
                vec![say(self.seal(&self.key, round, instead))]
            }
            Misdeed::ForeignSignature => {
                let other = SecretKey::from_bytes(&self.key.derive("another key", &[]));
                vec![say(self.seal(&other, round, own))]
            }
            Misdeed::Replay => vec![say(self.first.get_or_insert(frame.clone()).clone())],
            Misdeed::Twice => {
                let nonce = self.key.derive("second nonce", &[&round.to_le_bytes()]);
                let second = Contribution { nonce, ..own };
                let second = self.seal(&self.key, round, second);
                vec![command, say(second)]
            }
        }
    }

    /// A spoiled model, if that is what is asked for.
    pub fn blob(&self, hash: &Hash) -> Option<Bytes> {
        self.bad
            .iter()
            .find(|(bad, _)| bad == hash)
            .map(|(_, blob)| blob.clone())
    }

    fn seal(&self, key: &SecretKey, round: u64, contribution: Contribution) -> Bytes {
        seal(
            &self.epoch,
            key,
            round,
            0,
            self.me,
            Body::Contribution(contribution),
        )
        .1
    }

    /// The contribution with a spoiled model of the same size.
    fn spoil(&mut self, own: &Contribution) -> Option<Contribution> {
        let mut model = self.honest.get(&own.fields.blob)?.to_vec();
        match self.misdeed {
            Misdeed::Nan => {
                let last = model.len().checked_sub(4)?;
                model[last..].copy_from_slice(&f32::NAN.to_le_bytes());
            }
            _ => reshape(&mut model)?,
        }
        let blob = Bytes::from(model);
        let hash = Hash::of(&blob);
        if self.blob(&hash).is_none() {
            self.bad.push((hash, blob));
        }
        let fields = EntryFields {
            blob: hash,
            ..own.fields.clone()
        };
        Some(Contribution {
            fields,
            ..own.clone()
        })
    }
}

/// Gives the first tensor of a safetensors document one dimension more, in the place of padding or,
/// where there is none, another name.
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
