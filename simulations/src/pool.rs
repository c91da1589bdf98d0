//! Heavy work in virtual time: computed in parallel on real threads, with a modelled duration.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use silo::{Done, Job, Pool, Work};

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
    pub fn of(&self, work: Work) -> Duration {
        let seconds = match work {
            Work::Train { samples } => samples as f64 * self.train_row_us * 1e-6,
            Work::Evaluate { models } => models as f64 * self.evaluate_model_ms * 1e-3,
            Work::Open { signatures } => signatures as f64 * self.signature_us * 1e-6,
            Work::Models { bytes } => bytes as f64 * self.megabyte_ms * 1e-9,
        };
        Duration::from_secs_f64(seconds.clamp(1e-3, 1e6))
    }
}

/// Work on models up to this size, in bytes, runs on the runtime's own thread: handing it to
/// another would cost as much.
const INLINE_BYTES: u64 = 64 << 10;

/// Threads outside the async runtime. A job starts at once, and its result is read only after the
/// modelled time, so that the order of events never depends on the machine.
pub struct Threads {
    queue: mpsc::Sender<Box<dyn FnOnce() + Send>>,
}

impl Threads {
    /// Starts `count` threads (at least one); they end when the last handle is dropped.
    pub fn new(count: usize) -> Arc<Self> {
        let (queue, jobs) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..count.max(1) {
            let jobs = jobs.clone();
            std::thread::spawn(move || {
                loop {
                    // The lock is released before the job runs, and jobs catch their panics.
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    job();
                }
            });
        }
        Arc::new(Self { queue })
    }

    /// Starts a job. The receiver gets its result, or the message of its panic.
    pub fn start<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<Result<T, String>> {
        let (answer, receiver) = mpsc::sync_channel(1);
        let job = move || {
            // The receiver may be gone; then nobody needs the result.
            let _ = answer.send(catch_unwind(AssertUnwindSafe(job)).map_err(panic_message));
        };
        // Fails only if no thread is left; then the receiver reports it.
        let _ = self.queue.send(Box::new(job));
        receiver
    }

    /// Runs all jobs in parallel and returns their results in the order of the jobs.
    ///
    /// # Errors
    /// The panic message of the first job, in that order, that panicked.
    pub fn all<T: Send + 'static>(
        &self,
        jobs: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    ) -> Result<Vec<T>, String> {
        let started: Vec<_> = jobs.into_iter().map(|job| self.start(job)).collect();
        started.into_iter().map(|answer| wait(&answer)).collect()
    }
}

/// Waits for a result of [`Threads::start`].
pub(crate) fn wait<T>(answer: &mpsc::Receiver<Result<T, String>>) -> Result<T, String> {
    answer
        .recv()
        .unwrap_or_else(|_| Err("the job's thread ended".into()))
}

fn panic_message(panic: Box<dyn std::any::Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()))
        .unwrap_or_else(|| "a job panicked".into())
}

/// The pool of one federation in virtual time.
pub struct VirtualPool {
    threads: Arc<Threads>,
    costs: Costs,
}

impl VirtualPool {
    /// A pool that computes on `threads` and takes as long as `costs` say.
    pub fn new(threads: Arc<Threads>, costs: Costs) -> Arc<Self> {
        Arc::new(Self { threads, costs })
    }
}

impl Pool for VirtualPool {
    fn run(&self, work: Work, job: Job) -> Done {
        if matches!(work, Work::Models { bytes } if bytes <= INLINE_BYTES) {
            return self.wait(work, job);
        }
        let answer = self.threads.start(job);
        let takes = self.costs.of(work);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            wait(&answer)
        })
    }

    /// Runs on the runtime's own thread, which has nothing else to do until the result is there.
    fn wait(&self, work: Work, job: Job) -> Done {
        let takes = self.costs.of(work);
        Box::pin(async move {
            tokio::time::sleep(takes).await;
            catch_unwind(AssertUnwindSafe(job)).map_err(panic_message)
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
            .run(Work::Train { samples: 5_000 }, Box::new(|| Box::new(7u8)))
            .await;
        assert_eq!(*done.unwrap().downcast::<u8>().unwrap(), 7);
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        let panics = pool
            .run(Work::Evaluate { models: 1 }, Box::new(|| panic!("no data")))
            .await;
        assert_eq!(panics.unwrap_err(), "no data");
    }

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let all = Threads::new(3).all((0..50).map(|i| move || i * i)).unwrap();
        assert_eq!(all, (0..50).map(|i| i * i).collect::<Vec<_>>());
    }
}
