#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use super::*;
use crate::envelope::tests::{epoch, key, passage};
use crate::envelope::{sign, sign_passage};
use crate::identity::Strict;
use crate::message::Body;

/// The epochs of a federation whose fourth member left, and their lineage.
fn changed(name: &str) -> (Vec<Epoch>, Lineage) {
    let first = epoch(name);
    let passage = passage(&first);
    let next = passage.verify(&first, &Strict).unwrap();
    let lineage = Lineage::of(&Epochs {
        former: vec![(first.clone(), passage)],
        now: Arc::new(next.clone()),
        records: Vec::new(),
    });
    (vec![Epoch::clone(&first), next], lineage)
}

/// Nullify, or Finalize, of view 7: no member may sign both in one epoch.
fn vote(epoch: &Epoch, by: u16, finalize: bool) -> Bytes {
    let body = if finalize {
        Body::Finalize {
            block: Hash([3; 32]),
        }
    } else {
        Body::Nullify
    };
    sign(epoch, &key(by), 0, 7, MemberIndex(by), body).1
}

fn proven(epochs: &[Epoch], one: &[u8], other: &[u8]) -> Result<(Hash, MemberIndex), Unproven> {
    let proven = contradiction(epochs, &Strict, [one, other]);
    proven.map(|(epoch, evidence)| (epoch.id, evidence.member))
}

/// A copy of the message with other bytes in its header, signed anew.
fn with_header(frame: &[u8], by: u16, at: std::ops::Range<usize>, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at].copy_from_slice(bytes);
    let (_, statement, _) = envelope::claimed(&frame).unwrap();
    let signature = key(by).sign(&statement).to_bytes();
    let head = envelope::OVERHEAD - 64;
    frame[head..envelope::OVERHEAD].copy_from_slice(&signature);
    frame
}

#[test]
fn a_lineage_binds_every_epoch_to_the_id_of_the_federation() {
    let (epochs, lineage) = changed("a");
    let found = lineage.epochs(&Strict).unwrap();
    let of = |epochs: &[Epoch]| -> Vec<_> {
        let of = |epoch: &Epoch| (epoch.federation, epoch.id, epoch.roster.silos().to_vec());
        epochs.iter().map(of).collect()
    };
    assert_eq!(of(&found), of(&epochs));
    assert_eq!(found[1].number, 1);
    // Another genesis is another federation, in which the change means nothing.
    let other = changed("b").1;
    let mixed = Lineage {
        genesis: other.genesis.clone(),
        passages: lineage.passages.clone(),
    };
    let why = mixed.epochs(&Strict).unwrap_err();
    let expected = Box::new(OpenError::Federation);
    assert_eq!(
        why,
        LineageError::Passage {
            nth: 1,
            why: expected
        }
    );
    // A change that nobody made final.
    let mut unproven = passage(&epochs[0]);
    unproven.proof.votes = unproven.proof.votes[1..].into();
    let unproven = Lineage {
        passages: vec![sign_passage(&epochs[0], &unproven)],
        ..lineage.clone()
    };
    let why = unproven.epochs(&Strict).unwrap_err();
    assert!(matches!(why, LineageError::Passage { nth: 1, .. }), "{why}");
    // Something else that members sealed.
    let none = Lineage {
        passages: vec![vote(&epochs[0], 1, true)],
        ..lineage.clone()
    };
    assert_eq!(
        none.epochs(&Strict).unwrap_err(),
        LineageError::NoPassage(1)
    );
    let mut bytes = lineage.genesis;
    bytes[0] = 9;
    let unspoken = Lineage {
        genesis: bytes,
        passages: Vec::new(),
    };
    let why = unspoken.epochs(&Strict).unwrap_err();
    assert_eq!(why, LineageError::Unspoken(9));
}

#[test]
fn two_messages_of_one_epoch_prove_a_contradiction_in_that_epoch() {
    let (epochs, _) = changed("a");
    for (nth, epoch) in epochs.iter().enumerate() {
        let (one, other) = (vote(epoch, 2, false), vote(epoch, 2, true));
        let expected = Ok((epoch.id, MemberIndex(2)));
        assert_eq!(proven(&epochs, &one, &other), expected, "epoch {nth}");
        // One of them twice.
        assert_eq!(proven(&epochs, &one, &one), Err(Unproven::NoConflict));
    }
    // Who left is a member of the first epoch only.
    let of_left = |epoch: &Epoch| proven(&epochs, &vote(epoch, 3, false), &vote(epoch, 3, true));
    assert_eq!(of_left(&epochs[0]), Ok((epochs[0].id, MemberIndex(3))));
    let (nth, member) = (1, MemberIndex(3));
    assert_eq!(of_left(&epochs[1]), Err(Unproven::Stranger { nth, member }));
}

/// Views begin again at 1 in every epoch, so an honest member signs Nullify of view 7 in one and
/// Finalize of view 7 in the next.
#[test]
fn messages_of_two_epochs_accuse_nobody() {
    let (epochs, _) = changed("a");
    let one = vote(&epochs[0], 2, false);
    let other = vote(&epochs[1], 2, true);
    assert_eq!(proven(&epochs, &one, &other), Err(Unproven::Epochs));
    assert_eq!(proven(&epochs, &other, &one), Err(Unproven::Epochs));
    // Without the epochs that are over, neither is known.
    let later = &epochs[1..];
    assert_eq!(proven(later, &other, &one), Err(Unproven::Epochs));
    let unknown = Err(Unproven::Unknown(epochs[0].id));
    assert_eq!(proven(later, &one, &one), unknown);
}

/// An institution may use one key in two federations.
#[test]
fn messages_of_another_federation_accuse_nobody() {
    let (epochs, others) = (changed("a").0, changed("b").0);
    let one = vote(&epochs[0], 2, false);
    let other = vote(&others[0], 2, true);
    assert_eq!(proven(&epochs, &one, &other), Err(Unproven::Federation(2)));
    assert_eq!(proven(&epochs, &other, &one), Err(Unproven::Federation(1)));
    let both = [vote(&others[0], 2, false), other];
    assert_eq!(
        proven(&epochs, &both[0], &both[1]),
        Err(Unproven::Federation(1))
    );
    // It names the epoch of this federation, and another federation.
    let elsewhere = with_header(&vote(&epochs[0], 2, true), 2, 1..33, &[7; 32]);
    assert_eq!(
        proven(&epochs, &one, &elsewhere),
        Err(Unproven::Federation(2))
    );
}

#[test]
fn messages_of_other_members_formats_or_signatures_accuse_nobody() {
    let (epochs, _) = changed("a");
    let one = vote(&epochs[0], 2, false);
    let senders = Unproven::Senders(MemberIndex(2), MemberIndex(1));
    let other = vote(&epochs[0], 1, true);
    assert_eq!(proven(&epochs, &one, &other), Err(senders));
    let format = with_header(&vote(&epochs[0], 2, true), 2, 0..1, &[9]);
    let (nth, found, agreed) = (2, 9, epochs[0].format);
    assert_eq!(
        proven(&epochs, &one, &format),
        Err(Unproven::Format { nth, found, agreed })
    );
    // Signed by another member in its name.
    let forged = with_header(&vote(&epochs[0], 1, true), 1, 81..83, &[2, 0]);
    let name = epochs[0].roster.name(MemberIndex(2)).to_owned();
    assert_eq!(
        proven(&epochs, &one, &forged),
        Err(Unproven::Signature { nth: 2, name })
    );
    assert_eq!(
        proven(&epochs, &one, &one[..80]),
        Err(Unproven::Unsigned(2))
    );
}
