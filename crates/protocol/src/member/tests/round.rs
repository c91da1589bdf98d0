//! A member's own part of a round: plan, training, contribution, scores, signatures.

use super::manifest::scores;
use super::one::*;
use super::prelude::*;
use super::table::{BLOB, epoch};
use crate::certificate::Verdict;
use crate::effects::WorkError;
use crate::message::{ContributionList, Entry, Phase, RoundManifest};

fn holds(one: &One, entries: Vec<Entry>, view: u64) -> Effect {
    Effect::Work(Request::Hold {
        round: 1,
        entries,
        holders: one.holders(view),
    })
}

fn signs(one: &One, manifest: &RoundManifest, view: u64) -> Effect {
    let manifest = manifest.root();
    one.sends(one.epoch.lead(view), 1, 0, Body::Inclusion { manifest })
}

/// The entries of a contribution list, changed.
fn contribution_list(one: &One, change: impl FnOnce(&mut Vec<Entry>)) -> Body {
    let mut entries = one.entries(&one.all());
    change(&mut entries);
    Body::ContributionList(ContributionList { entries })
}

#[test]
pub(super) fn a_round_is_planned_trained_once_and_contributed_durably() {
    let (one, effects) = {
        let epoch = epoch(4, 5);
        let me = epoch.lead(0);
        One::restart(epoch, me, vec![])
    };
    let plans = one.plans(1, one.epoch.protocol.start);
    assert_eq!(effects, [one.entered(1, 1), plans]);
    let mut one = One::follower(4);
    // The plan of another round is ignored.
    assert_eq!(one.plan_with(|plan| plan.round = 2), []);
    assert_eq!(one.plan(), [Effect::Work(Request::Train { round: 1 })]);
    // The training of another round is ignored.
    let (round, result) = (2, Ok(one.trained(one.me)));
    assert_eq!(one.step(Input::Done(Answer::Trained { round, result })), []);
    let contribution = Body::Contribution(one.contribution(one.me));
    let (message, _) = one.sealed(one.me, 1, 0, contribution);
    let (round, blob) = (1, blob(one.me));
    let expected = [
        Effect::Persist(Record::Contributed(message)),
        Effect::Report(Report::Contributed { round, blob }),
        one.contributes(one.epoch.lead(1)),
    ];
    assert_eq!(one.train(), expected);
    assert_eq!(one.train(), []);
}

#[test]
pub(super) fn a_contribution_is_sent_again_until_its_receipt_and_to_every_new_lead() {
    let mut one = One::follower(4).contributed();
    let again = one.contributes(one.epoch.lead(1));
    assert_eq!(one.pass(1000), [again.clone()]);
    // A receipt for another entry is ignored.
    let entry = Hash::of(b"another entry");
    one.hear_lead(1, Body::Receipt { entry });
    assert_eq!(one.pass(2000), [again]);
    let entry = one.entry(one.me).id;
    assert_eq!(one.hear_lead(1, Body::Receipt { entry }), []);
    let (phase, counter) = (Phase::Collecting, 3);
    one.hear_lead(1, Body::Progress { phase, counter });
    assert_eq!(one.pass(3000), []);
    // The next lead gets the same contributions, and no member trains again.
    let mut expected = one.leaves_by(&one.certificate(1, Verdict::Nullified));
    expected.push(one.contributes(one.epoch.lead(2)));
    assert_eq!(one.skip(1), expected);
}

#[test]
pub(super) fn a_contribution_is_the_same_after_a_restart() {
    let one = One::follower(4);
    let contribution = Body::Contribution(one.contribution(one.me));
    let (message, frame) = one.sealed(one.me, 1, 0, contribution);
    let kept = Start::Kept(vec![Record::Contributed(message)]);
    let (mut one, effects) = One::start(one.epoch, one.me, kept);
    let to = one.epoch.lead(1);
    let expected = [
        one.entered(1, 1),
        Effect::Send { to, frame },
        one.plans(1, one.epoch.protocol.start),
    ];
    assert_eq!(effects, expected);
    assert_eq!(one.plan(), [], "it is not trained again");
    // A contribution to another round is not restored.
    let other = one.sealed(one.me, 2, 0, Body::Contribution(one.contribution(one.me)));
    let kept = Start::Kept(vec![Record::Contributed(other.0)]);
    let (mut one, effects) = One::start(one.epoch, one.me, kept);
    assert_eq!(effects.len(), 2);
    assert_eq!(one.plan(), [Effect::Work(Request::Train { round: 1 })]);
}

#[test]
pub(super) fn a_failed_training_is_reported_and_not_repeated() {
    // In later formats the others are told: see `nothing`.
    let mut one = One::in_format(1, 4);
    one.plan();
    let (round, reason) = (1, "no data".to_owned());
    let result = Err(reason.clone());
    let effects = one.step(Input::Done(Answer::Trained { round, result }));
    let failed = Report::TrainingFailed { round, reason };
    assert_eq!(effects, [Effect::Report(failed)]);
    assert_eq!(one.train(), []);
}

#[test]
pub(super) fn a_member_that_the_plan_does_not_name_does_not_train() {
    let mut one = One::follower(4);
    let others = one.others();
    assert_eq!(one.plan_with(|plan| plan.participants = Some(others)), []);
    assert_eq!(one.train(), []);
}

#[test]
pub(super) fn a_bundle_with_the_own_entry_is_signed_once_all_models_are_here() {
    let mut one = One::follower(4).contributed();
    let (manifest, others) = (one.manifest(&one.all()), one.entries(&one.others()));
    let contribution_list = one.contribution_list(&one.all());
    let hold = holds(&one, others.clone(), 1);
    assert_eq!(one.hear_lead(1, contribution_list.clone()), [hold]);
    // One request at a time.
    assert_eq!(one.hear_lead(1, contribution_list.clone()), []);
    let some = &one.others()[..2];
    let rest = holds(&one, one.entries(&one.others()[2..]), 1);
    assert_eq!(one.hold(some), [rest]);
    assert_eq!(one.hold(&one.others()), [signs(&one, &manifest, 1)]);
    // Signed again when the manifest is sent again, because the signature was lost.
    assert_eq!(
        one.hear_lead(1, contribution_list),
        [signs(&one, &manifest, 1)]
    );
}

#[test]
fn bundles_and_sheets_of_another_round_are_ignored() {
    let mut one = One::follower(4).contributed();
    one.hold_all();
    let lead = one.epoch.lead(1);
    assert_eq!(one.hear(lead, 2, 1, one.contribution_list(&one.all())), []);
    assert_eq!(one.hear(lead, 2, 1, one.contribution_list(&[])), []);
    assert_eq!(one.hear(lead, 2, 1, Body::Manifest(one.manifest(&[]))), []);
}

#[test]
fn a_fetch_for_the_lead_of_an_earlier_view_does_not_delay_the_next() {
    let mut one = One::follower(4).contributed();
    let hold = |view| holds(&one, one.entries(&one.others()), view);
    let (first, second) = (hold(1), hold(2));
    assert_eq!(one.hear_lead(1, one.contribution_list(&one.all())), [first]);
    assert_eq!(one.skip(1).last(), Some(&second));
}

#[test]
pub(super) fn metrics_of_the_own_training_are_cut_to_what_others_accept() {
    let mut one = One::follower(4);
    one.plan();
    let good = |i: usize| (format!("{i:03}"), 1.0);
    let mut trained = one.trained(one.me);
    trained.metrics = vec![("x".repeat(129), 1.0), ("nan".into(), f64::NAN)];
    trained.metrics.extend((0..70).map(good));
    let (round, result) = (1, Ok(trained));
    let effects = one.step(Input::Done(Answer::Trained { round, result }));
    let mut contribution = one.contribution(one.me);
    contribution.metrics = (0..64).map(good).collect();
    let body = Body::Contribution(contribution);
    assert_eq!(effects[2], one.sends(one.epoch.lead(1), 1, 0, body));
}

#[test]
pub(super) fn models_that_could_not_be_fetched_are_requested_again_with_the_next_bundle() {
    let mut one = One::follower(4).contributed();
    let held = |result| {
        Input::Done(Answer::Held {
            round: 1,
            blobs: vec![],
            result,
        })
    };
    let hold = holds(&one, one.entries(&one.others()), 1);
    one.hear_lead(1, one.contribution_list(&one.all()));
    assert_eq!(one.step(held(Err(WorkError::Unavailable))), []);
    assert_eq!(one.step(Input::Time), []);
    assert_eq!(
        one.hear_lead(1, one.contribution_list(&one.all())),
        [hold.clone()]
    );
    let reason = Refusal::Work("wrong shapes".into());
    let effects = one.step(held(Err(no("wrong shapes"))));
    assert_eq!(effects, [refused(one.epoch.lead(1), 1, reason)]);
    assert_eq!(one.step(Input::Time), []);
    // Models of another round do not count.
    one.hear_lead(1, one.contribution_list(&one.all()));
    let (round, blobs) = (2, one.others().into_iter().map(blob).collect());
    let result = Ok(());
    let other = Input::Done(Answer::Held {
        round,
        blobs,
        result,
    });
    assert_eq!(one.step(other), []);
}

#[test]
pub(super) fn a_sheet_without_the_own_entry_unchanged_is_not_signed() {
    let mut one = One::follower(4).contributed();
    one.hold_all();
    assert_eq!(one.hear_lead(1, one.contribution_list(&one.others())), []);
    let own = one.entry(one.me).id;
    let changed = contribution_list(&one, |entries| {
        let entry = entries.iter_mut().find(|entry| entry.id == own);
        entry.unwrap().fields.coalition = Some(1);
    });
    assert_eq!(one.hear_lead(1, changed), []);
    // A member that has not contributed signs nothing either.
    let mut one = One::follower(4);
    one.plan();
    one.hold_all();
    assert_eq!(one.hear_lead(1, one.contribution_list(&one.all())), []);
}

#[test]
pub(super) fn at_most_f_plus_2_sheets_are_signed_in_a_view() {
    let mut one = One::follower(7).contributed();
    one.hold_all();
    // f + 2 = 4 manifests of five to seven entries, all with its own.
    for (signed, out) in one.others().into_iter().take(6).enumerate() {
        let authors = one.without(out);
        let effects = one.hear_lead(1, one.contribution_list(&authors));
        if signed < 4 {
            assert_eq!(effects, [signs(&one, &one.manifest(&authors), 1)]);
        } else {
            assert_eq!(effects, []);
        }
    }
    // In the next view again.
    one.skip(1);
    let effects = one.hear_lead(2, one.contribution_list(&one.all()));
    assert_eq!(effects, [signs(&one, &one.manifest(&one.all()), 2)]);
}

/// The lead of view 1 sends this, and it is refused.
fn refuses(mut one: One, body: Body, reason: Refusal) {
    let refusal = one.refuses_lead(1, reason);
    assert_eq!(one.hear_lead(1, body.clone()), refusal);
    // The second time there is no second vote.
    assert_eq!(one.hear_lead(1, body), refusal[..1]);
}

#[test]
pub(super) fn a_bundle_with_too_few_or_too_many_entries_is_refused() {
    let participants = 4;
    for listed in [2, 5] {
        let one = One::follower(4).contributed();
        let mut more = one.entry(one.me);
        more.id = Hash([255; 32]);
        let body = contribution_list(&one, |entries| {
            entries.push(more);
            entries.truncate(listed);
        });
        let reason = Refusal::EntryCount {
            listed,
            fewest: 3,
            participants,
        };
        refuses(one, body, reason);
    }
}

#[test]
pub(super) fn a_bundle_with_entries_out_of_order_is_refused() {
    let changes: [fn(&mut Vec<Entry>); 3] = [
        |entries| entries.swap(0, 1),
        |entries| entries.swap(2, 3),
        |entries| entries[1] = entries[0].clone(),
    ];
    for change in changes {
        let one = One::follower(4).contributed();
        let body = contribution_list(&one, change);
        refuses(one, body, Refusal::EntryOrder);
    }
}

#[test]
pub(super) fn a_bundle_with_a_model_of_another_size_is_refused() {
    let one = One::follower(4).contributed();
    let (got, needed) = (BLOB - 1, BLOB);
    let body = contribution_list(&one, |entries| entries[3].fields.size = BLOB - 1);
    refuses(one, body, Refusal::ModelSize { got, needed });
}

#[test]
pub(super) fn a_bundle_with_fields_that_the_plan_does_not_ask_for_is_refused() {
    let one = One::follower(4).contributed();
    let body = contribution_list(&one, |entries| entries[3].fields.weight = Some(1));
    refuses(one, body, Refusal::EntryFields);
    let mut one = One::follower(4);
    one.plan_with(|plan| plan.weights = true);
    let body = one.contribution_list(&one.all());
    refuses(one, body, Refusal::EntryFields);
}

/// A member that has contributed to a round with scores.
fn crossing() -> One {
    let mut one = One::follower(4);
    one.plan_with(|plan| plan.cross_evaluate = true);
    one.train();
    one
}

fn evaluates(one: &One, entries: Vec<Entry>) -> Effect {
    Effect::Work(Request::Evaluate {
        round: 1,
        entries,
        holders: one.holders(1),
    })
}

fn evaluated(one: &mut One, result: Result<Vec<(Hash, f64)>, WorkError>) -> Vec<Effect> {
    one.step(Input::Done(Answer::Evaluated { round: 1, result }))
}

#[test]
pub(super) fn a_bundle_of_a_round_with_scores_is_evaluated_and_the_scores_go_to_the_lead() {
    let mut one = crossing();
    let (contribution_list, all) = (one.contribution_list(&one.all()), one.all());
    let evaluate = evaluates(&one, one.entries(&all));
    assert_eq!(
        one.hear_lead(1, contribution_list.clone()),
        [evaluate.clone()]
    );
    assert_eq!(one.hear_lead(1, contribution_list.clone()), []);
    assert_eq!(evaluated(&mut one, Err(WorkError::Unavailable)), []);
    assert_eq!(one.hear_lead(1, contribution_list.clone()), [evaluate]);
    let own = scores(&one, one.me, &all);
    let sends = one.sends(one.epoch.lead(1), 1, 0, Body::Scores(own.clone()));
    assert_eq!(evaluated(&mut one, Ok(own.losses.clone())), [sends.clone()]);
    // Asked again, it does not evaluate again.
    assert_eq!(one.hear_lead(1, contribution_list.clone()), [sends]);
    // Losses of another round are ignored.
    let mut one = crossing();
    one.hear_lead(1, contribution_list);
    let (round, result) = (2, Ok(own.losses));
    assert_eq!(
        one.step(Input::Done(Answer::Evaluated { round, result })),
        []
    );
    // A contribution list without the own entry is not evaluated.
    let mut one = crossing();
    assert_eq!(one.hear_lead(1, one.contribution_list(&one.others())), []);
}

#[test]
pub(super) fn a_model_that_cannot_be_evaluated_leads_to_nullify() {
    let mut one = crossing();
    one.hear_lead(1, one.contribution_list(&one.all()));
    let reason = Refusal::Work("not finite".into());
    let expected = one.refuses_lead(1, reason);
    assert_eq!(evaluated(&mut one, Err(no("not finite"))), expected);
}

/// A manifest with all entries and changed rows; the member's own row holds its losses.
fn manifest(one: &One, change: impl FnOnce(&mut Vec<Vec<f64>>)) -> RoundManifest {
    let entries = one.entries(&one.all());
    let own = entries.iter().position(|e| *e == one.entry(one.me));
    let mut rows = vec![vec![0.5; 4]; 4];
    rows[own.unwrap()] = vec![f64::from(one.me.0); 4];
    change(&mut rows);
    let scores = Some(rows);
    RoundManifest { entries, scores }
}

fn measured() -> One {
    let mut one = crossing();
    one.hear_lead(1, one.contribution_list(&one.all()));
    let own = scores(&one, one.me, &one.all()).losses;
    evaluated(&mut one, Ok(own));
    one
}

#[test]
pub(super) fn a_sheet_is_signed_only_if_the_own_row_is_equal_bit_by_bit() {
    let mut one = measured();
    let good = manifest(&one, |_| {});
    assert_eq!(
        one.hear_lead(1, Body::Manifest(good.clone())),
        [signs(&one, &good, 1)]
    );
    let at = good.position(&one.entry(one.me).id).unwrap();
    for column in 0..4 {
        let forged = manifest(&one, |rows| rows[at][column] = 7.25);
        assert_eq!(one.hear_lead(1, Body::Manifest(forged)), []);
    }
    // The rows of others are not compared.
    let other = manifest(&one, |rows| rows[(at + 1) % 4][0] = 7.25);
    assert_eq!(
        one.hear_lead(1, Body::Manifest(other.clone())),
        [signs(&one, &other, 1)]
    );
    // Without own losses there is nothing to compare.
    let mut one = crossing();
    one.hold_all();
    assert_eq!(one.hear_lead(1, Body::Manifest(good)), []);
}

#[test]
pub(super) fn a_sheet_without_a_finite_score_of_every_entry_by_every_entry_is_refused() {
    let changes: [fn(&mut Vec<Vec<f64>>); 4] = [
        |rows| drop(rows.pop()),
        |rows| rows[2].truncate(3),
        |rows| rows[3].push(0.0),
        |rows| rows[2][1] = f64::INFINITY,
    ];
    for change in changes {
        let one = measured();
        let body = Body::Manifest(manifest(&one, change));
        refuses(one, body, Refusal::ManifestShape);
    }
    let one = measured();
    let body = Body::Manifest(one.manifest(&one.all()));
    refuses(one, body, Refusal::ManifestShape);
    // Without cross-evaluation there are no scores.
    let one = One::follower(4).contributed();
    let body = Body::Manifest(manifest(&one, |_| {}));
    refuses(one, body, Refusal::ManifestShape);
    let one = measured();
    let mut few = manifest(&one, |_| {});
    few.entries.swap(0, 1);
    refuses(one, Body::Manifest(few), Refusal::EntryOrder);
}

#[test]
pub(super) fn the_own_model_is_given_only_to_the_lead_until_the_bundle_is_here() {
    let mut one = One::follower(4).contributed();
    let (own, lead, other) = (blob(one.me), one.epoch.lead(1), one.epoch.lead(2));
    assert!(one.member.may_serve(lead, &own) && !one.member.may_serve(other, &own));
    assert!(one.member.may_serve(other, &blob(other)));
    // A model that is trained and not yet signed counts as its own.
    let mut new = One::start(one.epoch.clone(), one.me, Start::New).0;
    new.plan();
    new.train();
    assert!(new.member.may_serve(lead, &own) && !new.member.may_serve(other, &own));
    // A contribution list without its entry does not release it.
    one.hear_lead(1, one.contribution_list(&one.others()));
    assert!(!one.member.may_serve(other, &own));
    one.hear_lead(1, one.contribution_list(&one.all()));
    assert!(one.member.may_serve(other, &own));
}

#[test]
pub(super) fn the_next_lead_gets_no_contribution_while_the_round_may_become_final() {
    let mut one = One::follower(4).signed();
    let block = one.proposal(1, &one.all()).block.hash();
    one.at(900);
    let contribution = one.contributes(one.epoch.lead(2));
    let contributed = |effects: &[Effect]| effects.contains(&contribution);
    let effects = one.add_certificate(&one.certificate(1, Verdict::Notarised(block)));
    assert_eq!(one.member.view(), 2);
    assert!(!contributed(&effects));
    // A heartbeat; D is over a second after the view began.
    assert!(!contributed(&one.at(1000)));
    assert!(contributed(&one.at(2000)));
}
