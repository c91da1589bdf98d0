//! A worker by itself: the test is its silo and its mesh.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, Context, Handler};
use bytes::Bytes;
use methods::Params;
use protocol::effects::Case;
use protocol::message::{Contribution, Entry as SheetEntry, EntryFields, Sheet};
use protocol::{Effect, Hash, Input, MemberIndex, codec};
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::Checks;
use crate::actors::mesh::{Arrived, Fetch};
use crate::actors::silo::Answer;
use crate::actors::worker::{Do, OnRound, Waiting, WorkerActor};
use crate::clock::Clock;
use crate::handle::Life;
use crate::restore::restore;
use crate::testing::*;

/// Takes answers and fetches.
#[derive(Clone, Default)]
pub(super) struct Desk {
    answers: Rc<RefCell<Vec<Answer>>>,
    pub(super) fetches: Rc<RefCell<Vec<Fetch>>>,
}

impl Actor for Desk {
    type Context = Context<Self>;
}

impl Handler<Answer> for Desk {
    type Result = ();

    fn handle(&mut self, answer: Answer, _: &mut Context<Self>) {
        self.answers.borrow_mut().push(answer);
    }
}

impl Handler<Fetch> for Desk {
    type Result = ();

    fn handle(&mut self, fetch: Fetch, _: &mut Context<Self>) {
        self.fetches.borrow_mut().push(fetch);
    }
}

/// A worker with nothing done yet, of member 0 of 4.
pub(super) struct Bench {
    pub(super) worker: Addr<WorkerActor>,
    pub(super) desk: Desk,
    address: Addr<Desk>,
    pub(super) rig: Rig,
    _gone: oneshot::Receiver<crate::Stopped>,
}

impl Bench {
    pub(super) fn new(norm: f64) -> Self {
        let (rig, desk) = (Rig::new(Checks::new(false)), Desk::default());
        let address = desk.clone().start();
        let mut config = config(&epoch(4, 3), 0);
        config.norm = norm;
        let restored = restore(&config, &mut rig.journal.clone(), &*rig.blobs).unwrap();
        let (gone, waits) = oneshot::channel();
        let worker = WorkerActor {
            config: Arc::new(config),
            blobs: rig.blobs.clone(),
            pool: Arc::new(TestPool),
            checks: rig.checks.clone(),
            mesh: address.clone().recipient(),
            clock: Clock(rig.origin),
            life: Life::new(gone),
            progress: Arc::default(),
            ground: restored.ground,
            own: restored.own,
            trained: restored.trained,
            applying: false,
            kept: VecDeque::new(),
            again: None,
            round: OnRound::default(),
            wants: Waiting::default(),
        };
        Self {
            worker: worker.start(),
            desk,
            address,
            rig,
            _gone: waits,
        }
    }

    /// Asks, lets all work end, and gives what came back.
    pub(super) async fn ask(&self, effect: Effect) -> Vec<Answer> {
        self.worker.do_send(Do {
            effect,
            reply: self.address.clone().recipient(),
        });
        self.settle_down().await
    }

    pub(super) async fn settle_down(&self) -> Vec<Answer> {
        sleep(Duration::from_secs(10)).await;
        self.desk.answers.take()
    }

    /// The only answer.
    pub(super) async fn input(&self, effect: Effect) -> Input {
        one(self.ask(effect).await).input.unwrap()
    }

    /// Hashes asked for since the last time.
    pub(super) fn fetched(&self) -> Vec<Hash> {
        let fetches = self.desk.fetches.take();
        fetches
            .iter()
            .flat_map(|fetch| fetch.blobs.iter().map(|wish| wish.hash))
            .collect()
    }

    pub(super) fn arrive(&self, blob: &Bytes) {
        self.worker.do_send(Arrived {
            blobs: vec![(Hash::of(blob), blob.clone())],
            missing: Vec::new(),
        });
    }
}

pub(super) fn one(mut answers: Vec<Answer>) -> Answer {
    assert_eq!(answers.len(), 1);
    answers.pop().unwrap()
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

pub(super) fn entry(model: &Params) -> SheetEntry {
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

pub(super) fn admit(fields: EntryFields) -> Effect {
    Effect::Admit {
        round: 1,
        fields,
        from: MemberIndex(3),
    }
}

pub(super) fn evaluate(models: &[&Params]) -> Effect {
    let entries = models.iter().map(|model| entry(model)).collect();
    Effect::Evaluate {
        round: 1,
        entries,
        holders: vec![MemberIndex(1), MemberIndex(0)],
    }
}

/// The sheet of these models with everybody in one coalition.
pub(super) fn case(models: &[Params]) -> Case {
    let mut entries: Vec<_> = models.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.id);
    let assignment = vec![0; entries.len()];
    let decision = methods::Decision {
        assignment,
        ..methods::Decision::default()
    };
    let sheet = Arc::new(Sheet {
        entries,
        scores: None,
    });
    let decision = codec::encode(&decision);
    Case::new(1, sheet.root(), sheet, decision.into())
}
