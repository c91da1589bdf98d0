//! Answers to members that catch up.

use super::one::*;
use super::prelude::*;
use super::sync::{answers, away, chain, proof, response, sends, two_rounds, up};
use super::table::epoch;
use crate::certificate::{Certificate, Verdict};
use crate::message::{Block, Content, Message, Reminder, SyncResponse};

fn asks(one: &mut One, by: MemberIndex, after: u64, from: u64) -> Vec<Effect> {
    let nonce = 77;
    one.hear(
        by,
        0,
        0,
        Body::SyncRequest {
            after,
            from,
            missing: None,
            nonce,
        },
    )
}

/// A member that knows this many final rounds, each with its own certificate.
fn knowing(rounds: u64) -> One {
    let epoch = epoch(4, 100);
    let (one, _) = One::restart(epoch.clone(), epoch.lead(0), vec![]);
    let record = |block: Block| Record::Final {
        proof: proof(&one, &block),
        blocks: vec![block],
    };
    let records = chain(&one, rounds).into_iter().map(record).collect();
    One::restart(epoch, one.me, records).0
}

#[test]
fn sync_requests_get_final_blocks_and_later_certificates() {
    let mut one = knowing(3);
    let x = one.others()[0];
    let blocks = chain(&one, 3);
    one.skip(5);
    one.skip(6);
    let skipped = [5, 6].map(|view| one.certificate(view, Verdict::Nullified));
    let answer = |after, from: usize| SyncResponse {
        highest: Some(skipped[1].clone()),
        blocks: blocks[from..].to_vec(),
        proof: (from < 3).then(|| proof(&knowing(0), &blocks[2])),
        certificates: skipped.to_vec(),
        ..response(after)
    };
    for (after, from) in [(0, 0), (1, 1), (3, 3), (99, 3)] {
        let mut expected = answer(after, from);
        if after == 99 {
            expected.certificates.clear();
        }
        let effects = asks(&mut one, x, after, 1);
        assert_eq!(effects, [sends(&one, x, expected)], "after {after}");
    }
    // Certificates start with the view that was asked for.
    let mut expected = answer(3, 3);
    expected.certificates.remove(0);
    assert_eq!(asks(&mut one, x, 3, 6), [sends(&one, x, expected)]);
    // A member that knows nothing sends an empty answer.
    let mut one = away();
    let x = one.others()[0];
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, response(0))]);
    // Without later certificates the last block's is the highest.
    let mut one = knowing(1);
    let x = one.others()[0];
    let proof = proof(&one, &blocks[0]);
    let expected = SyncResponse {
        highest: Some(proof.clone()),
        blocks: blocks[..1].to_vec(),
        proof: Some(proof),
        ..response(0)
    };
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
}

#[test]
fn a_sync_response_sets_more_after_64_blocks_32_certificates() {
    let mut one = knowing(70);
    let x = one.others()[0];
    let blocks = chain(&one, 70);
    one.skip(71);
    let highest = Some(one.certificate(71, Verdict::Nullified));
    let expected = SyncResponse {
        highest: highest.clone(),
        blocks: blocks[..64].to_vec(),
        proof: Some(proof(&one, &blocks[63])),
        more: true,
        ..response(0)
    };
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
    let expected = SyncResponse {
        highest: highest.clone(),
        blocks: blocks[6..].to_vec(),
        proof: Some(proof(&one, &blocks[69])),
        certificates: highest.into_iter().collect(),
        ..response(6)
    };
    assert_eq!(asks(&mut one, x, 6, 1), [sends(&one, x, expected)]);
    for (views, more) in [(32, false), (33, true)] {
        let mut one = away();
        let x = one.others()[0];
        for view in 1..=views {
            one.skip(view);
        }
        let certificates = (1..=32).map(|view| one.certificate(view, Verdict::Nullified));
        let expected = SyncResponse {
            highest: Some(one.certificate(views, Verdict::Nullified)),
            certificates: certificates.collect(),
            more,
            ..response(0)
        };
        assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
    }
}

#[test]
fn the_blocks_of_a_sync_response_end_with_a_certified_one() {
    // Two blocks became final together: only the second one has a certificate.
    let mut one = away();
    let x = one.others()[0];
    up(&mut one, x);
    let answer = two_rounds(&one);
    answers(&mut one, x, answer.clone());
    let expected = SyncResponse {
        highest: answer.proof.clone(),
        blocks: answer.blocks.clone(),
        proof: answer.proof.clone(),
        ..response(0)
    };
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
}

#[test]
fn a_sync_response_exceeds_64_blocks_if_none_is_certified() {
    let epoch = epoch(4, 100);
    let (one, _) = One::restart(epoch.clone(), epoch.lead(0), vec![]);
    let blocks = chain(&one, 70);
    let kept = Record::Final {
        proof: proof(&one, &blocks[69]),
        blocks: blocks.clone(),
    };
    let (mut one, _) = One::restart(epoch, one.me, vec![kept]);
    let x = one.others()[0];
    let proof = proof(&one, &blocks[69]);
    let expected = SyncResponse {
        highest: Some(proof.clone()),
        blocks,
        proof: Some(proof),
        ..response(0)
    };
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
}

#[test]
fn the_blocks_of_a_sync_response_take_at_most_half_a_message() {
    let epoch = epoch(4, 100);
    let (one, _) = One::restart(epoch.clone(), epoch.lead(0), vec![]);
    let mut blocks = chain(&one, 3);
    let room = envelope::limit(&epoch) / 2;
    let mut parent = epoch.id;
    for block in &mut blocks {
        block.parent = parent;
        if let Content::Learning(learning) = &mut block.content {
            learning.decision = vec![0; room / 2 - 400];
        }
        parent = block.hash();
    }
    let records = blocks.iter().map(|block| Record::Final {
        proof: proof(&one, block),
        blocks: vec![block.clone()],
    });
    let (mut one, _) = One::restart(epoch, one.me, records.collect());
    let x = one.others()[0];
    let expected = SyncResponse {
        highest: Some(proof(&one, &blocks[2])),
        proof: Some(proof(&one, &blocks[1])),
        more: true,
        blocks: blocks[..2].to_vec(),
        ..response(0)
    };
    assert_eq!(asks(&mut one, x, 0, 1), [sends(&one, x, expected)]);
}

#[test]
fn a_sync_response_reminds_the_asker_of_its_own_last_message() {
    let mut one = One::leading(4, 1);
    let x = one.others()[0];
    let signed = |one: &One, round, view, body| one.sealed(x, round, view, body).0;
    let reminds = |one: &mut One, of: Option<&Message>, highest: Option<Certificate>| {
        let expected = SyncResponse {
            yours: of.and_then(Reminder::of),
            certificates: highest.iter().cloned().collect(),
            highest,
            ..response(0)
        };
        let expected = sends(one, x, expected);
        assert_eq!(asks(one, x, 0, 1), [expected]);
    };
    reminds(&mut one, None, None);
    let contribution = Body::Contribution(one.contribution(x));
    one.hear(x, 1, 0, contribution.clone());
    let contribution = signed(&one, 1, 0, contribution);
    reminds(&mut one, Some(&contribution), None);
    let (block, checked) = (Hash::of(b"a block"), CHECKED);
    // The newest view comes first; within a view, Finalize, then Nullify, then Notarize.
    let votes = [
        (1, Body::Notarize { block, checked }),
        (1, Body::Nullify),
        (2, Body::Notarize { block, checked }),
        (2, Body::Finalize { block }),
    ];
    for (view, vote) in votes {
        one.hear(x, 0, view, vote.clone());
        let vote = signed(&one, 0, view, vote);
        reminds(&mut one, Some(&vote), None);
    }
    // A lead is reminded of its proposal rather than of its contribution.
    let mut one = One::follower(4).signed();
    let lead = one.epoch.lead(1);
    one.hear(lead, 1, 0, Body::Contribution(one.contribution(lead)));
    let proposal = one.proposal(1, &one.all());
    one.propose(1, &proposal);
    let (signed, _) = one.sealed(lead, 0, 1, Body::Proposal(Box::new(proposal)));
    let expected = SyncResponse {
        yours: Reminder::of(&signed),
        ..response(0)
    };
    let answer = sends(&one, lead, expected);
    assert_eq!(asks(&mut one, lead, 0, 1), [answer]);
}
