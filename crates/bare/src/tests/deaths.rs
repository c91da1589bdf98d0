//! Deaths for good, at every moment of a round.

use crate::moments::Moment;

use super::*;

fn dying(moment: Moment) -> Faults {
    Faults {
        journal_loss: JournalLoss::Never,
        byzantine: Byzantine::None,
        deaths: Deaths::At(moment),
        ..Faults::all()
    }
}

/// Runs seeds for every moment; returns the number of members that died.
fn at_every_moment(members: usize, cross_evaluate: Option<bool>, usual: u64) -> u64 {
    let mut dead = 0;
    for moment in Moment::DRAWN {
        let mut options = BareOptions::new(members, dying(moment));
        options.cross_evaluate = cross_evaluate;
        let ended = run_all(&options, seeds(usual));
        dead += ended.iter().map(|ended| ended.dead).sum::<u64>();
    }
    dead
}

#[test]
fn four_members_finish_without_one_that_dies_at_any_moment() {
    for cross_evaluate in [Some(false), Some(true)] {
        let dead = at_every_moment(4, cross_evaluate, 12);
        assert!(dead > 100, "{dead}");
    }
}

#[test]
fn seven_members_finish_without_two_that_die_at_any_moment() {
    at_every_moment(7, None, 3);
}

#[test]
fn three_members_finish_without_one_that_dies_at_any_moment() {
    at_every_moment(3, None, 12);
}

/// The lead dies right after its proposal, without any other fault: the simplest case.
#[test]
fn a_lead_that_dies_after_its_proposal_is_replaced() {
    let moment = Moment::Sends(protocol::message::Kind::Proposal);
    let faults = Faults {
        deaths: Deaths::At(moment),
        ..Faults::none()
    };
    for members in [4, 7, 10] {
        let ended = sweep(members, seeds(12), faults);
        let dead: u64 = ended.iter().map(|ended| ended.dead).sum();
        assert!(dead > 6, "{members}: {dead}");
    }
}
