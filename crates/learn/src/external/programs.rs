//! The running programs of a process, shared by its silos, and what they exchange with them.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use methods::params::Gate;
use methods::{Layout, LearnError, Params};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use task::external::ExternalTask;

use super::child::{Child, Ender, silent};
use super::config::LearnerConfig;
use super::folder::{ExchangeFolder, Exchanged};
use super::locked;
use super::wire::{ProgramRequest, Reply};
use crate::data::DataError;

/// The running programs of a process. Each serves several silos, one request at a time; a silo
/// always has the same one.
pub struct Programs {
    config: LearnerConfig,
    folder: ExchangeFolder,
    places: Vec<Mutex<ProgramSlot>>,
    running: Mutex<RunningPrograms>,
    /// Models in common to the silos of this process; `None` where there is one silo only.
    shared: Option<Mutex<SharedModels>>,
}

/// Models that the silos of a process share.
#[derive(Default)]
struct SharedModels {
    /// The initial model of a seed, as the agreement describes it.
    initial: Option<(u64, Params)>,
    /// The model that was written last, and its file.
    written: Option<(Params, Arc<Exchanged>)>,
}

/// State with which the programs are [ended](Programs::end).
#[derive(Default)]
struct RunningPrograms {
    /// By place, of those that run.
    enders: Vec<Option<Ender>>,
    /// True if none may be started any more.
    over: bool,
}

/// One program, if it runs, and the silos that it knows.
#[derive(Default)]
struct ProgramSlot {
    child: Option<Child>,
    opened: BTreeSet<usize>,
}

/// Reason for which a request was not carried out.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The program says so, and is in order.
    Refused(String),
    /// The program has ended, hangs, or gives wrong answers: it is started again.
    Broken(String),
    /// The request was not needed any more.
    Stopped,
    /// Nor was it, and the program did not stop: it is started again.
    Stuck,
}

/// A conversation with one program.
pub(super) struct Talk<'a> {
    child: &'a mut Child,
    pub(super) timeout: Duration,
}

impl Talk<'_> {
    pub(super) fn send(&mut self, request: &ProgramRequest<'_>) -> Result<(), Trouble> {
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
    pub(super) fn ask(
        &mut self,
        request: &ProgramRequest<'_>,
        when: &str,
    ) -> Result<Reply, Trouble> {
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
        let folder = ExchangeFolder::new().map_err(|error| {
            DataError::Config(format!(
                "`learner` needs a folder for files in {}: {error}",
                std::env::temp_dir().display()
            ))
        })?;
        let places = config.programs.min(silos).max(1);
        Ok(Arc::new(Self {
            folder,
            places: (0..places).map(|_| Mutex::default()).collect(),
            running: Mutex::new(RunningPrograms {
                enders: vec![None; places],
                over: false,
            }),
            shared: (silos > 1).then(Mutex::default),
            config: config.clone(),
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
        let at = silo % self.places.len();
        let mut place = locked(&self.places[at]);
        if place.child.as_mut().is_some_and(Child::is_over) {
            place.end();
        }
        let ProgramSlot { child, opened } = &mut *place;
        let child = match child {
            Some(child) => child,
            None => child.insert(self.start(at)?),
        };
        let mut talk = Talk {
            child,
            timeout: self.config.timeout,
        };
        let introduced = if opened.contains(&silo) {
            Ok(())
        } else {
            open(&mut talk)
        };
        let result = introduced.and_then(|()| {
            opened.insert(silo);
            request(&mut talk)
        });
        if matches!(result, Err(Trouble::Broken(_) | Trouble::Stuck)) {
            place.end();
        }
        result
    }

    /// Starts the program of a place.
    fn start(&self, at: usize) -> Result<Child, Trouble> {
        if locked(&self.running).over {
            return Err(Trouble::Stopped);
        }
        let child = Child::start(&self.config, self.folder.path(), |ender| {
            let mut running = locked(&self.running);
            if running.over {
                ender.end()
            } else {
                running.enders[at] = Some(ender)
            }
        });
        if locked(&self.running).over {
            Err(Trouble::Stopped)
        } else {
            child.map_err(Trouble::Broken)
        }
    }

    /// Ends all programs, also those that are asked for something, starts no more, and removes their
    /// files: the silo ends without waiting for its training. A program that is asked for nothing gets
    /// to end itself.
    pub fn end(&self) {
        locked(&self.running).over = true;
        for (at, place) in self.places.iter().enumerate() {
            match place.try_lock() {
                Ok(mut place) => place.child = None,
                Err(_) => {
                    let ender = locked(&self.running).enders[at].take();
                    ender.iter().for_each(Ender::end);
                }
            }
        }
        self.folder.remove();
    }

    /// The error of a learner.
    pub(super) fn error(&self, trouble: Trouble) -> LearnError {
        match trouble {
            Trouble::Stopped | Trouble::Stuck => LearnError::Stopped,
            Trouble::Refused(what) | Trouble::Broken(what) => {
                LearnError::Failed(format!("the learner `{}`: {what}", self.config.name()))
            }
        }
    }

    /// A file that nothing has written yet.
    pub(super) fn file(&self, what: &str) -> Exchanged {
        self.folder.file(what)
    }

    /// Writes a model to a new file.
    pub(super) fn write(&self, what: &str, model: &Params) -> Result<Exchanged, Trouble> {
        let file = self.file(what);
        file.write(&model.document()).map_err(|error| {
            // Nothing is wrong with the program.
            Trouble::Refused(format!("cannot write {}: {error}", file.path.display()))
        })?;
        Ok(file)
    }

    /// Writes a model that several silos are given one after the other, as in every round: once, unless
    /// a program has changed the file.
    pub(super) fn write_shared(&self, model: &Params) -> Result<Arc<Exchanged>, Trouble> {
        let Some(shared) = &self.shared else {
            return self.write("model", model).map(Arc::new);
        };
        let last = locked(shared).written.clone();
        if let Some((known, file)) = last
            && same_memory(&known, model)
            && file.is_as_written()
        {
            return Ok(file);
        }
        let file = Arc::new(self.write("model", model)?);
        locked(shared).written = Some((model.clone(), file.clone()));
        Ok(file)
    }

    /// The initial model of a seed as the agreement describes it: drawn once for all silos.
    pub(super) fn initial(&self, task: &ExternalTask, layout: &Arc<Layout>, seed: u64) -> Params {
        let Some(shared) = &self.shared else {
            return task.initial(layout, seed);
        };
        let mut shared = locked(shared);
        match &shared.initial {
            Some((of, model)) if *of == seed && model.layout() == layout => model.clone(),
            _ => {
                let model = task.initial(layout, seed);
                shared.initial = Some((seed, model.clone()));
                model
            }
        }
    }
}

impl ProgramSlot {
    fn end(&mut self) {
        self.opened.clear();
        if let Some(child) = self.child.take() {
            child.kill();
        }
    }
}

/// Returns whether two models share their memory, and so are the same.
fn same_memory(one: &Params, other: &Params) -> bool {
    let (one, other) = (one.document(), other.document());
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
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

/// The bytes of a regular file that a program wrote, of at most a little more than `expected`:
/// headers in other words are longer.
pub(super) fn read_bytes(path: &Path, expected: usize) -> Result<Vec<u8>, Trouble> {
    let limit = (expected as u64).saturating_mul(2).saturating_add(1 << 20);
    crate::file::read(path, limit).map_err(|error| {
        Trouble::Broken(match error.kind() {
            ErrorKind::NotFound => format!(
                "it did not write the file {} that it was asked for",
                path.display()
            ),
            _ => format!(
                "what it gave is refused: {}: {error}; expected about {expected} bytes",
                path.display()
            ),
        })
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn programs(silos: usize) -> Arc<Programs> {
        let config: LearnerConfig = serde_json::from_str(r#"["a-program"]"#).unwrap();
        Programs::new(&config, silos).unwrap()
    }

    fn task() -> ExternalTask {
        let text = "tensors = [{ name = \"w\", shape = [3], role = \"weight\", initial = { uniform = 0.5 } }]";
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_model_for_many_silos_is_written_once_unless_it_is_touched() {
        let (task, programs) = (task(), programs(2));
        let layout = task.layout().unwrap();
        let model = task.initial(&layout, 1);
        let first = programs.write_shared(&model).unwrap();
        let again = programs.write_shared(&model.clone()).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        // Equal values elsewhere in memory are another model, as far as is known.
        let equal = programs.write_shared(&task.initial(&layout, 1)).unwrap();
        assert_ne!(equal.path, first.path);

        let at = |file: &Exchanged| std::fs::read(&file.path).unwrap();
        let model = task.initial(&layout, 2);
        let before = programs.write_shared(&model).unwrap();
        std::fs::write(&before.path, b"what a program left").unwrap();
        let after = programs.write_shared(&model).unwrap();
        assert_eq!(at(&after), model.document());
        std::fs::remove_file(&after.path).unwrap();
        let last = programs.write_shared(&model).unwrap();
        assert_eq!(at(&last), model.document());

        // Files go away with the last that needs them.
        let path = last.path.clone();
        drop((last, programs));
        assert!(!path.exists());
    }

    #[test]
    fn a_silo_alone_keeps_no_model_for_others() {
        let (task, programs) = (task(), programs(1));
        let layout = task.layout().unwrap();
        let model = programs.initial(&task, &layout, 1);
        assert_eq!(model.document(), task.initial(&layout, 1).document());
        let (first, again) = (programs.write_shared(&model), programs.write_shared(&model));
        assert_ne!(first.unwrap().path, again.unwrap().path);
        assert!(programs.shared.is_none());
    }

    #[test]
    fn the_initial_model_is_drawn_once_per_seed_and_layout() {
        let (task, programs) = (task(), programs(2));
        let layout = task.layout().unwrap();
        let first = programs.initial(&task, &layout, 1);
        let again = programs.initial(&task, &task.layout().unwrap(), 1);
        assert!(same_memory(&first, &again));
        assert_eq!(first.document(), task.initial(&layout, 1).document());
        let other = programs.initial(&task, &layout, 2);
        assert_eq!(other.document(), task.initial(&layout, 2).document());
    }
}
