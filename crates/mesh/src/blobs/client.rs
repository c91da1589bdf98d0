//! Fetching blobs: small ones together, large ones from several holders at once, from the next
//! holder where one fails, and on from where it stopped where a link was cut.

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
use super::board::Unfinished;
use super::pull::{Failure, Part, RUN};
use super::wire::BLOBS;
use crate::members::{Members, Peer};
use crate::streams::{Kind, Opener};

/// Holders that bring parts of a batch at the same time.
const HOLDERS: usize = 4;
/// Missing chunks of a blob, for each holder at work on it, that are worth one more holder.
const SHARE: usize = 2 * RUN;
/// Attempts in a row with one holder that brought nothing.
const FRUITLESS: u32 = 3;
/// Pause after the first such attempt that ended with a broken stream; twice as long after the next. A
/// holder that leaves breaks its streams a little before its connection is seen to end.
const PAUSE: Duration = Duration::from_millis(250);

/// Fetches blobs.
#[derive(Debug)]
pub(crate) struct Fetcher {
    pub(crate) members: Arc<Members>,
    pub(crate) opener: Opener,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) patience: Duration,
    pub(crate) resume: Duration,
    pub(crate) unfinished: Mutex<Unfinished>,
}

/// A holder, with what is known of it.
#[derive(Debug)]
struct Holder {
    peer: Arc<Peer>,
    /// What it does not have, or lied about.
    unfit: BTreeSet<usize>,
    /// Attempts in a row that brought nothing.
    fruitless: u32,
}

impl Fetcher {
    /// Fetches blobs, and tells the silo of each.
    #[tracing::instrument(level = "debug", skip_all, fields(blobs = wishes.len()))]
    pub(crate) async fn fetch(self: Arc<Self>, wishes: Vec<BlobRequest>, from: Vec<MemberIndex>) {
        let batch = Arc::new(Batch::new(wishes, |wish| {
            let begun = self.unfinished().take(wish.hash);
            begun.filter(|board| board.tree().length() <= wish.limit)
        }));
        // A silo that is gone needs no answer.
        if self.bring(&batch, self.holders(&from)).await.is_none() {
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

    /// Brings what the holders give, and tells the silo of it. None if the silo is gone.
    async fn bring(&self, batch: &Arc<Batch>, mut holders: Vec<Holder>) -> Option<()> {
        let mut parts = JoinSet::new();
        loop {
            let blobs = batch.tell();
            if !blobs.is_empty() {
                self.events.send(Event::Fetched { blobs }).await.ok()?;
            }
            if batch.is_told() {
                return Some(());
            }
            while parts.len() < HOLDERS
                && let Some((holder, blobs)) = choose(&mut holders, batch, parts.len())
            {
                let (batch, opener) = (batch.clone(), self.opener.clone());
                parts.spawn(holder.part(batch, blobs, opener, self.patience));
            }
            if parts.is_empty() {
                // Waiting for a holder to return is worth it only where that saves something.
                if !batch.is_begun() || !self.one_returns(&holders).await {
                    return Some(());
                }
                continue;
            }
            tokio::select! {
                Some(ended) = parts.join_next() => holders.extend(ended.ok().flatten()),
                () = batch.news.notified() => {}
            }
        }
    }

    fn unfinished(&self) -> MutexGuard<'_, Unfinished> {
        self.unfinished
            .lock()
            .expect("nobody panics while holding it")
    }

    /// Who is asked, in order, nobody twice.
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

    /// Whether one of those that are gone comes back in time.
    async fn one_returns(&self, holders: &[Holder]) -> bool {
        let gone = holders.iter().filter(|holder| !holder.peer.is_connected());
        let returns: Vec<_> = gone
            .map(|gone| Box::pin(gone.peer.wait_connected()))
            .collect();
        !returns.is_empty() && timeout(self.resume, select_all(returns)).await.is_ok()
    }
}

/// Takes out the first holder that can be asked for something, with what it is asked for.
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
            blobs.iter().for_each(|&blob| batch.asked(blob, true));
            return Some((holders.remove(at), blobs));
        }
    }
    None
}

impl Holder {
    /// Pulls what this holder brings. Gives it back if it may bring something later.
    async fn part(
        mut self,
        batch: Arc<Batch>,
        blobs: Vec<usize>,
        opener: Opener,
        patience: Duration,
    ) -> Option<Self> {
        let turn = self.peer.fetching.acquire().await.ok()?;
        let (mut brought, mut refused) = (0, 0);
        let ended = match opener.open(self.peer.id, Kind::Blob).await {
            Ok(stream) => {
                let mut part = Part {
                    batch: &batch,
                    blobs: &blobs,
                    stream,
                    patience,
                    brought: 0,
                    unfit: Vec::new(),
                };
                let ended = part.pull().await;
                (brought, refused) = (part.brought, part.unfit.len());
                self.unfit.extend(part.unfit);
                ended
            }
            Err(error) => Err(Failure::Cut(std::io::Error::other(error))),
        };
        drop(turn);
        blobs.iter().for_each(|&blob| batch.asked(blob, false));
        let member = self.peer.member;
        let cut = matches!(ended, Err(Failure::Cut(_)));
        match ended {
            Ok(()) => tracing::debug!(%member, brought, refused, "a holder did its part"),
            Err(why @ (Failure::Cut(_) | Failure::Silent(_))) => {
                tracing::debug!(%member, brought, "a holder of blobs stopped: {why}");
            }
            Err(why) => {
                let hash = self.unfit.last().map(|&blob| batch.wish(blob).hash);
                tracing::warn!(%member, ?hash, "not a holder of this blob: {why}");
            }
        }
        self.fruitless = if brought + refused > 0 {
            0
        } else {
            self.fruitless + 1
        };
        if self.fruitless >= FRUITLESS {
            return None;
        }
        if cut && self.fruitless > 0 {
            sleep(PAUSE * self.fruitless).await;
        }
        Some(self)
    }
}
