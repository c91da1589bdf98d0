//! Scenarios of several tests.

/// Four silos with the keyed split that noise needs.
pub(crate) const NOISED: &str = "name = 'noised'
    rounds = 2
    silos = 4
    [task.table]
    data = 'diabetes'
    standardise = 'none'
    model = { linear = { loss = 'squared' } }
    split = { keyed = true }
    [privacy]
    mode = 'differential-privacy'
    epsilon = 2.0
    [strategy]
    name = 'fedavg'
    weight = 'equal'
    training = { epochs = 1, batch = 0, optimiser = { name = 'sgd', rate = 0.1 } }";
