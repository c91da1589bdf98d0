//! Plans that name some members only.

use super::*;

fn some(members: usize, faults: Faults) -> BareOptions {
    let mut options = BareOptions::new(members, faults);
    options.plans = Plans::Subset;
    options
}

#[test]
fn plans_that_name_few_members_are_carried_out() {
    for members in [1, 2, 3, 4, 7] {
        run_all(&some(members, Faults::none()), seeds(10));
    }
}

#[test]
fn a_round_of_few_members_finishes_under_all_faults() {
    for members in [2, 3] {
        run_all(&some(members, Faults::without_byzantine()), seeds(20));
    }
    run_all(&some(4, Faults::all()), seeds(60));
    run_all(&some(7, Faults::all()), seeds(10));
}
