//! `node.toml`, checked: the configuration of one institution's node.

pub(super) mod consent;
mod keys;
pub(super) mod own_learner;
pub(super) mod paths;
mod read;

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agreement::{Agreement, ConfigError, Consent, Routine, TomlText, read_configuration};
use learn::DeviceChoice;
use learn::external::LearnerConfig;
use mesh::Contact;
use methods::robust::Radius;
use methods::serving::ServeConfig;
use methods::{Learner, Params};
use protocol::{MemberIndex, PublicKey, SecretKey};
use task::data::DataError;
use task::data::{Format, OwnRows};
use task::questions::RowAnswers;
use task::schema::LocalNames;

use self::consent::{CONSENT, Unsigned, consent_in};
use self::keys::{DataTable, FORMAT, PeerTable, SiloFile};
use self::own_learner::OwnLearner;
use crate::equipment::Equipment;
use crate::identity::{self, IdentityError};
use crate::model::{GivenStart, find_start};
use crate::policy::{PolicyTable, SitePolicy, SourceLimits};

/// The configuration of one institution's node, with the agreement and the key that it names. All that
/// [`Configured`] holds is read as a field of it.
#[derive(Clone)]
pub struct Institution {
    /// The position in the roster; behind the last where the key is in none.
    pub me: MemberIndex,
    /// The key.
    pub key: SecretKey,
    /// The rest.
    pub configured: Configured,
}

impl Deref for Institution {
    type Target = Configured;

    fn deref(&self) -> &Configured {
        &self.configured
    }
}

impl DerefMut for Institution {
    fn deref_mut(&mut self) -> &mut Configured {
        &mut self.configured
    }
}

/// The source of a silo's own data.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// The silo's own rows in files.
    Rows(Box<OwnRows>),
    /// The silo's share of the data that the task names.
    Share {
        /// Number of the share, from 1.
        silo: usize,
        /// Number of shares.
        of: usize,
        /// Folder of data files.
        folder: Option<PathBuf>,
    },
    /// Data that only the silo's program reads.
    Program,
}

/// Reason for which a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// `node.toml` or `federation.toml` is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The key file cannot be used.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The key belongs to no member.
    #[error(
        "the key {key} in {} is not in the roster of {}: use the key file of a member, \
         or ask the members to add this key (`rota federation add`; while the federation runs, \
         `rota federation admit`, and this node waits for it with --wait-for-admission)", identity.display(), federation.display()
    )]
    NotAMember {
        /// The public key.
        key: PublicKey,
        /// The key file.
        identity: PathBuf,
        /// The federation's file.
        federation: PathBuf,
    },
}

/// `node.toml` and the agreement that it names, checked. The key is not read yet.
#[derive(Clone)]
pub struct Configured {
    /// Agreement of the members.
    pub agreement: Agreement,
    /// The file of the agreement.
    pub federation: PathBuf,
    /// Address at which the node serves the page and the metrics; `None` if it does not.
    pub http: Option<SocketAddr>,
    /// The file of the key.
    pub identity: PathBuf,
    /// The file of the signed consent.
    pub consent: PathBuf,
    /// Changes of the agreement that the institution follows without signing the new one.
    pub policy: Vec<Routine>,
    /// Limits of the institution for its own node, below the agreement.
    pub(crate) site: SitePolicy,
    /// Folder of journal and blobs.
    pub state: PathBuf,
    /// Addresses at which the node listens.
    pub listen: Vec<String>,
    /// True if other nodes can connect to it.
    pub reachable: bool,
    /// True if the node relays between members.
    pub relay: bool,
    /// All members, with their known addresses.
    pub roster: Vec<Contact>,
    /// Seed that splits the rows and orders them in training.
    pub seed: u64,
    /// The robustness radius, or the rule that chooses it.
    pub radius: Radius,
    /// Choice of the model that is served.
    pub serve: ServeConfig,
    /// The file, or the state folder of an earlier node, with the model that the federation starts
    /// from, if it is given.
    pub start_model: Option<PathBuf>,
    /// Program that trains in place of Rota.
    pub learner: Option<OwnLearner>,
    /// Device on which Rota trains.
    pub device: DeviceChoice,
    /// The data.
    pub data: Data,
    /// The folder that paths of data are relative to.
    pub folder: PathBuf,
}

impl Configured {
    /// Reads a file and the agreement that it names; paths are relative to it.
    ///
    /// # Errors
    /// [`ConfigError`]: unreadable, or the first thing that is wrong in one of the two.
    pub fn load(file: &Path) -> Result<Self, ConfigError> {
        Self::read(file, None)
    }

    /// Reads a configuration for a node with this learner.
    ///
    /// # Errors
    /// As [`load`](Self::load); or the file names a program that trains.
    pub fn load_with(file: &Path, learner: Arc<dyn Learner>) -> Result<Self, ConfigError> {
        Self::read(file, Some(learner))
    }

    /// The folder of the agreement.
    pub fn agreed_in(&self) -> &Path {
        self.federation.parent().unwrap_or(Path::new(""))
    }

    /// Reads the key of a member.
    ///
    /// # Errors
    /// [`SetupError`]: a key that cannot be read, or of no member.
    pub fn with_key(self) -> Result<Institution, SetupError> {
        let institution = self.with_any_key()?;
        if institution.is_first_member() {
            return Ok(institution);
        }
        Err(SetupError::NotAMember {
            key: institution.key.public(),
            identity: institution.configured.identity,
            federation: institution.configured.federation,
        })
    }

    /// Reads the key, of a member of this agreement or of a later one.
    ///
    /// # Errors
    /// [`SetupError`]: a key that cannot be read.
    pub fn with_any_key(self) -> Result<Institution, SetupError> {
        let key = identity::read(&self.identity)?;
        let roster = &self.agreement.epoch.roster;
        let behind = MemberIndex(roster.len() as u16);
        let me = roster.position(&key.public()).unwrap_or(behind);
        Ok(Institution {
            me,
            key,
            configured: self,
        })
    }
}

/// The agreement that a federation begins with in a file, with addresses that a node can use.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, or the first error in it.
pub fn agreement_in(file: &Path) -> Result<Agreement, ConfigError> {
    let text = read_configuration(file)?;
    let name = file.display().to_string();
    let agreement = Agreement::parse(&name, &text)?;
    let source = TomlText {
        file: &name,
        text: &text,
    };
    agreement.may_begin().map_err(|why| {
        ConfigError::At(source.key_of("privacy.group", format!("is refused: {why}")))
    })?;
    for (nth, addresses) in agreement.addresses.iter().enumerate() {
        for address in addresses {
            mesh::check(address).map_err(|error| {
                let path = format!("member.{nth}.addresses");
                ConfigError::At(source.key_of(&path, format!("holds {error}")))
            })?;
        }
    }
    Ok(agreement)
}

impl Institution {
    /// Reads a file and those that it names; paths are relative to it.
    ///
    /// # Errors
    /// [`SetupError`]: unreadable, the first thing that is wrong in it, or a key of no member.
    pub fn load(file: &Path) -> Result<Self, SetupError> {
        Configured::load(file)?.with_key()
    }

    /// This node under another agreement, in which it has position `me`.
    pub(crate) fn under(&self, agreement: Agreement, me: MemberIndex) -> Self {
        let mut then = self.clone();
        then.me = me;
        then.agreement = agreement;
        then
    }

    /// Returns whether the institution is a member of the agreement that its configuration names.
    pub fn is_first_member(&self) -> bool {
        self.me.at() < self.agreement.epoch.roster.len()
    }

    /// The institution's signed consent to the agreement.
    ///
    /// # Errors
    /// [`Unsigned`]: it is not there, or does not hold.
    pub fn consented(&self) -> Result<Consent, Unsigned> {
        consent_in(&self.consent, &self.agreement, &self.key.public())
    }

    /// The model that the federation starts from, where it continues an earlier one or starts from what
    /// the proposer's program held.
    ///
    /// # Errors
    /// [`DataError::Config`]: it is not here, or it is another one.
    pub fn start(&self) -> Result<Option<Params>, DataError> {
        let Some(sought) = GivenStart::of(&self.agreement) else {
            return Ok(None);
        };
        let family = Equipment::of_family(&self.agreement, self.me, None)?;
        let family = family.plain.learner.layout();
        let given = self.start_model.as_deref();
        let found = find_start(&sought, given, &self.state, self.agreed_in(), &family);
        found
            .map(Some)
            .map_err(|error| DataError::Config(error.to_string()))
    }
}

impl Data {
    /// Rows in a file `rows.csv` beside the configuration, empty cells where a value is missing.
    pub fn beside() -> Self {
        Self::Rows(Box::new(OwnRows {
            files: vec!["rows.csv".into()],
            format: Format {
                missing: vec![String::new()],
                ..Format::default()
            },
            names: LocalNames::default(),
            answers: RowAnswers::default(),
        }))
    }
}

/// A configuration as a file, for a silo beside the federation's folder.
pub fn to_toml(
    name: &str,
    seed: u64,
    radius: Radius,
    listen: Vec<String>,
    (data, learner, device): (&Data, Option<LearnerConfig>, DeviceChoice),
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
        Data::Program => DataTable::default(),
    };
    let peer = |(name, addresses)| PeerTable { name, addresses };
    let raw = SiloFile {
        format: FORMAT,
        federation: "../federation.toml".into(),
        identity: "identity.key".into(),
        consent: Some(CONSENT.into()),
        state: "state".into(),
        listen,
        reachable: true,
        relay: true,
        seed,
        radius,
        start_model: None,
        serve: ServeConfig::default(),
        learner,
        device: device.name,
        device_slots: device.slots,
        data,
        http: None,
        policy: PolicyTable::default(),
        peer: peers.into_iter().map(peer).collect(),
    };
    let text = toml::to_string(&raw).map_err(|error| error.to_string())?;
    Ok(format!(
        "# The node of {name}. Paths are relative to this file.\n\n{text}"
    ))
}

/// The state folder that a `node.toml` names. Nothing else of it is checked, so that the status of a
/// node can be asked for without its key and agreement.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, or is no `node.toml`.
pub fn state_folder(file: &Path) -> Result<PathBuf, ConfigError> {
    let text = read_configuration(file)?;
    let name = file.display().to_string();
    let source = TomlText {
        file: &name,
        text: &text,
    };
    let raw = written(&source)?;
    Ok(file.parent().unwrap_or(Path::new("")).join(raw.state))
}

/// A `node.toml` as it is written, of which nothing is checked but its format and keys.
fn written(source: &TomlText<'_>) -> Result<SiloFile, ConfigError> {
    source.check_format(FORMAT).map_err(ConfigError::At)?;
    toml::from_str(source.text).map_err(|error| ConfigError::At(source.toml(&error)))
}

/// The ledger that a `node.toml` names, if it names one. Nothing but its paths is checked, so that a ledger
/// can be made before there is an agreement.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, is no `node.toml`, or its `[policy]` is wrong.
pub(crate) fn source_of(file: &Path) -> Result<Option<SourceLimits>, ConfigError> {
    Ok(policy_of(file)?.source)
}

/// The policy in a `node.toml`, of which nothing else is checked.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, is no `node.toml`, or its `[policy]` is wrong.
pub(crate) fn policy_of(file: &Path) -> Result<SitePolicy, ConfigError> {
    let text = read_configuration(file)?;
    let name = file.display().to_string();
    let source = TomlText {
        file: &name,
        text: &text,
    };
    let raw = written(&source)?;
    let beside = file.parent().unwrap_or(Path::new(""));
    let policy = SitePolicy::new(raw.policy, beside, &beside.join(raw.state));
    policy.map_err(|(key, what)| ConfigError::At(source.key_of(key, what)))
}

/// The ledger that a `node.toml` names, if that file is there.
///
/// # Errors
/// [`ConfigError`]: the file cannot be read, is no `node.toml`, or its `[policy]` is wrong.
pub fn opened_ledger(file: &Path) -> Result<Option<PathBuf>, ConfigError> {
    let ledger = source_of(file)?.map(|source| source.path);
    Ok(ledger.filter(|ledger| ledger.exists()))
}

/// The JSON Schema of `node.toml`.
pub fn schema() -> serde_json::Value {
    agreement::schema_of::<SiloFile>("node.toml")
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
        let device = DeviceChoice::default();
        for radius in [Radius::Fixed(0.05), Radius::CrossValidated(grid)] {
            let listen = vec!["/ip4/127.0.0.1/tcp/1".into()];
            let peers = vec![("b".into(), Vec::new())];
            let text =
                to_toml("a", 3, radius.clone(), listen, (&data, None, device), peers).unwrap();
            assert_eq!(toml::from_str::<SiloFile>(&text).unwrap().radius, radius);
        }
    }
}
