//! Members that only listen: new members, and members without their journal (R5).

use super::adopt::applied;
use super::masked::masked;
use super::masked_one;
use super::one::*;
use super::prelude::*;
use super::sync::{answers, chain, proof, two_rounds, up};
use super::table::epoch;
use crate::certificate::Verdict;
use crate::message::{Block, Content, Phase, Reminder, SyncResponse};

fn new() -> (One, Vec<Effect>) {
    let epoch = epoch(4, 5);
    let me = epoch.lead(0);
    One::start(epoch, me, Start::New)
}

fn lost() -> (One, Vec<Effect>) {
    let epoch = epoch(4, 100);
    let me = epoch.lead(0);
    One::start(epoch, me, Start::Lost)
}

fn listening(answers: usize, until: Option<u64>) -> Effect {
    let needed = 3;
    Effect::Report(Report::Listening {
        answers,
        needed,
        until,
    })
}

/// The others, the leads of the next views first.
fn leads(one: &One) -> [MemberIndex; 3] {
    [1, 2, 3].map(|view| one.epoch.lead(view))
}

/// A listening member signs nothing in views 1 and 2, in any situation.
fn signs_nothing(one: &mut One) {
    one.hold_all();
    one.hear_lead(1, one.contribution_list(&one.all()));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    one.check(&proposal, Ok(()));
    assert_eq!(one.settle(&proposal, Ok(outcome())), []);
    let notarised = one.certificate(1, Verdict::Notarised(proposal.block.hash()));
    assert_eq!(one.add_certificate(&notarised), one.leaves_by(&notarised));
    let silent = one.pass(50_000);
    let signed = |effect: &Effect| matches!(effect, Effect::Persist(_) | Effect::Publish { .. });
    assert!(!silent.iter().any(signed));
}

#[test]
fn a_new_member_takes_part_after_f_plus_1_answers_without_reminder() {
    let (mut one, effects) = new();
    let plans = one.plans(1, one.epoch.protocol.start);
    assert_eq!(effects, [one.entered(1, 1), plans]);
    let [x, y, z] = leads(&one);
    assert_eq!(up(&mut one, x), [one.asks(1, x, 0, 1)]);
    assert_eq!(up(&mut one, y), [one.asks(1, y, 0, 1)]);
    assert_eq!(up(&mut one, z), []);
    assert_eq!(up(&mut one, x), []);
    // It trains meanwhile, and contributes then.
    assert_eq!(one.plan(), [Effect::Work(Request::Train { round: 1 })]);
    assert_eq!(one.train(), []);
    let answer = one.answer(1);
    assert_eq!(answers(&mut one, x, answer.clone()), []);
    assert_eq!(answers(&mut one, x, answer), [], "one member counts once");
    let contribution = Body::Contribution(one.contribution(one.me));
    let (message, _) = one.sealed(one.me, 1, 0, contribution);
    let (round, blob) = (1, blob(one.me));
    let expected = [
        Effect::Persist(Record::Contributed(message)),
        Effect::Report(Report::Contributed { round, blob }),
        one.contributes(x),
    ];
    let answer = one.answer(1);
    assert_eq!(answers(&mut one, y, answer), expected);
}

#[test]
fn a_new_member_always_asks_the_leads_of_this_view_and_the_next() {
    let (mut one, _) = new();
    let [x, y, z] = leads(&one);
    assert_eq!(up(&mut one, z), [one.asks(1, z, 0, 1)]);
    assert_eq!(up(&mut one, y), [one.asks(1, y, 0, 1)]);
    assert_eq!(up(&mut one, x), [one.asks(1, x, 0, 1)]);
    // With every heartbeat it asks those that have not answered.
    let answer = one.answer(1);
    answers(&mut one, z, answer);
    let again = one.others().into_iter().filter(|&m| m != z);
    let asks: Vec<_> = again.map(|to| one.asks(1, to, 0, 1)).collect();
    assert_eq!(one.at(1000), asks);
}

#[test]
fn a_new_member_signs_nothing_before_it_is_answered() {
    let (mut one, _) = new();
    one.plan();
    one.train();
    signs_nothing(&mut one);
    // Nor does it as lead.
    let epoch = epoch(4, 5);
    let (mut one, effects) = One::start(epoch.clone(), epoch.lead(1), Start::New);
    let plans = one.plans(1, epoch.protocol.start);
    assert_eq!(effects, [one.entered(1, 1), plans]);
    assert_eq!(one.pass(900), []);
    let [x, y] = [one.others()[0], one.others()[1]];
    up(&mut one, x);
    up(&mut one, y);
    let answer = one.answer(1);
    answers(&mut one, x, answer);
    let answer = one.answer(1);
    let leads = [
        one.progress(1, Phase::Collecting, 0),
        one.leading_report(1, Phase::Collecting),
    ];
    assert_eq!(answers(&mut one, y, answer), leads);
}

/// What others tell a new member while it asks, before it is stopped.
#[derive(Clone, Copy)]
enum StoppedAfter {
    Certificate,
    Rounds,
    Adopted,
}

/// A member that starts with what a new one wrote until it was stopped.
fn stopped_after(heard: StoppedAfter) -> One {
    let (mut one, mut effects) = new();
    let x = leads(&one)[0];
    if let StoppedAfter::Certificate = heard {
        let certificate = one.certificate(1, Verdict::Nullified);
        effects.extend(one.add_certificate(&certificate));
    } else {
        up(&mut one, x);
        let answer = two_rounds(&one);
        effects.extend(answers(&mut one, x, answer));
    }
    if let StoppedAfter::Adopted = heard {
        effects.extend(applied(&mut one, 1, Ok(())));
        effects.extend(applied(&mut one, 2, Ok(())));
    }
    let records = effects.into_iter().filter_map(|effect| match effect {
        Effect::Persist(record) => Some(record),
        _ => None,
    });
    let records: Vec<_> = records.collect();
    assert!(!records.is_empty());
    One::start(one.epoch.clone(), one.me, Start::Kept(records)).0
}

/// What others say while it asks is no trace of what its key has signed.
#[test]
fn a_new_member_that_was_stopped_while_it_asked_asks_again() {
    for heard in [
        StoppedAfter::Certificate,
        StoppedAfter::Rounds,
        StoppedAfter::Adopted,
    ] {
        let mut one = stopped_after(heard);
        one.plan();
        one.train();
        let silent = one.pass(50_000);
        let signed =
            |effect: &Effect| matches!(effect, Effect::Persist(record) if record.took_part());
        assert!(!silent.iter().any(signed), "{silent:?}");
        let mut one = stopped_after(heard);
        for by in &one.others()[..2] {
            assert!(one.member.consensus.participation.listening());
            up(&mut one, *by);
            let answer = one.answer(1);
            answers(&mut one, *by, answer);
        }
        assert!(!one.member.consensus.participation.listening());
    }
}

#[test]
fn a_member_that_was_stopped_while_it_asked_notices_that_its_key_was_used() {
    let mut one = stopped_after(StoppedAfter::Certificate);
    let x = leads(&one)[0];
    up(&mut one, x);
    let (own, _) = one.sealed(one.me, 1, 0, Body::Contribution(one.contribution(one.me)));
    let answer = SyncResponse {
        yours: Reminder::of(&own),
        ..one.answer(1)
    };
    let effects = answers(&mut one, x, answer);
    // A newer journal may exist.
    let outdated = |effect: &Effect| matches!(effect, Effect::Report(Report::Outdated(_)));
    assert!(effects.iter().any(outdated), "{effects:?}");
    assert!(one.member.consensus.participation.outdated());
}

#[test]
fn an_answer_with_more_to_come_does_not_count_for_a_new_member() {
    let (mut one, _) = new();
    let [x, y, _] = leads(&one);
    up(&mut one, x);
    up(&mut one, y);
    for by in [x, y] {
        let more = true;
        let answer = SyncResponse {
            more,
            ..one.answer(1)
        };
        answers(&mut one, by, answer);
    }
    assert!(one.member.consensus.participation.listening());
}

#[test]
fn a_lone_member_asks_none_and_one_of_two_asks_the_other() {
    for (n, needed) in [(1, 0), (2, 1), (3, 1), (4, 2), (7, 3)] {
        let epoch = epoch(n, 5);
        let (mut one, _) = One::start(epoch, MemberIndex(0), Start::New);
        for (nth, by) in (1..).zip(one.others()) {
            assert_eq!(
                one.member.consensus.participation.listening(),
                nth <= needed,
                "{n}"
            );
            up(&mut one, by);
            let answer = one.answer(1);
            answers(&mut one, by, answer);
        }
        assert!(!one.member.consensus.participation.listening());
    }
}

/// The reports of a new member that notices that its key was used.
fn notices() -> [Effect; 2] {
    [Effect::Report(Report::KeyUsedBefore), listening(0, None)]
}

#[test]
fn an_own_inclusion_or_vote_in_the_chain_shows_that_a_key_was_used() {
    for kind in ["inclusion", "vote", "neither"] {
        let (mut one, _) = new();
        let [x, y, _] = leads(&one);
        up(&mut one, x);
        up(&mut one, y);
        let mut blocks = chain(&one, 1);
        if let Content::Learning(learning) = &mut blocks[0].content
            && kind == "inclusion"
        {
            let manifest = one.manifest(&one.all());
            learning.manifest = manifest.root();
            learning.inclusions = one.inclusions(&manifest, &one.all());
        }
        let voters = match kind {
            "vote" => one.without(x),
            _ => one.others(),
        };
        let verdict = Verdict::Final(blocks[0].hash());
        let proof = one.certificate_by(1, verdict, &voters);
        let answer = SyncResponse {
            blocks,
            proof: Some(proof),
            ..one.answer(1)
        };
        let effects = answers(&mut one, x, answer);
        let noticed = effects.contains(&notices()[0]);
        assert_eq!(noticed, kind != "neither", "{kind}");
        assert_eq!(one.member.consensus.participation.lost_journal(), noticed);
    }
}

#[test]
fn a_reminder_of_a_vote_or_a_contribution_shows_that_a_key_was_used() {
    let (block, checked) = (Hash::of(b"a block"), CHECKED);
    let (one, _) = new();
    let said = [
        (0, 1, Body::Notarize { block, checked }),
        (0, 9, Body::Finalize { block }),
        (0, 1, Body::Nullify),
        (1, 0, Body::Contribution(one.contribution(one.me))),
        (2, 0, Body::Contribution(one.contribution(one.me))),
    ];
    for (round, view, body) in said {
        let (mut one, _) = new();
        let x = leads(&one)[0];
        up(&mut one, x);
        let (own, _) = one.sealed(one.me, round, view, body);
        let answer = SyncResponse {
            yours: Reminder::of(&own),
            ..one.answer(1)
        };
        let expected = [notices()[0].clone(), listening(1, None)];
        assert_eq!(answers(&mut one, x, answer), expected);
    }
}

#[test]
fn reminders_that_bind_no_more_or_are_of_others_are_ignored() {
    // A vote in a view up to the last final block.
    let (mut one, _) = new();
    let [x, y, _] = leads(&one);
    up(&mut one, x);
    let blocks = chain(&one, 1);
    let (own, _) = one.sealed(one.me, 0, 1, Body::Nullify);
    let answer = SyncResponse {
        proof: Some(proof(&one, &blocks[0])),
        blocks,
        yours: Reminder::of(&own),
        ..one.answer(1)
    };
    answers(&mut one, x, answer);
    assert!(!one.member.consensus.participation.lost_journal());
    // A vote of another member.
    let (mut one, _) = new();
    up(&mut one, x);
    let (other, _) = one.sealed(y, 0, 1, Body::Nullify);
    let answer = SyncResponse {
        yours: Reminder::of(&other),
        ..one.answer(1)
    };
    assert_eq!(answers(&mut one, x, answer), []);
    assert!(!one.member.consensus.participation.lost_journal());
    // A vote that its journal holds.
    let one = One::follower(4);
    let (vote, _) = one.sealed(one.me, 0, 1, Body::Nullify);
    let kept = Start::Kept(vec![Record::Vote(vote.clone())]);
    let (mut one, _) = One::start(one.epoch, one.me, kept);
    up(&mut one, x);
    let answer = SyncResponse {
        yours: Reminder::of(&vote),
        ..one.answer(1)
    };
    assert_eq!(answers(&mut one, x, answer), []);
    assert!(!one.member.consensus.participation.lost_journal());
}

/// The member asks `by`, which answers with a certificate of that view.
fn answer_with_view(one: &mut One, by: MemberIndex, view: u64) -> Vec<Effect> {
    let answer = SyncResponse {
        highest: Some(one.certificate(view, Verdict::Nullified)),
        ..one.answer(1)
    };
    answers(one, by, answer)
}

/// A final block of that view.
fn final_at(one: &One, view: u64) -> (Vec<Block>, SyncResponse) {
    let first = one.member.consensus.chain.tip.hash;
    let block = one.block(view, first, Content::Empty);
    let answer = SyncResponse {
        proof: Some(proof(one, &block)),
        blocks: vec![block.clone()],
        ..one.answer(1)
    };
    (vec![block], answer)
}

#[test]
fn without_its_journal_a_member_asks_all_others_and_waits_for_a_block_two_cycles_later() {
    let (mut one, effects) = lost();
    let plans = one.plans(1, one.epoch.protocol.start);
    let expected = [one.entered(1, 1), listening(0, None), plans];
    assert_eq!(effects, expected);
    let others = one.others();
    for &peer in &others {
        assert_eq!(up(&mut one, peer), [one.asks(1, peer, 0, 1)]);
    }
    // It does not train.
    assert_eq!(one.plan(), []);
    // Views 5, 2 and 6 of cycles 1, 0 and 1: until a block of cycle 3 is final.
    let last = |effects: Vec<Effect>| effects.last().cloned();
    assert_eq!(
        last(answer_with_view(&mut one, others[0], 5)),
        Some(listening(1, None))
    );
    assert_eq!(
        last(answer_with_view(&mut one, others[0], 5)),
        None,
        "a replay"
    );
    let second = answer_with_view(&mut one, others[1], 2);
    assert_eq!(last(second), Some(listening(2, None)));
    let third = answer_with_view(&mut one, others[2], 6);
    assert_eq!(last(third), Some(listening(3, Some(12))));
    let (early, _) = final_at(&one, 11);
    one.member
        .consensus
        .chain
        .keep(early[0].hash(), early[0].clone());
    let effects = one.add_certificate(&proof(&one, &early[0]));
    assert!(!effects.contains(&Effect::Report(Report::TakingPart)));
    assert!(one.member.consensus.participation.listening());
    let (late, _) = final_at(&one, 12);
    one.member
        .consensus
        .chain
        .keep(late[0].hash(), late[0].clone());
    let effects = one.add_certificate(&proof(&one, &late[0]));
    assert!(effects.contains(&Effect::Report(Report::TakingPart)));
    assert!(!one.member.consensus.participation.listening());
    // From now on it trains and contributes.
    assert!(effects.contains(&Effect::Work(Request::Train { round: 1 })));
}

#[test]
fn without_its_journal_a_member_waits_for_a_masked_round_to_be_over() {
    let epoch = masked(4, 100);
    let me = epoch.lead(0);
    let (mut one, _) = One::start(epoch, me, Start::Lost);
    one.plan();
    for by in one.others() {
        up(&mut one, by);
        answer_with_view(&mut one, by, 6);
    }
    // An empty block may leave the round under way to which it has contributed.
    let (empty, _) = final_at(&one, 12);
    one.member
        .consensus
        .chain
        .keep(empty[0].hash(), empty[0].clone());
    one.add_certificate(&proof(&one, &empty[0]));
    assert_eq!(one.member.consensus.chain.tip.view, 12);
    assert!(one.member.consensus.participation.listening());
    let content = masked_one::proposal(&one, |_| {}).block.content;
    let block = one.block(13, empty[0].hash(), content);
    one.member.consensus.chain.keep(block.hash(), block.clone());
    one.add_certificate(&proof(&one, &block));
    assert!(one.member.consensus.participation.listening());
    let (block, outcome) = (block.hash(), Hash([7; 32]));
    let certified = one.certificate(13, Verdict::Outcome { block, outcome });
    let effects = one.add_certificate(&certified);
    assert!(effects.contains(&Effect::Report(Report::TakingPart)));
}

#[test]
fn the_highest_certificate_of_an_answer_counts() {
    let (mut one, _) = lost();
    let others = one.others();
    let mut last = None;
    // The first answer shows how view 1 ended, and the others are asked from there on.
    for (nth, &peer) in [1, 2, 2].into_iter().zip(&others) {
        up(&mut one, peer);
        let nullified = |view| one.certificate(view, Verdict::Nullified);
        let answer = SyncResponse {
            certificates: vec![nullified(1), nullified(9)],
            highest: Some(nullified(3)),
            ..one.answer(nth)
        };
        last = answers(&mut one, peer, answer).pop();
    }
    assert_eq!(last, Some(listening(3, Some(16))));
}

#[test]
fn a_member_without_its_journal_signs_nothing() {
    let (mut one, _) = lost();
    one.plan();
    signs_nothing(&mut one);
}

#[test]
fn fewer_than_q_answers_are_not_enough_even_with_a_late_final_block() {
    for enough in [0, 1, 2, 3] {
        let (mut one, _) = lost();
        let others = one.others();
        for &peer in &others[..enough] {
            up(&mut one, peer);
            let answer = one.answer(1);
            answers(&mut one, peer, answer);
        }
        let (block, _) = final_at(&one, 99);
        one.member
            .consensus
            .chain
            .keep(block[0].hash(), block[0].clone());
        one.add_certificate(&proof(&one, &block[0]));
        assert_eq!(
            one.member.consensus.participation.listening(),
            enough < 3,
            "{enough}"
        );
    }
}

#[test]
fn the_height_of_an_answer_counts_only_with_its_certificate() {
    // An answer without certificates leaves the height at 0.
    let (mut one, _) = lost();
    let others = one.others();
    let mut effects = Vec::new();
    for &peer in &others {
        up(&mut one, peer);
        let answer = SyncResponse {
            after: 1 << 60,
            more: true,
            ..one.answer(1)
        };
        effects = answers(&mut one, peer, answer);
    }
    assert_eq!(effects, [listening(3, Some(8))]);
}

#[test]
fn a_message_under_its_key_from_outside_shows_a_new_member_that_its_key_was_used() {
    let (mut one, _) = new();
    let me = one.me;
    assert_eq!(one.hear(me, 0, 1, Body::Nullify), notices());
    assert_eq!(one.hear(me, 0, 1, Body::Nullify), []);
}
