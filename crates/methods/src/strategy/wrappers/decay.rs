//! Learning-rate decay: the rate of every round's training, for every strategy.

use crate::learner::Task;
use crate::strategy::Plan;
use crate::strategy::wrappers::strategy_wrapper::StrategyWrapper;

/// Gives every plan the training of its round, see [`Training::at`](crate::Training::at). Rounds are those of
/// the wrapped strategy: a round that agrees on a common scale does not count.
pub(crate) struct Decaying;

impl StrategyWrapper for Decaying {
    fn plan(&self, mut plan: Plan, round: u64) -> Plan {
        if let Task::Train(training) = &mut plan.task {
            *training = training.at(round);
        }
        plan
    }
}
