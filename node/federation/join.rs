//! Writes what an institution needs to take part: the agreement, its signed consent and `node.toml`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use agreement::{Agreement, Consent};
use protocol::MemberIndex;
use serde::Serialize;
use task::data::DataError;
use task::data::{Format, OwnFile, OwnRows};
use task::propose::{Marks, formats_of};
use task::questions::RowAnswers;
use task::schema::LocalNames;

use super::address::is_loopback;
use super::own_names::with_names;
use crate::institution::CONSENT;
use crate::paths::relative;
use crate::policy::with_ledger;

/// Where a node listens if no address of it is known.
const PORT: u16 = 4001;

/// What an institution brings.
pub struct Join<'a> {
    /// The agreement.
    pub agreement: &'a Agreement,
    /// The text of its file.
    pub text: &'a str,
    /// Position of the institution in the roster.
    pub me: MemberIndex,
    /// The file of its key.
    pub identity: &'a Path,
    /// The files of its rows, and how they are written.
    pub rows: &'a OwnRows,
    /// Its policy, the table `[policy]`; empty where it has none.
    pub policy: toml::Table,
    /// Where its node listens; empty: at the ports of its addresses in the agreement.
    pub listen: Vec<String>,
    /// The folder for the new files.
    pub folder: &'a Path,
    /// Whether to overwrite files.
    pub force: bool,
}

/// The new files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Joined {
    /// The agreement.
    pub federation: PathBuf,
    /// The configuration.
    pub config: PathBuf,
    /// The consent, which is written when it is signed.
    pub consent: PathBuf,
}

/// Why files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// Another file is there.
    #[error("{} exists with other contents: choose another folder with --out, or overwrite it with --force", .0.display())]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A value that TOML cannot express.
    #[error("this configuration cannot be written: {0}")]
    Toml(String),
}

/// An institution's files, with the way in which they are written as far as it can be seen. Columns
/// in `ignore` are not read; `marks` answer what the files leave open.
///
/// # Errors
/// [`DataError`]: a file cannot be read, is no table, or has numbers that can be read in two ways.
pub fn own_rows(files: &[PathBuf], ignore: &[String], marks: Marks) -> Result<OwnRows, DataError> {
    let formats = formats_of(files, marks)?;
    let first = formats.first().cloned().unwrap_or_default();
    let own = |(path, format): (&PathBuf, Format)| {
        OwnFile::new(path.clone(), (format != first).then_some(format))
    };
    Ok(OwnRows {
        files: files.iter().zip(formats).map(own).collect(),
        format: first,
        names: LocalNames {
            ignore: ignore.to_vec(),
            ..LocalNames::default()
        },
        answers: RowAnswers::default(),
    })
}

impl Join<'_> {
    /// Writes agreement and configuration. Nothing is signed.
    ///
    /// # Errors
    /// [`JoinError`]: files are there already, or cannot be written.
    pub fn write(&self) -> Result<Joined, JoinError> {
        let joined = Joined {
            federation: self.folder.join("federation.toml"),
            config: self.folder.join("node.toml"),
            consent: self.folder.join(CONSENT),
        };
        let new = self.config()?;
        let kept = self.kept(&joined.config, &new);
        let may = self.force || kept.is_some();
        let config = kept.unwrap_or(new);
        for (path, text) in [(&joined.federation, self.text), (&joined.config, &config)] {
            let same = fs::read_to_string(path).is_ok_and(|found| found == *text);
            let may = may && (self.force || *path == joined.config);
            if path.exists() && !same && !may {
                return Err(JoinError::Exists(path.clone()));
            }
        }
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |reason| JoinError::Write { path, reason }
        };
        if !self.folder.is_dir() {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(self.folder).map_err(failed(self.folder))?;
        }
        fs::write(&joined.federation, self.text).map_err(failed(&joined.federation))?;
        fs::write(&joined.config, config).map_err(failed(&joined.config))?;
        Ok(joined)
    }

    /// The text of a `node.toml` that is there and says what a `new` one would: with the names and answers of this one, and
    /// otherwise as somebody left it. `None` where it says something else.
    fn kept(&self, file: &Path, new: &str) -> Option<String> {
        let mut found = fs::read_to_string(file).ok()?;
        let (mut own, new): (toml::Table, toml::Table) = (found.parse().ok()?, new.parse().ok()?);
        let ledger = self.policy.get("ledger").and_then(toml::Value::as_str);
        if let Some(ledger) = ledger.filter(|_| own.get("policy") != new.get("policy")) {
            found = with_ledger(&found, self.folder, &self.folder.join(ledger))?;
            own = found.parse().ok()?;
        }
        let keys = ["federation", "consent", "identity", "state", "policy"];
        let rows = |file: &toml::Table| -> Option<OwnRows> {
            let rows: OwnRows = file.get("data")?.get("rows")?.clone().try_into().ok()?;
            let names = LocalNames::default();
            Some(OwnRows {
                names,
                answers: RowAnswers::default(),
                ..rows
            })
        };
        let listens = self.listen.is_empty() || own.get("listen") == new.get("listen");
        let same = keys.iter().all(|key| own.get(*key) == new.get(*key));
        (listens && same && rows(&own)? == rows(&new)?)
            .then(|| with_names(&found, self.rows))
            .flatten()
    }

    /// Returns where the node listens.
    pub fn listening(&self) -> Vec<String> {
        if !self.listen.is_empty() {
            return self.listen.clone();
        }
        let own = self.agreement.addresses.get(self.me.at());
        let own = own.map_or(&[][..], Vec::as_slice);
        let mut all: Vec<String> = Vec::new();
        for address in own {
            let Some((ip, port)) = mesh::port(address) else {
                continue;
            };
            let host = match ip {
                Some(ip) if is_loopback(address) && ip.is_ipv6() => format!("/ip6/{ip}"),
                Some(ip) if is_loopback(address) => format!("/ip4/{ip}"),
                Some(ip) if ip.is_ipv6() => "/ip6/::".into(),
                _ => "/ip4/0.0.0.0".into(),
            };
            let listen = if port.udp {
                format!("{host}/udp/{}/quic-v1", port.number)
            } else {
                format!("{host}/tcp/{}", port.number)
            };
            if !all.contains(&listen) {
                all.push(listen);
            }
        }
        if all.is_empty() {
            mesh::Transport::Both.addresses("0.0.0.0", PORT)
        } else {
            all
        }
    }

    /// `node.toml`, with comments.
    fn config(&self) -> Result<String, JoinError> {
        #[derive(Serialize)]
        struct One<T: Serialize> {
            value: T,
        }
        // A value as TOML writes it in one line.
        fn inline(value: impl Serialize) -> Result<String, JoinError> {
            let value = toml::Value::try_from(One { value });
            let value = value.map_err(|error| JoinError::Toml(error.to_string()))?;
            Ok(value["value"].to_string())
        }
        let epoch = &self.agreement.epoch;
        let name = epoch.roster.name(self.me);
        let path = |file: &Path| inline(relative(file, self.folder).to_string_lossy());
        let file = |file: &OwnFile| {
            let path = relative(file.path(), self.folder);
            inline(OwnFile::new(path, file.format().cloned()))
        };
        let files: Result<Vec<_>, _> = self.rows.files.iter().map(file).collect();
        let others = epoch.roster.silos().iter().find(|silo| silo.name != name);
        let other = others.map_or("south", |silo| &silo.name);
        let own = self.agreement.addresses.get(self.me.at());
        let (place, unreachable) = if own.is_some_and(|own| !own.is_empty()) {
            ("The others reach it at the addresses in the agreement.", "")
        } else {
            (
                "The agreement has no address of it: it connects to the others.",
                "\n# Others cannot connect to this node. Members that can pass on connections to it.\n\
                 reachable = false\n",
            )
        };
        let units = match self.rows.names.units.is_empty() {
            true => String::new(),
            false => format!(
                "units = {}      # column = \"text before or behind each number\"\n",
                inline(&self.rows.names.units)?
            ),
        };
        let listen: Result<Vec<_>, _> = self.listening().into_iter().map(inline).collect();
        let counts = match self.policy.contains_key("ledger") {
            true => {
                " The ledger counts what is told about\n# these rows: keep it for as long as the rows, and in every \
                 backup."
            }
            false => "",
        };
        let answers = match self.rows.answers == RowAnswers::default() {
            true => String::new(),
            false => format!(
                "# What was answered about these rows when they were signed for.\n[data.rows.answers]\nkeep = {}\n\
                 learn = {}\n\n",
                inline(&self.rows.answers.keep)?,
                inline(&self.rows.answers.learn)?,
            ),
        };
        let keys = toml::to_string(&self.policy);
        let keys = keys.map_err(|error| JoinError::Toml(error.to_string()))?;
        let policy = match self.policy.is_empty() {
            true => String::new(),
            false => format!(
                "\n# What the node takes part in, whatever the agreement says.{counts}\n[policy]\n{keys}"
            ),
        };
        Ok(format!(
            "# The node of {name} in the federation {}, written by `rota federation join`.\n\
             # Paths are relative to this file. `rota schema node` describes every key.\n\
             #\n\
             #   rota check --config node.toml    looks at everything that it needs\n\
             #   rota run --config node.toml      runs it\n\n\
             federation = \"federation.toml\"   # the agreement, the same at every member\n\
             consent = \"{CONSENT}\"         # signed with the key below: a node starts on this agreement only\n\
             identity = {}   # the secret key: nobody else may read it\n\
             state = \"state\"                  # journal and models: never put back an old copy\n\n\
             # Where this node listens. {}\n\
             listen = [{}]\n{}\n\
             # seed = 0        # of the division of the rows into training and test rows\n\
             # radius = 0      # robustness radius, or a rule that chooses it; it stays here\n\n\
             # The rows, read by the agreed schema. They stay here.\n\
             [data.rows]\n\
             files = [{}]\n\
             format = {}\n\n\
             # Names that differ from the agreed ones, and columns that are not to be read.\n\
             [data.rows.names]\n\
             columns = {}      # agreed = \"name in the files\"\n\
             codes = {}        # column = {{ \"code in the files\" = \"agreed value\" }}\n\
             missing = {}      # column = [\"text that means a missing value\"], besides those in `format`\n\
             absent = {}       # agreed columns that the files do not have\n{units}\
             ignore = {}       # such as \"patient_id\"\n\n{}\
             # A member that is reached elsewhere than the agreement says:\n\
             # [[peer]]\n\
             # name = {}\n\
             # addresses = [\"/dns/rota.example.org/udp/4001/quic-v1\"]\n{policy}",
            epoch.protocol.name,
            path(self.identity)?,
            place,
            listen?.join(", "),
            unreachable,
            files?.join(", "),
            inline(&self.rows.format)?,
            inline(&self.rows.names.columns)?,
            inline(&self.rows.names.codes)?,
            inline(&self.rows.names.missing)?,
            inline(&self.rows.names.absent)?,
            inline(&self.rows.names.ignore)?,
            answers,
            inline(other)?,
        ))
    }
}

/// Writes a consent that was signed; an older one is replaced.
///
/// # Errors
/// [`JoinError`]: it cannot be written.
pub fn keep_consent(consent: &Consent, file: &Path) -> Result<(), JoinError> {
    let text = consent.to_toml().map_err(JoinError::Toml)?;
    fs::write(file, text).map_err(|reason| JoinError::Write {
        path: file.into(),
        reason,
    })
}
