//! The model that a federation starts from, where the proposer's program held it: a member that has no
//! file of it fetches it from the others before its first round, and every member gives it to others.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use learn::export::tensors_of;
use methods::Params;
use protocol::net::{BlobRequest, Command, Event};
use protocol::{Hash, MemberIndex, envelope};
use silo::{Blobs, StoreError};
use task::data::DataError;
use tokio::runtime::Runtime;
use tokio::time::interval;

use crate::equipment::Equipment;
use crate::events::NodeEvent;
use crate::institution::agreement::in_force::Present;
use crate::institution::config::Institution;
use crate::institution::error::NodeError;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::EndSignal;
use crate::model::{GivenStart, StartError, find_start, keep_start};
use crate::store::DiskBlobs;

/// How often members that can be reached are asked.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is said that the model is still missing.
const REMINDER: Duration = Duration::from_secs(60);
/// How long the network may take to end.
const GOODBYE: Duration = Duration::from_secs(5);

/// The blobs of a node, and the model that its federation starts from: a silo keeps only blobs of rounds.
pub(in crate::institution) struct WithStart {
    /// The blobs of rounds.
    pub(in crate::institution) blobs: DiskBlobs,
    /// The model, by its hash.
    pub(in crate::institution) start: Option<(Hash, Bytes)>,
}

impl Blobs for WithStart {
    fn get(&self, hash: &Hash) -> Option<Bytes> {
        match &self.start {
            Some((start, model)) if start == hash => Some(model.clone()),
            _ => self.blobs.get(hash),
        }
    }

    fn put(&self, hash: Hash, blob: Bytes) -> Result<(), StoreError> {
        self.blobs.put(hash, blob)
    }

    fn put_all(&self, blobs: Vec<(Hash, Bytes)>) -> Result<(), StoreError> {
        self.blobs.put_all(blobs)
    }

    fn to_file(&self, blob: Bytes) -> Bytes {
        self.blobs.to_file(blob)
    }

    fn shared(&self, hash: &Hash, blob: Bytes) -> Bytes {
        self.blobs.shared(hash, blob)
    }

    fn mark(&self) -> u64 {
        self.blobs.mark()
    }

    fn retain(&self, keep: &[Hash], mark: u64) -> Result<(), StoreError> {
        self.blobs.retain(keep, mark)
    }

    fn remove(&self, blobs: &[Hash]) -> Result<(), StoreError> {
        self.blobs.remove(blobs)
    }
}

/// Returns what has to be fetched before a first round; `None` where the model is here, or where nobody would
/// give it.
fn missing(institution: &Institution) -> Result<Option<BlobRequest>, DataError> {
    let sought = GivenStart::of(&institution.agreement).filter(GivenStart::is_fetched);
    let Some(sought) = sought else {
        return Ok(None);
    };
    let family = Equipment::of_family(&institution.agreement, institution.me, None)?;
    let family = family.plain.learner.layout();
    let given = institution.start_model.as_deref();
    let (state, beside) = (&institution.state, institution.agreed_in());
    match find_start(&sought, given, state, beside, &family) {
        Err(StartError::Nowhere { .. }) => Ok(Some(BlobRequest {
            hash: sought.model,
            limit: family.document_len() as u64,
        })),
        // Everything else is said where the model is needed.
        Ok(_) | Err(_) => Ok(None),
    }
}

/// Fetches the model that the federation starts from, where it is not here, with a runtime for the
/// network. Returns whether the node may go on; it may not after a signal.
///
/// # Errors
/// [`NodeError`]: the network cannot be started, or the model not be kept.
pub(in crate::institution) fn fetch(
    present: &Present,
    runtime: fn() -> io::Result<Runtime>,
    signal: &mut EndSignal,
    output: &OutputLines,
) -> Result<bool, NodeError> {
    let institution = &present.institution;
    let Some(wish) = missing(institution)? else {
        return Ok(true);
    };
    let runtime = runtime()?;
    let mut mesh = connect(present, &runtime)?;
    let (hash, bytes) = (wish.hash, wish.limit);
    let line = format!("asking the other members for the start model (hash {hash}, {bytes} bytes)");
    let event = NodeEvent::AsksForStart {
        hash: format!("{hash:#}"),
        bytes,
    };
    output.print(SystemTime::now(), 0.0, event.clone(), &line);
    let found = runtime.block_on(ask(&mut mesh, wish, signal, (event, output)));
    drop((mesh.commands, mesh.events));
    runtime.block_on(async {
        let _ = tokio::time::timeout(GOODBYE, mesh.ended).await;
    });
    let Some(model) = found else {
        return Ok(false);
    };
    let model = read(&model)?;
    keep_start(&institution.state, &model)?;
    let line = format!("received the start model (hash {hash})");
    let event = NodeEvent::HasStart {
        hash: format!("{hash:#}"),
    };
    output.print(SystemTime::now(), 0.0, event, &line);
    Ok(true)
}

/// Starts a network that is there for the model only.
fn connect(present: &Present, runtime: &Runtime) -> Result<mesh::Handle, NodeError> {
    let institution = &present.institution;
    let epoch = &institution.agreement.epoch;
    let mut config = mesh::Config::new(epoch.federation, institution.listen.clone());
    config.epoch = epoch.id;
    config.guests = present.guests.clone();
    config.discovery = epoch.protocol.discovery;
    config.frame = envelope::limit(epoch);
    (config.relay, config.dials_only) = (institution.relay, !institution.reachable);
    let (secret, roster) = (institution.key.to_bytes(), institution.roster.clone());
    Ok(runtime.block_on(mesh::spawn(runtime.handle(), config, secret, roster))?)
}

/// Asks the members that can be reached until one gives the model; `None` after a signal. While nobody
/// has it, the event is printed again and again.
async fn ask(
    mesh: &mut mesh::Handle,
    wish: BlobRequest,
    signal: &mut EndSignal,
    (event, output): (NodeEvent, &OutputLines),
) -> Option<Bytes> {
    let mut tick = interval(PAUSE);
    let mut up: Vec<MemberIndex> = Vec::new();
    let (mut asking, mut said) = (false, Instant::now());
    loop {
        tokio::select! {
            _ = signal.received() => return None,
            _ = tick.tick() => {
                if !asking && !up.is_empty() {
                    let (blobs, from) = (vec![wish], up.clone());
                    asking = mesh.commands.try_send(Command::Fetch { blobs, from }).is_ok();
                }
                if said.elapsed() >= REMINDER {
                    said = Instant::now();
                    let line = format!(
                        "still without the start model: none of the {} members that can be reached has it. The \
                         proposer's node has it; or ask for the file start.safetensors",
                        up.len()
                    );
                    output.print(SystemTime::now(), 0.0, event.clone(), &line);
                }
            }
            event = mesh.events.recv() => match event {
                None => return None,
                Some(Event::Up { peer, .. }) if !up.contains(&peer) => up.push(peer),
                Some(Event::Down { peer }) => up.retain(|other| *other != peer),
                Some(Event::Missing { .. }) => asking = false,
                Some(Event::Fetched { blobs }) => {
                    let model = blobs.into_iter().find(|(hash, _)| *hash == wish.hash);
                    if let Some((_, model)) = model {
                        return Some(model);
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

/// The model of a blob whose hash is the agreed one.
fn read(blob: &Bytes) -> Result<Params, DataError> {
    tensors_of(blob).map_err(|why| DataError::Config(format!("the model to start from: {why}")))
}
