//! Asks the other members' nodes how they are doing, and tells them how this one is, where the agreement
//! says so.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use agreement::StatusFor;
use mesh::{Asker, Tells};
use protocol::MemberIndex;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::health::Health;
use crate::status::Status;
use crate::status::all::{MemberAnswer, Nodes, NodesSource};

/// Time for which answers are used again, however many ask for them.
const FRESH: Duration = Duration::from_secs(2);

/// Status of all nodes of a federation, as they report it to one of them.
pub(in crate::institution) struct Asking {
    health: Arc<Health>,
    asker: Asker,
    /// True if members see the status of each other's nodes.
    shown: bool,
    last: Mutex<Option<(Instant, Nodes)>>,
}

/// Status that this node reports to others. It is known only after the network runs: until then, nothing.
#[derive(Default, Clone)]
pub(in crate::institution) struct Telling(Arc<OnceLock<Arc<Health>>>);

impl Telling {
    /// For the network, under an agreement that says this, with noise or without.
    pub(in crate::institution) fn tells(&self, status: StatusFor, noised: bool) -> Tells {
        let health = self.0.clone();
        let of = if noised {
            MemberAnswer::noised
        } else {
            MemberAnswer::of
        };
        match status {
            StatusFor::Own => Tells::default(),
            StatusFor::Members => Tells::new(move |_| Some(of(&health.get()?.status()).written())),
        }
    }

    /// Sets what is told: the status of this node.
    pub(in crate::institution) fn begins(&self, health: &Arc<Health>) {
        // It is set once, at the start.
        let _ = self.0.set(health.clone());
    }
}

impl Asking {
    pub(in crate::institution) fn new(
        health: Arc<Health>,
        asker: Asker,
        status: StatusFor,
    ) -> Arc<Self> {
        Arc::new(Self {
            health,
            asker,
            shown: status == StatusFor::Members,
            last: Mutex::default(),
        })
    }

    /// Asks all nodes that are connected.
    pub(in crate::institution) fn source(self: Arc<Self>) -> NodesSource {
        Arc::new(move || {
            let own = self.clone();
            Box::pin(async move { own.nodes().await })
        })
    }

    async fn nodes(&self) -> Nodes {
        // Whoever comes while others are asked waits for their answers.
        let mut last = self.last.lock().await;
        if let Some((at, nodes)) = &*last
            && at.elapsed() < FRESH
        {
            return nodes.clone();
        }
        let status = self.health.status();
        let mut answers = self.ask(&status).await;
        let nodes = Nodes::new(&status, self.shown, |member| {
            let found = answers.iter().position(|(by, _)| *by == member)?;
            Some(answers.swap_remove(found).1)
        });
        *last = Some((Instant::now(), nodes.clone()));
        nodes
    }

    /// The answers of the members that are connected; none where members do not see each other's status.
    async fn ask(&self, status: &Status) -> Vec<(u16, Result<MemberAnswer, String>)> {
        let mut asked = JoinSet::new();
        if self.shown {
            for member in Nodes::asked(status) {
                let asker = self.asker.clone();
                asked.spawn(async move {
                    let answer = asker.ask(MemberIndex(member)).await;
                    let answer = answer.map_err(|error| error.to_string());
                    let read = |bytes: Vec<u8>| {
                        MemberAnswer::read(&bytes)
                            .map_err(|error| format!("its answer cannot be read: {error}"))
                    };
                    (member, answer.and_then(read))
                });
            }
        }
        asked.join_all().await
    }
}
