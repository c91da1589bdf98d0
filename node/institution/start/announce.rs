//! Announcements of a node before its silo runs: the agreement in force, what was found in its state folder, and its
//! status.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::runtime::Runtime;

use crate::events::NodeEvent;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::report::ask_members::Asking;
use crate::institution::report::health::Health;
use crate::institution::report::output::OutputLines;
use crate::status::http;
use crate::status::{StatusSource, socket};
use crate::store::{self, Note};
use formatting::numbers;

/// Name of the file with the agreement in force, once it has changed.
pub(crate) const IN_FORCE: &str = "in-force.toml";

/// Writes the agreement in force beside the journal.
pub(in crate::institution) fn keep_in_force(institution: &Institution) {
    let written = institution
        .agreement
        .to_toml()
        .map_err(|why| why.to_string());
    let written = written.and_then(|text| {
        let kept = store::keep_file(&institution.state, IN_FORCE, text.as_bytes());
        kept.map_err(|error| error.to_string())
    });
    if let Err(why) = written {
        tracing::warn!("the agreement in force is not kept beside the journal: {why}");
    }
}

/// Says that another agreement is in force than at the beginning.
pub(in crate::institution) fn print_in_force(institution: &Institution, output: &OutputLines) {
    let epoch = &institution.agreement.epoch;
    let file = institution.state.join(IN_FORCE);
    let line = format!(
        "{} of the agreement so far; the one in force is in {}",
        numbers::plural(epoch.number as usize, "change"),
        file.display()
    );
    let event = NodeEvent::Epoch {
        epoch: epoch.number,
        block: format!("{:#}", epoch.id),
    };
    output.print(SystemTime::now(), 0.0, event, &line);
}

/// Prints what was found and handled when the state folder was opened; gives the text.
pub(in crate::institution) fn print_note(output: &OutputLines, note: &Note) -> String {
    let what = match note {
        Note::Closed(_) => "closed",
        Note::SetAside { .. } => "set-aside",
        Note::Gone(_) => "journal-gone",
    };
    let why = note.to_string();
    let event = NodeEvent::State {
        what: what.into(),
        why: why.clone(),
    };
    output.print(SystemTime::now(), 0.0, event, &format!("warning: {why}"));
    why
}

/// Serves the status of the node and of all nodes over its sockets, and at `address` as pages and
/// metrics.
pub(in crate::institution) fn serve_status(
    institution: &Institution,
    address: Option<SocketAddr>,
    (health, asking): (&Arc<Health>, &Arc<Asking>),
    runtime: &Runtime,
    output: &OutputLines,
) -> Result<Vec<socket::Listening>, NodeError> {
    let asked = health.clone();
    let source: StatusSource = Arc::new(move || asked.status());
    let nodes = asking.clone().source();
    let print = |event, line: &str| output.print(SystemTime::now(), 0.0, event, line);
    if let Some(address) = address {
        let bound = runtime.block_on(http::serve(address, source.clone(), nodes.clone()))?;
        let url = format!("http://{bound}/");
        let line = format!("the page is at {url}, the metrics for Prometheus at {url}metrics");
        print(NodeEvent::Http { url: url.clone() }, &line);
        health.serves(url);
    }
    let _entered = runtime.enter();
    let state = &institution.state;
    let own = socket::serve(state, socket::NAME, move || ready(source()));
    let all = socket::serve(state, socket::NODES, move || nodes());
    match own.and_then(|own| Ok(vec![own, all?])) {
        Ok(listening) => Ok(listening),
        // A node that cannot be asked still learns.
        Err(error) => {
            let why = error.to_string();
            print(NodeEvent::NoStatus { why }, &format!("warning: {error}"));
            health.warning(SystemTime::now(), &error.to_string());
            Ok(Vec::new())
        }
    }
}
