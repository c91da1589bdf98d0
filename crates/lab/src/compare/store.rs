//! The results of an experiment on disk, one file for every run, so that an experiment can be
//! continued, spread over machines and merged.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::ExperimentError;
use super::experiment::{Experiment, ExperimentOrigin};
use super::result::{ExperimentUnit, UnitResult};

/// Folder of the results within that of the experiment.
const RUNS: &str = "runs";
/// File that says which experiment it is.
const ORIGIN: &str = "experiment.json";

/// The results of an experiment in a folder.
pub(super) struct ResultStore {
    folder: PathBuf,
}

impl ResultStore {
    /// Opens the folder. `resume` says whether results in it are continued.
    ///
    /// # Errors
    /// [`ExperimentError`]: results of another experiment, or any at all where they are not to be
    /// continued; a folder that cannot be made.
    pub(super) fn open(
        folder: &Path,
        experiment: &Experiment,
        resume: bool,
    ) -> Result<Self, ExperimentError> {
        let runs = folder.join(RUNS);
        fs::create_dir_all(&runs).map_err(|reason| failed("make", &runs, reason))?;
        let file = folder.join(ORIGIN);
        match fs::read(&file) {
            Ok(_) if !resume => return Err(ExperimentError::There(folder.into())),
            Ok(text) => {
                let origin = serde_json::from_slice::<ExperimentOrigin>(&text).ok();
                if origin.as_ref() != Some(&experiment.origin) {
                    return Err(ExperimentError::Other(folder.into()));
                }
            }
            Err(_) => {
                let text = serde_json::to_vec_pretty(&experiment.origin).map_err(io::Error::from);
                replace(
                    &file,
                    &text.map_err(|reason| failed("write", &file, reason))?,
                )?;
            }
        }
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// Opens results, to read them only, and the experiment that they are of.
    ///
    /// # Errors
    /// [`ExperimentError`]: no results, or an experiment that cannot be read any more.
    pub(super) fn read(folder: &Path) -> Result<(Self, Experiment), ExperimentError> {
        let file = folder.join(ORIGIN);
        let text = fs::read(&file).map_err(|reason| failed("read", &file, reason))?;
        let origin = serde_json::from_slice::<ExperimentOrigin>(&text).map_err(io::Error::from);
        let origin = origin.map_err(|reason| failed("read", &file, reason))?;
        let store = Self {
            folder: folder.to_owned(),
        };
        Ok((store, origin.experiment()?))
    }

    /// The result of a run, if it is there and whole.
    pub(super) fn get(&self, unit: &ExperimentUnit) -> Option<UnitResult> {
        let text = fs::read(self.file(unit)).ok()?;
        let result: UnitResult = serde_json::from_slice(&text).ok()?;
        (result.unit == *unit).then_some(result)
    }

    /// Keeps the result of a run.
    ///
    /// # Errors
    /// [`ExperimentError::Result`].
    pub(super) fn put(&self, result: &UnitResult) -> Result<(), ExperimentError> {
        let file = self.file(&result.unit);
        let text = serde_json::to_vec(result).map_err(io::Error::from);
        let text = text.map_err(|reason| failed("write", &file, reason))?;
        replace(&file, &text)
    }

    fn file(&self, unit: &ExperimentUnit) -> PathBuf {
        // Labels may hold anything, so files are named by hash.
        let name = format!("{}\n{}\n{}", unit.variant, unit.strategy, unit.seed);
        let hash = blake3::hash(name.as_bytes()).to_hex();
        self.folder.join(RUNS).join(format!("{}.json", &hash[..16]))
    }
}

/// Writes a file so that it is there as a whole or not at all, whoever else writes it.
fn replace(file: &Path, text: &[u8]) -> Result<(), ExperimentError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        let mut builder = tempfile::Builder::new();
        // Results are for whoever may read the folder.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut beside = builder.tempfile_in(folder)?;
        beside.write_all(text)?;
        beside.persist(file)?;
        Ok(())
    };
    written().map_err(|reason| failed("write", file, reason))
}

fn failed(what: &'static str, path: &Path, reason: io::Error) -> ExperimentError {
    ExperimentError::Result {
        what,
        path: path.into(),
        reason,
    }
}
