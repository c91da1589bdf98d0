//! Formats of messages: which one is in force, and members whose program does not speak a new one.

use super::amendments::{approval, approve};
use super::one::*;
use super::prelude::*;
use super::table::{epoch, key};
use crate::certificate::{Checked, Verdict};
use crate::change::ChangeError;
use crate::envelope::{OpenError, VERSION};
use crate::format::Formats;
use crate::identity::Strict;
use crate::message::Amendment;
use crate::parameters::Epoch;

/// An amendment that changes nothing but the format of messages.
fn raising(epoch: &Epoch, format: u8) -> Amendment {
    Amendment {
        format,
        silos: epoch.roster.silos().to_vec(),
        protocol: epoch.protocol.clone(),
        text: b"format = 2".to_vec(),
        stolen: Vec::new(),
    }
}

#[test]
fn who_cannot_speak_a_new_format_reports_it_and_does_not_vote() {
    let spoken = Formats::SPOKEN;
    let mut one = One::follower(4);
    let amendment = raising(&one.epoch, spoken.newest + 1);
    let from = one.others()[0];
    let got = spoken.newest + 1;
    let why = || Refusal::Change(ChangeError::Format { got, spoken });
    assert_eq!(
        why().to_string(),
        "the amended agreement needs message format 4, this program speaks formats 1 to 3: update it, \
         and then approve the amendment"
    );
    // It is known, so that its institution sees what the others want.
    let text = Body::Amendment(Box::new(amendment.clone()));
    let heard = one.hear(from, 0, 0, text);
    assert_eq!(heard, [one.knows(&amendment, &[]), refused(from, 0, why())]);
    let own = one.step(approve(&amendment));
    assert_eq!(own, [refused(one.me, 0, why())]);
    let proposal = one.changing(1, &amendment, &one.others());
    let effects = one.propose(1, &proposal);
    assert_eq!(effects, one.refuses_lead(1, why()));
    // The others are enough: its epoch ends all the same, and its environment stops there.
    let proof = one.certificate(1, Verdict::Final(proposal.block.hash()));
    let effects = one.add_certificate(&proof);
    assert!(matches!(effects.last(), Some(Effect::EpochOver(_))));
    assert_eq!(one.epoch.next(&proposal.block).unwrap().format, got);
}

#[test]
fn a_lead_that_does_not_speak_a_new_format_does_not_propose_it() {
    for (newest, proposes) in [(2, false), (3, true)] {
        let mut one = One::leading(4, 1);
        one.member.config.formats.newest = newest;
        let amendment = raising(&one.epoch, 3);
        let others = one.others();
        one.hear(
            others[0],
            0,
            0,
            Body::Amendment(Box::new(amendment.clone())),
        );
        for &by in &others[..2] {
            one.hear(by, 0, 0, approval(&amendment));
        }
        let effects = one.hear(others[2], 0, 0, approval(&amendment));
        let proposal = one.changing(1, &amendment, &others);
        let expected = one.proposes(1, &proposal);
        let found = effects.iter().any(|effect| *effect == expected[0]);
        assert_eq!(found, proposes, "newest {newest}: {effects:?}");
    }
}

#[test]
fn members_that_speak_a_new_format_use_it_from_the_next_epoch() {
    let mut one = One::in_format(1, 4);
    let amendment = raising(&one.epoch, 2);
    let own = one.step(approve(&amendment));
    assert!(own.contains(&one.knows(&amendment, &[one.me])));
    let proposal = one.changing(1, &amendment, &one.others());
    let votes = one.notarizes(&proposal.block, Checked::Structure);
    assert!(one.propose(1, &proposal).ends_with(&votes));
    let next = one.epoch.next(&proposal.block).unwrap();
    assert_eq!(next.format, 2);
    // Never back again.
    let lower = Amendment {
        format: 1,
        ..raising(&next, 1)
    };
    let why = ChangeError::Lowered { got: 1, now: 2 };
    assert_eq!(lower.check(&next), Err(why));
}

#[test]
fn the_epoch_determines_which_format_its_messages_have() {
    let old = epoch(4, 5);
    let mut new = (*old).clone();
    new.format = VERSION + 1;
    let sealed =
        |epoch: &Epoch| envelope::sign(epoch, &key(2), 0, 4, MemberIndex(2), Body::Nullify).1;
    assert_eq!(sealed(&new)[0], VERSION + 1);
    assert!(envelope::open(&new, &Strict, &Known::default(), sealed(&new)).is_ok());
    let (found, agreed) = (VERSION, VERSION + 1);
    let why = envelope::open(&new, &Strict, &Known::default(), sealed(&old)).unwrap_err();
    assert_eq!(why, OpenError::Format { found, agreed });
    assert_eq!(
        why.to_string(),
        "message format 2, the agreement in force has format 3"
    );
    // A message of a later epoch in a newer format is still known to be of another epoch.
    let mut later = new;
    later.id = Hash::of(b"later");
    assert!(envelope::is_of_other_epoch(&old, sealed(&later)));
    assert_eq!(envelope::epoch_of(sealed(&later)), Some(later.id));
}
