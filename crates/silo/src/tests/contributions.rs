//! Which contributions of a silo final blocks show, in the present epoch and in those before.

use std::slice;
use std::sync::Arc;

use ledger::Place;
use protocol::certificate::{Certificate, Verdict};
use protocol::identity::Signature;
use protocol::message::{Block, Body, Content, MaskedRound, Message, Recovery};
use protocol::{Epoch, Genesis, Hash, MemberIndex, Record};

use super::noised::noised;
use crate::JournalRecord;
use crate::site::OwnContributions;
use crate::testing::{config, epoch, key};

/// A block of a secure-aggregation round in which these are ready; the first of them is an author.
fn block(epoch: &Epoch, round: u64, ready: &[u16]) -> Block {
    let ready: Vec<_> = ready.iter().copied().map(MemberIndex).collect();
    let signature = Signature::from_bytes(&[0; 64]);
    Block {
        epoch: epoch.id,
        view: round,
        parent: Hash([0; 32]),
        content: Content::Masked(MaskedRound {
            round,
            plan: Hash([1; 32]),
            state: Hash([2; 32]),
            list: Hash([3; 32]),
            manifest: Hash([4; 32]),
            inclusions: [(ready[0], signature)].into(),
            ready,
        }),
    }
}

fn made_final(blocks: Vec<Block>) -> Record {
    let proof = Certificate {
        view: 1,
        verdict: Verdict::Final(Hash([5; 32])),
        votes: Default::default(),
    };
    Record::Final { blocks, proof }
}

fn place(epoch: &Epoch, round: u64) -> Place {
    Place {
        federation: epoch.federation,
        epoch: epoch.number,
        round,
    }
}

#[test]
fn the_own_place_is_that_in_the_epoch_of_each_block() {
    let (past, without_noise) = (noised(Some(1), 3), epoch(4, 3));
    // The third of the past epoch is the first of this one.
    let genesis = Genesis {
        silos: past.roster.silos()[2..].to_vec(),
        protocol: epoch(2, 3).protocol.clone(),
    };
    let now = Arc::new(Epoch::first(&genesis).unwrap());
    let mut own = config(&now, 0);
    own.member.key = key(2);
    own.past = vec![past.clone(), without_noise.clone()];
    let own = OwnContributions::of(&own);
    let shown = made_final(vec![
        block(&past, 1, &[0, 1, 2]),
        block(&past, 2, &[0, 1, 3]),
        block(&without_noise, 3, &[0, 1, 2]),
        block(&now, 4, &[0, 1]),
        block(&now, 5, &[1]),
    ]);
    assert_eq!(own.places(&shown), [place(&past, 1), place(&now, 4)]);
    // A recovery holds the last blocks of the epoch that it ends.
    let recovery = Recovery {
        lost: vec![MemberIndex(0)],
        after: past.began,
        head: vec![block(&past, 6, &[2])],
        standings: Vec::new(),
    };
    let ends = Block {
        content: Content::Recovery(Box::new(recovery)),
        ..block(&past, 7, &[0])
    };
    assert_eq!(own.places(&made_final(vec![ends])), [place(&past, 6)]);
}

#[test]
fn a_key_that_was_replaced_is_the_same_institution() {
    let past = noised(Some(1), 3);
    let mut silos = past.roster.silos().to_vec();
    silos[2].key = key(9).public();
    let genesis = Genesis {
        silos,
        protocol: past.protocol.clone(),
    };
    let now = Arc::new(Epoch::first(&genesis).unwrap());
    let own = OwnContributions::new(now.clone(), slice::from_ref(&past), key(9).public());
    let shown = made_final(vec![block(&past, 1, &[0, 2]), block(&now, 2, &[2])]);
    assert_eq!(own.places(&shown), [place(&past, 1), place(&now, 2)]);
}

#[test]
fn what_was_signed_before_the_epoch_began_is_not_of_it() {
    let (past, now) = (noised(Some(1), 3), epoch(4, 3));
    let own = OwnContributions::new(now.clone(), slice::from_ref(&past), key(0).public());
    let contributed = |round| {
        JournalRecord::Protocol(Record::Contributed(Message {
            round,
            view: 0,
            sender: MemberIndex(0),
            body: Body::Complete,
            signature: Signature::from_bytes(&[0; 64]),
        }))
    };
    let recovery = Recovery {
        lost: vec![MemberIndex(3)],
        after: past.began,
        head: Vec::new(),
        standings: Vec::new(),
    };
    let ends = Block {
        content: Content::Recovery(Box::new(recovery)),
        ..block(&past, 2, &[0])
    };
    let ends = JournalRecord::Protocol(made_final(vec![ends]));
    let records = [contributed(1), ends, contributed(2)];
    assert_eq!(own.all(&records), [place(&now, 2)]);
}
