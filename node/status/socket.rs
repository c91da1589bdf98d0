//! The sockets of a node in its state folder: whoever connects gets one line of JSON, and the connection
//! ends. One has the status of the node, the other that of all nodes. Only the owner can open them.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::document::FORMAT;

/// Name of the socket with the status of the node, in the state folder.
pub const NAME: &str = "status.sock";
/// Name of the socket with the status of all nodes.
pub const NODES: &str = "nodes.sock";
/// Longest path of a socket, in bytes: what Linux allows, without the zero at the end.
pub const LONGEST: usize = 107;
/// Connections that are answered at the same time; more wait.
#[cfg(unix)]
const CONNECTIONS: usize = 8;
/// Time that a reader may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Largest document that is read.
const LARGEST: u64 = 16 << 20;

/// Reason for which the socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The path is too long.
    #[error(
        "the path of the socket {} has {} bytes, and a socket's path may have {LONGEST}: choose \
         a shorter path for `state` in node.toml, or start in a folder from which it is shorter",
        .0.display(), .0.as_os_str().len()
    )]
    Long(PathBuf),
    /// Something else has the name of the socket.
    #[error("{} is not a socket: move it away, the node needs this name for its status", .0.display())]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("the status socket {} cannot be used: {reason}", path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// No node runs.
    #[error(
        "no node runs with the state folder {}: start it with `rota run --config {}`",
        state.display(), config.display()
    )]
    Stopped {
        /// The state folder.
        state: PathBuf,
        /// The configuration.
        config: PathBuf,
    },
    /// Another user's node.
    #[error(
        "{} belongs to another user, and only its owner may ask the node: use the account that runs it \
         (for a systemd service: sudo -u USER rota status ...)", .0.display()
    )]
    Denied(PathBuf),
    /// An answer that is no status.
    #[error("the answer of the node at {} cannot be read: {why}", path.display())]
    Answer {
        /// The socket.
        path: PathBuf,
        /// Fault of the answer.
        why: String,
    },
    /// A newer program.
    #[error(
        "the node's status has format {found}, and this program reads format {FORMAT}: use the \
         program that runs the node"
    )]
    Format {
        /// Format of the node's status.
        found: u64,
    },
}

/// The socket of a state folder.
///
/// # Errors
/// [`SocketError::Long`].
pub fn path(state: &Path, name: &str) -> Result<PathBuf, SocketError> {
    let path = state.join(name);
    if path.as_os_str().len() <= LONGEST {
        Ok(path)
    } else {
        Err(SocketError::Long(path))
    }
}

/// Removes the socket when it is dropped, unless another process has replaced it.
#[cfg(unix)]
#[derive(Debug)]
pub struct Listening {
    path: PathBuf,
    id: (u64, u64),
}

/// Nothing: on this system there is no such socket.
#[cfg(not(unix))]
#[derive(Debug)]
pub struct Listening;

#[cfg(unix)]
impl Listening {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.into(),
            id: Self::id(path)?,
        })
    }

    /// Returns what tells this socket from another one of the same name.
    fn id(path: &Path) -> io::Result<(u64, u64)> {
        use std::os::unix::fs::MetadataExt;
        let found = std::fs::symlink_metadata(path)?;
        Ok((found.dev(), found.ino()))
    }
}

#[cfg(unix)]
impl Drop for Listening {
    fn drop(&mut self) {
        if Self::id(&self.path).is_ok_and(|id| id == self.id) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Serves a document at the socket of this name in this state folder, which has to be locked by this
/// process, from a task of the current tokio runtime. A socket that an earlier process left is replaced.
///
/// # Errors
/// [`SocketError`]: a path that is too long or taken, an error of the system.
#[cfg(unix)]
pub fn serve<T, A>(
    state: &Path,
    name: &str,
    source: impl Fn() -> A + Clone + Send + 'static,
) -> Result<Listening, SocketError>
where
    A: Future<Output = T> + Send + 'static,
    T: Serialize + Send,
{
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::sync::Arc;

    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixListener;
    use tokio::sync::Semaphore;
    use tokio::time::timeout;

    let path = path(state, name)?;
    let system = |reason| SocketError::System {
        path: path.clone(),
        reason,
    };
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.file_type().is_socket() => {
            std::fs::remove_file(&path).map_err(system)?;
        }
        Ok(_) => return Err(SocketError::Occupied(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(system(error)),
    }
    let listener = UnixListener::bind(&path).map_err(system)?;
    let listening = Listening::at(&path).map_err(system)?;
    // Until here the folder, which only its owner may enter, keeps others out.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(system)?;
    tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            let Ok((mut reader, _)) = listener.accept().await else {
                // Too many open files, for example.
                tokio::time::sleep(Duration::from_secs(1)).await;
                continue;
            };
            let document = source();
            tokio::spawn(async move {
                let _place = place;
                let mut line = serde_json::to_vec(&document.await).unwrap_or_default();
                line.push(b'\n');
                let _ = timeout(PATIENCE, reader.write_all(&line)).await;
            });
        }
    });
    Ok(listening)
}

/// On this system there is no such socket.
///
/// # Errors
/// Always [`SocketError::System`].
#[cfg(not(unix))]
pub fn serve<T, A>(
    state: &Path,
    name: &str,
    _: impl Fn() -> A + Clone + Send + 'static,
) -> Result<Listening, SocketError>
where
    A: Future<Output = T> + Send + 'static,
    T: Serialize + Send,
{
    Err(SocketError::System {
        path: path(state, name)?,
        reason: io::ErrorKind::Unsupported.into(),
    })
}

/// Asks the node that runs with this state folder, at the socket of this name. `config` is named in
/// errors.
///
/// # Errors
/// [`SocketError`]: no node runs, it belongs to another user, or it answers something else.
#[cfg(unix)]
pub fn ask<T: DeserializeOwned>(state: &Path, name: &str, config: &Path) -> Result<T, SocketError> {
    use std::os::unix::net::UnixStream;

    let path = path(state, name)?;
    let system = |reason: io::Error| match reason.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => SocketError::Stopped {
            state: state.into(),
            config: config.into(),
        },
        io::ErrorKind::PermissionDenied => SocketError::Denied(path.clone()),
        _ => SocketError::System {
            path: path.clone(),
            reason,
        },
    };
    let socket = UnixStream::connect(&path).map_err(system)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(system)?;
    let mut text = String::new();
    let read = socket.take(LARGEST).read_to_string(&mut text);
    read.map_err(system)?;
    parse(&text, &path)
}

/// On this system there is no such socket.
///
/// # Errors
/// Always [`SocketError::System`].
#[cfg(not(unix))]
pub fn ask<T: DeserializeOwned>(state: &Path, name: &str, _: &Path) -> Result<T, SocketError> {
    Err(SocketError::System {
        path: path(state, name)?,
        reason: io::ErrorKind::Unsupported.into(),
    })
}

fn parse<T: DeserializeOwned>(text: &str, path: &Path) -> Result<T, SocketError> {
    let wrong = |error: serde_json::Error| SocketError::Answer {
        path: path.into(),
        why: error.to_string(),
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(wrong)?;
    match value["format"].as_u64() {
        Some(found) if found != u64::from(FORMAT) => Err(SocketError::Format { found }),
        _ => serde_json::from_value(value).map_err(wrong),
    }
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::future::ready;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::status::{Status, fixture};

    fn serve_here(state: &Path) -> Result<Listening, SocketError> {
        serve(state, NAME, || ready(fixture::status()))
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn the_status_is_served_to_the_owner_until_the_node_ends() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().to_owned();
        let config = Path::new("node.toml");
        let asking = |state: PathBuf| {
            tokio::task::spawn_blocking(move || ask::<Status>(&state, NAME, config))
        };
        let none = asking(state.clone()).await.unwrap().unwrap_err();
        assert!(matches!(none, SocketError::Stopped { .. }), "{none}");
        let listening = serve_here(&state).unwrap();
        let mode = std::fs::metadata(state.join(NAME)).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        for _ in 0..3 {
            assert_eq!(
                asking(state.clone()).await.unwrap().unwrap(),
                fixture::status()
            );
        }
        drop(listening);
        assert!(!state.join(NAME).exists());
        // A killed node leaves its socket: nobody answers, and the next start replaces it.
        drop(std::os::unix::net::UnixListener::bind(state.join(NAME)).unwrap());
        let stale = asking(state.clone()).await.unwrap().unwrap_err();
        assert!(matches!(stale, SocketError::Stopped { .. }), "{stale}");
        let _again = serve_here(&state).unwrap();
        assert!(asking(state).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn an_existing_file_and_a_long_path_are_refused_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(NAME), "notes").unwrap();
        let error = serve_here(folder.path()).unwrap_err();
        assert!(error.to_string().contains("is not a socket"), "{error}");
        assert_eq!(std::fs::read(folder.path().join(NAME)).unwrap(), b"notes");
        let long = folder.path().join("x".repeat(LONGEST));
        let error = serve_here(&long).unwrap_err().to_string();
        assert!(
            error.contains("may have 107") && error.contains("`state`"),
            "{error}"
        );
    }

    #[test]
    fn a_status_of_another_format_and_no_status_are_refused() {
        let path = Path::new("state/status.sock");
        let newer = parse::<Status>("{\"format\": 2}", path)
            .unwrap_err()
            .to_string();
        assert!(
            newer.contains("format 2") && newer.contains("format 1"),
            "{newer}"
        );
        let wrong = parse::<Status>("hello", path).unwrap_err().to_string();
        assert!(wrong.contains("cannot be read"), "{wrong}");
    }
}
