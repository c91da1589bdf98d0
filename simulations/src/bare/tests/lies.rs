//! Every way to misbehave, alone and together.

use super::*;

/// Leaks a list: there are few of them.
fn only(lies: &[Behaviour]) -> Faults {
    Faults {
        amnesia: Amnesia::Never,
        deaths: Deaths::None,
        lies: Lies::Only(Box::leak(lies.into())),
        ..Faults::all()
    }
}

#[test]
fn four_members_live_with_one_that_lies_in_any_one_way() {
    for behaviour in Behaviour::ALL {
        let mut options = Options::new(4, only(&[behaviour]));
        if behaviour == Behaviour::Uninvited {
            options.plans = Plans::Some;
        }
        let ended = run_all(&options, seeds(8));
        let quiet = ended.iter().all(|ended| ended.faults < 10);
        assert!(!quiet, "{behaviour:?} does nothing");
    }
}

#[test]
fn seven_members_live_with_two_that_lie_in_the_same_way() {
    for behaviour in Behaviour::ALL {
        sweep(7, seeds(1), only(&[behaviour]));
    }
}

/// Nothing but the lie: no lost message can be what makes up for it.
#[test]
fn a_lie_on_a_calm_network_is_lived_with() {
    for behaviour in Behaviour::ALL {
        let faults = Faults {
            lies: Lies::Only(Box::leak(Box::new([behaviour]))),
            ..Faults::none()
        };
        sweep(4, seeds(3), faults);
    }
}
