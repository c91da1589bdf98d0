//! The lead: collecting contributions, giving receipts, closing the set.

use super::one::*;
use super::prelude::*;
use super::table::{BLOB, epoch_with};
use crate::effects::WorkError;
use crate::message::{Contribution, EntryFields, METRIC_NAME, METRICS, MemberScores, Phase};
use crate::parameters::Privacy;

pub(super) fn admits(one: &One, from: MemberIndex) -> Effect {
    let (round, fields) = (one.member.round(), one.trained(from).fields);
    Effect::Work(Request::Admit {
        round,
        fields,
        from,
    })
}

pub(super) fn receipt(one: &One, to: MemberIndex, view: u64) -> Effect {
    let entry = one.entry(to).id;
    one.sends(to, 0, view, Body::Receipt { entry })
}

/// A lead of view 1 that has its own entry and those of some others.
pub(super) fn with(n: u16, others: usize) -> One {
    let mut one = One::leading(n, 1).contributed();
    one.admit(one.me, Ok(()));
    for other in one.others().into_iter().take(others) {
        one.take_in(other);
    }
    one
}

/// A member sends a changed contribution.
fn contributes(
    one: &mut One,
    by: MemberIndex,
    change: impl FnOnce(&mut Contribution),
) -> Vec<Effect> {
    let mut contribution = one.contribution(by);
    change(&mut contribution);
    one.hear(by, 1, 0, Body::Contribution(contribution))
}

#[test]
pub(super) fn a_lead_sends_progress_and_requests_the_plan() {
    let epoch = super::table::epoch(4, 5);
    let (one, effects) = One::restart(epoch.clone(), epoch.lead(1), vec![]);
    let expected = [
        one.entered(1, 1),
        one.progress(1, Phase::Collecting, 0),
        one.plans(1, epoch.protocol.start),
        one.leading_report(1, Phase::Collecting),
    ];
    assert_eq!(effects, expected);
}

#[test]
pub(super) fn admitted_contributions_get_receipts_and_the_last_one_closes_the_set() {
    let mut one = One::leading(4, 1);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    // Contributions before the plan are kept.
    let early = Body::Contribution(one.contribution(x));
    assert_eq!(one.hear(x, 1, 0, early), []);
    let train = Effect::Work(Request::Train { round: 1 });
    assert_eq!(one.plan(), [train, admits(&one, x)]);
    assert_eq!(one.admit(x, Ok(())), [receipt(&one, x, 1)]);
    let own = one.train();
    assert_eq!(own.last(), Some(&admits(&one, one.me)));
    assert_eq!(one.admit(one.me, Ok(())), []);
    let body = Body::Contribution(one.contribution(y));
    assert_eq!(one.hear(y, 1, 0, body.clone()), [admits(&one, y)]);
    assert_eq!(one.hear(y, 1, 0, body.clone()), []);
    assert_eq!(one.admit(y, Ok(())), [receipt(&one, y, 1)]);
    // Sent again, because the receipt was lost.
    assert_eq!(one.hear(y, 1, 0, body), [receipt(&one, y, 1)]);
    one.hear(z, 1, 0, Body::Contribution(one.contribution(z)));
    let closed = [
        receipt(&one, z, 1),
        one.publishes(1, 1, one.contribution_list(&one.all())),
        one.leading_report(1, Phase::Including),
    ];
    assert_eq!(one.admit(z, Ok(())), closed);
}

#[test]
pub(super) fn each_objection_to_a_contribution_has_its_refusal() {
    let another = Hash::of(b"another plan");
    let wrong_plan = Refusal::WrongPlan {
        got: another,
        ours: plan(),
    };
    let (limit, needed) = (BLOB, BLOB);
    let (large, small) = (BLOB + 1, BLOB - 1);
    type Change = fn(&mut Contribution);
    let objections: [(Change, Refusal); 6] = [
        (|c| c.plan = Hash::of(b"another plan"), wrong_plan),
        (
            |c| c.fields.size = BLOB + 1,
            Refusal::ModelTooLarge { got: large, limit },
        ),
        (
            |c| c.fields.size = BLOB - 1,
            Refusal::ModelSize { got: small, needed },
        ),
        (
            |c| c.fields.member = Some(MemberIndex(1)),
            Refusal::EntryName,
        ),
        (|c| c.fields.weight = Some(5), Refusal::EntryFields),
        (
            |c| (c.fields.member, c.fields.weight) = (Some(MemberIndex(0)), Some(1)),
            Refusal::EntryName,
        ),
    ];
    for (change, reason) in objections {
        let mut one = with(4, 0);
        let by = one.others()[0];
        let effects = contributes(&mut one, by, change);
        assert_eq!(effects, [refused(by, 1, reason)]);
        // It is refused once, and the lead does not wait for that member.
        assert_eq!(contributes(&mut one, by, change), []);
        assert_eq!(one.step(Input::Time), []);
        one.take_in(one.others()[1]);
        let last = one.take_in(one.others()[2]);
        let contribution_list = one.contribution_list(&one.without(by));
        assert!(last.contains(&one.publishes(1, 1, contribution_list)));
    }
}

#[test]
pub(super) fn a_contribution_of_a_member_that_the_plan_does_not_name_is_refused() {
    let mut one = One::leading(4, 1);
    let left_out = one.others()[0];
    let named = one.without(left_out);
    one.plan_with(|plan| plan.participants = Some(named));
    let effects = contributes(&mut one, left_out, |_| {});
    let reason = Refusal::NotAParticipant(left_out);
    assert_eq!(effects, [refused(left_out, 1, reason)]);
    assert_eq!(one.admit(left_out, Ok(())), []);
}

#[test]
pub(super) fn with_names_shown_a_contribution_must_name_its_author() {
    let epoch = epoch_with(4, 5, |protocol| protocol.privacy = Privacy::ClearWithNames);
    let mut one = One::of(epoch.clone(), epoch.lead(1));
    one.plan();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let effects = contributes(&mut one, x, |_| {});
    assert_eq!(effects, [admits(&one, x)]);
    let effects = contributes(&mut one, y, |c| c.fields.member = Some(x));
    assert_eq!(effects, [refused(y, 1, Refusal::EntryName)]);
    let effects = contributes(&mut one, z, |c| c.fields.member = None);
    assert_eq!(effects, [refused(z, 1, Refusal::EntryName)]);
}

#[test]
pub(super) fn a_model_that_two_members_contribute_is_admitted_for_each_of_them() {
    let mut one = One::leading(4, 1);
    one.plan_with(|plan| plan.weights = true);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let say = |one: &One, weight| EntryFields {
        weight: Some(weight),
        ..one.trained(x).fields
    };
    let admit = |one: &One, weight, from| {
        Effect::Work(Request::Admit {
            round: 1,
            fields: say(one, weight),
            from,
        })
    };
    // Three members contribute the same model. It is fetched from each, because two of them may
    // only have copied its hash.
    for (by, weight) in [(x, 5), (y, 7), (z, 5)] {
        let fields = say(&one, weight);
        let effects = contributes(&mut one, by, |c| c.fields = fields);
        assert_eq!(effects, [admit(&one, weight, by)]);
    }
    let mut answer = |from, weight, result| {
        let (round, fields) = (1, say(&one, weight));
        one.step(Input::Done(Answer::Admitted {
            round,
            from,
            fields,
            result,
        }))
    };
    let refusal = answer(y, 7, Err(no("false")));
    assert_eq!(refusal, [refused(y, 1, Refusal::Work("false".into()))]);
    // Those that copied the hash cannot give the model.
    assert_eq!(answer(x, 5, Err(WorkError::Unavailable)), []);
    let receipts = answer(z, 5, Ok(()));
    let mut contribution = one.contribution(z);
    contribution.fields = say(&one, 5);
    let entry = contribution.entry(&one.epoch.federation, 1).id;
    assert_eq!(receipts, [one.sends(z, 0, 1, Body::Receipt { entry })]);
}

#[test]
pub(super) fn metrics_that_are_many_not_finite_or_named_too_long_are_refused() {
    let mut one = with(4, 1);
    let by = one.others()[2];
    let many = (0..=METRICS).map(|i| (format!("{i:03}"), 0.0)).collect();
    let long = vec![("x".repeat(METRIC_NAME + 1), 0.0)];
    for metrics in [vec![("loss".to_owned(), f64::NAN)], many, long] {
        let effects = contributes(&mut one, by, |c| c.metrics = metrics);
        assert_eq!(effects, [refused(by, 1, Refusal::Metrics)]);
    }
    // Nothing of it was kept: the next contribution counts.
    assert_eq!(one.take_in(by), [receipt(&one, by, 1)]);
}

#[test]
pub(super) fn an_unusable_model_is_refused_and_its_author_not_waited_for() {
    let mut one = with(4, 2);
    let bad = one.others()[2];
    one.hear(bad, 1, 0, Body::Contribution(one.contribution(bad)));
    let effects = one.admit(bad, Err(no("not finite")));
    let expected = [
        refused(bad, 1, Refusal::Work("not finite".into())),
        one.publishes(1, 1, one.contribution_list(&one.without(bad))),
        one.leading_report(1, Phase::Including),
    ];
    assert_eq!(effects, expected);
}

#[test]
pub(super) fn a_model_that_could_not_be_fetched_is_requested_again_after_a_beat() {
    let mut one = with(4, 2);
    let late = one.others()[2];
    one.hear(late, 1, 0, Body::Contribution(one.contribution(late)));
    assert_eq!(one.admit(late, Err(WorkError::Unavailable)), []);
    assert_eq!(one.at(999), []);
    let progress = one.progress(1, Phase::Collecting, 1);
    let again = admits(&one, late);
    assert_eq!([one.at(1000), one.at(1001)].concat(), [progress, again]);
    // The result for another round is ignored.
    let (round, fields, result) = (2, one.trained(late).fields, Ok(()));
    let other = Input::Done(Answer::Admitted {
        round,
        from: late,
        fields,
        result,
    });
    assert_eq!(one.step(other), []);
}

#[test]
pub(super) fn contributions_of_earlier_rounds_are_refused_once_and_later_ones_kept() {
    let mut one = One::leading(4, 2).signed();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    // Contributions to the next round are kept, those to later rounds are not.
    let mut next = one.contribution(y);
    next.nonce = [9; 32];
    one.hear(y, 2, 0, Body::Contribution(next.clone()));
    one.hear(z, 3, 0, Body::Contribution(next.clone()));
    let old = Body::Contribution(one.contribution(x));
    one.finish_round(&one.all());
    let reason = Refusal::StaleContribution { got: 1, now: 2 };
    assert_eq!(one.hear(x, 1, 0, old.clone()), [refused(x, 2, reason)]);
    assert_eq!(one.hear(x, 1, 0, old), []);
    let admit = Effect::Work(Request::Admit {
        round: 2,
        fields: next.fields,
        from: y,
    });
    assert_eq!(
        one.plan(),
        [Effect::Work(Request::Train { round: 2 }), admit]
    );
}

#[test]
pub(super) fn two_different_contributions_of_a_round_are_evidence_and_the_first_counts() {
    let mut one = with(4, 1);
    let by = one.others()[0];
    let first = one.contribution(by);
    let mut second = first.clone();
    second.metrics = vec![("loss".into(), 1.0)];
    let signed = |c: &Contribution| one.sealed(by, 1, 0, Body::Contribution(c.clone())).0;
    let reason = "two different contributions in round 1".into();
    let mut expected = vec![refused(by, 1, Refusal::Contradiction(reason))];
    expected.extend(one.accuses(&signed(&first), &signed(&second)));
    assert_eq!(one.hear(by, 1, 0, Body::Contribution(second)), expected);
    // The first one still counts.
    let again = one.hear(by, 1, 0, Body::Contribution(first));
    assert_eq!(again, [receipt(&one, by, 1)]);
}

/// The effects of heartbeats while a lead collects.
fn collecting(one: &One, heartbeats: std::ops::RangeInclusive<u64>) -> Vec<Effect> {
    let progress = |heartbeat| one.progress(1, Phase::Collecting, heartbeat);
    heartbeats.map(progress).collect()
}

/// The effects of closing the set with these entries.
pub(super) fn closes(one: &One, authors: &[MemberIndex]) -> Vec<Effect> {
    let contribution_list = one.publishes(1, 1, one.contribution_list(authors));
    vec![contribution_list, one.leading_report(1, Phase::Including)]
}

#[test]
pub(super) fn a_missing_member_is_waited_for_until_patience_is_over() {
    let mut one = with(4, 2);
    let missing = one.others()[2];
    assert_eq!(one.pass(19_999), collecting(&one, 1..=19));
    let authors = one.without(missing);
    let mut expected = closes(&one, &authors);
    expected.push(one.progress(1, Phase::Including, 20));
    let contribution_list = one.contribution_list(&authors);
    let again = one.others();
    expected.extend(
        again
            .iter()
            .map(|&to| one.sends(to, 1, 1, contribution_list.clone())),
    );
    assert_eq!(one.pass(20_000), expected);
}

#[test]
pub(super) fn an_excused_member_is_waited_for_until_d_is_over() {
    let mut one = with(4, 2);
    let peer = one.others()[2];
    one.member.rounds.absences.set(peer, 2);
    assert_eq!(one.pass(499), []);
    let expected = closes(&one, &one.without(peer));
    assert_eq!(one.pass(500), expected);
    // One that cannot be reached may be back within patience; one whose chance has come is waited
    // for if it can be reached.
    for (absent, down, marked_absent) in [
        (false, true, false),
        (true, true, true),
        (true, false, false),
    ] {
        let mut one = with(4, 2);
        if absent {
            one.member.rounds.absences.set(peer, 1);
        }
        if down {
            one.step(Input::Down { peer });
        }
        let closed = one
            .pass(500)
            .contains(&one.leading_report(1, Phase::Including));
        assert_eq!(closed, marked_absent);
    }
}

#[test]
pub(super) fn one_excused_member_does_not_excuse_the_others() {
    let mut one = with(7, 4);
    let (marked_absent, other) = (one.others()[4], one.others()[5]);
    one.member.rounds.absences.set(marked_absent, 2);
    assert_eq!(one.pass(1500), collecting(&one, 1..=1));
    // Once the other one has contributed, the set is closed.
    let mut expected = vec![receipt(&one, other, 1)];
    expected.extend(closes(&one, &one.without(marked_absent)));
    assert_eq!(one.take_in(other), expected);
}

#[test]
pub(super) fn a_member_missing_in_the_last_round_is_waited_for_until_d_is_over() {
    for here in [true, false] {
        let mut one = One::leading(4, 2).signed();
        let late = one.others()[2];
        let authors = if here { one.all() } else { one.without(late) };
        one.hear_lead(1, one.contribution_list(&authors));
        one.finish_round(&authors);
        one.plan();
        one.train();
        one.admit(one.me, Ok(()));
        for &other in &one.others()[..2] {
            one.hear(other, 2, 0, Body::Contribution(one.contribution(other)));
            one.admit(other, Ok(()));
        }
        assert_eq!(one.pass(499), []);
        let contribution_list = one.publishes(2, 2, one.contribution_list(&one.without(late)));
        assert_eq!(one.pass(500).contains(&contribution_list), !here);
    }
}

#[test]
pub(super) fn a_set_with_fewer_than_the_fewest_entries_is_not_closed() {
    let mut one = with(4, 1);
    for peer in one.others() {
        one.step(Input::Down { peer });
    }
    assert_eq!(one.pass(30_000), collecting(&one, 1..=30));
}

#[test]
pub(super) fn a_set_of_few_participants_is_closed_after_patience_with_those_that_contributed() {
    let mut one = One::leading(4, 1);
    let (x, y) = (one.others()[0], one.others()[1]);
    one.plan_with(|plan| plan.participants = Some(vec![x, y]));
    one.take_in(x);
    // A plan of two may miss one; it is not marked absent, so patience counts.
    assert_eq!(one.pass(19_999), collecting(&one, 1..=19));
    assert_eq!(one.pass(20_000)[..2], closes(&one, &[x]));
}

#[test]
pub(super) fn an_empty_set_is_closed_after_patience_and_needs_no_signatures() {
    let mut one = One::leading(4, 1);
    let x = one.others()[0];
    one.plan_with(|plan| plan.participants = Some(vec![x]));
    one.step(Input::Down { peer: x });
    assert_eq!(one.pass(19_999), collecting(&one, 1..=19));
    let decide = Effect::Work(Request::Decide {
        round: 1,
        manifest: one.manifest(&[]).into(),
        holders: one.others(),
    });
    let mut expected = closes(&one, &[]);
    expected.push(decide);
    expected.push(one.leading_report(1, Phase::Deciding));
    expected.push(one.progress(1, Phase::Deciding, 20));
    assert_eq!(one.pass(20_000), expected);
}

#[test]
pub(super) fn after_closing_no_receipt_is_given() {
    let mut one = with(4, 2);
    let late = one.others()[2];
    one.member.rounds.absences.set(late, 2);
    one.pass(500);
    assert_eq!(
        one.hear(late, 1, 0, Body::Contribution(one.contribution(late))),
        []
    );
    assert_eq!(one.admit(late, Ok(())), []);
    let entry = one.entry(late).id;
    let losses = vec![];
    assert_eq!(
        one.hear(late, 1, 0, Body::Scores(MemberScores { entry, losses })),
        []
    );
}
