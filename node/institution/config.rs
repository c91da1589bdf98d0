//! `silo.toml`, checked: the configuration of one institution's node.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use agreement::{Agreement, ConfigError, Source, read_configuration};
use learn::data::{Format, OwnRows};
use learn::schema::LocalNames;
use learn::{DataError, Source as Rows, TaskConfig};
use mesh::Contact;
use methods::Params;
use methods::robust::Radius;
use methods::serving::ServeConfig;
use protocol::{MemberIndex, SecretKey};

use super::file::{DataTable, FORMAT, PeerTable, SiloFile};
use crate::equipment::Equipment;
use crate::identity::{self, IdentityError};
use crate::model::find_start;
use crate::status::http;

/// The configuration of one institution's node, with the agreement and the key that it names.
#[derive(Clone)]
pub struct Institution {
    /// What the members agreed on.
    pub agreement: Agreement,
    /// This institution's position in the roster.
    pub me: MemberIndex,
    /// Its key.
    pub key: SecretKey,
    /// The file of its key.
    pub identity: PathBuf,
    /// Where its journal and blobs are.
    pub state: PathBuf,
    /// Where it listens.
    pub listen: Vec<String>,
    /// All members, with their known addresses.
    pub roster: Vec<Contact>,
    /// Where it serves the page and the metrics; `None` if it does not.
    pub http: Option<SocketAddr>,
    /// Its own seed, which splits its rows and orders them in training.
    pub seed: u64,
    /// Its robustness radius, or the rule that chooses it.
    pub radius: Radius,
    /// How it chooses the model that it serves.
    pub serve: ServeConfig,
    /// The file, or the state folder of an earlier node, with the model that the federation starts
    /// from, if it is given.
    pub start_model: Option<PathBuf>,
    /// The folder of the agreement.
    pub agreed_in: PathBuf,
    /// Its data.
    pub data: Data,
    /// The folder that paths of data are relative to.
    pub folder: PathBuf,
}

/// The source of a silo's own data.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// Its own rows in files.
    Rows(Box<OwnRows>),
    /// Its share of the data that the task names.
    Share {
        /// Number of the share, from 1.
        silo: usize,
        /// Number of shares.
        of: usize,
        /// Folder of data files.
        folder: Option<PathBuf>,
    },
}

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// `silo.toml` or `federation.toml` is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key file cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The key belongs to no member.
    #[error(
        "the key {key} in {} is not in the roster of {}: use the key file of a member, \
         or ask the members to add this key", identity.display(), federation.display()
    )]
    NotAMember {
        /// The public key.
        key: protocol::PublicKey,
        /// The key file.
        identity: PathBuf,
        /// The federation's file.
        federation: PathBuf,
    },
}

impl Institution {
    /// Reads a file and those that it names; paths are relative to it.
    ///
    /// # Errors
    /// [`SetupError`]: unreadable, the first thing that is wrong in it, or a key of no member.
    pub fn load(file: &Path) -> Result<Self, SetupError> {
        let text = read_configuration(file)?;
        let name = file.display().to_string();
        let source = Source {
            file: &name,
            text: &text,
        };
        let wrong = |path: &str, what: &str| ConfigError::At(source.key_of(path, what));
        source.check_format(FORMAT).map_err(ConfigError::At)?;
        let raw: SiloFile =
            toml::from_str(&text).map_err(|error| ConfigError::At(source.toml(&error)))?;
        let beside = file.parent().unwrap_or(Path::new(""));
        let data = raw.data.validate(beside, &wrong)?;
        if let Err(error) = raw.radius.validate() {
            return Err(wrong("radius", &error.to_string()).into());
        }
        if let Err(what) = raw.serve.check() {
            return Err(wrong("serve.folds", &format!("is {}, it {what}", raw.serve.folds)).into());
        }
        let listen = raw
            .listen
            .iter()
            .map(|address| ("listen".to_owned(), address));
        let peers = raw.peer.iter().enumerate().flat_map(|(nth, peer)| {
            let path = format!("peer.{nth}.addresses");
            peer.addresses
                .iter()
                .map(move |address| (path.clone(), address))
        });
        for (path, address) in listen.chain(peers) {
            mesh::check(address).map_err(|error| wrong(&path, &format!("holds {error}")))?;
        }
        let http = raw.http.as_ref().map(|http| http::address(&http.listen));
        let http = http.transpose();
        let http =
            http.map_err(|error| wrong("http.listen", &format!("in [http] is refused: {error}")))?;
        let federation = beside.join(&raw.federation);
        let agreement = Agreement::load(&federation)?;
        let roster = &agreement.epoch.roster;
        let identity = beside.join(&raw.identity);
        let key = identity::read(&identity)?;
        let me = roster.position(&key.public());
        let me = me.ok_or_else(|| SetupError::NotAMember {
            key: key.public(),
            identity: identity.clone(),
            federation: federation.clone(),
        })?;
        let mut contacts: Vec<_> = roster
            .members()
            .zip(roster.silos())
            .map(|(member, silo)| Contact {
                member,
                key: silo.key,
                addresses: Vec::new(),
            })
            .collect();
        for (nth, peer) in raw.peer.into_iter().enumerate() {
            let at = roster
                .silos()
                .iter()
                .position(|silo| silo.name == peer.name);
            let Some(at) = at else {
                let names: Vec<_> = roster.silos().iter().map(|silo| &*silo.name).collect();
                let what = format!(
                    "is {:?}, which is not in the roster of {}; there are {}",
                    peer.name,
                    federation.display(),
                    names.join(", ")
                );
                return Err(wrong(&format!("peer.{nth}.name"), &what).into());
            };
            contacts[at].addresses.extend(peer.addresses);
        }
        Ok(Self {
            me,
            key,
            identity,
            state: beside.join(raw.state),
            listen: raw.listen,
            http,
            roster: contacts,
            seed: raw.seed,
            radius: raw.radius,
            serve: raw.serve,
            start_model: raw.start_model.map(|path| beside.join(path)),
            agreed_in: federation.parent().unwrap_or(Path::new("")).into(),
            data,
            folder: beside.into(),
            agreement,
        })
    }

    /// The model that the federation starts from, where it continues an earlier one.
    ///
    /// # Errors
    /// [`DataError::Config`]: it is not here, or it is another one.
    pub fn start(&self) -> Result<Option<Params>, DataError> {
        let Some(continues) = &self.agreement.continues else {
            return Ok(None);
        };
        let family = Equipment::stand_in(&self.agreement, self.me, None)?;
        let family = family.plain.learner.layout();
        let given = self.start_model.as_deref();
        let found = find_start(continues, given, &self.state, &self.agreed_in, &family);
        found
            .map(Some)
            .map_err(|error| DataError::Config(error.to_string()))
    }

    /// Reads the silo's own data: what it learns with, alone and as the agreed strategy equips it.
    /// `start` is the model that the federation [starts](Self::start) from.
    ///
    /// # Errors
    /// [`DataError`]: data that are not there or not what the task needs, a model with which the
    /// strategy cannot work.
    pub fn equipment(&self, start: Option<&Params>) -> Result<Equipment, DataError> {
        let task = &self.agreement.task;
        let (study, silo) = match (&self.data, task) {
            (Data::Share { silo, of, folder }, task) => {
                let study = task.study(Some(*of), folder.as_deref(), self.seed)?;
                (study, *silo)
            }
            (Data::Rows(rows), TaskConfig::Table(table)) => {
                let roster = &self.agreement.epoch.roster;
                let mut table = table.clone();
                table.schema = table.agreed_schema()?;
                if table.schema.is_none() {
                    return Err(DataError::Config(
                        "the agreement has no [task.table.schema], by which own rows could be read: \
                         agree on one, or write `share = \"1 of 8\"` in [data]"
                            .into(),
                    ));
                }
                // The split of the rows depends on the silo's name.
                let rows = rows.of_silo(roster.name(self.me), &self.folder);
                table.data = Some(Rows::Rows(Box::new(rows)));
                // Only this silo's rows are read, so only its own domain is kept.
                let domain = table.domain(self.me.at(), roster.len())?;
                table.domains = domain.map(|domain| vec![domain]);
                let study = TaskConfig::Table(table).study(None, None, self.seed)?;
                (study, 1)
            }
            (Data::Rows(_), _) => {
                return Err(DataError::Config(
                    "the federation's task has no table of rows: write `share = \"1 of 8\"` in [data]"
                        .into(),
                ));
            }
        };
        let found = silo.checked_sub(1).and_then(|at| study.silos.get(at));
        let found = found.ok_or_else(|| {
            let has = study.silos.len();
            DataError::Config(format!(
                "there is no silo {silo} in these data, they have {has}"
            ))
        })?;
        let (agreement, radius) = (&self.agreement, self.radius.clone().into());
        Equipment::new(agreement, found.clone(), study.metric, start, &radius)
    }
}

impl DataTable {
    fn validate(
        self,
        beside: &Path,
        wrong: &dyn Fn(&str, &str) -> ConfigError,
    ) -> Result<Data, ConfigError> {
        match (self.share, self.rows) {
            (None, Some(rows)) if self.folder.is_none() => Ok(Data::Rows(rows)),
            (None, Some(_)) => {
                let what = "goes with `share`: paths of files are relative to this file";
                Err(wrong("data.folder", what))
            }
            (Some(share), None) => {
                let parts = share.split_once(" of ").and_then(|(silo, of)| {
                    Some((silo.trim().parse().ok()?, of.trim().parse().ok()?))
                });
                let (silo, of) = parts
                    .filter(|&(silo, of): &(usize, usize)| 1 <= silo && silo <= of)
                    .ok_or_else(|| {
                        let what = format!("is {share:?}, it must be like \"3 of 8\"");
                        wrong("data.share", &what)
                    })?;
                Ok(Data::Share {
                    silo,
                    of,
                    folder: self.folder.map(|folder| beside.join(folder)),
                })
            }
            _ => Err(wrong(
                "data",
                "needs either `rows`, this silo's own rows, or `share`, such as \"3 of 8\"",
            )),
        }
    }
}

impl Data {
    /// Rows in a file `rows.csv` beside the configuration, empty cells where a value is missing.
    pub(crate) fn beside() -> Self {
        Self::Rows(Box::new(OwnRows {
            files: vec!["rows.csv".into()],
            format: Format {
                missing: vec![String::new()],
                ..Format::default()
            },
            names: LocalNames::default(),
        }))
    }
}

/// A configuration as a file, for a silo beside the federation's folder.
pub(crate) fn to_toml(
    name: &str,
    seed: u64,
    radius: Radius,
    listen: Vec<String>,
    data: &Data,
    peers: Vec<(String, Vec<String>)>,
) -> Result<String, String> {
    let data = match data.clone() {
        Data::Rows(rows) => DataTable {
            rows: Some(rows),
            ..DataTable::default()
        },
        Data::Share { silo, of, folder } => DataTable {
            share: Some(format!("{silo} of {of}")),
            folder,
            rows: None,
        },
    };
    let peer = |(name, addresses)| PeerTable { name, addresses };
    let raw = SiloFile {
        format: FORMAT,
        federation: "../federation.toml".into(),
        identity: "identity.key".into(),
        state: "state".into(),
        listen,
        seed,
        radius,
        start_model: None,
        serve: ServeConfig::default(),
        data,
        http: None,
        peer: peers.into_iter().map(peer).collect(),
    };
    let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
    Ok(format!(
        "# The node of {name}. Paths are relative to this file.\n\n{text}"
    ))
}

/// The state folder that a `silo.toml` names. Nothing else of it is checked, so that the status of a
/// node can be asked for without its key and agreement.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, or is no `silo.toml`.
pub fn state_folder(file: &Path) -> Result<PathBuf, ConfigError> {
    let text = read_configuration(file)?;
    let name = file.display().to_string();
    let source = Source {
        file: &name,
        text: &text,
    };
    source.check_format(FORMAT).map_err(ConfigError::At)?;
    let raw: SiloFile =
        toml::from_str(&text).map_err(|error| ConfigError::At(source.toml(&error)))?;
    Ok(file.parent().unwrap_or(Path::new("")).join(raw.state))
}

/// The JSON Schema of `silo.toml`.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<SiloFile>("silo.toml")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use methods::robust::RadiusGrid;

    use super::*;

    #[test]
    fn every_rule_for_a_radius_is_written_and_read_back() {
        let grid = RadiusGrid {
            folds: 5,
            grid: vec![0.01, 0.1],
            one_standard_error: false,
        };
        let data = Data::Share {
            silo: 1,
            of: 4,
            folder: None,
        };
        for radius in [Radius::Fixed(0.05), Radius::CrossValidated(grid)] {
            let listen = vec!["/ip4/127.0.0.1/tcp/1".into()];
            let peers = vec![("b".into(), Vec::new())];
            let text = to_toml("a", 3, radius.clone(), listen, &data, peers).unwrap();
            assert_eq!(toml::from_str::<SiloFile>(&text).unwrap().radius, radius);
        }
    }
}
