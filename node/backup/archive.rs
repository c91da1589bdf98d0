//! The tar file of a backup: what is in it, under which names, with a hash of every file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use protocol::identity::{Signature, SignatureClaim, Strict, Verifier, VerifyingKey};
use protocol::{Hash, PublicKey, SecretKey, name};
use serde::{Deserialize, Serialize};

use crate::institution::IN_FORCE;
use crate::model::{PERSONAL, START};

/// Version of the format of backups.
pub(super) const FORMAT: u32 = 1;
/// The first file: what the backup is of, and the hashes of all others.
const MANIFEST: &str = "backup.json";
/// The configuration.
pub(super) const CONFIG: &str = "node.toml";
/// Its former name.
pub(super) const FORMER_CONFIG: &str = "silo.toml";
/// The secret key.
pub(super) const KEY: &str = "identity.key";
/// The secret by which rows are held out.
pub(super) const SPLIT: &str = crate::split_key::SPLIT_KEY;
/// The record of answered questions.
pub(super) const ANSWERED: &str = crate::answers::RECORD;
/// The first agreement.
pub(super) const AGREEMENT: &str = "federation.toml";
/// The file that `start-model` names.
pub(super) const START_MODEL: &str = "start-model";
/// The model of the institution, with its card, as `rota model export` writes it.
pub(super) const MODEL: &str = "model.safetensors";
/// Folder of files that lie beside the agreement.
pub(super) const BESIDE_AGREEMENT: &str = "agreement/";
/// Folder of files that lie beside the consent.
pub(super) const BESIDE_CONSENT: &str = "consent/";
/// Folder of the final blocks that ended epochs, one record each, in order.
pub(super) const PASSAGES: &str = "passages/";
/// The state folder.
pub(super) const STATE: &str = "state/";
/// The audit log in it.
pub(super) const AUDITED: &str = "state/audit/";
/// Other parts of the state folder that a backup holds, beside evidence. A journal is never put back.
pub(super) const OF_STATE: [&str; 3] = [IN_FORCE, START, PERSONAL];

/// Largest size in bytes of the manifest.
const LARGEST_MANIFEST: u64 = 16 << 20;
/// Largest size in bytes of any other file.
const LARGEST: u64 = task::file::MODEL;
/// Most files.
const MOST: usize = 10_000;

/// Subject of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Manifest {
    /// Version of the format.
    pub format: u32,
    /// Version of the program that made it.
    pub program: String,
    /// Time at which it was made, in UTC.
    pub made: String,
    /// Name of the federation.
    pub name: String,
    /// Id of the federation.
    pub federation: String,
    /// Name of the silo.
    pub silo: String,
    /// Public key of the silo.
    pub key: String,
    /// Number of changes of the agreement that were in force.
    pub epoch: u64,
    /// The last round that the silo had adopted; 0 before the first.
    pub round: u64,
    /// BLAKE3 of every other file, in hexadecimal digits, by name.
    pub files: BTreeMap<String, String>,
    /// The institution's signature over all of this, in hexadecimal digits; earlier versions made none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl Manifest {
    /// This manifest with the institution's signature.
    pub(super) fn signed(self, key: &SecretKey) -> io::Result<Self> {
        let signature = key.sign(&self.statement()?.0);
        Ok(Self {
            signature: Some(HEXLOWER.encode(&signature.to_bytes())),
            ..self
        })
    }

    /// Returns whether its signature is one of this key.
    pub(super) fn is_signed_by(&self, key: &PublicKey) -> bool {
        let bytes = self.signature.as_ref();
        let bytes = bytes.and_then(|digits| HEXLOWER.decode(digits.as_bytes()).ok());
        let signature = bytes.and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
        let (Some(signature), Some(key)) = (signature, VerifyingKey::new(key)) else {
            return false;
        };
        self.statement().is_ok_and(|said| {
            Strict.verify(&SignatureClaim {
                key: &key,
                message: &said.0,
                signature: Signature::from_bytes(&signature),
            })
        })
    }

    /// Returns what is signed.
    fn statement(&self) -> io::Result<Hash> {
        let unsigned = Self {
            signature: None,
            ..self.clone()
        };
        Ok(Hash::labelled(
            "rota: backup",
            &[&serde_json::to_vec(&unsigned)?],
        ))
    }

    /// Returns whether its texts are such as a backup has: they are shown, and written into the audit log.
    fn is_plain(&self) -> bool {
        let names = [&self.name, &self.silo];
        names.into_iter().all(|text| name::check(text).is_ok())
            && humantime::parse_rfc3339(&self.made).is_ok()
    }
}

/// Reason for which a file is not read as a backup.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file cannot be read.
    #[error("cannot read the backup {}: {why}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The system's error.
        why: io::Error,
    },
    /// A newer version of the program made it.
    #[error(
        "{} is a backup of format {found}, and this program reads format {FORMAT}: use the version that \
         made it, or a newer one", file.display()
    )]
    Newer {
        /// The file.
        file: PathBuf,
        /// Format of the backup.
        found: u64,
    },
    /// The file is damaged, or is no backup.
    #[error("{} is not a whole backup of `rota backup`: {what}; use another one", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// Fault of the file.
        what: String,
    },
}

/// A backup in memory.
#[derive(Debug)]
pub(super) struct Archive {
    pub(super) manifest: Manifest,
    /// The other files by name.
    pub(super) files: BTreeMap<String, Vec<u8>>,
}

impl Archive {
    /// Writes the tar file, which only its owner can read.
    ///
    /// # Errors
    /// Errors of the system; [`AlreadyExists`](io::ErrorKind::AlreadyExists) where there is a file.
    pub(super) fn write(&self, to: &Path) -> io::Result<u64> {
        let folder = to.parent().filter(|folder| *folder != Path::new(""));
        // On Unix for its owner only.
        let mut file = tempfile::Builder::new()
            .prefix(".rota-backup-")
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        let manifest = serde_json::to_vec_pretty(&self.manifest)?;
        let mut tar = tar::Builder::new(io::BufWriter::new(file.as_file_mut()));
        let first = [(MANIFEST, manifest.as_slice())];
        let others = self.files.iter();
        let others = others.map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        for (name, bytes) in first.into_iter().chain(others) {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, name, bytes)?;
        }
        tar.into_inner()?.flush()?;
        file.as_file().sync_all()?;
        let size = file.as_file().metadata()?.len();
        file.persist_noclobber(to).map_err(|error| error.error)?;
        Ok(size)
    }

    /// Reads a tar file, and verifies that every file in it is whole.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub(super) fn read(from: &Path) -> Result<Self, ArchiveError> {
        let unreadable = |why| ArchiveError::Unreadable {
            file: from.to_owned(),
            why,
        };
        let malformed = |what: String| ArchiveError::Malformed {
            file: from.to_owned(),
            what,
        };
        let file = File::open(from).map_err(unreadable)?;
        let mut tar = tar::Archive::new(BufReader::new(file));
        let broken =
            |why: io::Error| malformed(format!("it is no tar file, or is cut off ({why})"));
        let mut manifest = None;
        let mut files = BTreeMap::new();
        for entry in tar.entries().map_err(broken)? {
            let mut entry = entry.map_err(broken)?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let size = entry.size();
            let largest = match manifest {
                None => LARGEST_MANIFEST,
                Some(_) => LARGEST,
            };
            if !entry.header().entry_type().is_file() || size > largest || files.len() > MOST {
                return Err(malformed(format!("it holds {name:?}, which none has")));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(broken)?;
            if bytes.len() as u64 != size {
                return Err(malformed(format!("{name} is cut off")));
            }
            if manifest.is_none() {
                if name != MANIFEST {
                    return Err(malformed(format!("it begins with {name:?}")));
                }
                manifest = Some(self::manifest(from, &bytes)?);
            } else if !is_known(&name) || files.insert(name.clone(), bytes).is_some() {
                return Err(malformed(format!("it holds {name:?}, which none has")));
            }
        }
        let manifest = manifest.ok_or_else(|| malformed("it is empty".into()))?;
        for (name, hash) in &manifest.files {
            match files.get(name) {
                None => return Err(malformed(format!("{name} is missing"))),
                Some(bytes) if hash_of(bytes) != *hash => {
                    return Err(malformed(format!("{name} was changed, or is damaged")));
                }
                Some(_) => {}
            }
        }
        if let Some(name) = files
            .keys()
            .find(|name| !manifest.files.contains_key(*name))
        {
            return Err(malformed(format!("{name} was added")));
        }
        Ok(Self { manifest, files })
    }
}

/// Hash of a file, in hexadecimal digits.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    format!("{:#}", Hash::of(bytes))
}

fn manifest(file: &Path, bytes: &[u8]) -> Result<Manifest, ArchiveError> {
    let malformed = |why: serde_json::Error| ArchiveError::Malformed {
        file: file.to_owned(),
        what: format!("{MANIFEST}: {why}"),
    };
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(malformed)?;
    let found = value["format"].as_u64().unwrap_or(0);
    if found > u64::from(FORMAT) {
        let file = file.to_owned();
        return Err(ArchiveError::Newer { file, found });
    }
    let manifest: Manifest = serde_json::from_value(value).map_err(malformed)?;
    if manifest.is_plain() {
        Ok(manifest)
    } else {
        Err(ArchiveError::Malformed {
            file: file.to_owned(),
            what: format!("{MANIFEST} has a name or a time that none has"),
        })
    }
}

/// Returns whether a backup can have a file of this name. None leads out of the folder that it is put into.
fn is_known(name: &str) -> bool {
    if [
        CONFIG,
        FORMER_CONFIG,
        KEY,
        SPLIT,
        ANSWERED,
        AGREEMENT,
        START_MODEL,
        MODEL,
    ]
    .contains(&name)
    {
        return true;
    }
    let plain = |rest: &str| {
        let harmless = |c: char| c != '/' && c != '\\' && !c.is_control();
        !rest.is_empty() && !rest.starts_with('.') && rest.chars().all(harmless)
    };
    let folders = [
        BESIDE_AGREEMENT,
        BESIDE_CONSENT,
        PASSAGES,
        AUDITED,
        "state/evidence/",
    ];
    let within = |folder: &&str| name.strip_prefix(*folder).is_some_and(plain);
    let state = name.strip_prefix(STATE);
    state.is_some_and(|own| OF_STATE.contains(&own)) || folders.iter().any(within)
}
