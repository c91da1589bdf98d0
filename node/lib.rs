//! Rota: a federation of institutions that train models together without a server.
//!
//! Every institution, a *silo*, runs one node; the nodes take turns at leading. The lead of a round
//! collects signed models, removes their names, computes which silos should learn together, and
//! proposes one model per coalition. The others check its work before they adopt it.
//!
//! This package is the program `rota`. It also re-exports the crates that it consists of:
//!
//! | crate | what |
//! |---|---|
//! | [`protocol`] | the agreement protocol: identities, roster, signed messages, views, certificates |
//! | [`methods`] | the mathematics: parameters, similarity, coalitions, robust losses, strategies |
//! | [`learn`] | the learners: models, data sets, local training on burn |
//! | [`silo`] | the actors of one silo |
//! | [`mesh`] | the network between silos: libp2p |
//! | [`simulations`] | whole federations in one process, in virtual time |
//! | [`loopback`] | whole federations over real sockets of this machine |
//! | [`deploy`] | the laboratory of rotating leads with real processes |
//! | [`pool`] | threads for heavy work |
//! | [`report`] | the report on a finished federation, as text and as HTML |
//! | [`federation`], [`identity`] | the agreement of a federation and a member's key, as files |
//! | [`init`] | drafts: a scenario from data files, an agreement from a scenario |
//! | [`institution`] | one institution's node: its configuration and its run |
//! | [`check`] | looks at everything that a node needs, before it runs or while it does |
//! | [`status`] | what a running node says of itself: socket, text, screen, page, metrics |
//! | [`chain`], [`history`] | the agreed chain, read from a journal; a federation, read from logs |
//! | [`model`], [`equipment`] | the models that a node's state holds; what a silo learns with |
//! | [`datasets`] | public data sets: where they are from, downloads, checksums |
//! | [`store`] | the journal and blobs of a silo on disk |
//! | [`audit`] | the log of everything that a node sent, and its check |
//! | [`backup`] | saves what an institution cannot get back from others, and puts it back |
//! | [`verify`] | evidence and state folders, checked without a key |
//!
//! Runs a federation on the embedded data twice, and writes its report:
//!
//! ```
//! use rota::simulations::{Options, Overrides, Scenario, run};
//!
//! let shorter = Overrides { rounds: Some(3), silos: Some(4), ..Overrides::default() };
//! let scenario = Scenario::load("diabetes")?.with(&shorter)?;
//! let summary = run(&scenario, Options::default())?;
//! assert_eq!((summary.rounds.len(), summary.silos.len()), (3, 4));
//!
//! // The same seed gives the same events.
//! let again = run(&scenario, Options::default())?;
//! assert_eq!(again.trace, summary.trace);
//!
//! let story = rota::report::Story::of(&summary, &scenario.description);
//! let page = rota::report::page(&story, "rota simulate diabetes --rounds 3 --silos 4", "");
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod audit;
pub mod backup;
pub mod chain;
pub mod check;
pub mod datasets;
pub mod deploy;
pub mod equipment;
pub mod events;
pub mod federation;
pub mod history;
pub mod identity;
pub mod init;
pub mod institution;
pub mod loopback;
pub mod model;
mod paths;
pub mod pool;
pub mod report;
pub mod schema;
pub mod status;
pub mod store;
pub mod verify;

#[cfg(test)]
mod fixture;
#[cfg(test)]
#[path = "../tests/golden/mod.rs"]
mod golden;
#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;

pub use {agreement, learn, mesh, methods, protocol, silo, simulations};
