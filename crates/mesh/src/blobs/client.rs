//! Fetches blobs from one or several holders.
//!
//! Small blobs are requested together, large ones from several holders at once. If a holder fails, the
//! next one is asked. After a broken connection a fetch continues with the chunks that are missing.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures::future::select_all;
use protocol::MemberIndex;
use protocol::net::{BlobRequest, Event};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::batch::Batch;
use super::chunk_map::Unfinished;
use super::pull::{BatchPart, PullFailure, RUN};
use super::spool::Spool;
use super::wire::BLOBS;
use crate::members::{Members, Peer};
use crate::streams::{StreamKind, StreamOpener};

/// Holders that are asked for parts of a batch at the same time.
const HOLDERS: usize = 4;
/// Another holder is asked when more than this many chunks of a blob are missing per holder that is
/// being asked.
const SHARE: usize = 2 * RUN;
/// Fruitless attempts in a row after which a holder is not asked again.
const FRUITLESS: u32 = 3;
/// Pause after a fruitless attempt that ended with a broken stream; twice as long after the second. The
/// streams of a holder that leaves break a little before its connection ends.
const PAUSE: Duration = Duration::from_millis(250);

/// Fetches blobs.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) members: Arc<Members>,
    pub(crate) opener: StreamOpener,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) patience: Duration,
    pub(crate) resume: Duration,
    pub(crate) spool: Option<Arc<dyn Spool>>,
    pub(crate) unfinished: Mutex<Unfinished>,
}

/// A holder and the results of asking it.
#[derive(Debug)]
struct Holder {
    peer: Arc<Peer>,
    /// Blobs that it does not have, or of which it sent wrong bytes.
    unfit: BTreeSet<usize>,
    /// Attempts in a row that fetched nothing.
    fruitless: u32,
}

impl Fetcher {
    /// Fetches blobs and delivers each to the silo. Reports blobs that no holder gave as missing.
    #[tracing::instrument(level = "debug", skip_all, fields(blobs = wishes.len()))]
    pub(crate) async fn fetch(self: Arc<Self>, wishes: Vec<BlobRequest>, from: Vec<MemberIndex>) {
        let batch = Arc::new(Batch::new(wishes, self.spool.clone(), |wish| {
            let started = self.unfinished().take(wish.hash);
            started.filter(|board| board.tree().length() <= wish.limit)
        }));
        // Without a silo nothing needs to be reported.
        if self.fetch_all(&batch, self.holders(&from)).await.is_none() {
            return;
        }
        let (missing, boards) = batch.end();
        boards
            .into_iter()
            .for_each(|board| self.unfinished().keep(board));
        if !missing.is_empty() {
            let _ = self.events.send(Event::Missing { blobs: missing }).await;
        }
    }

    /// Asks the holders until the batch is complete or none can be asked, and delivers complete blobs
    /// to the silo. `None` if the silo has ended.
    async fn fetch_all(&self, batch: &Arc<Batch>, mut holders: Vec<Holder>) -> Option<()> {
        let mut parts = JoinSet::new();
        loop {
            let blobs = batch.take_complete();
            if !blobs.is_empty() {
                self.events.send(Event::Fetched { blobs }).await.ok()?;
            }
            if batch.is_delivered() {
                return Some(());
            }
            while parts.len() < HOLDERS
                && let Some((holder, blobs)) = choose(&mut holders, batch, parts.len())
            {
                let (batch, opener) = (batch.clone(), self.opener.clone());
                parts.spawn(holder.part(batch, blobs, opener, self.patience));
            }
            if parts.is_empty() {
                // Waiting for a holder to return is worthwhile only if chunks would be lost otherwise.
                if !batch.is_started() || !self.one_returns(&holders).await {
                    return Some(());
                }
                continue;
            }
            tokio::select! {
                Some(ended) = parts.join_next() => holders.extend(ended.ok().flatten()),
                () = batch.changed.notified() => {}
            }
        }
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.unfinished
            .lock()
            .expect("no code panics while it holds this lock")
    }

    /// The holders to ask, in order and without duplicates.
    fn holders(&self, from: &[MemberIndex]) -> Vec<Holder> {
        let mut holders: Vec<Holder> = Vec::new();
        for &member in from {
            if let Some(peer) = self.members.at(member)
                && !holders.iter().any(|holder| holder.peer.member == member)
            {
                holders.push(Holder {
                    peer: peer.clone(),
                    unfit: BTreeSet::new(),
                    fruitless: 0,
                });
            }
        }
        holders
    }

    /// Returns whether a disconnected holder connects again in time.
    async fn one_returns(&self, holders: &[Holder]) -> bool {
        let disconnected = holders.iter().filter(|holder| !holder.peer.is_connected());
        let returns: Vec<_> = disconnected
            .map(|holder| Box::pin(holder.peer.wait_connected()))
            .collect();
        !returns.is_empty() && timeout(self.resume, select_all(returns)).await.is_ok()
    }
}

/// Takes out the first connected holder that can be asked for a blob, with the blobs to ask for.
fn choose(
    holders: &mut Vec<Holder>,
    batch: &Batch,
    running: usize,
) -> Option<(Holder, Vec<usize>)> {
    let open = batch.open(running, SHARE);
    for at in 0..holders.len() {
        let holder = &holders[at];
        let fit = open.iter().filter(|blob| !holder.unfit.contains(blob));
        let blobs: Vec<_> = fit.take(BLOBS).copied().collect();
        if !blobs.is_empty() && holder.peer.is_connected() {
            blobs
                .iter()
                .for_each(|&blob| batch.set_requested(blob, true));
            return Some((holders.remove(at), blobs));
        }
    }
    None
}

impl Holder {
    /// Fetches from this holder. Returns it if it may be asked again.
    async fn part(
        mut self,
        batch: Arc<Batch>,
        blobs: Vec<usize>,
        opener: StreamOpener,
        patience: Duration,
    ) -> Option<Self> {
        let turn = self.peer.fetching.acquire().await.ok()?;
        let (mut fetched, mut refused) = (0, 0);
        let ended = match opener.open(self.peer.id, StreamKind::Blob).await {
            Ok(stream) => {
                let mut part = BatchPart {
                    batch: &batch,
                    blobs: &blobs,
                    stream,
                    patience,
                    fetched: 0,
                    unfit: Vec::new(),
                };
                let ended = part.pull().await;
                (fetched, refused) = (part.fetched, part.unfit.len());
                self.unfit.extend(part.unfit);
                ended
            }
            Err(error) => Err(PullFailure::Cut(std::io::Error::other(error))),
        };
        drop(turn);
        blobs
            .iter()
            .for_each(|&blob| batch.set_requested(blob, false));
        let member = self.peer.member;
        let cut = matches!(ended, Err(PullFailure::Cut(_)));
        // Asking again, or others, would fill the disk no less.
        let full = matches!(ended, Err(PullFailure::Disk(_)));
        match ended {
            Ok(()) => tracing::debug!(%member, fetched, refused, "a holder answered every request"),
            Err(why @ (PullFailure::Cut(_) | PullFailure::Silent(_))) => {
                tracing::debug!(%member, fetched, "fetching from a holder ended: {why}");
            }
            Err(why @ PullFailure::Disk(_)) => tracing::warn!(%member, "fetching ended: {why}"),
            Err(why) => {
                let hash = self.unfit.last().map(|&blob| batch.wish(blob).hash);
                tracing::warn!(%member, ?hash, "the holder is not asked for this blob again: {why}");
            }
        }
        self.fruitless = if fetched + refused > 0 {
            0
        } else {
            self.fruitless + 1
        };
        if full || self.fruitless >= FRUITLESS {
            return None;
        }
        if cut && self.fruitless > 0 {
            sleep(PAUSE * self.fruitless).await;
        }
        Some(self)
    }
}
