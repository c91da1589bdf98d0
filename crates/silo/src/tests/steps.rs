//! Steps on a thread of their own, in real time: the disk takes as long as the test wants.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use protocol::MemberIndex;
use protocol::net::{Command, Event};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::environment::{Journal, PoolJob};
use crate::testing::*;
use crate::threads::Threads;
use crate::{Checks, Done, JournalRecord, Pool, Stopped, StoreError, WorkSize, spawn};

/// Longest time that a test waits for anything.
const LONGEST: Duration = Duration::from_secs(20);

/// The pool of the other tests, with a thread for steps.
struct Apart(Arc<Threads>);

impl Pool for Apart {
    fn run(&self, work: WorkSize, job: PoolJob) -> Done {
        TestPool::default().run(work, job)
    }

    fn step(&self, job: PoolJob) -> Result<Done, PoolJob> {
        let (answer, done) = oneshot::channel();
        self.0.run(job, move |result| drop(answer.send(result)));
        Ok(Box::pin(async move { done.await.unwrap() }))
    }
}

/// A journal whose first commit waits until the test lets it go on.
struct HeldJournal {
    journal: MemoryJournal,
    began: Option<oneshot::Sender<()>>,
    gate: Mutex<Receiver<()>>,
}

impl Journal for HeldJournal {
    fn load(&mut self) -> Result<Vec<JournalRecord>, StoreError> {
        self.journal.load()
    }

    fn commit(&mut self, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        if let Some(began) = self.began.take() {
            began.send(()).unwrap();
            self.gate.lock().unwrap().recv_timeout(LONGEST).unwrap();
        }
        self.journal.commit(records)
    }

    fn replace(&mut self, from: u64, records: Vec<JournalRecord>) -> Result<(), StoreError> {
        self.journal.replace(from, records)
    }
}

fn is_frame(command: &Command) -> bool {
    matches!(command, Command::Send { .. } | Command::Publish { .. })
}

/// Takes all commands that the silo has given so far, and counts those that send a frame. Other commands,
/// such as to keep a neighbour out, do not count.
fn frames(ends: &mut NetworkEnds) -> usize {
    let commands = std::iter::from_fn(|| ends.commands.try_recv().ok());
    commands.filter(is_frame).count()
}

fn really<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    crate::block_on(runtime.enable_all().build().unwrap(), future)
}

#[test]
fn while_a_disk_is_slow_frames_are_read_and_nothing_is_sent() {
    really(async {
        let rig = Rig::new(Checks::new(false));
        let (mut environment, mut ends) = rig.environment();
        let (began, begins) = oneshot::channel();
        let (release, gate) = channel();
        environment.pool = Arc::new(Apart(Threads::new(1)));
        environment.journal = Box::new(HeldJournal {
            journal: rig.journal.clone(),
            began: Some(began),
            gate: Mutex::new(gate),
        });
        let mut silo = spawn(config(&epoch(1, 1), 0), environment).unwrap();
        timeout(LONGEST, begins).await.unwrap().unwrap();
        // What needed no record is gone already.
        frames(&mut ends);
        // The silo's own thread, on which this test runs, is free.
        let frame = Event::Received {
            from: MemberIndex(0),
            frame: Bytes::from_static(b"no frame"),
            ticket: None,
        };
        ends.events.send(frame).await.unwrap();
        while silo.counts().received == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(frames(&mut ends), 0);
        assert!(rig.journal.transactions().is_empty());
        assert_eq!(silo.counts().commits, 0);
        release.send(()).unwrap();
        let sent = async { while !is_frame(&ends.commands.recv().await.unwrap()) {} };
        timeout(LONGEST, sent).await.unwrap();
        assert!(!rig.journal.transactions().is_empty());
        silo.stop();
        assert_eq!(silo.stopped().await, Stopped::Asked);
    });
}

#[test]
fn a_panic_on_that_thread_ends_the_silo_with_its_text() {
    really(async {
        let rig = Rig::new(Checks::new(false));
        rig.journal.panic_after(1);
        let (mut environment, _ends) = rig.environment();
        environment.pool = Arc::new(Apart(Threads::new(1)));
        let mut silo = spawn(config(&epoch(1, 1), 0), environment).unwrap();
        let stopped = timeout(LONGEST, silo.stopped()).await.unwrap();
        assert_eq!(stopped, Stopped::Defect("a disk that fails".into()));
        assert_eq!(rig.journal.transactions().len(), 1);
    });
}
