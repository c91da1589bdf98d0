//! The configuration of one silo.

use std::sync::Arc;

use bytes::Bytes;
use methods::params::Encoding;
use methods::strategy::OwnRadius;
use methods::{Learner, Params, Strategy};
use protocol::member::Config;
use protocol::{Epoch, Hash};

/// The configuration of one silo.
#[derive(Clone)]
pub struct SiloConfig {
    /// Roster, parameter set, position and key.
    pub member: Config,
    /// The silo's data and model family, as the strategy [equips](Strategy::equip) it.
    pub learner: Arc<dyn Learner>,
    /// The parameter set's strategy.
    pub strategy: Arc<dyn Strategy>,
    /// The parameter set's seed of the initial model.
    pub initial_seed: u64,
    /// The parameter set's bound on the ℓ2 norm of a contribution (weights and biases); infinity for none.
    pub max_model_norm: f64,
    /// The parameter set's bound on the share that one contribution may have in the sum of weights: see
    /// [`capped`](methods::strategy::capped).
    pub max_weight: Option<f64>,
    /// The strategy's encoding of contributed models.
    pub encoding: Encoding,
    /// The rule for the silo's robustness radius (in standardised units). Rule and radius never leave
    /// the silo.
    pub radius: OwnRadius,
    /// The silo's own random seed, for the order of rows in training.
    pub seed: u64,
    /// True if the journal is lost. The silo may have voted before, so it only listens until it is
    /// safe to vote again.
    pub journal_lost: bool,
    /// The silo's personal state from a backup, with which it begins where its journal holds none;
    /// `None`: with the learner's initial one. One of another layout is passed over.
    pub personal: Option<Params>,
    /// The ids of former epochs, each with what its members are answered: see
    /// [`Epochs::answers`](protocol::Epochs::answers).
    pub former: Vec<(Hash, Bytes)>,
    /// The epochs that are over, oldest first. The ledger has to have a line for each contribution to a
    /// round with noise that final blocks of them show.
    pub past: Vec<Arc<Epoch>>,
}
