//! The lead: collecting scores and inclusions, and leaving out members that send none.

use super::lead::{admits, receipt, with};
use super::one::*;
use super::prelude::*;
use super::table::epoch_with;
use crate::message::{Entry, MemberScores, Phase, RoundManifest};
use crate::refusal::Omission;

/// The scores of a member: a number of its own for each entry.
pub(super) fn scores(one: &One, by: MemberIndex, authors: &[MemberIndex]) -> MemberScores {
    let mut losses: Vec<_> = authors
        .iter()
        .map(|&author| (blob(author), f64::from(by.0)))
        .collect();
    losses.sort_by_key(|(blob, _)| *blob);
    let entry = one.entry(by).id;
    MemberScores { entry, losses }
}

/// The manifest of these scores.
fn scored(one: &One, authors: &[MemberIndex]) -> RoundManifest {
    let row = |entry: &Entry| {
        let author = authors.iter().find(|&&a| one.entry(a) == *entry);
        vec![f64::from(author.unwrap().0); authors.len()]
    };
    let entries = one.entries(authors);
    let scores = Some(entries.iter().map(row).collect());
    RoundManifest { entries, scores }
}

/// A lead of view 1 that has its own scores and waits for those of the others.
fn scoring() -> One {
    let mut one = One::leading(4, 1);
    one.plan_with(|plan| plan.cross_evaluate = true);
    one.train();
    one.admit(one.me, Ok(()));
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    one.take_in(x);
    one.take_in(y);
    assert_eq!(
        one.hear(z, 1, 0, Body::Contribution(one.contribution(z))),
        [admits(&one, z)]
    );
    let expected = [
        receipt(&one, z, 1),
        one.publishes(1, 1, one.contribution_list(&one.all())),
        one.leading_report(1, Phase::Scoring),
        Effect::Work(Request::Evaluate {
            round: 1,
            entries: one.entries(&one.all()),
            holders: one.others(),
        }),
    ];
    assert_eq!(one.admit(z, Ok(())), expected);
    let own = scores(&one, one.me, &one.all()).losses;
    let (round, result) = (1, Ok(own));
    assert_eq!(
        one.step(Input::Done(Answer::Evaluated { round, result })),
        []
    );
    one
}

fn hear_scores(one: &mut One, by: MemberIndex) -> Vec<Effect> {
    let body = Body::Scores(scores(one, by, &one.all()));
    one.hear(by, 1, 0, body)
}

#[test]
pub(super) fn the_manifest_is_sent_once_all_scores_are_here() {
    let mut one = scoring();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    assert_eq!(hear_scores(&mut one, x), []);
    assert_eq!(hear_scores(&mut one, y), []);
    let manifest = Body::Manifest(scored(&one, &one.all()));
    let expected = [
        one.publishes(1, 1, manifest),
        one.leading_report(1, Phase::Including),
    ];
    assert_eq!(hear_scores(&mut one, z), expected);
}

#[test]
pub(super) fn scores_not_finite_out_of_order_or_too_many_are_refused() {
    let changes: [fn(&mut MemberScores); 4] = [
        |scores| scores.losses.swap(0, 1),
        |scores| scores.losses[1].0 = scores.losses[0].0,
        |scores| scores.losses[2].1 = f64::NAN,
        |scores| scores.losses.push((Hash([255; 32]), 1.0)),
    ];
    for change in changes {
        let mut one = scoring();
        let by = one.others()[0];
        let mut said = scores(&one, by, &one.all());
        change(&mut said);
        let effects = one.hear(by, 1, 0, Body::Scores(said));
        assert_eq!(effects, [refused(by, 1, Refusal::Scores)]);
    }
    // Scores of another round are ignored.
    let mut one = scoring();
    let by = one.others()[0];
    let said = Body::Scores(scores(&one, by, &one.all()));
    assert_eq!(one.hear(by, 2, 0, said), []);
    assert!(!one.member.rounds.round.inbox.scores.contains_key(&by));
}

#[test]
pub(super) fn scores_count_only_for_the_members_own_entry() {
    let mut one = scoring();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    hear_scores(&mut one, x);
    hear_scores(&mut one, y);
    let mut said = scores(&one, z, &one.all());
    said.entry = one.entry(x).id;
    assert_eq!(one.hear(z, 1, 0, Body::Scores(said)), []);
    // They count only if all entries are scored.
    let mut said = scores(&one, z, &one.all());
    said.losses.pop();
    assert_eq!(one.hear(z, 1, 0, Body::Scores(said)), []);
    assert!(!hear_scores(&mut one, z).is_empty());
}

#[test]
pub(super) fn an_author_without_scores_is_left_out_after_the_timeout() {
    let mut one = scoring();
    let others = one.others();
    let silent = one.others()[1];
    hear_scores(&mut one, others[0]);
    hear_scores(&mut one, others[2]);
    // With every heartbeat the contribution list is sent again, to it alone.
    let asked = one.sends(silent, 1, 1, one.contribution_list(&one.all()));
    let heartbeat = |heartbeat| vec![one.progress(1, Phase::Scoring, heartbeat), asked.clone()];
    let before: Vec<_> = (1..=19).flat_map(heartbeat).collect();
    assert_eq!(one.pass(19_999), before);
    let authors = one.without(silent);
    let manifest = Body::Manifest(scored(&one, &authors));
    let left_out = Effect::Report(Report::LeftOut {
        view: 1,
        round: 1,
        members: vec![silent],
        reason: Omission::Scores,
    });
    let expected = [
        left_out,
        one.publishes(1, 1, manifest),
        one.leading_report(1, Phase::Including),
    ];
    assert_eq!(one.pass(20_000)[..3], expected);
}

#[test]
pub(super) fn an_absent_author_without_scores_is_left_out_after_d() {
    let mut one = scoring();
    let others = one.others();
    let peer = one.others()[1];
    hear_scores(&mut one, others[0]);
    hear_scores(&mut one, others[2]);
    one.member.rounds.absences.set(peer, 2);
    assert_eq!(one.pass(499), []);
    let manifest = Body::Manifest(scored(&one, &one.without(peer)));
    let effects = one.pass(500);
    assert_eq!(effects[1], one.publishes(1, 1, manifest));
}

#[test]
pub(super) fn with_too_few_scores_the_lead_votes_against_its_view() {
    let mut one = scoring();
    let others = one.others();
    hear_scores(&mut one, others[0]);
    one.pass(19_999);
    let (missing, reason) = (2, Omission::Scores);
    let expected = one.nullifies(1, Refusal::TooFewLeft { missing, reason });
    assert_eq!(one.pass(20_000)[..3], expected);
}

/// A lead of view 1 that waits for signatures of all n members.
fn including(n: u16) -> One {
    with(n, usize::from(n) - 1)
}

fn hear_inclusion(one: &mut One, by: MemberIndex, authors: &[MemberIndex]) -> Vec<Effect> {
    let manifest = one.manifest(authors).root();
    one.hear(by, 1, 0, Body::Inclusion { manifest })
}

fn decides(one: &One, authors: &[MemberIndex]) -> [Effect; 2] {
    let decide = Effect::Work(Request::Decide {
        round: 1,
        manifest: one.manifest(authors).into(),
        holders: one.others(),
    });
    [decide, one.leading_report(1, Phase::Deciding)]
}

#[test]
pub(super) fn when_all_authors_have_signed_the_lead_decides() {
    let mut one = including(4);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let all = one.all();
    assert_eq!(hear_inclusion(&mut one, x, &all), []);
    // A second signature, or one for another manifest or round, does not count.
    assert_eq!(hear_inclusion(&mut one, x, &all), []);
    let (others, root) = (one.others(), one.manifest(&all).root());
    assert_eq!(hear_inclusion(&mut one, z, &others), []);
    assert_eq!(one.hear(z, 2, 0, Body::Inclusion { manifest: root }), []);
    assert_eq!(hear_inclusion(&mut one, y, &all), []);
    let expected = decides(&one, &all);
    assert_eq!(hear_inclusion(&mut one, z, &all), expected);
}

#[test]
pub(super) fn unsigned_authors_drop_out_at_the_timeout_absent_ones_at_d() {
    for (marked_absent, until) in [(false, 20_000), (true, 500)] {
        let mut one = including(4);
        let [x, y, z] = one.others()[..] else {
            panic!("three others")
        };
        let all = one.all();
        hear_inclusion(&mut one, x, &all);
        hear_inclusion(&mut one, y, &all);
        if marked_absent {
            one.member.rounds.absences.set(z, 2);
        }
        one.pass(until - 1);
        let kept = one.without(z);
        let left_out = Effect::Report(Report::LeftOut {
            view: 1,
            round: 1,
            members: vec![z],
            reason: Omission::Inclusion,
        });
        let contribution_list = one.publishes(1, 1, one.contribution_list(&kept));
        assert_eq!(one.pass(until)[..2], [left_out, contribution_list]);
        // Another manifest: all of its authors sign again, the one that was left out does not count.
        assert_eq!(hear_inclusion(&mut one, x, &kept), []);
        assert_eq!(hear_inclusion(&mut one, z, &kept), []);
        let expected = decides(&one, &kept);
        assert_eq!(hear_inclusion(&mut one, y, &kept), expected);
    }
}

#[test]
pub(super) fn with_too_few_signatures_the_lead_votes_against_its_view() {
    let mut one = including(4);
    let others = one.others();
    let all = one.all();
    hear_inclusion(&mut one, others[0], &all);
    one.pass(19_999);
    let (missing, reason) = (2, Omission::Inclusion);
    let expected = one.nullifies(1, Refusal::TooFewLeft { missing, reason });
    assert_eq!(one.pass(20_000)[..3], expected);
}

#[test]
pub(super) fn with_zero_fewest_entries_the_last_author_may_be_left_out() {
    let mut one = One::leading(4, 1);
    let drawn = one.others()[0];
    one.plan_with(|plan| plan.participants = Some(vec![drawn]));
    one.take_in(drawn);
    // The member contributed and does not sign.
    one.pass(19_999);
    let contribution_list = one.publishes(1, 1, one.contribution_list(&[]));
    let effects = one.pass(20_000);
    assert!(effects.contains(&contribution_list), "{effects:?}");
    assert!(effects.contains(&one.leading_report(1, Phase::Deciding)));
}

#[test]
pub(super) fn a_manifest_is_issued_again_at_most_f_plus_1_times() {
    // With six members f is 1, and three entries are enough.
    let mut one = including(6);
    let mut authors = one.all();
    for again in 1..=3 {
        let signers = authors.iter().copied().filter(|&by| by != one.me);
        let signers: Vec<_> = signers.collect();
        let (silent, signers) = signers.split_first().unwrap();
        for &by in signers {
            hear_inclusion(&mut one, by, &authors);
        }
        let kept: Vec<_> = authors.iter().copied().filter(|by| by != silent).collect();
        // A member that is marked absent is waited for until D is over.
        one.member.rounds.absences.set(*silent, 2);
        let effects = one.pass(500 * again);
        if again == 3 {
            let (missing, reason) = (1, Omission::Inclusion);
            let refusal = Refusal::TooFewLeft { missing, reason };
            assert_eq!(effects, one.nullifies(1, refusal));
        } else {
            let contribution_list = one.publishes(1, 1, one.contribution_list(&kept));
            assert_eq!(effects[1], contribution_list, "{again}");
        }
        authors = kept;
    }
}

#[test]
pub(super) fn a_manifest_is_issued_again_without_the_row_and_the_column() {
    let mut one = scoring();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    for by in [x, y, z] {
        hear_scores(&mut one, by);
    }
    let manifest = scored(&one, &one.all()).root();
    for by in [x, z] {
        one.hear(by, 1, 0, Body::Inclusion { manifest });
    }
    one.member.rounds.absences.set(y, 2);
    let smaller = Body::Manifest(scored(&one, &one.without(y)));
    let effects = one.pass(500);
    assert_eq!(effects[1], one.publishes(1, 1, smaller));
}

#[test]
pub(super) fn only_signatures_of_authors_of_the_manifest_count() {
    let mut one = One::leading(4, 1);
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    let named = one.without(z);
    one.plan_with(|plan| plan.participants = Some(named.clone()));
    one.train();
    one.admit(one.me, Ok(()));
    one.take_in(x);
    one.take_in(y);
    assert_eq!(hear_inclusion(&mut one, z, &named), []);
    assert_eq!(hear_inclusion(&mut one, x, &named), []);
    let expected = decides(&one, &named);
    assert_eq!(hear_inclusion(&mut one, y, &named), expected);
}

#[test]
pub(super) fn the_models_of_admitted_contributions_are_held_by_the_lead() {
    // Its own signature needs no further work: nothing is fetched again.
    let one = including(4);
    assert!(
        one.member
            .rounds
            .round
            .models
            .missing(&one.entries(&one.all()))
            .is_empty()
    );
    let epoch = epoch_with(1, 1, |protocol| protocol.min_contributions = 1);
    let mut one = One::restart(epoch.clone(), epoch.lead(1), vec![]).0;
    one.plan();
    one.train();
    let decide = Effect::Work(Request::Decide {
        round: 1,
        manifest: one.manifest(&one.all()).into(),
        holders: vec![],
    });
    assert!(one.admit(one.me, Ok(())).contains(&decide));
}
