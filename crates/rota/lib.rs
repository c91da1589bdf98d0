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
//! | [`task`] | what is learned and from which rows: configurations of tasks, tables, schemas |
//! | [`learn`] | the learners: models, local training and evaluation on burn |
//! | [`agreement`] | what members agree on, as files: federation.toml, consents, invitations |
//! | [`silo`] | the actors of one silo |
//! | [`mesh`] | the network between silos: libp2p |
//! | [`node`] | what an institution runs: its node, and the commands around it |
//! | [`simulations`] | whole federations in one process, in virtual time |
//! | [`lab`] | the laboratory: comparisons, advice, rotations, federations of processes, known data sets |
//! | [`report`] | reports on federations, as text and as HTML pages |
//! | [`questions`] | statistics that are sums over sites, and the rules of disclosure |
//! | [`formatting`] | numbers, durations, names and colours for people |
//! | [`schema`] | JSON Schemas of the TOML files, and the pages of the reference |
//!
//! Runs a federation on the embedded data twice, and writes its report:
//!
//! ```
//! use rota::lab::run;
//! use rota::simulations::{Options, Overrides, Scenario};
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

pub mod schema;

pub use {
    agreement, formatting, lab, learn, mesh, methods, node, protocol, questions, report, silo,
    simulations, task,
};
