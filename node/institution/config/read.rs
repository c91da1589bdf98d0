//! Reads and checks a `node.toml`.

use std::path::Path;
use std::sync::Arc;

use agreement::{Agreement, ConfigError, TomlText, read_configuration};
use learn::DeviceChoice;
use learn::external::LearnerConfig;
use mesh::Contact;
use methods::Learner;
use task::{TaskConfig, data::DataError};

use super::consent::CONSENT;
use super::keys::{DataTable, PeerTable};
use super::own_learner::OwnLearner;
use super::{Configured, Data, agreement_in, written};
use crate::policy::SitePolicy;
use crate::status::http;

/// The error at a key of the file, by its path, with what is wrong there.
type KeyErrorAt<'a> = &'a dyn Fn(&str, &str) -> ConfigError;

impl Configured {
    /// Reads and checks a file, of a node that trains with `own` where it is given.
    pub(super) fn read(file: &Path, own: Option<Arc<dyn Learner>>) -> Result<Self, ConfigError> {
        let text = read_configuration(file)?;
        let name = file.display().to_string();
        let source = TomlText {
            file: &name,
            text: &text,
        };
        let wrong = |path: &str, what: &str| ConfigError::At(source.key_of(path, what));
        let raw = written(&source)?;
        let beside = file.parent().unwrap_or(Path::new(""));
        let learner = own_learner(raw.learner, own, beside, source)?;
        let device = DeviceChoice {
            name: raw.device,
            slots: raw.device_slots,
        };
        if let Err(error) = device.check() {
            let what = format!("`device`: {error}");
            return Err(ConfigError::At(source.at(source.span("device"), what)));
        }
        if let Err(error) = raw.radius.validate() {
            return Err(wrong("radius", &error.to_string()));
        }
        if let Err(what) = raw.serve.check() {
            let what = format!("is {}, it {what}", raw.serve.folds);
            return Err(wrong("serve.folds", &what));
        }
        check_addresses(&raw.listen, &raw.peer, &wrong)?;
        let http = raw.http.as_ref().map(|http| http::address(&http.listen));
        let http = http.transpose();
        let http =
            http.map_err(|error| wrong("http.listen", &format!("in [http] is refused: {error}")))?;
        let federation = beside.join(&raw.federation);
        let agreement = agreement_in(&federation)?;
        let data = data(raw.data, &agreement.task, learner.as_ref(), beside, &wrong)?;
        let state = beside.join(&raw.state);
        let site = SitePolicy::new(raw.policy.clone(), beside, &state);
        let site = site.map_err(|(key, what)| wrong(key, &what))?;
        let roster = contacts(&agreement, raw.peer, &federation, &wrong)?;
        Ok(Self {
            identity: beside.join(&raw.identity),
            consent: beside.join(raw.consent.unwrap_or_else(|| CONSENT.into())),
            policy: raw.policy.approve.clone(),
            site,
            federation,
            state: beside.join(raw.state),
            listen: raw.listen,
            reachable: raw.reachable,
            relay: raw.relay,
            http,
            roster,
            seed: raw.seed,
            radius: raw.radius,
            serve: raw.serve,
            start_model: raw.start_model.map(|path| beside.join(path)),
            learner,
            device,
            data,
            folder: beside.into(),
            agreement,
        })
    }
}

/// Returns what the institution trains with in place of Rota: a learner of its own program, or the program that
/// the file names.
fn own_learner(
    mut learner: Option<LearnerConfig>,
    own: Option<Arc<dyn Learner>>,
    beside: &Path,
    source: TomlText<'_>,
) -> Result<Option<OwnLearner>, ConfigError> {
    if let Some(learner) = &mut learner {
        let refused = |error: DataError| {
            ConfigError::At(source.at(source.span("learner"), error.to_string()))
        };
        if own.is_some() {
            let what = "is not used: this node has a learner of its own; remove it";
            return Err(ConfigError::At(source.key_of("learner", what)));
        }
        learner.check().map_err(refused)?;
        learner.resolve(beside);
    }
    let program = learner.map(OwnLearner::Program);
    Ok(own.map(OwnLearner::Here).or(program))
}

/// Checks the addresses that the node listens at, and those of the members.
fn check_addresses(
    listen: &[String],
    peers: &[PeerTable],
    wrong: KeyErrorAt<'_>,
) -> Result<(), ConfigError> {
    let listen = listen.iter().map(|address| ("listen".to_owned(), address));
    let peers = peers.iter().enumerate().flat_map(|(nth, peer)| {
        let path = format!("peer.{nth}.addresses");
        peer.addresses
            .iter()
            .map(move |address| (path.clone(), address))
    });
    for (path, address) in listen.chain(peers) {
        mesh::check(address).map_err(|error| wrong(&path, &format!("holds {error}")))?;
    }
    Ok(())
}

/// Returns where the institution's rows are, for this task and what it trains with.
fn data(
    table: DataTable,
    task: &TaskConfig,
    learner: Option<&OwnLearner>,
    beside: &Path,
    wrong: KeyErrorAt<'_>,
) -> Result<Data, ConfigError> {
    match (task, learner) {
        (TaskConfig::External(_), None) => {
            let what = "is missing: the models of this federation are trained by programs of the \
                        members. Write one, such as learner = [\"python3\", \"learner.py\"]";
            Err(wrong("learner", what))
        }
        (TaskConfig::External(_), Some(_)) if table.is_empty() => Ok(Data::Program),
        (TaskConfig::External(_), Some(_)) => {
            let what =
                "is not used: with [task.external] the program reads its own rows; remove it";
            Err(wrong("data", what))
        }
        _ => table.validate(beside, wrong),
    }
}

/// The members of an agreement, with the addresses that the file names in place of those agreed.
fn contacts(
    agreement: &Agreement,
    peers: Vec<PeerTable>,
    federation: &Path,
    wrong: KeyErrorAt<'_>,
) -> Result<Vec<Contact>, ConfigError> {
    let roster = &agreement.epoch.roster;
    let mut contacts: Vec<_> = roster
        .members()
        .zip(roster.silos())
        .zip(&agreement.addresses)
        .map(|((member, silo), addresses)| Contact {
            member,
            key: silo.key,
            addresses: addresses.clone(),
        })
        .collect();
    let mut named = vec![false; contacts.len()];
    for (nth, peer) in peers.into_iter().enumerate() {
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
            return Err(wrong(&format!("peer.{nth}.name"), &what));
        };
        // Addresses that are written here take the place of those in the agreement.
        if !std::mem::replace(&mut named[at], true) {
            contacts[at].addresses.clear();
        }
        contacts[at].addresses.extend(peer.addresses);
    }
    Ok(contacts)
}

impl DataTable {
    /// Returns where the rows are, checked: own files, or a share of rows that lie in one folder.
    fn validate(self, beside: &Path, wrong: KeyErrorAt<'_>) -> Result<Data, ConfigError> {
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
