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

use super::config::Institution;
use super::error::NodeError;
use super::output::Output;
use super::past::agreements;
use super::present::contacts;
use super::signals::Signal;
use crate::events::NodeEvent;

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
    (mut signal, grace): (Signal, Option<Duration>),
    output: &Output,
) -> Result<(), NodeError> {
    let (Some((former, _)), Some((_, passage))) = (epochs.former.last(), epochs.answers().pop())
    else {
        return Ok(());
    };
    let began = Instant::now();
    let past = agreements(&institution.agreement, epochs);
    let now = past.last().unwrap_or(&institution.agreement);
    let mut roster = contacts(institution, now);
    let needed = epochs.now.roster.quorum();
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
        let mut tick = interval(former.beat().clamp(Duration::from_millis(50), GRACE / 10));
        let (mut up, mut know) = (BTreeSet::new(), BTreeSet::new());
        loop {
            if know.len() >= needed {
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

/// Whether a frame shows that its sender knows that the epoch is over: it names the next one, or it
/// is the proof itself, with which members of later epochs answer frames of an earlier one.
fn knows(former: &Epoch, next: &Epoch, frame: &[u8]) -> bool {
    let opened = envelope::open(former, &Strict, &Known::default(), frame);
    envelope::epoch_of(frame) == Some(next.id) || matches!(opened, Ok(Opened::Passage(_)))
}
