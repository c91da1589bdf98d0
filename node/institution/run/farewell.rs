//! The last thing that a node does whose institution is no member any more: it tells the others that
//! the epoch is over.
//!
//! The proof of it may exist nowhere else. Where the vote of the member that leaves was needed, the
//! others could not make the change final again without it, so the node stays until a quorum of the
//! next epoch has shown that it knows.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use mesh::Contact;
use protocol::envelope::{self, Known, Opened};
use protocol::identity::Strict;
use protocol::net::{Command, Event};
use protocol::{Epoch, Epochs, MemberIndex};
use tokio::runtime::Runtime;
use tokio::time::interval;

use crate::events::NodeEvent;
use crate::institution::agreement::history::agreements;
use crate::institution::agreement::in_force::contacts;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::EndSignal;

/// How long a node with `--until-done` tries to reach the others, where no other time is given.
pub(super) const GRACE: Duration = Duration::from_secs(30);

/// Tells the members of the next epoch that the one before is over, until a quorum of them knows, or a
/// signal comes, or for so long as `grace` says.
///
/// # Errors
/// [`NodeError`]: the network cannot be started.
pub(super) fn say(
    institution: &Institution,
    epochs: &Epochs,
    runtime: &Runtime,
    (mut signal, grace): (EndSignal, Option<Duration>),
    output: &OutputLines,
) -> Result<(), NodeError> {
    let (Some((former, _)), Some((_, passage))) = (epochs.former.last(), epochs.answers().pop())
    else {
        return Ok(());
    };
    let began = Instant::now();
    let past = agreements(&institution.agreement, epochs);
    let now = past.last().unwrap_or(&institution.agreement);
    let mut roster = contacts(institution, now);
    roster.push(Contact {
        member: MemberIndex(roster.len() as u16),
        key: institution.key.public(),
        addresses: Vec::new(),
    });
    let mut config = mesh::Config::new(former.federation, institution.listen.clone());
    config.epoch = former.id;
    config.frame = envelope::limit(former);
    (config.relay, config.dials_only) = (institution.relay, !institution.reachable);
    let secret = institution.key.to_bytes();
    let mut mesh = runtime.block_on(mesh::spawn(runtime.handle(), config, secret, roster))?;
    let end = grace.map(|grace| began + grace);
    let why = runtime.block_on(async {
        let mut tick = interval(
            former
                .heartbeat()
                .clamp(Duration::from_millis(50), GRACE / 10),
        );
        let (mut up, mut know) = (BTreeSet::new(), BTreeSet::new());
        loop {
            if enough(&know, &epochs.now) {
                return "a quorum of the others knows that the agreement has changed";
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return "too few others could be told in time that the agreement has changed: they \
                        may have to ask this institution's node";
            }
            tokio::select! {
                signal = signal.received() => return signal,
                _ = tick.tick() => {
                    for &to in up.difference(&know) {
                        let frame = passage.clone();
                        let _ = mesh.commands.try_send(Command::Send { to, frame });
                    }
                }
                event = mesh.events.recv() => match event {
                    None => return "the network has ended",
                    Some(Event::Up { peer, .. }) => drop(up.insert(peer)),
                    Some(Event::Down { peer }) => drop(up.remove(&peer)),
                    Some(Event::Received { from, frame, .. }) => {
                        if knows(former, &epochs.now, &frame) {
                            know.insert(from);
                        }
                    }
                    Some(Event::Wanted { blobs, ticket, .. }) => {
                        let blobs = vec![None; blobs.len()];
                        let _ = mesh.commands.try_send(Command::Serve { ticket, blobs });
                    }
                    Some(_) => {}
                },
            }
        }
    });
    drop((mesh.commands, mesh.events));
    runtime.block_on(async {
        let _ = tokio::time::timeout(Duration::from_secs(5), mesh.ended).await;
    });
    let line = format!("ending: {why}");
    let event = NodeEvent::Leaving { why: why.into() };
    let at = began.elapsed().as_secs_f64();
    output.print(SystemTime::now(), at, event, &line);
    Ok(())
}

/// Returns whether so many members of the next epoch know that it has begun that they can tell all others.
fn enough(know: &BTreeSet<MemberIndex>, next: &Epoch) -> bool {
    know.len() >= next.roster.quorum()
}

/// Returns whether a frame shows that its sender knows that the epoch is over: it names the next one, or it
/// is the proof itself, with which members of later epochs answer frames of an earlier one.
fn knows(former: &Epoch, next: &Epoch, frame: &[u8]) -> bool {
    let opened = envelope::open(former, &Strict, &Known::default(), frame);
    envelope::epoch_of(frame) == Some(next.id) || matches!(opened, Ok(Opened::Passage(_)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::certificate::{Certificate, Checked, Verdict, Vote};
    use protocol::message::{Amendment, Approval, Block, Body, Change, Content, Passage};

    use super::*;
    use crate::fixture;

    /// Two members of which the first leaves: the epoch, the proof that it is over, and the next.
    fn left() -> (Epoch, Passage, Epoch) {
        let protocol = protocol::ProtocolParameters {
            min_contributions: 2,
            ..fixture::protocol()
        };
        let epoch = fixture::epoch(fixture::silos(2, 1), protocol);
        let (me, key) = (MemberIndex(0), fixture::key(1));
        let amendment = Amendment::leaving(&epoch, me);
        let approval = Body::Approval {
            amendment: amendment.hash(),
            number: 1,
            stands: true,
        };
        let (signed, _) = envelope::sign(&epoch, &key, 0, 0, me, approval);
        let block = Block {
            epoch: epoch.id,
            view: 1,
            parent: epoch.id,
            content: Content::Change(Box::new(Change {
                after: epoch.began,
                approvals: vec![Approval {
                    by: me,
                    number: 1,
                    signature: signed.signature,
                }]
                .into(),
                amendment,
            })),
        };
        let (verdict, checked) = (Verdict::Final(block.hash()), Checked::Structure);
        let vote = |by: u16| {
            let (member, body) = (MemberIndex(by), Body::vote(verdict, checked));
            let key = fixture::key(by as u8 + 1);
            let (signed, _) = envelope::sign(&epoch, &key, 0, 1, member, body);
            Vote {
                member,
                checked,
                signature: signed.signature,
            }
        };
        let proof = Certificate {
            view: 1,
            verdict,
            votes: [0, 1].map(vote).into(),
        };
        let blocks = vec![block];
        let passage = Passage { blocks, proof };
        let next = passage.verify(&epoch, &Strict).unwrap();
        (epoch, passage, next)
    }

    #[test]
    fn a_quorum_of_the_next_epoch_has_to_know() {
        let epoch = fixture::epoch(fixture::silos(4, 1), fixture::protocol());
        let know = |n: u16| (0..n).map(MemberIndex).collect();
        let found: Vec<_> = (0..5).filter(|n| enough(&know(*n), &epoch)).collect();
        assert_eq!(found, [3, 4]);
    }

    #[test]
    fn only_the_proof_and_frames_of_the_next_epoch_show_that_somebody_knows() {
        let (former, passage, next) = left();
        // What is sent in the next epoch, even without anything to say, and the proof itself.
        let (me, key) = (MemberIndex(0), fixture::key(2));
        let (_, later) = envelope::sign(&next, &key, 1, 0, me, Body::Complete);
        assert!(knows(&former, &next, &envelope::hail(&next)));
        assert!(knows(&former, &next, &later));
        let proof = envelope::sign_passage(&former, &passage);
        assert!(knows(&former, &next, &proof));
        // What is sent in the epoch that is over does not, nor does a proof that proves nothing.
        let (_, earlier) = envelope::sign(&former, &key, 1, 0, MemberIndex(1), Body::Complete);
        for frame in [&earlier, &envelope::hail(&former)] {
            assert!(!knows(&former, &next, frame));
        }
        let mut forged = passage.clone();
        forged.proof.votes = vec![forged.proof.votes[0].clone()].into();
        let forged = envelope::sign_passage(&former, &forged);
        assert!(!knows(&former, &next, &forged));
        assert!(!knows(&former, &next, b"a word"));
    }
}
