//! A worker alone: the test acts as its silo and its mesh.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use bytes::Bytes;
use methods::Params;
use protocol::effects::Case;
use protocol::message::{Contribution, Entry as ManifestEntry, EntryFields, RoundManifest};
use protocol::work::{Answer, Request};
use protocol::{Hash, MemberIndex, codec};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::actors::messages::{Fetch, Fetched, WorkRequest, WorkResult};
use crate::actors::worker::{CurrentRound, WaitingWork, WorkerActor};
use crate::clock::Clock;
use crate::restore::restore;
use crate::run_state::RunState;
use crate::secrets::SeededSecrets;
use crate::site::{OwnContributions, SiteRules};
use crate::testing::*;
use crate::{Checks, Site};

/// Receives results and fetches.
#[derive(Clone, Default)]
pub(super) struct Receiver {
    results: Rc<RefCell<Vec<WorkResult>>>,
    pub(super) fetches: Rc<RefCell<Vec<Fetch>>>,
}

impl Actor for Receiver {
    type Context = Context<Self>;
}

impl Handler<WorkResult> for Receiver {
    type Result = ();

    fn handle(&mut self, result: WorkResult, _: &mut Context<Self>) {
        self.results.borrow_mut().push(result);
    }
}

impl Handler<Fetch> for Receiver {
    type Result = ();

    fn handle(&mut self, fetch: Fetch, _: &mut Context<Self>) {
        self.fetches.borrow_mut().push(fetch);
    }
}

/// A new worker, of member 0 of 4.
pub(super) struct Bench {
    pub(super) worker: Addr<WorkerActor>,
    pub(super) received: Receiver,
    address: Addr<Receiver>,
    pub(super) rig: Rig,
    _gone: oneshot::Receiver<crate::Stopped>,
}

impl Bench {
    pub(super) fn new(norm: f64) -> Self {
        let (rig, received) = (Rig::new(Checks::new(false)), Receiver::default());
        let address = received.clone().start();
        let mut config = config(&epoch(4, 3), 0);
        config.max_model_norm = norm;
        let restored = restore(&config, &mut rig.journal.clone(), &*rig.blobs).unwrap();
        let site = SiteRules::new(Site::default(), &OwnContributions::of(&config), &[]);
        let (gone, waits) = oneshot::channel();
        let worker = WorkerActor {
            config: Arc::new(config),
            blobs: rig.blobs.clone(),
            pool: Arc::new(TestPool::default()),
            checks: rig.checks.clone(),
            mesh: address.clone().recipient(),
            clock: Clock(rig.origin),
            run_state: RunState::new(gone),
            activities: crate::activity::Activities::default(),
            base: restored.base,
            own: restored.own,
            trained: restored.trained,
            prepared: restored.prepared,
            secrets: Box::new(SeededSecrets::new(&[0; 32])),
            opening: None,
            rest: None,
            applying: false,
            kept: VecDeque::new(),
            void: Default::default(),
            again: None,
            round: CurrentRound::default(),
            wants: WaitingWork::default(),
            site,
        };
        Self {
            worker: worker.start(),
            received,
            address,
            rig,
            _gone: waits,
        }
    }

    /// Sends a request and runs until all work has ended. Returns the results.
    pub(super) async fn ask(&self, request: Request) -> Vec<WorkResult> {
        self.worker.do_send(WorkRequest {
            request,
            reply: self.address.clone().recipient(),
        });
        self.run_until_idle().await
    }

    pub(super) async fn run_until_idle(&self) -> Vec<WorkResult> {
        sleep(Duration::from_secs(10)).await;
        self.received.results.take()
    }

    /// The input of the only result.
    pub(super) async fn input(&self, request: Request) -> Answer {
        one(self.ask(request).await).answer.unwrap()
    }

    /// Hashes fetched since the last call.
    pub(super) fn fetched(&self) -> Vec<Hash> {
        let fetches = self.received.fetches.take();
        fetches
            .iter()
            .flat_map(|fetch| fetch.blobs.iter().map(|wish| wish.hash))
            .collect()
    }

    pub(super) fn arrive(&self, blob: &Bytes) {
        self.worker.do_send(Fetched {
            blobs: vec![(Hash::of(blob), blob.clone())],
            missing: Vec::new(),
        });
    }
}

pub(super) fn one(mut results: Vec<WorkResult>) -> WorkResult {
    assert_eq!(results.len(), 1);
    results.pop().unwrap()
}

pub(super) fn fields(model: &Params) -> EntryFields {
    let size = model.document().len() as u64;
    EntryFields {
        blob: Hash(model.hash()),
        size,
        coalition: Some(0),
        weight: None,
        member: None,
    }
}

pub(super) fn entry(model: &Params) -> ManifestEntry {
    let nonce = model.hash();
    let fields = fields(model);
    Contribution {
        plan: Hash::of(b""),
        fields,
        nonce,
        metrics: Vec::new(),
    }
    .entry(&Hash::of(b""), 1)
}

pub(super) fn admit(fields: EntryFields) -> Request {
    Request::Admit {
        round: 1,
        fields,
        from: MemberIndex(3),
    }
}

pub(super) fn evaluate(models: &[&Params]) -> Request {
    let entries = models.iter().map(|model| entry(model)).collect();
    Request::Evaluate {
        round: 1,
        entries,
        holders: vec![MemberIndex(1), MemberIndex(0)],
    }
}

/// The manifest of these models with all entries in one coalition.
pub(super) fn case(models: &[Params]) -> Case {
    let mut entries: Vec<_> = models.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.id);
    let assignment = vec![0; entries.len()];
    let decision = methods::Decision::fixed(assignment);
    let manifest = Arc::new(RoundManifest {
        entries,
        scores: None,
    });
    let decision = codec::encode(&decision);
    Case::new(1, manifest.root(), manifest, decision.into())
}
