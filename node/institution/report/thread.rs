//! Reports what happens to the operator, in order, from a thread of its own: measuring an adopted model
//! on the own rows may take long, and the silo must not wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

use protocol::Time;
use silo::Notice;

use super::lines::News;
use super::output::OutputLines;
use crate::events::NodeEvent;
use crate::model::HeldRounds;

/// Events that may wait; more are dropped and counted.
const WAITING: usize = 4096;
/// Adopted rounds that may wait to be measured. Models of older ones are not measured, so that a slow
/// evaluation is never further behind.
const BEHIND: usize = 3;

enum ReporterInput {
    Notice(SystemTime, Time, Box<Notice>),
    Line(SystemTime, f64, Box<NodeEvent>, String),
    End,
}

/// Takes events to report. Never waits.
#[derive(Clone)]
pub(in crate::institution) struct Reporter {
    events: SyncSender<ReporterInput>,
    /// Adopted rounds that wait.
    adopted: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

/// The end of the thread.
pub(in crate::institution) struct Ending(Receiver<()>);

impl Reporter {
    /// Starts the thread. It begins with the round that the silo goes on from, the last of those given,
    /// with the seed of the federation's first model.
    pub(in crate::institution) fn start(
        mut news: News,
        goes_on: Option<(HeldRounds, u64)>,
        output: OutputLines,
    ) -> (Self, Ending) {
        let (events, waiting) = sync_channel(WAITING);
        let (ended, ending) = sync_channel(1);
        let (adopted, dropped) = (Arc::<AtomicUsize>::default(), Arc::<AtomicU64>::default());
        let reporter = Self {
            events,
            adopted: adopted.clone(),
            dropped: dropped.clone(),
        };
        thread::spawn(move || {
            if let Some((held, seed)) = goes_on {
                news.goes_on(&held, seed);
            }
            work(&waiting, news, &output, &adopted, &dropped);
            // The node may not wait any more.
            let _ = ended.send(());
        });
        (reporter, Ending(ending))
    }

    /// Reports a notice of the silo.
    pub(in crate::institution) fn notice(&self, time: SystemTime, at: Time, notice: &Notice) {
        if matches!(notice, Notice::Adopted { .. }) {
            self.adopted.fetch_add(1, Ordering::Relaxed);
        }
        self.send(ReporterInput::Notice(time, at, Box::new(notice.clone())));
    }

    /// Prints the event, so many seconds after the start, or the line of text.
    pub(in crate::institution) fn print(&self, at: f64, event: NodeEvent, line: String) {
        self.send(ReporterInput::Line(
            SystemTime::now(),
            at,
            Box::new(event),
            line,
        ));
    }

    /// Waits until everything is reported, up to `straggler-timeout`.
    pub(in crate::institution) fn end(&self, ending: &Ending, patience: Duration) {
        self.send(ReporterInput::End);
        if ending.0.recv_timeout(patience).is_err() {
            tracing::warn!("the last events were not reported in time");
        }
    }

    fn send(&self, event: ReporterInput) {
        if self.events.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn work(
    events: &Receiver<ReporterInput>,
    mut news: News,
    output: &OutputLines,
    adopted: &AtomicUsize,
    dropped: &AtomicU64,
) {
    for event in events {
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let line = format!("warning: {lost} events could not be reported in time");
            let event = NodeEvent::LinesLost { lines: lost };
            output.print(SystemTime::now(), None, event, &line);
        }
        match event {
            ReporterInput::Notice(time, at, notice) => {
                let measure = match *notice {
                    Notice::Adopted { .. } => adopted.fetch_sub(1, Ordering::Relaxed) <= BEHIND,
                    _ => true,
                };
                news.notice(time, at, &notice, measure);
            }
            ReporterInput::Line(time, at, event, line) => output.print(time, at, *event, &line),
            ReporterInput::End => return,
        }
    }
}
