//! Institutions that name the wrong members as lost and correct themselves.

use super::amendments::longer;
use super::one::*;
use super::prelude::*;
use super::recovery::{confirming, over, recover};
use crate::certificate::Verdict;
use crate::effects::OwnConfirmation;
use crate::message::Standing;
use crate::work::WorkError;

/// A member of four that goes on with another one, without two that are lost.
struct Two {
    one: One,
    other: MemberIndex,
    lost: Vec<MemberIndex>,
}

impl Two {
    fn new() -> Self {
        let one = One::follower(4);
        let lost = one.first_others(2);
        let other = one.others()[2];
        Self { one, other, lost }
    }

    /// The nth standing of the member under test, and that of the other.
    fn standings(&self, own: u64, others: u64) -> [Standing; 2] {
        [own, others].map(|number| Standing {
            number,
            ..self.one.standing(&self.lost)
        })
    }

    /// The other one's nth confirmation of these standings.
    fn confirmation(&self, nth: u64, [own, others]: &[Standing; 2]) -> Body {
        let mut both = [(self.one.me, own), (self.other, others)];
        both.sort_unstable_by_key(|(by, _)| *by);
        confirming(nth, &both)
    }
}

fn confirmed(effects: &[Effect]) -> Option<OwnConfirmation> {
    effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Confirmed(own)) => Some((**own).clone()),
        _ => None,
    })
}

fn signed(effects: &[Effect]) -> Option<Standing> {
    effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Standing(message)) => match &message.body {
            Body::Standing(standing) => Some((**standing).clone()),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn an_institution_corrects_itself_any_number_of_times_while_its_node_runs() {
    let Two {
        mut one,
        other,
        lost,
    } = Two::new();
    // Wrong twice, then right, then wrong and right again.
    let wrong = [vec![other], vec![lost[0]]];
    let tries = [&wrong[0], &wrong[1], &lost, &wrong[1], &lost];
    for (number, lost) in (1..).zip(tries) {
        let effects = one.step(recover(lost));
        let standing = signed(&effects).unwrap();
        assert_eq!((standing.number, &standing.lost), (number, lost));
        // After a correction everybody is told, also those that were to remain before.
        let told = one
            .others()
            .into_iter()
            .filter(|to| number > 1 || !lost.contains(to));
        for to in told {
            let sent = one.sends(to, 0, 0, standing.body());
            assert!(effects.contains(&sent), "{number}: {effects:?}");
        }
    }
    // The others need not have erred: their first standing fits to its fifth.
    let standing = one.standing(&lost);
    let effects = one.hear_standing(other, &standing);
    let own = confirmed(&effects).unwrap();
    let numbers: Vec<_> = own
        .standings
        .iter()
        .map(|(by, of, _)| (*by, of.number))
        .collect();
    let mut expected = [(one.me, 5), (other, 1)];
    expected.sort_unstable();
    assert_eq!(numbers, expected);
}

#[test]
fn whoever_has_confirmed_signs_for_another_set_only_when_one_of_it_has_given_it_up() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    assert!(confirmed(&two.one.hear_standing(two.other, &first[1])).is_some());
    // A correction waits, and says for whom; also after a restart.
    let corrected = vec![two.lost[0]];
    let held = Effect::Report(Report::RecoveryHeld {
        confirmed: two.lost.clone(),
        awaits: vec![two.other],
    });
    let effects = two.one.step(recover(&corrected));
    assert!(
        effects.contains(&held) && signed(&effects).is_none(),
        "{effects:?}"
    );
    assert!(signed(&two.one.pass(20_000)).is_none());
    // The other one says that it never will.
    let later = two.standings(1, 2)[1].clone();
    let effects = two.one.hear_standing(two.other, &later);
    let standing = signed(&effects).unwrap();
    assert_eq!((standing.number, standing.lost), (2, corrected));
    // Nor does its old standing, sent again, bring the first set back.
    let effects = two.one.hear_standing(two.other, &first[1]);
    assert!(confirmed(&effects).is_none(), "{effects:?}");
}

#[test]
fn a_correction_that_comes_after_all_have_confirmed_changes_nothing() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    two.one.hear_standing(two.other, &first[1]);
    two.one.step(recover(&[two.lost[0]]));
    let confirmation = two.confirmation(1, &first);
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn a_confirmation_of_another_set_does_not_complete_a_recovery() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    two.one.step(recover(&two.lost));
    two.one.hear_standing(two.other, &first[1]);
    let confirmation = two.confirmation(1, &two.standings(2, 1));
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_none(), "{effects:?}");
    // The last confirmation of a member counts.
    let confirmation = two.confirmation(2, &first);
    let effects = two.one.hear(two.other, 0, 0, confirmation);
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn what_was_confirmed_is_remembered_through_a_restart() {
    let mut two = Two::new();
    let first = two.standings(1, 1);
    let mut effects = two.one.step(recover(&two.lost));
    effects.extend(two.one.hear_standing(two.other, &first[1]));
    let records: Vec<_> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Persist(record) => Some(record.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(records.len(), 2);
    let start = Start::Kept(records);
    let (one, _) = One::start(two.one.epoch.clone(), two.one.me, start);
    two.one = one;
    let effects = two.one.step(recover(&[two.lost[0]]));
    assert!(signed(&effects).is_none(), "{effects:?}");
    let confirmation = two.confirmation(1, &first);
    assert!(over(&two.one.hear(two.other, 0, 0, confirmation)).is_some());
}

#[test]
fn what_was_confirmed_is_abandoned_only_where_all_that_may_have_completed_it_are_lost() {
    let two = || {
        let mut two = Two::new();
        let first = two.standings(1, 1);
        two.one.step(recover(&two.lost));
        two.one.hear_standing(two.other, &first[1]);
        two
    };
    let abandon = |lost: &[MemberIndex]| Input::Recover {
        lost: lost.to_vec(),
        abandon: true,
    };
    // The other one, whose confirmation is not here, is not among the lost.
    let mut first = two();
    let effects = first.one.step(abandon(&first.lost[..1]));
    assert!(signed(&effects).is_none(), "{effects:?}");
    // It died before it confirmed, for good: this one goes on alone.
    let mut second = two();
    let all = second.one.others();
    assert!(signed(&second.one.step(recover(&all))).is_none());
    let effects = second.one.step(abandon(&all));
    assert_eq!(signed(&effects).map(|of| of.lost), Some(all));
    assert!(over(&effects).is_some(), "{effects:?}");
}

#[test]
fn a_member_that_lost_its_journal_learns_how_far_its_standings_have_come() {
    let mut two = Two::new();
    two.one.step(recover(&two.lost));
    // Another one holds a third standing of its key.
    let [third, _] = two.standings(3, 1);
    let me = two.one.me;
    let effects = two.one.hear(me, 0, 0, third.body());
    let standing = signed(&effects).unwrap();
    assert_eq!((standing.number, standing.lost), (4, two.lost.clone()));
}

#[test]
fn a_member_left_behind_is_told_of_the_same_others_once() {
    let mut gone = None;
    let mut told = 0;
    // Any number of recoveries by one other member.
    for number in 1..20 {
        let mut one = One::follower(2);
        let lost = one.others();
        one.member.governance.recoveries.reminded = number;
        let passage = over(&one.step(recover(&lost))).unwrap();
        let frame = envelope::sign_passage(&one.epoch, &passage);
        let gone = gone.get_or_insert_with(|| One::of(one.epoch.clone(), lost[0]));
        told += gone.read(&frame).len();
    }
    assert_eq!(told, 1);
}

#[test]
fn votes_under_way_are_not_counted_after_a_standing() {
    // Round 1 is final, and its outcome cannot be had.
    let mut one = One::follower(4).signed();
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    one.has_cast(&proof);
    one.add_certificate(&proof);
    let mut view = one.member.view();
    // In a view whose votes this member collects, as the next lead.
    while one.epoch.lead(view) == one.me || one.epoch.lead(view + 1) != one.me {
        let nullified = one.certificate(view, Verdict::Nullified);
        one.has_cast(&nullified);
        one.add_certificate(&nullified);
        view = one.member.view();
    }
    let lost = one.first_others(2);
    assert_eq!(one.step(recover(&lost)), []);
    one.step(Input::Done(Answer::Applied {
        round: 1,
        ends: false,
        result: Err(WorkError::Unavailable),
    }));
    // A change is about to become final with this member's vote.
    let mut change = one.changing(view, &longer(&one.epoch), &one.all());
    change.skipped.clear();
    one.propose(view, &change);
    let block = change.block.hash();
    for &by in &lost {
        one.hear(by, 0, view, Body::Finalize { block });
    }
    let notarised = one.certificate(view, Verdict::Notarised(block));
    one.has_cast(&notarised);
    one.now = one.now + 9 * one.epoch.heartbeat();
    let effects = one.add_certificate(&notarised);
    let stands = |effect: &Effect| matches!(effect, Effect::Persist(Record::Standing(_)));
    let voted = |effect: &Effect| {
        matches!(effect, Effect::Persist(Record::Vote(message))
            if message.body == Body::Finalize { block })
    };
    assert!(effects.iter().any(voted), "{effects:?}");
    assert!(effects.iter().any(stands), "{effects:?}");
    assert!(over(&effects).is_none(), "{effects:?}");
    assert!(over(&one.step(Input::Time)).is_none());
}
