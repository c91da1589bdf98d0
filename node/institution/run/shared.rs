//! State that the silo's notices change, and that the node looks at with every tick.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::leaving::Leaving;
use super::part::EpochPart;
use super::tick::NodeWatch;
use super::told::NoticeTargets;
use super::{Begin, names};
use crate::institution::agreement::amendments::{AmendmentFolder, HeardOf};
use crate::institution::agreement::recovery_wish::{RecoveryPrinter, WishFile};
use crate::institution::agreement::signed::Owed;
use crate::institution::report::far_columns::ScaleWatch;
use crate::institution::report::health::Health;
use crate::institution::report::no_part::Waiting;
use crate::institution::report::output::OutputLines;
use crate::institution::report::thread::Reporter;
use crate::institution::report::unreachable::Unreachable;
use crate::institution::serve::Serving;
use crate::institution::start::signed_rows::ChangedRows;
use crate::status::socket;

/// State that those who receive a notice share with what is looked at with every tick.
pub(super) struct NodeShared {
    pub(super) leaving: Arc<Mutex<Leaving>>,
    waiting: Arc<Mutex<Waiting>>,
    /// Choice of the model that is served, where the node learns.
    serving: Option<Serving>,
}

impl NodeShared {
    /// The shared state of a node that begins an epoch now.
    pub(super) fn of(begin: &Begin<'_>, part: &EpochPart, serving: Option<Serving>) -> Self {
        let epoch = &begin.present.institution.agreement.epoch;
        let leaving = Leaving::new(epoch, begin.options.grace, Instant::now());
        let owed = part.owed.as_ref().map(Owed::line);
        let owed = owed.or_else(|| part.refused.clone());
        let awaited = part.awaited(&begin.present.institution);
        let owed = owed.or_else(|| awaited.map(ChangedRows::line));
        let waiting = Waiting::new(epoch).with(part.bystander.clone(), owed);
        Self {
            leaving: Arc::new(Mutex::new(leaving)),
            waiting: Arc::new(Mutex::new(waiting)),
            serving,
        }
    }

    /// Returns who is told of a notice.
    pub(super) fn told(
        &self,
        begin: &Begin<'_>,
        columns: Option<ScaleWatch>,
        (health, reporter): (&Arc<Health>, &Reporter),
        output: &OutputLines,
    ) -> NoticeTargets {
        let institution = &begin.present.institution;
        NoticeTargets {
            leaving: self.leaving.clone(),
            waiting: self.waiting.clone(),
            health: health.clone(),
            reporter: reporter.clone(),
            serving: self.serving.clone(),
            heard_of: HeardOf {
                amendments: AmendmentFolder::of(&institution.state),
                institution: institution.clone(),
                output: output.clone(),
            },
            recoveries: RecoveryPrinter {
                institution: institution.clone(),
                output: output.clone(),
            },
            columns,
            output: output.clone(),
        }
    }

    /// Returns what the node looks at with every tick.
    pub(super) fn watch(
        self,
        begin: &Begin<'_>,
        part: &EpochPart,
        (health, reporter): (Arc<Health>, &Reporter),
        sockets: Vec<socket::Listening>,
    ) -> NodeWatch {
        let institution = &begin.present.institution;
        let epoch = institution.agreement.epoch.clone();
        NodeWatch {
            leaving: self.leaving,
            until_done: begin.options.until_done,
            waiting: self.waiting,
            serving: self.serving,
            health,
            reporter: reporter.clone(),
            unreachable: Unreachable::default(),
            sockets,
            names: names(&epoch),
            amendments: AmendmentFolder::of(&institution.state),
            given: BTreeMap::new(),
            unused: BTreeSet::new(),
            wish: WishFile::of(&institution.state, &epoch),
            wanted: None,
            owed: part.owed.clone(),
            other: part.awaited(institution).cloned(),
            refused: part.refused.is_some(),
            epoch,
        }
    }
}
