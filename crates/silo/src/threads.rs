//! Threads for heavy work, for implementations of [`Pool`](crate::Pool).

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

type ThreadTask = Box<dyn FnOnce() + Send>;

/// A fixed number of threads that take jobs from one queue. The queue needs no bound of its own: a
/// silo has a bounded number of jobs open. The threads end when the last handle is dropped.
#[derive(Debug)]
pub struct Threads {
    queue: mpsc::Sender<ThreadTask>,
}

impl Threads {
    /// Starts as many threads as this machine has cores.
    pub fn all_cores() -> Arc<Self> {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// Starts `count` threads (at least one).
    pub fn new(count: usize) -> Arc<Self> {
        let (queue, tasks) = mpsc::channel::<ThreadTask>();
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

    /// Starts a job, and calls `end` on its thread with the result, or with the text of its panic.
    /// `end` is dropped uncalled if no thread is left.
    pub fn run<T: 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
        end: impl FnOnce(Result<T, String>) + Send + 'static,
    ) {
        let task = move || end(caught(job));
        let _ = self.queue.send(Box::new(task));
    }

    /// Starts a job. The receiver gets its result, or the text of its panic.
    pub fn start<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<Result<T, String>> {
        let (answer, receiver) = mpsc::sync_channel(1);
        // The receiver may have been dropped.
        self.run(job, move |result| drop(answer.send(result)));
        receiver
    }

    /// Runs all jobs in parallel. Returns the results in the order of the jobs.
    ///
    /// # Errors
    /// The text of the first panic.
    pub fn all<T: Send + 'static>(
        &self,
        jobs: impl IntoIterator<Item = impl FnOnce() -> T + Send + 'static>,
    ) -> Result<Vec<T>, String> {
        let started: Vec<_> = jobs.into_iter().map(|job| self.start(job)).collect();
        started.iter().map(wait).collect()
    }
}

/// Waits for the result of [`Threads::start`].
///
/// # Errors
/// The text of its panic.
pub fn wait<T>(answer: &mpsc::Receiver<Result<T, String>>) -> Result<T, String> {
    answer
        .recv()
        .unwrap_or_else(|_| Err("the job's thread ended".into()))
}

/// Runs a job on the calling thread.
///
/// # Errors
/// The text of its panic.
pub fn caught<T>(job: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(job)).map_err(text)
}

fn text(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).into()))
        .unwrap_or_else(|| "a job panicked".into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs() {
        let all = Threads::new(3).all((0..50).map(|i| move || i * i)).unwrap();
        assert_eq!(all, (0..50).map(|i| i * i).collect::<Vec<_>>());
    }

    #[test]
    fn a_panic_is_an_error_and_the_thread_works_on() {
        let threads = Threads::new(1);
        for _ in 0..3 {
            let failed = wait(&threads.start(|| -> u8 { panic!("no data") }));
            assert_eq!(failed, Err("no data".into()));
        }
        assert_eq!(wait(&threads.start(|| 7)), Ok(7));
    }
}
