//! Sealed messages, message bodies and certificates.

use std::collections::BTreeSet;

use rota::protocol::certificate::{Certificate, CertificateError};
use rota::protocol::envelope::{self, Known, OVERHEAD, OpenError, Opened};
use rota::protocol::identity::Strict;
use rota::protocol::message::Kind;
use rota::protocol::{Epoch, Formats, MemberIndex, codec};

use super::engine::{FuzzTarget, fuzz, gist};
use super::world::{Anyone, epoch, frames};

/// Returns what is decoded holds at most this much: serde reserves up to 1 MiB for each of the sequences
/// inside one another, before their elements are there.
fn memory(length: usize) -> usize {
    (4 << 20) + 32 * length
}

/// Names the result, with the kind of message.
fn outcome(opened: &Result<Opened, OpenError>) -> String {
    match opened {
        Ok(Opened::Message(message)) => format!("{:?}", message.body.kind()),
        Ok(Opened::Certificate(certificate)) => gist(&format!("{:?}", certificate.verdict)),
        Ok(Opened::Evidence(evidence)) => {
            gist(&format!("evidence {:?}", evidence.first.body.kind()))
        }
        Ok(Opened::Passage(passage)) => format!("passage {}", passage.blocks.len().min(4)),
        Ok(Opened::Known) => "known".into(),
        Err(error) => gist(&error.to_string()),
    }
}

/// Sealing what was opened gives the same bytes.
fn signs_again(epoch: &Epoch, opened: &Opened, bytes: &[u8]) {
    let again = match opened {
        Opened::Message(message) => envelope::reseal(epoch, message),
        Opened::Certificate(certificate) => envelope::sign_certificate(epoch, certificate),
        Opened::Evidence(evidence) => envelope::sign_evidence(epoch, evidence),
        Opened::Passage(passage) => envelope::sign_passage(epoch, passage),
        Opened::Known => return,
    };
    assert_eq!(again, bytes, "{opened:?}");
}

#[test]
fn sealed_messages() {
    let epoch = epoch();
    let mut run = |bytes: &[u8]| {
        let known = Known::default();
        let strict = envelope::open(&epoch, &Strict, &known, bytes);
        let trusting = envelope::open(&epoch, &Anyone, &known, bytes);
        if let Ok(opened) = &trusting {
            signs_again(&epoch, opened, bytes);
        }
        assert!(strict.is_err() || trusting.is_ok());
        let read = envelope::read(bytes).is_ok();
        let heading = envelope::heading(bytes).is_some();
        let cost = envelope::cost(&epoch, bytes) > 1;
        let claimed = envelope::claimed(bytes).is_some();
        let other = envelope::is_of_other_epoch(&epoch, bytes);
        format!(
            "{} {} {read} {heading} {cost} {claimed} {other}",
            outcome(&strict),
            outcome(&trusting)
        )
    };
    fuzz(FuzzTarget {
        name: "envelope",
        examples: frames(),
        words: &[],
        inputs: 3_000,
        memory,
        run: &mut run,
    });
}

/// Kind, sender, round, view and body of a message, in which every change gets as far as the body.
fn body_of(frame: &[u8]) -> Vec<u8> {
    let (kind, sender) = (frame[83], frame[81]);
    [&[kind, sender][..], &frame[65..81], &frame[OVERHEAD..]].concat()
}

fn frame_of(epoch: &Epoch, input: &[u8]) -> Option<Vec<u8>> {
    let (head, body) = input.split_at_checked(18)?;
    let kind = Kind::from_number(head[0] % (Kind::ALL.len() as u8 + 1))?;
    let scope = kind.scope();
    let (mut round, mut view) = ([0; 8], [0; 8]);
    if scope.round {
        round.copy_from_slice(&head[2..10]);
        round[0] |= 1;
    }
    if scope.view {
        view.copy_from_slice(&head[10..18]);
        view[0] |= u8::from(view == [0; 8]);
    }
    let (sender, signature) = if kind.has_sender() {
        (u16::from(head[1] % 4), [7; 64])
    } else {
        (u16::MAX, [0; 64])
    };
    let number = Kind::ALL.iter().position(|other| *other == kind)? as u8 + 1;
    let mut frame = vec![epoch.format];
    frame.extend(epoch.federation.0);
    frame.extend(epoch.id.0);
    frame.extend(round);
    frame.extend(view);
    frame.extend(sender.to_le_bytes());
    frame.push(number);
    frame.extend(signature);
    frame.extend(body);
    Some(frame)
}

#[test]
fn message_bodies_of_every_kind() {
    let epoch = epoch();
    let examples: Vec<_> = frames().iter().map(|frame| body_of(frame)).collect();
    let mut kinds = BTreeSet::new();
    // Every kind in the format that it came with, as in the golden files.
    let formats = (1..=Formats::SPOKEN.newest).map(|format| {
        let mut one = epoch.clone();
        one.format = format;
        one
    });
    let formats: Vec<Epoch> = formats.collect();
    let mut run = |input: &[u8]| {
        let Some(mut frame) = frame_of(&epoch, input) else {
            return "too short".into();
        };
        let since = Kind::from_number(frame[83]).map_or(1, Kind::since);
        let epoch = &formats[usize::from(since) - 1];
        frame[0] = since;
        let opened = envelope::open(epoch, &Anyone, &Known::default(), &frame);
        if let Ok(opened) = &opened {
            signs_again(epoch, opened, &frame);
            kinds.insert(frame[83]);
        }
        format!("{} {}", frame[83], outcome(&opened))
    };
    fuzz(FuzzTarget {
        name: "message",
        examples,
        words: &[],
        inputs: 8_000,
        memory,
        run: &mut run,
    });
    assert_eq!(kinds.len(), Kind::ALL.len(), "kinds that opened: {kinds:?}");
}

#[test]
fn certificates() {
    let epoch = epoch();
    let of_kind = |frame: &&Vec<u8>| Kind::from_number(frame[83]) == Some(Kind::Certificate);
    let frames = frames();
    let examples = frames.iter().filter(of_kind);
    let examples = examples.map(|frame| frame[OVERHEAD..].to_vec()).collect();
    let mut run = |bytes: &[u8]| {
        let certificate: Certificate = match codec::decode(bytes, envelope::limit(&epoch)) {
            Ok(certificate) => certificate,
            Err(error) => return gist(&error.to_string()),
        };
        let trusting = certificate.verify(&epoch, &Anyone);
        let strict = certificate.verify(&epoch, &Strict);
        if trusting.is_ok() {
            let voters: BTreeSet<MemberIndex> =
                certificate.votes.iter().map(|vote| vote.member).collect();
            assert_eq!(voters.len(), epoch.roster.quorum());
            assert!(voters.iter().all(|voter| voter.at() < epoch.roster.len()));
        }
        assert!(strict.is_err() || trusting.is_ok());
        let says = |result: Result<(), CertificateError>| match result {
            Ok(()) => "holds".into(),
            Err(error) => gist(&error.to_string()),
        };
        format!(
            "{} {} {}",
            says(trusting),
            says(strict),
            certificate.votes.len()
        )
    };
    fuzz(FuzzTarget {
        name: "certificate",
        examples,
        words: &[],
        inputs: 3_000,
        memory,
        run: &mut run,
    });
}
