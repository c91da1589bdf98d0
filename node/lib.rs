//! Rota: a federation of institutions that train models together without a server.
//!
//! Every institution, a *silo*, runs one node; the nodes take turns at leading. The lead of a round
//! collects signed models, names off, learns who should learn with whom, and proposes one model per
//! coalition; the others check its work before they adopt it.
//!
//! This package is the program `rota`, and one door to the crates behind it:
//!
//! | crate | what |
//! |---|---|
//! | [`protocol`] | what is agreed: identities, roster, signed messages, views, certificates |
//! | [`methods`] | what is computed: parameters, similarity, coalitions, robust losses, strategies |
//! | [`learn`] | what is learned: models, data sets, local training on burn |
//! | [`silo`] | who acts: the actors of one silo |
//! | [`mesh`] | how bytes travel: libp2p |
//! | [`simulations`] | whole federations in one process, in virtual time |
//! | [`loopback`] | the same over real sockets of this machine |
//! | [`pool`] | threads for heavy work |
//! | [`report`] | a finished federation as text and as a page |
//! | [`federation`], [`identity`] | the agreement of a federation and a member's key, as files |
//! | [`init`] | a scenario for data that nobody has described yet |
//! | [`institution`] | one institution's node: its configuration, and its life |
//! | [`chain`] | the agreed chain as a journal holds it |
//! | [`store`] | what a silo keeps on disk: journal and blobs |
//!
//! A federation of the embedded data, twice, and its report:
//!
//! ```
//! use rota::simulations::{Options, Overrides, Scenario, run};
//!
//! let shorter = Overrides { rounds: Some(3), silos: Some(4), ..Overrides::default() };
//! let scenario = Scenario::load("diabetes")?.with(&shorter)?;
//! let summary = run(&scenario, Options::default())?;
//! assert_eq!((summary.rounds.len(), summary.silos.len()), (3, 4));
//!
//! // The seed says it all: everything that happens, happens again.
//! let again = run(&scenario, Options::default())?;
//! assert_eq!(again.trace, summary.trace);
//!
//! let story = rota::report::Story::of(&summary, &scenario.description);
//! let page = rota::report::page(&story, "rota simulate diabetes --rounds 3 --silos 4");
//! assert!(page.starts_with("<!DOCTYPE html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod chain;
pub mod federation;
pub mod identity;
pub mod init;
pub mod institution;
pub mod loopback;
pub mod pool;
pub mod report;
pub mod schema;
pub mod store;

#[cfg(test)]
#[path = "../tests/golden/mod.rs"]
mod golden;

pub use {agreement, learn, mesh, methods, protocol, silo, simulations};
