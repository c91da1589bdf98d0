//! What a node prints, keeps and opens before its silo runs.

use std::future::ready;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::json;
use tokio::runtime::Runtime;

use super::asking::Asking;
use super::config::Institution;
use super::error::NodeError;
use super::health::Health;
use super::output::Output;
use crate::report::numbers;
use crate::status::http;
use crate::status::{Source, socket};
use crate::store::{self, Note};

/// Name of the file with the agreement in force, once it has changed.
pub(crate) const IN_FORCE: &str = "in-force.toml";

/// Writes the agreement in force beside the journal, and says that it is another one.
pub(super) fn keep_in_force(institution: &Institution, output: &Output) {
    let epoch = &institution.agreement.epoch;
    let written = institution
        .agreement
        .to_toml()
        .map_err(|why| why.to_string());
    let written = written.and_then(|text| {
        let kept = store::keep_file(&institution.state, IN_FORCE, text.as_bytes());
        kept.map_err(|error| error.to_string())
    });
    let file = institution.state.join(IN_FORCE);
    let line = format!(
        "{} of the agreement so far; the one in force is in {}",
        numbers::plural(epoch.number as usize, "change"),
        file.display()
    );
    let document = json!({ "event": "epoch", "at": 0.0, "epoch": epoch.number, "block": format!("{:#}", epoch.id) });
    output.print(SystemTime::now(), document, &line);
    if let Err(why) = written {
        tracing::warn!("the agreement in force is not kept beside the journal: {why}");
    }
}

/// Prints what was found and handled when the state folder was opened; gives the text.
pub(super) fn print_note(output: &Output, note: &Note) -> String {
    let what = match note {
        Note::Closed(_) => "closed",
        Note::SetAside { .. } => "set-aside",
        Note::Gone(_) => "journal-gone",
    };
    let why = note.to_string();
    let document = json!({ "event": "state", "at": 0.0, "what": what, "why": why });
    output.print(SystemTime::now(), document, &format!("warning: {why}"));
    why
}

/// Serves the status of the node and of all nodes over its sockets, and at `address` as pages and
/// metrics.
pub(super) fn serve_status(
    institution: &Institution,
    address: Option<SocketAddr>,
    (health, asking): (&Arc<Health>, &Arc<Asking>),
    runtime: &Runtime,
    output: &Output,
) -> Result<Vec<socket::Listening>, NodeError> {
    let asked = health.clone();
    let source: Source = Arc::new(move || asked.status());
    let nodes = asking.clone().source();
    let print = |document, line: &str| output.print(SystemTime::now(), document, line);
    if let Some(address) = address {
        let bound = runtime.block_on(http::serve(address, source.clone(), nodes.clone()))?;
        let url = format!("http://{bound}/");
        let line = format!("the page is at {url}, the metrics for Prometheus at {url}metrics");
        print(json!({ "event": "http", "at": 0.0, "url": url }), &line);
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
            let document = json!({ "event": "no-status", "at": 0.0, "why": error.to_string() });
            print(document, &format!("warning: {error}"));
            health.warning(SystemTime::now(), &error.to_string());
            Ok(Vec::new())
        }
    }
}
