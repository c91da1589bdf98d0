//! Downloads files of public data sets over HTTP or HTTPS.
//!
//! A file appears under its name only when size and checksum are right; until then it is
//! `NAME.part`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use data_encoding::HEXLOWER;
use rustls::crypto::aws_lc_rs::default_provider;
use sha2::{Digest, Sha256};
use ureq::Body;
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};

use super::verify::FileState;
use super::{PublicFile, PublicSet};

/// Longest wait for a connection, an answer, or the next bytes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most redirections that are followed.
const REDIRECTIONS: u32 = 5;

/// Error of a file that was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The file was packed again and is not published.
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
        /// Description of the error.
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

/// Result for a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Got {
    /// The file was there already.
    Kept,
    /// The file was downloaded.
    Downloaded,
}

/// Downloads the files of a set into its folder under `data`, those that are not there already.
/// Another file under the same name is replaced only with `force`. `done` is told of every file.
///
/// # Errors
/// [`DownloadError`]: the first file that cannot be had. Those before it stay.
pub fn get(
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
            FileState::Right => {
                done(file, Got::Kept);
                continue;
            }
            FileState::Absent => (),
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
        client.fetch(file, address, &path)?;
        done(file, Got::Downloaded);
    }
    Ok(())
}

/// A client for HTTP and HTTPS.
pub struct Client {
    tls: TlsConfig,
}

/// With the certificate authorities that Mozilla trusts.
impl Default for Client {
    fn default() -> Self {
        Self::trusting(RootCerts::WebPki)
    }
}

impl Client {
    /// With these certificate authorities.
    fn trusting(roots: RootCerts) -> Self {
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(default_provider()))
            .root_certs(roots);
        Self { tls: tls.build() }
    }

    /// Downloads one file to `path`.
    fn fetch(&self, file: &PublicFile, address: &str, path: &Path) -> Result<(), DownloadError> {
        let network = |reason: String| DownloadError::Network {
            address: address.to_owned(),
            reason,
        };
        let other = |found: String| DownloadError::Other {
            address: address.to_owned(),
            found,
        };
        let mut answer = self.open(address).map_err(network)?;
        // One byte more than expected tells that there is more.
        let mut body = answer.body_mut().as_reader().take(file.bytes + 1);
        let part = PartialFile::new(path)?;
        let mut to = &part.file;
        let (mut hash, mut count) = (Sha256::new(), 0u64);
        let mut block = vec![0; 1 << 16];
        loop {
            let read = body.read(&mut block);
            let data = match read.map_err(|error| network(reason(&error.into(), address)))? {
                0 => break,
                read => &block[..read],
            };
            count += data.len() as u64;
            hash.update(data);
            to.write_all(data).map_err(|reason| part.failed(reason))?;
        }
        if count != file.bytes {
            let found = if count > file.bytes {
                "more".to_owned()
            } else {
                count.to_string()
            };
            return Err(other(format!(
                "expected {} bytes, found {found}",
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

    /// The answer at an address, after redirections: from an encrypted address to encrypted ones only.
    fn open(&self, address: &str) -> Result<Response<Body>, String> {
        let uri: Uri = address
            .parse()
            .map_err(|error| format!("not an address: {error}"))?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err("expected an address that begins with https:// or http://".into());
        }
        let agent = ureq::Agent::config_builder()
            .tls_config(self.tls.clone())
            .https_only(uri.scheme_str() == Some("https"))
            .http_status_as_error(false)
            .max_redirects(REDIRECTIONS)
            .user_agent(concat!("rota/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity")
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_per_read(Some(PATIENCE))
            // Every connection has one request: a server may close it after its answer.
            .max_idle_connections(0)
            .build()
            .new_agent();
        let answer = agent
            .get(uri)
            .call()
            .map_err(|error| reason(&error, address))?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status => Err(format!("the server answers {status}")),
        }
    }
}

/// Returns the reason for which nothing came, as text.
fn reason(error: &ureq::Error, address: &str) -> String {
    let uri: Option<Uri> = address.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or(address);
    match error {
        ureq::Error::TooManyRedirects => {
            format!("the server redirects more than {REDIRECTIONS} times")
        }
        ureq::Error::RequireHttpsOnly(to) => {
            format!("the server redirects to {to}, which is not encrypted")
        }
        ureq::Error::Timeout(_) => {
            format!("the server was silent for {} seconds", PATIENCE.as_secs())
        }
        ureq::Error::Rustls(error) => format!("no encrypted connection to {host}: {error}"),
        ureq::Error::Io(error)
            if error
                .get_ref()
                .is_some_and(|inner| inner.is::<rustls::Error>()) =>
        {
            format!("no encrypted connection to {host}: {error}")
        }
        error => format!("no connection to {host}: {error}"),
    }
}

/// A file that is being written; removed unless it is kept.
struct PartialFile {
    path: PathBuf,
    file: File,
}

impl PartialFile {
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

impl Drop for PartialFile {
    fn drop(&mut self) {
        // After `keep` there is nothing under this name.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests;
