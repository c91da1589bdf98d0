//! Waiting to be admitted: an institution that is in no agreement yet asks the members until one
//! shows it an agreement with its key.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mesh::Contact;
use protocol::envelope::{self, Known, Opened};
use protocol::identity::Strict;
use protocol::message::Passage;
use protocol::net::{Command, Event};
use protocol::parameters::Epoch;
use protocol::{Epochs, Hash, MemberIndex, PublicKey};
use tokio::runtime::Runtime;
use tokio::time::interval;

use crate::events::NodeEvent;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::EndSignal;

/// How often members that can be reached are asked.
const PAUSE: Duration = Duration::from_secs(1);
/// Most sets of members whose recoveries are printed: the same members can make any number of them.
const TOLD: usize = 8;

/// Waits until the institution is a member of the newest epoch that the members know. Gives the
/// proofs of the epochs that are over; none where a signal came first.
///
/// # Errors
/// [`NodeError`]: the network cannot be started.
pub(in crate::institution) fn wait(
    institution: &Institution,
    epochs: &Epochs,
    runtime: &Runtime,
    (mut signal, follow): (EndSignal, Option<Hash>),
    output: &OutputLines,
) -> Result<Option<Vec<Passage>>, NodeError> {
    let mut mesh = connect(institution, runtime)?;
    let key = institution.key.public();
    let line = format!(
        "the key {key} is not in the agreement of {}: waiting until its members admit it, with \
         `rota federation admit NAME {key} ADDRESS`",
        institution.agreement.epoch.protocol.name
    );
    let event = NodeEvent::WaitsForAdmission {
        key: key.to_string(),
    };
    output.print(SystemTime::now(), 0.0, event, &line);
    let mut followed = FollowedEpochs {
        key,
        follow,
        now: epochs.now.clone(),
        passages: Vec::new(),
        told: BTreeSet::new(),
    };
    let admitted = runtime.block_on(ask(&mut mesh, &mut followed, &mut signal, output));
    drop((mesh.commands, mesh.events));
    runtime.block_on(async {
        let _ = tokio::time::timeout(Duration::from_secs(5), mesh.ended).await;
    });
    Ok(admitted.then_some(followed.passages))
}

/// Starts the network of an institution that is in no agreement yet.
fn connect(institution: &Institution, runtime: &Runtime) -> Result<mesh::Handle, NodeError> {
    let first = &institution.agreement.epoch;
    let key = institution.key.public();
    let mut roster = institution.roster.clone();
    if roster.iter().all(|contact| contact.key != key) {
        roster.push(Contact {
            member: MemberIndex(roster.len() as u16),
            key,
            addresses: Vec::new(),
        });
    }
    let mut config = mesh::Config::new(first.federation, institution.listen.clone());
    config.epoch = first.id;
    config.frame = envelope::limit(first);
    // Its members notice it by its attempts, and do not approve it before.
    config.last_retry = PAUSE * 5;
    (config.relay, config.dials_only) = (institution.relay, !institution.reachable);
    let secret = institution.key.to_bytes();
    Ok(runtime.block_on(mesh::spawn(runtime.handle(), config, secret, roster))?)
}

/// How far an institution follows the members' proofs that epochs are over.
struct FollowedEpochs {
    key: PublicKey,
    /// The recovery to follow.
    follow: Option<Hash>,
    /// The newest epoch that it knows.
    now: Arc<Epoch>,
    /// The proofs that led there.
    passages: Vec<Passage>,
    /// The members whose recoveries were printed because they are not followed.
    told: BTreeSet<Vec<MemberIndex>>,
}

impl FollowedEpochs {
    /// Follows the proof in a frame, if one is in it. Returns whether the institution is a member now.
    fn follow(&mut self, frame: &[u8], output: &OutputLines) -> bool {
        let Some((passage, next)) = passed(&self.now, frame) else {
            return false;
        };
        let id = next.id;
        if let Some(line) = unfollowed(&self.now, &passage, id, self.follow) {
            if self.is_new(&passage) {
                let event = NodeEvent::RecoveryMet {
                    recovery: format!("{id:#}"),
                };
                output.print(SystemTime::now(), 0.0, event, &line);
            }
            return false;
        }
        self.passages.push(passage);
        self.now = next;
        self.now.roster.position(&self.key).is_some()
    }

    /// Returns whether nothing was printed yet of the members that made a recovery, and there is room to.
    fn is_new(&mut self, passage: &Passage) -> bool {
        let Some(recovery) = passage.recovery() else {
            return false;
        };
        let by = recovery.standings.iter().map(|signed| signed.by);
        self.told.len() < TOLD && self.told.insert(by.collect())
    }
}

/// Asks the members that can be reached until the institution is one of them. Returns whether it is; it
/// is not after a signal.
async fn ask(
    mesh: &mut mesh::Handle,
    followed: &mut FollowedEpochs,
    signal: &mut EndSignal,
    output: &OutputLines,
) -> bool {
    let mut tick = interval(PAUSE);
    let mut up = Vec::new();
    loop {
        tokio::select! {
            _ = signal.received() => return false,
            _ = tick.tick() => {
                for &to in &up {
                    let frame = envelope::hail(&followed.now);
                    let _ = mesh.commands.try_send(Command::Send { to, frame });
                }
            }
            event = mesh.events.recv() => match event {
                None => return false,
                Some(Event::Up { peer, .. }) if !up.contains(&peer) => up.push(peer),
                Some(Event::Down { peer }) => up.retain(|other| *other != peer),
                Some(Event::Received { frame, .. }) => {
                    if followed.follow(&frame, output) {
                        return true;
                    }
                }
                // It has no blobs.
                Some(Event::Wanted { blobs, ticket, .. }) => {
                    let blobs = vec![None; blobs.len()];
                    let _ = mesh.commands.try_send(Command::Serve { ticket, blobs });
                }
                Some(_) => {}
            },
        }
    }
}

/// Returns what to print of a recovery that is not followed: its members went on without a quorum, so whoever
/// joins them has to be sure that they are the right ones.
fn unfollowed(epoch: &Epoch, passage: &Passage, id: Hash, follow: Option<Hash>) -> Option<String> {
    let recovery = passage.recovery()?;
    if follow == Some(id) {
        return None;
    }
    let names = |members: &mut dyn Iterator<Item = MemberIndex>| {
        let names: Vec<_> = members.map(|member| epoch.roster.name(member)).collect();
        names.join(", ")
    };
    let by = names(&mut recovery.standings.iter().map(|signed| signed.by));
    let lost = names(&mut recovery.lost.iter().copied());
    Some(format!(
        "warning: {by} continued without {lost} and without a quorum after round {} (recovery {id:#}). This node \
         does not follow by itself: ask them and the others, and restart it with --follow-recovery {id:#} if that \
         is the federation to join",
        recovery.after.round
    ))
}

/// The proof that an epoch is over, if a frame is one, and the next epoch.
fn passed(epoch: &Epoch, frame: &[u8]) -> Option<(Passage, Arc<Epoch>)> {
    let Ok(Opened::Passage(passage)) = envelope::open(epoch, &Strict, &Known::default(), frame)
    else {
        return None;
    };
    let next = epoch.next(passage.blocks.first()?).ok()?;
    Some((*passage, Arc::new(next)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use protocol::identity::Signature;
    use protocol::message::{Confirmed, Recovery, Standing};
    use protocol::parameters::ProtocolParameters;
    use protocol::recovery::resume_point;

    use super::*;
    use crate::fixture;

    fn epoch(silos: u8) -> Epoch {
        let protocol = ProtocolParameters {
            min_contributions: u16::from(silos) / 2 + 1,
            ..fixture::protocol()
        };
        fixture::epoch(fixture::silos(silos, 0), protocol)
    }

    /// A recovery that these members made with their `number`th words, and its id.
    fn made(epoch: &Epoch, by: &[u16], number: u64) -> (Passage, Hash) {
        let by: Vec<_> = by.iter().copied().map(MemberIndex).collect();
        let all = epoch.roster.members();
        let lost: Vec<_> = all.filter(|member| !by.contains(member)).collect();
        let standing = Standing {
            number,
            lost: lost.clone(),
            adopted: epoch.began,
            view: 0,
            block: epoch.id,
            notarised: 0,
        };
        let point = resume_point(epoch, [&standing]).unwrap();
        let signature = Signature::from_bytes(&[0; 64]);
        let confirmed = by.into_iter().map(|by| Confirmed {
            by,
            standing: standing.clone(),
            signature,
            number: 1,
            confirmation: signature,
        });
        let block = Recovery::block(epoch, &lost, &point, confirmed.collect(), Vec::new());
        let id = block.hash();
        let proof = Recovery::no_proof(epoch);
        let blocks = vec![block];
        (Passage { blocks, proof }, id)
    }

    #[test]
    fn a_newcomer_follows_no_recovery_that_its_institution_did_not_name() {
        let epoch = epoch(2);
        let (passage, id) = made(&epoch, &[0], 1);
        let why = unfollowed(&epoch, &passage, id, None).unwrap();
        assert!(why.contains("silo 0 continued without silo 1"), "{why}");
        assert!(why.contains(&format!("--follow-recovery {id:#}")), "{why}");
        let mut alike = id;
        alike.0[31] ^= 1;
        assert!(unfollowed(&epoch, &passage, id, Some(alike)).is_some());
        assert_eq!(unfollowed(&epoch, &passage, id, Some(id)), None);
    }

    #[test]
    fn a_newcomer_is_told_once_of_all_recoveries_of_the_same_members_and_of_eight_such_sets() {
        let epoch = epoch(5);
        let mut followed = FollowedEpochs {
            key: fixture::key(99).public(),
            follow: None,
            now: Arc::new(epoch.clone()),
            passages: Vec::new(),
            told: BTreeSet::new(),
        };
        let mut ids = BTreeSet::new();
        let mut printed = 0;
        for number in 1..=20 {
            let (passage, id) = made(&epoch, &[0], number);
            printed += usize::from(followed.is_new(&passage));
            ids.insert(id);
        }
        assert_eq!((ids.len(), printed), (20, 1));
        // Members of one epoch are many more sets than anybody reads lines.
        let pairs = (0..5).flat_map(|one| (one + 1..5).map(move |other| [one, other]));
        for pair in pairs {
            printed += usize::from(followed.is_new(&made(&epoch, &pair, 1).0));
        }
        assert_eq!((printed, followed.told.len()), (8, 8));
    }
}
