//! The pool of a node: threads apart from the actors and the network.

use std::sync::Arc;

use silo::threads::Threads;
use silo::{Done, Pool, PoolJob, WorkSize};
use tokio::sync::oneshot;

/// Runs heavy work on [`Threads`], and the steps of state machines on one more thread.
#[derive(Debug)]
pub struct Workers {
    heavy: Arc<Threads>,
    steps: Arc<Threads>,
}

impl Workers {
    /// As many threads for heavy work as this machine has cores.
    pub fn all_cores() -> Arc<Self> {
        Self::of(Threads::all_cores())
    }

    /// `count` threads for heavy work (at least one). All end when the last handle is dropped.
    pub fn new(count: usize) -> Arc<Self> {
        Self::of(Threads::new(count))
    }

    fn of(heavy: Arc<Threads>) -> Arc<Self> {
        let steps = Threads::new(1);
        Arc::new(Self { heavy, steps })
    }
}

impl Pool for Workers {
    fn run(&self, _: WorkSize, job: PoolJob) -> Done {
        on(&self.heavy, job)
    }

    fn step(&self, job: PoolJob) -> Result<Done, PoolJob> {
        Ok(on(&self.steps, job))
    }
}

/// Starts a job on these threads.
fn on(threads: &Threads, job: PoolJob) -> Done {
    let (answer, done) = oneshot::channel();
    // The silo may have ended.
    threads.run(job, move |result| drop(answer.send(result)));
    Box::pin(async move {
        let ended = |_| Err("the job's thread ended".to_owned());
        done.await.unwrap_or_else(ended)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Barrier;

    use super::*;

    const WORK: WorkSize = WorkSize::Evaluate { models: 1 };

    fn now<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn jobs_run_side_by_side_and_a_panic_is_an_error() {
        let pool = Workers::new(2);
        // Neither gets past the barrier alone.
        let barrier = Arc::new(Barrier::new(2));
        let job = |value: u8| -> PoolJob {
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

    fn job_of(value: u8) -> PoolJob {
        Box::new(move || Box::new(value))
    }
}
