//! The network of a node in one epoch: how it is started, what is said of it, and what stands between
//! it and the silo.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use mesh::{Peers, Program, Rehearsal};
use privacy::masks::rehearse;
use protocol::envelope;
use protocol::net::{Command, Event};
use protocol::parameters::RoundMode;
use silo::Network;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::leaving::Leaving;
use super::member_links::MemberLinks;
use super::names;
use crate::audit::{AuditLog, AuditedNetwork, Questions};
use crate::events::NodeEvent;
use crate::federation::officer;
use crate::institution::agreement::in_force::Present;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::report::ask_members::Telling;
use crate::institution::report::health::learned;
use crate::institution::report::output::OutputLines;
use crate::institution::report::thread::Reporter;

/// Most events that wait between the network and the silo.
const EVENTS: usize = 64;
/// Most commands that wait between the silo and the audit log.
const COMMANDS: usize = 1024;

/// Starts the network of the epoch in force. Blobs on their way are kept in `spool`.
///
/// # Errors
/// [`NodeError`]: an address at which the node cannot listen.
pub(super) fn connect(
    present: &Present,
    outer: &Runtime,
    spool: Arc<dyn mesh::Spool>,
    telling: &Telling,
) -> Result<mesh::Handle, NodeError> {
    let institution = &present.institution;
    let epoch = &institution.agreement.epoch;
    let mut config = mesh::Config::new(epoch.federation, institution.listen.clone());
    config.epoch = epoch.id;
    config.guests = present.guests.clone();
    config.stay = config.stay.max(8 * epoch.heartbeat());
    config.witnesses = epoch.roster.faulty() + 1;
    config.program = Program::this(Some(epoch.format));
    config.discovery = epoch.protocol.discovery;
    config.frame = envelope::limit(epoch);
    config.spool = Some(spool);
    let noised = epoch.protocol.privacy.is_noised();
    config.tells = telling.tells(institution.agreement.status, noised);
    match epoch.protocol.privacy.mode() {
        RoundMode::Clear | RoundMode::Named => {}
        RoundMode::Masked(_) | RoundMode::Noised(..) => {
            let (me, members) = (institution.me.0, epoch.roster.len() as u16);
            // A rehearsal uses nothing of this node but its program and its position.
            config.rehearsal =
                Rehearsal::new(move |challenge| rehearse(&challenge, me, members).ok());
        }
    }
    (config.relay, config.dials_only) = (institution.relay, !institution.reachable);
    let (secret, roster) = (institution.key.to_bytes(), institution.roster.clone());
    Ok(outer.block_on(mesh::spawn(outer.handle(), config, secret, roster))?)
}

/// Prints which member this node is, of which federation, where it listens, and what others learn of it.
pub(super) fn announce(present: &Present, addresses: &[String], output: &OutputLines) {
    let institution = &present.institution;
    let epoch = &institution.agreement.epoch;
    let name = epoch.roster.name(institution.me);
    let event = NodeEvent::Start {
        member: name.into(),
        member_index: institution.me.0,
        members: epoch.roster.len(),
        rounds: epoch.protocol.rounds,
        federation: format!("{:#}", epoch.federation),
        federation_name: epoch.protocol.name.clone(),
        addresses: addresses.to_vec(),
        byzantine_members_tolerated: epoch.roster.faulty(),
        epoch: epoch.number,
    };
    let line = format!(
        "{name}, one of {} in the federation {} ({}), listens at {}",
        epoch.roster.len(),
        epoch.protocol.name,
        epoch.federation,
        addresses.join(", "),
    );
    output.print(SystemTime::now(), 0.0, event, &line);
    let spending = present.spending();
    let event = NodeEvent::Privacy {
        learned: learned(&institution.site, &institution.agreement, &spending),
        officer: officer(&institution.agreement, &spending),
        noised: epoch.protocol.privacy.is_noised(),
    };
    // For people, `rota check` and `rota status` say it.
    output.print(SystemTime::now(), 0.0, event, "");
}

/// What stands between the network and the silo: it writes down what the silo sends, and notes which
/// members can be reached.
pub(super) struct Between {
    pub(super) log: AuditLog,
    pub(super) leaving: Arc<Mutex<Leaving>>,
    pub(super) reporter: Reporter,
    /// What is known of the connections.
    pub(super) peers: Peers,
}

impl Between {
    /// Joins the silo to the network's commands and events. The silo's end comes back, with the task
    /// that ends when the audit log is written.
    pub(super) fn join(
        self,
        institution: &Institution,
        outer: &Runtime,
        (to_network, from_network): (mpsc::Sender<Command>, mpsc::Receiver<Event>),
    ) -> (Network, JoinHandle<()>) {
        let epoch = &institution.agreement.epoch;
        let (events, to_silo) = mpsc::channel(EVENTS);
        let (commands, sent) = mpsc::channel(COMMANDS);
        let questions = Questions::default();
        let tap = AuditedNetwork {
            log: self.log,
            questions: questions.clone(),
            names: names(epoch),
            me: institution.me,
        };
        let logged = outer.spawn(tap.pass(sent, to_network));
        let links = MemberLinks {
            leaving: self.leaving,
            reporter: self.reporter,
            names: names(epoch),
            peers: self.peers,
            questions,
            began: Instant::now(),
        };
        outer.spawn(links.pass(from_network, events));
        let network = Network {
            commands,
            events: to_silo,
        };
        (network, logged)
    }
}
