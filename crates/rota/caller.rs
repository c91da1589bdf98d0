//! The process that started this one, as `rota.simulate` of the Python package does: it may settle rounds by a rule
//! of its own, and look at every round.
//!
//! It listens at a Unix socket. Each question is a connection of its own, with one frame each way, of the form that
//! the learner protocol has: four bytes of length, little-endian, and a JSON object. Models are not in them, but in
//! files that are named.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use methods::strategy::{Custom, CustomRule, GroupCoefficients, SeenRound, provide_rule};
use methods::{Matrix, Params};
use serde::Deserialize;
use serde_json::{Value, json};
use simulations::RoundDone;

/// Largest answer, in bytes.
const LARGEST: u32 = 256 << 20;

/// The caller, at its socket.
#[derive(Debug, Clone)]
pub(crate) struct Caller(PathBuf);

impl Caller {
    pub(crate) fn at(socket: &Path) -> Self {
        Self(socket.to_owned())
    }

    /// Makes the caller's rules known to this process.
    pub(crate) fn provide(&self, rules: &[Custom]) {
        for Custom { rule: name, .. } in rules {
            let rule = RuleOfCaller {
                caller: self.clone(),
                name: name.clone(),
            };
            provide_rule(name.clone(), Arc::new(rule));
        }
    }

    /// Tells of a round; whether the federation is to end with it. It does where the caller is gone.
    pub(crate) fn ends(&self, done: &RoundDone) -> bool {
        let losses: serde_json::Map<String, Value> = done
            .losses
            .iter()
            .map(|(silo, loss)| (silo.clone(), json!(loss)))
            .collect();
        let question = json!({
            "type": "round", "round": done.round, "rounds": done.rounds, "losses": losses,
        });
        match self.ask(&question) {
            Ok(answer) => answer["end"] == true,
            Err(_) => true,
        }
    }

    /// The answer to a question.
    ///
    /// # Errors
    /// A clause: nobody answers, or the caller says why it does not.
    fn ask(&self, question: &Value) -> Result<Value, String> {
        let answer = self.exchanged(question);
        let answer =
            answer.map_err(|error| format!("the process that runs it does not answer: {error}"))?;
        match answer["why"].as_str() {
            Some(why) => Err(why.to_owned()),
            None => Ok(answer),
        }
    }

    #[cfg(unix)]
    fn exchanged(&self, question: &Value) -> io::Result<Value> {
        let mut stream = std::os::unix::net::UnixStream::connect(&self.0)?;
        let body = serde_json::to_vec(question)?;
        let length = u32::try_from(body.len()).map_err(io::Error::other)?;
        stream.write_all(&length.to_le_bytes())?;
        stream.write_all(&body)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > LARGEST {
            return Err(io::Error::other("the answer is too large"));
        }
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body)?;
        Ok(serde_json::from_slice(&body)?)
    }

    #[cfg(not(unix))]
    fn exchanged(&self, _: &Value) -> io::Result<Value> {
        Err(io::Error::other(
            "sockets of Unix are not there on this system",
        ))
    }
}

/// A rule that the caller has.
struct RuleOfCaller {
    caller: Caller,
    name: String,
}

/// The caller's answer to a round whose outcome is computed.
#[derive(Deserialize)]
struct RuleAnswer {
    assignment: Vec<u32>,
    groups: Vec<Vec<i64>>,
    kept: Vec<Vec<i64>>,
    numbers: Vec<f64>,
}

impl CustomRule for RuleOfCaller {
    fn settle(&self, seen: &SeenRound<'_>) -> Result<GroupCoefficients, String> {
        let folder = seen.with_models.then(tempfile::tempdir).transpose();
        let folder =
            folder.map_err(|error| format!("there is no folder for its models: {error}"))?;
        let written = |what: &str, models: &[Params]| -> Result<Vec<PathBuf>, String> {
            let Some(folder) = &folder else {
                return Ok(Vec::new());
            };
            let write = |(nth, model): (usize, &Params)| {
                let path = folder.path().join(format!("{what}-{nth}.safetensors"));
                let done = fs::write(&path, model.document());
                done.map_err(|error| format!("its models cannot be written: {error}"))?;
                Ok(path)
            };
            models.iter().enumerate().map(write).collect()
        };
        let question = json!({
            "type": "settle",
            "rule": self.name,
            "round": seen.round,
            "starts": seen.starts.len(),
            "kept": seen.kept.len(),
            "entries": seen.entries.len(),
            "groups": seen.groups,
            "rows": seen.rows,
            "reported": seen.reported,
            "gram": seen.gram.as_ref().map(rows_of),
            "scores": seen.scores.map(|scores| {
                let row = |row| (0..scores.len()).map(move |column| scores.at(row, column)).collect::<Vec<_>>();
                (0..scores.len()).map(row).collect::<Vec<_>>()
            }),
            "members": seen.members,
            "numbers": seen.numbers,
            "files": {
                "starts": written("start", seen.starts)?,
                "kept": written("kept", seen.kept)?,
                "entries": written("entry", &seen.entries)?,
            },
        });
        let answer = self.caller.ask(&question)?;
        let settled: RuleAnswer =
            serde_json::from_value(answer).map_err(|error| error.to_string())?;
        Ok(GroupCoefficients {
            assignment: settled.assignment,
            groups: settled.groups,
            kept: settled.kept,
            numbers: settled.numbers,
        })
    }
}

fn rows_of(matrix: &Matrix) -> Vec<&[f64]> {
    (0..matrix.rows()).map(|row| matrix.row(row)).collect()
}
