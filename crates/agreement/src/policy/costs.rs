//! Costs of another value of each key of an agreement to an institution that does not respond to the change.
//!
//! Every field of every table of `federation.toml` has one row, which the compiler asks for: a key that is not
//! classified here does not compile.

use methods::learner::Training;
use methods::strategy::StrategyConfig;

use super::Routine;
use crate::file::{FederationFile, PrivacyTable, ProtocolTable, SiloTable};

/// Cost of another value of a key to an institution that does not respond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SilentCost {
    /// Nothing, because it has to stay.
    Fixed,
    /// Some values spend more of what may be told about a row or person.
    Spends,
    /// Some values protect less.
    Weakens,
    /// Some values protect less, and an institution may follow them all the same.
    Excepted,
    /// Nothing.
    Harmless,
    /// The key is a table, whose keys have rows of their own.
    Table,
}

use SilentCost::{Excepted, Fixed, Harmless, Spends, Table, Weakens};

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyCost {
    /// Its path, as the list of keys in words has it.
    pub(crate) path: &'static str,
    /// Cost of other values of it.
    pub(crate) cost: SilentCost,
    /// The kind of changes that it belongs to; after a change of a key of no kind, institutions have to sign.
    pub(crate) kind: Option<Routine>,
}

/// The rows of one table of the file.
macro_rules! keys {
    ($table:ident: $($field:ident $path:literal $cost:ident $kind:expr;)*) => {{
        const _: fn($table) = |table| {
            let $table { $($field: _),* } = table;
        };
        &[$(KeyCost { path: $path, cost: $cost, kind: $kind }),*]
    }};
}

/// All keys, table by table.
pub(crate) const COSTS: &[&[KeyCost]] = &[
    keys! { FederationFile:
        format "format" Harmless None;
        name "name" Harmless None;
        // More of them, where they have noise; without noise there is no bound of which they could spend.
        rounds "rounds" Spends Some(Routine::Rounds);
        seed "seed" Fixed None;
        start "start" Fixed None;
        continues "continues" Fixed None;
        protocol "protocol" Table None;
        privacy "privacy" Table None;
        task "task" Fixed None;
        strategy "strategy" Table None;
        serving "serving" Fixed None;
        question "question" Harmless Some(Routine::Questions);
        // Who comes or goes; with masks nobody comes in silence.
        silo "member.*" Harmless Some(Routine::Members);
    },
    keys! { SiloTable:
        name "member.*.name" Weakens None;
        key "member.*.key" Weakens None;
        rows "member.*.rows" Weakens None;
        // Whoever is at another address cannot act as the member, and cannot read what is sent to it. Nodes move,
        // and a federation in which all had to sign for each move would stand still.
        addresses "member.*.addresses" Excepted Some(Routine::Addresses);
    },
    keys! { ProtocolTable:
        heartbeat "protocol.heartbeat" Harmless None;
        patience "protocol.straggler-timeout" Harmless None;
        // These two follow from the number of members, and are of that kind only as far as they do.
        view_timeout "protocol.view-timeout" Harmless Some(Routine::Members);
        min_contributions "protocol.min-contributions" Weakens Some(Routine::Members);
        keep_rounds "protocol.keep-rounds" Weakens None;
        // Room for the answers to a question, and only that.
        blob_limit "protocol.blob-limit" Weakens Some(Routine::Questions);
        discovery "protocol.discovery" Weakens None;
        max_model_norm "protocol.max-model-norm" Weakens None;
        max_weight "protocol.max-weight" Weakens None;
        rotation "protocol.rotation" Weakens None;
        verification "protocol.verification" Weakens None;
        names "protocol.names" Weakens None;
        status "protocol.status" Weakens None;
    },
    keys! { PrivacyTable:
        mode "privacy.mode" Weakens None;
        colluders "privacy.colluders" Weakens None;
        smallest_sum "privacy.min-sum-size" Weakens None;
        group "privacy.group" Weakens None;
        shows "privacy.shows" Weakens None;
        fewest_authors "privacy.min-authors" Spends None;
        release "privacy.mechanism" Harmless None;
        unit "privacy.privacy-unit" Weakens None;
        clip "privacy.clipping-norm" Harmless None;
        rows_norm "privacy.max-row-norm" Harmless None;
        targets_within "privacy.max-target" Harmless None;
        ridge "privacy.ridge" Harmless None;
        z "privacy.noise-multiplier" Spends None;
        epsilon "privacy.epsilon" Spends None;
        delta "privacy.delta" Spends None;
    },
    keys! { StrategyConfig:
        method "strategy.name" Fixed None;
        standardise "task" Fixed None;
        scale_agreed "task" Fixed None;
        personal "strategy.personal" Fixed None;
        trained "strategy.trained" Fixed None;
        aggregation "strategy.aggregation.name" Weakens None;
        encoding "strategy.encoding" Harmless None;
        participation "strategy.participation" Harmless None;
        stop "strategy.stop" Harmless None;
        training "strategy.training" Table None;
    },
    keys! { Training:
        epochs "strategy.training.epochs" Harmless Some(Routine::Epochs);
        batch "strategy.training.batch" Harmless None;
        optimiser "strategy.training.optimiser" Harmless None;
        decay "strategy.training.decay" Harmless None;
    },
];

/// The row of the key at a path; `None` for a key of a single method, which is of no kind.
pub(crate) fn cost_of(path: &str) -> Option<&'static KeyCost> {
    COSTS.iter().copied().flatten().find(|key| key.path == path)
}
