//! A final masked round whose outcome nobody certifies is given up, without anybody being lost.

use super::one::*;
use super::prelude::*;
use super::recovery::{confirming, over};
use super::settled_one::{final_round, settled};
use crate::change::ChangeError;
use crate::message::Standing;
use crate::recovery::RecoveryError;

fn signs(effects: &[Effect]) -> bool {
    let standing = |effect: &Effect| matches!(effect, Effect::Persist(Record::Standing(_)));
    effects.iter().any(standing)
}

fn nothing_open(one: &One) -> Vec<Effect> {
    let why = ChangeError::Recovery(RecoveryError::NothingOpen);
    vec![refused(one.me, 0, Refusal::Change(why))]
}

#[test]
fn a_round_is_given_up_once_it_has_waited_for_patience() {
    let (mut one, block) = final_round(4);
    let early = one.step(Input::GiveUp { round: 1 });
    assert!(!signs(&early), "{early:?}");
    let heartbeat = one.epoch.heartbeat().as_millis() as u64;
    let patience = one.epoch.patience().as_millis() as u64;
    let end = one.now.elapsed().as_millis() as u64 + patience;
    assert!(!signs(&one.pass(end - 2 * heartbeat)));
    assert!(signs(&one.pass(end + 2 * heartbeat)));
    // All others have to sign the same, and confirm it.
    let standing = Standing {
        number: 1,
        lost: Vec::new(),
        adopted: one.epoch.began,
        view: 1,
        block,
        notarised: 0,
    };
    let all = one.all();
    for by in one.others() {
        assert_eq!(over(&one.hear(by, 0, 0, standing.body())), None);
    }
    let signed: Vec<_> = all.iter().map(|by| (*by, &standing)).collect();
    let mut passage = None;
    for by in one.others() {
        let effects = one.hear(by, 0, 0, confirming(1, &signed));
        assert_eq!(passage, None);
        passage = over(&effects);
    }
    let passage = passage.unwrap();
    let recovery = passage.recovery().unwrap();
    assert_eq!(recovery.rounds_lost(), [1]);
    let next = passage
        .verify(&one.epoch, &crate::identity::Strict)
        .unwrap();
    assert_eq!(next.roster.silos(), one.epoch.roster.silos());
    assert_eq!(next.began.outcome, one.epoch.began.outcome);
}

#[test]
fn an_outcome_that_is_certified_in_the_meantime_ends_the_wish() {
    let (mut one, block) = final_round(4);
    one.step(Input::GiveUp { round: 1 });
    let outcome = Hash([3; 32]);
    let verdict = crate::certificate::Verdict::Outcome { block, outcome };
    let certificate = one.certificate(1, verdict);
    one.has_cast(&certificate);
    let mut effects = one.add_certificate(&certificate);
    let over = one.now.elapsed() + 2 * one.epoch.patience();
    effects.extend(one.pass(over.as_millis() as u64));
    assert!(!signs(&effects));
    assert!(effects.contains(&nothing_open(&one)[0]), "{effects:?}");
}

#[test]
fn there_is_nothing_to_give_up_where_the_outcome_is_known_or_rounds_are_in_clear() {
    let (mut one, _) = final_round(4);
    assert_eq!(one.step(Input::GiveUp { round: 2 }), nothing_open(&one));
    let (mut one, ..) = settled(4);
    assert_eq!(one.step(Input::GiveUp { round: 1 }), nothing_open(&one));
    let mut clear = One::follower(4);
    let members = 4;
    let why = ChangeError::Recovery(RecoveryError::Lost { members });
    let refusal = refused(clear.me, 0, Refusal::Change(why));
    assert_eq!(clear.step(Input::GiveUp { round: 1 }), [refusal]);
}

/// Who has the outcome signs as well, once another member has: all go on from it then.
#[test]
fn a_member_with_the_outcome_signs_once_another_has() {
    let (mut one, block, outcome) = settled(4);
    let by = one.others()[0];
    let standing = Standing {
        number: 1,
        lost: Vec::new(),
        adopted: one.epoch.began,
        view: 1,
        block,
        notarised: 0,
    };
    one.hear(by, 0, 0, standing.body());
    one.step(Input::Done(Answer::Applied {
        round: 1,
        ends: false,
        result: Ok(()),
    }));
    let mut effects = one.step(Input::GiveUp { round: 1 });
    let end = one.now.elapsed() + one.epoch.patience();
    effects.extend(one.pass(end.as_millis() as u64));
    let own = effects.iter().find_map(|effect| match effect {
        Effect::Persist(Record::Standing(message)) => Some(message.body.clone()),
        _ => None,
    });
    let Some(Body::Standing(own)) = own else {
        panic!("{effects:?}")
    };
    assert_eq!((own.adopted.round, own.adopted.outcome), (1, outcome));
    // The recovery goes on from the masked round that it has adopted.
    let me = one.me;
    let of = |by: MemberIndex| if by == me { &*own } else { &standing };
    for by in one.others() {
        one.hear(by, 0, 0, standing.body());
    }
    let signed: Vec<_> = one.all().into_iter().map(|by| (by, of(by))).collect();
    let confirmed = one
        .others()
        .into_iter()
        .map(|by| over(&one.hear(by, 0, 0, confirming(1, &signed))));
    let passage = confirmed.flatten().next().unwrap();
    let next = passage
        .verify(&one.epoch, &crate::identity::Strict)
        .unwrap();
    assert_eq!(next.began, own.adopted);
}
