//! Evidence of a wrong transcript: one signed message, and the blobs that it names by their hashes. Whoever has
//! them can check the transcript as the lead did that found it.

use protocol::accusation::{Lineage, statement};
use protocol::envelope;
use protocol::identity::Strict;
use protocol::message::{Body, Message};
use protocol::{Epoch, Hash, MemberIndex};
use serde::{Deserialize, Serialize};
use silo::rounds::wrong_transcript;

use super::{EvidenceFile, FORMAT_OF_ONE, bytes, hex};

/// The kind of this fault.
const KIND: &str = "wrong-transcript";

/// What a masked vector names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TranscriptBlobs {
    /// The list that the vector was masked for, in hexadecimal.
    pub list: String,
    /// The transcript, in hexadecimal.
    pub transcript: String,
}

impl EvidenceFile {
    /// The file of evidence that a masked vector of this epoch has a wrong transcript; `None` if the blobs are
    /// not those that it names, or the transcript is right.
    pub fn of_transcript(
        lineage: &Lineage,
        epoch: &Epoch,
        vector: &Message,
        (list, transcript): (&[u8], &[u8]),
    ) -> Option<Self> {
        let charge = charge(epoch, vector, list, transcript).ok()?;
        let messages = vec![hex(&envelope::reseal(epoch, vector))];
        let file = Self::new(lineage, epoch, vector.sender, (charge, KIND), messages);
        Some(Self {
            format: FORMAT_OF_ONE.into(),
            transcript: Some(TranscriptBlobs {
                list: hex(list),
                transcript: hex(transcript),
            }),
            ..file
        })
    }
}

impl TranscriptBlobs {
    /// What the sealed message of a member of these epochs proves with these blobs: the epoch, the member, and
    /// what it did.
    ///
    /// # Errors
    /// Why they prove nothing.
    pub(super) fn charge<'a>(
        &self,
        epochs: &'a [Epoch],
        frame: &[u8],
    ) -> Result<(&'a Epoch, MemberIndex, String), String> {
        let list = bytes("the list", &self.list)?;
        let transcript = bytes("the transcript", &self.transcript)?;
        let said = statement(epochs, &Strict, frame);
        let (epoch, message) = said.map_err(|why| why.to_string())?;
        let charge = charge(epoch, &message, &list, &transcript)?;
        Ok((epoch, message.sender, charge))
    }
}

fn charge(epoch: &Epoch, of: &Message, list: &[u8], transcript: &[u8]) -> Result<String, String> {
    let Body::MaskedVector(vector) = &of.body else {
        return Err("its message names no transcript".into());
    };
    if vector.list != Hash::of(list) || vector.transcript.hash != Hash::of(transcript) {
        return Err(
            "the list or the transcript in it is not the one that its message names".into(),
        );
    }
    let wrong = wrong_transcript(epoch, of.sender, list, transcript);
    let why = wrong.ok_or("the transcript in it is right")?;
    Ok(format!("a wrong transcript in round {} ({why})", of.round))
}
