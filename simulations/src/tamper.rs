//! Scripted Byzantine silos: an honest silo, and a tamper between it and the network that changes
//! what the silo sends.

use std::sync::Arc;

use bytes::Bytes;
use protocol::charter::Epoch;
use protocol::envelope::seal;
use protocol::message::{Body, Contribution, EntryFields, Message};
use protocol::net::Command;
use protocol::{Hash, MemberIndex, SecretKey};
use serde::{Deserialize, Serialize};
use silo::Blobs;

use crate::invariants::{Frame, read_frame};

/// How a Byzantine silo misbehaves. The bare simulator knows more ways, see
/// [`Behaviour`](crate::bare::Behaviour); these are the ones that need models or that a scenario
/// can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Misbehaviour {
    /// Contributes a model with a value that is not a number (NaN).
    Nan,
    /// Contributes a model whose tensors have other shapes.
    WrongShape,
    /// Signs its contributions with another key.
    WrongKey,
    /// Sends its first contribution again in place of every later one.
    Replay,
    /// Sends two different contributions in a round.
    DoubleContribution,
}

/// Changes what one silo sends.
pub struct Tamper {
    misbehaviour: Misbehaviour,
    epoch: Arc<Epoch>,
    me: MemberIndex,
    key: SecretKey,
    honest: Arc<dyn Blobs>,
    bad: Vec<(Hash, Bytes)>,
    first: Option<Bytes>,
}

impl Tamper {
    /// A tamper for the silo `me`, with the silo's key and blobs.
    pub(crate) fn new(
        misbehaviour: Misbehaviour,
        epoch: Arc<Epoch>,
        me: MemberIndex,
        key: SecretKey,
        honest: Arc<dyn Blobs>,
    ) -> Self {
        Self {
            misbehaviour,
            epoch,
            me,
            key,
            honest,
            bad: Vec::new(),
            first: None,
        }
    }

    /// The commands that go out in place of one command of the silo.
    pub fn outgoing(&mut self, command: Command) -> Vec<Command> {
        let Command::Send { to, frame } = &command else {
            return vec![command];
        };
        let Frame::Message(message) = read_frame(frame) else {
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
        let send = |frame| Command::Send { to, frame };
        match self.misbehaviour {
            Misbehaviour::Nan | Misbehaviour::WrongShape => {
                let instead = self.spoil(&own).unwrap_or(own);
                vec![send(self.seal(&self.key, round, instead))]
            }
            Misbehaviour::WrongKey => {
                let other = SecretKey::from_bytes(&self.key.derive("another key", &[]));
                vec![send(self.seal(&other, round, own))]
            }
            Misbehaviour::Replay => vec![send(self.first.get_or_insert(frame.clone()).clone())],
            Misbehaviour::DoubleContribution => {
                let nonce = self.key.derive("second nonce", &[&round.to_le_bytes()]);
                let second = Contribution { nonce, ..own };
                let second = self.seal(&self.key, round, second);
                vec![command, send(second)]
            }
        }
    }

    /// The spoiled model of that hash, if there is one.
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

    /// The contribution with a spoiled model of the same size in place of its own.
    fn spoil(&mut self, own: &Contribution) -> Option<Contribution> {
        let mut model = self.honest.get(&own.fields.blob)?.to_vec();
        match self.misbehaviour {
            Misbehaviour::Nan => {
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
