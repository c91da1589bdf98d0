//! Receivers of what a silo reports.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use protocol::Time;
use silo::{Feed, Notice};

use super::leaving::Leaving;
use crate::institution::agreement::amendments::HeardOf;
use crate::institution::agreement::recovery_wish::RecoveryPrinter;
use crate::institution::locked;
use crate::institution::report::far_columns::ScaleWatch;
use crate::institution::report::health::Health;
use crate::institution::report::no_part::Waiting;
use crate::institution::report::output::OutputLines;
use crate::institution::report::thread::Reporter;
use crate::institution::serve::Serving;

/// The parts of a node that the silo's notices are for.
pub(super) struct NoticeTargets {
    pub(super) leaving: Arc<Mutex<Leaving>>,
    pub(super) waiting: Arc<Mutex<Waiting>>,
    pub(super) health: Arc<Health>,
    pub(super) reporter: Reporter,
    /// Choice of the model that is served, where the node learns.
    pub(super) serving: Option<Serving>,
    pub(super) heard_of: HeardOf,
    pub(super) recoveries: RecoveryPrinter,
    /// Warnings of far columns, where the node learns.
    pub(super) columns: Option<ScaleWatch>,
    pub(super) output: OutputLines,
}

impl NoticeTargets {
    /// The function that the silo calls with every notice.
    pub(super) fn feed(mut self) -> Feed {
        Box::new(move |at, notice| self.observe(at, notice))
    }

    fn observe(&mut self, at: Time, notice: &Notice) {
        let now = SystemTime::now();
        locked(&self.leaving).observe(notice, Instant::now());
        locked(&self.waiting).observe(notice);
        self.health.observe(now, notice);
        self.reporter.notice(now, at, notice);
        if let Some(serving) = &self.serving {
            serving.observe(notice);
        }
        self.heard_of.observe(at, notice);
        self.recoveries.observe(at, notice);
        if let Some(columns) = &mut self.columns {
            columns.notice(at.elapsed().as_secs_f64(), notice, &self.output);
        }
    }
}
