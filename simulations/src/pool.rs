//! Heavy work in virtual time: computed in parallel on real threads, with a modelled duration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
pub use silo::threads::Threads;
use silo::threads::caught;
pub(crate) use silo::threads::wait;
use silo::{Done, Pool, PoolJob, WorkSize};

/// How long heavy work takes at a silo, in virtual time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Costs {
    /// Training on one row once, in microseconds.
    pub train_row_us: f64,
    /// Evaluating one model, in milliseconds.
    pub evaluate_model_ms: f64,
    /// Checking one signature, in microseconds.
    pub signature_us: f64,
    /// Reading, checking or averaging a megabyte of models, in milliseconds.
    pub megabyte_ms: f64,
}

impl Default for Costs {
    /// Guesses for a small model on one core; the time of a signature is measured.
    fn default() -> Self {
        Self {
            train_row_us: 200.0,
            evaluate_model_ms: 5.0,
            signature_us: 45.0,
            megabyte_ms: 2.0,
        }
    }
}

impl Costs {
    /// The modelled duration of a piece of work, at least a millisecond.
    pub fn of(&self, work: WorkSize) -> Duration {
        let seconds = match work {
            WorkSize::Train { samples } => samples as f64 * self.train_row_us * 1e-6,
            WorkSize::Evaluate { models } => models as f64 * self.evaluate_model_ms * 1e-3,
            WorkSize::Open { signatures } => signatures as f64 * self.signature_us * 1e-6,
            WorkSize::Models { bytes } => bytes as f64 * self.megabyte_ms * 1e-9,
        };
        Duration::from_secs_f64(seconds.clamp(1e-3, 1e6))
    }
}

/// Work on models up to this size, in bytes, runs on the runtime's own thread: handing it to
/// another would cost as much.
const INLINE_BYTES: u64 = 64 << 10;

/// The pool of one federation in virtual time.
pub struct VirtualPool {
    threads: Arc<Threads>,
    costs: Costs,
    /// Modelled time of all work besides training, in microseconds.
    worked: AtomicU64,
}

impl VirtualPool {
    /// A pool that computes on `threads` and takes as long as `costs` say.
    pub fn new(threads: Arc<Threads>, costs: Costs) -> Arc<Self> {
        Arc::new(Self {
            threads,
            costs,
            worked: AtomicU64::new(0),
        })
    }

    /// The modelled time of all work so far besides training.
    pub fn worked(&self) -> Duration {
        Duration::from_micros(self.worked.load(Ordering::Relaxed))
    }

    /// The modelled duration of a piece of work, which is counted.
    fn takes(&self, work: WorkSize) -> Duration {
        let takes = self.costs.of(work);
        if !matches!(work, WorkSize::Train { .. }) {
            let micros = takes.as_micros() as u64;
            self.worked.fetch_add(micros, Ordering::Relaxed);
        }
        takes
    }
}

impl Pool for VirtualPool {
    fn run(&self, work: WorkSize, job: PoolJob) -> Done {
        if matches!(work, WorkSize::Models { bytes } if bytes <= INLINE_BYTES) {
            return self.wait(work, job);
        }
        let answer = self.threads.start(job);
        let takes = self.takes(work);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            wait(&answer)
        })
    }

    /// Runs on the runtime's own thread, which has nothing else to do until the result is there.
    fn wait(&self, work: WorkSize, job: PoolJob) -> Done {
        let takes = self.takes(work);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            caught(job)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn work_takes_its_modelled_time_and_panics_are_errors() {
        let pool = VirtualPool::new(Threads::new(2), Costs::default());
        let start = tokio::time::Instant::now();
        let done = pool
            .run(
                WorkSize::Train { samples: 5_000 },
                Box::new(|| Box::new(7u8)),
            )
            .await;
        assert_eq!(*done.unwrap().downcast::<u8>().unwrap(), 7);
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        assert_eq!(pool.worked(), Duration::ZERO, "training is not counted");
        let panics = pool
            .run(
                WorkSize::Evaluate { models: 1 },
                Box::new(|| panic!("no data")),
            )
            .await;
        assert_eq!(panics.unwrap_err(), "no data");
        assert_eq!(pool.worked(), Duration::from_millis(5));
    }
}
