//! The running programs of a process, shared by its silos, and the folder of exchanged files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use methods::params::Gate;
use methods::{Layout, LearnError, Params};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use tempfile::TempDir;

use super::child::{Child, silent};
use super::config::LearnerConfig;
use super::wire::{Reply, Request};
use crate::data::DataError;

/// The running programs of a process. Each serves several silos, one request at a time; a silo
/// always has the same one.
pub struct Programs {
    config: LearnerConfig,
    folder: TempDir,
    path: PathBuf,
    places: Vec<Mutex<Place>>,
    files: AtomicU64,
}

/// One program, if it runs, and the silos that it knows.
#[derive(Default)]
struct Place {
    child: Option<Child>,
    opened: BTreeSet<usize>,
}

/// Why a request was not carried out.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The program says so, and is in order.
    Refused(String),
    /// The program has ended, hangs, or gives wrong answers: it is started again.
    Broken(String),
    /// The request was not needed any more.
    Stopped,
}

/// A conversation with one program.
pub(super) struct Talk<'a> {
    child: &'a mut Child,
    pub(super) timeout: Duration,
}

impl Talk<'_> {
    pub(super) fn send(&mut self, request: &Request<'_>) -> Result<(), Trouble> {
        self.child.send(request).map_err(Trouble::Broken)
    }

    /// The next message; `None` if there is none for this long.
    pub(super) fn receive(&mut self, within: Duration) -> Result<Option<Reply>, Trouble> {
        match self.child.receive(within).map_err(Trouble::Broken)? {
            Some(Reply::Failed { why }) => Err(Trouble::Refused(why)),
            other => Ok(other),
        }
    }

    /// Sends a request and waits for the one answer.
    pub(super) fn ask(&mut self, request: &Request<'_>, when: &str) -> Result<Reply, Trouble> {
        self.send(request)?;
        let reply = self.receive(self.timeout)?;
        reply.ok_or_else(|| Trouble::Broken(silent(self.timeout, when)))
    }
}

/// An answer that does not belong to the question.
pub(super) fn unexpected(expected: &str, found: &Reply) -> Trouble {
    Trouble::Broken(format!("expected {expected}, found {found:?}"))
}

impl Programs {
    /// At most as many programs as `config` says, for `silos` silos. They are started when they are
    /// needed.
    ///
    /// # Errors
    /// [`DataError::Config`]: a wrong configuration, or no folder for the files.
    pub fn new(config: &LearnerConfig, silos: usize) -> Result<Arc<Self>, DataError> {
        config.check()?;
        let folder = tempfile::Builder::new().prefix("rota-learner-").tempdir();
        let folder = folder.map_err(|error| {
            DataError::Config(format!(
                "`learner` needs a folder for files in {}: {error}",
                std::env::temp_dir().display()
            ))
        })?;
        let places = config.programs.min(silos).max(1);
        Ok(Arc::new(Self {
            path: folder.path().to_owned(),
            folder,
            places: (0..places).map(|_| Mutex::default()).collect(),
            config: config.clone(),
            files: AtomicU64::new(0),
        }))
    }

    /// The configuration.
    pub fn config(&self) -> &LearnerConfig {
        &self.config
    }

    /// Carries out a request of the silo at position `silo`: starts the program where it does not
    /// run, introduces the silo by `open` where the program does not know it, and then talks.
    pub(super) fn with<T>(
        &self,
        silo: usize,
        open: impl FnOnce(&mut Talk<'_>) -> Result<(), Trouble>,
        request: impl FnOnce(&mut Talk<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let place = &self.places[silo % self.places.len()];
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if place.child.as_mut().is_some_and(Child::is_over) {
            place.end();
        }
        let Place { child, opened } = &mut *place;
        let child = match child {
            Some(child) => child,
            None => {
                let started = Child::start(&self.config, &self.path).map_err(Trouble::Broken)?;
                child.insert(started)
            }
        };
        let mut talk = Talk {
            child,
            timeout: self.config.timeout,
        };
        let introduced = match opened.contains(&silo) {
            true => Ok(()),
            false => open(&mut talk),
        };
        let result = introduced.and_then(|()| {
            opened.insert(silo);
            request(&mut talk)
        });
        if matches!(result, Err(Trouble::Broken(_))) {
            place.end();
        }
        result
    }

    /// The error of a learner.
    pub(super) fn error(&self, trouble: Trouble) -> LearnError {
        match trouble {
            Trouble::Stopped => LearnError::Stopped,
            Trouble::Refused(what) | Trouble::Broken(what) => {
                LearnError::Failed(format!("the learner `{}`: {what}", self.config.name()))
            }
        }
    }

    /// A name in the folder that nothing has yet.
    pub(super) fn file(&self, what: &str) -> Exchanged {
        let number = self.files.fetch_add(1, Ordering::Relaxed);
        let name = format!("{what}-{number}.safetensors");
        Exchanged(self.folder.path().join(name))
    }

    /// Writes a model to a new file.
    pub(super) fn write(&self, what: &str, model: &Params) -> Result<Exchanged, Trouble> {
        let file = self.file(what);
        std::fs::write(&file.0, model.document()).map_err(|error| {
            // Nothing is wrong with the program.
            Trouble::Refused(format!("cannot write {}: {error}", file.0.display()))
        })?;
        Ok(file)
    }
}

impl Place {
    fn end(&mut self) {
        self.opened.clear();
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }
}

/// A file of the folder, which goes away when it is not needed any more.
pub(super) struct Exchanged(pub(super) PathBuf);

impl Drop for Exchanged {
    fn drop(&mut self) {
        // A program that failed may not have written it.
        drop(std::fs::remove_file(&self.0));
    }
}

/// Reads what a program wrote, as a model of this layout: in any order of its tensors, then
/// through the gate that models of other members pass.
pub(super) fn read(path: &Path, layout: &Arc<Layout>) -> Result<Params, Trouble> {
    let wrong = |what: String| Trouble::Broken(format!("what it gave is refused: {what}"));
    let bytes = read_bytes(path, layout.document_len())?;
    let found = SafeTensors::deserialize(&bytes).map_err(|error| {
        wrong(format!(
            "{} is no safetensors file: {error}",
            path.display()
        ))
    })?;
    let surplus = found
        .names()
        .into_iter()
        .find(|name| layout.position(name).is_none());
    if let Some(name) = surplus {
        return Err(wrong(format!(
            "it has a tensor {name:?} that the model has not; expected {}",
            layout.describe()
        )));
    }
    let mut parts = Vec::with_capacity(layout.tensors().len());
    for spec in layout.tensors() {
        let tensor = found.tensor(&spec.name).map_err(|_| {
            wrong(format!(
                "it lacks the tensor {:?}; expected {}",
                spec.name,
                layout.describe()
            ))
        })?;
        if tensor.shape() != spec.shape || tensor.dtype() != Dtype::F32 {
            return Err(wrong(format!(
                "{:?} must be F32 {:?}, it is {:?} {:?}",
                spec.name,
                spec.shape,
                tensor.dtype(),
                tensor.shape()
            )));
        }
        parts.push(tensor.data());
    }
    let mut document = Vec::with_capacity(layout.document_len());
    document.extend_from_slice(layout.header());
    parts
        .iter()
        .for_each(|part| document.extend_from_slice(part));
    let gate = Gate {
        layout: layout.clone(),
        norm: f64::INFINITY,
    };
    gate.admit(Bytes::from(document))
        .map_err(|error| wrong(error.to_string()))
}

/// The bytes of a file that a program wrote, of at most a little more than `expected`: headers in
/// other words are longer.
pub(super) fn read_bytes(path: &Path, expected: usize) -> Result<Vec<u8>, Trouble> {
    let broken = |error: std::io::Error| {
        Trouble::Broken(format!(
            "it did not write the file {} that it was asked for: {error}",
            path.display()
        ))
    };
    let size = std::fs::metadata(path).map_err(broken)?.len();
    if size > 2 * expected as u64 + (1 << 20) {
        return Err(Trouble::Broken(format!(
            "what it gave is refused: {} has {size} bytes, expected about {expected}",
            path.display()
        )));
    }
    std::fs::read(path).map_err(broken)
}
