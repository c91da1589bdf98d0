//! Heavy work on threads of its own, so that it never holds up the actors or the network.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use silo::{Done, Job, Pool, Work};
use tokio::sync::oneshot;

type Task = Box<dyn FnOnce() + Send>;

/// So many threads that take jobs one after another. The queue before them needs no bound of its
/// own: a silo has a bounded number of jobs open.
#[derive(Debug)]
pub struct Workers {
    queue: mpsc::Sender<Task>,
}

impl Workers {
    /// As many threads as this machine has cores.
    pub fn all_cores() -> Arc<Self> {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// Starts `count` threads (at least one). They end when the last handle is dropped.
    pub fn new(count: usize) -> Arc<Self> {
        let (queue, tasks) = mpsc::channel::<Task>();
        let tasks = Arc::new(Mutex::new(tasks));
        for _ in 0..count.max(1) {
            let tasks = tasks.clone();
            thread::spawn(move || {
                loop {
                    // Tasks catch their panics, and run after the lock is released.
                    let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(task) = task else { return };
                    task();
                }
            });
        }
        Arc::new(Self { queue })
    }
}

impl Pool for Workers {
    fn run(&self, _: Work, job: Job) -> Done {
        let (answer, done) = oneshot::channel();
        let task = move || {
            // A silo that is gone waits for nothing.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(job)).map_err(said));
        };
        // Fails only if no thread is left; then the receiver says so.
        let _ = self.queue.send(Box::new(task));
        Box::pin(async move {
            let ended = |_| Err("the job's thread ended".to_owned());
            done.await.unwrap_or_else(ended)
        })
    }
}

/// What a job panicked with.
fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()))
        .unwrap_or_else(|| "a job panicked".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Barrier;

    use super::*;

    const WORK: Work = Work::Evaluate { models: 1 };

    fn now<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn jobs_run_side_by_side_and_a_panic_is_an_error() {
        let pool = Workers::new(2);
        // Neither gets past the barrier alone.
        let barrier = Arc::new(Barrier::new(2));
        let job = |value: u8| -> Job {
            let barrier = barrier.clone();
            Box::new(move || {
                barrier.wait();
                Box::new(value)
            })
        };
        let (one, two) = (pool.run(WORK, job(1)), pool.run(WORK, job(2)));
        let values = now(async { [one.await.unwrap(), two.await.unwrap()] });
        assert_eq!(values.map(|value| *value.downcast::<u8>().unwrap()), [1, 2]);
        for _ in 0..3 {
            let failed = now(pool.run(WORK, Box::new(|| panic!("no data"))));
            assert_eq!(failed.unwrap_err(), "no data");
        }
        drop(now(pool.run(WORK, job_of(7))).unwrap());
    }

    fn job_of(value: u8) -> Job {
        Box::new(move || Box::new(value))
    }
}
