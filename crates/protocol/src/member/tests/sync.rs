//! Catching up: questions, and what is taken from answers.

use super::one::*;
use super::prelude::*;
use super::table::epoch;
use crate::certificate::{Certificate, Verdict};
use crate::effects::FinalRound;
use crate::message::{Block, Content, Learning, SyncResponse};

fn round_trip() -> Duration {
    Duration::from_millis(20)
}

pub(super) fn up(one: &mut One, peer: MemberIndex) -> Vec<Effect> {
    let round_trip = round_trip();
    one.step(Input::Up { peer, round_trip })
}

pub(super) fn answers(one: &mut One, by: MemberIndex, answer: SyncResponse) -> Vec<Effect> {
    one.hear(by, 0, 0, Body::SyncResponse(Box::new(answer)))
}

/// Learning blocks of rounds 1, 2, ..., one in each view.
pub(super) fn chain(one: &One, rounds: u64) -> Vec<Block> {
    let mut parent = one.epoch.id;
    let mut blocks = Vec::new();
    for round in 1..=rounds {
        let learning = Learning {
            round,
            plan: plan(),
            manifest: Hash::of(b"sheet"),
            inclusions: [].into(),
            decision: Vec::new(),
            outcome: Hash::of(&round.to_le_bytes()),
        };
        let block = one.block(round, parent, Content::Learning(learning));
        parent = block.hash();
        blocks.push(block);
    }
    blocks
}

pub(super) fn proof(one: &One, block: &Block) -> Certificate {
    one.certificate(block.view, Verdict::Final(block.hash()))
}

/// An answer to question 77.
pub(super) fn response(after: u64) -> SyncResponse {
    SyncResponse::nothing(after, 77)
}

pub(super) fn sends(one: &One, to: MemberIndex, answer: SyncResponse) -> Effect {
    one.sends(to, 0, 0, Body::SyncResponse(Box::new(answer)))
}

/// A member that was away.
pub(super) fn away() -> One {
    let epoch = epoch(4, 5);
    let me = epoch.lead(0);
    One::restart(epoch, me, vec![]).0
}

#[test]
fn a_member_that_was_away_asks_the_first_peer_and_with_every_beat_the_next() {
    let mut one = away();
    let [x, y, z] = one.others()[..] else {
        panic!("three others")
    };
    assert_eq!(up(&mut one, x), [one.asks(1, x, 0, 1)]);
    assert_eq!(up(&mut one, y), []);
    assert_eq!(one.at(1000), [one.asks(1, y, 0, 1)]);
    assert_eq!(one.at(2000), [one.asks(1, z, 0, 1)]);
    // An answer, also a late one, is enough.
    let answer = one.answer(1);
    assert_eq!(answers(&mut one, x, answer), []);
    assert_eq!(one.pass(2999), []);
    // After the last member comes the first.
    let mut one = away();
    let said = one.pass(2000);
    assert_eq!(said, [one.asks(1, x, 0, 1), one.asks(1, y, 0, 1)]);
}

#[test]
fn a_peer_that_went_down_is_not_waited_for() {
    let mut one = away();
    let [x, y, _] = one.others()[..] else {
        panic!("three others")
    };
    up(&mut one, x);
    one.step(Input::Down { peer: x });
    assert_eq!(up(&mut one, y), [one.asks(1, y, 0, 1)]);
    // Its answer is ignored.
    let answer = one.answer(1);
    assert_eq!(answers(&mut one, x, answer), []);
    assert!(one.at(1000).contains(&one.asks(1, one.others()[2], 0, 1)));
}

/// An answer to its first question, with two final rounds.
pub(super) fn two_rounds(one: &One) -> SyncResponse {
    let blocks = chain(one, 2);
    let proof = proof(one, &blocks[1]);
    SyncResponse {
        proof: Some(proof),
        blocks,
        ..one.answer(1)
    }
}

/// The effects of that answer.
fn catches_up(one: &One) -> Vec<Effect> {
    let blocks = chain(one, 2);
    let finals = blocks.iter().map(|block| {
        let view = block.view;
        Effect::Report(Report::Final {
            round: view,
            view,
            lead: one.epoch.lead(view),
            block: block.hash(),
            authors: vec![],
        })
    });
    let round = |block: &Block| FinalRound {
        round: block.view,
        block: block.hash(),
        outcome: Hash::of(&block.view.to_le_bytes()),
        position: None,
    };
    let mut expected = vec![Effect::Persist(Record::Final {
        blocks: blocks.clone(),
        proof: proof(one, &blocks[1]),
    })];
    expected.extend(finals);
    expected.push(one.entered(3, 3));
    expected.push(Effect::Work(Request::Apply {
        rounds: blocks.iter().map(round).collect(),
        holders: one.others(),
    }));
    expected
}

#[test]
fn blocks_that_continue_the_chain_to_a_final_certificate_are_final() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let answer = two_rounds(&one);
    let expected = catches_up(&one);
    assert_eq!(answers(&mut one, x, answer.clone()), expected);
    // The same answer again is ignored.
    assert_eq!(answers(&mut one, x, answer), []);
}

#[test]
fn known_blocks_of_an_answer_are_passed_over() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    one.at(1000);
    let first = chain(&one, 1);
    let answer = SyncResponse {
        proof: Some(proof(&one, &first[0])),
        blocks: first,
        ..one.answer(1)
    };
    answers(&mut one, x, answer);
    let second = two_rounds(&one);
    let y = one.others()[1];
    let effects = answers(&mut one, y, second);
    let blocks = chain(&one, 2);
    let kept = Record::Final {
        proof: proof(&one, &blocks[1]),
        blocks: blocks[1..].to_vec(),
    };
    assert_eq!(effects[0], Effect::Persist(kept));
}

#[test]
fn a_final_block_is_taken_once_its_ancestors_are_known() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let third = chain(&one, 3).remove(2);
    one.member.consensus.chain.keep(third.hash(), third.clone());
    let waits = proof(&one, &third);
    one.add_certificate(&waits);
    assert_eq!(one.member.consensus.chain.tip.view, 0);
    let answer = two_rounds(&one);
    let effects = answers(&mut one, x, answer);
    let kept = Record::Final {
        blocks: vec![third],
        proof: waits,
    };
    assert!(effects.contains(&Effect::Persist(kept)));
    assert_eq!(one.member.consensus.chain.tip.view, 3);
}

/// Two members may each hold one of two blocks, the second of which is final. Each gives the other
/// the missing one, though neither knows it to be final.
#[test]
fn missing_ancestors_of_a_final_block_are_fetched_from_any_member() {
    // It knows that the second block is final, and has neither.
    let mut one = away();
    let blocks = chain(&one, 2);
    let last = proof(&one, &blocks[1]);
    let asked = |one: &One, to, missing: &Block| one.asks_for(1, to, (0, 1), Some(missing.hash()));
    let first_asked = one.others()[0];
    let effects = one.add_certificate(&last);
    assert!(effects.contains(&asked(&one, first_asked, &blocks[1])));
    // A block that is not missing is not kept; one that is makes the one before it missing.
    let answer = SyncResponse {
        missing: vec![blocks[0].clone(), blocks[1].clone()],
        ..one.answer(1)
    };
    answers(&mut one, first_asked, answer);
    assert_eq!(one.member.consensus.chain.missing(), Some(blocks[1].hash()));
    let other = one.others()[1];
    let again = [one.at(1000), one.at(1001)].concat();
    assert!(again.contains(&asked(&one, other, &blocks[1])));
    let answer = SyncResponse {
        missing: vec![blocks[1].clone()],
        ..one.answer(1)
    };
    answers(&mut one, other, answer);
    assert_eq!(one.member.consensus.chain.missing(), Some(blocks[0].hash()));
    // It gives its block, though it does not know it to be final.
    let question = Body::SyncRequest {
        after: 0,
        from: 9,
        missing: Some(blocks[1].hash()),
        nonce: 77,
    };
    let given = SyncResponse {
        highest: Some(last.clone()),
        missing: vec![blocks[1].clone()],
        ..response(0)
    };
    assert_eq!(one.hear(other, 0, 0, question), [sends(&one, other, given)]);
    // After a restart the block is still missing.
    let kept = vec![Record::Certified(last)];
    let (again, _) = One::start(one.epoch.clone(), one.me, Start::Kept(kept));
    assert_eq!(
        again.member.consensus.chain.missing(),
        Some(blocks[1].hash())
    );
}

#[test]
fn the_own_position_is_known_only_in_the_sheet_of_the_current_round() {
    let epoch = epoch(4, 5);
    let (one, _) = One::restart(epoch.clone(), epoch.lead(0), vec![]);
    let mut one = one.signed();
    let x = one.others()[0];
    up(&mut one, x);
    let manifest = one.manifest(&one.all());
    let mut blocks = chain(&one, 2);
    let mut parent = epoch.id;
    for block in &mut blocks {
        block.parent = parent;
        if let Content::Learning(learning) = &mut block.content {
            learning.manifest = manifest.root();
        }
        parent = block.hash();
    }
    let answer = SyncResponse {
        proof: Some(proof(&one, &blocks[1])),
        blocks,
        ..one.answer(1)
    };
    let own = manifest.position(&one.entry(one.me).id);
    let effects = answers(&mut one, x, answer);
    let places = effects.iter().find_map(|effect| match effect {
        Effect::Work(Request::Apply { rounds, .. }) => {
            let places = rounds.iter().map(|round| round.position);
            Some(places.collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(places, Some(vec![own, None]));
}

#[test]
fn an_answer_to_another_question_is_ignored() {
    type Change = fn(&One, &mut SyncResponse);
    let changes: [Change; 3] = [
        |_, answer| answer.nonce += 1,
        |_, answer| answer.nonce = 0,
        // The nonce of a later question.
        |one, answer| answer.nonce = one.nonce(2),
    ];
    for change in changes {
        let mut one = away();
        let x = one.others()[0];
        up(&mut one, x);
        let mut answer = two_rounds(&one);
        change(&one, &mut answer);
        assert_eq!(answers(&mut one, x, answer), []);
        // The right answer still counts.
        let answer = two_rounds(&one);
        assert!(!answers(&mut one, x, answer).is_empty());
    }
    // The right nonce from another member does not count.
    let mut one = away();
    let (x, y) = (one.others()[0], one.others()[1]);
    up(&mut one, x);
    let answer = two_rounds(&one);
    assert_eq!(answers(&mut one, y, answer), []);
    // An answer without any question is ignored.
    let mut one = away();
    let answer = two_rounds(&one);
    assert_eq!(answers(&mut one, x, answer), []);
}

#[test]
fn a_member_that_answered_is_asked_with_a_new_nonce() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let old = one.answer(1);
    answers(&mut one, x, old.clone());
    one.member.consensus.sync.catching_up = true;
    assert_eq!(up(&mut one, x), [one.asks(2, x, 0, 1)]);
    answers(&mut one, x, old);
    assert!(one.member.consensus.sync.asked.contains_key(&x), "a replay");
    // Nor with the one that another has not answered yet and is asked again with.
    let mut one = away();
    let y = one.others()[1];
    up(&mut one, x);
    one.at(1000);
    let answer = two_rounds(&one);
    answers(&mut one, x, answer);
    let from = one.member.consensus.chain.first_unknown();
    one.member.syncing().ask_from(y, from);
    one.member.syncing().ask_from(x, from);
    let asked = &one.member.consensus.sync.asked;
    assert_eq!((asked[&y], asked[&x]), (one.nonce(1), one.nonce(2)));
}

#[test]
fn blocks_without_a_certificate_or_without_links_are_ignored() {
    type Change = fn(&One, &mut SyncResponse);
    let changes: [(&str, Change); 7] = [
        ("no proof", |_, answer| answer.proof = None),
        ("no blocks", |_, answer| answer.blocks.clear()),
        ("a proof of the first block", |one, answer| {
            answer.proof = Some(proof(one, &answer.blocks[0]));
        }),
        ("a notarisation", |one, answer| {
            let verdict = Verdict::Notarised(answer.blocks[1].hash());
            answer.proof = Some(one.certificate(2, verdict));
        }),
        ("the first block is missing", |_, answer| {
            answer.blocks.remove(0);
        }),
        ("another first block", |_, answer| {
            answer.blocks[0].content = Content::Empty;
        }),
        ("a first block on another parent", |one, answer| {
            let parent = Hash::of(b"another parent");
            answer.blocks[0].parent = parent;
            answer.blocks[1].parent = answer.blocks[0].hash();
            answer.proof = Some(proof(one, &answer.blocks[1]));
        }),
    ];
    for (what, change) in changes {
        let mut one = away();
        let x = one.others()[0];
        up(&mut one, x);
        let mut answer = two_rounds(&one);
        change(&one, &mut answer);
        assert_eq!(answers(&mut one, x, answer), [], "{what}");
        assert_eq!(one.member.consensus.chain.tip.view, 0);
    }
}

#[test]
fn certificates_of_an_answer_lead_to_the_current_view() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let (first, third) = (
        one.certificate(1, Verdict::Nullified),
        one.certificate(3, Verdict::Nullified),
    );
    let answer = SyncResponse {
        certificates: vec![first.clone(), third.clone()],
        highest: Some(third.clone()),
        ..one.answer(1)
    };
    let expected = [one.leaves_by(&first), one.leaves_by(&third)].concat();
    assert_eq!(answers(&mut one, x, answer), expected);
}

#[test]
fn a_peer_with_more_is_asked_again_as_long_as_its_answers_have_something_new() {
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let answer = SyncResponse {
        more: true,
        ..two_rounds(&one)
    };
    let mut expected = catches_up(&one);
    let apply = expected.pop();
    expected.push(one.asks(2, x, 2, 3));
    expected.extend(apply);
    assert_eq!(answers(&mut one, x, answer), expected);
    let nothing = SyncResponse {
        more: true,
        ..one.answer(2)
    };
    assert_eq!(answers(&mut one, x, nothing), []);
    // A certificate of a further view counts as new.
    let mut one = away();
    up(&mut one, x);
    let answer = SyncResponse {
        more: true,
        certificates: vec![one.certificate(1, Verdict::Nullified)],
        ..one.answer(1)
    };
    let again = one.asks(2, x, 0, 2);
    assert_eq!(answers(&mut one, x, answer).last(), Some(&again));
}
