//! What is computed: parameters, similarity, coalitions, robust losses and the strategies.
//!
//! Pure: no clock, no runtime, no network, no global randomness, no order that depends on a hash
//! map or on the number of threads. Transcendental functions come from [`libm`], because the
//! standard library's differ between platforms and members compare results by hash.
//!
//! # One round, by hand
//!
//! Four silos have trained; two of them learn the same thing, and so do the other two.
//!
//! ```
//! use methods::learner::{Optimiser, Training};
//! use methods::strategy::{Method, StrategyConfig, build};
//! use methods::{Entry, Layout, Params, Role, Scores, Sheet, State, TensorSpec};
//!
//! let layout = Layout::new(vec![TensorSpec::new("weight", [1], Role::Weight)])?;
//! let model = |weight: f32| Params::from_values(&layout, &[weight]);
//!
//! // The charter names a strategy.
//! let training = Training {
//!     epochs: 1,
//!     batch: 32,
//!     optimiser: Optimiser::Sgd { rate: 0.1, momentum: 0.0, weight_decay: 0.0 },
//! };
//! let method = Method::CsRcfl { coalitions: 2.into(), freeze: 1, folds: 5 };
//! let strategy = build(&StrategyConfig::new(method, training), 4)?;
//!
//! // Everybody knows what to do from the last state.
//! let state = State::genesis(model(0.0));
//! let plan = strategy.plan(&state, 1);
//! assert!(plan.cross_evaluate && plan.starts == [state.models[0].hash()]);
//!
//! // The contributions, names off; and everybody's losses on its own data, here the distance
//! // from the weight that would suit it.
//! let trained = [1.0, -1.0, 3.0, -3.0];
//! let entries = trained.map(|weight| Entry { model: model(weight), coalition: Some(0), weight: None, member: None });
//! let losses = trained.map(|own| trained.map(|other| f64::abs((own - other).into())).to_vec());
//! let sheet = Sheet { entries: entries.to_vec(), scores: Some(Scores::from_rows(&losses)?) };
//!
//! // The lead decides, every member checks that and computes the outcome from it.
//! let decision = strategy.decide(&state, &sheet, 1)?;
//! strategy.check(&state, &sheet, &decision, 1)?;
//! let outcome = strategy.settle(&state, &sheet, &decision, 1)?;
//! assert_eq!(outcome.assignment, [0, 1, 0, 1]);
//! assert_eq!(outcome.state.models, [model(2.0), model(-2.0)]);
//!
//! // From here on the coalitions stay.
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
pub mod params;
mod random;
pub mod robust;
pub mod serving;
pub mod similarity;
pub mod strategy;
pub mod topology;

pub use learner::{
    Capabilities, GradientModifier, LearnError, Learner, Metrics, Progress, Split, Task, Training,
    Update, Watch,
};
pub use matrix::Matrix;
pub use params::{Layout, Params, Role, TensorSpec};
pub use strategy::{Decision, Entry, Outcome, Plan, Scores, Sheet, State, Strategy};

/// A BLAKE3 digest of canonical bytes.
pub type Digest = [u8; 32];
