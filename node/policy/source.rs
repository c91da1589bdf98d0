//! The ledger that a policy names, and its limits.

use std::path::{Component, Path, PathBuf};

use ledger::{LedgerContents, LedgerError, LedgerFile, Limit, Limits};
use privacy::accountant::Delta;

use super::table::{LedgerKey, PolicyTable};

/// δ where the policy does not say it.
const DELTA: f64 = 1e-5;

/// The ledger of an institution's source, and how much it may tell.
#[derive(Debug, Clone)]
pub(crate) struct SourceLimits {
    /// The file.
    pub(crate) path: PathBuf,
    /// The limits.
    pub(crate) limits: Limits,
}

impl SourceLimits {
    /// The ledger of a table; `None` where it names none.
    ///
    /// # Errors
    /// The first key that is wrong, and what is wrong with it.
    pub(super) fn of(
        table: &PolicyTable,
        beside: &Path,
        state: &Path,
    ) -> Result<Option<Self>, (&'static str, String)> {
        let limits = [
            ("policy.epsilon", table.epsilon),
            ("policy.epsilon-all-collude", table.epsilon_alone),
        ];
        for (key, limit) in limits {
            if let Some(limit) = limit.filter(|limit| !(limit.is_finite() && *limit > 0.0)) {
                return Err((key, format!("is {limit}, it must be larger than 0")));
            }
        }
        if let Some(LedgerKey::Counts(true)) = &table.ledger {
            let what = "is true: name the file of the ledger, or write false for none";
            return Err(("policy.ledger", what.into()));
        }
        let Some(LedgerKey::File(path)) = &table.ledger else {
            let delta = [("policy.delta", table.delta)];
            let idle = limits
                .into_iter()
                .chain(delta)
                .find(|(_, limit)| limit.is_some());
            return match idle {
                Some((key, _)) => Err((
                    key,
                    "needs a ledger that adds up what was contributed: make one with `rota ledger new`, and name \
                     its file with `ledger`"
                        .into(),
                )),
                None => Ok(None),
            };
        };
        let path = beside.join(path);
        if plain(&path).starts_with(plain(state)) {
            let what =
                "is in the state folder, which may be lost or put back: keep the ledger elsewhere";
            return Err(("policy.ledger", what.into()));
        }
        let delta = Delta::new(table.delta.unwrap_or(DELTA))
            .map_err(|why| ("policy.delta", format!("is {why}")))?;
        Ok(Some(Self {
            path,
            limits: Limits {
                epsilon: table.epsilon,
                alone: table.epsilon_alone,
                delta,
            },
        }))
    }

    /// A ledger that is only read.
    pub(crate) fn unlimited(path: &Path) -> Self {
        Self {
            path: path.into(),
            limits: Limits {
                epsilon: None,
                alone: None,
                delta: Delta::new(DELTA).expect("1e-5 is a probability below one half"),
            },
        }
    }

    /// The ledger.
    pub(crate) fn file(&self) -> LedgerFile {
        LedgerFile::at(&self.path, self.limits)
    }

    /// Returns what the ledger holds, for whoever cannot wait for another process.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub(crate) fn read(&self) -> Result<LedgerContents, LedgerError> {
        self.file().briefly().read()
    }

    /// The limit that needs noise.
    pub(super) fn needs_noise(&self) -> Option<Limit> {
        let epsilon = self.limits.epsilon.map(Limit::Epsilon);
        epsilon.or_else(|| self.limits.alone.map(Limit::Alone))
    }
}

/// A path without `.` and `..`, as far as its text tells.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}
