//! Writes the files of a whole federation on one machine, to try it out.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use agreement::{Agreement, ConfigError, Consent, StatusFor};
use learn::external::LearnerConfig;
use mesh::Transport;
use methods::{Params, Split};
use protocol::Hash;
use protocol::parameters::RoundMode;
use simulations::{Federation, RunError, Scenario};
use task::data::{DataSet, SplitConfig, SplitKey, Target};
use task::schema::TargetColumn;
use task::{TaskConfig, data::DataError};

use node::identity::{self, IdentityError};
use node::institution::config::to_toml;
use node::institution::{CONSENT, Data};
use node::model::START;
use node::policy::{LedgerError, make_ledger};
use node::split_key::{self, SplitKeyError};

/// Range of ports to use, below those that systems give to outgoing connections.
const PORTS: std::ops::Range<u16> = 20_000..32_000;
/// Name of the file of the agreement.
const FEDERATION: &str = "federation.toml";

/// Options of a demo.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// An empty folder, or one that does not exist.
    pub folder: PathBuf,
    /// Transport between the silos.
    pub transport: Transport,
    /// The first silo's port, the others have the next ones; `None`: free ports.
    pub base_port: Option<u16>,
    /// Folder of data files.
    pub data: Option<PathBuf>,
}

/// A member of the written federation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DemoMember {
    /// Name of the member.
    pub name: String,
    /// The file of its configuration.
    pub config: PathBuf,
}

/// Addresses of the nodes of a federation, in roster order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePlaces {
    /// The addresses at which each listens.
    pub listen: Vec<Vec<String>>,
    /// For each node, the addresses at which it reaches each of the others; its own are not used.
    pub reach: Vec<Vec<Vec<String>>>,
}

impl NodePlaces {
    /// Of nodes that reach each other where they listen.
    pub fn open(listen: Vec<Vec<String>>) -> Self {
        let reach = vec![listen.clone(); listen.len()];
        Self { listen, reach }
    }
}

/// Error of a demo that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The folder is not empty.
    #[error("{} is not empty: choose another folder, or remove it", .0.display())]
    NotEmpty(PathBuf),
    /// A file or folder cannot be written.
    #[error("cannot write {}: {reason}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// Too few consecutive free ports.
    #[error("found no {0} consecutive free ports: choose some with --base-port")]
    Ports(usize),
    /// A port is in use, or beyond 65535.
    #[error("port {0} is not free: choose another --base-port, or leave it out")]
    Port(u32),
    /// The scenario's data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The scenario describes no valid federation.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A key file cannot be written.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The secret of a split cannot be written.
    #[error(transparent)]
    SplitKey(#[from] SplitKeyError),
    /// A ledger cannot be made.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The written agreement cannot be read back.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A value that cannot be written in TOML.
    #[error("this federation cannot be written: {0}")]
    Toml(String),
}

/// Writes the keys, the agreement and the configurations of all silos of a scenario. Everything but
/// the ports follows from the scenario and its seed. This includes the keys, so they are not secret.
///
/// # Errors
/// [`DemoError`]: the folder is not empty, data are missing, ports are in use, or a file cannot be
/// written.
pub fn demo(demo: &DemoOptions, scenario: &Scenario) -> Result<(Hash, Vec<DemoMember>), DemoError> {
    let folder = empty(&demo.folder)?;
    // Nobody signs an agreement under which a member may claim any number of rows.
    let mut scenario = scenario.clone();
    scenario.protocol.rows_declared = true;
    let places = |count| {
        let ports = ports(demo.base_port, count)?.into_iter();
        let listen = ports.map(|port| demo.transport.addresses("127.0.0.1", port));
        Ok(NodePlaces::open(listen.collect()))
    };
    files(folder, demo.data.as_deref(), &scenario, places)
}

/// Writes the same into a folder that exists, for nodes at the places that `places` gives for their
/// number. `data` is the folder of data files.
///
/// # Errors
/// [`DemoError`]: data are missing, no places, or a file cannot be written.
pub fn files(
    folder: &Path,
    data: Option<&Path>,
    scenario: &Scenario,
    places: impl FnOnce(usize) -> Result<NodePlaces, DemoError>,
) -> Result<(Hash, Vec<DemoMember>), DemoError> {
    let study = scenario.study(data)?;
    // Whose rows can stand in a file has them there, and reads nobody else's.
    let mut scenario = scenario.clone();
    scenario.task = scenario.task_of_rows()?;
    let (mut tables, mut split) = (None, SplitConfig::default());
    if let TaskConfig::Table(task) = &mut scenario.task {
        let set = task.tables(scenario.silos, data, scenario.seed)?;
        **task = task.of_own_rows(&set);
        tables = Some(set);
        split = task.split.clone();
    }
    if let (TaskConfig::External(task), Some(proposed)) = (&mut scenario.task, &study.proposed) {
        **task = proposed.task.clone();
    }
    let scenario = &scenario;
    let federation = Federation::of(scenario, &study)?;
    let agreement = agreement_of(scenario, &federation);
    let silos = federation.epoch.roster.silos();
    let places = places(silos.len())?;
    let text = agreement.to_toml().map_err(DemoError::Toml)?;
    write(&folder.join(FEDERATION), &text)?;
    let start = study.proposed.as_ref().and_then(|one| one.model.as_ref());
    start.map_or(Ok(()), |start| write_start(folder, start))?;
    let mut members = Vec::new();
    for (at, (silo, config)) in silos.iter().zip(&federation.members).enumerate() {
        let own = folder.join(names(silos.iter().map(|silo| silo.name.as_str()), at));
        make_own(&own)?;
        let identity = own.join("identity.key");
        identity::write(&identity, &config.member.key)?;
        if tables.is_some() && split.keyed {
            // That of the simulation, so that the same rows are held out.
            let key = SplitKey::simulated(split.seed.unwrap_or(scenario.seed), &silo.name);
            split_key::write(&identity, &key)?;
        }
        let data = match &tables {
            Some(set) => {
                write_own(&own.join("rows.csv"), &csv(set, at, &split))?;
                Data::beside()
            }
            None if matches!(scenario.task, TaskConfig::External(_)) => Data::Program,
            None => Data::Share {
                silo: at + 1,
                of: silos.len(),
                folder: absolute(data),
            },
        };
        let peers = silos.iter().zip(&places.reach[at]).enumerate();
        let peers = peers
            .filter(|(other, _)| *other != at)
            .map(|(_, (peer, addresses))| (peer.name.clone(), addresses.clone()));
        let consent = Consent::sign(&agreement, &config.member.key, SystemTime::now());
        let consent = consent.ok_or_else(|| DemoError::Toml("a key of no member".into()))?;
        let consent = consent.to_toml().map_err(DemoError::Toml)?;
        write(&own.join(CONSENT), &consent)?;
        let file = own.join("node.toml");
        let text = to_toml(
            &silo.name,
            scenario.seed,
            scenario.protocol.radius.clone(),
            places.listen[at].clone(),
            (&data, learner_of(scenario, at, &silo.name), scenario.device),
            peers.collect(),
        );
        let counted = counted(&agreement, &own)?;
        write(&file, &(text.map_err(DemoError::Toml)? + counted))?;
        members.push(DemoMember {
            name: silo.name.clone(),
            config: file,
        });
    }
    // The written file must give the same federation.
    let read = Agreement::load(&folder.join(FEDERATION))?;
    if read.epoch.federation == agreement.epoch.federation {
        Ok((agreement.epoch.federation, members))
    } else {
        Err(DemoError::Toml(
            "the written agreement is read back with another id".into(),
        ))
    }
}

/// Makes the ledger of a silo whose rounds have noise, and gives what its configuration says of it.
fn counted(agreement: &Agreement, own: &Path) -> Result<&'static str, DemoError> {
    let noise = match agreement.epoch.protocol.privacy.mode() {
        RoundMode::Noised(_, noise) => noise,
        RoundMode::Clear | RoundMode::Named | RoundMode::Masked(_) => return Ok(""),
    };
    make_ledger(&own.join("rows.ledger"), "rows", (&noise.unit).into())?;
    Ok("\n[policy]\nledger = \"rows.ledger\"\n")
}

/// Writes the model that the federation starts from beside the agreement.
fn write_start(folder: &Path, start: &Params) -> Result<(), DemoError> {
    let file = folder.join(START);
    let written = fs::write(&file, start.document());
    written.map_err(|reason| DemoError::Write { path: file, reason })
}

/// The program of the silo at this position, to be started in a folder of its own.
fn learner_of(scenario: &Scenario, at: usize, name: &str) -> Option<LearnerConfig> {
    let mut learner = scenario.learner.clone()?;
    let named = |silo: &String| silo == name || silo.parse() == Ok(at);
    if !learner.silos.is_empty() && !learner.silos.iter().any(named) {
        return None;
    }
    learner.silos.clear();
    // Files beside the scenario are not beside the node.
    for word in &mut learner.command {
        let beside = learner.folder.join(&*word);
        // A link stays one: the Python of a virtual environment is a link to another.
        if beside.is_file()
            && let Ok(found) = std::path::absolute(beside)
        {
            *word = found.display().to_string();
        }
    }
    if let Some(socket) = &mut learner.socket {
        *socket = std::path::absolute(&*socket).unwrap_or_else(|_| socket.clone());
    }
    Some(learner)
}

/// The agreement of a simulated federation.
fn agreement_of(scenario: &Scenario, federation: &Federation) -> Agreement {
    Agreement {
        epoch: federation.epoch.clone(),
        task: scenario.task.clone(),
        strategy_config: scenario.strategy.clone(),
        strategy: federation.members[0].strategy.clone(),
        seed: scenario.seed,
        max_model_norm: scenario.protocol.max_model_norm,
        max_weight: scenario.protocol.max_weight,
        status: StatusFor::Own,
        continues: None,
        questions: Vec::new(),
        serving: None,
        addresses: vec![Vec::new(); federation.members.len()],
        unfit: None,
    }
}

fn empty(folder: &Path) -> Result<&Path, DemoError> {
    make(folder)?;
    let unreadable = |reason| DemoError::Write {
        path: folder.into(),
        reason,
    };
    match fs::read_dir(folder).map_err(unreadable)?.next() {
        None => Ok(folder),
        Some(_) => Err(DemoError::NotEmpty(folder.into())),
    }
}

fn make(folder: &Path) -> Result<(), DemoError> {
    fs::create_dir_all(folder).map_err(|reason| DemoError::Write {
        path: folder.into(),
        reason,
    })
}

fn write(file: &Path, text: &str) -> Result<(), DemoError> {
    fs::write(file, text).map_err(|reason| DemoError::Write {
        path: file.into(),
        reason,
    })
}

/// Creates a silo's folder with permissions for its owner only.
fn make_own(folder: &Path) -> Result<(), DemoError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|reason| DemoError::Write {
        path: folder.into(),
        reason,
    })
}

/// Writes a silo's rows with permissions for its owner only.
fn write_own(file: &Path, text: &str) -> Result<(), DemoError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options
        .open(file)
        .and_then(|mut out| out.write_all(text.as_bytes()));
    written.map_err(|reason| DemoError::Write {
        path: file.into(),
        reason,
    })
}

fn absolute(folder: Option<&Path>) -> Option<PathBuf> {
    folder.map(|folder| std::path::absolute(folder).unwrap_or_else(|_| folder.into()))
}

/// Folder name of the silo at a position: its name in safe characters, different from all others.
fn names<'a>(all: impl Iterator<Item = &'a str>, at: usize) -> String {
    let mut slugs = Vec::new();
    for name in all.take(at + 1) {
        let words = name.split(|c: char| !c.is_alphanumeric());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let slug: String = words.join("-").to_lowercase().chars().take(48).collect();
        slugs.push(slug);
    }
    let slug = slugs.pop().unwrap_or_default();
    if slug.is_empty() || slugs.contains(&slug) || slug == FEDERATION {
        format!("silo-{}-{slug}", at + 1)
    } else {
        slug
    }
}

/// The rows of one silo as CSV, with digits that give the same numbers when they are read.
fn csv(set: &DataSet, silo: usize, split: &SplitConfig) -> String {
    let (_, table) = &set.silos[silo];
    // Columns that the split needs of a row, unless they are features already.
    let of = |name: &Option<String>| name.clone().filter(|name| !table.columns.contains(name));
    let (part, time, group) = (of(&split.column), of(&split.time), of(&split.group));
    let cell = |text: &str| {
        if text.contains([',', '"', '\n']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_owned()
        }
    };
    let names = part.iter().chain(&time).chain(&group);
    let names = names.chain(&table.columns);
    let mut text: String = names.map(|name| cell(name) + ",").collect();
    let targets = TargetColumn::of(&set.target);
    text.push_str(&targets.name.iter().collect::<Vec<_>>().join(","));
    text.push('\n');
    for row in 0..table.len() {
        if part.is_some() {
            text.push_str(match table.parts.get(row) {
                Some(Split::Test) => "test,",
                Some(Split::Validation) => "validation,",
                _ => "train,",
            });
        }
        if time.is_some() {
            let time = table.times.get(row).copied().unwrap_or_default();
            write!(text, "{time},").expect("a String takes everything");
        }
        if group.is_some() {
            let number = table.groups.get(row).copied().unwrap_or_default();
            let id = table.group_ids.get(number as usize);
            text.push_str(&(cell(id.map_or("", |id| id.0.as_str())) + ","));
        }
        for value in table.row(row) {
            if value.is_nan() {
                text.push(',')
            } else {
                write!(text, "{value},").expect("a String takes everything")
            }
        }
        let targets = table.targets(row).iter().map(|&target| match &set.target {
            Target::Classes(classes) => cell(&classes[target as usize]),
            _ => target.to_string(),
        });
        text.push_str(&targets.collect::<Vec<_>>().join(","));
        text.push('\n');
    }
    text
}

/// Free consecutive ports, one for each silo.
pub fn ports(base: Option<u16>, count: usize) -> Result<Vec<u16>, DemoError> {
    if let Some(base) = base {
        let wanted = (0..count as u32).map(|at| u32::from(base) + at);
        let usable = |port: u32| {
            u16::try_from(port)
                .ok()
                .filter(|&port| port > 0 && free(port))
        };
        return wanted
            .map(|port| usable(port).ok_or(DemoError::Port(port)))
            .collect();
    }
    // The search begins at another port in each process, so that two demos rarely choose the same.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let moment = now.map_or(0, |now| now.subsec_nanos());
    let draw = Hash::labelled(
        "ports",
        &[&moment.to_le_bytes(), &std::process::id().to_le_bytes()],
    );
    let first = PORTS.start + u16::from_le_bytes([draw.0[0], draw.0[1]]) % (PORTS.len() as u16 / 2);
    let found: Vec<_> = (first..PORTS.end)
        .filter(|&port| free(port))
        .take(count)
        .collect();
    if found.len() == count {
        Ok(found)
    } else {
        Err(DemoError::Ports(count))
    }
}

/// Returns whether a port is free for QUIC and for TCP.
fn free(port: u16) -> bool {
    let at = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
}

#[cfg(test)]
mod tests;
