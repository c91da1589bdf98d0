//! Parts that run beside the silo of a node: the network, the status, and the reports to the operator.

use std::sync::Arc;
use std::time::SystemTime;

use mesh::{Asker, Peers};
use protocol::net::{Command, Event};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::connection::{announce, connect};
use super::part::EpochPart;
use super::{Begin, network_runtime};
use crate::events::NodeEvent;
use crate::institution::agreement::weaknesses::weaknesses;
use crate::institution::error::NodeError;
use crate::institution::report::ask_members::{Asking, Telling};
use crate::institution::report::health::Health;
use crate::institution::report::lines::News;
use crate::institution::report::output::OutputLines;
use crate::institution::report::strangers;
use crate::institution::report::thread::{Ending, Reporter};
use crate::institution::start::announce::{keep_in_force, print_in_force, serve_status};
use crate::status::socket;
use crate::store::DiskBlobs;

/// Parts that run beside a silo. A node that fails to start ends these in their order here.
pub(super) struct Beside {
    /// The end of the reports.
    pub(super) ending: Ending,
    pub(super) reporter: Reporter,
    /// The sockets that serve the status.
    pub(super) sockets: Vec<socket::Listening>,
    pub(super) health: Arc<Health>,
    /// Commands to the network.
    pub(super) commands: mpsc::Sender<Command>,
    /// Network events.
    pub(super) events: mpsc::Receiver<Event>,
    /// State of the connections.
    pub(super) peers: Peers,
    /// Asks other members' nodes, as long as the network is there.
    pub(super) _asker: Asker,
    /// The end of the network.
    pub(super) ended: JoinHandle<()>,
    /// The threads of the network.
    pub(super) runtime: Runtime,
}

impl Beside {
    /// Connects the node, says what it is and what is weak about it, and serves its status. `warnings`
    /// are those that were printed before.
    ///
    /// # Errors
    /// [`NodeError`]: an address at which the node cannot listen.
    pub(super) fn start(
        begin: &Begin<'_>,
        part: &EpochPart,
        blobs: &DiskBlobs,
        mut warnings: Vec<String>,
        output: &OutputLines,
    ) -> Result<Self, NodeError> {
        let institution = &begin.present.institution;
        let epoch = &institution.agreement.epoch;
        let runtime = network_runtime()?;
        let telling = Telling::default();
        let mesh = connect(begin.present, &runtime, blobs.spool(), &telling)?;
        // Whoever reads that it runs may read the agreement in force from the state folder.
        let changed = epoch.number > 0;
        if changed {
            keep_in_force(institution);
        }
        announce(begin.present, &mesh.addresses, output);
        output.begin();
        if changed {
            print_in_force(institution, output);
        }
        runtime.spawn(strangers::print(
            mesh.notices,
            epoch.clone(),
            output.clone(),
        ));
        for (event, line) in weaknesses(&institution.agreement, institution.me, part.rows()) {
            output.print(SystemTime::now(), 0.0, event, &format!("warning: {line}"));
            warnings.push(line);
        }
        for line in part.said_of_rows(institution) {
            let why = line.clone();
            let event = NodeEvent::Rows { why };
            output.print(SystemTime::now(), 0.0, event, &format!("warning: {line}"));
        }
        let (addresses, peers) = (mesh.addresses, mesh.peers.clone());
        let contributed = begin.present.contributed.clone();
        let health = Health::new(institution, contributed, addresses, peers);
        health.resumes(begin.rounds.clone());
        telling.begins(&health);
        let shown = institution.agreement.status;
        let asking = Asking::new(health.clone(), mesh.asker.clone(), shown);
        let now = SystemTime::now();
        warnings.iter().for_each(|text| health.warning(now, text));
        let address = begin.options.http.or(institution.http);
        let sockets = serve_status(institution, address, (&health, &asking), &runtime, output)?;
        let (reporter, ending) = report(begin, part, &health, output);
        Ok(Self {
            ending,
            reporter,
            sockets,
            health,
            commands: mesh.commands,
            events: mesh.events,
            peers: mesh.peers,
            _asker: mesh.asker,
            ended: mesh.ended,
            runtime,
        })
    }
}

/// Starts the reports to the operator, from the round that the silo goes on from.
fn report(
    begin: &Begin<'_>,
    part: &EpochPart,
    health: &Arc<Health>,
    output: &OutputLines,
) -> (Reporter, Ending) {
    let institution = &begin.present.institution;
    let news = News::new(
        output.clone(),
        &institution.agreement,
        part.living.as_ref().map(|living| living.equipment.clone()),
        health.clone(),
        (institution.state.clone(), begin.present.lineage.clone()),
    );
    let held = begin.held.clone();
    let goes_on = held.map(|held| (held, institution.agreement.seed));
    Reporter::start(news, goes_on, output.clone())
}
