//! Signals of the operating system that end a node.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Waits for signals from the start of a node to its end, whatever the node is doing: one that comes
/// while an epoch ends is not lost.
pub(super) struct Signals {
    received: watch::Receiver<Option<&'static str>>,
    /// Waits in a thread of its own.
    _runtime: Runtime,
}

/// The end of a node, once a signal has come.
#[derive(Clone)]
pub(super) struct EndSignal(watch::Receiver<Option<&'static str>>);

impl Signals {
    /// From now on signals are waited for.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let entered = runtime.enter();
        let mut caught = Caught::new()?;
        drop(entered);
        let (sender, received) = watch::channel(None);
        runtime.spawn(async move {
            let signal = caught.next().await;
            // The node may have ended.
            let _ = sender.send(Some(signal));
            sender.closed().await;
        });
        Ok(Self {
            received,
            _runtime: runtime,
        })
    }

    pub(super) fn signal(&self) -> EndSignal {
        EndSignal(self.received.clone())
    }
}

impl EndSignal {
    /// The name of the signal, once it has come.
    pub(super) async fn received(&mut self) -> &'static str {
        let signal = self.0.wait_for(Option::is_some).await;
        let signal = signal.ok().and_then(|signal| *signal);
        match signal {
            Some(signal) => signal,
            // The thread ended without a signal.
            None => std::future::pending().await,
        }
    }
}

struct Caught {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Caught {
    #[cfg(unix)]
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    #[cfg(not(unix))]
    fn new() -> io::Result<Self> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
