//! Downloads files of public data sets over HTTP or HTTPS.
//!
//! A file appears under its name only when size and checksum are right; until then it is
//! `NAME.part`.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use data_encoding::HEXLOWER;
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT_ENCODING, HOST, LOCATION, USER_AGENT};
use hyper::http::uri::Scheme;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

use super::verify::State;
use super::{PublicFile, PublicSet};

/// Longest wait for a connection, an answer, or the next bytes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most redirections that are followed.
const REDIRECTIONS: usize = 5;

/// Why a file was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// It was packed again and is not published.
    #[error(
        "{folder}/{name} has no public address, because it was packed again: ask those who have it, and \
         put it into the data folder"
    )]
    NoAddress {
        /// The folder of the set.
        folder: String,
        /// The file.
        name: String,
    },
    /// Another file has its place.
    #[error(
        "{} exists and is another file than expected: move it away, or replace it with --force", .0.display()
    )]
    Exists(PathBuf),
    /// The server, or the way to it.
    #[error("cannot download {address}: {reason}; download it by hand, or try again")]
    Network {
        /// The address.
        address: String,
        /// What went wrong.
        reason: String,
    },
    /// Something else came than expected.
    #[error(
        "{address} is not the file that was expected: {found}. Nothing was kept. If its publisher has \
         changed it, results with it cannot be compared"
    )]
    Other {
        /// The address.
        address: String,
        /// Size or checksum, expected and found.
        found: String,
    },
    /// The disk.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
}

/// What was done for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// It was there already.
    Kept,
    /// It was downloaded.
    Downloaded,
}

/// Downloads the files of a set into its folder under `data`, those that are not there already.
/// Another file under the same name is replaced only with `force`. `done` is told of every file.
///
/// # Errors
/// [`DownloadError`]: the first file that cannot be had. Those before it stay.
pub async fn get(
    client: &Client,
    set: &PublicSet,
    data: &Path,
    force: bool,
    mut done: impl FnMut(&PublicFile, Got),
) -> Result<(), DownloadError> {
    let folder = data.join(&set.folder);
    for file in &set.files {
        let path = folder.join(&file.name);
        match file.state(&path) {
            State::Right => {
                done(file, Got::Kept);
                continue;
            }
            State::Absent => (),
            _ if force => (),
            _ => return Err(DownloadError::Exists(path)),
        }
        let address = file
            .address
            .as_ref()
            .ok_or_else(|| DownloadError::NoAddress {
                folder: set.folder.clone(),
                name: file.name.clone(),
            })?;
        fs::create_dir_all(&folder).map_err(|reason| DownloadError::Write {
            path: folder.clone(),
            reason,
        })?;
        client.fetch(file, address, &path).await?;
        done(file, Got::Downloaded);
    }
    Ok(())
}

/// A client for HTTP and HTTPS, with the certificate authorities that Mozilla trusts.
pub struct Client {
    tls: TlsConnector,
}

impl Default for Client {
    fn default() -> Self {
        Self::trusting(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect())
    }
}

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Client {
    /// With these certificate authorities.
    fn trusting(roots: RootCertStore) -> Self {
        let provider = Arc::new(crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of TLS 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self {
            tls: TlsConnector::from(Arc::new(config)),
        }
    }

    /// Downloads one file to `path`.
    async fn fetch(
        &self,
        file: &PublicFile,
        address: &str,
        path: &Path,
    ) -> Result<(), DownloadError> {
        let network = |reason: String| DownloadError::Network {
            address: address.to_owned(),
            reason,
        };
        let other = |found: String| DownloadError::Other {
            address: address.to_owned(),
            found,
        };
        let mut body = self.open(address).await.map_err(network)?.into_body();
        let part = Part::new(path)?;
        let mut to = &part.file;
        let (mut hash, mut count) = (Sha256::new(), 0u64);
        while let Some(frame) = within(body.frame()).await.map_err(network)? {
            let frame = frame.map_err(|error| network(error.to_string()))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            count += data.len() as u64;
            if count > file.bytes {
                return Err(other(format!("expected {} bytes, found more", file.bytes)));
            }
            hash.update(&data);
            to.write_all(&data).map_err(|reason| part.failed(reason))?;
        }
        if count != file.bytes {
            return Err(other(format!(
                "expected {} bytes, found {count}",
                file.bytes
            )));
        }
        let found = HEXLOWER.encode(&hash.finalize());
        if !found.eq_ignore_ascii_case(&file.sha256) {
            return Err(other(format!(
                "expected the SHA-256 {}, found {found}",
                file.sha256
            )));
        }
        part.keep(path)
    }

    /// The answer at an address, after redirections.
    async fn open(&self, address: &str) -> Result<Response<Incoming>, String> {
        let mut uri: Uri = address
            .parse()
            .map_err(|error| format!("not an address: {error}"))?;
        let encrypted = uri.scheme() == Some(&Scheme::HTTPS);
        for _ in 0..=REDIRECTIONS {
            let answer = self.request(&uri).await?;
            let status = answer.status();
            if status.is_success() {
                return Ok(answer);
            }
            let location = answer
                .headers()
                .get(LOCATION)
                .filter(|_| status.is_redirection());
            let Some(location) = location else {
                return Err(format!("the server answers {status}"));
            };
            let location = location.to_str().map_err(|error| error.to_string())?;
            uri = redirected(&uri, location)?;
            if encrypted && uri.scheme() != Some(&Scheme::HTTPS) {
                return Err(format!(
                    "the server redirects to {uri}, which is not encrypted"
                ));
            }
        }
        Err(format!(
            "the server redirects more than {REDIRECTIONS} times"
        ))
    }

    async fn request(&self, uri: &Uri) -> Result<Response<Incoming>, String> {
        let authority = uri.authority().ok_or("expected an address with a host")?;
        let stream = self.connect(uri).await?;
        let (mut sender, connection) = within(http1::handshake(TokioIo::new(stream)))
            .await?
            .map_err(|error| error.to_string())?;
        // It ends by itself when answer and sender are dropped.
        tokio::spawn(connection);
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::get(path)
            .header(HOST, authority.as_str())
            .header(USER_AGENT, concat!("rota/", env!("CARGO_PKG_VERSION")))
            .header(ACCEPT_ENCODING, "identity")
            .body(Empty::<Bytes>::new())
            .map_err(|error| error.to_string())?;
        within(sender.send_request(request))
            .await?
            .map_err(|error| error.to_string())
    }

    async fn connect(&self, uri: &Uri) -> Result<Box<dyn Stream>, String> {
        let host = uri.host().ok_or("expected an address with a host")?;
        let encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("expected an address that begins with https:// or http://".into()),
        };
        let port = uri.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
        let host = host.trim_matches(['[', ']']);
        let tcp = within(TcpStream::connect((host, port))).await?;
        let tcp = tcp.map_err(|error| format!("no connection to {host}: {error}"))?;
        if !encrypted {
            return Ok(Box::new(tcp));
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
        let tls = within(self.tls.connect(name, tcp)).await?;
        let tls = tls.map_err(|error| format!("no encrypted connection to {host}: {error}"))?;
        Ok(Box::new(tls))
    }
}

/// The result, if it comes in time.
async fn within<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let late = |_| format!("the server was silent for {} seconds", PATIENCE.as_secs());
    timeout(PATIENCE, future).await.map_err(late)
}

/// Where a redirection leads: an address of its own, or a path at the same server.
fn redirected(from: &Uri, location: &str) -> Result<Uri, String> {
    let text = match (
        location.starts_with('/'),
        from.scheme_str(),
        from.authority(),
    ) {
        (true, Some(scheme), Some(authority)) if !location.starts_with("//") => {
            format!("{scheme}://{authority}{location}")
        }
        _ => location.to_owned(),
    };
    let wrong = |error| format!("the server redirects to {location:?}: {error}");
    text.parse().map_err(wrong)
}

/// A file that is being written; removed unless it is kept.
struct Part {
    path: PathBuf,
    file: File,
}

impl Part {
    fn new(path: &Path) -> Result<Self, DownloadError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let path = PathBuf::from(name);
        match File::create(&path) {
            Ok(file) => Ok(Self { path, file }),
            Err(reason) => Err(DownloadError::Write { path, reason }),
        }
    }

    fn failed(&self, reason: io::Error) -> DownloadError {
        let path = self.path.clone();
        DownloadError::Write { path, reason }
    }

    fn keep(self, path: &Path) -> Result<(), DownloadError> {
        self.file.sync_all().map_err(|reason| self.failed(reason))?;
        fs::rename(&self.path, path).map_err(|reason| self.failed(reason))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // After `keep` there is nothing under this name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
