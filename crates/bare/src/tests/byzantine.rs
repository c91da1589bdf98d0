//! Every Byzantine behaviour, alone and in combination.

use super::*;

/// Every behaviour of members without models.
fn all() -> impl Iterator<Item = Behaviour> {
    let more = [Behaviour::RepeatedContribution].into_iter();
    let more = more.chain(Behaviour::OF_CHANGES);
    Behaviour::DRAWN.into_iter().chain(more)
}

/// Only these behaviours. The list is leaked, which is fine for a few tests.
fn only(behaviours: &[Behaviour]) -> Faults {
    Faults {
        journal_loss: JournalLoss::Never,
        deaths: Deaths::None,
        byzantine: Byzantine::Only(Box::leak(behaviours.into())),
        ..Faults::all()
    }
}

#[test]
fn four_finish_with_one_byzantine_member_of_any_behaviour() {
    for behaviour in all() {
        let mut options = BareOptions::new(4, only(&[behaviour]));
        if behaviour == Behaviour::Uninvited {
            options.plans = Plans::Subset;
        }
        let ended = run_all(&options, seeds(8));
        let quiet = ended.iter().all(|ended| ended.faults < 10);
        assert!(!quiet, "{behaviour:?} does nothing");
    }
}

#[test]
fn seven_finish_with_two_byzantine_members_of_any_behaviour() {
    for behaviour in all() {
        sweep(7, seeds(1), only(&[behaviour]));
    }
}

/// Without any other fault: no lost message can be what saves the federation.
#[test]
fn four_finish_with_one_byzantine_member_on_a_perfect_network() {
    for behaviour in all() {
        let faults = Faults {
            byzantine: Byzantine::Only(Box::leak(Box::new([behaviour]))),
            ..Faults::none()
        };
        sweep(4, seeds(3), faults);
    }
}
