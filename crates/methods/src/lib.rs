//! The mathematics of a federation: model parameters, strategies, and the algorithms they use.
//!
//! A federation of silos trains models in rounds. In each round every silo trains on its own data;
//! the lead of the round decides who learns with whom and combines the models, and all members check
//! and repeat that computation. This crate computes: it knows models, losses and decisions, but no
//! messages, files or clocks.
//!
//! # Overview
//!
//! * [`params`]: a model's values ([`Params`]), their names, shapes and roles ([`Layout`]), and the
//!   check of models from other members ([`params::Gate`]).
//! * [`learner`]: the [`Learner`] trait, the contract with the code that trains and evaluates.
//! * [`strategy`]: the [`Strategy`] trait (plan a round, decide, check, settle), all strategies and
//!   their configuration.
//! * [`serving`]: which model a silo should use in the end.
//!
//! The algorithms of the strategies, usable on their own (and by `rota solve` on files):
//!
//! | module | computes | for |
//! |---|---|---|
//! | [`similarity`] | Gram matrices, distances and similarities of models | TFL, HCCT, CFL |
//! | [`topology`] | ε-graph, centralities, client prior and weights, client sampling | TFL, DRFA |
//! | [`merging`] | groups of clients whose utility rises by merging | HCCT |
//! | [`coalitions`] | the best grouping into coalitions, with a proof of optimality | CS-RCFL |
//! | [`robust`] | worst-case losses near a silo's rows, and models fitted to them | CS-RCFL |
//! | [`domains`] | graph convolution over the parameters of domains | FedCG |
//! | [`mixed`] | mixed models from sums over sites | hierarchical |
//! | [`clustering`] | k-means, CFL, FeSEM, IFCA, FLSC, FedCollab | baselines |
//! | [`aggregation`] | means, robust means, model weights | all |
//!
//! # Determinism
//!
//! Members compare results by hash, so everything that enters the state of a federation has the same
//! bits on every machine. The crate has no clock, no runtime, no network and no global randomness;
//! no result depends on the order of a hash map or on the number of threads. Transcendental
//! functions come from [`libm`], because those of the standard library differ between platforms.
//! Decisions of a lead may use faster arithmetic whose last bits depend on the processor; members
//! check such decisions with a tolerance.
//!
//! # Example: one round
//!
//! Four silos have trained; two of them learn the same, and so do the other two.
//!
//! ```
//! use methods::learner::{Optimiser, Training};
//! use methods::strategy::{CsRcflOptions, Method, StrategyConfig, build};
//! use methods::{Layout, ModelEntry, Params, Role, Scores, LoadedManifest, State, TensorSpec};
//!
//! let layout = Layout::new(vec![TensorSpec::new("weight", [1], Role::Weight)])?;
//! let model = |weight: f32| Params::from_values(&layout, &[weight]);
//!
//! // The agreement names a strategy.
//! let training = Training {
//!     epochs: 1,
//!     batch: 32,
//!     optimiser: Optimiser::Sgd { rate: 0.1, momentum: 0.0, weight_decay: 0.0 },
//!     decay: None,
//! };
//! let options = CsRcflOptions { coalitions: 2.into(), freeze: 1, ..CsRcflOptions::default() };
//! let method = Method::CsRcfl(options);
//! let strategy = build(&StrategyConfig::new(method, training), 4)?;
//!
//! // Every member derives the plan of the round from the last state.
//! let state = State::genesis(model(0.0));
//! let plan = strategy.plan(&state, 1);
//! assert!(plan.cross_evaluate && plan.starts == [state.models[0].hash()]);
//!
//! // The contributions, without names, and every member's losses on its own data: here the
//! // distance from its optimal weight.
//! let trained = [1.0, -1.0, 3.0, -3.0];
//! let entries = trained.map(|weight| ModelEntry { model: model(weight), coalition: Some(0), weight: None, member: None });
//! let losses = trained.map(|own| trained.map(|other| f64::abs((own - other).into())).to_vec());
//! let manifest = LoadedManifest { entries: entries.to_vec(), scores: Some(Scores::from_rows(&losses)?) };
//!
//! // The lead decides; every member checks the decision and computes the outcome from it.
//! let decision = strategy.decide(&state, &manifest, 1)?;
//! strategy.check(&state, &manifest, &decision, 1)?;
//! let outcome = strategy.settle(&state, &manifest, &decision, 1)?;
//! assert_eq!(outcome.assignment, [0, 1, 0, 1]);
//! assert_eq!(outcome.state.models, [model(2.0), model(-2.0)]);
//!
//! // From here on the coalitions are fixed, so there is no cross-evaluation.
//! assert!(!strategy.plan(&outcome.state, 2).cross_evaluate);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod aggregation;
pub mod clustering;
pub mod coalitions;
pub mod domains;
pub mod learner;
pub mod matrix;
pub mod merging;
pub mod mixed;
mod nearest;
pub mod params;
pub mod random;
pub mod robust;
mod selection;
pub mod serving;
pub mod similarity;
pub mod strategy;
pub mod topology;

pub use learner::{
    Capabilities, GradientModifier, LearnError, Learner, Metrics, Progress, Split, Task, Training,
    Update, Watch,
};
pub use matrix::Matrix;
pub use nearest::nearest;
pub use params::{Layout, Params, Role, TensorSpec};
pub use strategy::{Decision, LoadedManifest, ModelEntry, Outcome, Plan, Scores, State, Strategy};

/// A BLAKE3 digest of canonical bytes.
pub type Digest = [u8; 32];

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
