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
    /// Returns what the sealed message of a member of these epochs proves with these blobs: the epoch, the member, and
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use privacy::masks::{Listed, MemberKeys, ReadyList, Root, Secret, Transcript};
    use protocol::Epochs;
    use protocol::message::{Blob, KeyList, Keys, ListDocument, MaskedVector, PublicKeys, Ready};

    use super::super::tests::{epochs, key};
    use super::*;

    /// The list of all four members, and the transcript that the last of them deals for it.
    fn list_and_transcript(epoch: &Epoch) -> (Vec<u8>, Vec<u8>) {
        let keys = |by: u16| {
            let secret = Secret::new([by as u8 + 1; 32]);
            MemberKeys::derive(secret, &epoch.id.0, 1, by).unwrap()
        };
        let ready = |by: u16| {
            let points = keys(by);
            let public = PublicKeys {
                exchange: points.public().exchange.bytes(),
                share: points.public().share.bytes(),
            };
            let (member, plan) = (MemberIndex(by), Hash([1; 32]));
            let of = Keys { plan, public };
            let body = Body::Keys(of);
            let (message, _) = envelope::sign(epoch, &key(by as u8), 1, 0, member, body);
            Ready {
                member,
                keys: of,
                signature: message.signature,
            }
        };
        let document = ListDocument {
            federation: epoch.federation,
            epoch: epoch.id,
            round: 1,
            plan: Hash([1; 32]),
            state: Hash([0; 32]),
            keys: KeyList {
                ready: (0..4).map(ready).collect(),
            },
            sums: Vec::new(),
        };
        let listed = document.keys.ready.iter().map(|ready| Listed {
            position: ready.member.0,
            exchange: ready.keys.public.exchange,
            share: ready.keys.public.share,
        });
        let listed: Vec<_> = listed.collect();
        let ready = ReadyList::new(Root(document.root().0), 4, 3, &listed).unwrap();
        let transcript = Transcript::deal(&ready, &keys(3)).unwrap();
        (document.blob().to_vec(), transcript)
    }

    /// The signed vector of the last member that names these blobs.
    fn vector(epoch: &Epoch, list: &[u8], transcript: &[u8]) -> Message {
        let blob = |bytes: &[u8]| Blob {
            hash: Hash::of(bytes),
            size: bytes.len() as u64,
        };
        let of = MaskedVector {
            list: Hash::of(list),
            vector: blob(b"numbers"),
            transcript: blob(transcript),
        };
        let body = Body::MaskedVector(of);
        envelope::sign(epoch, &key(3), 1, 5, MemberIndex(3), body).0
    }

    fn why(file: &EvidenceFile, of: &Epochs) -> String {
        let checked = file.check(Path::new("x.json"), Some(&of.now));
        checked.unwrap_err().to_string()
    }

    #[test]
    fn a_wrong_transcript_is_proven_by_the_message_that_names_it_and_a_right_one_is_not() {
        let of = epochs("north");
        let (epoch, lineage) = (&of.now, Lineage::of(&of));
        let (list, right) = list_and_transcript(epoch);
        let mut wrong = right.clone();
        *wrong.last_mut().unwrap() ^= 1;
        let file = |transcript: &[u8]| {
            let vector = vector(epoch, &list, transcript);
            EvidenceFile::of_transcript(&lineage, epoch, &vector, (&list, transcript))
        };
        assert_eq!(file(&right), None);
        let found = file(&wrong).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = found.keep(folder.path()).unwrap();
        let read = EvidenceFile::read(&path).unwrap();
        assert_eq!(read, found);
        let said = read.check(&path, Some(epoch)).unwrap().sentence();
        assert!(said.starts_with("silo 3 broke the rules"), "{said}");
        assert!(said.contains("a wrong transcript in round 1"), "{said}");
        assert!(
            said.contains("no member that follows the rules sends it"),
            "{said}"
        );
        // The right one, another list, another member's message, or none of the blobs.
        let blobs = |list: &[u8], transcript: &[u8]| TranscriptBlobs {
            list: hex(list),
            transcript: hex(transcript),
        };
        let with = |transcript| EvidenceFile {
            transcript,
            ..found.clone()
        };
        let other = why(&with(Some(blobs(&list, &right))), &of);
        assert!(
            other.contains("is not the one that its message names"),
            "{other}"
        );
        let (foreign, _) = list_and_transcript(&epochs("south").now);
        let other = why(&with(Some(blobs(&foreign, &wrong))), &of);
        assert!(
            other.contains("is not the one that its message names"),
            "{other}"
        );
        let none = why(&with(None), &of);
        assert!(none.contains("proves nothing"), "{none}");
        let mut forged = found.clone();
        forged.messages = vec![hex(&envelope::reseal(epoch, &vector(epoch, &list, &right)))];
        forged.transcript = Some(blobs(&list, &right));
        assert!(why(&forged, &of).contains("the transcript in it is right"));
    }
}
