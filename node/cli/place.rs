//! The node that a command is about, named one way by every command: `--config`, or found by itself.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;

/// The file of a node's configuration in the folder of the node.
pub(crate) const CONFIG: &str = "node.toml";

/// Its former name.
pub(crate) const FORMER_CONFIG: &str = "silo.toml";

/// Names a node instead of `--config`.
const VARIABLE: &str = "ROTA_CONFIG";

/// Names a node.
const OPTION: &str = "--config";

/// The node that a command is about.
#[derive(Debug, Default, Clone, Args)]
pub struct NodePlace {
    /// Node, by its node.toml or the folder that has it [default: $ROTA_CONFIG, or the current folder]
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
}

/// The node whose state folder a command reads.
#[derive(Debug, Args)]
pub struct StatePlace {
    /// The node.
    #[command(flatten)]
    pub node: NodePlace,
    /// State folder without a node.toml, such as a copy, in place of a node
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub state: Option<PathBuf>,
}

/// No configuration where one was looked for.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no {CONFIG} {looked}: {remedy} (its {CONFIG}, or the folder that has it); `rota federation join` \
     writes one"
)]
pub struct NoNode {
    looked: String,
    remedy: String,
}

impl NodePlace {
    /// The node at this path.
    pub fn at(path: &Path) -> Self {
        Self {
            config: Some(path.to_owned()),
        }
    }

    /// The configuration of the node: that of `--config`, else of `ROTA_CONFIG`, else of the current folder.
    ///
    /// # Errors
    /// [`NoNode`]: it is not there.
    pub fn file(&self) -> Result<PathBuf, NoNode> {
        let (file, from) = self.looked_at();
        if is_absent(&file) {
            return Err(NoNode {
                looked: match from {
                    Some(from) => format!("at {} (from {from})", file.display()),
                    None => format!("in the current folder, {}", current().display()),
                },
                remedy: match from {
                    Some(from) => format!("name another node with {from}"),
                    None => format!(
                        "run the command in the folder of a node, or name the node with {OPTION} PATH or {VARIABLE}"
                    ),
                },
            });
        }
        Ok(file)
    }

    /// The configuration, where a command can do without: `None` if none is named and the current folder
    /// has none.
    ///
    /// # Errors
    /// [`NoNode`]: a node was named that is not there.
    pub fn found(&self) -> Result<Option<PathBuf>, NoNode> {
        let (file, from) = self.looked_at();
        if from.is_none() && is_absent(&file) {
            return Ok(None);
        }
        self.file().map(Some)
    }

    /// Returns the place at which the configuration should be, and what names that place.
    fn looked_at(&self) -> (PathBuf, Option<&'static str>) {
        let variable = env::var_os(VARIABLE).filter(|place| !place.is_empty());
        match (&self.config, variable) {
            (Some(place), _) => (file_at(place), Some(OPTION)),
            (None, Some(place)) => (file_at(Path::new(&place)), Some(VARIABLE)),
            (None, None) => (config_in(Path::new("")), None),
        }
    }
}

/// The configuration that a path means: the file itself, or the one in the folder.
fn file_at(place: &Path) -> PathBuf {
    if place.is_dir() {
        config_in(place)
    } else {
        place.to_owned()
    }
}

/// The configuration of a node in its folder, under its former name where it has that one.
pub fn config_in(folder: &Path) -> PathBuf {
    let (config, former) = (folder.join(CONFIG), folder.join(FORMER_CONFIG));
    if !config.is_file() && former.is_file() {
        former
    } else {
        config
    }
}

/// Returns true if nothing is there. A place that cannot be looked at is an error of its reading.
fn is_absent(file: &Path) -> bool {
    matches!(file.try_exists(), Ok(false))
}

fn current() -> PathBuf {
    env::current_dir().unwrap_or_else(|_| ".".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_node_is_named_by_its_file_or_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(CONFIG);
        std::fs::write(&file, "").unwrap();
        assert_eq!(NodePlace::at(&file).file().unwrap(), file);
        assert_eq!(NodePlace::at(folder.path()).file().unwrap(), file);
        assert_eq!(NodePlace::at(folder.path()).found().unwrap(), Some(file));
    }

    #[test]
    fn the_former_name_is_found_where_there_is_no_other() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(config_in(folder.path()), folder.path().join("node.toml"));
        for name in ["silo.toml", "node.toml"] {
            std::fs::write(folder.path().join(name), "").unwrap();
            assert_eq!(config_in(folder.path()), folder.path().join(name));
        }
    }

    #[test]
    fn a_node_that_is_not_there_is_refused_with_place_and_remedy() {
        let folder = tempfile::tempdir().unwrap();
        for missing in [folder.path().to_owned(), folder.path().join("other.toml")] {
            let said = NodePlace::at(&missing).file().unwrap_err().to_string();
            let place = file_at(&missing).display().to_string();
            for part in [
                &place,
                "(from --config): name another node with --config",
                "rota federation join",
            ] {
                assert!(said.contains(part), "{said}");
            }
            assert!(NodePlace::at(&missing).found().is_err());
        }
    }
}
