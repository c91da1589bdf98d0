//! The messages between a silo and its learner, and their frames.
//!
//! A frame is a length of four bytes, little-endian, and as many bytes of JSON: one object with the
//! key `type`. Parameters are never in it: they lie in safetensors files, named by their paths.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use methods::Training;
use methods::learner::Split;
use serde::{Deserialize, Serialize};

use task::external::TensorConfig;

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;

/// Largest frame, in bytes.
pub(super) const LARGEST: u32 = 16 << 20;

/// Request of a silo to its program.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub(super) enum ProgramRequest<'a> {
    /// The first message. The answer is `hello`.
    Hello {
        protocol: u32,
        program: &'a str,
        /// Folder of all files that are exchanged; the program may keep files of its own there.
        folder: &'a Path,
    },
    /// Introduces a silo, by a number that later requests name. The answer is `opened`.
    Open(OpenSilo<'a>),
    /// Asks for the initial model, or personal state, of a seed. The answer is `done`.
    Initial {
        silo: usize,
        seed: u64,
        into: Option<&'a PathBuf>,
        personal_into: Option<&'a PathBuf>,
    },
    /// Asks for a training. The answers are any number of `progress`, then `trained`.
    Train {
        silo: usize,
        rows: Option<&'a PathBuf>,
        start: &'a PathBuf,
        personal: Option<&'a PathBuf>,
        into: &'a PathBuf,
        personal_into: Option<&'a PathBuf>,
        training: &'a Training,
        seed: u64,
        /// The round, from 1, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// The rounds of the federation, where they are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        rounds: Option<u64>,
        modifier: Option<Modifier<'a>>,
    },
    /// During a training: it is not needed any more. The answer to the training is then `stopped`,
    /// or `trained` where it had just ended.
    Stop,
    /// Asks for the metrics of a model. The answer is `measured`.
    Evaluate {
        silo: usize,
        rows: Option<&'a PathBuf>,
        model: &'a PathBuf,
        personal: Option<&'a PathBuf>,
        split: Split,
        /// The round in which the silo trained last, where there is one and it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// The rounds of the federation, where they are known.
        #[serde(skip_serializing_if = "Option::is_none")]
        rounds: Option<u64>,
    },
    /// Asks for the outputs of a model row by row, and the targets. The answer is `done`.
    Outputs {
        silo: usize,
        model: &'a PathBuf,
        personal: Option<&'a PathBuf>,
        split: Split,
        into: &'a PathBuf,
    },
    /// Asks what a model computes for a batch that the program makes up. The answer is `done`.
    Try {
        silo: usize,
        model: &'a PathBuf,
        into: &'a PathBuf,
    },
}

/// A silo that is introduced to the program.
#[derive(Debug, Clone, Serialize)]
pub(super) struct OpenSilo<'a> {
    /// Number of the silo in later requests: its position in the federation, from 0.
    pub(super) silo: usize,
    /// Name of the silo.
    pub(super) name: &'a str,
    /// Number of silos in the federation.
    pub(super) silos: usize,
    /// The silo's own seed.
    pub(super) seed: u64,
    /// The tensors of the agreed model.
    pub(super) layout: &'a [TensorConfig],
    /// Form of the rows that Rota hands over; `None` where the program has its own.
    pub(super) rows: Option<&'a RowsOf>,
    /// The agreed names of the columns of the program's rows, in order; empty if none are agreed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) columns: &'a [String],
    /// The agreed labels of the classes, in order; empty if none are agreed.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) classes: &'a [String],
}

/// Form of the rows that Rota hands over.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RowsOf {
    /// Numbers per row.
    pub(super) features: usize,
    /// The loss of the agreed model: `"squared"`, `"absolute"`, `"logistic"`, `"softmax"`, `"cox"` or
    /// `"dice"`.
    pub(super) loss: &'static str,
}

/// Terms that a strategy adds to the gradient `g` at the weights `w`:
/// `g + mu·(w − anchor) + shift`.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Modifier<'a> {
    pub(super) mu: f64,
    /// File of the anchor's tensors; those that it lacks have no proximal term.
    pub(super) anchor: &'a PathBuf,
    /// File of the tensors that are added to the gradient.
    pub(super) shift: Option<&'a PathBuf>,
    /// Names of tensors that are not trained.
    pub(super) frozen: Vec<String>,
}

/// Answer of the program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Reply {
    /// To `hello`.
    Hello {
        protocol: u32,
        #[serde(default)]
        name: String,
    },
    /// To `open`.
    Opened(Box<OpenedSilo>),
    /// During a training.
    Progress {
        step: u64,
        steps: u64,
        #[serde(default)]
        loss: Option<f64>,
    },
    /// To `train`.
    Trained {
        samples: u64,
        metrics: BTreeMap<String, Option<f64>>,
    },
    /// To `train`, after `stop`.
    Stopped,
    /// To `evaluate`.
    Measured {
        samples: u64,
        metrics: BTreeMap<String, Option<f64>>,
    },
    /// To `initial`, `outputs` and `try`.
    Done,
    /// To any request: it cannot be done, for this reason. The program is in order.
    Failed { why: String },
}

/// Description of a silo by its program.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenedSilo {
    /// Tensors of the program's model.
    pub(super) layout: Vec<TensorConfig>,
    /// Tensors of the silo's personal state, such as the optimiser's; none by default.
    #[serde(default)]
    pub(super) personal: Vec<TensorConfig>,
    /// Rows by part.
    pub(super) rows: PartsOf,
    /// Capabilities of the program beyond the core: `"gradients"`, `"initial"`, `"try"`.
    #[serde(default)]
    pub(super) capabilities: Vec<String>,
    /// The loss of the outputs that it can give row by row; absent where it gives none.
    #[serde(default)]
    pub(super) outputs: Option<OutputsOf>,
    /// Digest of the tensors that it has besides and does not train; absent where it has none.
    #[serde(default)]
    pub(super) frozen: Option<String>,
    /// The short digests of these tensors one by one, so that an error can name the first that
    /// differs.
    #[serde(default)]
    pub(super) held: BTreeMap<String, String>,
    /// Names of the columns of its rows, in the order in which the model takes them; empty where they
    /// have none.
    #[serde(default)]
    pub(super) columns: Vec<String>,
    /// Labels of the classes that the model tells apart, in the order of its outputs; empty where it has
    /// none or does not know them.
    #[serde(default)]
    pub(super) classes: Vec<String>,
}

impl OpenedSilo {
    /// Returns whether the program says that it can do `what`.
    pub(super) fn can(&self, what: &str) -> bool {
        self.capabilities.iter().any(|name| name == what)
    }

    /// Returns whether a program that was started again says the same of the silo. Initial values may differ:
    /// they are used before the first round only, and a program may draw new ones at every start.
    pub(super) fn is_like(&self, earlier: &Self) -> bool {
        let without = |opened: &Self| {
            let mut opened = opened.clone();
            let tensors = opened.layout.iter_mut().chain(&mut opened.personal);
            tensors.for_each(|tensor| tensor.initial = Default::default());
            opened
        };
        without(self) == without(earlier)
    }
}

/// Rows by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PartsOf {
    pub(super) train: usize,
    #[serde(default)]
    pub(super) validation: usize,
    #[serde(default)]
    pub(super) test: usize,
}

/// Meaning of a row's outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutputsOf {
    /// One per class, before the softmax; the target is the index of the class.
    Softmax,
    /// One, the log-odds of class 1.
    Logistic,
    /// Numbers, measured by squared error.
    Squared,
    /// Numbers, measured by absolute error.
    Absolute,
    /// One, the risk score of a time to an event; the targets are the event (1, or 0 where the row is censored), its
    /// time, and where rows are not observed from the beginning the entry.
    Cox,
}

/// Writes one frame.
///
/// # Errors
/// Those of the writer; a message that is larger than a frame may be.
pub(super) fn send(into: &mut dyn Write, request: &ProgramRequest<'_>) -> io::Result<()> {
    let json = serde_json::to_vec(request).map_err(io::Error::other)?;
    let len = u32::try_from(json.len()).ok().filter(|&len| len <= LARGEST);
    let len = len.ok_or_else(|| io::Error::other("the message is larger than a frame may be"))?;
    let mut frame = len.to_le_bytes().to_vec();
    frame.extend(json);
    into.write_all(&frame)?;
    into.flush()
}

/// Reads one frame; `None` at the end of the stream, between frames.
///
/// # Errors
/// In words: a stream that ends or breaks inside a frame, a frame that is too large, or that is no
/// message of this protocol.
pub(super) fn receive(from: &mut dyn Read) -> Result<Option<Reply>, String> {
    let mut len = [0; 4];
    let mut have = 0;
    while have < 4 {
        match from.read(&mut len[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err("its output ends inside a message".into()),
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("its output cannot be read: {error}")),
        }
    }
    let mut json = vec![0; size_of_frame(len)?];
    from.read_exact(&mut json)
        .map_err(|error| format!("its output ends inside a message: {error}"))?;
    reply_of(&json).map(Some)
}

/// Bytes of a frame behind its length.
fn size_of_frame(len: [u8; 4]) -> Result<usize, String> {
    let size = u32::from_le_bytes(len);
    if size > LARGEST {
        return Err(format!(
            "expected a message of at most {LARGEST} bytes, found a length of {size}: does it print \
             to its standard output, which belongs to the protocol?"
        ));
    }
    Ok(size as usize)
}

/// Place of the message of the first frame of these bytes; `None` where they do not have all of it.
///
/// # Errors
/// In words: a frame that is too large.
#[cfg_attr(not(unix), allow(dead_code))]
pub(super) fn frame_in(bytes: &[u8]) -> Result<Option<Range<usize>>, String> {
    let Some((&len, rest)) = bytes.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let size = size_of_frame(len)?;
    Ok((rest.len() >= size).then(|| 4..4 + size))
}

/// The message of a frame.
///
/// # Errors
/// In words: what is no message of this protocol.
pub(super) fn reply_of(json: &[u8]) -> Result<Reply, String> {
    serde_json::from_slice(json).map_err(|error| {
        let shown = String::from_utf8_lossy(&json[..json.len().min(200)]).into_owned();
        format!("expected a message of the learner protocol, found {shown:?}: {error}")
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(json: &str) -> Vec<u8> {
        let mut frame = (json.len() as u32).to_le_bytes().to_vec();
        frame.extend(json.as_bytes());
        frame
    }

    #[test]
    fn frames_are_read_one_after_another_until_the_end() {
        let two = [
            frame(r#"{"type": "done"}"#),
            frame(r#"{"type": "progress", "step": 1, "steps": 2, "loss": null}"#),
        ];
        let two = two.concat();
        let mut from = two.as_slice();
        assert_eq!(receive(&mut from), Ok(Some(Reply::Done)));
        let progress = Reply::Progress {
            step: 1,
            steps: 2,
            loss: None,
        };
        assert_eq!(receive(&mut from), Ok(Some(progress)));
        assert_eq!(receive(&mut from), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_refused_with_what_was_found() {
        let refused = |bytes: &[u8]| receive(&mut { bytes }).unwrap_err();
        assert!(refused(b"Epoch 1 of 3\n").contains("does it print to its standard output"));
        assert!(refused(&frame(r#"{"type": "thanks"}"#)).contains("thanks"));
        assert!(refused(&frame(r#"{"type": "done"}"#)[..9]).contains("inside a message"));
        assert!(refused(&[1, 0]).contains("inside a message"));
    }

    #[test]
    fn a_request_is_one_frame_of_json() {
        let (start, into) = (PathBuf::from("/x/start"), PathBuf::from("/x/into"));
        let training: Training = serde_json::from_str(
            r#"{"epochs": 2, "batch": 8, "optimiser": {"name": "sgd", "rate": 0.5}}"#,
        )
        .unwrap();
        let request = ProgramRequest::Train {
            silo: 3,
            rows: None,
            start: &start,
            personal: None,
            into: &into,
            personal_into: None,
            training: &training,
            seed: u64::MAX,
            round: Some(2),
            rounds: Some(5),
            modifier: None,
        };
        let mut sent = Vec::new();
        send(&mut sent, &request).unwrap();
        let (len, json) = sent.split_at(4);
        assert_eq!(len, (json.len() as u32).to_le_bytes());
        let read: serde_json::Value = serde_json::from_slice(json).unwrap();
        assert_eq!(read["type"], "train");
        assert_eq!(read["seed"], u64::MAX);
        assert_eq!(read["round"], 2);
        assert_eq!(read["rounds"], 5);
        assert_eq!(read["training"]["optimiser"]["rate"], 0.5);
    }
}
