//! The run of a silo in one epoch, and the end of what runs beside it.

use std::time::{Duration, Instant, SystemTime};

use silo::{SiloEnvironment, Stopped};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::tick::NodeWatch;
use super::{EpochEnd, GOODBYE};
use crate::events::NodeEvent;
use crate::institution::error::NodeError;
use crate::institution::locked;
use crate::institution::report::output::OutputLines;
use crate::institution::signals::EndSignal;
use crate::institution::start::role::NodeRole;

/// Runs the silo until a signal, its own end, or the end that `watch` decides on.
pub(super) async fn run_silo(
    role: NodeRole,
    environment: SiloEnvironment,
    mut watch: NodeWatch,
    mut signal: EndSignal,
    (heartbeat, output): (Duration, OutputLines),
) -> Result<EpochEnd, NodeError> {
    let began = Instant::now();
    let mut handle = role.spawn(environment)?;
    let activities = handle.activities();
    activities.heard_by(move |activity, took| {
        let work = activity.name().to_owned();
        let event = match took {
            None => NodeEvent::WorkBegins { work },
            Some(took) => NodeEvent::WorkEnds {
                work,
                seconds: took.as_secs_f64(),
            },
        };
        output.print(SystemTime::now(), began.elapsed().as_secs_f64(), event, "");
    });
    watch.health.runs(activities);
    let mut tick = interval(heartbeat.clamp(Duration::from_millis(50), Duration::from_secs(1)));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        tokio::select! {
            stopped = handle.stopped() => return match stopped {
                Stopped::EpochOver => Ok(EpochEnd::EpochOver),
                other => Err(NodeError::Stopped(other)),
            },
            signal = signal.received() => break signal,
            _ = tick.tick() => {
                watch.approve(&handle, began);
                watch.resume(&handle, began);
                watch.recover(&handle);
                watch.health.tick(handle.counts(), locked(&watch.waiting).reason());
                watch.report_waiting(began);
                watch.report_unreachable(began);
                watch.report_serving();
                if let Some(why) = watch.why_leave() {
                    break why;
                }
            }
        }
    };
    let event = NodeEvent::Leaving { why: why.into() };
    let at = began.elapsed().as_secs_f64();
    watch.reporter.print(at, event, format!("ending: {why}"));
    // Before the state folder is free for another process.
    watch.sockets.clear();
    handle.stop();
    match timeout(GOODBYE, handle.stopped()).await {
        Ok(Stopped::Asked | Stopped::EpochOver) | Err(_) => Ok(EpochEnd::Left),
        Ok(other) => Err(NodeError::Stopped(other)),
    }
}

/// Waits for the network to close its connections. Work that still runs is abandoned.
pub(super) fn goodbye(outer: Runtime, log: JoinHandle<()>, mesh: JoinHandle<()>) {
    outer.block_on(async {
        let ending = log.abort_handle();
        if timeout(GOODBYE, log).await.is_err() {
            // It shares the journal, which the next epoch opens again.
            ending.abort();
            tracing::warn!("the end of the audit log was not written in time");
        }
        if timeout(GOODBYE, mesh).await.is_err() {
            tracing::warn!("the network did not end in time");
        }
    });
    outer.shutdown_timeout(Duration::from_secs(1));
}
